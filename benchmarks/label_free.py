"""What ProgressiveMixture owes to each of its parts, and how it stands beside the others.

    python benchmarks/label_free.py ablation DATA --out FOLDER
    python benchmarks/label_free.py shares DATA --out FOLDER
    python benchmarks/label_free.py habits DATA --out FOLDER
    python benchmarks/label_free.py report RESULTS_OF_FRODA_BENCH

DATA is the folder that holds office_caltech10, pie_multiview and digits. ``ablation`` leaves each
part out in turn and swaps the seeds; ``shares`` draws targets with 0 to 90 % unknown samples;
``habits`` asks for new samples and for calibration; all on the judging splits of
label_free_plan.md. ``report`` compares stored rows of ``froda bench`` and bootstraps over pairs
and splits. Tasks that are done are not done again.
"""

from __future__ import annotations

import argparse
import itertools
import json
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from froda import FRODA, ProgressiveMixture
from froda.baselines import OSLPP, OSVM
from froda.bench.store import Store
from froda.datasets import OpenSetTask
from froda.datasets.loaders import dataset_domains, load_domain
from froda.datasets.protocols import make_task
from froda.factorization.problem import Array
from froda.metrics import open_set_scores, oscr
from froda.openset import otsu_cut
from froda.progressive.evidence import Evidence, standardise

METRICS = ("OS", "OS*", "UNK", "HOS", "AUROC", "OSCR")
SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9)
PIE_PAIRS = tuple(
    pair
    for pair in itertools.permutations(("C05", "C09", "C25", "C27", "C37"), 2)
    if "C09" in pair or "C27" in pair
)
HALVES = (("half", 0), ("second-half", 0))


@dataclass(frozen=True)
class Collection:
    """One collection of the plan with its judging splits."""

    dataset: str
    folder: str | None
    features: str
    pairs: tuple[tuple[str, str], ...] | None
    splits: tuple[tuple[str, int], ...]


COLLECTIONS = {
    "Office-Caltech10, AlexNet": Collection(
        "office-caltech10",
        "office_caltech10",
        "alexnet4096",
        None,
        (*HALVES, ("random-5-known", 201), ("random-5-known", 202)),
    ),
    "Office-Caltech10, SURF": Collection(
        "office-caltech10",
        "office_caltech10",
        "surf800",
        None,
        (*HALVES, ("random-5-known", 201), ("random-5-known", 202)),
    ),
    "PIE": Collection(
        "pie",
        "pie_multiview",
        "pixels",
        PIE_PAIRS,
        tuple(("random-20-known-30-unknown", seed) for seed in (201, 202, 203)),
    ),
    "digits": Collection(
        "digits",
        None,
        "gradients",
        (("mnist", "digits"), ("digits", "mnist")),
        (*HALVES, *(("random-5-known", seed) for seed in (201, 202, 203))),
    ),
    "MNIST and USPS": Collection(
        "mnist-usps",
        "digits",
        "pixels",
        (("mnist", "usps"), ("usps", "mnist")),
        (*HALVES, *(("random-5-known", seed) for seed in (201, 202, 203))),
    ),
}


def judging_tasks(data: Path) -> Iterator[tuple[tuple[str, str, str, int], OpenSetTask]]:
    """Yield (collection, pair, split, seed) and the task, collection by collection."""
    for name, entry in COLLECTIONS.items():
        folder = data / entry.folder if entry.folder else None
        names = dataset_domains(entry.dataset, folder)
        domains = {
            domain: load_domain(entry.dataset, domain, folder, entry.features) for domain in names
        }
        pairs = entry.pairs or tuple(itertools.permutations(names, 2))
        for (split, seed), (source, target) in itertools.product(entry.splits, pairs):
            task = make_task(domains[source], domains[target], split, seed)
            yield (name, f"{source}-{target}", split, seed), task


