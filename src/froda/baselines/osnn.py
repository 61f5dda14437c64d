"""Nearest neighbours that reject samples between two classes."""

from __future__ import annotations

import numpy as np
from sklearn.utils import gen_batches

from froda.door import Baseline, document_shared, held_out_threshold, reject
from froda.factorization.problem import Array

_BATCH = 500  # rows whose distances to all source samples are built at a time


@document_shared
class OSNN(Baseline):
    """Open-set nearest neighbour: the distance-ratio test, without adaptation.

    With a the distance from a sample to its nearest source sample and b that to the nearest
    source sample of another class than this one, the unknown score is the ratio a / b, from
    0 to 1 (1 where both are zero). The label is that of the nearest sample, unless the ratio
    exceeds the threshold. With source samples of unknown classes these are a class like any
    other: the label is that of the nearest sample, and the unknown score is a / (a + u)
    with a the distance to the nearest source sample of a known class and u that to the
    nearest of an unknown one.

    Parameters
    ----------
    {shared_settings}

    Attributes
    ----------
    {shared_attributes}

    References
    ----------
    .. [1] P. R. Mendes Júnior et al., "Nearest neighbors distance ratio open-set classifier",
       Machine Learning 106, 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from froda.baselines import OSNN
    >>> rng = np.random.default_rng(0)
    >>> centres = 4 * rng.normal(size=(3, 20))  # the third class is in the target alone
    >>> y = np.repeat([0, 1], 40)
    >>> X = centres[y] + rng.normal(size=(80, 20))
    >>> y_target = np.repeat([0, 1, 2], 40)
    >>> X_target = centres[y_target] + rng.normal(size=(120, 20)) + 0.5
    >>> labels = OSNN().fit_predict(X, y, X_target)
    >>> sorted(set(labels.tolist()))
    [-1, 0, 1]
    """

    def _fit(self, source: Array, numbers: Array, target: Array) -> None:  # noqa: ARG002
        self._source, self._numbers = source, numbers
        self._knows_unknown = bool(np.any(numbers == self.n_known_))
        self.threshold_ = np.inf
        if not self._knows_unknown:
            self.threshold_ = held_out_threshold(source, numbers, self.rejection, _held_out_ratio)

    def _judge(self, features: Array) -> tuple[Array, Array]:
        distances = class_distances(features, self._source, self._numbers)
        if self._knows_unknown:
            known, unknown = distances[:, :-1].min(axis=1), distances[:, -1]
            both = known + unknown
            return -distances, np.divide(known, both, out=np.full_like(both, 0.5), where=both > 0)
        doubt = distance_ratio(distances)
        scores = np.column_stack([-distances, -distances.max(axis=1) - 1])
        return reject(scores, doubt, self.threshold_), doubt


def class_distances(features: Array, source: Array, numbers: Array) -> Array:
    """Return the distance to the nearest source sample of each class that occurs."""
    order = np.argsort(numbers, kind="stable")
    source = source[order].astype(np.float64, copy=False)
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    squares = np.einsum("ij,ij->i", source, source)
    nearest = np.empty((len(features), len(starts)), features.dtype)
    for batch in gen_batches(len(features), _BATCH):
        rows = features[batch].astype(np.float64, copy=False)
        distances = rows @ source.T
        distances *= -2
        distances += squares
        found = np.minimum.reduceat(distances, starts, axis=1)
        found += np.einsum("ij,ij->i", rows, rows)[:, None]
        nearest[batch] = np.sqrt(np.maximum(found, 0))
    return nearest


def distance_ratio(distances: Array) -> Array:
    """Return the smallest over the second smallest distance of each row; 1 where both are 0."""
    ordered = np.partition(distances, 1, axis=1)
    first, second = ordered[:, 0], ordered[:, 1]
    return np.divide(first, second, out=np.ones_like(first), where=second > 0)


def _held_out_ratio(fitted: Array, numbers: Array, held_out: Array) -> Array:
    """Return the ratio of held-out samples."""
    return distance_ratio(class_distances(held_out, fitted, numbers))
