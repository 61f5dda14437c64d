"""Source codes without a penalty (FRODA, D-FRODA).

Sub-problem: min_S alpha |Xs - S Vᵀ|² + beta |Y - S Wᵀ|², a least-squares problem in the
stacked basis [√alpha V; √beta W]. D-FRODA-U's source codes are ``codes`` on that stack.

The codes are linear in the data, S = Xs A + Y E with A = alpha V M, E = beta W M and M the
inverse of the Gram matrix of the stack. So where the source has many rows, all that the
other blocks need of S follows from XsᵀXs, YᵀXs and YᵀY, and the rows are not touched.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from froda.factorization.linear import Factorised, factorise
from froda.factorization.problem import Array, Problem, Stats


def stacked_gram(problem: Problem, basis_gram: Array, W: Array | None) -> Array:
    """Return the Gram matrix of [√alpha V; √beta W]."""
    gram = problem.alpha * basis_gram
    if W is not None:
        gram = gram + problem.beta * (W.T @ W)
    return gram


def stacked_cross(
    alpha: float, basis_cross: Array, label_weights: Array | None, Y: Array | None
) -> Array:
    """Return the product of the stacked data [√alpha Xs, √beta Y] with the stacked basis.

    ``label_weights`` is beta W.
    """
    cross = basis_cross if alpha == 1 else alpha * basis_cross
    if label_weights is not None and Y is not None:
        cross = cross + Y @ label_weights.astype(cross.dtype, copy=False)
    return cross


def prepare(gram: Array, rounding: float | None = None) -> Factorised:
    """Factorise the d × d Gram matrix of the stack."""
    return factorise(gram, rounding)


def update(prepared: Factorised, cross: Array, current: Array | None = None) -> Array:
    """Return the least-squares codes (see ``Factorised.solve`` where they are not unique)."""
    return prepared.solve(cross, current)


@dataclass(frozen=True)
class SourceSums:
    """XsᵀXs, YᵀXs and YᵀY: all that least-squares codes need of the source."""

    moment: Array
    label_moment: Array | None = None
    label_gram: Array | None = None

    @classmethod
    def of(cls, X: Array, Y: Array | None) -> SourceSums:
        """Add up the rows that are given."""
        moment = (X.T @ X).astype(np.float64, copy=False)
        if Y is None:
            return cls(moment)
        Y = Y.astype(np.float64, copy=False)
        return cls(moment, (Y.T @ X).astype(np.float64, copy=False), Y.T @ Y)

    def __add__(self, other: SourceSums) -> SourceSums:
        """Return the sums over the rows of both."""
        moment = self.moment + other.moment
        if self.label_moment is None or other.label_moment is None:
            return SourceSums(moment)
        assert self.label_gram is not None
        assert other.label_gram is not None
        return SourceSums(
            moment,
            self.label_moment + other.label_moment,
            self.label_gram + other.label_gram,
        )

    def stats(self, prepared: Factorised, problem: Problem, V: Array, W: Array | None) -> Stats:
        """Return the sums over the codes that ``update`` would find."""
        of_data = problem.alpha * (V.astype(np.float64, copy=False) @ prepared.inverse)
        cross = self.moment @ of_data
        gram = of_data.T @ cross
        label_cross = None
        if self.label_moment is not None and self.label_gram is not None:
            label_cross = self.label_moment @ of_data
            if W is not None:
                of_labels = problem.beta * (W @ prepared.inverse)
                mixed = label_cross.T @ of_labels
                label_cross = label_cross + self.label_gram @ of_labels
                cross = cross + self.label_moment.T @ of_labels
                gram = gram + mixed + mixed.T + of_labels.T @ self.label_gram @ of_labels
        return Stats(gram, cross.astype(V.dtype, copy=False), label_cross)


def distance(gram: Array, cross: Array, codes: Array) -> float:
    """Return the size of the normal-equation residual relative to its right-hand side."""
    residual = codes @ gram.astype(codes.dtype) - cross
    return float(abs(residual).max() / max(float(abs(cross).max()), 1e-300))
