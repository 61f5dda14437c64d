"""Figures from stored rows: what to draw; `froda.plots` draws it."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from froda import plots
from froda.bench.methods import EPSILONS, OURS
from froda.factorization.problem import Array
from froda.metrics import open_set_scores

_SHARES = np.linspace(0, 1, 41)
_REFERENCES = ("ProgressiveMixture", "FRODA-svm")  # the first that was run
_TIE = 0.01
_SHOWN = ("ProgressiveMixture", "FRODA-svm", "OSVM", "OSLPP")

Rows = list[dict[str, Any]]


def write_figures(rows: Rows, folder: Path) -> list[Path]:
    """Write every figure that the rows allow, one set for each data set, features and split."""
    folder.mkdir(parents=True, exist_ok=True)
    settings: dict[tuple[str, str, str], Rows] = defaultdict(list)
    for row in rows:
        if row["status"] == "ok":
            settings[row["dataset"], row["features"], row["split"]].append(row)
    written = []
    for (dataset, features, split), chosen in sorted(settings.items()):
        title = f"{dataset}, {features}, {split}"
        stem = "_".join((dataset, features, split))
        for name, draw in (
            ("epsilon", _draw_epsilon),
            ("threshold", _draw_threshold),
            ("scores", _draw_scores),
            ("wins", _draw_wins),
            ("runtime", _draw_runtime),
        ):
            path = folder / f"{stem}_{name}.png"
            if draw(chosen, title, path):
                written.append(path)
    return written


def _by_method(rows: Rows) -> dict[str, Rows]:
    """Return the rows of each method, the sensitivity runs aside."""
    found: dict[str, Rows] = defaultdict(list)
    for row in rows:
        if not row["method"].startswith("FRODA, epsilon"):
            found[row["method"]].append(row)
    return dict(sorted(found.items()))


def _draw_epsilon(rows: Rows, title: str, path: Path) -> bool:
    """Draw the mean OS and HOS of FRODA against epsilon (the paper's Figure 1)."""
    curves: dict[str, tuple[Array, Array]] = {}
    for metric in ("OS", "HOS"):
        points = [
            (epsilon, np.mean([row[metric] for row in rows if row["method"] == method]))
            for epsilon in EPSILONS
            for method in (f"FRODA, epsilon {epsilon:g}",)
            if any(row["method"] == method for row in rows)
        ]
        if points:
            x, y = np.array(points).T
            curves[metric] = x, 100 * y
    if curves:
        plots.curves(curves, "epsilon", "mean over pairs (%)", f"FRODA: {title}", path)
    return bool(curves)


def hos_curve(row: dict[str, Any]) -> Array:
    """Return HOS if the given share of the target, the most doubtful first, is called unknown."""
    order = np.argsort(-np.array(row["unknown_score"]), kind="stable")
    truth, known = np.array(row["y_true"]), np.array(row["best_known"])
    values = []
    for share in _SHARES:
        labels = known.copy()
        labels[order[: round(share * len(order))]] = -1
        values.append(open_set_scores(truth, labels, unknown_label=-1)["HOS"])
    return np.array(values)


def _draw_threshold(rows: Rows, title: str, path: Path) -> bool:
    """Draw HOS against the share that is called unknown, for every method."""
    curves = {
        method: (100 * _SHARES, 100 * np.mean([hos_curve(row) for row in chosen], axis=0))
        for method, chosen in _by_method(rows).items()
    }
    if curves:
        best_first = dict(sorted(curves.items(), key=lambda item: -float(item[1][1].max())))
        x_label = "target samples called unknown (%)"
        plots.curves(best_first, x_label, "mean HOS (%)", f"{title} (best first)", path)
    return bool(curves)


def _draw_scores(rows: Rows, title: str, path: Path) -> bool:
    """Draw the score distributions of a few methods on the first pair."""
    first = min(rows, key=lambda row: (row["source"], row["target"], row["seed"]))
    same = [row for row in rows if _task(row) == _task(first)]
    panels = {
        row["method"]: (np.array(row["unknown_score"]), row["threshold"])
        for row in sorted(same, key=lambda row: row["method"])
        if row["method"] in _SHOWN
    }
    if panels:
        is_unknown = np.array(first["y_true"]) == -1
        pair = f"{first['source']} → {first['target']}, seed {first['seed']}"
        plots.score_distribution(panels, is_unknown, path, f"{title}: {pair}")
    return bool(panels)


def _task(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["source"], row["target"], row["seed"]


def _draw_wins(rows: Rows, title: str, path: Path) -> bool:
    """Draw wins, ties (within 1 point of HOS) and losses of the reference method."""
    methods = _by_method(rows)
    name = next((name for name in _REFERENCES if name in methods), _REFERENCES[0])
    reference = {_task(row): row["HOS"] for row in methods.pop(name, [])}
    counts = {}
    for method, chosen in methods.items():
        gaps = np.array([reference[_task(r)] - r["HOS"] for r in chosen if _task(r) in reference])
        wins, losses = int((gaps > _TIE).sum()), int((gaps < -_TIE).sum())
        counts[method] = (wins, len(gaps) - wins - losses, losses)
    if counts and reference:
        x_label = f"pairs and seeds (tie: HOS within {100 * _TIE:g} point)"
        plots.wins(counts, x_label, f"{name} against each method: {title}", path)
    return bool(counts and reference)


def _draw_runtime(rows: Rows, title: str, path: Path) -> bool:
    """Draw mean HOS against median seconds."""
    points = {
        method: (
            float(np.median([row["seconds"] for row in chosen])),
            100 * float(np.mean([row["HOS"] for row in chosen])),
        )
        for method, chosen in _by_method(rows).items()
    }
    if points:
        plots.labelled_points(
            points, "median seconds", "mean HOS (%)", title, path, marked=tuple(OURS)
        )
    return bool(points)
