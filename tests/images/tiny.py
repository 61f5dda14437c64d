"""A network that computes mean colours, so that its features can be worked out by hand."""

from __future__ import annotations

import time

import torch

from froda.images import Network

SIZE = 32


class Tiny(torch.nn.Module):
    """4 × 4 mean colours, then a classifier that nobody reads."""

    def __init__(self, delay: float = 0.0) -> None:
        super().__init__()
        self.delay = delay
        self.early = torch.nn.AvgPool2d(2)
        self.late = torch.nn.AvgPool2d(SIZE // 8)
        self.head = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 3))

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        time.sleep(self.delay)
        return self.head(self.late(self.early(batch)))


def tiny_network(delay: float = 0.0, **changes: object) -> Network:
    """Return the network on colours from 0 to 1."""
    settings: dict[str, object] = {
        "name": "tiny",
        "module": Tiny(delay),
        "classifier": "head.1",
        "weights": "none",
        "size": SIZE,
        "mean": (0.0,) * 3,
        "std": (255.0,) * 3,
        "layers": {"both": ("early", "pooled")},
    }
    return Network(**(settings | changes))
