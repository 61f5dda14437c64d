"""Sizes: growth with the rows, a file larger than memory's share, Dask, interruption.

Each part prints what it measured beside what is asked of it. Data are drawn in pieces and
written to a folder of their own, which is removed in the end.
"""

from __future__ import annotations

import logging
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from froda import FRODA
from froda.chunks import release
from froda.factorization import alternate
from froda.factorization.encoding import slices
from froda.factorization.initialize import from_source_axes
from froda.factorization.problem import Array, Problem, Record

Clock = Callable[[], float]
_PIECE = 20_000


@dataclass(frozen=True)
class Mixture:
    """Rows half from a shared subspace of classes 0 to 4 and half from a private one."""

    n_features: int
    width: int
    noise: float = 0.1
    seed: int = 0

    def frame(self) -> Array:
        """Return the shared basis, then the private one."""
        rng = np.random.default_rng(self.seed)
        return np.linalg.qr(rng.standard_normal((self.n_features, 2 * self.width)))[0]

    def rows(self, n_rows: int, *, is_source: bool, dtype: type) -> Iterator[tuple[Array, Array]]:
        """Yield pieces of rows and their classes."""
        rng = np.random.default_rng([self.seed, int(is_source)])
        frame = self.frame().astype(dtype)
        means = np.random.default_rng(self.seed).standard_normal((10, self.width))
        deviations = np.geomspace(1, 0.3, self.width)
        for some in slices(n_rows, _PIECE):
            size = some.stop - some.start
            numbers = rng.integers(0, 5 if is_source else 10, size)
            draws = rng.standard_normal((size, self.width), dtype=np.float32)
            codes = ((means[numbers] + draws) * deviations).astype(dtype)
            is_shared = (numbers < 5)[:, None]
            rows = np.where(is_shared, codes, 0) @ frame[:, : self.width].T
            rows += np.where(is_shared, 0, codes) @ frame[:, self.width :].T
            rows += dtype(self.noise) * rng.standard_normal(rows.shape, dtype=np.float32)
            yield rows, numbers

    def array(self, n_rows: int, *, is_source: bool, dtype: type) -> tuple[Array, Array]:
        """Return rows and classes in memory."""
        rows = np.empty((n_rows, self.n_features), dtype=dtype)
        numbers = np.empty(n_rows, dtype=int)
        first = 0
        for piece, classes in self.rows(n_rows, is_source=is_source, dtype=dtype):
            some = slice(first, first + len(piece))
            rows[some], numbers[some] = piece, classes
            first = some.stop
        return rows, numbers

    def file(self, path: Path, n_rows: int, dtype: type) -> None:
        """Write target rows to a file that can be mapped."""
        shape = (n_rows, self.n_features)
        mapped = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
        first = 0
        for piece, _ in self.rows(n_rows, is_source=False, dtype=dtype):
            mapped[first : first + len(piece)] = piece
            first += len(piece)
            release(mapped)
        mapped.flush()


