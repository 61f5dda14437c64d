"""Limits on the columns of a basis: value, projection, distance from feasibility.

``per_column``: |V_j| <= 1 for each column (what Lee et al. 2007 solve).
``total``: Σ_j |V_j| <= radius (what the paper's text writes).
"""

from __future__ import annotations

import numpy as np

from froda.factorization.problem import Array

CONSTRAINTS = ("per_column", "total")


def column_norms(basis: Array) -> Array:
    """Return the Euclidean norm of each column, in float64."""
    norms: Array = np.sqrt(np.einsum("ij,ij->j", basis, basis, dtype=np.float64))
    return norms


def project_columns(basis: Array) -> Array:
    """Shorten each column that is longer than 1 to length 1."""
    return basis / np.maximum(column_norms(basis), 1).astype(basis.dtype)


def project_simplex_ball(norms: Array, radius: float) -> Array:
    """Project non-negative ``norms`` on the set of those that sum to at most ``radius``."""
    if radius <= 0:
        return np.zeros_like(norms)
    if norms.sum() <= radius:
        return norms
    ordered = np.sort(norms)[::-1]
    excess = np.cumsum(ordered) - radius
    counts = np.arange(1, len(norms) + 1)
    above = np.flatnonzero(ordered * counts > excess)
    if len(above) == 0:  # a radius below the rounding of the largest norm
        return np.where(np.arange(len(norms)) == norms.argmax(), radius, 0.0)
    last = above[-1]
    projected: Array = np.maximum(norms - excess[last] / counts[last], 0)
    return projected


def project_total(basis: Array, radius: float = 1.0) -> Array:
    """Project on Σ_j |V_j| <= radius: the column norms go to the ℓ₁ ball, directions stay."""
    norms = column_norms(basis)
    shorter = project_simplex_ball(norms, radius)
    factor = np.divide(shorter, norms, out=np.zeros_like(norms), where=norms > 0)
    return basis * factor.astype(basis.dtype)


def infeasibility(basis: Array, constraint: str, radius: float = 1.0) -> float:
    """Return by how much the limit is exceeded, 0 when the basis is feasible."""
    norms = column_norms(basis)
    if constraint == "per_column":
        return float(max(norms.max(initial=0.0) - 1, 0.0))
    return float(max(norms.sum() - radius, 0.0))
