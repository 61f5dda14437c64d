"""What is solved and what comes out: the data, the factors, the sums over rows, the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
_PIECE = 1 << 20


class StopReason(Enum):
    """Why the outer loop stopped; the text says what to do about it."""

    CONVERGED = "the relative decrease of the objective fell below tol; nothing to do"
    MAX_ITER = (
        "max_iter iterations were made before the relative decrease fell below tol; "
        "raise max_iter, or raise tol if the last figures in objective_ are good enough"
    )
    CALLBACK = "the callback asked to stop; the factors are those of the last full iteration"
    PASSES = "the passes that n_passes asks for were made; more of them bring the objective lower"
    ALL_CODES_ZERO = (
        "every target code is zero, so nothing can be told apart; lower lam "
        "(a tenth of it is a good next try)"
    )

    def __str__(self) -> str:
        """Return the name and the remedy."""
        return f"{self.name.lower()}: {self.value}"


@dataclass(frozen=True)
class Problem:
    """Data and weights of one factorisation; samples are rows.

    ``Xs`` and ``Xt`` are arrays, or tables whose rows are gone through in chunks.
    ``lam``, ``lam_source`` and ``beta`` are absolute here: the door turns relative
    settings into absolute ones. ``Y`` is None for FRODA. ``has_source_private`` adds the
    source-private basis and the group penalty on the source codes (D-FRODA-U).
    """

    Xs: Any
    Xt: Any
    alpha: float
    lam: float
    Y: Array | None = None
    beta: float = 0.0
    lam_source: float = 0.0
    has_source_private: bool = False
    constraint: str = "per_column"

    @cached_property
    def source_square_norm(self) -> float:
        """Return |Xs|²."""
        return square_norm(self.Xs)

    @cached_property
    def target_square_norm(self) -> float:
        """Return |Xt|²."""
        return square_norm(self.Xt)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the floating type in which rows are kept."""
        dtype: np.dtype[Any] = self.Xt.dtype
        return dtype

    @property
    def rounding(self) -> float:
        """Return the relative rounding error of that type."""
        return float(np.finfo(self.dtype).eps)


@dataclass(frozen=True)
class Factors:
    """Bases, codes and classifier. ``T`` = [Tv, Tu]; ``S`` = [Sv] or, with ``U2``, [Sv, Su]."""

    V: Array
    U: Array
    T: Any  # an array, or what the tables of the problem keep codes in
    S: Any
    W: Array | None = None
    U2: Array | None = None

    @property
    def target_basis(self) -> Array:
        """Return B = [V, U]."""
        return np.hstack([self.V, self.U])

    @property
    def source_basis(self) -> Array:
        """Return V, or [V, U2] where the source has a private basis."""
        return self.V if self.U2 is None else np.hstack([self.V, self.U2])

    @property
    def target_widths(self) -> tuple[int, int]:
        """Return the widths of the groups of ``T``."""
        return self.V.shape[1], self.U.shape[1]

    @property
    def source_widths(self) -> tuple[int, ...]:
        """Return the widths of the groups of ``S``."""
        if self.U2 is None:
            return (self.V.shape[1],)
        return self.V.shape[1], self.U2.shape[1]


@dataclass(frozen=True)
class Stats:
    """Sums over rows of one domain: all that the bases and the classifier see of the data."""

    gram: Array  # TᵀT, in float64
    cross: Array  # XᵀT, D × width
    label_cross: Array | None = None  # YᵀS, C × width

    @classmethod
    def of(cls, X: Array, codes: Array, Y: Array | None = None) -> Stats:
        """Add up the rows that are given."""
        exact = codes.astype(np.float64, copy=False)
        return cls(exact.T @ exact, X.T @ codes, None if Y is None else Y.T @ exact)

    def __add__(self, other: Stats) -> Stats:
        """Return the sums over the rows of both."""
        label_cross = None
        if self.label_cross is not None and other.label_cross is not None:
            label_cross = self.label_cross + other.label_cross
        return Stats(self.gram + other.gram, self.cross + other.cross, label_cross)

    def scaled(self, factor: float) -> Stats:
        """Return the sums times a factor."""
        label_cross = None if self.label_cross is None else factor * self.label_cross
        return Stats(factor * self.gram, factor * self.cross, label_cross)


@dataclass(frozen=True)
class Record:
    """State of the outer loop after one full iteration, as handed to callbacks.

    Parameters
    ----------
    iteration : int
        Number of the iteration, from 1.
    objective : float
        Value of the objective after the iteration.
    blocks : dict of str to float
        Objective after each block of the iteration, in the order of their updates.
    decrease : float
        Decrease of the objective over the iteration relative to its value before.
    seconds : float
        Seconds since the loop began.
    """

    iteration: int
    objective: float
    blocks: dict[str, float]
    decrease: float
    seconds: float


@dataclass(frozen=True)
class Solution:
    """Final factors, history of the objective after every block, and why the loop stopped."""

    factors: Factors
    history: list[tuple[int, str, float]] = field(repr=False)
    n_iter: int
    stop_reason: StopReason


Callback = Callable[[Record], Any]


def square_norm(matrix: Any) -> float:
    """Return the squared Frobenius norm; only pieces are added up in the type of the matrix."""
    if not isinstance(matrix, np.ndarray):
        return float(matrix.square_norm())
    flat = matrix.ravel(order="K")
    pieces = (flat[first : first + _PIECE] for first in range(0, len(flat), _PIECE))
    return float(sum(float(np.dot(piece, piece)) for piece in pieces))
