"""FRODA against ATI on the clock, in turns within one run, as the paper's runtime paragraph."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

import numpy as np

from froda.bench.methods import METHODS
from froda.datasets import OpenSetTask

REFERENCE = "FRODA-svm"
TIMED = (REFERENCE, "ATI", "ATI-lambda", "ATI-lambda-N1", "ATI-lambda-N2")


@dataclass(frozen=True)
class Comparison:
    """Seconds of each fit with its predictions per method, and what they were fitted on."""

    seconds: dict[str, list[float]]
    description: str

    def median(self, method: str) -> float:
        """Return the median seconds of a method."""
        return float(np.median(self.seconds[method]))

    def ratio(self, method: str) -> float:
        """Return the median over rounds of a method's seconds per second of the reference."""
        both = zip(self.seconds[method], self.seconds[REFERENCE], strict=True)
        return float(np.median([own / reference for own, reference in both]))


def compare_runtimes(rounds: int, task: OpenSetTask) -> Comparison:
    """Fit each method ``rounds`` times in turn, so that a busy machine disturbs all alike."""
    seconds: dict[str, list[float]] = {method: [] for method in TIMED}
    for _ in range(rounds):
        for method in TIMED:
            visible = task.visible()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                began = time.perf_counter()
                METHODS[method]().fit(*visible).predict(visible.X_target)
                seconds[method].append(time.perf_counter() - began)
    sizes = f"{len(task.X)} source and {len(task.X_target)} target samples"
    text = f"{task.description}; {sizes} of {task.X.shape[1]} features; {rounds} rounds"
    return Comparison(seconds, text)
