"""Least squares through normal equations: Cholesky, and an eigenvalue cut when it fails."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from froda.factorization.problem import Array


@dataclass(frozen=True)
class Factorised:
    """A positive semidefinite matrix, its (pseudo-)inverse and which of the two it is."""

    gram: Array
    inverse: Array
    is_singular: bool

    def solve(self, rows: Array, current: Array | None = None) -> Array:
        """Return Z minimising tr(Z gram Zᵀ) - 2 tr(Zᵀ rows).

        Where ``gram`` is singular the solution is sought in ``current`` plus the span of
        its clearly positive eigenvalues: what the cut cannot see stays as it is, so the
        objective cannot rise.
        """
        inverse = self.inverse.astype(rows.dtype, copy=False)
        if self.is_singular and current is not None:
            return current + (rows - current @ self.gram.astype(rows.dtype, copy=False)) @ inverse
        return rows @ inverse


def factorise(gram: Array) -> Factorised:
    """Factorise once, for many right-hand sides."""
    gram = np.asarray(gram, dtype=np.float64)
    width = len(gram)
    try:
        factor, lower = linalg.cho_factor(gram, check_finite=False)
    except linalg.LinAlgError:
        return Factorised(gram, _pseudo_inverse(gram), True)
    pivots = np.diagonal(factor) ** 2
    if pivots.min(initial=np.inf) <= width * 1e-13 * np.diagonal(gram).max(initial=0.0):
        return Factorised(gram, _pseudo_inverse(gram), True)
    inverse = linalg.cho_solve((factor, lower), np.eye(width), check_finite=False)
    return Factorised(gram, (inverse + inverse.T) / 2, False)


def _pseudo_inverse(gram: Array) -> Array:
    """Return the Moore-Penrose inverse with eigenvalues near rounding cut off."""
    values, vectors = linalg.eigh(gram, check_finite=False)
    cutoff = len(gram) * 1e-13 * max(float(values.max(initial=0.0)), 0.0)
    kept = values > cutoff
    inverse: Array = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
    return inverse
