"""One basis with its codes fixed (eqs. 2, 3, 8, 9).

Sub-problem, with G = Σ of weighted code Gram matrices (d × d) and H = Σ of weighted
residual-times-code products (D × d):

    min_V tr(V G Vᵀ) - 2 tr(Vᵀ H)   subject to a limit on the columns of V.

Per column: the dual of Lee et al. 2007. V = H (G + Λ)⁻¹ with Λ = diag >= 0 minimising
tr(HᵀH (G + Λ)⁻¹) + tr Λ. Gradient and Hessian need only HᵀH and G, so a step costs d³ and
never touches D. The Newton step is taken on |V_j|⁻¹ - 1, nearly linear in Λ, with the
plain Newton step, a sure descent, in reserve.

Total: V lies in the span of H, so with the thin factorisation H = Q R the problem is
d × d; accelerated projected gradient with restarts solves it there. The same does for the
limit on each column where G is singular, or so close to it that primal and dual values do
not meet; columns are then scaled to √G_jj = 1.

A column whose codes are all zero does not enter the problem and keeps its value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from froda.factorization.constraints import (
    column_norms,
    project_columns,
    project_total,
)
from froda.factorization.problem import Array

_NEWTON_STEPS = 100
_GRADIENT_STEPS = 20_000
_ACCURACY = 1e-11
_ROUNDING = 1e-5  # below it, a step that does not halve the violation is the last
_WELL_CONDITIONED = 1e-3
_ILL_CONDITIONED = 1e-6
_SINGULAR = 1e-13


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
    return PreparedBasis(gram[np.ix_(used, used)] / scale, cross[:, used] / scale, used, scale)


def update_per_column(
    prepared: PreparedBasis, current: Array, multipliers: Array | None = None
) -> tuple[Array, Array]:
    """Return the optimal basis with |V_j| <= 1 and its multipliers (a warm start for later)."""
    gram, cross, used = prepared.gram, prepared.cross, prepared.used
    all_multipliers = np.zeros(current.shape[1]) if multipliers is None else multipliers.copy()
    if len(used) == 0:
        return current, all_multipliers
    basis = current.copy()
    columns, solved, is_solved = current[:, used], np.zeros(len(used)), False
    is_well = _is_definite(gram, _WELL_CONDITIONED)
    if is_well or _is_definite(gram, _SINGULAR):
        dual = _Dual.of(gram, cross, squares=is_well)
        solved, is_solved = _minimise(dual, all_multipliers[used] / prepared.scale)
        inverse = dual.inverse(solved)
        found = _on_the_limit(cross @ inverse.astype(cross.dtype), solved)
        if is_solved and not (is_well or _is_definite(gram, _ILL_CONDITIONED)):
            is_solved = _has_no_gap(dual, solved, inverse, quadratic(gram, cross, found))
        before = columns if is_solved else project_columns(columns)
        if is_solved or quadratic(gram, cross, found) <= quadratic(gram, cross, before):
            columns = found
    if not is_solved:
        columns = project_columns(columns)
        columns = _scaled_in_span(gram, cross, columns)
        residual = cross - columns @ gram.astype(cross.dtype)
        pulls = np.einsum("ij,ij->j", columns, residual, dtype=np.float64)
        reached = column_norms(columns) > 1 - 1e-9
        solved = np.where(reached, np.maximum(pulls, 0), 0)
    basis[:, used] = columns
    all_multipliers[used] = solved * prepared.scale
    return basis, all_multipliers


def _has_no_gap(dual: _Dual, point: Array, inverse: Array, value: float) -> bool:
    """Say whether primal and dual value agree: a bad inverse may have cost the basis digits."""
    return value + dual.value(point, inverse) <= _ACCURACY * abs(value)


def _scaled_in_span(gram: Array, cross: Array, current: Array) -> Array:
    """Solve by projected gradient in columns times √G_jj, which evens out their curvature."""
    sizes = np.sqrt(np.diagonal(gram))
    in_type = sizes.astype(cross.dtype)

    def project(point: Array) -> Array:
        return point * np.minimum(1, sizes / np.maximum(column_norms(point), sizes))

    scaled = gram / np.outer(sizes, sizes)
    found = _in_span(scaled, cross / in_type, current * in_type, project) / in_type
    return project_columns(found)


def _on_the_limit(columns: Array, multipliers: Array) -> Array:
    """Remove what rounding left of |V_j| - 1 where a multiplier says that the limit is reached."""
    norms = column_norms(columns)
    reached = (multipliers > 0) & (np.abs(norms - 1) < 1e-6)
    return columns / np.where(reached, norms, np.maximum(norms, 1)).astype(columns.dtype)


def _is_definite(gram: Array, least: float) -> bool:
    """Say whether all eigenvalues exceed ``least`` once every column has unit size."""
    sizes = np.sqrt(np.diagonal(gram))
    try:
        np.linalg.cholesky(gram / np.outer(sizes, sizes) - least * np.eye(len(gram)))
    except np.linalg.LinAlgError:
        return False
    return True


@dataclass(frozen=True)
class _Dual:
    """The dual tr(K M) + tr Λ with M = (G + Λ)⁻¹ and K = HᵀH, or RᵀR where R is given."""

    gram: Array
    cross_gram: Array
    triangle: Array | None

    @classmethod
    def of(cls, gram: Array, cross: Array, *, squares: bool) -> _Dual:
        """Take HᵀH, or R of H = Q R where squaring H would cost too many digits."""
        if squares:
            return cls(gram, (cross.T @ cross).astype(np.float64, copy=False), None)
        triangle: Array = np.linalg.qr(cross.astype(np.float64, copy=False))[1]
        return cls(gram, triangle.T @ triangle, triangle)

    def inverse(self, point: Array) -> Array:
        """Return M."""
        inverse = np.linalg.inv(self.gram + np.diag(point))
        symmetric: Array = (inverse + inverse.T) / 2
        return symmetric

    def value(self, point: Array, inverse: Array) -> float:
        """Return tr(K M) + tr Λ."""
        return float(np.vdot(self.cross_gram, inverse) + point.sum())

    def basis_gram(self, inverse: Array) -> Array:
        """Return VᵀV = M K M."""
        if self.triangle is None:
            product: Array = inverse @ self.cross_gram @ inverse
            return product
        columns = self.triangle @ inverse
        return columns.T @ columns


def _minimise(dual: _Dual, start: Array) -> tuple[Array, bool]:
    """Minimise the dual over Λ >= 0 by projected Newton steps; say whether they got there.

    Far from the optimum of a badly conditioned problem the bounds can stop the steps.
    """
    point = np.maximum(start, 0)
    inverse = dual.inverse(point)
    value, violation = dual.value(point, inverse), np.inf
    for _ in range(_NEWTON_STEPS):
        basis_gram = dual.basis_gram(inverse)
        lengths = np.diagonal(basis_gram)
        free = np.flatnonzero((point > 0) | (lengths > 1))
        before, violation = violation, np.abs(lengths[free] - 1).max(initial=0.0)
        if violation <= _ACCURACY or before / 2 <= violation <= _ROUNDING:
            break
        curvature = (inverse * basis_gram)[np.ix_(free, free)]
        lengths = lengths[free]
        moved = False
        for push in (lengths * (np.sqrt(lengths) - 1), (lengths - 1) / 2):
            direction = np.zeros_like(point)
            direction[free] = _solve(curvature, push)
            moved, point, value, inverse = _line_search(dual, point, value, inverse, direction)
            if moved:
                break
        if not moved:
            break
    return point, bool(violation <= _ROUNDING)


def _solve(matrix: Array, right: Array) -> Array:
    """Solve a semidefinite system, in the least-squares sense where it is singular."""
    try:
        solved: Array = np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        solved = np.linalg.lstsq(matrix, right)[0]
    return solved


def _line_search(
    dual: _Dual, point: Array, value: float, inverse: Array, direction: Array
) -> tuple[bool, Array, float, Array]:
    """Halve the projected step until the dual does not rise; say whether it moved."""
    slack = 1e-12 * abs(value)
    step = 1.0
    for _ in range(30):
        trial = np.maximum(point + step * direction, 0)
        trial_inverse = dual.inverse(trial)
        trial_value = dual.value(trial, trial_inverse)
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
    basis = current.copy()
    basis[:, used] = _in_span(
        prepared.gram, cross, current[:, used], lambda point: project_total(point, radius)
    )
    return basis


def _in_span(gram: Array, cross: Array, current: Array, project: Callable[[Array], Array]) -> Array:
    """Solve with V = Q Z, H = Q R, by projected gradient from the part of V in the span of H."""
    frame, triangle = np.linalg.qr(cross.astype(np.float64, copy=False))
    start = project(frame.T @ current.astype(np.float64, copy=False))
    solved = _projected_gradient(gram, triangle, start, project)
    basis: Array = (frame @ solved).astype(cross.dtype, copy=False)
    return basis


def _projected_gradient(
    gram: Array, target: Array, start: Array, project: Callable[[Array], Array]
) -> Array:
    """Minimise tr(Z G Zᵀ) - 2 tr(Zᵀ R) over a convex set by restarted FISTA."""
    lipschitz = float(np.linalg.eigvalsh(gram)[-1])
    point = lookahead = start
    momentum = 1.0
    limit = _ACCURACY * max(float(np.abs(target).max()) / lipschitz, np.finfo(float).tiny)
    for _ in range(_GRADIENT_STEPS):
        new = project(lookahead - (lookahead @ gram - target) / lipschitz)
        if np.vdot(lookahead - new, new - point) > 0:  # the momentum points uphill: restart
            momentum, lookahead = 1.0, point
            new = project(point - (point @ gram - target) / lipschitz)
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
    if radius <= 0:
        return float(np.abs(basis).max(initial=0.0))
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
