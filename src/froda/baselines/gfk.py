"""The geodesic flow kernel: all subspaces between source and target at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from froda.baselines.subspace import check_n_components, fit_subspaces
from froda.door import SVMBaseline, document_shared
from froda.factorization.problem import Array


@document_shared
class GFK(SVMBaseline):
    """Geodesic flow kernel, then a linear SVM.

    With Ps and Pt the d leading principal axes of source and target and P(t) the geodesic
    from Ps (t = 0) to Pt (t = 1) on the Grassmann manifold, the kernel is ``x G y`` with

    ``G = ∫ P(t) P(t)ᵀ dt``, t from 0 to 1.

    G = F Fᵀ in closed form from one singular value decomposition of PsᵀPt; samples, less the
    mean of their domain, are mapped by F, which makes the linear SVM one with this kernel.

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
    angles_ : array of shape (n_components_,)
        Principal angles between the subspaces, rising.
    factor_ : array of shape (n_kept, 2 * n_components_)
        F, in the coordinates of the joint PCA.
    source_axes_, target_axes_ : array of shape (n_kept, n_components_)
        Ps and Pt, in the same coordinates.
    disagreement_ : array
        Subspace disagreement measure for d = 1, 2, ... as far as it was needed; empty when
        ``n_components`` was given.
    classifier_ : SVC
        The linear SVM on the mapped source.
    {shared_attributes}

    References
    ----------
    .. [1] B. Gong, Y. Shi, F. Sha, K. Grauman, "Geodesic Flow Kernel for Unsupervised Domain
       Adaptation", CVPR 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from froda.baselines import GFK
    >>> rng = np.random.default_rng(0)
    >>> centres = 4 * rng.normal(size=(3, 20))  # the third class is in the target alone
    >>> y = np.repeat([0, 1], 40)
    >>> X = centres[y] + rng.normal(size=(80, 20))
    >>> y_target = np.repeat([0, 1, 2], 40)
    >>> X_target = centres[y_target] + rng.normal(size=(120, 20)) + 0.5
    >>> labels = GFK(n_components=2).fit_predict(X, y, X_target)
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
        self.factor_, self.angles_ = kernel_factor(self.source_axes_, self.target_axes_)
        self._target_mean = subspaces.target.mean
        mapped: Array = (source - subspaces.source.mean) @ self.factor_
        return mapped

    def _map_target(self, features: Array) -> Array:
        mapped: Array = (features - self._target_mean) @ self.factor_
        return mapped


def kernel_factor(source_axes: Array, target_axes: Array) -> tuple[Array, Array]:
    """Return F with F Fᵀ = ∫ P(t) P(t)ᵀ dt, and the principal angles.

    The singular vectors of PsᵀPt turn the axes into pairs a_i, b_i at the principal angles
    θ_i, other pairs being orthogonal. Seen from its middle, the arc of a pair is
    cos(uθ) c + sin(uθ) e, u from -1/2 to 1/2, with c = (a + b) / (2 cos(θ/2)) and
    e = (b - a) / (2 sin(θ/2)), so the mixed term integrates to zero:
    ∫ = (1 + sin θ / θ) / 2 · c cᵀ + (1 - sin θ / θ) / 2 · e eᵀ.
    Written in a + b and b - a the second weight tends to 1/12 for θ to 0: nothing is
    divided by a small sine.
    """
    left, _, right = np.linalg.svd(source_axes.T @ target_axes)
    start, end = source_axes @ left, target_axes @ right.T
    chords = np.linalg.norm(end - start, axis=0).astype(np.float64)
    angles = 2 * np.arcsin(np.minimum(chords / 2, 1))
    of_sum = (1 + np.sinc(angles / np.pi)) / (8 * np.cos(angles / 2) ** 2)
    is_small = angles < 1e-2
    safe = np.where(is_small, 1.0, angles)
    of_difference = (1 - np.sin(safe) / safe) / (8 * np.sin(safe / 2) ** 2)
    # Series in θ: the next term is below 1e-10 of it.
    of_difference = np.where(is_small, (1 + angles**2 / 30) / 12, of_difference)
    factor = np.hstack([(end + start) * np.sqrt(of_sum), (end - start) * np.sqrt(of_difference)])
    return factor.astype(source_axes.dtype, copy=False), angles
