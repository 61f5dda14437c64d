"""What all tests share: one seed for everything that is random."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import settings

SEED = int(os.environ.get("FRODA_TEST_SEED", "0"))

settings.register_profile("froda", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("froda")


def pytest_report_header() -> str:
    """Say with which seed to repeat this run."""
    return f"FRODA_TEST_SEED={SEED}"


@pytest.fixture
def seed() -> int:
    """The seed of this run: 0, or what the environment asks for."""
    return SEED


@pytest.fixture
def rng(seed: int) -> np.random.Generator:
    """A fresh generator for each test, so that the order of tests does not matter."""
    return np.random.default_rng(seed)
