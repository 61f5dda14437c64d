"""Which scorer of `froda.selection` to trust: rank correlation with the HOS it cannot see.

    python benchmarks/selection.py DATA

DATA is the folder that holds office_caltech10, pie_multiview and digits. Tasks are some of the
tuning splits of label_free_plan.md. The table has, for each task, the rank correlation over the
candidates, then follow how much HOS the choice loses against the best candidate, and the HOS of
FRODA by its epsilon.
"""

from __future__ import annotations

import argparse
import warnings
from functools import partial
from pathlib import Path
from time import process_time

import numpy as np
from threadpoolctl import threadpool_limits

from froda import FRODA, ProgressiveMixture
from froda.baselines import LSVM, OSLPP, OSNN, OSVM, PCAResidual
from froda.datasets import OpenSetTask
from froda.datasets.loaders import load_domain
from froda.datasets.protocols import make_task
from froda.progressive.evidence import rank_correlation
from froda.selection import SCORERS

TASKS = (
    ("office-caltech10", "office_caltech10", "alexnet4096", "amazon", "webcam", "random-5-known"),
    ("office-caltech10", "office_caltech10", "alexnet4096", "webcam", "dslr", "random-5-known"),
    ("office-caltech10", "office_caltech10", "surf800", "amazon", "webcam", "random-5-known"),
    ("office-caltech10", "office_caltech10", "surf800", "webcam", "dslr", "random-5-known"),
    ("pie", "pie_multiview", "pixels", "C27", "C09", "random-20-known-30-unknown"),
    ("digits", None, "gradients", "mnist", "digits", "random-5-known"),
    ("mnist-usps", "digits", "pixels", "usps", "mnist", "random-5-known"),
)
SEED = 101
CANDIDATES = {
    "LSVM": LSVM,
    "OSVM": OSVM,
    "OSVM, rejection .3": partial(OSVM, rejection=0.3),
    "OSNN": OSNN,
    "PCA residual": PCAResidual,
    "FRODA, epsilon .05": partial(FRODA, epsilon=0.05),
    "FRODA, epsilon .2": FRODA,
    "FRODA, epsilon .75": partial(FRODA, epsilon=0.75),
    "FRODA, epsilon auto": partial(FRODA, epsilon="auto"),
    "OSLPP, share .15": OSLPP,
    "OSLPP, share .45": partial(OSLPP, 0.45),
    "ProgressiveMixture": ProgressiveMixture,
}


def judge(task: OpenSetTask) -> tuple[list[float], dict[str, list[float]]]:
    """Return the HOS of each candidate and what each scorer says of it."""
    visible = task.visible()
    truth = [task.score(make().fit_predict(*visible))["HOS"] for make in CANDIDATES.values()]
    scores = {
        name: [scorer(make(), *visible) for make in CANDIDATES.values()]
        for name, scorer in SCORERS.items()
    }
    return truth, scores


def hos_by_epsilon(task: OpenSetTask) -> dict[str, float]:
    """Return the HOS of FRODA by decision and epsilon."""
    return {
        f"{decision}, epsilon {epsilon}": task.score(
            FRODA(epsilon=epsilon, decision=decision).fit_predict(*task.visible())
        )["HOS"]
        for decision in ("augmented", "flag")
        for epsilon in (0.05, 0.2, 0.75, "auto")
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    data = parser.parse_args().data
    correlations: dict[str, list[float]] = {name: [] for name in SCORERS}
    losses: dict[str, list[float]] = {name: [] for name in (*SCORERS, "ProgressiveMixture always")}
    by_epsilon: list[dict[str, float]] = []
    start = process_time()
    print(f"| task | best HOS | {' | '.join(SCORERS)} |")
    print(f"|---|---|{'---|' * len(SCORERS)}")
    for dataset, folder, features, source, target, split in TASKS:
        where = data / folder if folder else None
        domains = [load_domain(dataset, name, where, features) for name in (source, target)]
        task = make_task(domains[0], domains[1], split, SEED)
        truth, scores = judge(task)
        for name, values in scores.items():
            correlations[name].append(rank_correlation(np.array(values), np.array(truth)))
            losses[name].append(max(truth) - truth[int(np.argmax(values))])
        by_name = dict(zip(CANDIDATES, truth, strict=True))
        by_epsilon.append(hos_by_epsilon(task))
        losses["ProgressiveMixture always"].append(max(truth) - by_name["ProgressiveMixture"])
        cells = " | ".join(f"{values[-1]:.2f}" for values in correlations.values())
        print(
            f"| {dataset} {features}, {source} to {target} | {max(truth):.3f} | {cells} |",
            flush=True,
        )
    print(f"| mean | | {' | '.join(f'{np.mean(v):.2f}' for v in correlations.values())} |")
    print("\n| choice by | HOS lost, mean | at most |\n|---|---|---|")
    for name, values in losses.items():
        print(f"| {name} | {np.mean(values):.3f} | {max(values):.3f} |")
    print("\n| HOS of FRODA | mean | tasks |\n|---|---|---|")
    for name in by_epsilon[0]:
        values = [row[name] for row in by_epsilon]
        print(f"| {name} | {np.mean(values):.3f} | {' '.join(f'{v:.2f}' for v in values)} |")
    print(f"\n{process_time() - start:.0f} s of processor time")


if __name__ == "__main__":
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        main()
