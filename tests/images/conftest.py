"""Pictures made on the spot, and a network small enough to check by hand."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from froda.images import networks

COLOURS = {
    "blue": (30, 60, 220),
    "green": (40, 180, 60),
    "red": (220, 40, 40),
    "yellow": (240, 220, 40),
}


@pytest.fixture(autouse=True, scope="package")
def one_thread():
    """Threads that wait for each other take minutes on a machine with other work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def tiny():
    """The module with the small network."""
    spec = importlib.util.spec_from_file_location("tiny", Path(__file__).with_name("tiny.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def fake_network(tiny, monkeypatch):
    """The small network under a name that the commands take."""
    monkeypatch.setitem(networks._ORIGINS, "fake", lambda _name, _device: tiny.tiny_network())
    return "fake:tiny"


@pytest.fixture
def paint():
    """Write noisy pictures of one colour."""

    def write(folder: Path, colour: str, count: int, first: int = 0) -> list[Path]:
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / f"{colour} {number}.png" for number in range(first, first + count)]
        for number, path in enumerate(paths, start=first):
            rng = np.random.default_rng([len(colour), number])
            noise = rng.integers(-25, 26, (24, 32, 3)) + rng.integers(-15, 16, (1, 1, 3))
            pixels = np.clip(np.array(COLOURS[colour]) + noise, 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(path)
        return paths

    return write


@pytest.fixture
def two_folders(tmp_path, paint):
    """Source with three colours, target with the same and yellow, which is unknown."""
    for colour in ("blue", "green", "red"):
        paint(tmp_path / "source" / colour, colour, 8)
    for colour in COLOURS:
        paint(tmp_path / "target" / colour, colour, 6, first=100)
    return tmp_path / "source", tmp_path / "target"
