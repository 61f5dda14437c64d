"""The part of a sample that the principal subspace of the source does not hold."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from froda.baselines.subspace import check_n_components, check_room, fit_subspaces, leading
from froda.door import (
    Baseline,
    document_shared,
    held_out_doubts,
    reject,
)
from froda.factorization.problem import Array
from froda.heads import class_scores, make_head
from froda.pca import Principal, principal_axes
from froda.rows import Rows


@document_shared
class PCAResidual(Baseline):
    """Residual outside the principal subspace of the source; labels by a linear SVM.

    With m the mean and P the d leading principal axes of the source samples of known
    classes, the unknown score of x is

    ``|(I - P Pᵀ)(x - m)| / |x - m|``, from 0 to 1,

    and x is unknown where this exceeds the threshold, which is set so that it rejects a share
    ``rejection`` of held-out source samples or, with source samples of unknown classes, so
    that it tells these from held-out known ones with the best mean of both recalls. The
    linear SVM is trained on the known classes of the source. No adaptation.

    Parameters
    ----------
    n_components : int or "sdm", default="sdm"
        Dimension d of the subspace. "sdm" takes the smallest d at which the subspace
        disagreement measure says that source and target part (see
        `froda.dimension.subspace_disagreement`).
    {shared_settings}

    Attributes
    ----------
    n_components_ : int
        Dimension of the subspace.
    source_axes_ : array of shape (n_kept, n_components_)
        P, in the coordinates of the joint PCA.
    disagreement_ : array
        Subspace disagreement measure for d = 1, 2, ... as far as it was needed; empty when
        ``n_components`` was given.
    classifier_ : SVC
        The linear SVM on the source.
    {shared_attributes}

    References
    ----------
    .. [1] M. Baktashmotlagh, M. Faraki, T. Drummond, M. Salzmann, "Learning Factorized
       Representations for Open-Set Domain Adaptation", ICLR 2019: the plainest relative of
       its method.

    Examples
    --------
    >>> import numpy as np
    >>> from froda.baselines import PCAResidual
    >>> rng = np.random.default_rng(0)
    >>> centres = 4 * rng.normal(size=(3, 20))  # the third class is in the target alone
    >>> y = np.repeat([0, 1], 40)
    >>> X = centres[y] + rng.normal(size=(80, 20))
    >>> y_target = np.repeat([0, 1, 2], 40)
    >>> X_target = centres[y_target] + rng.normal(size=(120, 20)) + 0.5
    >>> labels = PCAResidual(n_components=1).fit_predict(X, y, X_target)
    >>> sorted(set(labels.tolist()))
    [-1, 0, 1]
    """

    def __init__(
        self,
        n_components: int | str = "sdm",
        *,
        row_sum: bool = True,
        zscore: bool = True,
        unit_norm: bool = True,
        pca_variance: float | None = 0.99,
        rejection: float = 0.05,
        unknown_label: Any = None,
    ) -> None:
        super().__init__(
            row_sum=row_sum,
            zscore=zscore,
            unit_norm=unit_norm,
            pca_variance=pca_variance,
            rejection=rejection,
            unknown_label=unknown_label,
        )
        self.n_components = n_components

    def _check_settings(self) -> None:
        super()._check_settings()
        check_n_components(self.n_components)

    def _fit(self, source: Array, numbers: Array, target: Array) -> None:
        is_known = numbers < self.n_known_
        known, known_numbers = source[is_known], numbers[is_known]
        self._principal, self.disagreement_ = self._fit_subspace(known, target)
        self.source_axes_ = self._principal.axes
        self.n_components_ = self.source_axes_.shape[1]
        self.classifier_ = make_head("svm", known, None).fit(known, known_numbers)
        self.threshold_ = np.inf
        if self.n_components_ < source.shape[1]:
            unknown = residual_share(source[~is_known], self._principal)
            self.threshold_ = self._choose_threshold(known, known_numbers, unknown)

    def _fit_subspace(self, known: Array, target: Array) -> tuple[Principal, Array]:
        """Return the principal subspace of the known source rows and the disagreement."""
        n_features = known.shape[1]
        if self.n_components == "sdm":
            subspaces = fit_subspaces(known, target, "sdm")
            if subspaces.n_components == n_features:
                warnings.warn(
                    "after preprocessing the data vary along one direction only: there is no "
                    "room outside the subspace of the source and no sample can be unknown. "
                    "Switch row_sum, zscore or unit_norm off if the features have few columns.",
                    UserWarning,
                    stacklevel=4,
                )
            return subspaces.source, subspaces.disagreement
        principal = principal_axes([Rows(known)])[0]
        d, limit = int(self.n_components), min(principal.axes.shape[1], n_features - 1)
        check_room(d, limit, f"{len(known)} known source samples", known)
        return leading(principal, d), np.empty(0)

    def _choose_threshold(self, known: Array, numbers: Array, unknown: Array) -> float:
        """Return the share of the norm above which a sample is unknown."""

        def doubt(fitted: Array, fitted_numbers: Array, held_out: Array) -> Array:  # noqa: ARG001
            principal = principal_axes([Rows(fitted)])[0]
            return residual_share(held_out, leading(principal, self.n_components_))

        shares = held_out_doubts(known, numbers, doubt)
        if shares is None:
            return np.inf
        if len(unknown):
            return separating_cut(shares, unknown)
        return float(np.quantile(shares, 1 - self.rejection))

    def _judge(self, features: Array) -> tuple[Array, Array]:
        scores = class_scores(self.classifier_, features, self.n_known_ + 1)
        doubt = residual_share(features, self._principal)
        return reject(scores, doubt, self.threshold_), doubt


def residual_share(rows: Array, principal: Principal) -> Array:
    """Return the share of each row's norm outside the subspace; 0 for a row at its mean."""
    centred = rows - principal.mean
    residual = centred - (centred @ principal.axes) @ principal.axes.T
    outside, whole = np.linalg.norm(residual, axis=1), np.linalg.norm(centred, axis=1)
    return np.divide(outside, whole, out=np.zeros_like(whole), where=whole > 0)


def separating_cut(known: Array, unknown: Array) -> float:
    """Return the cut with the best mean recall, known below it and unknown above."""
    values = np.unique(np.concatenate([known, unknown]))
    cuts = (values[1:] + values[:-1]) / 2 if len(values) > 1 else values
    kept = np.searchsorted(np.sort(known), cuts, side="right") / len(known)
    missed = np.searchsorted(np.sort(unknown), cuts, side="right") / len(unknown)
    return float(cuts[np.argmax(kept - missed)])