def iteration_and_products(
    mixture: Mixture, n_target: int, n_source: int, dtype: type, now: Clock
) -> tuple[float, float]:
    """Return the seconds of an outer iteration and of its bare products, in memory."""
    Xt, _ = mixture.array(n_target, is_source=False, dtype=dtype)
    Xs, _ = mixture.array(n_source, is_source=True, dtype=dtype)
    Xt /= np.linalg.norm(Xt, axis=1, keepdims=True)
    Xs /= np.linalg.norm(Xs, axis=1, keepdims=True)
    axes = np.linalg.svd(Xs[:5000], full_matrices=False)[2][: mixture.width].T
    problem = Problem(Xs, Xt, 0.1, 0.4)
    n_iterations = 6 if n_target > _PIECE else 40
    ends: list[float] = []

    def note(_: Record) -> None:
        ends.append(now())

    solution = alternate.solve(
        problem, from_source_axes(problem, axes), max_iter=n_iterations, tol=-np.inf, callback=note
    )
    factors = solution.factors
    seconds = []
    for _ in range(max(4, 20_000 // n_target)):
        began = now()
        _ = Xt @ factors.target_basis
        _ = Xt.T @ factors.T
        _ = Xs @ factors.V
        _ = Xs.T @ factors.S
        seconds.append(now() - began)
    return float(np.median(np.diff(ends))), float(np.median(seconds))


def growth(now: Clock, largest: int = 1_000_000) -> None:
    """Print how the time per sample grows with the number of rows."""
    print("\nGrowth: D 256, d 32, n_s = n_t / 10 (at least 500), float64, in memory")
    print(f"{'n_t':>10s}{'s / iteration':>16s}{'us / sample':>14s}{'/ products':>12s}")
    per_sample = {}
    for n_target in (10**3, 10**4, 10**5, 10**6):
        if n_target > largest:
            continue
        n_source = max(n_target // 10, 500)
        ours, floor = iteration_and_products(Mixture(256, 32), n_target, n_source, np.float64, now)
        per_sample[n_target] = 1e6 * ours / (n_target + n_source)
        print(f"{n_target:10d}{ours:16.4f}{per_sample[n_target]:14.2f}{ours / floor:12.2f}")
    least = min(per_sample.values())
    worst = {n_target: value / least for n_target, value in per_sample.items()}
    print(
        "time per sample / the least: "
        + ", ".join(f"{n_target:g} {value:.2f}" for n_target, value in worst.items())
        + "  (target <= 1.3)"
    )
    ours, floor = iteration_and_products(Mixture(1024, 64), 10**5, 10**4, np.float64, now)
    print(f"n_t 1e5, D 1024, d 64: {ours:.3f} s, / products {ours / floor:.2f}  (target <= 1.5)")


def from_file(folder: Path, n_rows: int, now: Clock) -> None:
    """Print memory and speed of a fit from a mapped file, measured in a process of its own."""
    mixture = Mixture(1024, 32)
    path = folder / "target.npy"
    mixture.file(path, n_rows, np.float32)
    size = path.stat().st_size / 2**30
    code = f"import scale; scale.fit_file({str(path)!r}, {now is time.process_time})"
    here = Path(__file__).parent
    print(
        f"\nFrom a memory map: n_t {n_rows} x 1024 float32, {size:.1f} GiB on disk, d 32",
        flush=True,
    )
    subprocess.run([sys.executable, "-c", code], cwd=here, check=True)
    path.unlink()


def fit_file(path: str, counts_cpu: bool) -> None:
    """Fit from a file and print peak memory and the ratio to the bare streamed products."""
    now: Clock = time.process_time if counts_cpu else time.perf_counter
    mixture = Mixture(1024, 32)
    X, y = mixture.array(20_000, is_source=True, dtype=np.float32)
    target = np.load(path, mmap_mode="r")
    ends: list[float] = []

    def note(record: Record) -> bool:
        ends.append(now())
        return record.iteration == 6

    model = FRODA(n_components=32, callback=note, chunk_size=4096)
    began = time.perf_counter()
    model.fit(X, y, target)
    whole = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    basis = np.ascontiguousarray(np.ones((1024, 64), dtype=np.float32))
    codes, seconds = model.target_codes_, []
    for _ in range(3):
        began = now()
        total = np.zeros((1024, 64), dtype=np.float32)
        for some in slices(len(target), 4096):
            rows = target[some]
            _ = rows @ basis
            total += rows.T @ codes[some]
            release(target)
        seconds.append(now() - began)
    iteration, floor = float(np.median(np.diff(ends))), float(np.median(seconds))
    print(f"peak memory {peak:.2f} GiB  (target <= 2)")
    print(
        f"iteration {iteration:.2f} s, bare products in the same chunks {floor:.2f} s, "
        f"ratio {iteration / floor:.2f}  (target <= 2)"
    )
    print(f"fit with 6 iterations, preparation and SVM {whole:.0f} s on the wall")


def on_dask(folder: Path, n_rows: int = 120_000) -> None:
    """Print agreement, speed on two workers against one, and a run with a worker killed."""
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster

    mixture, path = Mixture(512, 32), folder / "dask.npy"
    mixture.file(path, n_rows, np.float64)
    shape = (n_rows // 8, 512)
    parts = [dask.delayed(_read)(path, some) for some in slices(n_rows, n_rows // 8)]
    X, y = mixture.array(3_000, is_source=True, dtype=np.float64)
    rows = np.load(path)
    settings = {"n_components": 32, "max_iter": 8, "tol": 0.0, "head": "nn", "head_rows": 2_000}
    expected = _quietly(FRODA(**settings), X, y, rows)
    seconds = {}
    print(f"\nDask: n_t {n_rows} x 512 float64, d 32, 8 iterations, single-thread workers")
    for n_workers in (1, 2):
        with (
            LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
                silence_logs=logging.ERROR,
            ) as cluster,
            Client(cluster) as client,
        ):
            lazy = da.concatenate([da.from_delayed(part, shape, rows.dtype) for part in parts])
            lazy = lazy.persist()
            _ = lazy.sum().compute()
            ends = []

            def note(_: Record, ends: list[float] = ends) -> None:
                ends.append(time.perf_counter())

            model = _quietly(FRODA(**settings, callback=note), X, y, lazy)
            seconds[n_workers] = float(np.median(np.diff(ends)))
            print(
                f"{n_workers} worker(s): {seconds[n_workers]:.3f} s an iteration, bases differ "
                f"from those in memory by {_difference(model, expected):.1e}  (target 1e-8)"
            )
            if n_workers == 2:
                _kill_one(client, settings, (X, y, lazy), expected)
    print(f"2 workers / 1 worker: {seconds[1] / seconds[2]:.2f} times as fast  (target >= 1.6)")


def _read(path: Path, some: slice) -> Array:
    """Read rows on a worker."""
    return np.array(np.load(path, mmap_mode="r")[some])


def _kill_one(client: object, settings: dict, data: tuple, expected: FRODA) -> None:
    """Kill a worker half-way and print whether the result is the same."""

    def kill(record: Record) -> None:
        if record.iteration == 4:
            name = next(iter(client.scheduler_info()["workers"]))
            os.kill(client.run(os.getpid, workers=[name])[name], signal.SIGKILL)

    model = _quietly(FRODA(**settings, callback=kill), *data)
    print(
        f"a worker killed after iteration 4 of 8: bases differ by "
        f"{_difference(model, expected):.1e}"
    )


def _quietly(model: FRODA, *data: Array) -> FRODA:
    """Fit without the warning that there were few iterations."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*data)


def _difference(model: FRODA, expected: FRODA) -> float:
    """Return the largest difference of the bases."""
    return max(
        float(np.abs(getattr(model, name) - getattr(expected, name)).max())
        for name in ("shared_basis_", "private_basis_")
    )


def interrupted(folder: Path, n_rows: int = 40_000) -> None:
    """Kill a streamed fit three times and print how far the resumed one ends from a whole one."""
    mixture = Mixture(256, 16)
    mixture.file(folder / "rows.npy", n_rows, np.float64)
    X, y = mixture.array(2_000, is_source=True, dtype=np.float64)
    np.savez(folder / "source.npz", X=X, y=y)
    rng = np.random.default_rng(0)
    here = Path(__file__).parent

    def start(name: str) -> subprocess.Popen:
        code = f"import scale; scale.fit_resumed({str(folder)!r}, {name!r})"
        return subprocess.Popen([sys.executable, "-c", code], cwd=here)

    if start("whole").wait():
        raise RuntimeError("the uninterrupted fit failed")
    for _ in range(3):
        process, loop = start("killed"), folder / "killed" / "loop.pickle"
        before = loop.stat().st_mtime_ns if loop.exists() else 0
        while process.poll() is None and not (loop.exists() and loop.stat().st_mtime_ns > before):
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.5))
        process.kill()
        if process.wait() != -signal.SIGKILL:
            raise RuntimeError("the fit was over before it was killed")
    if start("killed").wait():
        raise RuntimeError("the resumed fit failed")
    with np.load(folder / "whole.npz") as whole, np.load(folder / "killed.npz") as killed:
        difference = max(float(np.abs(whole[name] - killed[name]).max()) for name in "VU")
    print(
        f"\nInterrupted: a streamed fit of {n_rows} rows killed 3 times at random and resumed: "
        f"bases differ by {difference:.1e}  (target 1e-10)"
    )


def fit_resumed(folder: str, name: str) -> None:
    """Fit from the file in a folder with a checkpoint beside it, and store the bases."""
    path = Path(folder)
    data = np.load(path / "source.npz")
    model = FRODA(
        n_components=16, max_iter=30, tol=0.0, chunk_size=2_000, checkpoint=path / name, head="nn"
    )
    target = np.load(path / "rows.npy", mmap_mode="r")
    _quietly(model, data["X"], data["y"], target)
    np.savez(path / f"{name}.npz", V=model.shared_basis_, U=model.private_basis_)


def unchanged(n_rows: int = 20_000) -> None:
    """Print on how many rows predictions differ by chunk size, threads and engine."""
    import dask.array as da

    mixture = Mixture(128, 8, noise=0.3)
    X, y = mixture.array(2_000, is_source=True, dtype=np.float64)
    rows, _ = mixture.array(n_rows, is_source=False, dtype=np.float64)
    expected = FRODA(n_components=8).fit(X, y, rows).predict(rows)
    print(f"\nPredictions of {n_rows} rows that differ from those in memory on this many threads:")
    for chunk_size in (1_000, 3_333):
        labels = FRODA(n_components=8, chunk_size=chunk_size).fit(X, y, rows).predict(rows)
        print(f"chunks of {chunk_size}: {np.count_nonzero(labels != expected)}")
    lazy = da.from_array(rows, chunks=(4_000, 128))
    labels = FRODA(n_components=8).fit(X, y, lazy).predict(lazy).compute()
    print(f"Dask, threaded: {np.count_nonzero(labels != expected)}")
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            labels = FRODA(n_components=8).fit(X, y, rows).predict(rows)
        print(f"{n_threads} thread(s): {np.count_nonzero(labels != expected)}")


def passes(n_rows: int = 100_000) -> None:
    """Print how close a few passes come to full iterations."""
    mixture = Mixture(256, 16, noise=0.3)
    X, y = mixture.array(5_000, is_source=True, dtype=np.float64)
    rows, _ = mixture.array(n_rows, is_source=False, dtype=np.float64)
    full = _quietly(FRODA(n_components=16, tol=1e-6, head="nn", head_rows=1_000), X, y, rows)
    best = full.objective_[-1][2]
    print(f"\nPasses: n_t {n_rows} x 256, d 16; objective above that of {full.n_iter_} iterations")
    for n_passes in (2, 3, 5):
        model = FRODA(
            n_components=16, n_passes=n_passes, chunk_size=5_000, head="nn", head_rows=1_000
        )
        model.fit(X, y, rows)
        excess = model.objective_[-1][2] / best - 1
        print(f"{n_passes} passes: {excess:.2%}" + ("  (target <= 1 %)" if n_passes == 3 else ""))


def measure(parts: list[str], now: Clock) -> None:
    """Run the parts that are asked for."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "growth" in parts:
            growth(now)
        if "file" in parts:
            from_file(folder, 1_000_000, now)
        if "passes" in parts:
            passes()
        if "dask" in parts:
            on_dask(folder)
        if "interrupted" in parts:
            interrupted(folder)
        if "unchanged" in parts:
            unchanged()


PARTS = ("growth", "file", "passes", "dask", "interrupted", "unchanged")
