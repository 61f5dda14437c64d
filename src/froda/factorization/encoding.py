"""One pass over the rows of a domain: from a basis to codes and the sums over them.

Rows are given as one array, or as a table that knows how to go through them (see
`froda.chunks` and `froda.daskrows`). What is computed for some rows is the same in all
cases, and only the sums leave: the codes stay with their rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from froda.factorization import codes, penalties, source
from froda.factorization.codes import PreparedCodes
from froda.factorization.linear import Factorised
from froda.factorization.problem import Array, Stats

_BYTES_AT_ONCE = 8 << 20  # rows that are read once for both products: a part of the cache


@dataclass(frozen=True)
class Encoder:
    """Codes of rows from their products with a basis; pure, and small enough to be sent.

    ``alpha`` and ``label_weights`` (beta W) make the stack on which source codes are
    computed; ``tol`` is the accuracy of group-sparse codes.
    """

    prepared: PreparedCodes | Factorised
    alpha: float = 1.0
    label_weights: Array | None = None
    tol: float | None = None

    def __call__(self, cross: Array, start: Array | None, Y: Array | None) -> Array:
        """Return the codes of the rows whose products with the basis are given."""
        cross = source.stacked_cross(self.alpha, cross, self.label_weights, Y)
        if isinstance(self.prepared, PreparedCodes):
            return codes.update(self.prepared, cross, start, tol=self.tol)
        return source.update(self.prepared, cross, start)

    def penalty(self, rows: Array) -> float:
        """Return the group penalty of codes, 0 where they have none."""
        if isinstance(self.prepared, PreparedCodes):
            return penalties.value(rows, self.prepared.widths, self.prepared.lam)
        return 0.0


@dataclass(frozen=True)
class Sums:
    """What a pass adds up."""

    stats: Stats
    penalty: float

    def __add__(self, other: Sums) -> Sums:
        """Return the sums over the rows of both."""
        return Sums(self.stats + other.stats, self.penalty + other.penalty)

    def scaled(self, factor: float) -> Sums:
        """Return the sums times a factor."""
        return Sums(self.stats.scaled(factor), factor * self.penalty)


EncodeBatch = Callable[[Array, Encoder, Array | None], tuple[Array, Sums]]
Visit = Callable[[int, EncodeBatch], None]


def encode(
    X: Any, basis: Array, encoder: Encoder, start: Any = None, Y: Array | None = None
) -> tuple[Any, Sums]:
    """Return the codes of all rows, warm-started, and the sums over them."""
    if not isinstance(X, np.ndarray):
        found: tuple[Any, Sums] = X.encode(basis, encoder, start, Y)
        return found
    height = max(_BYTES_AT_ONCE // max(X.shape[1] * X.itemsize, 1), 1)
    if len(X) <= height:
        return encode_rows(X, basis, encoder, start, Y)
    found_codes = np.empty((len(X), basis.shape[1]), dtype=X.dtype)
    totals: Sums | None = None
    for some in slices(len(X), height):
        begin = None if start is None else start[some]
        labels = None if Y is None else Y[some]
        found_codes[some], sums = encode_rows(X[some], basis, encoder, begin, labels)
        totals = sums if totals is None else totals + sums
    assert totals is not None
    return found_codes, totals


def visit_batches(X: Any, height: int, visit: Visit) -> None:
    """Call ``visit`` for batches of about so many rows, with what encodes them.

    A batch of an array takes rows from all over it, one of a table comes as it is read.
    """
    if not isinstance(X, np.ndarray):
        X.visit_batches(height, visit)
        return
    n_batches = max(len(X) // height, 1)
    for number in range(n_batches):
        rows = np.ascontiguousarray(X[number::n_batches])
        visit(len(rows), partial(_encode_batch, rows))


def _encode_batch(
    rows: Array, basis: Array, encoder: Encoder, start: Array | None
) -> tuple[Array, Sums]:
    """Return codes and sums of a batch."""
    return encode_rows(rows, basis, encoder, start, None)


def encode_rows(
    X: Array, basis: Array, encoder: Encoder, start: Array | None, Y: Array | None
) -> tuple[Array, Sums]:
    """Return codes and sums of rows that are at hand."""
    found = encoder(X @ basis, start, Y)
    return found, Sums(Stats.of(X, found, Y), encoder.penalty(found))


def slices(n_rows: int, height: int) -> Iterator[slice]:
    """Yield the ranges of rows that are taken together."""
    for first in range(0, n_rows, height):
        yield slice(first, min(first + height, n_rows))
