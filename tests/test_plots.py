"""Figures are written whole or not at all."""

from __future__ import annotations

import numpy as np
import pytest

from froda import plots
from froda.plots import score_distribution

pytest.importorskip("matplotlib", reason="figures need the extra 'report'")


def test_score_distribution(tmp_path, rng):
    scores = rng.random(50)
    path = tmp_path / "figure.png"
    score_distribution({"a": (scores, 0.5), "b": (scores**2, 0.3)}, scores > 0.5, path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert list(tmp_path.iterdir()) == [path]


def test_names_of_close_points_do_not_cover_each_other(tmp_path, monkeypatch):
    from matplotlib.text import Text  # noqa: PLC0415

    drawn = []
    monkeypatch.setattr(plots, "write_figure", lambda figure, path: drawn.append(figure))
    points = {f"method {number}": (1.0 + number / 500, 50.0) for number in range(8)}
    plots.labelled_points(points, "seconds", "HOS", "title", tmp_path / "points.png")
    (figure,) = drawn
    texts = figure.axes[0].texts
    figure.draw_without_rendering()
    boxes = [Text.get_window_extent(text).extents for text in texts]
    assert sorted(text.get_text() for text in texts) == sorted(points)
    for place, (left, bottom, right, top) in enumerate(boxes):
        assert figure.bbox.x0 <= left
        assert right <= figure.bbox.x1
        for other in boxes[:place]:
            apart = right <= other[0] or other[2] <= left or top <= other[1] or other[3] <= bottom
            assert apart


def test_a_legend_of_many_lines_stays_inside(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(plots, "write_figure", lambda figure, path: drawn.append(figure))
    lines = {f"method {number}": (np.arange(3), np.arange(3) + number) for number in range(25)}
    plots.curves(lines, "x", "y", "title", tmp_path / "curves.png")
    (figure,) = drawn
    figure.draw_without_rendering()
    box = figure.axes[0].get_legend().get_window_extent()
    assert figure.bbox.y0 <= box.y0
    assert box.y1 <= figure.bbox.y1
    assert box.x1 <= figure.bbox.x1
