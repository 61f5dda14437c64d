"""The estimator that needs no tuning: two views of doubt, then rounds of projection."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from froda.door import Baseline, document_shared
from froda.factorization.problem import Array
from froda.openset import otsu_cut
from froda.preprocessing import RowSettings
from froda.progressive import rounds
from froda.progressive.evidence import Evidence, standardise
from froda.projection import LeadingAxes
from froda.validation import check_count, check_positive, check_seed

_OUTSIDE_WEIGHT = 0.5  # of the evidence in a margin, at full agreement
_UNKNOWN_SHARPNESS = 2.0  # of the logistic function of the margin
_LEAST_SEPARATION = 0.45
_KNOWN_SHARPNESS = 5.0  # of the softmax over the known classes


@document_shared
class ProgressiveMixture(Baseline):
    """Known classes and unknown clusters told apart in a projection learnt round by round.

    Needs no tuning, no target label and no guess at the share of unknown samples. Two views say
    at first how unknown a target sample looks: the doubt of a logistic regression on the source,
    and the share of the sample outside the principal subspace of the source, which counts as far
    as the two rank the target alike. Samples beyond Otsu's cut are clustered, as many clusters as
    there are known classes. Then, in each round, a projection is learnt that gathers the rows of
    each class and cluster, every class and cluster gets a centre in it, and the most decided
    target samples take the label of the closest one. An unknown cluster that comes much closer to
    a known class than known classes are to each other, within a few of its own radii, is taken for
    a part of that class. A sample is unknown when it is closer to the centre of an unknown cluster
    than to that of any known class.

    The projection P (k × p) of a round maximises

    ``trace((Pᵀ (Xᵀ L X + alpha I) P)⁻¹ Pᵀ Xᵀ D X P)``

    for the graph that joins rows of one label; D holds its degrees and L is its Laplacian. The
    unknown score is the margin

    ``max_j cos(x, u_j) - max_c cos(x, m_c) + lean · outside(x)``

    with u_j the centres of the unknown clusters, m_c those of the known classes, each between
    the means of its source and its target samples, and ``outside`` the standardised share of x
    outside the subspace of the source.

    Parameters
    ----------
    pca_components : int, default=64
        At most this many principal axes of source and target together are kept.
    lpp_components : int, default=32
        At most this many dimensions of the projection.
    n_clusters : int, default=None
        Number of unknown clusters at first, at most one for five samples; None takes the number
        of known classes.
    n_rounds : int, default=8
        Number of rounds.
    n_axes : int, default=20
        Dimension of the principal subspace of the source.
    alpha : float, default=1.0
        Weight of the identity beside the Laplacian; rows have norm 1 there.
    floor : float, default=1.0
        Share of the mean variance of the columns that is added to the variance of each before it
        is standardised, so that columns that hardly vary are not blown up.
    {shared_settings}
    random_state : int, default=0
        Seed of the clustering.

    Attributes
    ----------
    agreement_ : float
        Rank correlation of the two views over the target, at least 0: the weight of the view
        from outside the subspace.
    target_labels_ : array of shape (n_target,)
        Label of each target sample, an entry of ``classes_``.
    projection_ : array of shape (pca_components, lpp_components)
        P of the last round.
    known_centres_, unknown_centres_ : array of shape (n_centres, lpp_components)
        Centres in the last projection, of norm 1.
    unknown_share_ : float
        Share of the target that is called unknown.
    separation_ : float
        Mean size of the margins over the target; not a number where nothing is unknown. Below
        0.45 a warning says not to trust the labels: over 37 tasks for tuning its rank correlation
        with HOS was .84, and where it was below 0.45 HOS was .38 on average.
    {shared_attributes}

    See Also
    --------
    froda.FRODA : The factorisation into a shared and a private subspace.
    froda.baselines.OSLPP : Learns such projections from a guess at the share of unknowns.

    Examples
    --------
    >>> import numpy as np
    >>> from froda import ProgressiveMixture
    >>> rng = np.random.default_rng(0)
    >>> centres = 4 * rng.normal(size=(3, 20))  # the third class is in the target alone
    >>> y = np.repeat([0, 1], 40)
    >>> X = centres[y] + rng.normal(size=(80, 20))
    >>> y_target = np.repeat([0, 1, 2], 40)
    >>> X_target = centres[y_target] + rng.normal(size=(120, 20)) + 0.5
    >>> labels = ProgressiveMixture().fit_predict(X, y, X_target)
    >>> sorted(set(labels.tolist()))
    [-1, 0, 1]
    """

    def __init__(
        self,
        pca_components: int = 64,
        *,
        lpp_components: int = 32,
        n_clusters: int | None = None,
        n_rounds: int = 8,
        n_axes: int = 20,
        alpha: float = 1.0,
        floor: float = 1.0,
        row_sum: bool = False,
        zscore: bool = True,
        unit_norm: bool = True,
        pca_variance: float | None = 0.99,
        unknown_label: Any = None,
        random_state: Any = 0,
    ) -> None:
        super().__init__(
            row_sum=row_sum,
            zscore=zscore,
            unit_norm=unit_norm,
            pca_variance=pca_variance,
            unknown_label=unknown_label,
        )
        self.pca_components = pca_components
        self.lpp_components = lpp_components
        self.n_clusters = n_clusters
        self.n_rounds = n_rounds
        self.n_axes = n_axes
        self.alpha = alpha
        self.floor = floor
        self.random_state = random_state

    def _check_settings(self) -> None:
        super()._check_settings()
        for name in ("pca_components", "lpp_components", "n_rounds", "n_axes"):
            check_count(name, getattr(self, name))
        if self.n_clusters is not None:
            check_count("n_clusters", self.n_clusters)
        check_positive("alpha", self.alpha)
        check_positive("floor", self.floor, zero=True)
        check_seed("random_state", self.random_state)

    def _row_settings(self) -> RowSettings:
        return RowSettings(self.row_sum, self.zscore, self.unit_norm, float(self.floor))

    def _fit(self, source: Array, numbers: Array, target: Array) -> None:
        self._dtype = source.dtype
        are_principal = self.pca_variance is not None
        self._axes = LeadingAxes.of(
            source, target, self.pca_components, are_principal=are_principal
        )
        near, far = self._axes.of_rows(source), self._axes.of_rows(target)
        self._evidence = self._look(near, numbers, far)
        outside = self._evidence.outside(far)
        suspicion, flagged = self._suspect(self._evidence, far)
        domains = rounds.Domains(
            near,
            numbers,
            far,
            self.n_known_,
            self._evidence.nearest(far),
            suspicion,
            flagged & (not self._is_closed_set),
            outside,
        )
        settings = self._round_settings(self._evidence.agreement)
        self._centres, labels = rounds.run(domains, settings, self.random_state)
        self.agreement_ = self._evidence.agreement
        self.threshold_ = 0.0
        self.projection_ = self._centres.projection
        self.known_centres_, self.unknown_centres_ = self._centres.known, self._centres.unknown
        self.target_labels_ = self.classes_[np.minimum(labels, self.n_known_)]
        self.unknown_share_ = float(np.mean(labels >= self.n_known_))
        self.separation_ = self._separation(far, outside)

    def _separation(self, far: Array, outside: Array) -> float:
        """Return how clear the decisions on the target are; warn where they are not."""
        if len(self.unknown_centres_) == 0:
            return np.nan
        separation = float(np.abs(self._centres.margins(far, outside)[1]).mean())
        if separation < _LEAST_SEPARATION:
            warnings.warn(
                "known and unknown samples of the target hardly part (separation_ "
                f"{separation:.2f}, below {_LEAST_SEPARATION}): source and target may be too far "
                "apart for these features. Do not trust single labels; check some by hand, "
                "or take features that differ less between the domains.",
                UserWarning,
                stacklevel=4,
            )
        return separation

    def _look(self, near: Array, numbers: Array, far: Array) -> Evidence:
        """Return the two views of the target."""
        return Evidence.of(near, numbers, far, self.n_known_, self.n_axes)

    def _suspect(self, evidence: Evidence, far: Array) -> tuple[Array, Array]:
        """Return how unknown each target row looks at first, and which ones look so enough."""
        suspicion = standardise(evidence.doubt(far)) + evidence.agreement * evidence.outside(far)
        return suspicion, suspicion > otsu_cut(suspicion)

    def _round_settings(self, agreement: float) -> rounds.Settings:
        """Return what the rounds are told."""
        return rounds.Settings(
            n_rounds=self.n_rounds,
            n_directions=self.lpp_components,
            n_clusters=self.n_clusters or self.n_known_,
            alpha=float(self.alpha),
            lean=_OUTSIDE_WEIGHT * agreement,
        )

    def _judge(self, features: Array) -> tuple[Array, Array]:
        rows = self._axes.of_rows(features)
        to_known, score = self._centres.margins(rows, self._evidence.outside(rows))
        score = np.maximum(score, -2.0)  # the least a margin can be without any unknown centre
        scores = np.column_stack([to_known, to_known.max(axis=1) + score])
        return scores.astype(self._dtype, copy=False), score.astype(self._dtype, copy=False)

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class and of unknown.

        The unknown column is the logistic function of twice the margin, the known classes share
        the rest by the softmax of five times their cosines. It has one half where the decision
        turns, so that where the rest is split between classes its largest entry may differ from
        `predict`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Target samples.

        Returns
        -------
        probabilities : array of shape (n_samples, n_classes + 1)
            Rows sum to 1; columns in the order of ``classes_``, the unknown label last.
        """
        scores = self.decision_function(X)
        known = scores[:, :-1]
        best = known.max(axis=1, keepdims=True)
        unknown = 1 / (1 + np.exp(-_UNKNOWN_SHARPNESS * (scores[:, -1:] - best)))
        weights = np.exp(_KNOWN_SHARPNESS * (known - best))
        weights *= (1 - unknown) / weights.sum(axis=1, keepdims=True)
        probabilities: Array = np.hstack([weights, unknown])
        return probabilities
