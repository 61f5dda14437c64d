"""Subspace alignment: the source's principal axes are turned into the target's."""

from __future__ import annotations

from typing import Any

from froda.baselines.subspace import check_n_components, fit_subspaces
from froda.door import SVMBaseline, document_shared
from froda.factorization.problem import Array
from froda.rows import Rows


@document_shared
class SA(SVMBaseline):
    """Subspace alignment, then a linear SVM.

    With Ps and Pt the d leading principal axes of source and target, the matrix
    M = PsᵀPt minimises ``|Ps M - Pt|²``. Source samples, less their mean, are mapped by Ps M,
    target samples, less theirs, by Pt.

    Parameters
    ----------
    n_components : int or "sdm", default="sdm"
        Dimension d of both subspaces. "sdm" takes the smallest d at which the subspace
        disagreement measure says that source and target part (see
        `froda.dimension.subspace_disagreement`).
    {shared_settings}

    Attributes
    ----------
    n_components_ : int
        Dimension of both subspaces.
    alignment_ : array of shape (n_components_, n_components_)
        M.
    source_axes_, target_axes_ : array of shape (n_kept, n_components_)
        Ps and Pt, in the coordinates of the joint PCA.
    disagreement_ : array
        Subspace disagreement measure for d = 1, 2, ... as far as it was needed; empty when
        ``n_components`` was given.
    classifier_ : SVC
        The linear SVM on the aligned source.
    {shared_attributes}

    References
    ----------
    .. [1] B. Fernando, A. Habrard, M. Sebban, T. Tuytelaars, "Unsupervised Visual Domain
       Adaptation Using Subspace Alignment", ICCV 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from froda.baselines import SA
    >>> rng = np.random.default_rng(0)
    >>> centres = 4 * rng.normal(size=(3, 20))  # the third class is in the target alone
    >>> y = np.repeat([0, 1], 40)
    >>> X = centres[y] + rng.normal(size=(80, 20))
    >>> y_target = np.repeat([0, 1, 2], 40)
    >>> X_target = centres[y_target] + rng.normal(size=(120, 20)) + 0.5
    >>> labels = SA(n_components=2).fit_predict(X, y, X_target)
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

    def _align(self, source: Array, numbers: Array, target: Array) -> Array:  # noqa: ARG002
        subspaces = fit_subspaces(source, target, self.n_components)
        self.n_components_ = subspaces.n_components
        self.disagreement_ = subspaces.disagreement
        self.source_axes_, self.target_axes_ = subspaces.source.axes, subspaces.target.axes
        self.alignment_ = self.source_axes_.T @ self.target_axes_
        self._target = subspaces.target
        aligned: Array = subspaces.source.project(Rows(source)) @ self.alignment_
        return aligned

    def _map_target(self, features: Array) -> Array:
        return self._target.project(Rows(features))
