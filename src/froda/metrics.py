"""Open-set metrics: plain functions of labels and scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score


def open_set_scores(
    y_true: Any, y_pred: Any, unknown_score: Any = None, *, unknown_label: Any
) -> dict[str, float]:
    """Return OS, OS*, UNK, HOS and, where scores are given, AUROC.

    OS is the mean recall over the known classes and the unknown one, OS* that over the
    known classes, UNK the recall of all unknown samples pooled, HOS the harmonic mean of
    OS* and UNK, AUROC the chance that an unknown sample has a higher score than a known
    one. What the samples cannot tell (UNK without unknown samples, say) is NaN.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, every unknown class replaced by ``unknown_label``.
    y_pred : array-like of shape (n_samples,)
        Predicted labels.
    unknown_score : array-like of shape (n_samples,), default=None
        Higher = more surely unknown.
    unknown_label : object
        The label that stands for unknown.

    Returns
    -------
    scores : dict of str to float
        One entry per metric.

    Examples
    --------
    >>> from froda.metrics import open_set_scores
    >>> scores = open_set_scores([0, 0, 1, -1], [0, 1, 1, -1], unknown_label=-1)
    >>> {name: round(value, 3) for name, value in scores.items()}
    {'OS': 0.833, 'OS*': 0.75, 'UNK': 1.0, 'HOS': 0.857}
    """
    y_true, y_pred = np.asarray(y_true), np.asarray(y_pred)
    if y_true.shape != y_pred.shape or y_true.ndim != 1 or len(y_true) == 0:
        raise ValueError(
            "y_true and y_pred must be one-dimensional, of one length and not empty, got "
            f"shapes {y_true.shape} and {y_pred.shape}."
        )
    is_unknown = y_true == unknown_label
    known, unknown = _recalls(y_true, y_pred == y_true, is_unknown)
    os_star = float(known.mean()) if len(known) else float("nan")
    recalls = np.append(known, unknown)
    scores = {
        "OS": float(recalls[~np.isnan(recalls)].mean()),
        "OS*": os_star,
        "UNK": unknown,
        "HOS": harmonic_mean(os_star, unknown),
    }
    if unknown_score is not None:
        both = is_unknown.any() and not is_unknown.all()
        auroc = roc_auc_score(is_unknown, np.asarray(unknown_score)) if both else float("nan")
        scores["AUROC"] = float(auroc)
    return scores


def harmonic_mean(first: float, second: float) -> float:
    """Return the harmonic mean of two shares, 0 where both are 0.

    Parameters
    ----------
    first, second : float
        Non-negative numbers.

    Returns
    -------
    mean : float
        2 · first · second / (first + second).
    """
    return 2 * first * second / (first + second) if first + second != 0 else 0.0


def _recalls(
    y_true: NDArray[Any], hits: NDArray[Any], is_unknown: NDArray[Any]
) -> tuple[NDArray[Any], float]:
    """Return the recall of each known class that occurs, and that of the pooled unknowns."""
    _, numbers = np.unique(y_true[~is_unknown], return_inverse=True)
    known = np.bincount(numbers, hits[~is_unknown]) / np.maximum(np.bincount(numbers), 1)
    return known, float(hits[is_unknown].mean()) if is_unknown.any() else float("nan")
