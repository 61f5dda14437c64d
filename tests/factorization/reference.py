"""Slow, plain second opinions: conditions and solvers written from design.md, not from src.

Everything here takes the data themselves (never sums over rows) and shares no code with
the package beyond the dataclasses that carry problems and factors.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from froda.factorization.problem import Array, Factors, Problem

METHODS = ("froda", "dfroda", "dfrodau")
LIMITS = ("per_column", "total")


def parts(widths: tuple[int, ...]) -> list[slice]:
    """Return the columns of each group."""
    return [slice(sum(widths[:i]), sum(widths[: i + 1])) for i in range(len(widths))]


# Codes: min_t |x - B t|² + lam Σ_g |t_g| for each row x.


def code_objective(
    basis: Array, X: Array, codes: Array, widths: tuple[int, ...], lam: float
) -> Array:
    """Return the objective of each row."""
    fit = ((X - codes @ basis.T) ** 2).sum(axis=1)
    return fit + lam * sum(np.linalg.norm(codes[:, part], axis=1) for part in parts(widths))


def code_violation(
    basis: Array, X: Array, codes: Array, widths: tuple[int, ...], lam: float
) -> float:
    """Return the worst violation of design.md's conditions relative to max(lam, 2|Bᵀx|)."""
    worst = 0.0
    for x, t in zip(X, codes, strict=True):
        gradient = 2 * basis.T @ (basis @ t - x)
        size = max(lam, 2 * np.linalg.norm(basis.T @ x))
        for part in parts(widths):
            norm = np.linalg.norm(t[part])
            if norm > 0:
                gap = np.linalg.norm(gradient[part] + lam * t[part] / norm)
            else:
                gap = max(np.linalg.norm(gradient[part]) - lam, 0.0)
            worst = max(worst, gap / size)
    return worst


def shrink(codes: Array, widths: tuple[int, ...], step: float) -> Array:
    """Return the block soft threshold, one row and group at a time."""
    shrunk = np.zeros_like(codes)
    for part in parts(widths):
        for row in range(len(codes)):
            norm = np.linalg.norm(codes[row, part])
            if norm > step:
                shrunk[row, part] = (1 - step / norm) * codes[row, part]
    return shrunk


def fista_codes(
    basis: Array, X: Array, widths: tuple[int, ...], lam: float, n_steps: int = 4_000
) -> Array:
    """Return codes by plain accelerated proximal gradient (Beck & Teboulle 2009)."""
    gram, cross = basis.T @ basis, X @ basis
    lipschitz = 2 * np.linalg.eigvalsh(gram)[-1]
    codes = ahead = np.zeros_like(cross)
    momentum = 1.0
    columns = parts(widths)
    for _ in range(n_steps):
        moved = ahead - 2 * (ahead @ gram - cross) / lipschitz
        new = np.zeros_like(moved)
        for part in columns:
            norms = np.linalg.norm(moved[:, part], axis=1, keepdims=True)
            new[:, part] = moved[:, part] * np.maximum(
                1 - lam / lipschitz / np.maximum(norms, 1e-300), 0
            )
        grown = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = new + (momentum - 1) / grown * (new - codes)
        codes, momentum = new, grown
    return codes


# Bases: min_V tr(V G Vᵀ) - 2 tr(Vᵀ H) under a limit on the columns.


def basis_objective(gram: Array, cross: Array, basis: Array) -> float:
    """Return tr(V G Vᵀ) - 2 tr(Vᵀ H)."""
    return float(np.trace(basis @ gram @ basis.T) - 2 * np.trace(basis.T @ cross))


def per_column_violation(
    gram: Array, cross: Array, basis: Array, multipliers: Array | None = None
) -> float:
    """Return the worst of stationarity, complementarity, signs and feasibility, relative.

    Without ``multipliers`` they are read off the basis: Λ_j = V_jᵀ(H - V G)_j where the
    limit is reached, 0 elsewhere.
    """
    squares = (basis**2).sum(axis=0)
    residual = cross - basis @ gram
    if multipliers is None:
        multipliers = np.where(squares > 1 - 1e-9, (basis * residual).sum(axis=0), 0.0)
    stationarity = np.abs(residual - basis * multipliers).max() / np.abs(cross).max()
    size = np.diagonal(gram).max()
    complementarity = np.abs(multipliers * (squares - 1)).max() / size
    sign = max(-multipliers.min(), 0.0) / size
    return float(max(stationarity, complementarity, sign, squares.max() - 1))


def total_violation(gram: Array, cross: Array, basis: Array, radius: float) -> float:
    """Return the violation of the variational inequality over Σ_j |V_j| <= radius, relative.

    The feasible set is the hull of radius · (unit vector in one column), so a feasible V is
    optimal iff radius · max_j |R_j| <= <R, V> for R = H - V G.
    """
    residual = cross - basis @ gram
    best = radius * np.linalg.norm(residual, axis=0).max()
    excess = np.linalg.norm(basis, axis=0).sum() - radius
    gap = best - float(np.vdot(residual, basis))
    return float(max(gap / (radius * np.abs(cross).max()), excess / radius))


