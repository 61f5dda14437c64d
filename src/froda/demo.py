"""The demonstration: four methods on one real task, timed and scored."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from froda.datasets import OpenSetTask
from froda.estimators import DFRODA, FRODA
from froda.factorization.problem import Array, Callback
from froda.metrics import open_set_scores
from froda.progressive.estimator import ProgressiveMixture

METHODS = ("linear SVM", "FRODA", "D-FRODA", "ProgressiveMixture")


@dataclass(frozen=True)
class Outcome:
    """Scores of one method; ``unknown_score`` and ``threshold`` where it has them."""

    method: str
    scores: dict[str, float]
    seconds: float
    unknown_score: Array | None = None
    threshold: float = float("nan")


def run_method(method: str, task: OpenSetTask, callback: Callback | None = None) -> Outcome:
    """Fit one method on the source and the unlabelled target, then score its predictions."""
    runners: dict[str, Callable[[], Outcome]] = {
        "linear SVM": lambda: _run_svm(task),
        "FRODA": lambda: _run("FRODA", FRODA(callback=callback), task),
        "D-FRODA": lambda: _run("D-FRODA", DFRODA(callback=callback), task),
        "ProgressiveMixture": lambda: _run("ProgressiveMixture", ProgressiveMixture(), task),
    }
    return runners[method]()


def _run(method: str, estimator: Any, task: OpenSetTask) -> Outcome:
    """Time fit and predictions of one of ours."""
    began = time.perf_counter()
    predicted = estimator.fit_predict(task.X, task.y, task.X_target)
    seconds = time.perf_counter() - began
    unknown_score = estimator.unknown_score(task.X_target)
    scores = open_set_scores(
        task.y_target, predicted, unknown_score, unknown_label=task.unknown_label
    )
    threshold = getattr(estimator, "unknown_threshold_", 0.0)  # a margin turns at 0
    return Outcome(method, scores, seconds, unknown_score, threshold)


def _run_svm(task: OpenSetTask) -> Outcome:
    """Time a linear SVM that knows nothing of the target; its doubt is the unknown score."""
    began = time.perf_counter()
    classifier = make_pipeline(StandardScaler(), SVC(kernel="linear"))
    classifier.fit(task.X, task.y)
    predicted = classifier.predict(task.X_target)
    seconds = time.perf_counter() - began
    ordered = np.sort(classifier.decision_function(task.X_target), axis=1)
    doubt = ordered[:, -2] - ordered[:, -1]
    scores = open_set_scores(task.y_target, predicted, doubt, unknown_label=task.unknown_label)
    return Outcome("linear SVM", scores, seconds)
