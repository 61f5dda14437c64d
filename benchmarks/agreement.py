"""Compare the objective with that of the paper's algorithm taken literally.

On one problem for each of FRODA, D-FRODA and D-FRODA-U, both start at the same point and
make the same number of iterations. The final objectives, computed from data and factors,
have to agree to 1e-4 or the package's has to be the lower one, with bases that satisfy
the limit. Exit code 1 otherwise.

    python benchmarks/agreement.py
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import literal
import numpy as np
from problems import CORRELATED, PAPER_SIZE, SMALL, Plan, Planted, planted
from threadpoolctl import threadpool_limits

from froda.factorization import alternate, codes
from froda.factorization.constraints import infeasibility
from froda.factorization.objective import evaluate_directly
from froda.factorization.problem import Factors, Problem

TOLERANCE = 1e-4
FEASIBILITY = 1e-9
CASES: tuple[tuple[str, Plan], ...] = (
    ("FRODA", PAPER_SIZE),
    ("D-FRODA", CORRELATED),
    ("D-FRODA-U", SMALL),
)


@dataclass(frozen=True)
class Outcome:
    """One side of a comparison."""

    objective: float
    infeasibility: float
    code_distance: float

    @classmethod
    def of(cls, problem: Problem, factors: Factors) -> Outcome:
        """Judge final factors."""
        basis, widths = factors.target_basis, factors.target_widths
        prepared = codes.prepare(basis.T @ basis, widths, problem.lam)
        distances = codes.distance(prepared, problem.Xt @ basis, factors.T)
        private = [factors.U] if factors.U2 is None else [factors.U, factors.U2]
        if problem.constraint == "total" and problem.has_source_private:
            bases = [np.hstack([factors.V, each]) for each in private]
        else:
            bases = [factors.V, *private]
        excess = max(infeasibility(basis, problem.constraint) for basis in bases)
        return cls(evaluate_directly(problem, factors), excess, float(distances.max()))


def compare(case: Planted, iterations: int, settings: literal.Settings) -> bool:
    """Run both, print a line for each, and say whether the package holds its own."""
    problem, point = case.problem, case.point
    solution = alternate.solve(problem, point, max_iter=iterations, tol=-np.inf)
    reference = literal.solve(problem, point, max_iter=iterations, settings=settings)
    ours = Outcome.of(problem, solution.factors)
    theirs = Outcome.of(problem, reference.factors)
    difference = (ours.objective - theirs.objective) / theirs.objective
    holds = difference <= TOLERANCE and ours.infeasibility <= FEASIBILITY
    n_source, n_target, n_features = len(problem.Xs), len(problem.Xt), problem.Xt.shape[1]
    print(
        f"\n{case.name}: n_s {n_source}, n_t {n_target}, D {n_features}, d {point.V.shape[1]}, "
        f"{problem.constraint}; objective at the start {reference.history[0][2]:.6f}"
    )
    for name, outcome in (("froda", ours), (f"literal, {settings.code_solver}", theirs)):
        print(
            f"  {name:24s} objective {outcome.objective:.9f}   codes off optimality by "
            f"{outcome.code_distance:.1e}   limit exceeded by {outcome.infeasibility:.1e}"
        )
    verdict = "within 1e-4 or lower: yes" if holds else "within 1e-4 or lower: NO"
    print(f"  relative difference {difference:+.2e}   {verdict}")
    return holds


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare on all cases; return the exit code."""
    parser = argparse.ArgumentParser(description="Compare with the paper's literal algorithm.")
    parser.add_argument("--iterations", type=int, default=30, help="outer iterations of both")
    parser.add_argument("--solver", choices=literal.CODE_SOLVERS, default=literal.CODE_SOLVERS[0])
    parser.add_argument("--constraint", choices=("per_column", "total"), default="per_column")
    parser.add_argument("--threads", type=int, default=2, help="threads of BLAS and of SPAMS")
    options = parser.parse_args(arguments)
    settings = literal.Settings(options.solver, options.threads)
    print(f"{options.iterations} iterations from the same starting point")
    with threadpool_limits(options.threads):
        held = [
            compare(planted(plan, variant, options.constraint), options.iterations, settings)
            for variant, plan in CASES
        ]
    print(f"\n{sum(held)} of {len(held)} within {TOLERANCE:g} relative, or lower")
    return 0 if all(held) else 1


if __name__ == "__main__":
    raise SystemExit(main())
