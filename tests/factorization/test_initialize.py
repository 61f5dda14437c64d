"""Starting points: V from the source, U from the complement of V."""

from __future__ import annotations

import numpy as np
import pytest

from froda.factorization.initialize import from_source_axes, truncated_complement
from froda.factorization.problem import Problem


def orthonormal(rng, n_features, n_columns):
    """Return orthonormal columns in general position."""
    return np.linalg.qr(rng.standard_normal((n_features, n_columns)))[0]


def problem(rng, n_features, **settings):
    """Return a problem of which only the settings matter here."""
    Xs, Xt = rng.standard_normal((6, n_features)), rng.standard_normal((7, n_features))
    return Problem(Xs, Xt, 0.1, 1.0, **settings)


@pytest.mark.parametrize(
    ("n_features", "d", "width"), [(10, 3, 3), (10, 7, 3), (4, 4, 0), (9, 1, 1)]
)
def test_complement_is_orthonormal_and_orthogonal(rng, n_features, d, width):
    V = orthonormal(rng, n_features, d)
    U = truncated_complement(V, d)
    assert U.shape == (n_features, width)
    np.testing.assert_allclose(U.T @ U, np.eye(width), atol=1e-14)
    np.testing.assert_allclose(V.T @ U, 0, atol=1e-14)


@pytest.mark.parametrize("offset", [0, 2, 3])
def test_complement_of_unit_vectors(offset):
    """Leading blocks that are singular, or zero, are no exception."""
    V = np.eye(9)[:, offset : offset + 3]
    U = truncated_complement(V, 3)
    np.testing.assert_allclose(U.T @ U, np.eye(3), atol=1e-14)
    np.testing.assert_allclose(V.T @ U, 0, atol=1e-14)


def test_complement_of_leading_axes_is_the_next_axes():
    """In the coordinates of the joint PCA: U takes the next directions of variance."""
    np.testing.assert_array_equal(truncated_complement(np.eye(8)[:, :3], 3), np.eye(8)[:, 3:6])


def test_complement_is_deterministic_and_ignores_rotations_of_V(rng):
    V = orthonormal(rng, 12, 4)
    U = truncated_complement(V, 4)
    np.testing.assert_array_equal(truncated_complement(V.copy(), 4), U)
    turned = V @ orthonormal(rng, 4, 4)
    np.testing.assert_allclose(truncated_complement(turned, 4), U, atol=1e-13)
    np.testing.assert_allclose(truncated_complement(V[:, ::-1] * [1, -1, 1, -1], 4), U, atol=1e-13)


def test_complement_moves_little_when_V_does(rng):
    V = orthonormal(rng, 12, 4)
    nearby = np.linalg.qr(V + 1e-7 * rng.standard_normal(V.shape))[0]
    change = truncated_complement(nearby, 4) - truncated_complement(V, 4)
    assert np.abs(change).max() < 1e-5


@pytest.mark.parametrize("has_private", [False, True])
@pytest.mark.parametrize("d", [3, 7])
def test_start_satisfies_the_total_limit(rng, d, has_private):
    """Without a source-private basis each of V and U has its own budget; with one they share."""
    V = orthonormal(rng, 10, d)
    settings = problem(rng, 10, constraint="total", has_source_private=has_private)
    point = from_source_axes(settings, V)
    norms = [np.linalg.norm(basis, axis=0).sum() for basis in (point.V, point.U)]
    if has_private:
        assert sum(norms) == pytest.approx(1, rel=1e-14)
    else:
        assert norms == pytest.approx([1, 1], rel=1e-14)
    np.testing.assert_allclose(point.V / np.linalg.norm(point.V, axis=0), V, atol=1e-14)


@pytest.mark.parametrize("has_private", [False, True])
def test_start_satisfies_the_column_limit(rng, has_private):
    V = orthonormal(rng, 10, 3)
    point = from_source_axes(problem(rng, 10, has_source_private=has_private), V)
    np.testing.assert_array_equal(point.V, V)
    np.testing.assert_allclose(np.linalg.norm(point.U, axis=0), 1, rtol=1e-14)
    if has_private:
        np.testing.assert_array_equal(point.U2, point.U)
        assert not np.shares_memory(point.U2, point.U)
    else:
        assert point.U2 is None


def test_no_room_leaves_U_empty(rng):
    for constraint in ("per_column", "total"):
        point = from_source_axes(problem(rng, 4, constraint=constraint), np.eye(4))
        assert point.U.shape == (4, 0)


def test_start_keeps_its_input_and_the_type_of_the_rows(rng):
    axes = orthonormal(rng, 10, 3)
    axes.flags.writeable = False
    rows = rng.standard_normal((5, 10)).astype(np.float32)
    point = from_source_axes(Problem(rows, rows, 0.1, 1.0), axes)
    assert point.V.dtype == point.U.dtype == np.float32
