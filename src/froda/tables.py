"""Two domains that come in chunks: from raw rows to tables that the outer loop can encode.

Two passes prepare a domain: the first for row sums and the statistics of each column, the
second for row norms and the moments that the joint PCA and the subspace disagreement need.
From then on the coordinates of a row are computed when its chunk is there and never kept:

    z = f ((r x - m) ∘ s),   row of the table = (z - mean) A,

r and f being a row's two factors, m and s the column statistics, A the axes of the PCA.
Products with a basis B go through A B, sums of rows come back through A, once a pass.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from froda.chunks import CodeFiles, comes_in_chunks, open_rows
from froda.daskrows import DaskRows, is_dask, predict_lazily
from froda.factorization.checkpoint import Checkpoint
from froda.factorization.encoding import Encoder, Sums, Visit, slices
from froda.factorization.problem import Array, Stats
from froda.factorization.source import SourceSums
from froda.pca import Moments, Principal, axes_of_moments, principal_axes
from froda.preprocessing import (
    DomainScale,
    Preprocessor,
    RowSettings,
    reciprocal,
    require_variation,
    scale_from,
)
from froda.rows import Rows

_TILE_BYTES = 4 << 20


@dataclass(frozen=True)
class ColumnStats:
    """Number of rows, column means and sums of squared deviations from them."""

    n_rows: int
    mean: Array
    squares: Array

    def __add__(self, other: ColumnStats) -> ColumnStats:
        """Return the statistics of the rows of both, without cancellation."""
        n_rows = self.n_rows + other.n_rows
        gap = other.mean - self.mean
        mean = self.mean + gap * (other.n_rows / n_rows)
        between = gap**2 * (self.n_rows * other.n_rows / n_rows)
        return ColumnStats(n_rows, mean, self.squares + other.squares + between)


@dataclass(frozen=True)
class FirstPass:
    """Row sums, and the column statistics of rows divided by them."""

    divides: bool
    name: str

    def __call__(self, chunk: Array) -> tuple[Array, ColumnStats]:
        """Return 1/sum for each row, and the statistics."""
        if not np.isfinite(chunk.sum()) and not np.isfinite(chunk).all():
            raise ValueError(f"{self.name} contains NaN or infinity.")
        factors = np.ones(len(chunk), dtype=chunk.dtype)
        if self.divides:
            factors = reciprocal(np.abs(chunk).sum(axis=1))
            chunk = chunk * factors[:, None]
        mean = chunk.mean(axis=0, dtype=np.float64)
        squares = chunk.var(axis=0, dtype=np.float64, mean=mean[None, :]) * len(chunk)
        return factors, ColumnStats(len(chunk), mean, squares)


@dataclass(frozen=True)
class Totals:
    """Moments of all prepared rows and of the known ones, sums and counts of each class."""

    moments: Moments
    known: Moments | None
    class_totals: Array
    class_counts: Array

    def __add__(self, other: Totals) -> Totals:
        """Return the totals of the rows of both."""
        known = self.known
        if known is not None and other.known is not None:
            known = known + other.known
        return Totals(
            self.moments + other.moments,
            known,
            self.class_totals + other.class_totals,
            self.class_counts + other.class_counts,
        )


@dataclass(frozen=True)
class SecondPass:
    """Row norms, and the moments of rows divided by them."""

    scale: DomainScale | None
    is_unit: bool
    n_known: int  # class numbers from here on are unknown; 0 without labels

    def __call__(self, chunk: Array, factors: Array, numbers: Array | None) -> tuple[Array, Totals]:
        """Return both factors of each row, and the totals."""
        rows = _standardise(chunk, factors, self.scale)
        if self.scale is not None:
            rows *= self.scale.inverse_deviation
        norms = np.ones(len(rows), dtype=rows.dtype)
        if self.is_unit:
            norms = reciprocal(np.sqrt(np.einsum("ij,ij->i", rows, rows)))
            rows *= norms[:, None]
        moments, known = Moments.of(Rows(rows)), None
        members = np.zeros((len(rows), self.n_known + 1))
        if numbers is not None:
            members[np.arange(len(rows)), numbers] = 1
            is_known = numbers < self.n_known
            known = moments if is_known.all() else Moments.of(Rows(rows[is_known]))
        totals = Totals(moments, known, members.T @ rows, members.sum(axis=0))
        return np.stack([factors, norms], axis=1), totals


def _standardise(chunk: Array, factors: Array, scale: DomainScale | None) -> Array:
    """Return r x - m, in an array of its own."""
    rows = chunk * factors[:, None]
    if scale is not None:
        rows -= scale.mean
    return rows


@dataclass(frozen=True)
class Fold:
    """From a chunk to its products with a basis: r x - m, times ``weights`` and f, less shift."""

    scale: DomainScale | None
    weights: Array
    shift: Array

    def rows(self, chunk: Array, factors: Array) -> Array:
        """Return r x - m."""
        return _standardise(chunk, factors[:, 0], self.scale)

    def cross(self, rows: Array, factors: Array) -> Array:
        """Return the products of prepared rows with the basis."""
        product: Array = rows @ self.weights
        product *= factors[:, 1:]
        product -= self.shift
        return product


@dataclass(frozen=True)
class RawSums:
    """The sums of a pass before they are brought into the coordinates of the table."""

    gram: Array
    cross: Array
    total: Array
    label_cross: Array | None
    penalty: float

    def __add__(self, other: RawSums) -> RawSums:
        """Return the sums over the rows of both."""
        label_cross = None
        if self.label_cross is not None and other.label_cross is not None:
            label_cross = self.label_cross + other.label_cross
        return RawSums(
            self.gram + other.gram,
            self.cross + other.cross,
            self.total + other.total,
            label_cross,
            self.penalty + other.penalty,
        )


@dataclass(frozen=True)
class EncodePass:
    """Codes of a chunk and the sums over them."""

    fold: Fold
    encoder: Encoder

    def __call__(
        self, chunk: Array, factors: Array, start: Array | None, Y: Array | None
    ) -> tuple[Array, RawSums]:
        """Return codes and sums, working through the chunk in tiles that fit in the cache."""
        found = np.empty((len(chunk), self.fold.weights.shape[1]), dtype=chunk.dtype)
        totals: RawSums | None = None
        height = max(_TILE_BYTES // max(chunk.shape[1] * chunk.itemsize, 1), 64)
        for some in slices(len(chunk), height):
            rows = self.fold.rows(chunk[some], factors[some])
            labels = None if Y is None else Y[some]
            cross = self.fold.cross(rows, factors[some])
            codes = self.encoder(cross, None if start is None else start[some], labels)
            found[some] = codes
            exact = codes.astype(np.float64, copy=False)
            sums = RawSums(
                exact.T @ exact,
                (rows.T @ (codes * factors[some, 1:])).astype(np.float64, copy=False),
                exact.sum(axis=0),
                None if labels is None else labels.T @ exact,
                self.encoder.penalty(codes),
            )
            totals = sums if totals is None else totals + sums
        assert totals is not None
        return found, totals


@dataclass(frozen=True)
class ProductPass:
    """A function of products with a basis, and of arrays aligned with the rows."""

    fold: Fold
    function: Callable[..., Any]

    def __call__(self, chunk: Array, factors: Array, *aligned: Array) -> tuple[Any, None]:
        """Return what the function gives."""
        cross = self.fold.cross(self.fold.rows(chunk, factors), factors)
        return self.function(cross, *aligned), None


@dataclass(frozen=True)
class PickPass:
    """The coordinates of the rows that a mask picks."""

    scale: DomainScale | None
    principal: Principal | None

    def __call__(self, chunk: Array, factors: Array, mask: Array) -> tuple[Array, None]:
        """Return the picked rows in the coordinates of the fit."""
        factors = factors[mask]
        rows = _standardise(chunk[mask], factors[:, 0], self.scale)
        if self.scale is not None:
            rows *= self.scale.inverse_deviation
        rows *= factors[:, 1:]
        return rows if self.principal is None else self.principal.project(Rows(rows)), None


@dataclass(frozen=True)
class PreparedTable:
    """Rows of one domain in the coordinates of the fit, for the outer loop to encode."""

    raw: Any
    scale: DomainScale | None
    principal: Principal | None
    factors: Any = field(repr=False)
    totals: Totals = field(repr=False)  # in the coordinates of the fit
    files: CodeFiles | None = None  # where codes are kept, None for memory

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of rows and of coordinates."""
        return self.totals.moments.n_rows, len(self.totals.moments.total)

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.shape[0]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the type of the coordinates."""
        dtype: np.dtype[Any] = self.raw.dtype
        return dtype

    def square_norm(self) -> float:
        """Return the sum of all squares."""
        return float(np.trace(self.totals.moments.second))

    def source_sums(self, Y: Array | None) -> SourceSums:
        """Return what least-squares codes need of the rows, which are not touched."""
        moment = self.totals.moments.second
        if Y is None:
            return SourceSums(moment)
        width = Y.shape[1]
        counts = np.diag(self.totals.class_counts[:width])
        return SourceSums(moment, self.totals.class_totals[:width], counts)

    def encode(
        self, basis: Array, encoder: Encoder, start: Any = None, Y: Array | None = None
    ) -> tuple[Any, Sums]:
        """Return the codes of all rows, warm-started, and the sums over them."""
        fold = self._fold(basis)
        shape = (len(self), basis.shape[1])
        room = None if self.files is None else self.files.empty(shape, self.dtype, start)
        task = EncodePass(fold, encoder)
        codes, sums = self.raw.map_reduce(task, (self.factors, start, Y), room)
        return codes, Sums(self._unfold(sums), sums.penalty)

    def visit_batches(self, height: int, visit: Visit) -> None:
        """Call ``visit`` for batches of at most so many rows, in the order of the rows."""

        def visit_chunk(chunk: Array, factors: Array) -> tuple[None, None]:
            for some in slices(len(chunk), height):
                part = chunk[some]
                visit(len(part), partial(self._encode_batch, part, factors[some]))
            return None, None

        self.raw.map_reduce(visit_chunk, (self.factors,))

    def _encode_batch(
        self, chunk: Array, factors: Array, basis: Array, encoder: Encoder, start: Array | None
    ) -> tuple[Array, Sums]:
        """Return codes and sums of a batch."""
        codes, sums = EncodePass(self._fold(basis), encoder)(chunk, factors, start, None)
        return codes, Sums(self._unfold(sums), sums.penalty)

    def _fold(self, basis: Array) -> Fold:
        """Return the way from raw rows to products with a basis."""
        weights, shift = basis, np.zeros(basis.shape[1], dtype=basis.dtype)
        if self.principal is not None:
            weights = self.principal.axes @ basis
            shift = self.principal.mean @ weights
        if self.scale is not None:
            weights = weights * self.scale.inverse_deviation[:, None]
        return Fold(self.scale, np.ascontiguousarray(weights), shift)

    def _unfold(self, sums: RawSums) -> Stats:
        """Return the sums of a pass in the coordinates of the table."""
        cross = sums.cross
        if self.scale is not None:
            cross = cross * self.scale.inverse_deviation[:, None]
        if self.principal is not None:
            cross = cross - np.outer(self.principal.mean, sums.total)
            cross = self.principal.axes.T @ cross
        return Stats(sums.gram, cross.astype(self.dtype, copy=False), sums.label_cross)

    def map_products(self, function: Callable[..., Any], basis: Array, *aligned: Any) -> Any:
        """Return what ``function`` gives for the products of the rows with a basis."""
        task = ProductPass(self._fold(basis), function)
        return self.present(self.raw.map_reduce(task, (self.factors, *aligned))[0])

    def present(self, kept: Any) -> Any:
        """Return what a pass kept as users see it."""
        return self.raw.present(kept)

    def take(self, mask: Array) -> Array:
        """Return the coordinates of the rows that a mask picks."""
        task = PickPass(self.scale, self.principal)
        picked: Array = self.raw.collect(task, (self.factors, mask))
        return picked


Method = TypeVar("Method", bound=Callable[..., Any])


def takes_tables(method: Method) -> Method:
    """Let a method that maps rows to rows take rows that come in chunks, or lazily on Dask."""

    @wraps(method)
    def mapped(estimator: Any, X: Any) -> Any:
        chunk_size = getattr(estimator, "chunk_size", None)
        if is_dask(X):
            check_is_fitted(estimator)
            return predict_lazily(estimator, method.__name__, X)
        if not comes_in_chunks(X, chunk_size):
            return method(estimator, X)
        check_is_fitted(estimator)
        rows = open_rows(X, chunk_size, "X")
        return rows.map_reduce(lambda chunk: (method(estimator, chunk), None))[0]

    return cast(Method, mapped)


def come_as_tables(X: Any, X_target: Any, chunk_size: int | None) -> bool:
    """Say whether a fit is to go through rows in chunks, or on Dask."""
    return any(is_dask(rows) or comes_in_chunks(rows, chunk_size) for rows in (X, X_target))


def open_table(X: Any, chunk_size: int | None, name: str) -> Any:
    """Return the rows of one domain, unread."""
    return DaskRows(X, name) if is_dask(X) else open_rows(X, chunk_size, name)


def prepare_tables(
    raws: tuple[Any, Any],
    labels: tuple[Array, int],
    settings: RowSettings,
    variance: float | None,
    checkpoint: Checkpoint | None = None,
) -> tuple[Preprocessor, PreparedTable, PreparedTable]:
    """Return the preprocessor and both domains, source and target, in its coordinates.

    ``labels`` are the class numbers of the source rows, and the number from which on they
    are unknown. What `froda.preprocessing.fit_preprocessor` does, the PCA by the covariance
    of all columns. With a checkpoint the passes are made once, and codes go to its folder.
    """
    source, target = raws

    def compute() -> tuple[Preprocessor, tuple[Any, Totals], tuple[Any, Totals]]:
        return _prepare(source, target, labels, settings, variance)

    found = compute() if checkpoint is None else checkpoint.recall("prepared", compute)
    preprocessor, of_source, of_target = found
    tables = []
    for name, raw, scale, parts in (
        ("source", source, preprocessor.source_scale, of_source),
        ("target", target, preprocessor.target_scale, of_target),
    ):
        files = None if checkpoint is None else CodeFiles(checkpoint.folder, f"{name}-codes")
        raw.n_rows = parts[1].moments.n_rows
        tables.append(PreparedTable(raw, scale, preprocessor.principal, *parts, files))
    return preprocessor, tables[0], tables[1]


def _prepare(
    source: Any,
    target: Any,
    labels: tuple[Array, int],
    settings: RowSettings,
    variance: float | None,
) -> tuple[Preprocessor, tuple[Any, Totals], tuple[Any, Totals]]:
    """Return the preprocessor, and the factors of the rows and the totals of both domains."""
    source_scale, source_factors, source_totals = _two_passes(source, settings, *labels)
    if target is source:
        target_scale, target_factors, target_totals = source_scale, source_factors, source_totals
    else:
        target_scale, target_factors, target_totals = _two_passes(target, settings, None, 0)
    principal = None
    if variance is not None:
        joint = source_totals.moments + target_totals.moments
        principal = axes_of_moments(joint, source.dtype, variance)
        source_totals = _project(source_totals, principal)
        target_totals = _project(target_totals, principal)
    preprocessor = Preprocessor(settings, source_scale, target_scale, principal)
    return preprocessor, (source_factors, source_totals), (target_factors, target_totals)


def _two_passes(
    raw: Any, settings: RowSettings, numbers: Array | None, n_known: int
) -> tuple[DomainScale | None, Any, Totals]:
    """Return column statistics, factors of the rows and totals of one domain."""
    sums, stats = raw.map_reduce(FirstPass(settings.row_sum, raw.name))
    if stats is None or raw.n_rows < 2:
        raise ValueError(f"Found array with fewer than 2 samples: {raw.name}.")
    if numbers is not None and raw.n_rows != len(numbers):
        raise ValueError(f"{raw.name} has {raw.n_rows} rows and y {len(numbers)} labels.")
    scale = None
    if settings.zscore:
        variance = stats.squares / stats.n_rows
        scale = scale_from(stats.n_rows, stats.mean, variance, raw.dtype, settings.floor)
    task = SecondPass(scale, settings.unit_norm, n_known)
    factors, totals = raw.map_reduce(task, (sums, numbers))
    moments = totals.moments
    mean_square = float(np.trace(moments.second)) / moments.n_rows
    require_variation(mean_square, moments.mean, moments.n_rows, raw.dtype, raw.name)
    return scale, factors, totals


def _project(totals: Totals, principal: Principal) -> Totals:
    """Return the totals of the coordinates along the axes of a PCA."""
    axes = principal.axes.astype(np.float64, copy=False)
    centred = totals.class_totals - np.outer(totals.class_counts, principal.mean)
    return Totals(
        totals.moments.projected(principal),
        None if totals.known is None else totals.known.projected(principal),
        centred @ axes,
        totals.class_counts,
    )


def identity_of(rows: Any) -> str:
    """Return what tells data from other data of the same kind."""
    if not isinstance(rows, np.ndarray):
        return str(rows.identity()) if hasattr(rows, "identity") else repr(rows.shape)
    return f"{rows.shape} of {rows.dtype}, {zlib.crc32(rows.tobytes()):08x}"


def root_mean_square(rows: Any) -> float:
    """Return the root mean square of the row norms."""
    if not isinstance(rows, np.ndarray):
        return float(np.sqrt(rows.square_norm() / len(rows)))
    return float(np.sqrt(np.einsum("ij,ij->", rows, rows, dtype=np.float64) / len(rows)))


def axes_of(*domains: Any, is_known: Array | None = None) -> Array:
    """Return the principal axes of arrays, or tables, in the coordinates of the fit.

    ``is_known`` restricts them to known source rows.
    """
    if isinstance(domains[0], np.ndarray):
        rows = [part if is_known is None else part[is_known] for part in domains]
        return principal_axes([Rows(part) for part in rows])[0].axes
    moments = [part.totals.moments if is_known is None else part.totals.known for part in domains]
    joint = sum(moments[1:], moments[0])
    return axes_of_moments(joint, domains[0].dtype).axes


def take_rows(rows: Any, mask: Array) -> Array:
    """Return the rows of an array or table that a mask picks."""
    picked: Array = rows[mask] if isinstance(rows, np.ndarray) else rows.take(mask)
    return picked
