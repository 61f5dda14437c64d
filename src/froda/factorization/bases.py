"""One basis with its codes fixed (eqs. 2, 3, 8, 9).

Sub-problem, with G = Σ of weighted code Gram matrices (d × d) and H = Σ of weighted
residual-times-code products (D × d):

    min_V tr(V G Vᵀ) - 2 tr(Vᵀ H)   subject to a limit on the columns of V.

Per column: the dual of Lee et al. 2007. V = H (G + Λ)⁻¹ with Λ = diag >= 0 minimising
tr(HᵀH (G + Λ)⁻¹) + tr Λ. Gradient and Hessian need only HᵀH and G, so a step costs d³ and
never touches D. The Newton step is taken on |V_j|⁻¹ - 1, nearly linear in Λ, with the
plain Newton step, a sure descent, in reserve.

Total: V lies in the span of H, so with the thin factorisation H = Q R the problem is
d × d; accelerated projected gradient with restarts solves it there.

A column whose codes are all zero does not enter the problem and keeps its value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from froda.factorization.constraints import (
    column_norms,
    project_columns,
    project_total,
)
from froda.factorization.problem import Array

_FLOOR = 1e-14
_NEWTON_STEPS = 100
_GRADIENT_STEPS = 20_000
_ACCURACY = 1e-11


@dataclass(frozen=True)
class PreparedBasis:
    """The part of the sub-problem that concerns columns in use, scaled so that max G_jj = 1."""

    gram: Array
    cross: Array
    used: Array
    scale: float


def prepare(gram: Array, cross: Array) -> PreparedBasis:
    """Pick the columns whose codes are not all zero."""
    gram = np.asarray(gram, dtype=np.float64)
    diagonal = np.diagonal(gram)
    scale = float(diagonal.max(initial=0.0)) or 1.0
    used = np.flatnonzero(diagonal > np.finfo(np.float64).tiny)
    return PreparedBasis(gram[np.ix_(used, used)] / scale, cross[:, used], used, scale)


def update_per_column(
    prepared: PreparedBasis, current: Array, multipliers: Array | None = None
) -> tuple[Array, Array]:
    """Return the optimal basis with |V_j| <= 1 and its multipliers (a warm start for later)."""
    used, cross = prepared.used, prepared.cross
    all_multipliers = np.zeros(current.shape[1]) if multipliers is None else multipliers.copy()
    if len(used) == 0:
        return current, all_multipliers
    cross_gram = (cross.T @ cross).astype(np.float64, copy=False) / prepared.scale**2
    start = all_multipliers[used] / prepared.scale
    solved = _dual_newton(prepared.gram, cross_gram, start)
    inverse = _inverse(prepared.gram, solved)
    basis = current.copy()
    columns = cross @ (inverse / prepared.scale).astype(cross.dtype)
    basis[:, used] = project_columns(columns)
    all_multipliers[used] = solved * prepared.scale
    return basis, all_multipliers


def _inverse(gram: Array, multipliers: Array) -> Array:
    """Return (G + Λ)⁻¹; the floor on Λ keeps it definite."""
    inverse = np.linalg.inv(gram + np.diag(multipliers))
    symmetric: Array = (inverse + inverse.T) / 2
    return symmetric


def _dual_newton(gram: Array, cross_gram: Array, start: Array) -> Array:
    """Minimise tr(K (G + Λ)⁻¹) + tr Λ over Λ >= floor, K = HᵀH."""
    floor = _FLOOR * len(gram)
    point = np.maximum(start, floor)
    inverse = _inverse(gram, point)
    value = _dual_value(cross_gram, inverse, point)
    for _ in range(_NEWTON_STEPS):
        norms = inverse @ cross_gram @ inverse  # VᵀV
        squares = np.diagonal(norms)
        at_floor = (point <= floor) & (squares <= 1)
        free = np.flatnonzero(~at_floor)
        if len(free) == 0 or np.abs(squares[free] - 1).max() <= _ACCURACY:
            break
        curvature = (inverse * norms)[np.ix_(free, free)]
        lengths = squares[free]
        moved = False
        for push in (lengths * (np.sqrt(lengths) - 1), (lengths - 1) / 2):
            direction = np.zeros_like(point)
            direction[free] = np.linalg.solve(curvature, push)
            moved, point, value, inverse = _line_search(
                gram, cross_gram, (point, value, inverse), direction, floor
            )
            if moved:
                break
        if not moved:
            break
    return point


def _dual_value(cross_gram: Array, inverse: Array, point: Array) -> float:
    """Return tr(K M) + tr Λ."""
    return float(np.vdot(cross_gram, inverse) + point.sum())


def _line_search(
    gram: Array,
    cross_gram: Array,
    state: tuple[Array, float, Array],
    direction: Array,
    floor: float,
) -> tuple[bool, Array, float, Array]:
    """Halve the projected step until the dual does not rise; say whether it moved."""
    point, value, inverse = state
    slack = 1e-15 * abs(value)
    step = 1.0
    for _ in range(30):
        trial = np.maximum(point + step * direction, floor)
        trial_inverse = _inverse(gram, trial)
        trial_value = _dual_value(cross_gram, trial_inverse, trial)
        if trial_value <= value + slack:
            return not np.array_equal(trial, point), trial, trial_value, trial_inverse
        step /= 2
    return False, point, value, inverse


def update_total(prepared: PreparedBasis, current: Array, radius: float = 1.0) -> Array:
    """Return the optimal basis with Σ_j |V_j| <= radius; unused columns count as they are."""
    used, cross = prepared.used, prepared.cross
    unused = np.setdiff1d(np.arange(current.shape[1]), used)
    radius = max(radius - float(column_norms(current[:, unused]).sum()), 0.0)
    if len(used) == 0:
        return current
    frame, triangle = np.linalg.qr(cross)
    gram = prepared.gram
    triangle = triangle.astype(np.float64, copy=False) / prepared.scale
    start = frame.T.astype(np.float64, copy=False) @ current[:, used]
    solved = _projected_gradient(gram, triangle, project_total(start, radius), radius)
    basis = current.copy()
    basis[:, used] = frame @ solved.astype(cross.dtype)
    return basis


def _projected_gradient(gram: Array, target: Array, start: Array, radius: float) -> Array:
    """Minimise tr(Z G Zᵀ) - 2 tr(Zᵀ R) over Σ_j |Z_j| <= radius by restarted FISTA."""
    lipschitz = float(np.linalg.eigvalsh(gram)[-1])
    point = lookahead = start
    momentum = 1.0
    limit = _ACCURACY * max(float(np.abs(target).max()) / lipschitz, np.finfo(float).tiny)
    for _ in range(_GRADIENT_STEPS):
        new = project_total(lookahead - (lookahead @ gram - target) / lipschitz, radius)
        step = new - point
        if np.vdot(lookahead - new, step) > 0:  # the momentum points uphill: restart
            momentum, lookahead = 1.0, point
            new = project_total(point - (point @ gram - target) / lipschitz, radius)
            step = new - point
        if np.abs(new - lookahead).max() <= limit and np.abs(step).max() <= limit:
            return new
        grown = (1 + np.sqrt(1 + 4 * momentum * momentum)) / 2
        lookahead = new + (momentum - 1) / grown * step
        point, momentum = new, grown
    return point


def quadratic(gram: Array, cross: Array, basis: Array) -> float:
    """Return tr(V G Vᵀ) - 2 tr(Vᵀ H)."""
    own = (basis.T @ basis).astype(np.float64, copy=False)
    return float(np.vdot(gram, own) - 2 * np.vdot(basis, cross))


def distance_per_column(gram: Array, cross: Array, basis: Array, multipliers: Array) -> float:
    """Return the largest relative violation of stationarity and complementarity."""
    size = max(float(np.abs(cross).max()), np.finfo(float).tiny)
    stationarity = np.abs(basis @ (gram + np.diag(multipliers)) - cross).max() / size
    gap = np.abs(multipliers * (column_norms(basis) ** 2 - 1)).max()
    return float(max(stationarity, gap / max(float(np.diagonal(gram).max()), 1e-300)))


def distance_total(gram: Array, cross: Array, basis: Array, radius: float = 1.0) -> float:
    """Return the relative distance of the residual from the normal cone of Σ_j |V_j| <= radius.

    With R = H - V G, optimality means R_j = mu V_j/|V_j| where V_j is not zero, |R_j| <= mu
    where it is, for one mu >= 0 that vanishes when the limit is not reached.
    """
    residual = cross - basis @ gram
    norms = column_norms(basis)
    nonzero = norms > 0
    multiplier = 0.0
    if nonzero.any() and norms.sum() >= radius * (1 - 1e-12):
        multiplier = float(np.vdot(residual, basis) / norms.sum())
    directions = basis[:, nonzero] / norms[nonzero]
    gap = np.abs(residual[:, nonzero] - multiplier * directions).max(initial=0.0)
    beyond = (column_norms(residual[:, ~nonzero]) - multiplier).max(initial=0.0)
    size = max(float(np.abs(cross).max()), np.finfo(float).tiny)
    return float(max(gap, beyond, -multiplier) / size)
