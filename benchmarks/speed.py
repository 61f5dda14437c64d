"""Print every figure on speed and size, as ratios within one run.

Everything is timed in turns, so that a busy machine disturbs all alike, and stated as
ratios of medians:

* iterations: an outer iteration against its floor, the bare products with the data that it
  cannot do without (Xt B, Xtᵀ T, Xs V, Xsᵀ S), and against the paper's algorithm taken
  literally; the reference runs on one thread as well as on all of them and the faster
  counts, since its many small products can be slower on several threads;
* objective: the time until the objective is within 1e-4 of what 50 iterations of the
  reference reach;
* end: raw 4096-dimensional features to predictions, stage by stage, beside the bare
  products and the one eigendecomposition in it;
* peers: the fits of other methods on the same features (skada's need ``--group neighbours``);
* growth, file, passes, dask, interrupted, unchanged: see ``scale.py``.

On a busy machine ``--clock cpu`` with one thread counts the seconds that the process had a
core, not those that it waited for one.

    python benchmarks/speed.py
    python benchmarks/speed.py --threads 1 --clock cpu --parts iterations objective
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import literal
import numpy as np
import scale
from problems import PAPER_SIZE, VARIANTS, Features, Planted, network_like_features, planted
from sklearn.svm import SVC
from threadpoolctl import threadpool_info, threadpool_limits

from froda import FRODA
from froda.baselines import ATI, CORAL, SA, TCA
from froda.dimension import subspace_disagreement
from froda.factorization import alternate
from froda.factorization.initialize import from_source_axes
from froda.factorization.objective import evaluate_directly
from froda.factorization.problem import Array, Problem, Record
from froda.heads import make_head
from froda.pca import principal_axes
from froda.preprocessing import RowSettings, fit_preprocessor
from froda.rows import Rows

FLOOR_TARGET, LITERAL_TARGET, OBJECTIVE_TARGET, SECONDS_TARGET = 2.5, 15.0, 30.0, 1.0
ATI_TARGET = 20.0
PARTS = ("iterations", "objective", "end", "peers", *scale.PARTS)
LITERAL_ITERATIONS, ACCURACY = 50, 1e-4
PRODUCT_ROUNDS = 5
BUSY_LOAD = 0.5
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
Clock = Callable[[], float]


@dataclass
class Contender:
    """Something that yields seconds per iteration, and what has been measured of it."""

    name: str
    measure: Callable[[], list[float]]
    floor: str = ""
    ours: str = ""
    seconds: list[float] = field(default_factory=list)

    @property
    def milliseconds(self) -> Array:
        """Return the quartiles of an iteration."""
        return 1e3 * np.quantile(self.seconds, [0.25, 0.5, 0.75])

    @property
    def median(self) -> float:
        """Return the median of an iteration, in milliseconds."""
        return float(self.milliseconds[1])


def product_seconds(case: Planted, iterations: int, now: Clock) -> list[float]:
    """Time the products of one iteration with codes as they are after the first."""
    problem = case.problem
    factors = alternate.solve(problem, case.point, max_iter=1, tol=-np.inf).factors
    target_basis, source_basis, T, S = (
        factors.target_basis,
        factors.source_basis,
        factors.T,
        factors.S,
    )
    seconds = []
    for _ in range(iterations * PRODUCT_ROUNDS):
        began = now()
        _ = problem.Xt @ target_basis
        _ = problem.Xt.T @ T
        _ = problem.Xs @ source_basis
        _ = problem.Xs.T @ S
        seconds.append(now() - began)
    return seconds


def package_seconds(case: Planted, iterations: int, now: Clock) -> list[float]:
    """Time iterations 2, 3, ... of the package, its record of the objective included."""
    ends: list[float] = []

    def note(_: Record) -> None:
        ends.append(now())

    alternate.solve(case.problem, case.point, max_iter=iterations + 1, tol=-np.inf, callback=note)
    return list(np.diff(ends))


def literal_seconds(
    case: Planted, iterations: int, settings: literal.Settings, now: Clock
) -> list[float]:
    """Time iterations 2, 3, ... of the reference, which keeps no record of the objective."""
    seconds = []
    with threadpool_limits(settings.n_threads):
        factors = literal.start(case.problem, case.point, settings)
        for _ in range(iterations + 1):
            began = now()
            factors = literal.iterate(case.problem, factors, settings)
            seconds.append(now() - began)
    return seconds[1:]


def literal_name(variant: str, solver: str) -> str:
    """Return how the table calls the reference."""
    return f"literal {variant} {solver}"


def contenders(iterations: int, n_threads: int, now: Clock) -> list[Contender]:
    """List what takes turns: floors, the package, the literal reference."""
    cases = {variant: planted(PAPER_SIZE, variant) for variant in VARIANTS}
    listed = []
    for variant, case in cases.items():
        floor = f"products of {variant}"
        listed.append(Contender(floor, partial(product_seconds, case, iterations, now)))
        measure = partial(package_seconds, case, iterations, now)
        listed.append(Contender(f"froda {variant}", measure, floor))
    for variant in VARIANTS:
        case = planted(PAPER_SIZE, variant, "total")
        measure = partial(package_seconds, case, iterations, now)
        listed.append(Contender(f"froda {variant} total", measure, f"products of {variant}"))
    for variant, case in cases.items():
        for solver in literal.CODE_SOLVERS:
            if solver == "spams-defaults" and variant != "FRODA":
                continue
            for threads in sorted({1, n_threads} if variant == "FRODA" else {1}):
                settings = literal.Settings(solver, threads)
                measure = partial(literal_seconds, case, iterations, settings, now)
                name = f"{literal_name(variant, solver)}, {threads} thr."
                floor, ours = f"products of {variant}", f"froda {variant}"
                listed.append(Contender(name, measure, floor, ours))
    return listed


def time_iterations(repeats: int, iterations: int, n_threads: int, now: Clock) -> None:
    """Let all contenders take turns, then print the table and the two ratios with a target."""
    listed = contenders(iterations, n_threads, now)
    for contender in listed:
        contender.measure()
    for _ in range(repeats):
        for contender in listed:
            contender.seconds += contender.measure()
    by_name = {contender.name: contender for contender in listed}
    print(
        f"\nOne outer iteration: n_s {PAPER_SIZE.n_source}, n_t {PAPER_SIZE.n_target}, "
        f"D {PAPER_SIZE.n_features}, d {PAPER_SIZE.width}, float64; iterations 2 to "
        f"{iterations + 1}, {repeats} turns"
    )
    print(f"{'':38s}{'median ms':>10s}{'quartiles':>16s}{'/ products':>12s}{'/ froda':>9s}")
    for contender in listed:
        low, middle, high = contender.milliseconds
        line = f"{contender.name:38s}{middle:10.2f}{low:8.2f}{high:8.2f}"
        if contender.floor:
            line += f"{middle / by_name[contender.floor].median:12.2f}"
        if contender.ours:
            line += f"{middle / by_name[contender.ours].median:9.2f}"
        print(line)
    ours = by_name["froda FRODA"].median
    against_floor = ours / by_name["products of FRODA"].median
    print(f"\nfroda / products, FRODA: {against_floor:.2f}  (target <= {FLOOR_TARGET:g})")
    for solver in literal.CODE_SOLVERS:
        start = f"{literal_name('FRODA', solver)},"
        fastest = min((c for c in listed if c.name.startswith(start)), key=lambda c: c.median)
        ratio = fastest.median / ours
        print(f"{fastest.name} / froda: {ratio:.1f}  (target >= {LITERAL_TARGET:g})")


def time_to_objective(repeats: int, n_threads: int, now: Clock) -> None:
    """Print how long both take until the objective is that of 50 literal iterations."""
    print(f"\nTo within {ACCURACY:g} of the objective of {LITERAL_ITERATIONS} literal iterations")
    for variant in VARIANTS:
        case = planted(PAPER_SIZE, variant)
        solver = literal.CODE_SOLVERS[0]
        seconds, values = literal_path(case, literal.Settings(solver, n_threads), now)
        aim = values[-1] * (1 + ACCURACY)
        theirs = int(np.argmax(np.array(values) <= aim))
        paths = [package_path(case, now) for _ in range(repeats)]
        ours = int(np.argmax(np.array(paths[0][1]) <= aim))
        middle = float(np.median([path[0][ours] for path in paths]))
        print(
            f"{variant:10s} literal {solver}: {theirs + 1} iterations, {seconds[theirs]:.2f} s; "
            f"froda: {ours + 1} iterations, {middle:.3f} s; ratio {seconds[theirs] / middle:.1f}"
            + (f"  (target >= {OBJECTIVE_TARGET:g})" if variant == "FRODA" else "")
        )


def literal_path(
    case: Planted, settings: literal.Settings, now: Clock
) -> tuple[list[float], list[float]]:
    """Return seconds and objective of the reference after each iteration."""
    seconds, values = [], []
    with threadpool_limits(settings.n_threads):
        began = now()
        factors = literal.start(case.problem, case.point, settings)
        spent = now() - began
        for _ in range(LITERAL_ITERATIONS):
            began = now()
            factors = literal.iterate(case.problem, factors, settings)
            spent += now() - began
            seconds.append(spent)
            values.append(evaluate_directly(case.problem, factors))
    return seconds, values


def package_path(case: Planted, now: Clock) -> tuple[list[float], list[float]]:
    """Return seconds and objective of the package after each iteration, from before the start."""
    seconds: list[float] = []
    values: list[float] = []
    began = now()

    def note(record: Record) -> None:
        seconds.append(now() - began)
        values.append(record.objective)

    alternate.solve(
        case.problem, case.point, max_iter=LITERAL_ITERATIONS, tol=-np.inf, callback=note
    )
    return seconds, values


def fit_and_predict(data: Features, now: Clock, *, together: bool) -> float:
    """Return the seconds from raw features to predictions, in one call or in two."""
    estimator = FRODA()
    began = now()
    if together:
        estimator.fit_predict(data.Xs, data.ys, data.Xt)
    else:
        estimator.fit(data.Xs, data.ys, data.Xt).predict(data.Xt)
    return now() - began


def bound_seconds(data: Features, fitted: FRODA, now: Clock) -> float:
    """Return the seconds of the products and of the eigendecomposition that a fit cannot avoid."""
    rows = np.vstack([data.Xs, data.Xt])
    n_kept, n_source = fitted.shared_basis_.shape[0], len(data.Xs)
    coordinates = np.ascontiguousarray(rows[:, :n_kept])
    basis = np.hstack([fitted.shared_basis_, fitted.private_basis_])
    began = now()
    vectors = np.linalg.eigh(rows @ rows.T)[1]
    _ = rows.T @ vectors[:, :n_kept]
    for _ in range(fitted.n_iter_):
        codes = coordinates[n_source:] @ basis
        _ = coordinates[n_source:].T @ codes
        codes = coordinates[:n_source] @ fitted.shared_basis_
        _ = coordinates[:n_source].T @ codes
    return now() - began


@contextmanager
def stage(stages: dict[str, float], name: str, now: Clock) -> Iterator[None]:
    """Put the seconds of a block under ``name``."""
    began = now()
    yield
    stages[name] = now() - began


def time_stages(data: Features, fitted: FRODA, now: Clock) -> dict[str, float]:
    """Take the steps of ``fit`` and ``predict`` one at a time, as a fitted estimator did."""
    stages: dict[str, float] = {}
    with stage(stages, "row scaling, z-score, joint PCA", now):
        settings = RowSettings(fitted.row_sum, fitted.zscore, fitted.unit_norm)
        _, source, target = fit_preprocessor(data.Xs, data.Xt, settings, fitted.pca_variance)
    with stage(stages, "axes and subspace disagreement", now):
        source_axes = principal_axes([Rows(source)])[0].axes
        target_axes = principal_axes([Rows(target)])[0].axes
        most = min(source_axes.shape[1], target_axes.shape[1], source.shape[1] // 2)
        width, _ = subspace_disagreement(source_axes, target_axes, most)
    with stage(stages, f"factorisation, {fitted.n_iter_} iterations", now):
        size = float(np.sqrt(np.mean(np.sum(target**2, axis=1))))
        problem = Problem(source, target, fitted.alpha, fitted.lam * size)
        point = from_source_axes(problem, source_axes[:, :width])
        alternate.solve(problem, point, max_iter=fitted.max_iter, tol=fitted.tol)
    with stage(stages, "training of the SVM", now):
        flagged = fitted.unknown_mask_
        features = np.vstack([source, target[flagged]])
        labels = np.append(data.ys, np.full(np.count_nonzero(flagged), data.n_known))
        make_head("svm", features, None).fit(features, labels)
    with stage(stages, "predict", now):
        fitted.predict(data.Xt)
    return stages


def time_end_to_end(repeats: int, now: Clock) -> None:
    """Print the seconds from raw features to predictions and the share of each stage."""
    data = network_like_features()
    fitted = FRODA().fit(data.Xs, data.ys, data.Xt)
    totals: dict[bool, list[float]] = {True: [], False: []}
    measured, bounds = [], []
    for _ in range(repeats):
        for together, seconds in totals.items():
            seconds.append(fit_and_predict(data, now, together=together))
        measured.append(time_stages(data, fitted, now))
        bounds.append(bound_seconds(data, fitted, now))
    print(
        f"\nRaw features to predictions: n_s {len(data.Xs)}, n_t {len(data.Xt)}, "
        f"{data.Xs.shape[1]} features, {fitted.n_iter_} iterations; the fit chose "
        f"D {fitted.shared_basis_.shape[0]}, d {fitted.n_components_}; {repeats} turns"
    )
    for together, name in ((True, "fit_predict"), (False, "fit, then predict")):
        each = totals[together]
        print(
            f"{name:38s}{np.median(each):8.3f} s  ({min(each):.3f} to {max(each):.3f}; "
            f"target <= {SECONDS_TARGET:g} s)"
        )
    print(f"{'bare products, one eigendecomposition':38s}{np.median(bounds):8.3f} s")
    stages = {name: float(np.median([each[name] for each in measured])) for name in measured[0]}
    together_seconds = sum(stages.values())
    print(f"{'the stages one at a time':38s}{together_seconds:8.3f} s")
    for name, seconds in stages.items():
        print(f"  {name:36s}{seconds:8.3f} s {seconds / together_seconds:6.1%}")


def time_peers(repeats: int, now: Clock) -> None:
    """Print how long other methods take to be fitted on the same raw features."""
    data = network_like_features()
    fits: dict[str, Callable[[], object]] = {
        "FRODA": lambda: FRODA().fit(data.Xs, data.ys, data.Xt)
    }
    for method in (CORAL(), SA(), TCA(), ATI(), ATI(variant="lambda-N1")):
        name = f"{type(method).__name__} {getattr(method, 'variant', '')}".strip()
        fits[name] = partial(method.fit, data.Xs, data.ys, data.Xt)
    fits |= skada_fits(data, FRODA().fit(data.Xs, data.ys, data.Xt).n_components_)
    print(f"\nFits on {data.Xs.shape[1]} raw features, n_s {len(data.Xs)}, n_t {len(data.Xt)}")
    seconds: dict[str, float] = {}
    for name, fit in fits.items():
        n_turns = repeats if name == "FRODA" else 1
        each = []
        for _ in range(n_turns):
            began = now()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fit()
            each.append(now() - began)
        seconds[name] = float(np.median(each))
        target = f"  (target >= {ATI_TARGET:g})" if name.startswith("ATI") else ""
        ratio = seconds[name] / seconds["FRODA"]
        print(f"{name:20s}{seconds[name]:8.2f} s {ratio:8.2f} / FRODA{target}", flush=True)


def skada_fits(data: Features, width: int) -> dict[str, Callable[[], object]]:
    """Return the fits of skada's CORAL, SA and TCA, each with a linear SVM, where it is there."""
    try:
        import skada
    except ImportError:
        print("\nskada is not installed: pip install --group neighbours")
        return {}
    X = np.vstack([data.Xs, data.Xt])
    y = np.append(data.ys, np.full(len(data.Xt), -1))
    domains = np.append(np.ones(len(data.Xs)), np.full(len(data.Xt), -2))
    svm = SVC(kernel="linear")
    methods = {
        "skada CORAL": skada.CORAL(svm),
        "skada SA": skada.SubspaceAlignment(svm, n_components=width),
        "skada TCA": skada.TransferComponentAnalysis(svm, n_components=width),
    }
    return {
        name: partial(method.fit, X, y, sample_domain=domains) for name, method in methods.items()
    }


