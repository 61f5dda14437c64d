"""Principal axes: either Gram side, one or several blocks, next to scikit-learn and an SVD."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import PCA

from froda import pca
from froda.pca import principal_axes
from froda.rows import Rows

SHAPES = {"few rows": (12, 30), "many rows": (60, 9), "square": (20, 20)}
every_shape = pytest.mark.parametrize("shape", SHAPES)


def make(rng, shape, dtype=np.float64):
    """Return rows whose columns have distinct variances and means off zero."""
    n_rows, n_features = SHAPES[shape]
    spread = np.geomspace(1, 0.05, n_features)
    return (rng.standard_normal((n_rows, n_features)) * spread + rng.random(n_features)).astype(
        dtype
    )


def split(X):
    """Return the rows in two blocks."""
    return [Rows(X[: len(X) // 3]), Rows(X[len(X) // 3 :])]


def centred_spectrum(X):
    """Return the squared singular values of the centred rows."""
    return np.linalg.svd(X - X.mean(axis=0), compute_uv=False) ** 2


@every_shape
def test_agrees_with_scikit_learn(rng, shape):
    X = make(rng, shape)
    principal, (first, second) = principal_axes(split(X))
    rank = min(len(X) - 1, X.shape[1])
    other = PCA(n_components=rank, svd_solver="full").fit(X)
    np.testing.assert_allclose(principal.mean, other.mean_, atol=1e-14)
    signs = np.sign(np.einsum("ij,ji->i", other.components_, principal.axes))
    np.testing.assert_allclose(principal.axes, other.components_.T * signs, atol=1e-10)
    np.testing.assert_allclose(
        principal.square_sums, other.explained_variance_ * (len(X) - 1), rtol=1e-9
    )
    np.testing.assert_allclose(np.vstack([first, second]), other.transform(X) * signs, atol=1e-11)


@every_shape
def test_axes_are_orthonormal_and_rebuild_the_rows(rng, shape):
    X = make(rng, shape)
    principal, (coordinates,) = principal_axes([Rows(X)])
    np.testing.assert_allclose(
        principal.axes.T @ principal.axes, np.eye(coordinates.shape[1]), atol=1e-10
    )
    np.testing.assert_allclose(principal.mean + coordinates @ principal.axes.T, X, atol=1e-12)
    np.testing.assert_allclose((coordinates**2).sum(axis=0), principal.square_sums, rtol=1e-10)
    assert np.all(np.diff(principal.square_sums) < 0)


@every_shape
def test_both_sides_give_the_same(rng, shape):
    X = make(rng, shape)
    blocks = split(X)
    mean = X.mean(axis=0)
    by_rows, rows_coordinates = pca._through_rows(blocks, mean, 0.99)
    by_columns, columns_coordinates = pca._through_columns(blocks, mean, 0.99)
    np.testing.assert_allclose(by_rows.axes, by_columns.axes, atol=1e-10)
    np.testing.assert_allclose(by_rows.square_sums, by_columns.square_sums, rtol=1e-10)
    for a, b in zip(rows_coordinates, columns_coordinates, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-10)


def test_the_cheaper_side_is_taken(rng, monkeypatch):
    taken = []
    for name in ("_through_rows", "_through_columns"):
        original = getattr(pca, name)
        monkeypatch.setattr(
            pca, name, lambda *args, f=original, n=name: (taken.append(n), f(*args))[1]
        )
    for shape in SHAPES:
        principal_axes(split(make(rng, shape)))
    assert taken == ["_through_rows", "_through_columns", "_through_columns"]


@every_shape
@pytest.mark.parametrize("variance", [0.1, 0.5, 0.9, 0.99, 0.9999, 1.0])
def test_keeps_as_few_axes_as_reach_the_share(rng, shape, variance):
    X = make(rng, shape)
    spectrum = centred_spectrum(X)
    principal, _ = principal_axes(split(X), variance)
    kept = principal.axes.shape[1]
    shares = np.cumsum(spectrum) / spectrum.sum()
    assert shares[kept - 1] >= variance - 1e-11
    assert kept == 1 or shares[kept - 2] < variance


def test_a_share_that_is_met_exactly_takes_no_axis_more():
    """Variances 3 : 1, so one axis holds exactly three quarters."""
    X = np.array([[3.0, 0], [-3, 0], [0, np.sqrt(3)], [0, -np.sqrt(3)]])
    assert principal_axes([Rows(X)], 0.75)[0].axes.shape == (2, 1)
    assert principal_axes([Rows(X)], 0.7501)[0].axes.shape == (2, 2)


@every_shape
@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_no_axes_without_variance(rng, shape, rank, dtype):
    """Data of low rank, some way off the origin: rounding is not a direction."""
    n_rows, n_features = SHAPES[shape]
    X = rng.standard_normal((n_rows, rank)) @ rng.standard_normal((rank, n_features)) + 1
    principal, _ = principal_axes([Rows(X.astype(dtype))])
    assert principal.axes.shape[1] == rank


@every_shape
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_that_are_all_the_same_have_no_axes(shape, dtype):
    X = np.full(SHAPES[shape], 0.1, dtype=dtype)
    principal, (coordinates,) = principal_axes([Rows(X)])
    assert principal.axes.shape == (X.shape[1], 0)
    assert coordinates.shape == (len(X), 0)


@every_shape
def test_signs_are_reproducible(rng, shape):
    """The entry of largest size of every axis is positive, whatever the order of rows."""
    X = make(rng, shape)
    axes = principal_axes([Rows(X)])[0].axes
    assert np.all(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] > 0)
    again = principal_axes([Rows(X[rng.permutation(len(X))])])[0].axes
    np.testing.assert_allclose(again, axes, atol=1e-9)
    np.testing.assert_allclose(principal_axes([Rows(2 * X)])[0].axes, axes, atol=1e-9)


@every_shape
def test_projecting_the_rows_gives_their_coordinates(rng, shape):
    X = make(rng, shape)
    blocks = split(X)
    principal, coordinates = principal_axes(blocks, 0.99)
    for block, expected in zip(blocks, coordinates, strict=True):
        np.testing.assert_allclose(principal.project(block), expected, atol=1e-11)


@every_shape
def test_sparse_pending_rows_equal_dense_ones(rng, shape):
    X = make(rng, shape) * (rng.random(SHAPES[shape]) < 0.3)
    shift, scale = rng.random(X.shape[1]), 0.5 + rng.random(len(X))
    pending, pending_coordinates = principal_axes([Rows(sparse.csr_array(X), shift, scale)], 0.99)
    dense, dense_coordinates = principal_axes([Rows((X - shift) * scale[:, None])], 0.99)
    np.testing.assert_allclose(pending.axes, dense.axes, atol=1e-9)
    np.testing.assert_allclose(pending_coordinates[0], dense_coordinates[0], atol=1e-9)


@every_shape
def test_float32_is_near_float64(rng, shape):
    X = make(rng, shape)
    exact, (exact_coordinates,) = principal_axes([Rows(X)], 0.9)
    found, (coordinates,) = principal_axes([Rows(X.astype(np.float32))], 0.9)
    assert found.axes.dtype == coordinates.dtype == found.mean.dtype == np.float32
    np.testing.assert_allclose(found.axes, exact.axes, atol=1e-4)
    np.testing.assert_allclose(coordinates, exact_coordinates, atol=1e-4)


@every_shape
def test_a_distant_origin_costs_digits_and_no_more(rng, shape):
    """Gram matrices square the offset: of 16 digits, 2·3 go with an offset of 1e3."""
    X = make(rng, shape)
    near, far = (principal_axes([Rows(X + offset)], 0.9)[0] for offset in (0.0, 1e3))
    np.testing.assert_allclose(far.square_sums, near.square_sums, rtol=1e-6)
    np.testing.assert_allclose(far.axes, near.axes, atol=1e-5)


def test_inputs_are_not_written_to(rng):
    for shape in SHAPES:
        X = make(rng, shape)
        X.flags.writeable = False
        principal_axes(split(X), 0.9)
