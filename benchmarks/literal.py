"""The paper's Algorithm 1 taken literally: the reference for results and for speed.

Every step follows the text and the software that it cites. Nothing of the package's
solvers is used: only the dataclasses that hold data and results, and the objective.

* Codes (eqs. 4 and 7): proximal gradient, by SPAMS or by a plain FISTA.
* Bases (eqs. 2, 3, 8, 9): residual and stack written out as in the text, then the
  Lagrange dual of Lee et al. 2007 over all D × d products, by SciPy's L-BFGS-B with
  Λ >= 0, started as in their code from the diagonal of V⁺ H - G. For the total limit,
  which that dual does not solve: projected gradient with momentum.
* Source codes and classifier: ``numpy.linalg.lstsq`` on the stacked problem.

SPAMS minimises ½|x - D a|² + lambda |a|, so lam is halved. Two sets of its settings:

``spams``
    The best found: Gram matrix computed once, the exact Lipschitz constant as a fixed
    step, warm start, the duality gap looked at every 10 steps, relative gap 1e-8. The
    objective is then exact to about 1e-9 and the distance from optimality below 1e-4.
    The default relative gap, 1e-6, saves a quarter of the time and is 100 times coarser.
``spams-defaults``
    Its defaults: no Gram matrix, backtracking from 1, gap looked at every 100 steps. The
    answer is better than the tolerance 1e-6 asks for, at 5 to 10 times the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import brentq, minimize

from froda.factorization.initialize import StartingPoint
from froda.factorization.objective import evaluate_directly
from froda.factorization.problem import Array, Factors, Problem

try:
    import spams
except ImportError:
    spams = None

CODE_SOLVERS = ("fista",) if spams is None else ("spams", "fista", "spams-defaults")
_DUAL_OPTIONS = {"maxiter": 1_000, "maxfun": 10_000, "maxcor": 20, "ftol": 0.0, "gtol": 1e-6}
_DUAL_FLOOR = 1e-12
_FISTA_STEPS = 20_000
_FISTA_ACCURACY = 1e-7
_GRADIENT_STEPS = 20_000
_GRADIENT_ACCURACY = 1e-9


@dataclass(frozen=True)
class Settings:
    """Which solver the code steps use, and on how many threads SPAMS may run."""

    code_solver: str = CODE_SOLVERS[0]
    n_threads: int = 1


@dataclass(frozen=True)
class LiteralSolution:
    """Factors, and objective after every block as (iteration, block, value)."""

    factors: Factors
    history: list[tuple[int, str, float]]


Step = Callable[[Problem, Factors, Settings], Factors]


def solve(
    problem: Problem, point: StartingPoint, *, max_iter: int, settings: Settings
) -> LiteralSolution:
    """Run ``max_iter`` iterations and note the objective after every block."""
    factors = start(problem, point, settings)
    history = [(0, "start", evaluate_directly(problem, factors))]
    for iteration in range(1, max_iter + 1):
        for name, step in steps(problem):
            factors = step(problem, factors, settings)
            history.append((iteration, name, evaluate_directly(problem, factors)))
    return LiteralSolution(factors, history)


def iterate(problem: Problem, factors: Factors, settings: Settings) -> Factors:
    """Run one iteration without evaluating the objective."""
    for _, step in steps(problem):
        factors = step(problem, factors, settings)
    return factors


def start(problem: Problem, point: StartingPoint, settings: Settings) -> Factors:
    """Compute the first codes (and classifier) for the given bases."""
    source_width = point.V.shape[1] + (0 if point.U2 is None else point.U2.shape[1])
    factors = Factors(
        point.V,
        point.U,
        np.zeros((len(problem.Xt), point.V.shape[1] + point.U.shape[1])),
        np.zeros((len(problem.Xs), source_width)),
        None,
        point.U2,
    )
    for step in (update_target_codes, update_source_codes, update_classifier):
        factors = step(problem, factors, settings)
    return factors


def steps(problem: Problem) -> Iterator[tuple[str, Step]]:
    """Yield the steps in the order of Algorithm 1."""
    yield "U", update_private
    if problem.has_source_private:
        yield "U2", update_source_private
    yield "V", update_shared
    yield "T", update_target_codes
    yield "S", update_source_codes
    if problem.Y is not None:
        yield "W", update_classifier


def update_private(problem: Problem, factors: Factors, settings: Settings) -> Factors:
    """Solve eq. 2 for U."""
    del settings
    width = factors.V.shape[1]
    rest = problem.Xt - factors.T[:, :width] @ factors.V.T
    radius = 1 - _length(factors.V) if problem.has_source_private else 1.0
    return replace(factors, U=_basis(problem, rest, factors.T[:, width:], factors.U, radius))


def update_source_private(problem: Problem, factors: Factors, settings: Settings) -> Factors:
    """Solve eq. 8 for U2."""
    del settings
    if factors.U2 is None:
        return factors
    width = factors.V.shape[1]
    rest = problem.Xs - factors.S[:, :width] @ factors.V.T
    radius = 1 - _length(factors.V)
    return replace(factors, U2=_basis(problem, rest, factors.S[:, width:], factors.U2, radius))


def update_shared(problem: Problem, factors: Factors, settings: Settings) -> Factors:
    """Solve eq. 3, or eq. 9 with a source-private basis, for V."""
    del settings
    width, root = factors.V.shape[1], np.sqrt(problem.alpha)
    target_rest = problem.Xt - factors.T[:, width:] @ factors.U.T
    source_rest, radius = problem.Xs, 1.0
    if factors.U2 is not None:
        source_rest = problem.Xs - factors.S[:, width:] @ factors.U2.T
        radius = 1 - max(_length(factors.U), _length(factors.U2))
    rest = np.vstack([target_rest, root * source_rest])
    stacked_codes = np.vstack([factors.T[:, :width], root * factors.S[:, :width]])
    return replace(factors, V=_basis(problem, rest, stacked_codes, factors.V, radius))


def update_target_codes(problem: Problem, factors: Factors, settings: Settings) -> Factors:
    """Solve eq. 4 for T."""
    basis, widths = factors.target_basis, factors.target_widths
    task = GroupLasso(problem.Xt, basis, widths, problem.lam, factors.T)
    return replace(factors, T=group_codes(task, settings))


def update_source_codes(problem: Problem, factors: Factors, settings: Settings) -> Factors:
    """Solve for S on the stack [√alpha V; √beta W]: least squares, or eq. 7 with groups."""
    root = np.sqrt(problem.alpha)
    data, basis = root * problem.Xs, root * factors.source_basis
    if factors.W is not None and problem.Y is not None:
        weight = np.sqrt(problem.beta)
        data = np.hstack([data, weight * problem.Y])
        basis = np.vstack([basis, weight * factors.W])
    if problem.has_source_private:
        task = GroupLasso(data, basis, factors.source_widths, problem.lam_source, factors.S)
        return replace(factors, S=group_codes(task, settings))
    return replace(factors, S=np.linalg.lstsq(basis, data.T)[0].T)


def update_classifier(problem: Problem, factors: Factors, settings: Settings) -> Factors:
    """Solve the least-squares problem for W, where there are labels."""
    del settings
    if problem.Y is None:
        return factors
    return replace(factors, W=np.linalg.lstsq(factors.S, problem.Y)[0].T)


# Codes


@dataclass(frozen=True)
class GroupLasso:
    """Minimise |x - basis t|² + lam Σ_g |t_g| for each row x of ``data``, from ``current``."""

    data: Array
    basis: Array
    widths: tuple[int, ...]
    lam: float
    current: Array


def group_codes(task: GroupLasso, settings: Settings) -> Array:
    """Solve by the chosen proximal-gradient solver."""
    return _fista(task) if settings.code_solver == "fista" else _spams(task, settings)


def _spams(task: GroupLasso, settings: Settings) -> Array:
    """Call ``spams.fistaFlat``; samples are columns there, matrices in Fortran order."""
    if spams is None:
        raise ImportError("spams is not installed: pip install spams-bin, or take 'fista'.")
    options: dict[str, Any] = {"max_it": 10_000}
    if settings.code_solver == "spams":
        options |= {"tol": 1e-8, "it0": 10, "compute_gram": True, "fixed_step": True}
        options["L0"] = _largest_eigenvalue(task.basis.T @ task.basis)
    groups = np.arange(1, len(task.widths) + 1, dtype=np.int32)
    found = spams.fistaFlat(
        np.asfortranarray(task.data.T),
        np.asfortranarray(task.basis),
        np.asfortranarray(task.current.T),
        numThreads=settings.n_threads,
        loss="square",
        regul="group-lasso-l2",
        groups=np.repeat(groups, task.widths),
        lambda1=task.lam / 2,
        **options,
    )
    return np.ascontiguousarray(found.T)


def _fista(task: GroupLasso) -> Array:
    """Run FISTA on all rows at once until no row's step is worth taking."""
    gram, cross = task.basis.T @ task.basis, task.data @ task.basis
    lipschitz = 2 * _largest_eigenvalue(gram)
    limits = _FISTA_ACCURACY * np.maximum(task.lam, 2 * np.linalg.norm(cross, axis=1))
    codes = lookahead = task.current
    momentum = 1.0
    for _ in range(_FISTA_STEPS):
        gradient = 2 * (lookahead @ gram - cross)
        new = _shrink(lookahead - gradient / lipschitz, task.widths, task.lam / lipschitz)
        if np.all(lipschitz * np.linalg.norm(new - lookahead, axis=1) <= limits):
            return new
        grown = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        lookahead = new + (momentum - 1) / grown * (new - codes)
        codes, momentum = new, grown
    return codes


