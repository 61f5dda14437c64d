"""Limits on the columns of a basis.

A projection p of x on a convex set is marked by <x - p, q - p> <= 0 for all feasible q. For
these sets the largest <x - p, q> over all feasible q is known, so the check is complete.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from froda.factorization import constraints

entries = st.floats(-1e3, 1e3, allow_subnormal=False)
matrices = arrays(np.float64, (3, 4), elements=entries)
norms = arrays(np.float64, st.integers(1, 8), elements=st.floats(0, 1e3, allow_subnormal=False))
radii = st.floats(1e-3, 1e3)


@given(basis=matrices)
def test_project_columns(basis):
    projected = constraints.project_columns(basis)
    assert constraints.infeasibility(projected, "per_column") <= 1e-15
    np.testing.assert_allclose(constraints.project_columns(projected), projected, rtol=1e-15)
    taken = basis - projected
    best = np.linalg.norm(taken, axis=0)  # of <taken, q> over |q_j| <= 1
    slack = 1e-13 * (1 + np.linalg.norm(basis, axis=0))
    assert np.all(best <= (taken * projected).sum(axis=0) + slack)


@given(basis=matrices, radius=radii)
def test_project_total(basis, radius):
    projected = constraints.project_total(basis, radius)
    size = np.linalg.norm(basis) + radius
    assert constraints.infeasibility(projected, "total", radius) <= 1e-14 * size
    again = constraints.project_total(projected, radius)
    np.testing.assert_allclose(again, projected, rtol=1e-12, atol=1e-14 * size)
    taken = basis - projected
    best = radius * np.linalg.norm(taken, axis=0).max()  # over Σ|q_j| <= radius
    assert best <= np.vdot(taken, projected) + 1e-13 * size**2


@given(norms=norms, radius=radii)
def test_project_simplex_ball(norms, radius):
    projected = constraints.project_simplex_ball(norms, radius)
    size = norms.sum() + radius
    assert np.all(projected >= 0)
    assert projected.sum() <= radius + 1e-14 * size
    again = constraints.project_simplex_ball(projected, radius)
    np.testing.assert_allclose(again, projected, rtol=0, atol=1e-14 * size)
    taken = norms - projected
    best = radius * max(taken.max(), 0)  # at a corner of the simplex, or at 0
    assert best <= taken @ projected + 1e-13 * size**2


def test_projections_agree_with_slsqp(rng):
    point = rng.uniform(0, 2, 5)
    found = minimize(
        lambda q: ((q - point) ** 2).sum(),
        np.full(5, 0.1),
        jac=lambda q: 2 * (q - point),
        method="SLSQP",
        bounds=[(0, None)] * 5,
        constraints={"type": "ineq", "fun": lambda q: 1.5 - q.sum()},
        options={"ftol": 1e-16},
    )
    projected = constraints.project_simplex_ball(point, 1.5)
    np.testing.assert_allclose(projected, found.x, atol=1e-7)


def test_simplex_ball_of_radius_zero():
    np.testing.assert_array_equal(constraints.project_simplex_ball(np.array([2.0, 1.0]), 0.0), 0)


def test_simplex_ball_leaves_the_inside_alone():
    inside = np.array([0.25, 0.5, 0.0])
    np.testing.assert_array_equal(constraints.project_simplex_ball(inside, 0.75), inside)
    np.testing.assert_array_equal(constraints.project_simplex_ball(inside, 2.0), inside)


def test_simplex_ball_treats_ties_alike():
    projected = constraints.project_simplex_ball(np.array([2.0, 2.0, 2.0, 0.5]), 1.5)
    np.testing.assert_allclose(projected, [0.5, 0.5, 0.5, 0.0], rtol=1e-15)


@pytest.mark.parametrize(
    ("norms", "radius"),
    [([0.5, 0.5], 1e-17), ([10.0, 3.0], 1e-16), ([1e17, 1.0], 1.0)],
)
def test_simplex_ball_of_hardly_any_radius(norms, radius):
    """D-FRODA-U meets this under the total limit when V uses the budget up to rounding."""
    norms = np.array(norms)
    projected = constraints.project_simplex_ball(norms, radius)
    assert np.all((projected >= 0) & (projected <= norms))
    assert projected.sum() <= radius * (1 + 1e-12)


def test_total_turns_no_column():
    basis = np.array([[3.0, 0.0, 0.3], [4.0, 0.0, 0.4]])
    projected = constraints.project_total(basis, 1.0)
    np.testing.assert_allclose(projected, [[0.6, 0, 0], [0.8, 0, 0]], atol=1e-15)


@pytest.mark.parametrize("project", [constraints.project_columns, constraints.project_total])
def test_projection_keeps_its_input_and_its_type(rng, project):
    basis = 3 * rng.standard_normal((5, 3)).astype(np.float32)
    basis.flags.writeable = False
    assert project(basis).dtype == np.float32


def test_infeasibility_is_the_excess():
    basis = np.array([[3.0, 0.5], [4.0, 0.0]])
    assert constraints.infeasibility(basis, "per_column") == pytest.approx(4.0)
    assert constraints.infeasibility(basis, "total") == pytest.approx(4.5)
    assert constraints.infeasibility(basis, "total", 6.0) == 0
    assert constraints.infeasibility(basis / 5, "per_column") == 0
    assert constraints.infeasibility(np.zeros((3, 0)), "per_column") == 0
