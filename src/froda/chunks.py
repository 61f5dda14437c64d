"""Rows that are read a chunk at a time: from memory maps, HDF5, Zarr, or anything iterable.

A table of rows offers ``map_reduce``: a task is called with each chunk, and with the part
of every row-aligned array that belongs to it; what it returns for the rows is kept, what
it adds up is added up. `froda.daskrows` does the same on Dask.
"""

from __future__ import annotations

import mmap
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from froda.factorization.encoding import slices
from froda.factorization.problem import Array

READ_AT_ONCE = 256 << 20  # arrays on disk up to this many bytes are simply read
_CHUNK_BYTES = 16 << 20

Task = Callable[..., tuple[Any, Any]]


def comes_in_chunks(X: Any, chunk_size: int | None) -> bool:
    """Say whether rows are to be read a chunk at a time.

    Asking for a chunk size decides; otherwise an array that lies outside memory and is
    large does, and so does whatever yields chunks.
    """
    if X is None or sparse.issparse(X) or _is_frame(X):
        return False
    if _is_iterable_of_chunks(X):
        return True
    if not _is_array_like(X):
        return False
    if chunk_size is not None:
        return True
    n_bytes = int(np.prod(X.shape)) * np.dtype(X.dtype).itemsize
    return not _is_in_memory(X) and n_bytes > READ_AT_ONCE


def open_rows(X: Any, chunk_size: int | None, name: str) -> RowChunks:
    """Return the rows of ``X`` as chunks of ``chunk_size`` rows, or of 16 MB."""
    if _is_array_like(X):
        return ArrayChunks(X, chunk_size, name)
    return IterableChunks(X, name)


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns") or hasattr(X, "iloc")


def _is_array_like(X: Any) -> bool:
    """Say whether X has a shape, slices and a dtype that NumPy knows."""
    if not all(hasattr(X, part) for part in ("shape", "dtype", "__getitem__")):
        return False
    try:
        np.dtype(X.dtype)
    except TypeError:
        return False
    return True


def _is_iterable_of_chunks(X: Any) -> bool:
    """Say whether iterating gives 2-dimensional arrays; a one-shot iterator counts."""
    if isinstance(X, list | tuple):
        return len(X) > 0 and all(_is_array_like(part) and len(part.shape) == 2 for part in X)
    is_plain = isinstance(X, str | bytes | dict | np.ndarray) or _is_array_like(X)
    return not is_plain and not hasattr(X, "__array__") and isinstance(X, Iterable)


def _is_in_memory(X: Any) -> bool:
    return isinstance(X, np.ndarray) and _memory_map(X) is None


def _memory_map(array: Any) -> np.memmap[Any, Any] | None:
    """Return the memory map that an array is, or is a view of."""
    while array is not None:
        if isinstance(array, np.memmap):
            return array
        array = getattr(array, "base", None)
    return None


def release(array: Any) -> None:
    """Take pages of a file that is mapped for sharing out of the memory of this process.

    They stay in the cache of the system and come back when touched.
    """
    mapped = _memory_map(array)
    if mapped is None or getattr(mapped, "mode", "c") == "c" or not hasattr(mmap, "MADV_DONTNEED"):
        return
    handle = getattr(mapped, "_mmap", None)
    if isinstance(handle, mmap.mmap):
        handle.madvise(mmap.MADV_DONTNEED)


class RowChunks(ABC):
    """Rows of one domain, gone through from the first to the last in chunks."""

    name: str
    n_features: int
    dtype: np.dtype[Any]
    n_rows: int | None  # None until they have been counted

    @property
    def shape(self) -> tuple[int | None, int]:
        """Return the number of rows, as far as it is known, and of columns."""
        return self.n_rows, self.n_features

    @abstractmethod
    def chunks(self) -> Iterator[Array]:
        """Yield the rows as arrays of ``dtype``."""

    def map_reduce(
        self, task: Task, aligned: Sequence[Any] = (), out: Array | None = None
    ) -> tuple[Any, Any]:
        """Return what ``task`` gives for all rows, and the sum of what it adds up.

        ``aligned`` holds one row for each row of the table, or None; ``out`` receives the
        rows where it is given.
        """
        pieces: list[Array] = []
        total: Any = None
        first = 0
        for chunk in self.chunks():
            some = slice(first, first + len(chunk))
            rows, sums = task(chunk, *(None if part is None else part[some] for part in aligned))
            first = some.stop
            if sums is not None:
                total = sums if total is None else total + sums
            if rows is None:
                continue
            if out is None and self.n_rows is not None:
                out = np.empty((self.n_rows, *rows.shape[1:]), dtype=rows.dtype)
            if out is None:
                pieces.append(rows)
            else:
                out[some] = rows
                release(out)
            for part in aligned:
                release(part)
        self._count(first)
        return (np.concatenate(pieces) if pieces else out), total

    def collect(self, task: Task, aligned: Sequence[Any] = ()) -> Array:
        """Return the rows that ``task`` picks from each chunk, one after another."""
        picked, first = [], 0
        for chunk in self.chunks():
            some = slice(first, first + len(chunk))
            picked.append(task(chunk, *(part[some] for part in aligned))[0])
            first = some.stop
        return np.concatenate(picked)

    def select(self, mask: Array) -> RowChunks:
        """Return the rows that ``mask`` picks."""
        return SelectedChunks(self, mask)

    def present(self, kept: Any) -> Any:
        """Return what a pass kept as users see it."""
        return kept

    def identity(self) -> str:
        """Return what tells these rows from others: their size, type and first chunk."""
        first = np.ascontiguousarray(next(iter(self.chunks())))
        return f"{self.n_features} columns of {self.dtype}, {zlib.crc32(first.tobytes()):08x}"

    def _count(self, n_rows: int) -> None:
        """Note how many rows a pass saw; it must be the same each time."""
        if self.n_rows is None:
            self.n_rows = n_rows
        elif n_rows != self.n_rows:
            raise ValueError(
                f"{self.name} gave {self.n_rows} rows when it was gone through first and {n_rows} "
                "now: it must give the same rows every time."
            )

    def _check(self, chunk: Any) -> Array:
        """Return a chunk as a dense array of the right type and width."""
        dense = chunk.toarray() if sparse.issparse(chunk) else np.asarray(chunk)
        if dense.ndim != 2 or dense.shape[1] != self.n_features:
            raise ValueError(
                f"{self.name} gave a chunk of shape {dense.shape}; all chunks need "
                f"{self.n_features} columns."
            )
        return dense.astype(self.dtype, copy=False)


