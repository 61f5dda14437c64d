"""ProgressiveMixture as a user meets it; the common checks are in tests/baselines."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import roc_auc_score

from froda import ProgressiveMixture
from froda.datasets import make_planted
from froda.progressive import rounds


def make_task(rng, n=40, shift=0.5):
    """Clusters around random centres; the last ones are in the target alone."""
    n_features, n_known, n_unknown = 30, 3, 2
    centres = 3 * rng.normal(size=(n_known + n_unknown, n_features))
    y = np.repeat(np.arange(n_known), n)
    truth = np.repeat(np.arange(n_known + n_unknown), n)
    X = centres[y] + rng.normal(size=(len(y), n_features))
    X_target = centres[truth] + rng.normal(size=(len(truth), n_features)) + shift
    return X, y, X_target, np.where(truth < n_known, truth, -1)


def test_clusters_are_told_apart(rng):
    X, y, X_target, truth = make_task(rng)
    model = ProgressiveMixture().fit(X, y, X_target)
    assert (model.predict(X_target) == truth).mean() > 0.97
    assert roc_auc_score(truth == -1, model.unknown_score(X_target)) > 0.99
    assert model.unknown_share_ == pytest.approx(0.4, abs=0.03)
    assert 0 <= model.agreement_ <= 1


def test_planted_subspaces_are_told_apart():
    task = make_planted(n_source_unknown=0).task()
    model = ProgressiveMixture().fit(*task.visible())
    score = model.unknown_score(task.X_target)
    assert roc_auc_score(task.y_target == task.unknown_label, score) > 0.95


def test_labels_of_the_fit_are_those_of_predict(rng):
    X, y, X_target, _ = make_task(rng, shift=1.0)
    model = ProgressiveMixture().fit(X, y, X_target)
    assert_array_equal(model.predict(X_target), model.target_labels_)
    assert_array_equal(model.unknown_score(X_target) > 0, model.target_labels_ == -1)


def test_new_samples_are_labelled_like_those_of_the_fit(rng):
    X, y, X_target, _ = make_task(rng, n=60)
    held_out = np.arange(len(X_target)) % 3 == 0
    whole = ProgressiveMixture().fit_predict(X, y, X_target)
    part = ProgressiveMixture().fit(X, y, X_target[~held_out])
    assert (part.predict(X_target[held_out]) == whole[held_out]).mean() >= 0.95


def test_the_scale_of_the_features_does_not_matter(rng):
    X, y, X_target, _ = make_task(rng)
    scores = [
        ProgressiveMixture().fit(size * X, y, size * X_target).unknown_score(size * X_target)
        for size in (1, 1e-3, 1e4)
    ]
    assert_allclose(scores[1], scores[0], atol=1e-6)
    assert_allclose(scores[2], scores[0], atol=1e-6)


def test_probabilities_say_what_the_decision_says(rng):
    X, y, X_target, _ = make_task(rng)
    model = ProgressiveMixture().fit(X, y, X_target)
    chances = model.predict_proba(X_target)
    assert_allclose(chances.sum(axis=1), 1)
    assert chances.min() >= 0
    assert_array_equal(chances[:, -1] > 0.5, model.unknown_score(X_target) > 0)
    assert (chances.argmax(axis=1) == model.decision_function(X_target).argmax(axis=1)).mean() > 0.9


def test_source_unknowns_are_evidence(rng):
    X, y, X_target, truth = make_task(rng)
    spare = X_target[truth == -1][::4]
    with_unknowns = ProgressiveMixture().fit(
        np.vstack([X, spare]), np.append(y, np.full(len(spare), -1)), X_target
    )
    assert (with_unknowns.predict(X_target) == truth).mean() > 0.97
    assert with_unknowns.classes_.tolist() == [0, 1, 2, -1]


def test_source_unknowns_keep_their_clusters(rng, monkeypatch):
    monkeypatch.setattr(rounds, "keep_apart", lambda *_: pytest.fail("left a cluster out"))
    X, y, X_target, truth = make_task(rng)
    spare = X_target[truth == -1][::4]
    labels = np.append(y, np.full(len(spare), -1))
    ProgressiveMixture().fit(np.vstack([X, spare]), labels, X_target)


def test_without_a_target_nothing_is_unknown(rng):
    X, y, _, _ = make_task(rng)
    model = ProgressiveMixture().fit(X, y)
    assert_array_equal(model.predict(X), y)
    assert model.unknown_share_ == 0


def test_a_target_of_two_rows_is_taken(rng):
    X, y, X_target, _ = make_task(rng)
    labels = ProgressiveMixture().fit_predict(X, y, X_target[[0, -1]])
    assert labels.shape == (2,)


def test_a_constant_column_does_not_disturb(rng):
    X, y, X_target, _ = make_task(rng)
    padded = [np.column_stack([rows, np.full(len(rows), 7.0)]) for rows in (X, X_target)]
    assert_array_equal(
        ProgressiveMixture().fit_predict(padded[0], y, padded[1]),
        ProgressiveMixture().fit_predict(X, y, X_target),
    )


def test_domains_that_are_far_apart_are_remarked(rng):
    X, y, X_target, _ = make_task(rng)
    near = ProgressiveMixture().fit(X, y, X_target)
    assert near.separation_ > 0.6
    noise = rng.normal(size=X_target.shape)
    with pytest.warns(UserWarning, match="too far apart"):
        far = ProgressiveMixture().fit(X, y, noise)
    assert far.separation_ < 0.45


def test_without_the_joint_pca_its_axes_are_found_all_the_same(rng):
    X, y, X_target, truth = make_task(rng)
    late = [np.hstack([np.zeros((len(rows), 80)), rows]) for rows in (X, X_target)]
    model = ProgressiveMixture(pca_variance=None).fit(late[0], y, late[1])
    assert (model.predict(late[1]) == truth).mean() > 0.97


def test_the_docstring_has_the_defaults_of_the_class():
    assert "row_sum : bool, default=False" in ProgressiveMixture.__doc__
    assert "zscore : bool, default=True" in ProgressiveMixture.__doc__