class DoubtAlone(ProgressiveMixture):
    """Seeds from the classifier's doubt alone, and no evidence in the margins."""

    def _look(self, near: Array, numbers: Array, far: Array) -> Evidence:
        return replace(super()._look(near, numbers, far), agreement=0.0)


class SeedsFromOutside(ProgressiveMixture):
    """Seeds from the share outside the subspace alone."""

    def _suspect(self, evidence: Evidence, far: Array) -> tuple[Array, Array]:
        suspicion = evidence.outside(far)
        return suspicion, suspicion > otsu_cut(suspicion)


class NoLean(ProgressiveMixture):
    """The share outside counts for the seeds, not in the margins."""

    def _round_settings(self, agreement: float) -> Any:
        return replace(super()._round_settings(agreement), lean=0.0)


@dataclass(frozen=True)
class FactorEvidence(Evidence):
    """The unknown score of FRODA in the place of the share outside the subspace."""

    factorisation: Any = None

    def outside(self, rows: Array) -> Array:
        """Return FRODA's unknown score, standardised."""
        return standardise(self.factorisation.unknown_score(rows))


def factorise(near: Array, numbers: Array, far: Array) -> FRODA:
    """Fit FRODA on rows that are prepared already."""
    model = FRODA(row_sum=False, zscore=False, pca_variance=None)
    return model.fit(near, numbers, far)


class WithFactorisation(ProgressiveMixture):
    """FRODA's unknown score instead of the share outside, as seeds and in the margins."""

    def _look(self, near: Array, numbers: Array, far: Array) -> Evidence:
        views = super()._look(near, numbers, far)
        fields = {name: getattr(views, name) for name in views.__dataclass_fields__}
        mine = FactorEvidence(**fields, factorisation=factorise(near, numbers, far))
        ranks = np.corrcoef(_ranks(mine.doubt(far)), _ranks(mine.outside(far)))[0, 1]
        return replace(mine, agreement=float(np.nan_to_num(max(ranks, 0.0))))


class CountOfFactorisation(ProgressiveMixture):
    """Seeds by the doubt, as many as FRODA flags."""

    def _look(self, near: Array, numbers: Array, far: Array) -> Evidence:
        self._count = int(factorise(near, numbers, far).unknown_mask_.sum())
        return super()._look(near, numbers, far)

    def _suspect(self, evidence: Evidence, far: Array) -> tuple[Array, Array]:
        suspicion = super()._suspect(evidence, far)[0]
        flagged = np.zeros(len(far), dtype=bool)
        flagged[np.argsort(-suspicion, kind="stable")[: self._count]] = True
        return suspicion, flagged


class AllAtOnce(ProgressiveMixture):
    """Every row is labelled in every round."""

    def _round_settings(self, agreement: float) -> Any:
        return replace(super()._round_settings(agreement), first_share=1.0)


class NoMerging(ProgressiveMixture):
    """Unknown clusters stay, however close they come to a known class."""

    def _round_settings(self, agreement: float) -> Any:
        return replace(super()._round_settings(agreement), apart=1.0)


class SourceCentres(ProgressiveMixture):
    """Known centres are those of the source."""

    def _round_settings(self, agreement: float) -> Any:
        return replace(super()._round_settings(agreement), target_weight=0.0)


def _ranks(values: Array) -> Array:
    """Return ranks; ties as they come."""
    ranks = np.empty(len(values))
    ranks[np.argsort(values, kind="stable")] = np.arange(len(values))
    return ranks


