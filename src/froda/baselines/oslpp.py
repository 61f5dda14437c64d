"""OSLPP: projections that gather classes, pseudo-labels selected and rejected step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from froda.door import Baseline
from froda.factorization.problem import Array
from froda.projection import OPEN, LeadingAxes, class_scatter, leading_pairs, unit_rows
from froda.validation import check_count, check_positive

# Distances of rows of norm 1 below this are rounding: of `least_distances`, or of float32 input.
_ROUNDING = 1e-6
_DIAMETER = 2.0  # no two rows of norm 1 are further apart
_CHUNK = 500
_REJECTED = -2


class OSLPP(Baseline):
    """Open-set locality-preserving projections with progressive pseudo-labels.

    Each round projects all samples by the P (D × k) that maximises

    ``trace((Pᵀ (Xᵀ L X + alpha I) P)⁻¹ Pᵀ Xᵀ D X P)``

    where the graph joins samples of one class: source samples by their labels, target
    samples by their pseudo-labels, the rejected ones as a class of their own, and samples
    with neither by nothing; D holds its degrees and L is its Laplacian. In the projection
    every target sample takes the nearest class mean of the source as its pseudo-label, with
    the softmax of minus the distances as confidence. Of each class a growing share of the
    most confident is selected, all of them in the end. In the second round the least
    confident share ``unknown_share`` of the target is rejected, and from then on also every
    sample that is nearer to a rejected than to a selected one.

    Parameters
    ----------
    unknown_share : float, default=0.15
        Share of the target that is rejected to begin with; rejected samples stay so, and
        others follow.
    n_rounds : int, default=10
        Number of rounds, at least 2.
    pca_components : int, default=16
        At most this many principal axes of source and target together are kept.
    lpp_components : int, default=16
        At most this many dimensions of the projection; never more than there are axes.
    alpha : float, default=1.0
        Weight of the identity beside the Laplacian; rows have norm 1 there.
    row_sum : bool, default=True
        Divide each row by its sum of absolute values.
    zscore : bool, default=True
        Standardise each column within its domain; constant columns become zero.
    unit_norm : bool, default=True
        Then divide each row by its norm.
    pca_variance : float, default=0.99
        Share of the variance that the joint PCA of source and target keeps; None keeps all
        up to ``pca_components`` axes (and makes sparse input dense).
    unknown_label : object, default=None
        Label that means unknown, in ``y`` and in predictions; None takes -1 for numbers and
        "unknown" for strings.

    Attributes
    ----------
    classes_ : array of shape (n_classes + 1,)
        The known classes in order, then the unknown label.
    n_known_ : int
        Number of known classes.
    target_labels_ : array of shape (n_target,)
        Final pseudo-label of each target sample, an entry of ``classes_``.
    projection_ : array of shape (n_axes, n_dimensions)
        P of the last round, by falling eigenvalue.
    eigenvalues_ : array of shape (n_dimensions,)
        Its generalised eigenvalues.
    class_means_ : array of shape (n_classes, n_dimensions)
        Means of the known classes of the source in the last projection, of norm 1.
    n_selected_, n_rejected_ : array of int of shape (n_rounds,)
        Target samples selected and rejected after each round.
    threshold_ : float
        Unknown score above which a sample is unknown: 0.
    n_features_in_ : int
        Number of columns of the source.
    feature_names_in_ : array of str
        Column names, when the source had them.

    See Also
    --------
    froda.baselines.ATI : Also assigns target samples to classes, and maps the source.

    Notes
    -----
    A target sample, new or of the fit, is called unknown when it is nearer to a rejected
    sample than to a selected one in the last projection, and takes the label of the nearest
    class mean otherwise; the unknown score is the difference of these two distances. In the
    last round every target sample is selected or rejected, so for samples of the fit this is
    their final pseudo-label.

    What the paper leaves open, or its published code does otherwise: source samples of unknown
    classes, which the paper has none of, belong to the rejected class of the graph and count
    as rejected samples. The code selects the samples above the one at the given share of each
    class and so leaves one of each class unlabelled in the end; here that one is selected.
    Without a target nothing is rejected. Eigenvectors are computed densely, without a random
    start. The number of samples to reject at first is a share here.

    The defaults are the published settings for Office-31: 16 and 16 components, and 140
    samples, 0.15 of the mean target. For Office-Home, with 25 known classes and thousands of
    samples, they are 512 and 128 components and 1,200 samples, 0.3 of the mean target. The
    published preprocessing is ``row_sum=False, zscore=False, pca_variance=None``.

    The graph of classes never has to be built: with n_i samples in the class of sample i,
    ``Xᵀ D X = Σ_i n_i x_i x_iᵀ``, and ``Xᵀ L X`` is the same of the samples less their class
    mean.

    References
    ----------
    .. [1] Q. Wang, F. Meng, T. P. Breckon, "Progressively Select and Reject Pseudo-labelled
       Samples for Open-Set Domain Adaptation", arXiv:2110.12635, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from froda.baselines import OSLPP
    >>> rng = np.random.default_rng(0)
    >>> centres = 4 * rng.normal(size=(3, 20))  # the third class is in the target alone
    >>> y = np.repeat([0, 1], 40)
    >>> X = centres[y] + rng.normal(size=(80, 20))
    >>> y_target = np.repeat([0, 1, 2], 40)
    >>> X_target = centres[y_target] + rng.normal(size=(120, 20)) + 0.5
    >>> model = OSLPP(unknown_share=0.2).fit(X, y, X_target)
    >>> sorted(set(model.predict(X_target).tolist()))
    [-1, 0, 1]
    """

    def __init__(
        self,
        unknown_share: float = 0.15,
        *,
        n_rounds: int = 10,
        pca_components: int = 16,
        lpp_components: int = 16,
        alpha: float = 1.0,
        row_sum: bool = True,
        zscore: bool = True,
        unit_norm: bool = True,
        pca_variance: float | None = 0.99,
        unknown_label: Any = None,
    ) -> None:
        super().__init__(
            row_sum=row_sum,
            zscore=zscore,
            unit_norm=unit_norm,
            pca_variance=pca_variance,
            unknown_label=unknown_label,
        )
        self.unknown_share = unknown_share
        self.n_rounds = n_rounds
        self.pca_components = pca_components
        self.lpp_components = lpp_components
        self.alpha = alpha

    def _check_settings(self) -> None:
        super()._check_settings()
        check_positive("unknown_share", self.unknown_share)
        if self.unknown_share >= 1:
            raise ValueError(
                f"unknown_share must be below 1, got {self.unknown_share!r}: some of the target "
                "has to be of known classes."
            )
        check_count("n_rounds", self.n_rounds, least=2)
        check_count("pca_components", self.pca_components)
        check_count("lpp_components", self.lpp_components)
        check_positive("alpha", self.alpha)

    def _fit(self, source: Array, numbers: Array, target: Array) -> None:
        self._dtype = source.dtype
        are_principal = self.pca_variance is not None
        self._axes = LeadingAxes.of(
            source, target, self.pca_components, are_principal=are_principal
        )
        source, target = self._axes.of_rows(source), self._axes.of_rows(target)
        graph_labels = np.where(numbers == self.n_known_, _REJECTED, numbers)
        target_labels = np.full(len(target), OPEN)
        rejected = np.zeros(len(target), dtype=bool)
        everything = np.concatenate([source, target])
        counts = []
        for number in range(1, self.n_rounds + 1):
            labels = np.concatenate([graph_labels, target_labels])
            between, within = class_scatter(everything, labels, self.alpha)
            self.eigenvalues_, self.projection_ = leading_pairs(
                between, within, self.lpp_components
            )
            centre = (everything @ self.projection_).mean(axis=0)
            view = View(self.projection_, centre)
            near, far = view.project(source), view.project(target)
            means = known_means(near, numbers, self.n_known_)
            nearest, confidence = pseudo_labels(far, means)
            share = min(number / (self.n_rounds - 1), 1.0)
            selected = select(nearest, confidence, share) & ~rejected
            if number == 2 and not self._is_closed_set:
                n_first = max(1, round(self.unknown_share * len(target)))
                rejected[np.argsort(confidence, kind="stable")[:n_first]] = True
            if number >= 2:
                selected &= ~rejected
                unknown_rows = np.concatenate([far[rejected], near[numbers == self.n_known_]])
                margins = rejection_margins(far, known_rows(far[selected], means), unknown_rows)
                rejected |= margins > 0
                selected &= ~rejected
            target_labels = np.where(selected, nearest, OPEN)
            target_labels[rejected] = _REJECTED
            counts.append([selected.sum(), rejected.sum()])
        self.threshold_ = 0.0
        self._view = view
        self.class_means_ = means
        self._known_rows = known_rows(far[selected], means)
        self._unknown_rows = np.concatenate([far[rejected], near[numbers == self.n_known_]])
        self.target_labels_ = self.classes_[np.where(rejected, self.n_known_, nearest)]
        self.n_selected_, self.n_rejected_ = np.array(counts).T

    def _judge(self, features: Array) -> tuple[Array, Array]:
        projected = self._view.project(self._axes.of_rows(features))
        score = rejection_margins(projected, self._known_rows, self._unknown_rows)
        scores = np.empty((len(projected), self.n_known_ + 1))
        scores[:, :-1] = -cdist(projected, self.class_means_)
        scores[:, -1] = scores[:, :-1].max(axis=1) + score
        return scores.astype(self._dtype, copy=False), score.astype(self._dtype, copy=False)


@dataclass(frozen=True)
class View:
    """A projection and the mean of what it was made for, taken off before rows get norm 1."""

    projection: Array
    centre: Array

    def project(self, features: Array) -> Array:
        """Return projected rows of norm 1."""
        return unit_rows(features @ self.projection - self.centre)


def known_means(features: Array, numbers: Array, n_known: int) -> Array:
    """Return the mean of each known class, of norm 1."""
    return unit_rows(np.stack([features[numbers == c].mean(axis=0) for c in range(n_known)]))


def pseudo_labels(features: Array, means: Array) -> tuple[Array, Array]:
    """Return the nearest mean of each row and the softmax of minus the distances there."""
    distances = cdist(features, means)
    nearest = distances.argmin(axis=1)
    least = distances.min(axis=1, keepdims=True)
    return nearest, 1 / np.exp(least - distances).sum(axis=1)


def select(nearest: Array, confidence: Array, share: float) -> Array:
    """Return the mask of the most confident rows, the given share of each pseudo-class."""
    selected = np.zeros(len(nearest), dtype=bool)
    for c in np.unique(nearest):
        members = np.flatnonzero(nearest == c)
        order = members[np.argsort(confidence[members], kind="stable")]
        n_left_out = int(len(members) * (1 - share))
        selected[order[n_left_out:]] = True
    return selected


def known_rows(selected: Array, means: Array) -> Array:
    """Return what stands for known classes: the selected rows, or the means if there are none."""
    return selected if len(selected) else means


def rejection_margins(features: Array, known: Array, unknown: Array) -> Array:
    """Return how much nearer each row is to a row of ``unknown`` than to one of ``known``."""
    to_unknown = least_distances(features, unknown) if len(unknown) else _DIAMETER
    margins: Array = least_distances(features, known) - to_unknown
    return margins - _ROUNDING


def least_distances(features: Array, others: Array) -> Array:
    """Return the distance of each row to the nearest of other rows, some rows at a time."""
    squares = np.einsum("ij,ij->i", others, others)
    least = np.empty(len(features))
    for start in range(0, len(features), _CHUNK):
        rows = slice(start, start + _CHUNK)
        distances = features[rows] @ others.T
        distances *= -2
        distances += squares
        least[rows] = distances.min(axis=1)
    least += np.einsum("ij,ij->i", features, features)
    return np.sqrt(np.maximum(least, 0))
