"""The classifiers that turn features, or codes, into one score per class."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import clone

from froda.factorization.problem import Array

HEADS = ("svm", "nn", "linear")


def make_head(head: Any, features: Array, random_state: Any) -> Any:
    """Return an unfitted classifier for ``head``: a name or a scikit-learn classifier.

    The penalty of the linear SVM is relative to the mean squared norm of the features, so
    that the scale of the data does not matter.
    """
    if head == "svm":
        from sklearn.svm import SVC  # noqa: PLC0415 - a tenth of the time that froda takes to import

        mean_square = float(np.einsum("ij,ij->", features, features, dtype=np.float64))
        mean_square /= len(features)
        return SVC(kernel="linear", C=1 / max(mean_square, np.finfo(float).tiny), break_ties=True)
    if head == "nn":
        from sklearn.neighbors import KNeighborsClassifier  # noqa: PLC0415 - likewise

        return KNeighborsClassifier(n_neighbors=3)
    chosen = clone(head)
    settings = chosen.get_params()
    if random_state is not None and "random_state" in settings:
        chosen.set_params(random_state=random_state)
    if "decision_function_shape" in settings:  # one score a class, by which it then predicts
        chosen.set_params(decision_function_shape="ovr", break_ties=True)
    return chosen


def class_scores(classifier: Any, features: Array, n_columns: int) -> Array:
    """Return scores, n × n_columns, whose row maximum is the classifier's prediction.

    Classes are column numbers. A column whose class was not in the training data is put 1
    below the lowest score of its row.
    """
    if _is_linear_svm(classifier):
        found = _linear_svm_scores(classifier, features)
    elif hasattr(classifier, "decision_function"):
        found = classifier.decision_function(features)
    elif hasattr(classifier, "predict_proba"):
        found = classifier.predict_proba(features)
    else:
        found = (classifier.predict(features)[:, None] == classifier.classes_).astype(float)
    found = np.stack([-found, found], axis=1) if found.ndim == 1 else found
    found = found.astype(features.dtype, copy=False)
    scores = np.tile(found.min(axis=1, keepdims=True) - 1, (1, n_columns))
    scores[:, classifier.classes_] = found
    return scores


def _is_linear_svm(classifier: Any) -> bool:
    """Say whether one product with the weights gives the scores."""
    from sklearn.svm import SVC  # noqa: PLC0415 - likewise

    if not isinstance(classifier, SVC) or classifier.kernel != "linear":
        return False
    return bool(classifier.decision_function_shape == "ovr")


def _linear_svm_scores(classifier: Any, features: Array) -> Array:
    """Return the decision function of a linear SVC by one product with its weights.

    SVC itself goes through all support vectors. With several classes each pair votes, and
    the sum of the margins of a class, squeezed into (-1/3, 1/3), orders equal votes.
    """
    margins = features @ classifier.coef_.T + classifier.intercept_
    n_classes = len(classifier.classes_)
    if n_classes == 2:
        flat: Array = margins.ravel()
        return flat
    votes, sums = np.zeros((2, len(features), n_classes))
    for margin, (i, j) in zip(margins.T, combinations(range(n_classes), 2), strict=True):
        is_first = margin >= 0
        votes[:, i] += is_first
        votes[:, j] += ~is_first
        sums[:, i] += margin
        sums[:, j] -= margin
    return votes + sums / (3 * (np.abs(sums) + 1))


def linear_scores(codes: Array, W: Array, n_columns: int) -> Array:
    """Return the scores of the learnt classifier W on shared codes, one column a class."""
    found = codes @ W[:, : codes.shape[1]].T.astype(codes.dtype, copy=False)
    scores = np.tile(found.min(axis=1, keepdims=True) - 1, (1, n_columns))
    scores[:, : found.shape[1]] = found
    return scores