ABLATIONS: dict[str, Callable[[], Any]] = {
    "as it is": ProgressiveMixture,
    "seeds: doubt alone": DoubtAlone,
    "seeds: share outside alone": SeedsFromOutside,
    "FRODA's score for the share outside": WithFactorisation,
    "as many seeds as FRODA flags": CountOfFactorisation,
    "no share outside in the margins": NoLean,
    "one unknown cluster": partial(ProgressiveMixture, n_clusters=1),
    "one round": partial(ProgressiveMixture, n_rounds=1),
    "all rows at once": AllAtOnce,
    "no merging": NoMerging,
    "centres of the source alone": SourceCentres,
    "plain z-score": partial(ProgressiveMixture, floor=0.0),
    "no z-score": partial(ProgressiveMixture, zscore=False),
    "rows divided by their sums": partial(ProgressiveMixture, row_sum=True),
    "other seed of the clustering": partial(ProgressiveMixture, random_state=1),
}
CURVES: dict[str, Callable[[], Any]] = {
    "ProgressiveMixture": ProgressiveMixture,
    "FRODA": FRODA,
    "OSVM": OSVM,
    "OSLPP, 32/32, .15": partial(OSLPP, pca_components=32, lpp_components=32),
}


def judge(task: OpenSetTask, make: Callable[[], Any]) -> dict[str, float]:
    """Fit, predict and score one method on one task."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        visible = task.visible()
        model = make().fit(*visible)
        scores = model.decision_function(visible.X_target)
        unknown = model.unknown_score(visible.X_target)
    labels = model.classes_[scores.argmax(axis=1)]
    best = model.classes_[scores[:, :-1].argmax(axis=1)]
    found = open_set_scores(task.y_target, labels, unknown, unknown_label=task.unknown_label)
    found["OSCR"] = oscr(task.y_target, best, unknown, unknown_label=task.unknown_label)
    found["share"] = float(np.mean(labels == task.unknown_label))
    return {name: float(value) for name, value in found.items()}


def with_share(task: OpenSetTask, share: float, seed: int = 0) -> OpenSetTask:
    """Return the task with a target of which the given share is of unknown classes."""
    rng = np.random.default_rng(seed)
    known = np.flatnonzero(task.y_target != task.unknown_label)
    unknown = np.flatnonzero(task.y_target == task.unknown_label)
    if share * len(known) <= (1 - share) * len(unknown):
        unknown = rng.permutation(unknown)[: round(share / (1 - share) * len(known))]
    else:
        known = rng.permutation(known)[: max(round((1 - share) / share * len(unknown)), 10)]
    rows = rng.permutation(np.concatenate([known, unknown]))
    return replace(
        task, X_target=task.X_target[rows], y_target=task.y_target[rows], y_target_fine=None
    )


def run_ablation(task: OpenSetTask) -> dict[str, Any]:
    """Judge every variant."""
    return {name: judge(task, make) for name, make in ABLATIONS.items()}


def run_shares(task: OpenSetTask) -> dict[str, Any]:
    """Judge the methods at every share of unknown samples."""
    return {
        f"{name} at {share:g}": judge(with_share(task, share), make)
        for share in SHARES
        for name, make in CURVES.items()
    }


def run_habits(task: OpenSetTask) -> dict[str, Any]:
    """Ask how new samples are labelled and what the probabilities are worth."""
    X, y, X_target = task.visible()
    held_out = np.arange(len(X_target)) % 3 == 0
    with threadpool_limits(1):
        whole = ProgressiveMixture().fit(X, y, X_target)
        part = ProgressiveMixture().fit(X, y, X_target[~held_out])
    chances = whole.predict_proba(X_target)
    unknown = task.y_target == task.unknown_label
    fresh, old = part.predict(X_target[held_out]), part.predict(X_target[~held_out])
    with_them = whole.predict(X_target)
    column = np.searchsorted(whole.classes_[:-1], task.y_target)
    column[unknown] = len(whole.classes_) - 1
    return {
        "agreement, held-out third": float(np.mean(fresh == with_them[held_out])),
        "agreement, other two thirds": float(np.mean(old == with_them[~held_out])),
        "accuracy, held-out third": float(np.mean(fresh == task.y_target[held_out])),
        "accuracy, when it is in the fit": float(
            np.mean(with_them[held_out] == task.y_target[held_out])
        ),
        "ECE of the unknown column": calibration_error(chances[:, -1], unknown),
        "ECE of the largest column": calibration_error(
            chances.max(axis=1), chances.argmax(axis=1) == column
        ),
        "curve": reliability(chances[:, -1], unknown),
    }


def reliability(chances: Array, hits: Array, n_bins: int = 10) -> list[list[float]]:
    """Return number, mean probability and share of hits of each bin."""
    bins = np.minimum((chances * n_bins).astype(int), n_bins - 1)
    return [
        [float((bins == k).sum()), float(chances[bins == k].mean()), float(hits[bins == k].mean())]
        if np.any(bins == k)
        else [0.0, 0.0, 0.0]
        for k in range(n_bins)
    ]


def calibration_error(chances: Array, hits: Array) -> float:
    """Return the expected calibration error over ten bins."""
    rows = np.array(reliability(chances, hits))
    return float(np.sum(rows[:, 0] * np.abs(rows[:, 1] - rows[:, 2])) / rows[:, 0].sum())


RUNS = {"ablation": run_ablation, "shares": run_shares, "habits": run_habits}


def run(what: str, data: Path, out: Path, *, n_jobs: int, every: int, only: str) -> Path:
    """Run what is not there yet, a line of JSON a task."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{what}.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    done = {tuple(json.loads(line)["task"]) for line in lines}
    tasks = [
        (key, task)
        for number, (key, task) in enumerate(judging_tasks(data))
        if number % every == 0 and key not in done and only in key[0]
    ]

    def one(key: tuple[str, str, str, int], task: OpenSetTask) -> dict[str, Any]:
        return {"task": key, "rows": RUNS[what](task)}

    results = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
        delayed(one)(key, task) for key, task in tasks
    )
    with path.open("a") as file:
        for result in results:
            file.write(json.dumps(result) + "\n")
            file.flush()
    return path


