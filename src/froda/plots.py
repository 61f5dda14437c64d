"""Figures. The only module that draws."""

from __future__ import annotations

from pathlib import Path

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
        axis.axvline(threshold, color="black", linestyle="--", linewidth=1.2, label="threshold")
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
