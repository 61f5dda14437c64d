"""Figures. The only module that draws, but for the contact sheets of pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from froda.extras import require
from froda.factorization.problem import Array

KNOWN_COLOUR = "#2a6f97"
UNKNOWN_COLOUR = "#d1495b"


def score_distribution(
    panels: dict[str, tuple[Array, float]], is_unknown: Array, path: Path
) -> None:
    """Write a PNG: the unknown score of known and of unknown samples, with the threshold.

    Parameters
    ----------
    panels : dict of str to (array of shape (n_samples,), float)
        Scores and threshold per method.
    is_unknown : array of bool of shape (n_samples,)
        Which samples truly are of unknown classes.
    path : pathlib.Path
        File to write.
    """
    figure_module = require("matplotlib.figure", "report", "figures")
    width = 4.6 * len(panels) + 0.4
    figure = figure_module.Figure(figsize=(width, 3.4), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axis, (name, (scores, threshold)) in zip(axes, panels.items(), strict=True):
        bins = np.linspace(float(scores.min()), float(scores.max()), 41)
        known, unknown = scores[~is_unknown], scores[is_unknown]
        axis.hist(known, bins, color=KNOWN_COLOUR, alpha=0.65, label="known classes")
        axis.hist(unknown, bins, color=UNKNOWN_COLOUR, alpha=0.65, label="unknown classes")
        if np.isfinite(threshold):
            axis.axvline(threshold, color="black", linestyle="--", lw=1.2, label="threshold")
        axis.set_title(name, loc="left", fontweight="bold")
        axis.set_xlabel("unknown score (higher = more surely unknown)")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("target samples")
    axes[-1].legend(frameon=False)
    write_figure(figure, path)


def write_figure(figure: object, path: Path) -> None:
    """Write the figure beside its place and move it there, so that no half file is left."""
    partial = path.with_name(f".{path.name}.partial")
    figure.savefig(partial, format="png", dpi=150)  # type: ignore[attr-defined]
    partial.replace(path)


def curves(
    lines: dict[str, tuple[Array, Array]], x_label: str, y_label: str, title: str, path: Path
) -> None:
    """Write a PNG with one line per name.

    Parameters
    ----------
    lines : dict of str to (array, array)
        Abscissae and ordinates.
    x_label, y_label, title : str
        Texts.
    path : pathlib.Path
        File to write.
    """
    figure, axis = _single(title, width=7.5 if len(lines) > 4 else 5.0)
    styles = ("-", "--", ":", "-.")
    for number, (name, (x, y)) in enumerate(lines.items()):
        axis.plot(
            x, y, label=name, color=f"C{number % 10}", linestyle=styles[number // 10 % 4], lw=1.6
        )
    axis.set_xlabel(x_label)
    axis.set_ylabel(y_label)
    axis.set_ylim(bottom=0)
    axis.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small")
    write_figure(figure, path)


def wins(counts: dict[str, tuple[int, int, int]], title: str, path: Path) -> None:
    """Write a PNG of wins, ties and losses against each method.

    Parameters
    ----------
    counts : dict of str to (int, int, int)
        Wins, ties and losses.
    title : str
        Text above.
    path : pathlib.Path
        File to write.
    """
    figure, axis = _single(title, width=7.0, height=0.8 + 0.3 * len(counts))
    names = list(counts)[::-1]
    left = np.zeros(len(names))
    parts = (("wins", KNOWN_COLOUR), ("ties", "#c9c9c9"), ("losses", UNKNOWN_COLOUR))
    for place, (part, colour) in enumerate(parts):
        values = np.array([counts[name][place] for name in names], dtype=float)
        axis.barh(names, values, left=left, color=colour, label=part)
        left += values
    axis.set_xlabel("pairs")
    axis.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    write_figure(figure, path)


def labelled_points(
    points: dict[str, tuple[float, float]], x_label: str, y_label: str, title: str, path: Path
) -> None:
    """Write a PNG of named points over a logarithmic abscissa.

    Parameters
    ----------
    points : dict of str to (float, float)
        Abscissa and ordinate.
    x_label, y_label, title : str
        Texts.
    path : pathlib.Path
        File to write.
    """
    figure, axis = _single(title, width=8.0, height=5.0)
    for name, (x, y) in points.items():
        colour = UNKNOWN_COLOUR if "FRODA" in name else KNOWN_COLOUR
        axis.scatter([x], [y], color=colour, s=28)
        axis.annotate(name, (x, y), textcoords="offset points", xytext=(5, 3), fontsize="x-small")
    axis.set_xscale("log")
    axis.margins(x=0.15)
    axis.set_xlabel(x_label)
    axis.set_ylabel(y_label)
    write_figure(figure, path)


def _single(title: str, width: float = 5.0, height: float = 3.6) -> tuple[Any, Any]:
    """Return a figure with one plain axis."""
    figure_module = require("matplotlib.figure", "report", "figures")
    figure = figure_module.Figure(figsize=(width, height), layout="constrained")
    axis = figure.subplots()
    axis.set_title(title, loc="left", fontsize="medium", fontweight="bold")
    axis.spines[["top", "right"]].set_visible(False)
    return figure, axis