def print_means(path: Path, metrics: tuple[str, ...]) -> None:
    """Print the mean of each variant over the tasks of each collection, in percent."""
    results = [json.loads(line) for line in path.read_text().splitlines()]
    names = list(dict.fromkeys(name for result in results for name in result["rows"]))
    collections = [c for c in COLLECTIONS if any(r["task"][0] == c for r in results)]
    for metric in metrics:
        print(f"\n{metric}\n| variant | {' | '.join(collections)} | mean |")
        print("|---|" + "---:|" * (len(collections) + 1))
        for name in names:
            cells = []
            for collection in collections:
                rows = [r["rows"][name] for r in results if r["task"][0] == collection]
                values = [row[metric] if isinstance(row, dict) else row for row in rows]
                cells.append(100 * float(np.nanmean(values)))
            print(f"| {name} | " + " | ".join(f"{c:.1f}" for c in [*cells, np.mean(cells)]) + " |")


def print_habits(path: Path) -> None:
    """Print agreement and calibration of each collection, and the pooled reliability."""
    results = [json.loads(line) for line in path.read_text().splitlines()]
    names = [name for name in results[0]["rows"] if name != "curve"]
    print(f"| collection | {' | '.join(names)} |\n|---|" + "---:|" * len(names))
    for collection in dict.fromkeys(r["task"][0] for r in results):
        rows = [r["rows"] for r in results if r["task"][0] == collection]
        cells = [100 * np.mean([row[name] for row in rows]) for name in names]
        print(f"| {collection} | " + " | ".join(f"{c:.1f}" for c in cells) + " |")
    print("\n| collection | " + " | ".join(f"{k / 10:.1f}+" for k in range(10)) + " |")
    print("|---|" + "---:|" * 10)
    for collection in dict.fromkeys(r["task"][0] for r in results):
        curves = np.array([r["rows"]["curve"] for r in results if r["task"][0] == collection])
        counts = curves[:, :, 0].sum(axis=0)
        hits = (curves[:, :, 0] * curves[:, :, 2]).sum(axis=0)
        shares = np.divide(hits, counts, out=np.full(10, np.nan), where=counts > 0)
        print(f"| {collection} | " + " | ".join(f"{100 * share:.0f}" for share in shares) + " |")