def slsqp_basis(gram: Array, cross: Array, limit: str, radius: float = 1.0) -> Array:
    """Return the basis by SciPy's SLSQP; norms are rounded off at 1e-6 where a column vanishes."""
    shape = cross.shape

    def objective(point: Array) -> tuple[float, Array]:
        basis = point.reshape(shape)
        return basis_objective(gram, cross, basis), 2 * (basis @ gram - cross).ravel()

    def norms(point: Array) -> Array:
        return np.sqrt((point.reshape(shape) ** 2).sum(axis=0) + 1e-12)

    def room(point: Array) -> Array:
        return (
            1 - norms(point) if limit == "per_column" else radius - norms(point).sum(keepdims=True)
        )

    def slope(point: Array) -> Array:
        # Entry (j, (i, k)) is -V_ik/|V_k| where j = k.
        scaled = -point.reshape(shape) / norms(point)
        full = np.einsum("ik,jk->jik", scaled, np.eye(shape[1])).reshape(shape[1], -1)
        return full if limit == "per_column" else full.sum(axis=0, keepdims=True)

    start = radius / shape[1] * cross / np.linalg.norm(cross, axis=0)
    found = minimize(
        objective,
        start.ravel() / 2,
        jac=True,
        method="SLSQP",
        constraints={"type": "ineq", "fun": room, "jac": slope},
        options={"ftol": 1e-15, "maxiter": 500},
    )
    return found.x.reshape(shape)


# Whole problems.


def objective_terms(problem: Problem, factors: Factors) -> dict[str, float]:
    """Return the terms of design.md's objective, added up from the data row by row."""
    width = factors.V.shape[1]
    target = sum(
        float(
            (
                (x - factors.V @ t[: factors.V.shape[1]] - factors.U @ t[factors.V.shape[1] :]) ** 2
            ).sum()
        )
        for x, t in zip(problem.Xt, factors.T, strict=True)
    )
    source_basis = factors.V if factors.U2 is None else np.hstack([factors.V, factors.U2])
    source = sum(
        float(((x - source_basis @ s) ** 2).sum())
        for x, s in zip(problem.Xs, factors.S, strict=True)
    )
    terms = {
        "target": target,
        "target_penalty": problem.lam * _norms(factors.T, width),
        "source": problem.alpha * source,
    }
    if factors.U2 is not None:
        terms["source_penalty"] = problem.lam_source * _norms(factors.S, width)
    if problem.Y is not None and factors.W is not None:
        terms["labels"] = problem.beta * float(((problem.Y - factors.S @ factors.W.T) ** 2).sum())
    return terms


def _norms(codes: Array, width: int) -> float:
    """Return the sum of the norms of both groups of all rows."""
    return float(sum(np.linalg.norm(t[:width]) + np.linalg.norm(t[width:]) for t in codes))


def data_size(problem: Problem) -> float:
    """Return the objective at zero factors: the scale of all rounding."""
    size = float((problem.Xt.astype(np.float64) ** 2).sum())
    size += problem.alpha * float((problem.Xs.astype(np.float64) ** 2).sum())
    return size + (0.0 if problem.Y is None else problem.beta * float(problem.Y.sum()))


def rounding_size(problem: Problem, factors: Factors) -> float:
    """Return the size of what is added up: W on nearly singular codes has entries of 1e4."""
    size = data_size(problem)
    size += np.linalg.norm(factors.target_basis) ** 2 * np.linalg.norm(factors.T) ** 2
    source = problem.alpha * np.linalg.norm(factors.source_basis) ** 2
    if factors.W is not None:
        source += problem.beta * np.linalg.norm(factors.W) ** 2
    return float(size + source * np.linalg.norm(factors.S) ** 2)


def source_axes(Xs: Array, n_components: int) -> Array:
    """Return the leading principal axes by a plain SVD."""
    right: Array = np.linalg.svd(Xs - Xs.mean(axis=0), full_matrices=False)[2]
    return np.ascontiguousarray(right[:n_components].T)


def random_problem(
    seed: int, method: str, constraint: str, n_components: int | None = None
) -> tuple[Problem, Array]:
    """Return a small problem and axes to start from; every seed is another kind of odd.

    Sizes from n < D to n > D, lam and alpha over five and three decades, columns of very
    different spread, and in turn: nothing special, repeated rows, zero rows, constant columns.
    """
    rng = np.random.default_rng([seed, 20])
    n_source, n_target, n_features = (int(n) for n in rng.integers(5, 16, 3))
    Xs = rng.standard_normal((n_source, n_features)) * 10 ** rng.uniform(-1, 1, n_features)
    Xt = rng.standard_normal((n_target, n_features)) * 10 ** rng.uniform(-1, 1, n_features) + 0.5
    if seed % 4 == 1:
        Xs[n_source // 2 :] = Xs[: n_source - n_source // 2]
        Xt[n_target // 2 :] = Xt[: n_target - n_target // 2]
    if seed % 4 == 2:
        Xs[: n_source // 3], Xt[: n_target // 3] = 0, 0
    if seed % 4 == 3:
        Xs[:, 0], Xt[:, 0] = 0, 1
    most = min(np.linalg.matrix_rank(Xs - Xs.mean(axis=0)), n_features - 1)
    width = int(rng.integers(1, most + 1)) if n_components is None else n_components
    lam = 10 ** rng.uniform(-4, 1) * float(np.sqrt((Xt**2).sum(axis=1).mean()))
    lam = lam / width if constraint == "total" else lam
    alpha, beta = 10 ** rng.uniform(-2, 1), 10 ** rng.uniform(-3, 2)
    has_private = method == "dfrodau"
    labels = None
    if method != "froda":
        n_classes = int(rng.integers(1, 4)) + has_private
        labels = np.eye(n_classes)[rng.integers(0, n_classes, n_source)]
    problem = Problem(
        Xs,
        Xt,
        alpha,
        lam,
        labels,
        0.0 if labels is None else beta,
        alpha * lam if has_private else 0.0,
        has_private,
        constraint,
    )
    return problem, source_axes(Xs, width)