def _shrink(codes: Array, widths: tuple[int, ...], step: float) -> Array:
    """Return the block soft threshold."""
    shrunk = []
    for block in np.split(codes, np.cumsum(widths)[:-1], axis=1):
        norms = np.linalg.norm(block, axis=1, keepdims=True)
        shrunk.append(block * np.maximum(1 - step / np.maximum(norms, 1e-300), 0))
    return np.hstack(shrunk)


def _largest_eigenvalue(gram: Array) -> float:
    """Return the largest eigenvalue, the Lipschitz constant of ½|x - B t|²."""
    return float(np.linalg.eigvalsh(gram)[-1])


# Bases


def _basis(problem: Problem, rest: Array, codes: Array, current: Array, radius: float) -> Array:
    """Minimise |rest - codes Vᵀ|² under the problem's limit; unused columns stay as they are."""
    used = np.flatnonzero(codes.any(axis=0))
    if len(used) == 0:
        return current
    basis = current.copy()
    if problem.constraint == "per_column":
        basis[:, used] = _lagrange_dual(rest, codes[:, used], current[:, used])
    else:
        unused = np.delete(current, used, axis=1)
        left = max(radius - _length(unused), 0.0)
        basis[:, used] = _projected_gradient(rest, codes[:, used], current[:, used], left)
    return basis


