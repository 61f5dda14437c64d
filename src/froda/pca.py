"""Exact principal axes of one or several blocks of rows, through the cheaper Gram side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from froda.factorization.problem import Array
from froda.rows import Rows


@dataclass(frozen=True)
class Principal:
    """Centre, orthonormal axes (D × k, by falling variance) and sums of squares along them."""

    mean: Array
    axes: Array
    square_sums: Array

    def project(self, rows: Rows) -> Array:
        """Return the coordinates of rows along the axes."""
        return (rows @ self.axes) - self.mean @ self.axes


def principal_axes(blocks: Sequence[Rows], variance: float = 1.0) -> tuple[Principal, list[Array]]:
    """Return the leading axes that hold ``variance`` of the variance, and each block on them.

    With n rows in all, the n × n Gram matrix is diagonalised when n < D, the D × D
    covariance otherwise. Directions with no variance beyond rounding are never returned.
    """
    n_rows = sum(block.shape[0] for block in blocks)
    mean = sum(block.column_sums() for block in blocks) / n_rows
    through = _through_rows if n_rows < blocks[0].shape[1] else _through_columns
    return through(blocks, np.asarray(mean, dtype=blocks[0].dtype), variance)


def _through_rows(
    blocks: Sequence[Rows], mean: Array, variance: float
) -> tuple[Principal, list[Array]]:
    """Diagonalise the centred n × n Gram matrix; the coordinates come with it."""
    gram = np.block([[a.inner(b) for b in blocks] for a in blocks]).astype(np.float64, copy=False)
    centre = gram.mean(axis=0)
    centred = gram - centre - centre[:, None] + centre.mean()
    values, vectors = _leading(centred, variance, _noise(gram, mean.dtype))
    dtype, lengths = mean.dtype, np.sqrt(values)
    edges = np.cumsum([block.shape[0] for block in blocks])[:-1]
    weights = np.split((vectors / lengths).astype(dtype, copy=False), edges)
    axes = -np.outer(mean, sum(weight.sum(axis=0) for weight in weights))
    for block, weight in zip(blocks, weights, strict=True):
        axes += block.transposed_matmul(weight)
    signs = _signs(axes)
    coordinates = (vectors * (lengths * signs)).astype(dtype, copy=False)
    return Principal(mean, axes * signs, values), np.split(coordinates, edges)


def _through_columns(
    blocks: Sequence[Rows], mean: Array, variance: float
) -> tuple[Principal, list[Array]]:
    """Diagonalise the centred D × D second moment."""
    n_rows = sum(block.shape[0] for block in blocks)
    moment = np.asarray(sum(block.second_moment() for block in blocks), dtype=np.float64)
    centred = moment - n_rows * np.outer(mean, mean)
    values, axes = _leading(centred, variance, _noise(moment, mean.dtype))
    principal = Principal(mean, (axes * _signs(axes)).astype(mean.dtype, copy=False), values)
    return principal, [principal.project(block) for block in blocks]


def _noise(gram: Array, dtype: np.dtype[Any]) -> float:
    """Return the size of eigenvalues that rounding in the given type can make of a Gram matrix."""
    return float(10 * np.sqrt(len(gram)) * np.finfo(dtype).eps * np.trace(gram))


def _leading(gram: Array, variance: float, noise: float) -> tuple[Array, Array]:
    """Return the leading eigenpairs above ``noise`` that hold ``variance`` of the trace."""
    values, vectors = np.linalg.eigh(gram)
    values, vectors = values[::-1], vectors[:, ::-1]
    n_positive = int(np.count_nonzero(values > noise))
    if n_positive == 0:
        return values[:0], vectors[:, :0]
    shares = np.cumsum(values[:n_positive]) / values[:n_positive].sum()
    kept = int(np.searchsorted(shares, variance - 1e-12)) + 1
    kept = min(kept, n_positive)
    return values[:kept], np.ascontiguousarray(vectors[:, :kept])


def _signs(axes: Array) -> Array:
    """Return the sign of the entry of largest size of each axis, to make axes reproducible."""
    if axes.shape[1] == 0:
        return np.ones(0, dtype=axes.dtype)
    signs: Array = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    return signs
