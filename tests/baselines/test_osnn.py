"""The distance-ratio test against loops over all pairs."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import StratifiedKFold

from froda.baselines import OSNN
from froda.baselines.osnn import class_distances

PLAIN = {"row_sum": False, "zscore": False, "unit_norm": False, "pca_variance": None}


def make_task(rng, n_classes=3):
    """Overlapping classes, so that ratios are spread."""
    y = np.repeat(np.arange(n_classes), 20)
    X = rng.normal(size=(len(y), 4)) + 1.5 * rng.normal(size=(n_classes, 4))[y]
    return X, y, 2 * rng.normal(size=(80, 4))


def brute_ratio(x, X, y):
    """Return the ratio and the label of the nearest sample, as the definition says."""
    distances = np.linalg.norm(X - x, axis=1)
    nearest = distances.argmin()
    return distances[nearest] / distances[y != y[nearest]].min(), y[nearest]


def brute_ratios(rows, X, y):
    """Return the ratios of rows."""
    return np.array([brute_ratio(x, X, y)[0] for x in rows])


def test_ratio_and_labels(rng):
    X, y, X_target = make_task(rng)
    model = OSNN(**PLAIN).fit(X, y, X_target)
    ratios = brute_ratios(X_target, X, y)
    nearest = np.array([brute_ratio(x, X, y)[1] for x in X_target])
    assert_allclose(model.unknown_score(X_target), ratios, rtol=1e-7)
    assert 0.5 < model.threshold_ < 1
    expected = np.where(ratios > model.threshold_, -1, nearest)
    assert_array_equal(model.predict(X_target), expected)
    assert 0 < (expected == -1).mean() < 1


@pytest.mark.parametrize("rejection", [0.05, 0.3, 1.0])
def test_threshold_rejects_its_share_of_held_out_samples(rejection, rng):
    X, y, X_target = make_task(rng)
    model = OSNN(rejection=rejection, **PLAIN).fit(X, y, X_target)
    order = np.lexsort(np.abs(X).T[::-1])
    X, y = X[order], y[order]
    held_out = np.empty(len(X))
    for fitted, rest in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        held_out[rest] = brute_ratios(X[rest], X[fitted], y[fitted])
    assert_allclose(model.threshold_, np.quantile(held_out, 1 - rejection), rtol=1e-7)
    assert np.mean(held_out > model.threshold_) == pytest.approx(rejection, abs=1.01 / len(X))


def test_source_unknowns_are_a_class(rng):
    X, y, X_target = make_task(rng)
    y[y == 2] = -1
    model = OSNN(**PLAIN).fit(X, y, X_target)
    distances = np.linalg.norm(X_target[:, None] - X, axis=2)
    assert_array_equal(model.predict(X_target), y[distances.argmin(axis=1)])
    known, unknown = distances[:, y != -1].min(axis=1), distances[:, y == -1].min(axis=1)
    score = model.unknown_score(X_target)
    assert_allclose(score, known / (known + unknown), rtol=1e-7)
    assert_array_equal(model.predict(X_target) == -1, score > 0.5)


def test_source_samples_themselves(rng):
    X, y, _ = make_task(rng)
    model = OSNN(**PLAIN).fit(X, y)
    assert_allclose(model.unknown_score(X), 0, atol=1e-6)
    assert_array_equal(model.predict(X), y)


def test_a_sample_on_two_classes_is_the_most_unknown(rng):
    X, y, X_target = make_task(rng)
    X[0], X[20] = 9.0, 9.0
    model = OSNN(**PLAIN).fit(X, y, X_target)
    assert_allclose(model.unknown_score(np.full((1, 4), 9.0)), 1)
    assert model.predict(np.full((1, 4), 9.0)) == -1


def test_one_sample_of_a_class_leaves_no_threshold(rng):
    X, y, X_target = make_task(rng)
    kept = np.r_[0, 20:60]
    model = OSNN(**PLAIN).fit(X[kept], y[kept], X_target)
    assert model.threshold_ == np.inf
    assert not np.any(model.predict(X_target) == -1)


def test_distances_in_batches(rng):
    X, y, _ = make_task(rng)
    rows = rng.normal(size=(2300, 4))
    expected = np.stack(
        [np.linalg.norm(rows[:, None] - X[y == k], axis=2).min(axis=1) for k in range(3)], axis=1
    )
    shuffled = rng.permutation(len(X))
    assert_allclose(class_distances(rows, X[shuffled], y[shuffled]), expected, rtol=1e-7)
