"""Tables of methods × pairs from stored rows, as Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from froda.bench.methods import BASELINES, DEEP, OURS
from froda.bench.published import LINES, published

METRICS = ("OS", "OS*", "UNK", "HOS", "AUROC", "OSCR")
_MEAN = "mean"
# The paper's Tables 1 and 3 compare with other methods, its Tables 2 and 4 our variants.
KINDS: dict[str, tuple[str, ...]] = {
    "comparison": (*BASELINES, *DEEP, "FRODA-svm", "D-FRODA-svm", "ProgressiveMixture"),
    "variants": tuple(name for name in OURS if name != "ProgressiveMixture"),
}


@dataclass(frozen=True)
class Cell:
    """Mean and deviation over seeds in percent, or why there is no figure."""

    mean: float
    deviation: float
    n_failed: int
    n_seeds: int
    is_best: bool = False


@dataclass(frozen=True)
class Sheet:
    """One table: a metric of several methods on several pairs."""

    title: str
    note: str
    columns: list[str]
    rows: dict[str, list[Cell]]
    paper: dict[str, list[float]]


def make_sheets(rows: list[dict[str, Any]]) -> list[tuple[str, Sheet]]:
    """Return (file stem, sheet) for every setting, kind of table and metric in the rows."""
    settings = sorted({(row["dataset"], row["features"], row["split"]) for row in rows})
    sheets = []
    for dataset, features, split in settings:
        chosen = [
            row
            for row in rows
            if (row["dataset"], row["features"], row["split"]) == (dataset, features, split)
        ]
        for kind, methods in KINDS.items():
            for metric in METRICS:
                sheet = _make_sheet(chosen, methods, metric)
                if sheet.rows:
                    stem = f"{dataset}_{features}_{split}_{kind}_{metric}".replace("*", "star")
                    sheets.append((stem, sheet))
    return sheets


def _make_sheet(rows: list[dict[str, Any]], methods: tuple[str, ...], metric: str) -> Sheet:
    """Return one table of rows of one data set, kind of features and split."""
    first = rows[0]
    pairs = list(dict.fromkeys((row["source"], row["target"]) for row in sorted(rows, key=_pair)))
    by_cell: dict[tuple[str, tuple[str, str]], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by_cell[row["method"], (row["source"], row["target"])].append(row)
    cells = {
        method: [_cell(by_cell[method, pair], metric) for pair in pairs]
        for method in methods
        if any(by_cell[method, pair] for pair in pairs)
    }
    cells = {method: [*line, _mean_cell(line)] for method, line in cells.items()}
    texts = sorted({row["description"].partition("; ")[2].rpartition("; seed")[0] for row in rows})
    n_versions = len({row["versions"] for row in rows})
    mixed = f"; made with {n_versions} sets of package versions" if n_versions > 1 else ""
    return Sheet(
        title=f"{metric} on {first['dataset']}, {first['features']}",
        note="; ".join(text for text in texts if text) + mixed,
        columns=[f"{source} → {target}" for source, target in pairs] + [_MEAN],
        rows=_mark_best(cells),
        paper=_paper_lines(first, pairs, tuple(cells)) if metric == "OS" else {},
    )


def _pair(row: dict[str, Any]) -> tuple[str, str]:
    return row["source"], row["target"]


def _cell(rows: list[dict[str, Any]], metric: str) -> Cell:
    """Return mean and deviation over seeds."""
    good = [
        100 * row[metric] for row in rows if row["status"] == "ok" and row.get(metric) is not None
    ]
    n_failed = sum(row["status"] != "ok" for row in rows)
    mean = float(np.mean(good)) if good else float("nan")
    return Cell(mean, float(np.std(good)) if good else float("nan"), n_failed, len(rows))


def _mean_cell(cells: list[Cell]) -> Cell:
    """Return the mean over pairs; not a number where a pair is missing or failed."""
    means = np.array([cell.mean for cell in cells])
    return Cell(float(means.mean()), 0.0, sum(cell.n_failed for cell in cells), 1)


def _mark_best(rows: dict[str, list[Cell]]) -> dict[str, list[Cell]]:
    """Mark the best figure of each column, as printed, ties included."""
    if not rows:
        return rows
    means = np.array([[round(cell.mean, 1) for cell in cells] for cells in rows.values()])
    best = np.array([column[~np.isnan(column)].max(initial=-np.inf) for column in means.T])
    return {
        method: [
            Cell(cell.mean, cell.deviation, cell.n_failed, cell.n_seeds, bool(value == top))
            for cell, value, top in zip(cells, line, best, strict=True)
        ]
        for (method, cells), line in zip(rows.items(), means, strict=True)
    }


def _paper_lines(
    first: dict[str, Any], pairs: list[tuple[str, str]], methods: tuple[str, ...]
) -> dict[str, list[float]]:
    """Return the paper's line of each method, where the data and the split are the paper's."""
    by_pair = [published(first["dataset"], first["split"], *pair) for pair in pairs]
    return {
        method: [figures.get(method, float("nan")) for figures in by_pair]
        for method in methods
        if any(method in figures for figures in by_pair)
    }


def _text(cell: Cell, bold: tuple[str, str], plus_minus: str) -> str:
    """Return the text of a cell."""
    if np.isnan(cell.mean):
        return "failed" if cell.n_failed else "–"
    text = f"{cell.mean:.1f}"
    if cell.n_seeds > 1:
        text += f" {plus_minus} {cell.deviation:.1f}"
    if cell.n_failed:
        text += f" ({cell.n_failed} failed)"
    return f"{bold[0]}{text}{bold[1]}" if cell.is_best else text


def _plain(value: float, missing: str) -> str:
    """Return a published figure."""
    return missing if np.isnan(value) else f"{value:.1f}"


def to_markdown(sheet: Sheet) -> str:
    """Return the sheet as a Markdown table with its title and split above it."""
    lines = [f"**{sheet.title}** ({sheet.note})", ""]
    lines.append("| method | " + " | ".join(sheet.columns) + " |")
    lines.append("|---|" + "---:|" * len(sheet.columns))
    for method, cells in sheet.rows.items():
        texts = [_text(cell, ("**", "**"), "±") for cell in cells]
        lines.append(f"| {method} | " + " | ".join(texts) + " |")
    for method, figures in sheet.paper.items():
        texts = [_plain(value, "–") for value in (*figures, float(np.mean(figures)))]
        lines.append(f"| {LINES.get(method, method)}, as published | " + " | ".join(texts) + " |")
    return "\n".join(lines) + "\n"


def to_latex(sheet: Sheet) -> str:
    """Return the sheet as a LaTeX tabular."""

    def escape(text: str) -> str:
        return text.replace("_", r"\_").replace("→", r"$\rightarrow$").replace("–", "--")

    lines = [
        f"% {sheet.title}; {sheet.note}",
        r"\begin{tabular}{l" + "r" * len(sheet.columns) + "}",
    ]
    lines += [r"\hline", " & ".join(["Method", *map(escape, sheet.columns)]) + r" \\", r"\hline"]
    for method, cells in sheet.rows.items():
        texts = [escape(_text(cell, (r"\textbf{", "}"), r"$\pm$")) for cell in cells]
        lines.append(" & ".join([escape(method), *texts]) + r" \\")
    for method, figures in sheet.paper.items():
        texts = [_plain(value, "--") for value in (*figures, float(np.mean(figures)))]
        lines.append(
            " & ".join([escape(f"{LINES.get(method, method)}, as published"), *texts]) + r" \\"
        )
    return "\n".join([*lines, r"\hline", r"\end{tabular}"]) + "\n"


def to_csv(sheet: Sheet) -> str:
    """Return the sheet as CSV: mean and deviation in columns of their own."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["method", "pair", "mean", "deviation", "seeds", "failed", "published"])
    for method, cells in sheet.rows.items():
        paper = sheet.paper.get(method, [])
        for place, (column, cell) in enumerate(zip(sheet.columns, cells, strict=True)):
            figure = paper[place] if place < len(paper) else ""
            writer.writerow(
                [method, column, cell.mean, cell.deviation, cell.n_seeds, cell.n_failed, figure]
            )
    return buffer.getvalue()


def write_sheets(rows: list[dict[str, Any]], folder: Path) -> list[Path]:
    """Write every sheet in three formats; return the Markdown files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for stem, sheet in make_sheets(rows):
        for suffix, render in ((".md", to_markdown), (".tex", to_latex), (".csv", to_csv)):
            path = folder / f"{stem}{suffix}"
            partial = path.with_name(f".{path.name}.partial")
            partial.write_text(render(sheet), encoding="utf-8")
            partial.replace(path)
            if suffix == ".md":
                written.append(path)
    return written
