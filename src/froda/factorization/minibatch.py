"""A few passes over the target in place of many: everything is updated after every batch.

The sums over the target are estimated from the batches seen so far, later ones counting
more: each batch is encoded with the present bases, and its sums, scaled up to all rows,
move the estimate by a step t^(-1/2), t counting the batches. The bases, the source codes
and the classifier are then solved for the estimate, as the full alternation solves them for
the exact sums. The last pass computes exact codes, and the objective, for the final bases.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from froda.factorization import alternate, codes
from froda.factorization.alternate import Loop, Momentum, State
from froda.factorization.encoding import EncodeBatch, Encoder, Sums, visit_batches
from froda.factorization.initialize import StartingPoint
from froda.factorization.objective import fit_term
from froda.factorization.problem import (
    Array,
    Callback,
    Factors,
    Problem,
    Solution,
    Stats,
    StopReason,
)
from froda.factorization.source import SourceSums

_CODE_TOL = 1e-3
_BATCHES = 64  # in a pass, where that leaves each as many rows as there are codes in a row
_ROUNDS = 2  # codes and bases in turn for each batch, which is at hand anyway


def solve_in_passes(
    problem: Problem, point: StartingPoint, *, n_passes: int, callback: Callback | None = None
) -> Solution:
    """Go through the target ``n_passes`` times, the last time for exact codes."""
    began = time.perf_counter()
    sums = alternate.source_sums(problem)
    if sums is None and not problem.has_source_private:
        sums = SourceSums.of(problem.Xs, problem.Y)
    estimate = Estimate(problem, _start(problem, point, sums))
    height = max(-(-len(problem.Xt) // _BATCHES), sum(estimate.state.factors.target_widths))
    value = estimate.state.terms.total
    loop = Loop(estimate.state, [(0, "start", value)], Momentum())
    reason = StopReason.PASSES
    for number in range(1, n_passes):
        visit_batches(problem.Xt, height, estimate.visit)
        state = estimate.end_pass()
        before, value = value, state.terms.total
        loop = Loop(state, loop.history, loop.momentum, number, (before - value) / before)
        if callback is not None:
            record = loop.record(time.perf_counter() - began)
            if callback(replace(record, objective=value)):
                reason = StopReason.CALLBACK
                break
    unfinished = replace(loop.state, code_tol=_CODE_TOL)  # there are no codes yet
    return alternate.finish(
        problem, replace(loop, state=unfinished, iteration=loop.iteration + 1), reason
    )


def _start(problem: Problem, point: StartingPoint, sums: SourceSums | None) -> State:
    """Return the state in which no target row has been seen."""
    factors = Factors(point.V, point.U, None, None, None, point.U2)
    width = sum(factors.target_widths)
    unseen = Stats(np.zeros((width, width)), np.zeros((len(point.V), width)))
    state = replace(alternate.empty_state(factors, sums), target=unseen)
    state = replace(state, terms=replace(state.terms, target_fit=problem.target_square_norm))
    state = alternate.update_source_codes(problem, state)
    return state if problem.Y is None else alternate.update_classifier(problem, state)


@dataclass
class Estimate:
    """The state, and the sums over the target that it was solved for."""

    problem: Problem
    state: State
    sums: Sums | None = None
    n_batches: int = 0

    def visit(self, n_rows: int, encode: EncodeBatch) -> None:
        """Let a batch move the estimate, and solve for everything that depends on it."""
        problem = self.problem
        self.n_batches += 1
        step, before = self.n_batches**-0.5, self.sums
        start: Array | None = None
        for _ in range(_ROUNDS):
            factors = self.state.factors
            prepared = codes.prepare(
                self.state.target_gram, factors.target_widths, problem.lam, problem.rounding
            )
            start, found = encode(factors.target_basis, Encoder(prepared, tol=_CODE_TOL), start)
            found = found.scaled(len(problem.Xt) / n_rows)
            self.sums = found if before is None else before.scaled(1 - step) + found.scaled(step)
            self._solve(self.sums)

    def end_pass(self) -> State:
        """Return the state, with codes of the source where these need its rows."""
        if self.problem.has_source_private:
            self.state = alternate.update_source_codes(self.problem, self.state)
        return self.state

    def _solve(self, sums: Sums) -> None:
        """Solve for the bases, source codes and classifier, given sums over the target."""
        problem, state = self.problem, self.state
        basis = state.factors.target_basis
        fit = fit_term(problem.target_square_norm, sums.stats, basis, state.target_gram)
        terms = replace(state.terms, target_fit=fit, target_penalty=sums.penalty)
        state = replace(state, target=sums.stats, terms=terms)
        for _, block in alternate.basis_blocks(problem):
            state = block(problem, state)
        if not problem.has_source_private:
            state = alternate.update_source_codes(problem, state)
        if problem.Y is not None:
            state = alternate.update_classifier(problem, state)
        self.state = state
