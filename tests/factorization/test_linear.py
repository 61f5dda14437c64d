"""Least squares through normal equations, and what happens where they are singular."""

from __future__ import annotations

import numpy as np
import pytest

from froda.factorization.linear import factorise


@pytest.mark.parametrize("condition", [1.0, 1e2, 1e4])
def test_agrees_with_lstsq(rng, condition):
    left, _, right = np.linalg.svd(rng.standard_normal((30, 5)), full_matrices=False)
    design = left * np.geomspace(1, 1 / condition, 5) @ right
    data = rng.standard_normal((7, 30))
    found = factorise(design.T @ design).solve(data @ design)
    expected = np.linalg.lstsq(design, data.T, rcond=None)[0].T
    # Normal equations square the condition number: eps · condition².
    np.testing.assert_allclose(found, expected, atol=1e-14 * condition**2 * np.abs(expected).max())
    residual = found @ design.T @ design - data @ design
    assert np.abs(residual).max() <= 1e-12 * condition * np.abs(data @ design).max()


@pytest.mark.parametrize("with_current", [True, False])
def test_singular_solves_the_normal_equations(rng, with_current):
    design = rng.standard_normal((30, 2)) @ rng.standard_normal((2, 5))
    data = rng.standard_normal((7, 30))
    current = rng.standard_normal((7, 5)) if with_current else None
    prepared = factorise(design.T @ design)
    assert prepared.is_singular
    found = prepared.solve(data @ design, current)
    residual = found @ design.T @ design - data @ design
    assert np.abs(residual).max() <= 1e-11 * np.abs(data @ design).max()
    expected = np.linalg.lstsq(design, data.T, rcond=None)[0].T
    if current is not None:  # what the design cannot see stays as it is
        expected += current @ (np.eye(5) - np.linalg.pinv(design) @ design)
    np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("spread", [0.0, 1e-5, 1e-6, 1e-7, 1e-8])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_cut_never_raises_the_objective(rng, spread, dtype):
    """Around the cut, where a direction is neither clearly there nor clearly not."""
    design = rng.standard_normal((30, 5))
    design[:, 4] = design[:, 3] + spread * design[:, 4]
    design = design.astype(dtype)
    data = rng.standard_normal((7, 30)).astype(dtype)
    nearly = data @ np.linalg.pinv(design, rcond=1e-3).T
    current = (nearly + 0.1 * rng.standard_normal((7, 5))).astype(dtype)
    found = factorise(design.T @ design).solve(data @ design, current)

    def objective(point):
        return ((data.astype(float) - point.astype(float) @ design.T.astype(float)) ** 2).sum()

    assert found.dtype == dtype
    assert objective(found) <= objective(current)


def test_nothing_but_zeros_keeps_the_present_value(rng):
    current = rng.standard_normal((4, 3))
    found = factorise(np.zeros((3, 3))).solve(np.zeros((4, 3)), current)
    np.testing.assert_array_equal(found, current)


def test_regular_matrix_forgets_the_present_value(rng):
    design = rng.standard_normal((10, 3))
    prepared, rows = factorise(design.T @ design), rng.standard_normal((4, 3))
    assert not prepared.is_singular
    np.testing.assert_array_equal(prepared.solve(rows, 1e6 * rows), prepared.solve(rows))


@pytest.mark.parametrize("n_used", [3, 1])
def test_inputs_are_not_written_to(rng, n_used):
    design = rng.standard_normal((10, 3))
    design[:, n_used:] = 0
    gram, rows, current = design.T @ design, rng.standard_normal((4, 10)) @ design, np.ones((4, 3))
    for array in (gram, rows, current):
        array.flags.writeable = False
    assert not np.shares_memory(factorise(gram).solve(rows, current), current)
