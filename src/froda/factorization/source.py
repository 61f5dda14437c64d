"""Source codes without a penalty (FRODA, D-FRODA).

Sub-problem: min_S alpha |Xs - S Vᵀ|² + beta |Y - S Wᵀ|², a least-squares problem in the
stacked basis [√alpha V; √beta W]. D-FRODA-U's source codes are ``codes`` on that stack.
"""

from __future__ import annotations

from froda.factorization.linear import Factorised, factorise
from froda.factorization.problem import Array, Problem


def stacked_gram(problem: Problem, basis_gram: Array, W: Array | None) -> Array:
    """Return the Gram matrix of [√alpha V; √beta W]."""
    gram = problem.alpha * basis_gram
    if W is not None:
        gram = gram + problem.beta * (W.T @ W)
    return gram


def stacked_cross(problem: Problem, basis_cross: Array, W: Array | None) -> Array:
    """Return the product of the stacked data [√alpha Xs, √beta Y] with the stacked basis."""
    cross = problem.alpha * basis_cross
    if W is not None and problem.Y is not None:
        cross = cross + problem.beta * (problem.Y @ W.astype(cross.dtype, copy=False))
    return cross


def prepare(gram: Array, rounding: float | None = None) -> Factorised:
    """Factorise the d × d Gram matrix of the stack."""
    return factorise(gram, rounding)


def update(prepared: Factorised, cross: Array, current: Array | None = None) -> Array:
    """Return the least-squares codes (see ``Factorised.solve`` where they are not unique)."""
    return prepared.solve(cross, current)


def distance(gram: Array, cross: Array, codes: Array) -> float:
    """Return the size of the normal-equation residual relative to its right-hand side."""
    residual = codes @ gram.astype(codes.dtype) - cross
    return float(abs(residual).max() / max(float(abs(cross).max()), 1e-300))
