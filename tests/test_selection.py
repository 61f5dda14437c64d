"""Choices without target labels: planted data where the right candidate is clear."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier

from froda import ProgressiveMixture
from froda.baselines import LSVM, OSVM
from froda.datasets import make_planted
from froda.selection import (
    SCORERS,
    OpenSetSearch,
    certainty,
    leave_classes_out,
    neighbourhood,
    stability,
)


@pytest.fixture(scope="module")
def task():
    """Three unknown classes in the target, none in the source."""
    planted = make_planted(
        150, 200, n_source_unknown=0, n_features=40, n_shared=8, n_private=8, seed=1
    )
    return planted.task()


class Prototypes(BaseEstimator):
    """The class of the closest mean; unknown beyond a radius. Its fits are kept for tests."""

    fits = ()

    def __init__(self, radius=np.inf, noise=0.0, unknown_label=None):
        self.radius = radius
        self.noise = noise
        self.unknown_label = unknown_label

    def fit(self, X, y, X_target):
        """Store the means of the known classes."""
        Prototypes.fits += ((X, y, X_target),)
        self.unknown_ = -1 if self.unknown_label is None else self.unknown_label
        known = np.unique(y[y != self.unknown_])
        self.classes_ = np.append(known, self.unknown_)
        self.means_ = np.array([X[y == label].mean(axis=0) for label in known])
        self.shift_ = int(1e6 * abs(X_target).mean()) % 2**31
        return self

    def decision_function(self, X):
        """Return minus the distances, and minus the radius."""
        away = np.linalg.norm(X[:, None] - self.means_, axis=2)
        away = away + self.noise * np.random.default_rng(self.shift_).normal(size=away.shape)
        return np.column_stack([-away, np.full(len(X), -min(self.radius, 1e9))])

    def predict(self, X):
        """Return the labels of the largest scores."""
        return self.classes_[self.decision_function(X).argmax(axis=1)]

    def unknown_score(self, X):
        """Return the distance to the closest mean."""
        return -self.decision_function(X)[:, :-1].max(axis=1)


class Broken(Prototypes):
    """Fails in fit."""

    def fit(self, X, y, X_target):
        """Fail."""
        raise ArithmeticError("out of cheese")


class BrokenOnAll(Prototypes):
    """Fails where no class is hidden."""

    def fit(self, X, y, X_target):
        """Fail on the whole source."""
        if len(np.unique(y)) == 4:
            raise ArithmeticError("too much cheese")
        return super().fit(X, y, X_target)


@pytest.fixture
def blobs(rng):
    """Four known classes around far corners, and two more in the target; 8 columns."""
    centres = 10 * np.eye(8)
    y, y_target = np.repeat(np.arange(4), 30), np.repeat(np.arange(6), 30)
    X = centres[y] + rng.normal(size=(len(y), 8))
    X_target = centres[y_target] + rng.normal(size=(len(y_target), 8))
    return X, y, X_target


GOOD, CLOSED, SHY = Prototypes(7.0), Prototypes(), Prototypes(0.1)


@pytest.mark.parametrize("scorer", [leave_classes_out, stability, neighbourhood])
def test_a_right_radius_is_found(scorer, blobs):
    """Too small calls everything unknown; none forces the unknown ones into known classes."""
    good, closed, shy = (scorer(model, *blobs) for model in (GOOD, CLOSED, SHY))
    assert good > 0.9
    assert shy == 0
    if scorer is not stability:  # to be wrong is no reason to be unstable
        assert closed < good - 0.05


def test_certainty_asks_for_firm_labels_that_differ(blobs):
    firm, shy = (certainty(model, *blobs) for model in (GOOD, SHY))
    assert 0 <= shy < 0.1
    assert 0.5 < firm <= 1
    n_samples = len(blobs[2])

    class Chances(Prototypes):
        def predict_proba(self, X):
            return self.chances

    for chances, expected in (
        (np.full((n_samples, 3), 1 / 3), 0.0),
        (np.eye(3)[np.zeros(n_samples, dtype=int)], 0.0),
        (np.eye(3)[np.arange(n_samples) % 3], 1.0),
    ):
        Chances.chances = chances
        assert certainty(Chances(), *blobs) == pytest.approx(expected, abs=1e-12)


def test_stability_sees_labels_that_hang_on_the_draw(blobs):
    assert stability(GOOD, *blobs) > stability(Prototypes(7.0, noise=5.0), *blobs) + 0.2


def test_neighbours_are_those_by_direction(blobs, rng):
    X, y, X_target = blobs

    class Directions(Prototypes):
        def predict(self, X):
            return X.argmax(axis=1)

    lengths = rng.uniform(0.01, 100, size=(len(X_target), 1))
    expected = neighbourhood(Directions(), X, y, X_target)
    assert expected > 0.9
    assert neighbourhood(Directions(), X, y, lengths * X_target) == pytest.approx(expected)


def test_labels_by_chance_earn_nothing(blobs):
    """Labels that do not follow the rows agree as often as their shares say."""

    class Lottery(Prototypes):
        def predict(self, X):
            return np.random.default_rng(self.shift_).integers(0, 2, len(X))

    assert abs(neighbourhood(Lottery(), *blobs)) < 0.15
    assert abs(stability(Lottery(), *blobs)) < 0.2
    X, y, X_target = blobs
    assert neighbourhood(GOOD, X, y, 3 * X_target[:2], n_neighbors=9) == 0  # one label


@pytest.mark.parametrize("name", SCORERS)
def test_scorers_are_deterministic_and_leave_everything_as_it_was(name, task):
    X, y, X_target = task.visible()  # read-only
    model = OSVM()
    first, second = (SCORERS[name](model, X, y, X_target) for _ in range(2))
    assert first == second
    with pytest.raises(NotFittedError):
        model.predict(X_target)


@pytest.mark.parametrize("scorer", [leave_classes_out, stability])
def test_another_seed_is_another_draw(scorer, blobs):
    model = Prototypes(3.0, noise=1.0)
    assert scorer(model, *blobs, seed=0) == scorer(model, *blobs, seed=0)
    assert scorer(model, *blobs, seed=0) != scorer(model, *blobs, seed=1)
    assert scorer(model, *blobs, n_draws=2) != scorer(model, *blobs, n_draws=3)


@pytest.mark.parametrize("name", SCORERS)
def test_no_target_label_has_a_way_in(name):
    parameters = list(inspect.signature(SCORERS[name]).parameters)
    assert parameters[:4] == ["estimator", "X", "y", "X_target"]
    assert set(parameters[4:]) <= {"n_draws", "seed", "n_neighbors"}


def test_hidden_classes_are_in_the_target_alone(blobs):
    X, y, X_target = blobs
    Prototypes.fits = ()
    leave_classes_out(GOOD, X, y, X_target, n_draws=4)
    assert len(Prototypes.fits) == 4
    for kept, labels, target in Prototypes.fits:
        assert len(np.unique(labels)) == 3
        assert len(kept) == len(labels) == 60  # two thirds of three classes
        assert_array_equal(target[: len(X_target)], X_target)
        probes = target[len(X_target) :]
        assert len(probes) == 60  # one class and a third of three
        together = np.vstack([kept, probes])
        assert_array_equal(np.sort(together, axis=0), np.sort(X, axis=0))


def test_source_rows_of_unknown_classes_stay_in_the_source(blobs):
    X, y, X_target = blobs
    names = np.array(["a", "b", "c", "other"])[y]
    Prototypes.fits = ()
    leave_classes_out(Prototypes(7.0, unknown_label="other"), X, names, X_target)
    for _, labels, _ in Prototypes.fits:
        assert np.count_nonzero(labels == "other") == 30
        assert len(np.unique(labels)) == 3


def test_classes_of_one_row_are_never_held_out(blobs):
    X, y, X_target = blobs
    rows = np.r_[0, 30, 60:120]
    assert leave_classes_out(GOOD, X[rows], y[rows], X_target) >= 0
    few = np.r_[0, 30, 60, 90]
    with pytest.raises(ValueError, match="two rows or more"):
        leave_classes_out(GOOD, X[few], y[few], X_target)


@pytest.mark.parametrize("name", SCORERS)
def test_sparse_rows_score_as_dense_ones(name, task):
    X, y, X_target = task.visible()
    X, X_target = np.where(X > 0.5, X, 0), np.where(X_target > 0.5, X_target, 0)
    dense = SCORERS[name](OSVM(), X, y, X_target)
    thin = SCORERS[name](OSVM(), sparse.csr_array(X), y, sparse.csr_array(X_target))
    assert thin == pytest.approx(dense, abs=0.02)


@pytest.mark.parametrize("name", SCORERS)
def test_bad_data_are_told(name, blobs):
    X, y, X_target = blobs
    with pytest.raises(ValueError, match="X_target is missing"):
        SCORERS[name](GOOD, X, y, None)
    with pytest.raises(ValueError, match="8 columns and X_target 7"):
        SCORERS[name](GOOD, X, y, X_target[:, 1:])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SCORERS[name](GOOD, X, y[1:], X_target)
    with pytest.raises(ValueError, match="X_target contains NaN"):
        SCORERS[name](GOOD, X, y, np.where(X_target > 9, np.nan, X_target))


def test_what_a_scorer_cannot_do_is_told(blobs):
    X, y, X_target = blobs
    with pytest.raises(ValueError, match="y has 2 known classes"):
        leave_classes_out(GOOD, X, y % 2, X_target)
    with pytest.raises(ValueError, match="n_draws must be a whole number of at least 2"):
        stability(GOOD, X, y, X_target, n_draws=1)

    class Mute(BaseEstimator):
        def fit(self, X, y, X_target):
            return self

        def predict(self, X):
            return np.zeros(len(X))

    with pytest.raises(ValueError, match="Mute has neither"):
        certainty(Mute(), X, y, X_target)


@pytest.mark.parametrize("scoring", ["leave_classes_out", "neighbourhood", neighbourhood])
def test_search_takes_the_right_candidate(scoring, blobs):
    X, y, X_target = blobs
    candidates = {"closed": CLOSED, "good": GOOD, "shy": SHY}
    search = OpenSetSearch(candidates, scoring=scoring).fit(X, y, X_target)
    assert search.best_name_ == "good"
    assert [trial.name for trial in search.results_] == list(candidates)
    assert search.best_score_ == max(trial.score for trial in search.results_)
    alone = clone(GOOD).fit(X, y, X_target)
    for method in ("predict", "decision_function", "unknown_score"):
        assert_array_equal(getattr(search, method)(X_target), getattr(alone, method)(X_target))
    assert_array_equal(search.fit_predict(X, y, X_target), alone.predict(X_target))
    assert_array_equal(search.classes_, [0, 1, 2, 3, -1])
    assert not hasattr(GOOD, "means_")


def test_search_prefers_a_method_that_knows_unknowns(task):
    search = OpenSetSearch({"svm": LSVM(), "mixture": ProgressiveMixture()})
    labels = search.fit_predict(*task.visible())
    assert search.best_name_ == "mixture"
    assert task.score(labels)["HOS"] > 0.8


def test_a_candidate_that_fails_is_recorded_and_never_wins(blobs):
    candidates = {"broken": Broken(), "shy": SHY, "nan": CLOSED, "late": BrokenOnAll(7.0)}

    def scoring(estimator, X, y, X_target):
        if estimator is CLOSED:
            return np.nan
        return leave_classes_out(estimator, X, y, X_target)

    search = OpenSetSearch(candidates, scoring=scoring).fit(*blobs)
    assert search.best_name_ == "shy"
    failures = {trial.name: trial.failure for trial in search.results_}
    assert failures["shy"] is None
    assert failures["broken"] == "ArithmeticError: out of cheese"
    assert failures["late"] == "ArithmeticError: too much cheese"
    assert "not a finite number" in failures["nan"]
    with pytest.raises(ValueError, match=r"all candidates failed. a: Arith.* cheese; b: Arith"):
        OpenSetSearch({"a": Broken(), "b": BrokenOnAll()}, scoring=scoring).fit(*blobs)


def test_the_first_of_equals_wins(blobs):
    search = OpenSetSearch({"b": clone(GOOD), "a": clone(GOOD)}).fit(*blobs)
    assert search.best_name_ == "b"


def test_search_can_be_cloned_and_takes_frames(blobs):
    X, y, X_target = blobs
    names = [f"column {place}" for place in range(8)]
    search = clone(OpenSetSearch({"svm": OSVM(), "mixture": ProgressiveMixture()}))
    search.fit(pd.DataFrame(X, columns=names), y, pd.DataFrame(X_target, columns=names))
    assert list(search.best_estimator_.feature_names_in_) == names
    assert search.n_features_in_ == 8


def test_search_refuses_what_makes_no_sense(blobs):
    X, y, X_target = blobs
    with pytest.raises(NotFittedError):
        OpenSetSearch({"good": GOOD}).predict(X_target)
    with pytest.raises(ValueError, match="scoring must be one of 'leave_classes_out'"):
        OpenSetSearch({"good": GOOD}, scoring="hos").fit(*blobs)
    for nothing in ({}, [GOOD], None):
        with pytest.raises(ValueError, match="candidates must be a dict"):
            OpenSetSearch(nothing).fit(*blobs)
    for strange in (Prototypes, "svm", None):
        with pytest.raises(ValueError, match=r"candidates\['it'\] is not an estimator"):
            OpenSetSearch({"it": strange}).fit(*blobs)
    with pytest.raises(ValueError, match="X_target is missing"):
        OpenSetSearch({"good": GOOD}).fit(X, y, None)


def test_a_classifier_without_a_target_is_no_candidate_that_wins(blobs):
    search = OpenSetSearch({"neighbours": KNeighborsClassifier(), "good": GOOD}).fit(*blobs)
    assert search.best_name_ == "good"
    assert search.results_[0].failure.startswith("TypeError")
