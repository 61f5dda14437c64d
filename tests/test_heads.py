"""Heads: what they are, and that the unit of the features does not matter to them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC

from froda.heads import class_scores, linear_scores, make_head


def make_features(rng):
    """Overlapping classes, so that the penalty of an SVM matters; number 2 is missing."""
    numbers = rng.choice([0, 1, 3], size=120)
    return rng.normal(size=(3, 6))[np.minimum(numbers, 2)] + rng.normal(size=(120, 6)), numbers


def test_the_svm_is_linear_with_a_penalty_relative_to_the_features(rng):
    features, numbers = make_features(rng)
    head = make_head("svm", features, None)
    assert head.kernel == "linear"
    assert pytest.approx(1 / (features**2).sum(axis=1).mean()) == head.C
    same = SVC(kernel="linear", C=head.C).fit(features, numbers)
    assert_array_equal(head.fit(features, numbers).support_, same.support_)


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_scores_of_the_svm_are_its_decision_function(n_classes, rng):
    """One product with the weights stands for a sum over all support vectors."""
    numbers = np.arange(150) % n_classes
    features = 0.7 * rng.normal(size=(n_classes, 5))[numbers] + rng.normal(size=(150, 5))
    head = make_head("svm", features, None).fit(features, numbers)
    new = rng.normal(size=(400, 5))
    expected = head.decision_function(new)
    expected = np.stack([-expected, expected], axis=1) if n_classes == 2 else expected
    scores = class_scores(head, new, n_classes)
    assert_allclose(scores, expected, atol=1e-9)
    assert_array_equal(scores.argmax(axis=1), head.predict(new))


@pytest.mark.parametrize("factor", [2.0**-30, 2.0**20])
def test_scaling_the_features_changes_no_score(factor, rng):
    features, numbers = make_features(rng)
    plain = make_head("svm", features, None).fit(features, numbers)
    scaled = make_head("svm", factor * features, None).fit(factor * features, numbers)
    assert_array_equal(scaled.support_, plain.support_)
    assert_allclose(
        class_scores(scaled, factor * features, 4), class_scores(plain, features, 4), atol=1e-9
    )


def test_three_neighbours_decide(rng):
    features, numbers = np.array([[0.0], [1.0], [1.1], [9.0]]), np.array([0, 1, 1, 0])
    head = make_head("nn", features, None).fit(features, numbers)
    assert head.predict([[0.1]]) == 1  # the nearest alone would say 0


def test_a_given_classifier_is_cloned_and_seeded(rng):
    given = LogisticRegression()
    head = make_head(given, np.ones((2, 2)), 5)
    assert head is not given
    assert (head.random_state, given.random_state) == (5, None)
    assert isinstance(make_head(GaussianNB(), np.ones((2, 2)), 5), GaussianNB)


@pytest.mark.parametrize("head", ["svm", "nn", GaussianNB(), SVC(decision_function_shape="ovo")])
def test_scores_follow_the_prediction_and_a_missing_class_is_never_chosen(head, rng):
    features, numbers = make_features(rng)
    fitted = make_head(head, features, None).fit(features, numbers)
    scores = class_scores(fitted, features, 5)
    assert scores.shape == (120, 5)
    assert_array_equal(scores.argmax(axis=1), fitted.predict(features))
    assert np.all(scores[:, [2, 4]].max(axis=1) < scores[:, [0, 1, 3]].min(axis=1))


def test_the_learnt_classifier_reads_the_shared_codes(rng):
    codes, W = rng.normal(size=(7, 3)), rng.normal(size=(2, 5))
    scores = linear_scores(codes, W, 3)
    assert_allclose(scores[:, :2], codes @ W[:, :3].T)
    assert np.all(scores[:, 2] < scores[:, :2].min(axis=1))
