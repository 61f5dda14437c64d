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
    gram = _joint_gram(blocks)
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


def _joint_gram(blocks: Sequence[Rows]) -> Array:
    """Return the inner products of all rows, those of different blocks computed once."""
    upper = {
        (a, b): blocks[a].inner(blocks[b])
        for a in range(len(blocks))
        for b in range(a, len(blocks))
    }
    parts = [
        [upper[a, b] if a <= b else upper[b, a].T for b in range(len(blocks))]
        for a in range(len(blocks))
    ]
    return np.block(parts).astype(np.float64, copy=False)


def _through_columns(
    blocks: Sequence[Rows], mean: Array, variance: float
) -> tuple[Principal, list[Array]]:
    """Diagonalise the centred D × D second moment."""
    moments = sum((Moments.of(block) for block in blocks[1:]), Moments.of(blocks[0]))
    principal = axes_of_moments(moments, mean.dtype, variance)
    return principal, [principal.project(block) for block in blocks]


@dataclass(frozen=True)
class Moments:
    """Number of rows, their sum and rowsᵀ rows: all that a PCA needs, and it adds up."""

    n_rows: int
    total: Array
    second: Array

    @classmethod
    def of(cls, rows: Rows) -> Moments:
        """Add up the rows that are given."""
        second = np.asarray(rows.second_moment(), dtype=np.float64)
        return cls(rows.shape[0], rows.column_sums().astype(np.float64, copy=False), second)

    def __add__(self, other: Moments) -> Moments:
        """Return the moments of the rows of both."""
        return Moments(
            self.n_rows + other.n_rows, self.total + other.total, self.second + other.second
        )

    @property
    def mean(self) -> Array:
        """Return the mean row."""
        centre: Array = self.total / self.n_rows
        return centre

    def projected(self, principal: Principal) -> Moments:
        """Return the moments of the coordinates of the rows along principal axes."""
        axes = principal.axes.astype(np.float64, copy=False)
        mean = principal.mean.astype(np.float64, copy=False)
        mixed = np.outer(mean, self.total)
        moved = self.second - mixed - mixed.T + self.n_rows * np.outer(mean, mean)
        return Moments(self.n_rows, (self.total - self.n_rows * mean) @ axes, axes.T @ moved @ axes)


def axes_of_moments(moments: Moments, dtype: np.dtype[Any], variance: float = 1.0) -> Principal:
    """Return the leading axes that hold ``variance`` of the variance of rows of type ``dtype``."""
    mean = moments.mean.astype(dtype)
    centred = moments.second - moments.n_rows * np.outer(mean, mean)
    values, axes = _leading(centred, variance, _noise(moments.second, dtype))
    return Principal(mean, (axes * _signs(axes)).astype(dtype, copy=False), values)


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
