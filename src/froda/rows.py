"""Rows of one domain as scale · (matrix - shift), so that sparse rows are never made dense."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from froda.factorization.problem import Array


@dataclass(frozen=True)
class Rows:
    """Row i stands for scale_i (matrix_i - shift); None means scale 1 and shift 0."""

    matrix: Any  # dense or CSR, n × D
    shift: Array | None = None
    scale: Array | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Return (n, D)."""
        return int(self.matrix.shape[0]), int(self.matrix.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the floating type."""
        dtype: np.dtype[Any] = self.matrix.dtype
        return dtype

    def __matmul__(self, right: Array) -> Array:
        """Return rows @ right."""
        product: Array = self.matrix @ right
        if self.shift is not None:
            product = product - self.shift @ right
        return product if self.scale is None else product * self.scale[:, None]

    def transposed_matmul(self, left: Array) -> Array:
        """Return rowsᵀ @ left."""
        if self.scale is not None:
            left = left * self.scale[:, None]
        product: Array = self.matrix.T @ left
        return product if self.shift is None else product - np.outer(self.shift, left.sum(axis=0))

    def inner(self, other: Rows) -> Array:
        """Return rows @ otherᵀ, n × m."""
        product = self.matrix @ other.matrix.T
        product = product.toarray() if sparse.issparse(product) else product
        if other.shift is not None:
            product = product - (self.matrix @ other.shift)[:, None]
        if self.shift is not None:
            product = product - (other.matrix @ self.shift)[None, :]
        if self.shift is not None and other.shift is not None:
            product = product + self.shift @ other.shift
        if self.scale is not None:
            product = product * self.scale[:, None]
        if other.scale is not None:
            product = product * other.scale[None, :]
        dense: Array = product
        return dense

    def second_moment(self) -> Array:
        """Return rowsᵀ rows, D × D."""
        if self.scale is None and self.shift is None:
            product = self.matrix.T @ self.matrix
            dense: Array = product.toarray() if sparse.issparse(product) else product
            return dense
        weights = np.ones(self.shape[0], self.dtype) if self.scale is None else self.scale**2
        weighted = sparse.diags_array(weights) @ self.matrix
        plain = self.matrix.T @ weighted
        plain = plain.toarray() if sparse.issparse(plain) else plain
        shift = np.zeros(self.shape[1], self.dtype) if self.shift is None else self.shift
        cross = np.outer(np.asarray(weighted.sum(axis=0)).ravel(), shift)
        return plain - cross - cross.T + weights.sum() * np.outer(shift, shift)

    def column_sums(self) -> Array:
        """Return the sum of all rows."""
        if self.shift is None and self.scale is None:
            return np.asarray(self.matrix.sum(axis=0)).ravel()
        ones = np.ones((self.shape[0], 1), dtype=self.dtype)
        return self.transposed_matmul(ones).ravel()

    def square_norms(self) -> Array:
        """Return the squared norm of each row."""
        if sparse.issparse(self.matrix):
            squares = np.asarray(self.matrix.multiply(self.matrix).sum(axis=1)).ravel()
        else:
            squares = np.einsum("ij,ij->i", self.matrix, self.matrix)
        if self.shift is not None:
            squares = squares - 2 * (self.matrix @ self.shift) + self.shift @ self.shift
        if self.scale is not None:
            squares = squares * self.scale**2
        bounded: Array = np.maximum(squares, 0)
        return bounded

    def toarray(self) -> Array:
        """Return the rows as one dense array (the matrix itself when nothing is pending)."""
        dense: Array = self.matrix.toarray() if sparse.issparse(self.matrix) else self.matrix
        if self.shift is not None:
            dense = dense - self.shift
        return dense if self.scale is None else dense * self.scale[:, None]
