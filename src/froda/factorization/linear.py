"""Least squares through normal equations, with an eigenvalue cut for singular ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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


def factorise(gram: Array, rounding: float | None = None) -> Factorised:
    """Factorise once, for many right-hand sides.

    ``rounding`` is the relative error of the right-hand sides to come; by default that of
    the type of ``gram``. Eigenvalues that it could make up are cut.
    """
    rounding = float(np.finfo(gram.dtype).eps) if rounding is None else rounding
    gram = np.asarray(gram, dtype=np.float64)
    inverse = _plain_inverse(gram, 100 * len(gram) * rounding)
    if inverse is not None:
        return Factorised(gram, inverse, False)
    values, vectors = np.linalg.eigh(gram)
    cutoff = 100 * len(gram) * rounding * max(float(values.max(initial=0.0)), 0.0)
    kept = values > cutoff
    inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
    return Factorised(gram, inverse, not bool(kept.all()))


def _plain_inverse(gram: Array, cutoff: float) -> Array | None:
    """Return the inverse where all eigenvalues clearly exceed ``cutoff`` times the largest.

    The Frobenius norm of the inverse bounds the reciprocal of the smallest eigenvalue, the
    trace the largest one.
    """
    try:
        inverse = np.linalg.inv(gram)
    except np.linalg.LinAlgError:
        return None
    is_clear = float(np.linalg.norm(inverse)) * cutoff * float(np.trace(gram)) < 1e-3
    return (inverse + inverse.T) / 2 if is_clear else None