def _lagrange_dual(rest: Array, codes: Array, current: Array) -> Array:
    """Maximise Lee et al.'s dual over Λ >= 0 and return V = H (G + Λ)⁻¹."""
    cross, gram = rest.T @ codes, codes.T @ codes
    scale = float(np.diagonal(gram).max())
    cross, gram = cross / scale, gram / scale

    def negative_dual(multipliers: Array) -> tuple[float, Array]:
        basis = cross @ np.linalg.inv(gram + np.diag(multipliers))
        value = np.vdot(basis, cross) + multipliers.sum()
        return float(value), 1 - np.sum(basis**2, axis=0)

    guess = np.diagonal(np.linalg.lstsq(current, cross)[0] - gram)
    bounds = [(_DUAL_FLOOR, None)] * len(gram)
    start_at = np.maximum(guess, _DUAL_FLOOR)
    found = minimize(
        negative_dual, start_at, jac=True, method="L-BFGS-B", bounds=bounds, options=_DUAL_OPTIONS
    )
    basis = cross @ np.linalg.inv(gram + np.diag(found.x))
    return basis / np.maximum(np.linalg.norm(basis, axis=0), 1)  # what the tolerance left over


def _projected_gradient(rest: Array, codes: Array, current: Array, radius: float) -> Array:
    """Minimise over Σ_j |V_j| <= radius by projected gradient with momentum and restarts."""
    cross, gram = rest.T @ codes, codes.T @ codes
    lipschitz = _largest_eigenvalue(gram)
    basis = lookahead = _project(current, radius)
    limit = _GRADIENT_ACCURACY * float(np.abs(cross).max()) / lipschitz
    momentum = 1.0
    for _ in range(_GRADIENT_STEPS):
        new = _project(lookahead - (lookahead @ gram - cross) / lipschitz, radius)
        if np.abs(new - lookahead).max() <= limit:
            return new
        if np.vdot(lookahead - new, new - basis) > 0:
            lookahead, momentum = basis, 1.0
            continue
        grown = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        lookahead = new + (momentum - 1) / grown * (new - basis)
        basis, momentum = new, grown
    return basis


def _project(basis: Array, radius: float) -> Array:
    """Shorten all columns by the same length so that their lengths sum to ``radius``."""
    norms = np.linalg.norm(basis, axis=0)
    if norms.sum() <= radius:
        return basis
    if radius <= 0:
        return np.zeros_like(basis)
    cut = brentq(lambda t: np.maximum(norms - t, 0).sum() - radius, 0, norms.max(), xtol=1e-16)
    return basis * (np.maximum(norms - cut, 0) / np.maximum(norms, 1e-300))


def _length(basis: Array) -> float:
    """Return the sum of the column lengths."""
    return float(np.linalg.norm(basis, axis=0).sum())
