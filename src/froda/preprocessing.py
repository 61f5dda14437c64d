"""From raw features to the coordinates in which the factorisation works.

Each row divided by its sum of absolute values, each column standardised within its
domain, each row divided by its norm, then a PCA of source and target together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from froda.factorization.problem import Array
from froda.pca import Principal, principal_axes
from froda.rows import Rows


@dataclass(frozen=True)
class RowSettings:
    """Which of the steps before the joint PCA are taken."""

    row_sum: bool = True
    zscore: bool = True
    unit_norm: bool = True
    floor: float = 0.0  # share of the mean variance that is added to the variance of a column


@dataclass(frozen=True)
class DomainScale:
    """Column mean and reciprocal deviation of one domain; without a floor constant ones get 0."""

    mean: Array
    inverse_deviation: Array


@dataclass(frozen=True)
class Preprocessor:
    """Everything needed to bring new target rows into the coordinates of the fit."""

    settings: RowSettings
    source_scale: DomainScale | None
    target_scale: DomainScale | None
    principal: Principal | None

    def transform_target(self, X: Any) -> Array:
        """Return new target rows in the coordinates of the fit."""
        rows = _prepare_rows(X, self.settings, self.target_scale)
        return rows.toarray() if self.principal is None else self.principal.project(rows)


def fit_preprocessor(
    Xs: Any, Xt: Any, settings: RowSettings, variance: float | None
) -> tuple[Preprocessor, Array, Array]:
    """Return the preprocessor and both domains in its coordinates.

    ``variance`` is the share that the joint PCA keeps; None leaves the PCA out. Each
    domain's statistics are taken from the rows that are given and from nothing else.
    """
    summed_source, summed_target = _divide_by_sums(Xs, settings), _divide_by_sums(Xt, settings)
    source_scale = _domain_scale(summed_source, settings.floor) if settings.zscore else None
    target_scale = _domain_scale(summed_target, settings.floor) if settings.zscore else None
    source = _scale_rows(summed_source, settings, source_scale)
    target = _scale_rows(summed_target, settings, target_scale)
    _require_variation(source, "X")
    _require_variation(target, "X_target")
    if variance is None:
        preprocessor = Preprocessor(settings, source_scale, target_scale, None)
        return preprocessor, source.toarray(), target.toarray()
    principal, (Zs, Zt) = principal_axes([source, target], variance)
    return Preprocessor(settings, source_scale, target_scale, principal), Zs, Zt


def _require_variation(rows: Rows, name: str) -> None:
    """Refuse a domain whose rows are all the same after preprocessing."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean_square = float(rows.square_norms().mean(dtype=np.float64))
        centre = rows.column_sums() / rows.shape[0]
    require_variation(mean_square, centre, rows.shape[0], rows.dtype, name)


def require_variation(
    mean_square: float, centre: Array, n_rows: int, dtype: np.dtype[Any], name: str
) -> None:
    """Refuse rows that are all the same, or too large, by their mean square and their mean."""
    # Gram matrices sum squares over all rows.
    if not mean_square * n_rows < float(np.finfo(dtype).max):
        raise ValueError(
            f"{name} has values whose squares are too large for {dtype}: divide all "
            "features of both domains by a constant, or give float64."
        )
    spread = mean_square - float(centre @ centre)
    if spread <= 100 * float(np.finfo(dtype).eps) * mean_square:
        raise ValueError(
            f"all rows of {name} are the same after preprocessing: every column is constant, or "
            "the rows differ only in what row_sum, zscore and unit_norm take away. Check the "
            "data, or switch these off."
        )


def _prepare_rows(X: Any, settings: RowSettings, scale: DomainScale | None) -> Rows:
    """Apply all row steps with given column statistics."""
    return _scale_rows(_divide_by_sums(X, settings), settings, scale)


def _divide_by_sums(X: Any, settings: RowSettings) -> Any:
    """Divide each row by its sum of absolute values; zero rows stay zero."""
    if not settings.row_sum:
        return X
    sums = np.asarray(abs(X).sum(axis=1)).ravel()
    factors = reciprocal(sums)
    return sparse.diags_array(factors) @ X if sparse.issparse(X) else X * factors[:, None]


def _domain_scale(X: Any, floor: float) -> DomainScale:
    """Return the statistics of each column."""
    if sparse.issparse(X):
        mean, variance = mean_variance_axis(X.tocsr(), axis=0)
    else:
        mean = X.mean(axis=0, dtype=np.float64)
        variance = X.var(axis=0, dtype=np.float64, mean=mean[None, :])
    return scale_from(X.shape[0], mean, variance, X.dtype, floor)


def scale_from(
    n_rows: int, mean: Array, variance: Array, dtype: np.dtype[Any], floor: float = 0.0
) -> DomainScale:
    """Return column statistics; a column that is constant up to rounding counts as constant.

    With a floor a column that hardly varies, and may be noise, is not blown up to the size of
    the others.
    """
    of_sums = n_rows * float(np.finfo(np.float64).eps)
    of_entries = 4 * float(np.finfo(dtype).eps)
    rounding = (of_sums**2 + of_entries**2) * mean**2
    variance = np.where(variance > rounding, variance, 0.0)
    deviation = np.sqrt(variance + floor * variance.mean())
    return DomainScale(mean.astype(dtype), reciprocal(deviation).astype(dtype))


def _scale_rows(X: Any, settings: RowSettings, scale: DomainScale | None) -> Rows:
    """Standardise columns and normalise rows: at once for dense rows, pending for sparse."""
    rows = Rows(X.tocsr() if sparse.issparse(X) else X)
    if scale is not None and sparse.issparse(X):
        scaled = (X @ sparse.diags_array(scale.inverse_deviation)).tocsr()
        rows = Rows(scaled, shift=scale.mean * scale.inverse_deviation)
    elif scale is not None:
        rows = Rows((X - scale.mean) * scale.inverse_deviation)
    if not settings.unit_norm:
        return rows
    factors = reciprocal(np.sqrt(rows.square_norms())).astype(rows.dtype, copy=False)
    if sparse.issparse(X):
        return Rows(rows.matrix, rows.shift, factors)
    return Rows(rows.matrix * factors[:, None])


def reciprocal(values: Array) -> Array:
    """Return 1/values, and 0 where a value is 0 or too small to have a reciprocal."""
    smallest = float(np.finfo(values.dtype).tiny)
    return np.divide(1, values, out=np.zeros_like(values), where=values >= smallest)
