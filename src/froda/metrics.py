"""Open-set metrics: plain functions of labels and scores, and scikit-learn scorers of each.

Every metric is computed from one sheet of counts that takes a weight per sample, so that the
bootstrap sorts the scores once and then only counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Interval(NamedTuple):
    """A score and the bounds of its bootstrap confidence interval.

    Parameters
    ----------
    value : float
        The score of the samples as they are.
    low, high : float
        The bounds.
    """

    value: float
    low: float
    high: float


def os_score(y_true: Any, y_pred: Any, *, unknown_label: Any) -> float:
    """Return OS: the mean recall over the known classes and the unknown one.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, every unknown class replaced by ``unknown_label``.
    y_pred : array-like of shape (n_samples,)
        Predicted labels.
    unknown_label : object
        The label that stands for unknown.

    Returns
    -------
    score : float
        Mean over the classes that occur in ``y_true``.

    Examples
    --------
    >>> from froda.metrics import os_score
    >>> round(os_score([0, 0, 1, -1], [0, 1, 1, -1], unknown_label=-1), 3)
    0.833
    """
    return _os(*_sheet(y_true, y_pred, unknown_label=unknown_label))


def known_recall(y_true: Any, y_pred: Any, *, unknown_label: Any) -> float:
    """Return OS*: the mean recall over the known classes.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, every unknown class replaced by ``unknown_label``.
    y_pred : array-like of shape (n_samples,)
        Predicted labels.
    unknown_label : object
        The label that stands for unknown.

    Returns
    -------
    score : float
        Mean over the known classes that occur in ``y_true``; NaN where there are none.
    """
    return _known_recall(*_sheet(y_true, y_pred, unknown_label=unknown_label))


def unknown_recall(y_true: Any, y_pred: Any, *, unknown_label: Any) -> float:
    """Return UNK: the share of all unknown samples, pooled, that are called unknown.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, every unknown class replaced by ``unknown_label``.
    y_pred : array-like of shape (n_samples,)
        Predicted labels.
    unknown_label : object
        The label that stands for unknown.

    Returns
    -------
    score : float
        NaN where there are no unknown samples.
    """
    return _unknown_recall(*_sheet(y_true, y_pred, unknown_label=unknown_label))


def unknown_recall_by_class(
    y_true: Any, y_pred: Any, fine_labels: Any, *, unknown_label: Any
) -> float:
    """Return the recall of unknown samples averaged over the fine unknown classes.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, every unknown class replaced by ``unknown_label``.
    y_pred : array-like of shape (n_samples,)
        Predicted labels.
    fine_labels : array-like of shape (n_samples,)
        The classes before they were replaced; looked at where ``y_true`` is unknown.
    unknown_label : object
        The label that stands for unknown.

    Returns
    -------
    score : float
        NaN where there are no unknown samples.
    """
    sheet = _sheet(y_true, y_pred, fine_labels=fine_labels, unknown_label=unknown_label)
    return _unknown_recall_by_class(*sheet)


def hos(y_true: Any, y_pred: Any, *, unknown_label: Any) -> float:
    """Return HOS: the harmonic mean of OS* and UNK.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, every unknown class replaced by ``unknown_label``.
    y_pred : array-like of shape (n_samples,)
        Predicted labels.
    unknown_label : object
        The label that stands for unknown.

    Returns
    -------
    score : float
        0 where both are 0, NaN where known or unknown samples are missing.
    """
    return _hos(*_sheet(y_true, y_pred, unknown_label=unknown_label))


def auroc(y_true: Any, unknown_score: Any, *, unknown_label: Any) -> float:
    """Return the chance that an unknown sample has a higher score than a known one.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, every unknown class replaced by ``unknown_label``.
    unknown_score : array-like of shape (n_samples,)
        Higher = more surely unknown; a tie counts one half.
    unknown_label : object
        The label that stands for unknown.

    Returns
    -------
    score : float
        NaN where known or unknown samples are missing.
    """
    return _auroc(*_sheet(y_true, None, unknown_score, unknown_label=unknown_label))


def aupr(y_true: Any, unknown_score: Any, *, unknown_label: Any) -> float:
    """Return the average precision of finding unknown samples by their score.

    The area under the precision-recall curve in its step-wise form: the sum over the
    distinct scores of (gain in recall) · precision, tied samples found together.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, every unknown class replaced by ``unknown_label``.
    unknown_score : array-like of shape (n_samples,)
        Higher = more surely unknown.
    unknown_label : object
        The label that stands for unknown.

    Returns
    -------
    score : float
        The share of unknown samples for a constant score; NaN where known or unknown
        samples are missing.
    """
    return _aupr(*_sheet(y_true, None, unknown_score, unknown_label=unknown_label))


def oscr(y_true: Any, y_pred: Any, unknown_score: Any, *, unknown_label: Any) -> float:
    """Return OSCR, the open-set classification rate, exactly and with ties counted by half.

    The mean over all pairs (known i, unknown j) of
    ``correct_i · ([score_i > score_j] + ½ [score_i = score_j])``, where score is the
    certainty of being known, that is, minus the unknown score. It takes O(n log n).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, every unknown class replaced by ``unknown_label``.
    y_pred : array-like of shape (n_samples,)
        Predicted labels. A known sample that is called unknown is not correct; give the
        best known class of each sample for the curve without a threshold.
    unknown_score : array-like of shape (n_samples,)
        Higher = more surely unknown.
    unknown_label : object
        The label that stands for unknown.

    Returns
    -------
    score : float
        NaN where known or unknown samples are missing.

    References
    ----------
    A. R. Dhamija, M. Günther, T. E. Boult, "Reducing network agnostophobia", NeurIPS 2018.

    Examples
    --------
    >>> from froda.metrics import oscr
    >>> oscr([0, 1, -1], [0, 1, -1], [0.1, 0.5, 0.5], unknown_label=-1)
    0.75
    """
    return _oscr(*_sheet(y_true, y_pred, unknown_score, unknown_label=unknown_label))


def accuracy(y_true: Any, y_pred: Any, *, unknown_label: Any) -> float:
    """Return the share of samples that carry the right label, the unknown one included.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, every unknown class replaced by ``unknown_label``.
    y_pred : array-like of shape (n_samples,)
        Predicted labels.
    unknown_label : object
        The label that stands for unknown.

    Returns
    -------
    score : float
        Every sample counts the same.
    """
    return _accuracy(*_sheet(y_true, y_pred, unknown_label=unknown_label))


def confusion_matrix(
    y_true: Any, y_pred: Any, *, unknown_label: Any, labels: Any = None
) -> tuple[Array, Array]:
    """Count samples by true and predicted label, the unknown label last.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, every unknown class replaced by ``unknown_label``; may be empty.
    y_pred : array-like of shape (n_samples,)
        Predicted labels.
    unknown_label : object
        The label that stands for unknown.
    labels : array-like, default=None
        The known labels in the order wanted. None takes those that occur, sorted.

    Returns
    -------
    counts : array of shape (n_known + 1, n_known + 1)
        ``counts[i, j]``: how many samples of class i were called j.
    classes : array of shape (n_known + 1,)
        The label of each row and column.

    Examples
    --------
    >>> from froda.metrics import confusion_matrix
    >>> counts, classes = confusion_matrix([0, 0, -1], [0, -1, -1], unknown_label=-1)
    >>> counts.tolist(), classes.tolist()
    ([[1, 1], [0, 1]], [0, -1])
    """
    true, predicted = _check_labels(y_true, y_pred, unknown_label, empty=True)
    both = np.concatenate([true, predicted])
    known = np.unique(both[both != unknown_label]) if labels is None else np.asarray(labels)
    known = known[known != unknown_label]
    unknown = np.asarray([unknown_label])
    classes = np.append(known, unknown.astype(_holder(known, both, unknown)))
    places = {label: place for place, label in enumerate(classes.tolist())}
    strange = sorted({str(label) for label in both.tolist() if label not in places})
    if strange:
        raise ValueError(f"labels does not hold {', '.join(strange)}, which occur in the samples.")
    rows, columns = (
        np.array([places[x] for x in y.tolist()], dtype=int) for y in (true, predicted)
    )
    size = len(classes)
    counts = np.bincount(rows * size + columns, minlength=size * size).reshape(size, size)
    return counts, classes


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


def open_set_scores(
    y_true: Any,
    y_pred: Any,
    unknown_score: Any = None,
    *,
    unknown_label: Any,
    fine_labels: Any = None,
) -> dict[str, float]:
    """Return every metric that labels, scores and fine labels allow.

    OS is the mean recall over the known classes and the unknown one, OS* that over the
    known classes, UNK the recall of all unknown samples pooled, HOS the harmonic mean of
    OS* and UNK, accuracy the share of right labels. With scores also AUROC, AUPR and OSCR,
    with fine labels also the recall averaged over the fine unknown classes. What the
    samples cannot tell (UNK without unknown samples, say) is NaN.

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
    fine_labels : array-like of shape (n_samples,), default=None
        The classes before the unknown ones were replaced.

    Returns
    -------
    scores : dict of str to float
        One entry per metric, in the order of ``METRICS``.

    Examples
    --------
    >>> from froda.metrics import open_set_scores
    >>> scores = open_set_scores([0, 0, 1, -1], [0, 1, 1, -1], unknown_label=-1)
    >>> {name: round(value, 3) for name, value in scores.items()}
    {'OS': 0.833, 'OS*': 0.75, 'UNK': 1.0, 'HOS': 0.857, 'accuracy': 0.75}
    """
    sheet, weights = _sheet(
        y_true, y_pred, unknown_score, fine_labels=fine_labels, unknown_label=unknown_label
    )
    return {name: metric.value(sheet, weights) for name, metric in _available(sheet).items()}


def bootstrap_intervals(
    y_true: Any,
    y_pred: Any,
    unknown_score: Any = None,
    *,
    unknown_label: Any,
    fine_labels: Any = None,
    level: float = 0.95,
    n_resamples: int = 1000,
    random_state: int = 0,
) -> dict[str, Interval]:
    """Return percentile bootstrap confidence intervals of every metric.

    Samples are drawn with replacement within each known class and within the pooled unknown
    ones, so that no class vanishes from a resample and every recall stays defined. The
    interval speaks of the chance in the test samples, not of that in training.

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
    fine_labels : array-like of shape (n_samples,), default=None
        The classes before the unknown ones were replaced.
    level : float, default=0.95
        The share of resamples that lie between the bounds.
    n_resamples : int, default=1000
        How many times the samples are drawn.
    random_state : int, default=0
        Seed of the draws.

    Returns
    -------
    intervals : dict of str to Interval
        (value, low, high) per metric; NaN where the metric is.

    Examples
    --------
    >>> from froda.metrics import bootstrap_intervals
    >>> intervals = bootstrap_intervals([0] * 9 + [-1], [0] * 10, unknown_label=-1)
    >>> intervals["OS*"]
    Interval(value=1.0, low=1.0, high=1.0)
    """
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}.")
    if n_resamples < 1:
        raise ValueError(f"n_resamples must be at least 1, got {n_resamples!r}.")
    sheet, weights = _sheet(
        y_true, y_pred, unknown_score, fine_labels=fine_labels, unknown_label=unknown_label
    )
    metrics = _available(sheet)
    rng = np.random.default_rng(random_state)
    members = [np.flatnonzero(sheet.numbers == k) for k in range(sheet.n_known + 1)]
    drawn = np.empty((n_resamples, len(metrics)))
    for row in drawn:
        chosen = np.concatenate([m[rng.integers(len(m), size=len(m))] for m in members if len(m)])
        counts = np.bincount(chosen, minlength=len(weights)).astype(float)
        row[:] = [metric.value(sheet, counts) for metric in metrics.values()]
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return {
        name: Interval(metric.value(sheet, weights), float(low[k]), float(high[k]))
        for k, (name, metric) in enumerate(metrics.items())
    }


@dataclass(frozen=True)
class OpenSetScorer:
    """A scikit-learn scorer of one open-set metric; made by `make_open_set_scorer`.

    Parameters
    ----------
    metric : str
        A name from ``METRICS``.
    unknown_label : object, default=None
        The label that stands for unknown. None takes the last of the estimator's classes.
    """

    metric: str
    unknown_label: Any = None

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        """Predict or score X, compare with y.

        Parameters
        ----------
        estimator : object
            Fitted, with ``classes_`` and ``predict`` or ``unknown_score``, whichever the
            metric needs.
        X : array-like of shape (n_samples, n_features)
            Samples of the target.
        y : array-like of shape (n_samples,)
            True labels; every label that is not a known class of the estimator is unknown.

        Returns
        -------
        score : float
            Higher is better.
        """
        classes = np.asarray(estimator.classes_)
        unknown = classes[-1:].tolist()[0] if self.unknown_label is None else self.unknown_label
        fine = np.asarray(y)
        _check_kinds(("y", fine), ("estimator.classes_", classes))
        is_known = np.isin(fine, classes[classes != unknown])
        true = fine.astype(_holder(fine, np.asarray([unknown])))
        true[~is_known] = unknown
        needs = METRICS[self.metric].needs
        sheet = _sheet(
            true,
            estimator.predict(X) if "labels" in needs else None,
            estimator.unknown_score(X) if "scores" in needs else None,
            fine_labels=fine if "fine labels" in needs else None,
            unknown_label=unknown,
        )
        return METRICS[self.metric].value(*sheet)


def make_open_set_scorer(metric: str, *, unknown_label: Any = None) -> OpenSetScorer:
    """Return a scorer ``(estimator, X, y) -> float`` for scikit-learn's tools.

    Parameters
    ----------
    metric : str
        A name from ``METRICS``: OS, OS*, UNK, HOS, accuracy, AUROC, AUPR, OSCR or
        "UNK by class".
    unknown_label : object, default=None
        The label that stands for unknown. None takes the last of the estimator's classes,
        where every method of this package keeps it.

    Returns
    -------
    scorer : OpenSetScorer
        Higher is better. Labels that the estimator does not know count as unknown.

    Examples
    --------
    >>> from froda.metrics import make_open_set_scorer
    >>> make_open_set_scorer("HOS")
    OpenSetScorer(metric='HOS', unknown_label=None)
    """
    if metric not in METRICS:
        raise ValueError(f"metric must be one of {', '.join(METRICS)}, got {metric!r}.")
    return OpenSetScorer(metric, unknown_label)


@dataclass(frozen=True)
class _Sheet:
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


def _sheet(
    y_true: Any,
    y_pred: Any,
    unknown_score: Any = None,
    *,
    unknown_label: Any,
    fine_labels: Any = None,
) -> tuple[_Sheet, Array]:
    """Check everything and return the sheet with one weight of 1 per sample."""
    true, predicted = _check_labels(y_true, y_true if y_pred is None else y_pred, unknown_label)
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
    return _Sheet(numbers, len(known), hits, levels, fine), np.ones(len(true))


def _check_labels(
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
    _check_kinds(("y_true", true), ("y_pred", predicted), ("unknown_label", unknown))
    return true, predicted


def _check_kinds(*columns: tuple[str, Array]) -> None:
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


def _holder(*columns: Array) -> np.dtype[Any]:
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


def _recalls(sheet: _Sheet, weights: Array) -> Array:
    """Return the recall of each known class, then that of the unknown."""
    assert sheet.hits is not None
    return _share(sheet.numbers, sheet.hits, weights, sheet.n_known + 1)


def _os(sheet: _Sheet, weights: Array) -> float:
    """Mean recall over C + 1 classes."""
    return _mean(_recalls(sheet, weights))


def _known_recall(sheet: _Sheet, weights: Array) -> float:
    """Mean recall over C classes."""
    return _mean(_recalls(sheet, weights)[:-1])


def _unknown_recall(sheet: _Sheet, weights: Array) -> float:
    """Recall of the pooled unknown samples."""
    return float(_recalls(sheet, weights)[-1])


def _unknown_recall_by_class(sheet: _Sheet, weights: Array) -> float:
    """Mean recall over the fine unknown classes."""
    assert sheet.hits is not None
    assert sheet.fine is not None
    unknown = sheet.is_unknown
    fine = sheet.fine[unknown]
    size = int(fine.max(initial=-1)) + 1
    return _mean(_share(fine, sheet.hits[unknown], weights[unknown], size))


def _hos(sheet: _Sheet, weights: Array) -> float:
    """Harmonic mean of OS* and UNK."""
    recalls = _recalls(sheet, weights)
    return harmonic_mean(_mean(recalls[:-1]), float(recalls[-1]))


def _accuracy(sheet: _Sheet, weights: Array) -> float:
    """Share of right labels."""
    assert sheet.hits is not None
    return float(np.average(sheet.hits, weights=weights))


def _by_level(sheet: _Sheet, weights: Array, gains: Array | float) -> tuple[Array, Array]:
    """Return the weight of known (times their gain) and of unknown samples at each score."""
    assert sheet.levels is not None
    size = int(sheet.levels.max()) + 1
    known = np.bincount(sheet.levels, weights * ~sheet.is_unknown * gains, size)
    return known, np.bincount(sheet.levels, weights * sheet.is_unknown, size)


def _pairs(sheet: _Sheet, weights: Array, gains: Array | float) -> float:
    """Return the mean over (known i, unknown j) of gain_i · ([u_j > u_i] + ½ [u_j = u_i])."""
    known, unknown = _by_level(sheet, weights, gains)
    total = unknown.sum()
    n_pairs = total * (weights.sum() - total)
    above = total - np.cumsum(unknown)
    return float(known @ (above + unknown / 2) / n_pairs) if n_pairs > 0 else float("nan")


def _auroc(sheet: _Sheet, weights: Array) -> float:
    """Every known sample gains."""
    return _pairs(sheet, weights, 1.0)


def _oscr(sheet: _Sheet, weights: Array) -> float:
    """Only known samples with the right label gain."""
    assert sheet.hits is not None
    return _pairs(sheet, weights, sheet.hits)


def _aupr(sheet: _Sheet, weights: Array) -> float:
    """Average precision, scores falling."""
    known, unknown = _by_level(sheet, weights, 1.0)
    if known.sum() == 0 or unknown.sum() == 0:
        return float("nan")
    found = np.cumsum(unknown[::-1])
    taken = np.cumsum((known + unknown)[::-1])
    precision = np.divide(found, taken, out=np.zeros_like(found), where=taken > 0)
    return float(precision @ unknown[::-1] / unknown.sum())


class _Metric(NamedTuple):
    """How a metric is counted and which columns it needs beside the true labels."""

    value: Callable[[_Sheet, Array], float]
    needs: frozenset[str]


# One line a metric: it then is in open_set_scores, has a scorer and a bootstrap interval.
METRICS: dict[str, _Metric] = {
    "OS": _Metric(_os, frozenset({"labels"})),
    "OS*": _Metric(_known_recall, frozenset({"labels"})),
    "UNK": _Metric(_unknown_recall, frozenset({"labels"})),
    "UNK by class": _Metric(_unknown_recall_by_class, frozenset({"labels", "fine labels"})),
    "HOS": _Metric(_hos, frozenset({"labels"})),
    "accuracy": _Metric(_accuracy, frozenset({"labels"})),
    "AUROC": _Metric(_auroc, frozenset({"scores"})),
    "AUPR": _Metric(_aupr, frozenset({"scores"})),
    "OSCR": _Metric(_oscr, frozenset({"labels", "scores"})),
}


def _available(sheet: _Sheet) -> dict[str, _Metric]:
    """Return the metrics whose columns the sheet has."""
    columns = {"labels": sheet.hits, "scores": sheet.levels, "fine labels": sheet.fine}
    given = {name for name, column in columns.items() if column is not None}
    return {name: metric for name, metric in METRICS.items() if metric.needs <= given}