def float_type(dtype: Any, name: str) -> np.dtype[Any]:
    """Return the type in which rows are computed with: float32 stays, numbers become float64."""
    dtype = np.dtype(dtype)
    if dtype.kind not in "fiub":
        raise ValueError(
            f"{name} has dtype {dtype}: rows that come in chunks must be real numbers."
        )
    return dtype if dtype in (np.float32, np.float64) else np.dtype(np.float64)


class ArrayChunks(RowChunks):
    """Chunks of anything with a shape, a dtype and slices."""

    def __init__(self, data: Any, chunk_size: int | None, name: str) -> None:
        if len(data.shape) != 2:
            raise ValueError(f"{name} must have two dimensions, got shape {tuple(data.shape)}.")
        self.data, self.name = data, name
        self.n_rows, self.n_features = int(data.shape[0]), int(data.shape[1])
        self.dtype = float_type(data.dtype, name)
        self.height = self._height() if chunk_size is None else int(chunk_size)

    def _height(self) -> int:
        """Return as many rows as 16 MB hold, in whole chunks of the file where it has any."""
        height = max(_CHUNK_BYTES // max(self.n_features * self.dtype.itemsize, 1), 1)
        stored = getattr(self.data, "chunks", None)
        if isinstance(stored, tuple) and stored and isinstance(stored[0], int) and stored[0] > 0:
            height = max(round(height / stored[0]), 1) * stored[0]
        return height

    def chunks(self) -> Iterator[Array]:
        """Yield the rows as arrays of ``dtype``."""
        assert self.n_rows is not None
        for some in slices(self.n_rows, self.height):
            yield self._check(self.data[some])
            release(self.data)


class IterableChunks(RowChunks):
    """Chunks as an iterable gives them, each time anew."""

    def __init__(self, data: Any, name: str) -> None:
        if iter(data) is data:
            raise ValueError(
                f"{name} is an iterator, which can be gone through only once: give a list of "
                "arrays, or an object whose __iter__ starts from the first chunk each time."
            )
        first = next(iter(data), None)
        if first is None:
            raise ValueError(f"Found array with 0 sample(s): {name} gives no chunk.")
        first = first if sparse.issparse(first) else np.asarray(first)
        if first.ndim != 2:
            raise ValueError(
                f"{name} must be a 2-dimensional array, or give such arrays one after another; "
                f"{type(data).__name__} gives {first.ndim}-dimensional ones."
            )
        self.data, self.name = data, name
        self.n_rows, self.n_features = None, int(first.shape[1])
        self.dtype = float_type(first.dtype, name)

    def chunks(self) -> Iterator[Array]:
        """Yield the rows as arrays of ``dtype``."""
        for chunk in self.data:
            yield self._check(chunk)


class SelectedChunks(RowChunks):
    """Some rows of a table."""

    def __init__(self, base: RowChunks, mask: Array) -> None:
        self.base, self.mask = base, mask
        self.name, self.n_features, self.dtype = base.name, base.n_features, base.dtype
        self.n_rows = int(np.count_nonzero(mask))

    def chunks(self) -> Iterator[Array]:
        """Yield the rows as arrays of ``dtype``."""
        first = 0
        for chunk in self.base.chunks():
            mask = self.mask[first : first + len(chunk)]
            first += len(chunk)
            if first > len(self.mask):
                raise ValueError(f"{self.name} has more rows than y has labels ({len(self.mask)}).")
            if mask.any():
                yield chunk[mask]


class CodeFiles:
    """Room for codes in a folder: two files, so that a pass reads one and writes the other."""

    def __init__(self, folder: Path, name: str) -> None:
        self.paths = [folder / f"{name}-{slot}.npy" for slot in (0, 1)]

    def empty(self, shape: tuple[int, int], dtype: np.dtype[Any], besides: Any) -> Array:
        """Return room in the file that ``besides`` does not occupy."""
        mapped = _memory_map(besides)
        taken = None if mapped is None else Path(str(mapped.filename)).resolve()
        free = next(path for path in self.paths if path.resolve() != taken)
        free.parent.mkdir(parents=True, exist_ok=True)
        room: Array = np.lib.format.open_memmap(free, mode="w+", dtype=dtype, shape=shape)
        return room
