"""Open-set metrics: plain functions of labels and scores, and scikit-learn scorers of each.

Every metric is computed from one sheet (`froda.tally`) that takes a weight per sample, so that the
bootstrap sorts the scores once and then only counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from froda import tally
from froda.tally import METRICS, Array, harmonic_mean

__all__ = [
    "METRICS",
    "Interval",
    "OpenSetScorer",
    "accuracy",
    "aupr",
    "auroc",
    "bootstrap_intervals",
    "confusion_matrix",
    "harmonic_mean",
    "hos",
    "known_recall",
    "make_open_set_scorer",
    "open_set_scores",
    "os_score",
    "oscr",
    "unknown_recall",
    "unknown_recall_by_class",
]


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
    return tally.os_score(*tally.make_sheet(y_true, y_pred, unknown_label=unknown_label))


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
    return tally.known_recall(*tally.make_sheet(y_true, y_pred, unknown_label=unknown_label))


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
    return tally.unknown_recall(*tally.make_sheet(y_true, y_pred, unknown_label=unknown_label))


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
    sheet = tally.make_sheet(y_true, y_pred, fine_labels=fine_labels, unknown_label=unknown_label)
    return tally.unknown_recall_by_class(*sheet)


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
    return tally.hos(*tally.make_sheet(y_true, y_pred, unknown_label=unknown_label))


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
    return tally.auroc(*tally.make_sheet(y_true, None, unknown_score, unknown_label=unknown_label))


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
    return tally.aupr(*tally.make_sheet(y_true, None, unknown_score, unknown_label=unknown_label))


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
    return tally.oscr(*tally.make_sheet(y_true, y_pred, unknown_score, unknown_label=unknown_label))


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
    return tally.accuracy(*tally.make_sheet(y_true, y_pred, unknown_label=unknown_label))


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
    true, predicted = tally.check_labels(y_true, y_pred, unknown_label, empty=True)
    both = np.concatenate([true, predicted])
    known = np.unique(both[both != unknown_label]) if labels is None else np.asarray(labels)
    known = known[known != unknown_label]
    unknown = np.asarray([unknown_label])
    classes = np.append(known, unknown.astype(tally.holder(known, both, unknown)))
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
    sheet, weights = tally.make_sheet(
        y_true, y_pred, unknown_score, fine_labels=fine_labels, unknown_label=unknown_label
    )
    return {name: metric.value(sheet, weights) for name, metric in tally.available(sheet).items()}


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
    sheet, weights = tally.make_sheet(
        y_true, y_pred, unknown_score, fine_labels=fine_labels, unknown_label=unknown_label
    )
    metrics = tally.available(sheet)
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
        tally.check_kinds(("y", fine), ("estimator.classes_", classes))
        is_known = np.isin(fine, classes[classes != unknown])
        true = fine.astype(tally.holder(fine, np.asarray([unknown])))
        true[~is_known] = unknown
        needs = METRICS[self.metric].needs
        sheet = tally.make_sheet(
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
