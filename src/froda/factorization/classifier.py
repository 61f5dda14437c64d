"""Linear classifier on the source codes (D-FRODA, D-FRODA-U).

Sub-problem: min_W |Y - S Wᵀ|², least squares from the sums SᵀS and YᵀS alone.
"""

from __future__ import annotations

from froda.factorization.linear import Factorised, factorise
from froda.factorization.problem import Array


def prepare(code_gram: Array, rounding: float | None = None) -> Factorised:
    """Factorise SᵀS."""
    return factorise(code_gram, rounding)


def update(prepared: Factorised, label_cross: Array, current: Array | None = None) -> Array:
    """Return W, one row a class."""
    return prepared.solve(label_cross, current)


def distance(code_gram: Array, label_cross: Array, W: Array) -> float:
    """Return the size of the normal-equation residual relative to its right-hand side."""
    residual = W @ code_gram - label_cross
    return float(abs(residual).max() / max(float(abs(label_cross).max()), 1e-300))
