"""Runs jobs: data from the loaders, classes from the protocol, fits timed, the judge last."""

from __future__ import annotations

import itertools
import json
import time
import warnings
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from froda.bench.methods import METHODS
from froda.bench.store import Job, Store, machine, versions
from froda.datasets import OpenSetTask
from froda.datasets.loaders import DATASETS, dataset_domains, load_domain
from froda.datasets.protocols import make_task
from froda.metrics import oscr


def make_jobs(
    dataset: str,
    folder: Path | None,
    *,
    features: str | None,
    split: str | None,
    pairs: Iterable[tuple[str, str]] | None,
    methods: Iterable[str],
    seeds: Iterable[int],
) -> list[Job]:
    """Return the jobs of a comparison, pair by pair; None takes what is usual for the data."""
    domains = dataset_domains(dataset, folder)
    entry = DATASETS[dataset]
    features, split = features or entry.features[0], split or entry.split
    if pairs is None:
        pairs = entry.pairs or itertools.permutations(domains, 2)
    pairs = list(pairs)
    for source, target in pairs:
        if source == target:
            raise ValueError(
                f"pair {source}-{target}: source and target are the same samples, so a method "
                "would be given the answers; choose two domains."
            )
    return [
        Job(dataset, features, split, source, target, seed, method)
        for seed in seeds
        for source, target in pairs
        for method in methods
    ]


@lru_cache(maxsize=4)
def _domain(dataset: str, name: str, folder: Path | None, features: str) -> Any:
    """Read a domain once per process."""
    return load_domain(dataset, name, folder, features)


def task_of(job: Job, folder: Path | None) -> OpenSetTask:
    """Return the task of a job; errors in data or protocol come from here."""
    source = _domain(job.dataset, job.source, folder, job.features)
    target = _domain(job.dataset, job.target, folder, job.features)
    return make_task(source, target, job.split, job.seed)


def run_job(job: Job, folder: Path | None, threads: int | None = None) -> dict[str, Any]:
    """Fit, predict and judge; a method that fails gives a row that says why."""
    task = task_of(job, folder)
    row: dict[str, Any] = {
        "status": "ok",
        "reason": "",
        "description": task.description,
        "n_source": len(task.X),
        "n_target": len(task.X_target),
        "versions": json.dumps(versions()),
        "machine": json.dumps(machine()),
        "threads": threads,
    }
    model = METHODS[job.method]()
    row["settings"] = json.dumps(model.get_params(), default=str, sort_keys=True)
    with threadpool_limits(threads), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        visible = task.visible()
        clock = _Clock()
        try:
            model.fit(*visible)
            labels = model.predict(visible.X_target)
            row |= clock.read()
            score = np.asarray(model.unknown_score(visible.X_target), dtype=np.float64)
            known = model.decision_function(visible.X_target)[:, :-1].argmax(axis=1)
            best_known = np.asarray(model.classes_)[known]
            row |= task.score(labels, score)
            # The curve runs over all thresholds, so it is not for the method's own to decide.
            row["OSCR"] = oscr(task.y_target, best_known, score, unknown_label=task.unknown_label)
            row |= {
                "y_true": task.y_target.tolist(),
                "y_pred": np.asarray(labels).tolist(),
                "best_known": best_known.tolist(),
                "unknown_score": score.tolist(),
                "threshold": _threshold(model),
            }
        except Exception as error:  # whatever a method does wrong is a result
            reason = f"{type(error).__name__}: {error}"
            row |= {"status": "failed", "reason": reason} | clock.read()
    row["warnings"] = "; ".join(sorted({str(entry.message) for entry in caught}))[:2000]
    row["finished"] = datetime.now(UTC).isoformat(timespec="milliseconds")
    return row


class _Clock:
    """Seconds on the wall and on the processor, which others on the machine disturb less."""

    def __init__(self) -> None:
        self._wall, self._processor = time.perf_counter(), time.process_time()

    def read(self) -> dict[str, float]:
        """Return the seconds since the clock was made."""
        wall, processor = time.perf_counter(), time.process_time()
        return {"seconds": wall - self._wall, "cpu_seconds": processor - self._processor}


def _threshold(model: Any) -> float:
    """Return the unknown score from which on the method calls a sample unknown, if it has one."""
    for name in ("unknown_threshold_", "threshold_"):
        if hasattr(model, name):
            return float(getattr(model, name))
    return float("nan")


def run_jobs(
    jobs: list[Job], store: Store, folder: Path | None, n_processes: int = 1
) -> Iterator[tuple[Job, dict[str, Any]]]:
    """Run what the store does not hold yet and yield each row as it is stored."""
    todo = [job for job in jobs if not store.has(job)]
    threads = 1 if n_processes > 1 else None
    run = delayed(_run_and_name)
    results = Parallel(n_jobs=n_processes, return_as="generator_unordered")(
        run(job, folder, threads) for job in todo
    )
    for job, row in results:
        store.write(job, row)
        yield job, row


def _run_and_name(job: Job, folder: Path | None, threads: int | None) -> tuple[Job, dict[str, Any]]:
    """Return the job with its row, for results that come in any order."""
    return job, run_job(job, folder, threads)
