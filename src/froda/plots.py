"""Figures. The only module that draws, but for the contact sheets of pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from froda.extras import require
from froda.factorization.problem import Array

KNOWN_COLOUR = "#2a6f97"
UNKNOWN_COLOUR = "#d1495b"
# Where a name may stand beside its point: side and points upwards, nearest first.
_PLACES = [
    (side, shift)
    for height in range(0, 64, 7)
    for shift in dict.fromkeys((height, -height))
    for side in (1, -1)
]


def score_distribution(
    panels: dict[str, tuple[Array, float]], is_unknown: Array, path: Path, title: str = ""
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
    title : str, default=""
        Text above all panels.
    """
    figure_module = require("matplotlib.figure", "report", "figures")
    width = 4.6 * len(panels) + 0.4
    figure = figure_module.Figure(figsize=(width, 3.8), layout="constrained")
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize="medium")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
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
    parts = [axis.get_legend_handles_labels() for axis in axes]
    handles = {text: handle for found in parts for handle, text in zip(*found, strict=True)}
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=3, frameon=False
    )
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
        Abscissae and ordinates; the legend keeps their order.
    x_label, y_label, title : str
        Texts.
    path : pathlib.Path
        File to write.
    """
    height = max(3.6, 1.2 + 0.2 * len(lines))  # the legend has a line for each
    figure, axis = _single(title, width=7.5 if len(lines) > 4 else 5.0, height=height)
    styles = ("-", "--", ":", "-.")
    for number, (name, (x, y)) in enumerate(lines.items()):
        style = styles[number // 10 % 4]
        axis.plot(x, y, label=name, color=f"C{number % 10}", linestyle=style, lw=1.6)
    axis.set_xlabel(x_label)
    axis.set_ylabel(y_label)
    axis.set_ylim(bottom=0)
    axis.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small")
    write_figure(figure, path)


def wins(counts: dict[str, tuple[int, int, int]], x_label: str, title: str, path: Path) -> None:
    """Write a PNG of wins, ties and losses against each method.

    Parameters
    ----------
    counts : dict of str to (int, int, int)
        Wins, ties and losses.
    x_label, title : str
        Texts.
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
    axis.set_xlabel(x_label)
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    write_figure(figure, path)


def labelled_points(
    points: dict[str, tuple[float, float]],
    x_label: str,
    y_label: str,
    title: str,
    path: Path,
    *,
    marked: tuple[str, ...] = (),
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
    marked : tuple of str, default=()
        Names in the other colour.
    """
    figure, axis = _single(title, width=8.0, height=5.0)
    for name, (x, y) in points.items():
        axis.scatter([x], [y], color=UNKNOWN_COLOUR if name in marked else KNOWN_COLOUR, s=28)
    axis.set_xscale("log")
    ticker = require("matplotlib.ticker", "report", "figures")
    axis.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 3, 5)))
    axis.xaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    axis.xaxis.set_minor_formatter(ticker.NullFormatter())
    axis.margins(x=0.15, y=0.08)
    axis.set_xlabel(x_label)
    axis.set_ylabel(y_label)
    _name_points(figure, axis, points)
    write_figure(figure, path)


def _name_points(figure: Any, axis: Any, points: dict[str, tuple[float, float]]) -> None:
    """Write each name beside its point, or further off where another name stands.

    A name that had to move is joined to its point by a thin line.
    """
    text_class = require("matplotlib.text", "report", "figures").Text
    figure.draw_without_rendering()  # fixes the layout, so that extents in pixels are known
    figure.set_layout_engine("none")
    reach = 4 * figure.dpi / 72
    spots = axis.transData.transform(np.array(list(points.values())))
    taken = [(x - reach, y - reach, x + reach, y + reach) for x, y in spots]
    names = list(points)
    for place in np.argsort(-spots[:, 1], kind="stable"):
        for side, shift in _PLACES:
            text = axis.annotate(
                names[place],
                points[names[place]],
                textcoords="offset points",
                xytext=(7 * side, shift),
                ha="left" if side > 0 else "right",
                va="center",
                fontsize="x-small",
                arrowprops={"arrowstyle": "-", "lw": 0.4, "color": "grey"} if shift else None,
            )
            text.get_window_extent()  # moves the text to its place
            box = text_class.get_window_extent(text).extents  # without the line
            if not any(_overlap(box, other) for other in taken):
                break
            if (side, shift) != _PLACES[-1]:
                text.remove()
        taken.append(tuple(box))


def _overlap(one: Any, other: Any) -> bool:
    """Say whether two boxes (left, bottom, right, top) have area in common."""
    return bool(one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3])


def _single(title: str, width: float = 5.0, height: float = 3.6) -> tuple[Any, Any]:
    """Return a figure with one plain axis."""
    figure_module = require("matplotlib.figure", "report", "figures")
    figure = figure_module.Figure(figsize=(width, height), layout="constrained")
    axis = figure.subplots()
    figure.suptitle(title, x=0.01, ha="left", fontsize="medium", fontweight="bold")
    axis.spines[["top", "right"]].set_visible(False)
    return figure, axis
