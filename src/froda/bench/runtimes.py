"""FRODA against ATI on the clock, in turns within one run, as the paper's runtime paragraph."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

import numpy as np

from froda.bench.methods import METHODS
from froda.datasets import OpenSetTask, load_digits_pair

_TIMED = ("FRODA-svm", "ATI", "ATI-lambda", "ATI-lambda-N1", "ATI-lambda-N2")


@dataclass(frozen=True)
class Comparison:
    """Median seconds of fit and predictions per method, and what they were fitted on."""

    seconds: dict[str, float]
    description: str


def compare_runtimes(rounds: int, task: OpenSetTask | None = None) -> Comparison:
    """Fit each method ``rounds`` times in turn, so that a busy machine disturbs all alike."""
    task = load_digits_pair() if task is None else task
    seconds: dict[str, list[float]] = {method: [] for method in _TIMED}
    for _ in range(rounds):
        for method in _TIMED:
            visible = task.visible()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                began = time.perf_counter()
                METHODS[method]().fit(*visible).predict(visible.X_target)
                seconds[method].append(time.perf_counter() - began)
    medians = {method: float(np.median(values)) for method, values in seconds.items()}
    return Comparison(medians, f"{task.description}; medians of {rounds} rounds")
