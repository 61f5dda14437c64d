"""What every open-set metric is counted from: one sheet, with a weight for each sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Sheet:
    """Samples as small numbers: what every metric is counted from."""

    numbers: Array  # known classes that occur 0..C-1, unknown C
    n_known: int
    hits: Array | None  # is the predicted label right?
    levels: Array | None  # place of the score among the distinct scores, rising
    fine: Array | None  # number of the fine class where unknown, else -1

    @property
    def is_unknown(self) -> Array:
        """Return the mask of unknown samples."""
        mask: Array = self.numbers == self.n_known
        return mask


def make_sheet(
    y_true: Any,
    y_pred: Any,
    unknown_score: Any = None,
    *,
    unknown_label: Any,
    fine_labels: Any = None,
) -> tuple[Sheet, Array]:
    """Check everything and return the sheet with one weight of 1 per sample."""
    true, predicted = check_labels(y_true, y_true if y_pred is None else y_pred, unknown_label)
    is_unknown = np.asarray(true == unknown_label)
    known, places = np.unique(true[~is_unknown], return_inverse=True)
    numbers = np.full(len(true), len(known))
    numbers[~is_unknown] = places
    fine = None
    if fine_labels is not None:
        fine = np.full(len(true), -1)
        given = _check_column("fine_labels", fine_labels, len(true))
        fine[is_unknown] = np.unique(given[is_unknown], return_inverse=True)[1]
    levels = None
    if unknown_score is not None:
        scores = _check_column("unknown_score", unknown_score, len(true)).astype(float)
        if np.isnan(scores).any():
            raise ValueError(f"unknown_score has {np.isnan(scores).sum()} NaN: nothing to rank.")
        levels = np.unique(scores, return_inverse=True)[1]
    hits = None if y_pred is None else np.asarray(predicted == true)
    return Sheet(numbers, len(known), hits, levels, fine), np.ones(len(true))


def check_labels(
    y_true: Any, y_pred: Any, unknown_label: Any, *, empty: bool = False
) -> tuple[Array, Array]:
    """Return both columns as arrays of one length whose labels can be compared."""
    true, predicted = np.asarray(y_true), np.asarray(y_pred)
    if true.shape != predicted.shape or true.ndim != 1 or (len(true) == 0 and not empty):
        raise ValueError(
            "y_true and y_pred must be one-dimensional, of one length and not empty, got "
            f"shapes {true.shape} and {predicted.shape}."
        )
    if isinstance(unknown_label, float) and np.isnan(unknown_label):
        raise ValueError("unknown_label is NaN: choose a label that can be compared.")
    unknown = np.asarray([unknown_label])
    check_kinds(("y_true", true), ("y_pred", predicted), ("unknown_label", unknown))
    return true, predicted


def check_kinds(*columns: tuple[str, Array]) -> None:
    """Refuse to compare strings with numbers: they would never be equal."""
    kinds = {name: y.dtype.kind in "US" for name, y in columns if y.dtype.kind != "O" and len(y)}
    if len(set(kinds.values())) > 1:
        said = ", ".join(
            f"{name} {'strings' if text else 'numbers'}" for name, text in kinds.items()
        )
        raise ValueError(f"labels must be all strings or all numbers, but {said}.")


def _check_column(name: str, values: Any, length: int) -> Array:
    """Return a one-dimensional array of the given length."""
    column = np.asarray(values)
    if column.shape != (length,):
        raise ValueError(f"{name} must have one entry a sample: {column.shape}, not ({length},).")
    return column


def holder(*columns: Array) -> np.dtype[Any]:
    """Return a dtype that holds the labels of all columns."""
    if any(column.dtype.kind == "O" for column in columns):
        return np.dtype(object)
    return np.result_type(*(column.dtype for column in columns))


def _share(numbers: Array, hits: Array, weights: Array, size: int) -> Array:
    """Return the weighted share of hits of each number, NaN for those without weight."""
    totals = np.bincount(numbers, weights, size)
    right = np.bincount(numbers, weights * hits, size)
    return np.divide(right, totals, out=np.full(size, np.nan), where=totals > 0)


def _mean(values: Array) -> float:
    """Return the mean of what is not NaN, NaN where nothing is left."""
    left = values[~np.isnan(values)]
    return float(left.mean()) if len(left) else float("nan")


def _recalls(sheet: Sheet, weights: Array) -> Array:
    """Return the recall of each known class, then that of the unknown."""
    assert sheet.hits is not None
    return _share(sheet.numbers, sheet.hits, weights, sheet.n_known + 1)


def os_score(sheet: Sheet, weights: Array) -> float:
    """Mean recall over C + 1 classes."""
    return _mean(_recalls(sheet, weights))


def known_recall(sheet: Sheet, weights: Array) -> float:
    """Mean recall over C classes."""
    return _mean(_recalls(sheet, weights)[:-1])


def unknown_recall(sheet: Sheet, weights: Array) -> float:
    """Recall of the pooled unknown samples."""
    return float(_recalls(sheet, weights)[-1])


def unknown_recall_by_class(sheet: Sheet, weights: Array) -> float:
    """Mean recall over the fine unknown classes."""
    assert sheet.hits is not None
    assert sheet.fine is not None
    unknown = sheet.is_unknown
    fine = sheet.fine[unknown]
    size = int(fine.max(initial=-1)) + 1
    return _mean(_share(fine, sheet.hits[unknown], weights[unknown], size))


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


def hos(sheet: Sheet, weights: Array) -> float:
    """Harmonic mean of OS* and UNK."""
    recalls = _recalls(sheet, weights)
    return harmonic_mean(_mean(recalls[:-1]), float(recalls[-1]))


def accuracy(sheet: Sheet, weights: Array) -> float:
    """Share of right labels."""
    assert sheet.hits is not None
    return float(np.average(sheet.hits, weights=weights))


def _by_level(sheet: Sheet, weights: Array, gains: Array | float) -> tuple[Array, Array]:
    """Return the weight of known (times their gain) and of unknown samples at each score."""
    assert sheet.levels is not None
    size = int(sheet.levels.max()) + 1
    known = np.bincount(sheet.levels, weights * ~sheet.is_unknown * gains, size)
    return known, np.bincount(sheet.levels, weights * sheet.is_unknown, size)


def _pairs(sheet: Sheet, weights: Array, gains: Array | float) -> float:
    """Return the mean over (known i, unknown j) of gain_i · ([u_j > u_i] + ½ [u_j = u_i])."""
    known, unknown = _by_level(sheet, weights, gains)
    total = unknown.sum()
    n_pairs = total * (weights.sum() - total)
    above = total - np.cumsum(unknown)
    return float(known @ (above + unknown / 2) / n_pairs) if n_pairs > 0 else float("nan")


def auroc(sheet: Sheet, weights: Array) -> float:
    """Every known sample gains."""
    return _pairs(sheet, weights, 1.0)


def oscr(sheet: Sheet, weights: Array) -> float:
    """Only known samples with the right label gain."""
    assert sheet.hits is not None
    return _pairs(sheet, weights, sheet.hits)


def aupr(sheet: Sheet, weights: Array) -> float:
    """Average precision, scores falling."""
    known, unknown = _by_level(sheet, weights, 1.0)
    if known.sum() == 0 or unknown.sum() == 0:
        return float("nan")
    found = np.cumsum(unknown[::-1])
    taken = np.cumsum((known + unknown)[::-1])
    precision = np.divide(found, taken, out=np.zeros_like(found), where=taken > 0)
    return float(precision @ unknown[::-1] / unknown.sum())


class Metric(NamedTuple):
    """How a metric is counted and which columns it needs beside the true labels."""

    value: Callable[[Sheet, Array], float]
    needs: frozenset[str]


# One line a metric: it then is in open_set_scores, has a scorer and a bootstrap interval.
METRICS: dict[str, Metric] = {
    "OS": Metric(os_score, frozenset({"labels"})),
    "OS*": Metric(known_recall, frozenset({"labels"})),
    "UNK": Metric(unknown_recall, frozenset({"labels"})),
    "UNK by class": Metric(unknown_recall_by_class, frozenset({"labels", "fine labels"})),
    "HOS": Metric(hos, frozenset({"labels"})),
    "accuracy": Metric(accuracy, frozenset({"labels"})),
    "AUROC": Metric(auroc, frozenset({"scores"})),
    "AUPR": Metric(aupr, frozenset({"scores"})),
    "OSCR": Metric(oscr, frozenset({"labels", "scores"})),
}


def available(sheet: Sheet) -> dict[str, Metric]:
    """Return the metrics whose columns the sheet has."""
    columns = {"labels": sheet.hits, "scores": sheet.levels, "fine labels": sheet.fine}
    given = {name for name, column in columns.items() if column is not None}
    return {name: metric for name, metric in METRICS.items() if metric.needs <= given}
