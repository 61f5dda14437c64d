"""What is planted is there."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from froda import DFRODAU
from froda.datasets import make_planted
from froda.datasets.synthetic import class_sizes


def test_bases_are_orthonormal_together():
    planted = make_planted()
    axes = np.hstack([planted.shared_basis, planted.source_basis, planted.target_basis])
    assert_allclose(axes.T @ axes, np.eye(18), atol=1e-12)


def test_without_noise_samples_lie_in_their_subspace():
    planted = make_planted(noise=0.0)
    for domain, private in (
        (planted.source, planted.source_basis),
        (planted.target, planted.target_basis),
    ):
        known = domain.y < 5
        for rows, basis in ((domain.X[known], planted.shared_basis), (domain.X[~known], private)):
            assert len(rows)
            assert_allclose(rows @ basis @ basis.T, rows, atol=1e-10)


def test_noise_is_what_lies_outside():
    planted = make_planted(n_target=4000, noise=0.3)
    axes = np.hstack([planted.shared_basis, planted.source_basis, planted.target_basis])
    outside = planted.target.X - planted.target.X @ axes @ axes.T
    assert np.sqrt((outside**2).sum() / (4000 * (60 - 18))) == pytest.approx(0.3, rel=0.02)


@pytest.mark.parametrize("shift", [0.0, 2.5])
def test_shift_is_the_distance_of_the_known_classes(shift):
    planted = make_planted(20000, 20000, shift=shift)
    means = [d.X[d.y == 0].mean(axis=0) for d in (planted.source, planted.target)]
    assert np.linalg.norm(means[0] - means[1]) == pytest.approx(shift, abs=0.15)


def test_shares_and_imbalance():
    planted = make_planted(2000, 2000, unknown_share=0.25, imbalance=8.0)
    for domain, last in ((planted.source, 7), (planted.target, 10)):
        counts = np.bincount(domain.y, minlength=10)
        assert counts.sum() == 2000
        assert counts[5:].sum() == 500
        assert counts[0] / counts[4] == pytest.approx(8, rel=0.02)
        assert (counts[:5] > 0).all()
        assert counts[last:].sum() == 0
    task = planted.task()
    assert (task.y == -1).mean() == (task.y_target == -1).mean() == 0.25


def test_no_source_unknowns():
    task = make_planted(n_source_unknown=0).task()
    assert set(task.y) == {0, 1, 2, 3, 4}
    assert task.description.startswith("source to target; split planted: known 5")


def test_the_seed_settles_everything():
    first, again, other = make_planted(), make_planted(), make_planted(seed=1)
    assert_array_equal(first.target.X, again.target.X)
    assert not np.allclose(first.target.X, other.target.X)


def test_the_factorisation_finds_what_is_planted():
    task = make_planted().task()
    model = DFRODAU(n_components=6).fit(*task.visible())
    scores = task.score(model.predict(task.X_target), model.unknown_score(task.X_target))
    assert scores["AUROC"] > 0.9
    assert scores["HOS"] > 0.8


@pytest.mark.parametrize(
    ("n_samples", "n_classes", "imbalance", "sizes"),
    [(10, 3, 1.0, [4, 3, 3]), (3, 3, 9.0, [1, 1, 1]), (0, 2, 1.0, [0, 0]), (7, 0, 1.0, [])],
)
def test_class_sizes(n_samples, n_classes, imbalance, sizes):
    assert class_sizes(n_samples, n_classes, imbalance).tolist() == sizes


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_features": 17}, "at least n_shared .* = 18, got 17"),
        ({"imbalance": 0.5}, "imbalance must be at least 1"),
        ({"unknown_share": 1.0}, r"unknown_share in \[0, 1\)"),
        ({"n_known": 1}, "at least 2 known"),
        ({"n_target": 5}, "too few for 5 classes|too few for 3 classes"),
    ],
)
def test_settings_are_checked(settings, words):
    with pytest.raises(ValueError, match=words):
        make_planted(**settings)
