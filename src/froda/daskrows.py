"""Rows on Dask: tasks go to where the blocks are, sums come back, codes stay.

The blocks of a Dask array are the chunks. A pass gives each block a task; what a block
keeps (codes, row factors) stays with the workers for the next pass, and only sums of d × d
and D × d numbers, and once the D × D covariance, are sent, added up in a tree. A block can
always be computed again from the data and the bases, so a worker that is lost costs time.
Dask's own scheduler does the work: its threads, or the client that is active.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from froda.chunks import Task, float_type
from froda.extras import require
from froda.factorization.encoding import slices
from froda.factorization.problem import Array

_FAN_IN = 8
_NOT_FOR_PREDICTION = ("target_codes_", "source_codes_", "unknown_mask_", "objective_")


@dataclass(frozen=True)
class Kept:
    """What the blocks of a table keep: one delayed value a block."""

    blocks: list[Any]


class DaskRows:
    """Rows of one domain as blocks of a Dask array."""

    def __init__(self, data: Any, name: str) -> None:
        if data.ndim != 2:
            raise ValueError(f"{name} must have two dimensions, got shape {data.shape}.")
        if any(np.isnan(size) for size in data.shape):
            raise ValueError(
                f"{name} has blocks of unknown length: call compute_chunk_sizes() on it first."
            )
        self.data = _whole_rows(data)
        self.name = name
        self.n_rows, self.n_features = int(data.shape[0]), int(data.shape[1])
        self.dtype = float_type(data.dtype, name)
        self.blocks = list(self.data.to_delayed().ravel())
        edges = np.cumsum([0, *self.data.chunks[0]])
        self.parts = [slice(int(a), int(b)) for a, b in pairwise(edges)]

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of rows and of columns."""
        return self.n_rows, self.n_features

    def map_reduce(
        self, task: Task, aligned: Sequence[Any] = (), out: Array | None = None
    ) -> tuple[Kept, Any]:
        """Return what the blocks keep, and the sum of what they add up."""
        del out
        if not is_dataclass(task):  # what changes from chunk to chunk cannot be sent
            raise ValueError(
                f"n_passes is for rows that one process reads; {self.name} is on Dask."
            )
        dask = require("dask", "dask", "Dask arrays")
        results = self._results(task, aligned)
        total = _tree_sum([sums for _, sums in results])
        kept, total = dask.persist([rows for rows, _ in results], total)
        return Kept(kept), total.compute()

    def collect(self, task: Task, aligned: Sequence[Any] = ()) -> Array:
        """Return the rows that ``task`` picks from each block, one after another."""
        dask = require("dask", "dask", "Dask arrays")
        picked = dask.compute([rows for rows, _ in self._results(task, aligned)])[0]
        return np.concatenate(picked)

    def select(self, mask: Array) -> DaskRows:
        """Return the rows that ``mask`` picks."""
        return DaskRows(self.data[np.flatnonzero(mask)], self.name)

    def present(self, kept: Any) -> Any:
        """Return what the blocks keep as a Dask array."""
        if not isinstance(kept, Kept):
            return kept
        dask = require("dask", "dask", "Dask arrays")
        array = require("dask.array", "dask", "Dask arrays")
        width, dtype = dask.delayed(_describe)(kept.blocks[0]).compute()
        shapes = [(part.stop - part.start, *width) for part in self.parts]
        pieces = zip(kept.blocks, shapes, strict=True)
        return array.concatenate(
            [array.from_delayed(block, shape, dtype) for block, shape in pieces]
        )

    def identity(self) -> str:
        """Refuse to be told from others: the blocks are not to be read for that."""
        raise ValueError(
            f"checkpoint is for rows that one process reads, and {self.name} is a Dask array: "
            "leave it out; a worker that is lost is made up for without it."
        )

    def _results(self, task: Task, aligned: Sequence[Any]) -> list[tuple[Any, Any]]:
        """Return the delayed results of a task for each block."""
        dask = require("dask", "dask", "Dask arrays")
        shared, run = dask.delayed(task, traverse=False), dask.delayed(_run, nout=2)
        cut = [self._cut(part) for part in aligned]
        results = []
        for number, block in enumerate(self.blocks):
            kept, sums = run(shared, block, self.dtype, self.name, *(part[number] for part in cut))
            results.append((kept, sums))
        return results

    def _cut(self, part: Any) -> list[Any]:
        """Return what belongs to each block of something that has a row for each row."""
        if isinstance(part, Kept):
            return part.blocks
        if part is None:
            return [None] * len(self.parts)
        if is_dask(part):
            heights = tuple(some.stop - some.start for some in self.parts)
            return list(part.rechunk((heights, *part.chunks[1:])).to_delayed().ravel())
        return [part[some] for some in self.parts]


def is_dask(X: Any) -> bool:
    """Say whether ``X`` is a Dask array, without importing Dask."""
    return type(X).__module__.partition(".")[0] == "dask" and hasattr(X, "to_delayed")


def predict_lazily(estimator: Any, method: str, X: Any) -> Any:
    """Return a Dask array of what a method gives for each block of rows."""
    dask = require("dask", "dask", "Dask arrays")
    array = require("dask.array", "dask", "Dask arrays")
    light = copy.copy(estimator)
    for name in _NOT_FOR_PREDICTION:
        light.__dict__.pop(name, None)
    light.callback = None
    whole = _whole_rows(X)
    dtype = float_type(whole.dtype, "X")
    sample = getattr(light, method)(np.ones((1, whole.shape[1]), dtype=dtype))
    model, call = dask.delayed(light, traverse=False), dask.delayed(_call)
    return array.concatenate(
        [
            array.from_delayed(
                call(model, method, block), (height, *sample.shape[1:]), sample.dtype
            )
            for block, height in zip(whole.to_delayed().ravel(), whole.chunks[0], strict=True)
        ]
    )


def _whole_rows(data: Any) -> Any:
    """Return the array with all columns of a row in one block."""
    return data.rechunk({1: -1}) if len(data.chunks[1]) > 1 else data


def _call(model: Any, method: str, block: Any) -> Any:
    """Run on a worker: predictions for a block."""
    return getattr(model, method)(np.asarray(block))


def _run(task: Task, block: Any, dtype: np.dtype[Any], name: str, *parts: Any) -> tuple[Any, Any]:
    """Run on a worker: a task for a block."""
    dense = np.asarray(block)
    if dense.ndim != 2:
        raise ValueError(f"{name} has a block of shape {dense.shape}.")
    return task(dense.astype(dtype, copy=False), *parts)


def _describe(rows: Array) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Run on a worker: the shape of a row and the type of what is kept."""
    return rows.shape[1:], rows.dtype


def _tree_sum(values: list[Any]) -> Any:
    """Return the delayed sum, a few at a time so that no worker holds them all."""
    dask = require("dask", "dask", "Dask arrays")
    add = dask.delayed(_add)
    while len(values) > 1:
        values = [add(values[some]) for some in slices(len(values), _FAN_IN)]
    return values[0]


def _add(values: list[Any]) -> Any:
    """Run on a worker: add up what some blocks added up, None where they add nothing."""
    total = values[0]
    for value in values[1:]:
        total = total if value is None else total + value
    return total
