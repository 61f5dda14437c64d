"""The objective, term by term, from the factors and the sums over rows; updates nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from froda.factorization import penalties
from froda.factorization.problem import Array, Factors, Problem, Stats


@dataclass(frozen=True)
class Terms:
    """The weighted terms of the objective."""

    target_fit: float
    target_penalty: float
    source_fit: float
    source_penalty: float = 0.0
    label_fit: float = 0.0

    @property
    def total(self) -> float:
        """Return the value of the objective."""
        return (
            self.target_fit
            + self.target_penalty
            + self.source_fit
            + self.source_penalty
            + self.label_fit
        )


def fit_term(square_norm: float, stats: Stats, basis: Array, basis_gram: Array) -> float:
    """Return |X - codes basisᵀ|² from sums alone."""
    linear = float(np.vdot(basis, stats.cross))
    return square_norm - 2 * linear + float(np.vdot(basis_gram, stats.gram))


def label_term(problem: Problem, stats: Stats, W: Array | None) -> float:
    """Return beta |Y - S Wᵀ|² from sums alone."""
    if W is None or problem.Y is None or stats.label_cross is None:
        return 0.0
    n_labels = float(problem.Y.sum(dtype=np.float64))  # |Y|² of a one-hot matrix
    linear = float(np.vdot(W, stats.label_cross))
    return problem.beta * (n_labels - 2 * linear + float(np.vdot(W.T @ W, stats.gram)))


def evaluate_directly(problem: Problem, factors: Factors) -> float:
    """Return the objective from the data themselves: slow, and the truth that tests compare to."""
    total = np.sum((problem.Xt - factors.T @ factors.target_basis.T) ** 2)
    total += penalties.value(factors.T, factors.target_widths, problem.lam)
    total += problem.alpha * np.sum((problem.Xs - factors.S @ factors.source_basis.T) ** 2)
    if factors.W is not None and problem.Y is not None:
        total += problem.beta * np.sum((problem.Y - factors.S @ factors.W.T) ** 2)
    if problem.has_source_private:
        total += penalties.value(factors.S, factors.source_widths, problem.lam_source)
    return float(total)
