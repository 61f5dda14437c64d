"""The one outer loop: U, (U2), V, T, S, W in turn, each solved exactly, until it stops paying.

The objective is recorded after every block. Each block is the minimum of a convex problem
that contains the block's present value, so the record never rises beyond rounding.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from froda.factorization import bases, classifier, codes, penalties, source
from froda.factorization.constraints import column_norms
from froda.factorization.initialize import StartingPoint
from froda.factorization.objective import Terms, fit_term, label_term
from froda.factorization.problem import (
    Array,
    Callback,
    Factors,
    Problem,
    Record,
    Solution,
    Stats,
    StopReason,
)


@dataclass(frozen=True)
class State:
    """Everything a block may look at; a block returns a new one."""

    factors: Factors
    target: Stats
    source: Stats
    target_gram: Array  # BᵀB
    source_gram: Array  # of V, or of [V, U2]
    terms: Terms
    multipliers: dict[str, Array]


Block = Callable[[Problem, State], State]


def _gram(basis: Array) -> Array:
    """Return basisᵀ basis in float64."""
    basis = basis.astype(np.float64, copy=False)
    return basis.T @ basis


def start(problem: Problem, point: StartingPoint) -> State:
    """Compute the first codes (and classifier) for the given bases."""
    n_target, n_source = len(problem.Xt), len(problem.Xs)
    source_width = point.V.shape[1] + (0 if point.U2 is None else point.U2.shape[1])
    factors = Factors(
        point.V,
        point.U,
        np.zeros((n_target, point.V.shape[1] + point.U.shape[1]), dtype=problem.dtype),
        np.zeros((n_source, source_width), dtype=problem.dtype),
        None,
        point.U2,
    )
    empty = Stats(np.zeros((0, 0)), np.zeros((0, 0)))
    state = State(
        factors,
        empty,
        empty,
        _gram(factors.target_basis),
        _gram(factors.source_basis),
        Terms(0.0, 0.0, 0.0),
        {},
    )
    state = update_source_codes(problem, update_target_codes(problem, state))
    return state if problem.Y is None else update_classifier(problem, state)


def blocks(problem: Problem) -> Iterator[tuple[str, Block]]:
    """Yield the blocks in the order of Algorithm 1."""
    yield "U", update_private
    if problem.has_source_private:
        yield "U2", update_source_private
    yield "V", update_shared
    yield "T", update_target_codes
    yield "S", update_source_codes
    if problem.Y is not None:
        yield "W", update_classifier


def _solve_basis(
    problem: Problem, state: State, name: str, *, gram: Array, cross: Array, others: list[Array]
) -> tuple[Array, dict[str, Array]]:
    """Solve for one basis; ``others`` are the bases that share the total limit with it."""
    current: Array = getattr(state.factors, name)
    prepared = bases.prepare(gram, cross)
    if problem.constraint == "total":
        taken = max((float(column_norms(other).sum()) for other in others), default=0.0)
        return bases.update_total(prepared, current, max(1 - taken, 0.0)), state.multipliers
    basis, multipliers = bases.update_per_column(prepared, current, state.multipliers.get(name))
    return basis, {**state.multipliers, name: multipliers}


def update_private(problem: Problem, state: State) -> State:
    """Update U (eq. 2)."""
    factors, stats, width = state.factors, state.target, state.factors.V.shape[1]
    if factors.U.shape[1] == 0:
        return state
    gram = stats.gram[width:, width:]
    coupling = stats.gram[:width, width:].astype(problem.dtype, copy=False)
    cross = stats.cross[:, width:] - factors.V @ coupling
    others = [factors.V] if problem.has_source_private else []
    U, multipliers = _solve_basis(problem, state, "U", gram=gram, cross=cross, others=others)
    return _with_target_basis(problem, state, replace(factors, U=U), multipliers)


def update_source_private(problem: Problem, state: State) -> State:
    """Update U2 (eq. 8)."""
    factors, stats, width = state.factors, state.source, state.factors.V.shape[1]
    if factors.U2 is None or factors.U2.shape[1] == 0:
        return state
    gram = stats.gram[width:, width:]
    coupling = stats.gram[:width, width:].astype(problem.dtype, copy=False)
    cross = stats.cross[:, width:] - factors.V @ coupling
    U2, multipliers = _solve_basis(problem, state, "U2", gram=gram, cross=cross, others=[factors.V])
    return _with_source_basis(problem, state, replace(factors, U2=U2), multipliers)


def update_shared(problem: Problem, state: State) -> State:
    """Update V (eqs. 3 and 9)."""
    factors, width = state.factors, state.factors.V.shape[1]
    target, from_source = state.target, state.source
    alpha = problem.alpha
    gram = target.gram[:width, :width] + alpha * from_source.gram[:width, :width]
    coupling = target.gram[width:, :width].astype(problem.dtype, copy=False)
    cross = target.cross[:, :width] - factors.U @ coupling + alpha * from_source.cross[:, :width]
    others = []
    if factors.U2 is not None:
        coupling = from_source.gram[width:, :width].astype(problem.dtype, copy=False)
        cross = cross - alpha * (factors.U2 @ coupling)
        others = [factors.U, factors.U2]
    V, multipliers = _solve_basis(problem, state, "V", gram=gram, cross=cross, others=others)
    state = _with_target_basis(problem, state, replace(factors, V=V), multipliers)
    return _with_source_basis(problem, state, state.factors, multipliers)


def _with_target_basis(
    problem: Problem, state: State, factors: Factors, multipliers: dict[str, Array]
) -> State:
    """Bring what depends on [V, U] up to date."""
    basis = factors.target_basis
    gram = _gram(basis)
    fit = fit_term(problem.target_square_norm, state.target, basis, gram)
    terms = replace(state.terms, target_fit=fit)
    return replace(state, factors=factors, target_gram=gram, terms=terms, multipliers=multipliers)


def _with_source_basis(
    problem: Problem, state: State, factors: Factors, multipliers: dict[str, Array]
) -> State:
    """Bring what depends on V, or [V, U2], up to date."""
    basis = factors.source_basis
    width = factors.V.shape[1]
    gram = state.target_gram[:width, :width] if factors.U2 is None else _gram(basis)
    fit = problem.alpha * fit_term(problem.source_square_norm, state.source, basis, gram)
    terms = replace(state.terms, source_fit=fit)
    return replace(state, factors=factors, source_gram=gram, terms=terms, multipliers=multipliers)


def update_target_codes(problem: Problem, state: State) -> State:
    """Update T (eq. 4)."""
    factors = state.factors
    basis = factors.target_basis
    prepared = codes.prepare(
        state.target_gram, factors.target_widths, problem.lam, problem.rounding
    )
    T = codes.update(prepared, problem.Xt @ basis, factors.T)
    stats = Stats.of(problem.Xt, T)
    terms = replace(
        state.terms,
        target_fit=fit_term(problem.target_square_norm, stats, basis, state.target_gram),
        target_penalty=penalties.value(T, factors.target_widths, problem.lam),
    )
    return replace(state, factors=replace(factors, T=T), target=stats, terms=terms)


def update_source_codes(problem: Problem, state: State) -> State:
    """Update S: least squares, or group-sparse where the source has a private basis (eq. 7)."""
    factors = state.factors
    basis = factors.source_basis
    gram = source.stacked_gram(problem, state.source_gram, factors.W)
    cross = source.stacked_cross(problem, problem.Xs @ basis, factors.W)
    penalty = 0.0
    if problem.has_source_private:
        prepared = codes.prepare(gram, factors.source_widths, problem.lam_source, problem.rounding)
        S = codes.update(prepared, cross, factors.S)
        penalty = penalties.value(S, factors.source_widths, problem.lam_source)
    else:
        S = source.update(source.prepare(gram, problem.rounding), cross, factors.S)
    stats = Stats.of(problem.Xs, S, problem.Y)
    fit = fit_term(problem.source_square_norm, stats, basis, state.source_gram)
    terms = replace(
        state.terms,
        source_fit=problem.alpha * fit,
        source_penalty=penalty,
        label_fit=label_term(problem, stats, factors.W),
    )
    return replace(state, factors=replace(factors, S=S), source=stats, terms=terms)


def update_classifier(problem: Problem, state: State) -> State:
    """Update W."""
    stats = state.source
    if stats.label_cross is None:
        return state
    prepared = classifier.prepare(stats.gram, problem.rounding)
    W = classifier.update(prepared, stats.label_cross, state.factors.W)
    terms = replace(state.terms, label_fit=label_term(problem, stats, W))
    return replace(state, factors=replace(state.factors, W=W), terms=terms)


def solve(
    problem: Problem,
    point: StartingPoint,
    *,
    max_iter: int,
    tol: float,
    callback: Callback | None = None,
) -> Solution:
    """Alternate until the relative decrease of an iteration is at most ``tol``."""
    began = time.perf_counter()
    state = start(problem, point)
    value = state.terms.total
    history = [(0, "start", value)]
    reason, iteration = StopReason.MAX_ITER, 0
    for iteration in range(1, max_iter + 1):
        before = value
        for name, block in blocks(problem):
            state = block(problem, state)
            value = state.terms.total
            history.append((iteration, name, value))
        decrease = (before - value) / before if before > 0 else 0.0
        if callback is not None:
            values = {name: v for number, name, v in history if number == iteration}
            seconds = time.perf_counter() - began
            if callback(Record(iteration, value, values, decrease, seconds)):
                reason = StopReason.CALLBACK
                break
        if decrease <= tol:
            reason = StopReason.CONVERGED
            break
    if not state.factors.T.any():
        reason = StopReason.ALL_CODES_ZERO
    return Solution(state.factors, history, iteration, reason)
