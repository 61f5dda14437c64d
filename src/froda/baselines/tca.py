"""Transfer component analysis: kernel components in which the domain means agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.utils import gen_batches

from froda.baselines.subspace import check_n_components, check_room, fit_subspaces
from froda.door import SVMBaseline, document_shared
from froda.factorization.problem import Array
from froda.validation import check_choice, check_positive

_KERNELS = ("linear", "rbf")
_BATCH = 1000  # rows of a kernel with all training samples that are built at a time


@document_shared
class TCA(SVMBaseline):
    """Transfer component analysis, then a linear SVM.

    With K the kernel of all n training samples, e = 1/n_source on source rows and
    -1/n_target on target rows, L = e eᵀ and H the centring matrix, the components K W solve

    ``min_W tr(Wᵀ K L K W) + m tr(Wᵀ W)`` such that ``Wᵀ K H K W = I``,

    which is a symmetric generalised eigenproblem: W holds the leading eigenvectors of
    K H K w = v (K L K + m I) w. Since L has rank one, (K L K + m I)^(-1/2) is known in closed
    form. With the linear kernel all is done in the space of the features; with the RBF
    kernel K is the only n × n matrix that is built, and it is not kept.

    Parameters
    ----------
    n_components : int or "sdm", default="sdm"
        Number of components. "sdm" takes the smallest d at which the subspace disagreement
        measure says that source and target part (see
        `froda.dimension.subspace_disagreement`).
    kernel : {"linear", "rbf"}, default="linear"
        Inner product, or ``exp(-gamma |x - y|²)``.
    mu : float, default=1.0
        Trade-off m, in squares of the mean diagonal entry of K, so that multiplying all
        features by a constant changes nothing.
    gamma : float, default=1.0
        Width of the RBF kernel, in reciprocals of the mean squared distance between training
        samples; unused by the linear kernel.
    {shared_settings}

    Attributes
    ----------
    n_components_ : int
        Number of components.
    eigenvalues_ : array of shape (n_components_,)
        The leading eigenvalues v, falling. The optimal objective is the sum of 1 / v.
    coefficients_ : array of shape (n_kept or n_source + n_target, n_components_)
        Map of the features with the linear kernel; W with the RBF kernel.
    disagreement_ : array
        Subspace disagreement measure for d = 1, 2, ... as far as it was needed; empty when
        ``n_components`` was given.
    classifier_ : SVC
        The linear SVM on the components of the source.
    {shared_attributes}

    References
    ----------
    .. [1] S. J. Pan, I. W. Tsang, J. T. Kwok, Q. Yang, "Domain Adaptation via Transfer
       Component Analysis", IEEE Transactions on Neural Networks 22(2), 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from froda.baselines import TCA
    >>> rng = np.random.default_rng(0)
    >>> centres = 4 * rng.normal(size=(3, 20))  # the third class is in the target alone
    >>> y = np.repeat([0, 1], 40)
    >>> X = centres[y] + rng.normal(size=(80, 20))
    >>> y_target = np.repeat([0, 1, 2], 40)
    >>> X_target = centres[y_target] + rng.normal(size=(120, 20)) + 0.5
    >>> labels = TCA(n_components=2).fit_predict(X, y, X_target)
    >>> sorted(set(labels.tolist()))
    [-1, 0, 1]
    """

    def __init__(
        self,
        n_components: int | str = "sdm",
        *,
        kernel: str = "linear",
        mu: float = 1.0,
        gamma: float = 1.0,
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
        self.kernel = kernel
        self.mu = mu
        self.gamma = gamma

    def _check_settings(self) -> None:
        super()._check_settings()
        check_n_components(self.n_components)
        check_choice("kernel", self.kernel, _KERNELS)
        check_positive("mu", self.mu)
        check_positive("gamma", self.gamma)

    def _align(self, source: Array, numbers: Array, target: Array) -> Array:  # noqa: ARG002
        d = self._choose_dimension(source, target)
        rows = np.concatenate([source, target]).astype(np.float64, copy=False)
        signs = np.repeat([1 / len(source), -1 / len(target)], [len(source), len(target)])
        solve = self._solve_linear if self.kernel == "linear" else self._solve_rbf
        components = solve(rows, signs, d)
        self.n_components_ = len(self.eigenvalues_)
        return components[: len(source)].astype(source.dtype, copy=False)

    def _choose_dimension(self, source: Array, target: Array) -> int:
        """Return the number of components and set disagreement_."""
        self.disagreement_ = np.empty(0)
        if self.n_components != "sdm":
            return int(self.n_components)
        subspaces = fit_subspaces(source, target, "sdm")
        self.disagreement_ = subspaces.disagreement
        return subspaces.n_components

    def _solve_linear(self, rows: Array, signs: Array, d: int) -> Array:
        """Solve in feature space; set the map and return the components of all rows."""
        mean_diagonal = float(np.einsum("ij,ij->", rows, rows)) / len(rows)
        mu = float(self.mu) * mean_diagonal**2
        values, self.coefficients_ = linear_components(rows, signs, mu, d)
        check_room(d, len(values), f"{len(rows)} samples", rows)
        self.eigenvalues_ = values
        return rows @ self.coefficients_

    def _solve_rbf(self, rows: Array, signs: Array, d: int) -> Array:
        """Solve with the whole kernel; set W and return the components of all rows."""
        check_room(d, len(rows) - 1, f"{len(rows)} samples", rows)
        mean = rows.mean(axis=0)
        mean_square_distance = 2 * (np.einsum("ij,ij->", rows, rows) / len(rows) - mean @ mean)
        self._rows, self._inverse_width = rows, float(self.gamma / mean_square_distance)
        kernel = rbf_kernel(rows, rows, self._inverse_width)
        self.eigenvalues_, self.coefficients_ = kernel_components(kernel, signs, float(self.mu), d)
        return kernel @ self.coefficients_

    def _map_target(self, features: Array) -> Array:
        if self.kernel == "linear":
            return features @ self.coefficients_.astype(features.dtype, copy=False)
        mapped = np.empty((len(features), self.n_components_), features.dtype)
        for batch in gen_batches(len(features), _BATCH):
            kernel = rbf_kernel(features[batch], self._rows, self._inverse_width)
            mapped[batch] = kernel @ self.coefficients_
        return mapped


def rbf_kernel(left: Array, right: Array, inverse_width: float) -> Array:
    """Return exp(-inverse_width |x - y|²) for all pairs, built in one array."""
    kernel: Array = left @ right.T
    kernel *= 2
    kernel -= np.einsum("ij,ij->i", left, left)[:, None]
    kernel -= np.einsum("ij,ij->i", right, right)
    np.minimum(kernel, 0, out=kernel)
    kernel *= inverse_width
    np.exp(kernel, out=kernel)
    return kernel


def linear_components(rows: Array, signs: Array, mu: float, d: int) -> tuple[Array, Array]:
    """Return the leading eigenvalues of the linear kernel and the map of the features.

    With rows = P S Qᵀ (thin singular value decomposition) the kernel is P S² Pᵀ, and the part
    of W outside the span of P only costs: W = P Z. Then KLK becomes u uᵀ with u = S Qᵀ rowsᵀ e,
    KHK becomes S⁴ - c cᵀ / n with c = S Qᵀ rowsᵀ 1, and the components of any x are x Q S Z.
    """
    squares, axes = _right_singular(rows)
    lengths = np.sqrt(squares)
    u, c = (lengths * ((weights @ rows) @ axes) for weights in (signs, np.ones(len(rows))))
    scatter = np.diag(squares**2) - np.outer(c, c / len(rows))
    cost = np.outer(u, u) + mu * np.eye(len(u))
    first = max(len(u) - d, 0)
    values, Z = scipy.linalg.eigh(scatter, cost, subset_by_index=[first, len(u) - 1])
    kept = np.flatnonzero(values > len(u) * np.finfo(float).eps * values[-1])[::-1]
    # eigh makes Zᵀ cost Z = I; the constraint is on the scatter.
    Z = Z[:, kept] / np.sqrt(values[kept])
    return values[kept], axes @ (lengths[:, None] * Z)


def _right_singular(rows: Array) -> tuple[Array, Array]:
    """Return squared singular values above rounding and right singular vectors of rows."""
    is_wide = rows.shape[1] > len(rows)
    squares, vectors = np.linalg.eigh(rows @ rows.T if is_wide else rows.T @ rows)
    kept = squares > 10 * len(squares) * np.finfo(float).eps * squares[-1]
    squares, vectors = squares[kept], vectors[:, kept]
    return squares, rows.T @ (vectors / np.sqrt(squares)) if is_wide else vectors


def kernel_components(kernel: Array, signs: Array, mu: float, d: int) -> tuple[Array, Array]:
    """Return the leading eigenvalues and W for a kernel of all training samples.

    With b = K e the cost is b bᵀ + mu I, whose inverse square root R shrinks the direction of
    b and divides by √mu. W = R Y with Y the leading eigenvectors of R K H K R, which Lanczos'
    method finds from products with K alone.
    """
    n = len(kernel)
    b = kernel @ signs
    square = float(b @ b)
    direction = b / np.sqrt(square) if square > 0 else b
    shrinkage = 1 - np.sqrt(mu / (mu + square))

    def root(x: Array) -> Array:
        return (x - shrinkage * direction * (direction @ x)) / np.sqrt(mu)

    def product(x: Array) -> Array:
        inner = kernel @ root(x.ravel())
        return root(kernel @ (inner - inner.mean()))

    operator = LinearOperator((n, n), matvec=product, dtype=kernel.dtype)
    start = np.random.default_rng(0).normal(size=n)
    values, vectors = eigsh(operator, k=d, v0=start)
    kept = np.flatnonzero(values > n * np.finfo(float).eps * values.max())
    kept = kept[np.argsort(-values[kept])]
    vectors = np.stack([root(vectors[:, column]) for column in kept], axis=1)
    return values[kept], vectors / np.sqrt(values[kept])