def collection_of(row: dict[str, Any]) -> str | None:
    """Return the collection of a stored row of ``froda bench``."""
    for name, entry in COLLECTIONS.items():
        if (row["dataset"], row["features"]) == (entry.dataset, entry.features):
            return name
    return None


def report(folder: Path, ours: str, anchor: str, n_draws: int = 2000) -> None:
    """Print the means of every method, and our lead over the anchor with its interval."""
    rows = [row for row in Store(folder).rows() if row["status"] == "ok"]
    by = defaultdict(dict)
    for row in rows:
        key = (row["source"] + "-" + row["target"], f"{row['split']}/{row['seed']}")
        by[collection_of(row), row["method"]][key] = row
    methods = list(dict.fromkeys(row["method"] for row in rows))
    for metric in METRICS:
        print(f"\n{metric}\n| method | {' | '.join(COLLECTIONS)} | mean |")
        print("|---|" + "---:|" * (len(COLLECTIONS) + 1))
        for method in methods:
            cells = [
                100 * np.mean([row[metric] for row in by[name, method].values()])
                if len(by[name, method]) >= len(by[name, ours]) > 0
                else np.nan  # not run, or not on all tasks
                for name in COLLECTIONS
            ]
            print(
                f"| {method} | " + " | ".join(f"{c:.1f}" for c in [*cells, np.mean(cells)]) + " |"
            )
    print(f"\n{ours} less {anchor}, 95 % intervals from resampled pairs and splits")
    print("| metric | " + " | ".join(COLLECTIONS) + " |\n|---|" + "---:|" * len(COLLECTIONS))
    for metric in METRICS:
        cells = []
        for name in COLLECTIONS:
            leads = {
                key: 100 * (row[metric] - by[name, anchor][key][metric])
                for key, row in by[name, ours].items()
                if key in by[name, anchor]
            }
            low, high = interval(leads, n_draws)
            cells.append(f"{np.mean(list(leads.values())):+.1f} ({low:+.1f} to {high:+.1f})")
        print(f"| {metric} | " + " | ".join(cells) + " |")


def interval(leads: dict[tuple[str, str], float], n_draws: int) -> tuple[float, float]:
    """Return the 95 % interval of the mean when pairs and splits are both drawn anew."""
    pairs, splits = (sorted({key[k] for key in leads}) for k in (0, 1))
    table = np.full((len(pairs), len(splits)), np.nan)
    for (pair, split), lead in leads.items():
        table[pairs.index(pair), splits.index(split)] = lead
    rng = np.random.default_rng(0)
    means = []
    for _ in range(n_draws):
        drawn = table[rng.integers(0, len(pairs), len(pairs))]
        means.append(np.nanmean(drawn[:, rng.integers(0, len(splits), len(splits))]))
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=[*RUNS, "report"])
    parser.add_argument("folder", type=Path, help="data, or for report the results of froda bench")
    parser.add_argument("--out", type=Path, default=Path("label-free"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--every", type=int, default=1, help="take every k-th task only")
    parser.add_argument("--only", default="", help="take collections with this in the name")
    parser.add_argument("--ours", default="ProgressiveMixture")
    parser.add_argument("--anchor", default="OSLPP-32-32-0.15")
    given = parser.parse_args()
    if given.what == "report":
        report(given.folder, given.ours, given.anchor)
        return
    path = run(
        given.what,
        given.folder,
        given.out,
        n_jobs=given.jobs,
        every=given.every,
        only=given.only,
    )
    if given.what == "habits":
        print_habits(path)
    else:
        print_means(path, ("HOS", "OS", "AUROC") if given.what == "ablation" else ("HOS", "OS*"))


if __name__ == "__main__":
    main()
