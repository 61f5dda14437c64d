"""Figures are written whole or not at all."""

from __future__ import annotations

import pytest

from froda.plots import score_distribution

pytest.importorskip("matplotlib", reason="figures need the extra 'report'")


def test_score_distribution(tmp_path, rng):
    scores = rng.random(50)
    path = tmp_path / "figure.png"
    score_distribution({"a": (scores, 0.5), "b": (scores**2, 0.3)}, scores > 0.5, path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert list(tmp_path.iterdir()) == [path]
