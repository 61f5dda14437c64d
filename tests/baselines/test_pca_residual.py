"""The residual outside the subspace of the source against its definition."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import StratifiedKFold

from froda.baselines import PCAResidual
from froda.baselines.pca_residual import separating_cut
from froda.heads import make_head

PLAIN = {"row_sum": False, "zscore": False, "unit_norm": False, "pca_variance": None}


def make_task(rng, n=40, n_features=10):
    """Two classes near a plane, and an unknown class off it."""
    plane = np.linalg.qr(rng.normal(size=(n_features, 3)))[0]
    y = np.repeat([0, 1], n)
    centres = np.array([[4.0, 0, 0], [-4, 0, 0], [0, 0, 6]]) @ plane.T
    X = centres[y] + rng.normal(size=(2 * n, 2)) @ plane[:, :2].T + 2
    X += 0.3 * rng.normal(size=X.shape)
    y_target = np.repeat([0, 1, -1], n)
    X_target = centres[y_target] + 2 + 0.6 * rng.normal(size=(3 * n, n_features))
    return X, y, X_target, y_target


def brute_share(rows, X, d):
    """Return the share of the norm outside the d leading axes of X, row by row."""
    mean = X.mean(axis=0)
    axes = np.linalg.svd(X - mean)[2]
    inside = [axes[:d] @ (row - mean) for row in rows]
    outside = [axes[d:] @ (row - mean) for row in rows]
    norm = np.linalg.norm
    return np.array(
        [norm(o) / np.hypot(norm(o), norm(i)) for i, o in zip(inside, outside, strict=True)]
    )


def brute_held_out(X, y, d):
    """Return the shares of held-out rows in the folds of the base."""
    order = np.lexsort(np.abs(X).T[::-1])
    X, y = X[order], y[order]
    shares = np.empty(len(X))
    for fitted, rest in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        shares[rest] = brute_share(X[rest], X[fitted], d)
    return shares


@pytest.mark.parametrize(("d", "rejection"), [(1, 0.05), (2, 0.05), (2, 0.4), (9, 0.1)])
def test_definition(d, rejection, rng):
    X, y, X_target, _ = make_task(rng)
    model = PCAResidual(d, rejection=rejection, **PLAIN).fit(X, y, X_target)
    shares = brute_share(X_target, X, d)
    assert_allclose(model.unknown_score(X_target), shares, rtol=1e-7)
    expected = np.quantile(brute_held_out(X, y, d), 1 - rejection)
    assert_allclose(model.threshold_, expected, rtol=1e-7)
    labels = make_head("svm", X, None).fit(X, y).predict(X_target)
    assert_array_equal(model.predict(X_target), np.where(shares > expected, -1, labels))


def test_source_unknowns_place_the_threshold(rng):
    X, y, X_target, y_target = make_task(rng)
    off = 2 + 3 * rng.normal(size=(30, 10))
    model = PCAResidual(2, **PLAIN)
    model.fit(np.vstack([X, off]), np.append(y, np.full(30, -1)), X_target)
    assert_allclose(model.unknown_score(X_target), brute_share(X_target, X, 2), rtol=1e-7)
    held_out, unknown = brute_held_out(X, y, 2), brute_share(off, X, 2)

    def mean_recall(cut):
        return (np.mean(held_out <= cut) + np.mean(unknown > cut)) / 2

    tried = [mean_recall(cut) for cut in np.linspace(0, 1, 2001)]
    assert mean_recall(model.threshold_) >= max(tried)
    assert (model.predict(X_target) == y_target).mean() > 0.8


@pytest.mark.parametrize(
    ("known", "unknown", "cut"),
    [
        ([0.1, 0.2], [0.6, 0.8], 0.4),
        ([0.1, 0.5], [0.3, 0.7, 0.9], 0.6),
        ([0.5], [0.5], 0.5),
        ([0.1, 0.2, 0.6], [0.4, 0.5, 0.9], 0.3),
    ],
)
def test_separating_cut(known, unknown, cut):
    assert separating_cut(np.array(known), np.array(unknown)) == pytest.approx(cut)


def test_source_in_the_subspace_has_no_residual(rng):
    plane = np.linalg.qr(rng.normal(size=(8, 2)))[0]
    X, y = rng.normal(size=(40, 2)) @ plane.T + 1, np.repeat([0, 1], 20)
    X_target = np.vstack([X[:5], X[:5] + np.linalg.svd(plane)[0][:, 5]])
    model = PCAResidual(2, **PLAIN).fit(X, y, X_target)
    score = model.unknown_score(X_target)
    assert_allclose(score[:5], 0, atol=1e-12)
    assert np.all(score[5:] > 0.1)


@pytest.mark.parametrize("d", [10, 50])
def test_no_room_outside_the_subspace(d, rng):
    X, y, X_target, _ = make_task(rng)
    with pytest.raises(ValueError, match=rf"n_components={d} is larger.*at most 9"):
        PCAResidual(d, **PLAIN).fit(X, y, X_target)


def test_one_direction_leaves_nothing_to_reject(rng):
    X = rng.uniform(1, 2, size=(40, 2))  # divided by its sum, a row has one free number
    y = (X[:, 0] > X[:, 1]).astype(int)
    with pytest.warns(UserWarning, match="one direction only"):
        model = PCAResidual().fit(X, y, X.copy())
    assert model.threshold_ == np.inf
    assert set(model.predict(X)) == {0, 1}


def test_known_source_all_the_same(rng):
    X, y, X_target, _ = make_task(rng)
    X = np.vstack([np.ones_like(X), X])
    y = np.append(y, np.full(len(y), -1))
    with pytest.raises(ValueError, match="known source rows are all the same"):
        PCAResidual(**PLAIN).fit(X, y, X_target)