def describe_machine() -> None:
    """Print the thread pools in use and how busy the machine is."""
    for pool in threadpool_info():
        library = os.path.basename(pool["filepath"])
        print(f"{pool['num_threads']} thread(s): {pool['user_api']} {library}")
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load average {load:.2f} over the last minute")
    if load > BUSY_LOAD:
        print("The machine is busy: figures on several threads say more about that than about us.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return 0."""
    parser = argparse.ArgumentParser(description="Print every figure on speed and size.")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="threads of BLAS")
    parser.add_argument("--repeats", type=int, default=5, help="turns that each contender takes")
    parser.add_argument("--iterations", type=int, default=5, help="iterations timed in a turn")
    parser.add_argument("--clock", choices=tuple(CLOCKS), default="wall", help="what is counted")
    parser.add_argument(
        "--parts", nargs="+", choices=PARTS, default=list(PARTS), help="what to run"
    )
    options = parser.parse_args(arguments)
    now, parts = CLOCKS[options.clock], list(options.parts)
    for n_threads in options.threads:
        with threadpool_limits(n_threads):
            describe_machine()
            print(f"{options.clock} clock, {n_threads} thread(s)")
            if "iterations" in parts:
                time_iterations(options.repeats, options.iterations, n_threads, now)
            if "objective" in parts:
                time_to_objective(options.repeats, n_threads, now)
            if "end" in parts:
                time_end_to_end(options.repeats, now)
    with threadpool_limits(options.threads[0]):
        if "peers" in parts:
            time_peers(options.repeats, now)
        scale.measure(parts, now)
    print(f"\nload average at the end {os.getloadavg()[0]:.2f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
