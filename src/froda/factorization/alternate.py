"""The one outer loop: U, (U2), V, T, S, W in turn, each solved exactly, until it stops paying.

The objective is recorded after every block. Each block is the minimum of a convex problem
that contains the block's present value, so the record never rises beyond rounding. Two
things save time: the bases are extrapolated before the codes are computed, which halves
the number of iterations, and early codes need not be exact (see ``Momentum`` and
``code_tolerance``). The codes of the last iteration always are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from froda.factorization import bases, classifier, codes, source
from froda.factorization.checkpoint import Checkpoint
from froda.factorization.codes import default_tolerance
from froda.factorization.constraints import column_norms, project_columns, project_total
from froda.factorization.encoding import Encoder, encode
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
from froda.factorization.source import SourceSums

_LOOSENESS = 5e-2  # of inexact codes: their share of the root of the last decrease
_CAUTION = 1.5  # by which the momentum falls where it did not pay
_ROWS_PER_FEATURE = 2  # from so many source rows a feature on, XsᵀXs is cheaper than Xs


@dataclass(frozen=True)
class State:
    """Everything a block may look at; a block returns a new one.

    ``code_tol`` is the accuracy of group-sparse codes, None for exact ones. Where
    ``source_sums`` are given the rows of the source are left alone and S is out of date.
    """

    factors: Factors
    target: Stats
    source: Stats
    target_gram: Array  # BᵀB
    source_gram: Array  # of V, or of [V, U2]
    terms: Terms
    multipliers: dict[str, Array]
    code_tol: float | None = None
    source_sums: SourceSums | None = None
    source_encoder: Encoder | None = None  # what S was, or would have been, computed with


Block = Callable[[Problem, State], State]


def _gram(basis: Array) -> Array:
    """Return basisᵀ basis in float64."""
    basis = basis.astype(np.float64, copy=False)
    return basis.T @ basis


def start(problem: Problem, point: StartingPoint, source_sums: SourceSums | None = None) -> State:
    """Compute the first codes (and classifier) for the given bases."""
    factors = Factors(point.V, point.U, None, None, None, point.U2)
    state = empty_state(factors, source_sums)
    state = update_source_codes(problem, update_target_codes(problem, state))
    return state if problem.Y is None else update_classifier(problem, state)


def empty_state(factors: Factors, source_sums: SourceSums | None) -> State:
    """Return the state of bases for which nothing has been computed yet."""
    empty = Stats(np.zeros((0, 0)), np.zeros((0, 0)))
    return State(
        factors,
        empty,
        empty,
        _gram(factors.target_basis),
        _gram(factors.source_basis),
        Terms(0.0, 0.0, 0.0),
        {},
        source_sums=source_sums,
    )


def blocks(problem: Problem) -> Iterator[tuple[str, Block]]:
    """Yield the blocks in the order of Algorithm 1."""
    yield from basis_blocks(problem)
    yield from code_blocks(problem)


def basis_blocks(problem: Problem) -> Iterator[tuple[str, Block]]:
    """Yield the blocks that see sums only."""
    yield "U", update_private
    if problem.has_source_private:
        yield "U2", update_source_private
    yield "V", update_shared


def code_blocks(problem: Problem) -> Iterator[tuple[str, Block]]:
    """Yield the blocks that go through the rows, and the classifier that follows from them."""
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
    moved = slice(width, None)
    return _with_target_basis(problem, state, replace(factors, U=U), multipliers, moved)


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
    moved = slice(0, width)
    state = _with_target_basis(problem, state, replace(factors, V=V), multipliers, moved)
    return _with_source_basis(problem, state, state.factors, multipliers)


def _with_target_basis(
    problem: Problem,
    state: State,
    factors: Factors,
    multipliers: dict[str, Array],
    moved: slice | None = None,
) -> State:
    """Bring what depends on [V, U] up to date; ``moved`` are the columns that changed."""
    basis = factors.target_basis
    if moved is None:
        gram = _gram(basis)
    else:
        gram = state.target_gram.copy()
        columns = basis[:, moved].astype(np.float64, copy=False)
        gram[moved, :] = columns.T @ basis
        gram[:, moved] = gram[moved, :].T
        gram[moved, moved] = columns.T @ columns
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
    T, sums = encode(problem.Xt, basis, Encoder(prepared, tol=state.code_tol), factors.T)
    terms = replace(
        state.terms,
        target_fit=fit_term(problem.target_square_norm, sums.stats, basis, state.target_gram),
        target_penalty=sums.penalty,
    )
    return replace(state, factors=replace(factors, T=T), target=sums.stats, terms=terms)


def update_source_codes(problem: Problem, state: State) -> State:
    """Update S: least squares, or group-sparse where the source has a private basis (eq. 7)."""
    factors, penalty = state.factors, 0.0
    gram = source.stacked_gram(problem, state.source_gram, factors.W)
    weights = None if factors.W is None else problem.beta * factors.W
    if problem.has_source_private:
        widths = factors.source_widths
        sparse = codes.prepare(gram, widths, problem.lam_source, problem.rounding)
        encoder = Encoder(sparse, problem.alpha, weights, state.code_tol)
    else:
        prepared = source.prepare(gram, problem.rounding)
        encoder = Encoder(prepared, problem.alpha, weights)
    if state.source_sums is not None:
        S = factors.S
        stats = state.source_sums.stats(prepared, problem, factors.V, factors.W)
    else:
        S, sums = encode(problem.Xs, factors.source_basis, encoder, factors.S, problem.Y)
        stats, penalty = sums.stats, sums.penalty
    fit = fit_term(problem.source_square_norm, stats, factors.source_basis, state.source_gram)
    terms = replace(
        state.terms,
        source_fit=problem.alpha * fit,
        source_penalty=penalty,
        label_fit=label_term(problem, stats, factors.W),
    )
    factors = replace(factors, S=S)
    return replace(state, factors=factors, source=stats, terms=terms, source_encoder=encoder)


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
    checkpoint: Checkpoint | None = None,
) -> Solution:
    """Alternate until the relative decrease of an iteration is at most ``tol``.

    With a checkpoint every iteration is stored, and the loop goes on where it stopped.
    """
    began = time.perf_counter()
    loop: Loop = (None if checkpoint is None else checkpoint.load()) or begin(problem, point)
    while loop.decrease > tol and loop.iteration < max_iter:
        is_last = loop.iteration + 1 == max_iter
        loop = iterate(problem, loop, code_tolerance(problem, loop, tol, is_last))
        if checkpoint is not None:
            checkpoint.save(loop)
        if callback is not None and callback(loop.record(time.perf_counter() - began)):
            return finish(problem, loop, StopReason.CALLBACK)
    is_done = loop.decrease <= tol
    return finish(problem, loop, StopReason.CONVERGED if is_done else StopReason.MAX_ITER)


@dataclass(frozen=True)
class Loop:
    """Where the outer loop stands after an iteration: enough to go on as if never stopped."""

    state: State
    history: list[tuple[int, str, float]]
    momentum: Momentum
    iteration: int = 0
    decrease: float = np.inf

    def record(self, seconds: float) -> Record:
        """Return what callbacks see."""
        values = {name: value for number, name, value in self.history if number == self.iteration}
        return Record(self.iteration, self.history[-1][2], values, self.decrease, seconds)


def begin(problem: Problem, point: StartingPoint) -> Loop:
    """Return the loop before its first iteration."""
    sums = source_sums(problem)
    state = start(problem, point, sums)
    return Loop(state, [(0, "start", state.terms.total)], Momentum())


def source_sums(problem: Problem) -> SourceSums | None:
    """Return the sums that stand for the rows of the source, where that is cheaper."""
    if problem.has_source_private:
        return None
    if not isinstance(problem.Xs, np.ndarray):
        found: SourceSums = problem.Xs.source_sums(problem.Y)
        return found
    n_rows, n_features = problem.Xs.shape
    is_cheaper = n_rows >= _ROWS_PER_FEATURE * n_features
    return SourceSums.of(problem.Xs, problem.Y) if is_cheaper else None


def code_tolerance(problem: Problem, loop: Loop, tol: float, is_last: bool) -> float | None:
    """Return how exact the codes of the next iteration are to be; None is exact.

    What the codes leave over costs the square of their distance from optimality, so a
    distance in proportion to the root of the last decrease leaves a small share of it.
    """
    if is_last or loop.iteration == 0 or loop.decrease <= 10 * tol:
        return None
    exact = default_tolerance(problem.dtype)
    loose = _LOOSENESS * float(np.sqrt(max(loop.decrease, 0.0)))
    return loose if loose > exact else None


def iterate(problem: Problem, loop: Loop, code_tol: float | None) -> Loop:
    """Run one iteration and record the objective after every block."""
    number, history = loop.iteration + 1, list(loop.history)
    before = history[-1][2]
    state = replace(loop.state, code_tol=code_tol)
    for name, block in basis_blocks(problem):
        state = block(problem, state)
        history.append((number, name, state.terms.total))
    state, momentum = loop.momentum.update_codes(problem, state)
    history.append((number, "T", state.terms.total))
    for name, block in code_blocks(problem):
        if name != "T":
            state = block(problem, state)
            history.append((number, name, state.terms.total))
    value = state.terms.total
    decrease = (before - value) / before if before > 0 else 0.0
    return Loop(state, history, momentum, number, decrease)


@dataclass(frozen=True)
class Momentum:
    """Extrapolation of the bases beyond their optimum, in the direction in which they move.

    ``previous`` are the bases that the last iteration found, ``weight`` the share of the way
    from there that is added. The codes are computed for the extrapolated bases; where that
    leaves the objective above its value before, they are computed for the others instead,
    and the weight falls. So the objective never rises.
    """

    previous: tuple[Array, ...] | None = None
    weight: float = 1.0

    def update_codes(self, problem: Problem, state: State) -> tuple[State, Momentum]:
        """Update T, for extrapolated bases where that pays."""
        found = _bases(state.factors)
        if self.previous is None:
            return update_target_codes(problem, state), Momentum(found, self.weight)
        trial = update_target_codes(problem, self._extrapolate(problem, state, found))
        slack = problem.rounding * abs(state.terms.total)
        if trial.terms.total <= state.terms.total + slack:
            return trial, Momentum(found, self.weight)
        weight = self.weight / _CAUTION
        return update_target_codes(problem, state), Momentum(found, weight)

    def _extrapolate(self, problem: Problem, state: State, found: tuple[Array, ...]) -> State:
        """Return the state with the bases moved on, within their limits."""
        assert self.previous is not None
        ahead = [
            new + self.weight * (new - old) for new, old in zip(found, self.previous, strict=True)
        ]
        V, U, *rest = _within_limits(problem, ahead)
        factors = replace(state.factors, V=V, U=U, U2=rest[0] if rest else None)
        state = _with_target_basis(problem, state, factors, state.multipliers)
        return _with_source_basis(problem, state, factors, state.multipliers)


def _bases(factors: Factors) -> tuple[Array, ...]:
    """Return V, U and, where there is one, U2."""
    return (factors.V, factors.U) + (() if factors.U2 is None else (factors.U2,))


def _within_limits(problem: Problem, ahead: list[Array]) -> list[Array]:
    """Bring V, U (and U2) back within the limit on their columns, each alone or V with each."""
    if problem.constraint == "per_column":
        return [project_columns(basis) for basis in ahead]
    if not problem.has_source_private:
        return [project_total(basis) for basis in ahead]
    lengths = [float(column_norms(basis).sum()) for basis in ahead]
    longest = max(lengths[0] + length for length in lengths[1:])
    return [basis / max(longest, 1.0) for basis in ahead]


def finish(problem: Problem, loop: Loop, reason: StopReason) -> Solution:
    """Make all codes exact and up to date, and say why the loop stopped."""
    state, history = loop.state, list(loop.history)
    if state.code_tol is not None:
        state = replace(state, code_tol=None)
        for name, block in code_blocks(problem):
            state = block(problem, state)
            history.append((loop.iteration, name, state.terms.total))
    if state.source_sums is not None:
        assert state.source_encoder is not None
        S, _ = encode(problem.Xs, state.factors.source_basis, state.source_encoder, None, problem.Y)
        state = replace(state, factors=replace(state.factors, S=S))
    if not state.target.gram.any():
        reason = StopReason.ALL_CODES_ZERO
    return Solution(state.factors, history, loop.iteration, reason)
