"""The group penalty: value, prox, distance from optimality."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from froda.factorization import penalties

from . import reference

WIDTHS = [(3, 2), (5, 0), (0, 5), (5,), (1, 1, 1, 1, 1), (1, 3, 1)]
entries = st.floats(-1e3, 1e3, allow_subnormal=False)
matrices = arrays(np.float64, (4, 5), elements=entries)
steps = st.floats(1e-3, 1e3)


@pytest.mark.parametrize("widths", WIDTHS)
def test_value_adds_up_norms(rng, widths):
    codes = rng.standard_normal((7, 5))
    expected = sum(
        0.3 * np.linalg.norm(row[part]) for row in codes for part in reference.parts(widths)
    )
    assert penalties.value(codes, widths, 0.3) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("widths", WIDTHS)
def test_group_norms_have_a_column_per_group(rng, widths):
    codes = rng.standard_normal((7, 5))
    norms = penalties.group_norms(codes, widths)
    assert norms.shape == (7, len(widths))
    np.testing.assert_allclose((norms**2).sum(axis=1), (codes**2).sum(axis=1), rtol=1e-14)


@given(codes=matrices, widths=st.sampled_from(WIDTHS), step=steps)
def test_prox_obeys_moreau(codes, widths, step):
    """What the prox takes away is the projection on the dual ball of radius ``step``."""
    taken = codes - penalties.prox(codes, widths, step)
    for part in reference.parts(widths):
        norms = np.linalg.norm(codes[:, part], axis=1, keepdims=True)
        projected = codes[:, part] * np.minimum(1, step / np.maximum(norms, 1e-300))
        np.testing.assert_allclose(taken[:, part], projected, rtol=1e-12, atol=1e-11)


@given(codes=matrices, other=matrices, widths=st.sampled_from(WIDTHS), step=steps)
def test_prox_beats_every_other_point(codes, other, widths, step):
    def objective(point):
        distance = ((point - codes) ** 2).sum(axis=1) / 2
        return distance + step * penalties.group_norms(point, widths).sum(axis=1)

    best = penalties.prox(codes, widths, step)
    nearby = best + 1e-3 * other
    slack = 1e-12 * (codes**2).sum(axis=1)
    assert np.all(objective(best) <= objective(other) + slack)
    assert np.all(objective(best) <= objective(nearby) + slack)


@pytest.mark.parametrize("point", [(1.2, -0.7), (0.3, 0.2), (0.0, 0.0), (-2.0, 0.0)])
def test_prox_is_the_minimum_on_a_grid(point):
    step = 0.5
    axis = np.linspace(-2, 2, 401)
    first, second = np.meshgrid(axis, axis, indexing="ij")
    values = ((first - point[0]) ** 2 + (second - point[1]) ** 2) / 2
    values += step * np.hypot(first, second)
    lowest = np.unravel_index(values.argmin(), values.shape)
    found = penalties.prox(np.array([point]), (2,), step)[0]
    np.testing.assert_allclose(found, [first[lowest], second[lowest]], atol=0.0051)


def test_prox_keeps_its_input_and_its_type(rng):
    codes = rng.standard_normal((6, 4)).astype(np.float32)
    codes.flags.writeable = False
    assert penalties.prox(codes, (2, 2), 0.1).dtype == np.float32


@given(codes=matrices, widths=st.sampled_from(WIDTHS), step=steps)
def test_distance_is_zero_at_the_prox(codes, widths, step):
    """The prox solves min |t - x|²/2 + step Σ|t_g|, whose gradient is t - x."""
    solved = penalties.prox(codes, widths, step)
    distance = penalties.optimality_distance(solved, solved - codes, widths, step)
    size = max(step, np.abs(codes).max())
    # A group that the prox leaves tiny has a direction known only to rounding / its length.
    lengths = penalties.group_norms(solved, widths)
    rounding = 1e-13 * size * (1 + step / np.where(lengths > 0, lengths, np.inf))
    assert np.all(distance <= rounding)


def test_distance_elsewhere_is_the_gap():
    """One row, two groups: each entry worked out by hand."""
    codes = np.array([[3.0, 4.0, 0.0], [0.0, 0.0, -2.0]])
    gradient = np.array([[0.0, 0.0, 5.0], [6.0, 8.0, 1.0]])
    distance = penalties.optimality_distance(codes, gradient, (2, 1), 2.0)
    np.testing.assert_allclose(distance, [[2.0, 3.0], [8.0, 1.0]], rtol=1e-15)


@pytest.mark.parametrize("widths", [(3, 2), (5,), (1, 3, 1)])
def test_distance_is_positive_off_the_solution(rng, widths):
    target = 3 * rng.standard_normal((40, 5))
    solved = penalties.prox(target, widths, 1.0)
    moved = solved + 1e-3 * rng.standard_normal(solved.shape)
    distance = penalties.optimality_distance(moved, moved - target, widths, 1.0)
    assert np.all(distance.max(axis=1) > 1e-4)
