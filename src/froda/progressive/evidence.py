"""What speaks for unknown before anything is learnt of the target: two views and their agreement.

The doubt of a classifier of the source and the share of a sample outside the principal subspace
of the source use different sides of the data: what tells the known classes apart, and what none
of them uses. Where they rank the target alike, both can be believed; where they do not, the
shift between the domains fills the outside, and the doubt is left to itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.stats import rankdata

from froda.factorization.problem import Array
from froda.pca import Principal, principal_axes
from froda.rows import Rows

_MAX_ITER = 1000


@dataclass(frozen=True)
class Evidence:
    """A classifier and a principal subspace of the source, and how far they agree on the target."""

    classifier: Any
    principal: Principal
    n_known: int
    centre: float  # of the share outside, over the target
    spread: float
    agreement: float  # rank correlation of doubt and share outside, at least 0

    @classmethod
    def of(cls, source: Array, numbers: Array, target: Array, n_known: int, n_axes: int) -> Self:
        """Fit both views; the class ``n_known`` of the source is that of its unknown rows."""
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - as in `rounds`

        mean_square = float(np.einsum("ij,ij->", source, source) / len(source))
        penalty = 1 / max(mean_square, np.finfo(float).tiny)
        classifier = LogisticRegression(C=penalty, max_iter=_MAX_ITER).fit(source, numbers)
        principal = principal_axes([Rows(source[numbers < n_known])])[0]
        kept = min(n_axes, principal.axes.shape[1], max(source.shape[1] - 1, 1))
        principal = Principal(
            principal.mean, principal.axes[:, :kept], principal.square_sums[:kept]
        )
        outside = share_outside(target, principal)
        centre, spread = float(outside.mean()), float(outside.std())
        views = cls(classifier, principal, n_known, centre, spread, 0.0)
        return replace(views, agreement=max(rank_correlation(views.doubt(target), outside), 0.0))

    def doubt(self, rows: Array) -> Array:
        """Return minus the largest probability of a known class."""
        chances = self.classifier.predict_proba(rows)[:, self.classifier.classes_ < self.n_known]
        doubt: Array = -chances.max(axis=1)
        return doubt

    def nearest(self, rows: Array) -> Array:
        """Return the most probable known class."""
        known = self.classifier.classes_ < self.n_known
        columns = self.classifier.predict_proba(rows)[:, known].argmax(axis=1)
        classes: Array = self.classifier.classes_[known][columns]
        return classes

    def outside(self, rows: Array) -> Array:
        """Return the share outside the subspace, in deviations of the target from its mean."""
        if self.spread == 0:
            return np.zeros(len(rows))
        standardised: Array = (share_outside(rows, self.principal) - self.centre) / self.spread
        return standardised


def share_outside(rows: Array, principal: Principal) -> Array:
    """Return the share of each row's squared norm outside the subspace; 0 at its mean."""
    centred = rows - principal.mean
    inside = centred @ principal.axes
    squares = np.einsum("ij,ij->i", centred, centred)
    held = np.einsum("ij,ij->i", inside, inside)
    return np.divide(squares - held, squares, out=np.zeros_like(squares), where=squares > 0)


def rank_correlation(first: Array, second: Array) -> float:
    """Return Spearman's rank correlation, 0 where one of the two is constant."""
    ranks = [rankdata(values) for values in (first, second)]
    centred = [values - values.mean() for values in ranks]
    sizes = [np.linalg.norm(values) for values in centred]
    if min(sizes) == 0:
        return 0.0
    return float(centred[0] @ centred[1] / (sizes[0] * sizes[1]))


def standardise(values: Array) -> Array:
    """Return values less their mean, in deviations; zeros where they are all the same."""
    spread = values.std()
    return (values - values.mean()) / spread if spread > 0 else np.zeros_like(values)
