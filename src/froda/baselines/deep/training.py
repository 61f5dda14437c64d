"""The one training loop. This module alone imports PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from froda.baselines.deep.network import Layer, Layers
from froda.factorization.problem import Array

_MOMENTUM = 0.9
_WEIGHT_DECAY = 5e-4
_LEAST_STEPS = 10


@dataclass(frozen=True)
class Batch:
    """Rows of both domains that are looked at together, those of the source first."""

    rows: Tensor
    numbers: Tensor  # of the rows of the source

    @property
    def n_source(self) -> int:
        """Return how many rows are of the source."""
        return len(self.numbers)


@dataclass(frozen=True)
class Data:
    """All rows, with the column numbers of the labels of the source."""

    source: Array
    numbers: Array
    target: Array


@dataclass(frozen=True)
class Plan:
    """How long and how fast to train, and where."""

    n_epochs: int
    batch_size: int
    learning_rate: float
    device: str


class Network:
    """Named linear layers that are being trained."""

    def __init__(self, layers: Layers, device: str) -> None:
        self._layers = {
            name: (_trained(layer.weights, device), _trained(layer.bias, device))
            for name, layer in layers.items()
        }

    def linear(self, name: str, rows: Tensor) -> Tensor:
        """Return rows after one layer."""
        weights, bias = self._layers[name]
        return rows @ weights + bias

    def bottleneck(self, rows: Tensor) -> Tensor:
        """Return the features that the methods adapt."""
        return self.linear("bottleneck", rows).relu()

    def classify(self, hidden: Tensor) -> Tensor:
        """Return the scores of the classes."""
        return self.linear("classifier", hidden)

    @property
    def parameters(self) -> list[Tensor]:
        """Return all weights and biases."""
        return [tensor for layer in self._layers.values() for tensor in layer]

    def to_layers(self) -> Layers:
        """Return what was learnt as arrays."""
        return {
            name: Layer(*(tensor.detach().cpu().numpy() for tensor in layer))
            for name, layer in self._layers.items()
        }


def _trained(array: Array, device: str) -> Tensor:
    """Return a tensor of its own that collects gradients."""
    return torch.tensor(array, dtype=torch.float32, device=device, requires_grad=True)


Loss = Callable[[Network, Batch, float], Tensor]
StartEpoch = Callable[[Network, Tensor, Tensor], None]


def choose_device(name: str) -> str:
    """Return the device of a name: "auto" takes a GPU of CUDA if there is one."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.zeros(1, device=name)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(
            f"PyTorch cannot compute on device={name!r}; 'cpu' works everywhere."
        ) from error
    return name


def learning_rate(start: float, progress: float) -> float:
    """Return the rate when a share of the training is done: start / (1 + 10 progress)^0.75."""
    return start / (1 + 10 * progress) ** 0.75


def ramp(progress: float) -> float:
    """Return the weight of an adaptation, from 0 to 1: 2 / (1 + e^(-10 progress)) - 1."""
    return float(2 / (1 + np.exp(-10 * progress)) - 1)


def deal(n_rows: int, size: int, rng: np.random.Generator) -> Iterable[Array]:
    """Yield batches of rows without end: every row comes once before any comes again."""
    waiting = np.empty(0, dtype=np.intp)
    while True:
        if len(waiting) < size:
            waiting = np.concatenate([waiting, rng.permutation(n_rows)])
        yield waiting[:size]
        waiting = waiting[size:]


def train(
    data: Data,
    layers: Layers,
    plan: Plan,
    rng: np.random.Generator,
    *,
    loss: Loss,
    start_epoch: StartEpoch,
    report: Callable[[int, float], None],
) -> Layers:
    """Train by stochastic gradient descent with momentum and return the layers of the end.

    An epoch is one pass over the larger domain, but at least 10 steps. ``report`` is given the
    number of each epoch that is over and its mean loss.
    """
    with _one_thread(), torch.inference_mode(False), torch.enable_grad():
        source, target = _given(data.source, plan.device), _given(data.target, plan.device)
        numbers = torch.tensor(data.numbers, dtype=torch.long, device=plan.device)
        network = Network(layers, plan.device)
        optimizer = torch.optim.SGD(
            network.parameters,
            lr=plan.learning_rate,
            momentum=_MOMENTUM,
            weight_decay=_WEIGHT_DECAY,
        )
        sizes = [min(plan.batch_size, len(domain)) for domain in (source, target)]
        dealt = zip(deal(len(source), sizes[0], rng), deal(len(target), sizes[1], rng), strict=True)
        n_steps = max(-(-max(len(source), len(target)) // plan.batch_size), _LEAST_STEPS)
        for epoch in range(plan.n_epochs):
            start_epoch(network, source, target)
            total = torch.zeros((), device=plan.device)
            for step in range(n_steps):
                progress = (epoch * n_steps + step) / (plan.n_epochs * n_steps)
                mine, theirs = (torch.from_numpy(part).to(plan.device) for part in next(dealt))
                batch = Batch(torch.cat([source[mine], target[theirs]]), numbers[mine])
                value = loss(network, batch, ramp(progress))
                optimizer.param_groups[0]["lr"] = learning_rate(plan.learning_rate, progress)
                optimizer.zero_grad()
                value.backward()
                optimizer.step()
                total += value.detach()
            report(epoch + 1, total.item() / n_steps)
        return network.to_layers()


@contextmanager
def _one_thread() -> Iterator[None]:
    """Compute in this thread alone.

    Batches are so small that a second thread saves a third of the time at best, and threads that
    wait for each other make a training many times slower where other programs compete for the
    processors. What comes out does not depend on the number of processors either.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _given(array: Array, device: str) -> Tensor:
    """Return a tensor of its own of rows that are given."""
    return torch.tensor(array, dtype=torch.float32, device=device)
