"""Open-set metrics against definitions written as loops, and at the edges."""

from __future__ import annotations

import pickle
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, average_precision_score, roc_auc_score
from sklearn.model_selection import cross_validate

from froda.metrics import (
    METRICS,
    accuracy,
    aupr,
    auroc,
    bootstrap_intervals,
    confusion_matrix,
    harmonic_mean,
    hos,
    known_recall,
    make_open_set_scorer,
    open_set_scores,
    os_score,
    oscr,
    unknown_recall,
    unknown_recall_by_class,
)


def samples(rng, n=300):
    """Labels -1..3, predictions right six times in ten, tied scores, fine unknown classes."""
    y_true = rng.integers(-1, 4, n)
    y_pred = np.where(rng.random(n) < 0.6, y_true, rng.integers(-1, 4, n))
    fine = np.where(y_true == -1, rng.integers(10, 14, n), y_true)
    return y_true, y_pred, rng.integers(0, 5, n), fine


def loops(y_true, y_pred, score, fine):
    """Every metric by its definition, in plain Python."""
    rows = range(len(y_true))

    def recall(labels, label):
        members = [i for i in rows if labels[i] == label]
        return sum(y_pred[i] == y_true[i] for i in members) / len(members)

    known = [recall(y_true, label) for label in sorted(set(y_true.tolist()) - {-1})]
    unknown = recall(y_true, -1)
    pairs = [
        (float(y_pred[k] == y_true[k]), (score[u] > score[k]) + 0.5 * (score[u] == score[k]))
        for u in rows
        for k in rows
        if y_true[u] == -1 and y_true[k] != -1
    ]
    precision = []
    for u in rows:
        if y_true[u] == -1:
            taken = [y_true[i] == -1 for i in rows if score[i] >= score[u]]
            precision.append(sum(taken) / len(taken))
    os_star = sum(known) / len(known)
    return {
        "OS": (sum(known) + unknown) / (len(known) + 1),
        "OS*": os_star,
        "UNK": unknown,
        "UNK by class": np.mean(
            [recall(fine, k) for k in sorted(set(fine[y_true == -1].tolist()))]
        ),
        "HOS": 2 * os_star * unknown / (os_star + unknown) if os_star + unknown else 0.0,
        "accuracy": np.mean([y_pred[i] == y_true[i] for i in rows]),
        "AUROC": np.mean([win for _, win in pairs]),
        "AUPR": np.mean(precision),
        "OSCR": np.mean([right * win for right, win in pairs]),
    }


def by_function(y_true, y_pred, score, fine, unknown_label=-1):
    """The same from the public functions."""
    label = {"unknown_label": unknown_label}
    return {
        "OS": os_score(y_true, y_pred, **label),
        "OS*": known_recall(y_true, y_pred, **label),
        "UNK": unknown_recall(y_true, y_pred, **label),
        "UNK by class": unknown_recall_by_class(y_true, y_pred, fine, **label),
        "HOS": hos(y_true, y_pred, **label),
        "accuracy": accuracy(y_true, y_pred, **label),
        "AUROC": auroc(y_true, score, **label),
        "AUPR": aupr(y_true, score, **label),
        "OSCR": oscr(y_true, y_pred, score, **label),
    }


class Fixed:
    """An estimator whose answers are columns of X."""

    def __init__(self, classes=(0, 1, 2, 3, -1)):
        self.classes_ = np.array(classes)

    def predict(self, X):
        """Return the first column."""
        return X[:, 0].astype(int)

    def unknown_score(self, X):
        """Return the second column."""
        return X[:, 1]


def test_against_loops(rng):
    y_true, y_pred, score, fine = samples(rng)
    expected = pytest.approx(loops(y_true, y_pred, score, fine))
    assert by_function(y_true, y_pred, score, fine) == expected
    together = open_set_scores(y_true, y_pred, score, unknown_label=-1, fine_labels=fine)
    assert together == expected
    assert list(together) == list(METRICS)


@given(
    st.lists(
        st.tuples(st.integers(-1, 2), st.integers(-1, 2), st.integers(0, 2), st.integers(5, 7)),
        min_size=2,
        max_size=12,
    )
)
def test_against_loops_on_few_samples(rows):
    y_true, y_pred, score, fine = np.array([*rows, (-1, 0, 1, 5), (0, 0, 1, 5)]).T
    expected = pytest.approx(loops(y_true, y_pred, score, np.where(y_true == -1, fine, -9)))
    assert by_function(y_true, y_pred, score, fine) == expected


def test_against_scikit_learn(rng):
    y_true, y_pred, score, _ = samples(rng, 5000)
    unknown = y_true == -1
    assert auroc(y_true, score, unknown_label=-1) == pytest.approx(roc_auc_score(unknown, score))
    assert aupr(y_true, score, unknown_label=-1) == pytest.approx(
        average_precision_score(unknown, score)
    )
    assert accuracy(y_true, y_pred, unknown_label=-1) == accuracy_score(y_true, y_pred)


def test_a_hundred_thousand_samples_take_less_than_a_second(rng):
    y_true, y_pred, _, fine = samples(rng, 100_000)
    score = rng.normal(size=100_000)
    seconds = []
    for _ in range(3):
        began = time.process_time()
        open_set_scores(y_true, y_pred, score, unknown_label=-1, fine_labels=fine)
        confusion_matrix(y_true, y_pred, unknown_label=-1)
        seconds.append(time.process_time() - began)
    assert min(seconds) < 1


def test_strings_are_labels_too(rng):
    y_true, y_pred, score, fine = samples(rng)
    names = np.array(["a", "b", "c", "d", "unknown"])
    text = by_function(names[y_true], names[y_pred], score, fine, "unknown")
    assert text == by_function(y_true, y_pred, score, fine)
    objects = by_function(
        names[y_true].astype(object), names[y_pred].astype(object), score, fine, "unknown"
    )
    assert objects == text


def test_a_constant_score_tells_nothing(rng):
    y_true, y_pred, _, _ = samples(rng)
    scores = open_set_scores(y_true, y_pred, np.ones(300), unknown_label=-1)
    known = y_true != -1
    assert scores["AUROC"] == 0.5
    assert scores["AUPR"] == pytest.approx(1 - known.mean())
    assert scores["OSCR"] == pytest.approx((y_pred == y_true)[known].mean() / 2)


def test_infinite_scores_are_ranked():
    assert auroc([0, -1], [-np.inf, np.inf], unknown_label=-1) == 1
    assert oscr([0, -1], [0, 0], [np.inf, np.inf], unknown_label=-1) == 0.5


def test_only_the_order_of_scores_counts(rng):
    y_true, y_pred, score, _ = samples(rng)
    first = open_set_scores(y_true, y_pred, score, unknown_label=-1)
    assert open_set_scores(y_true, y_pred, np.exp(score), unknown_label=-1) == first


def test_what_the_samples_cannot_tell_is_nan():
    closed = open_set_scores([0, 1], [0, 0], [0.1, 0.2], unknown_label=-1, fine_labels=[0, 1])
    one_sided = ["AUROC", "AUPR", "OSCR", "HOS"]
    assert np.isnan([closed[name] for name in ["UNK", "UNK by class", *one_sided]]).all()
    assert closed["OS"] == closed["OS*"] == closed["accuracy"] == 0.5
    unknown = open_set_scores(["u", "u"], ["u", "a"], [1, 2], unknown_label="u")
    assert np.isnan([unknown[name] for name in ["OS*", *one_sided]]).all()
    assert unknown["OS"] == unknown["UNK"] == 0.5


def test_nothing_right():
    assert open_set_scores([0, -1], [-1, 0], unknown_label=-1)["HOS"] == 0
    assert harmonic_mean(0.0, 0.0) == 0


def test_scores_and_fine_labels_are_optional():
    names = set(open_set_scores([0, -1], [0, -1], unknown_label=-1))
    assert names == {"OS", "OS*", "UNK", "HOS", "accuracy"}


@pytest.mark.parametrize("function", [os_score, known_recall, unknown_recall, hos, accuracy])
@pytest.mark.parametrize(("y_true", "y_pred"), [([], []), ([0, 1], [0]), ([[0]], [[0]])])
def test_shapes_are_checked(function, y_true, y_pred):
    with pytest.raises(ValueError, match="y_true and y_pred must be one-dimensional"):
        function(y_true, y_pred, unknown_label=-1)


@pytest.mark.parametrize("function", [auroc, aupr])
def test_empty_scores_are_refused(function):
    with pytest.raises(ValueError, match="not empty"):
        function([], [], unknown_label=-1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((["a"], [0], None, "u"), "y_true strings, y_pred numbers"),
        (([0], [0], None, "u"), "unknown_label strings"),
        (([0.0], [0.0], None, float("nan")), "unknown_label is NaN"),
        (([0, -1], [0, 0], [1, np.nan], -1), "1 NaN"),
        (([0, -1], [0, 0], [1], -1), "one entry a sample"),
    ],
)
def test_columns_that_do_not_fit_are_refused(arguments, words):
    *columns, unknown_label = arguments
    with pytest.raises(ValueError, match=words):
        open_set_scores(*columns, unknown_label=unknown_label)


def test_confusion_matrix_has_the_unknown_last(rng):
    y_true, y_pred, _, _ = samples(rng)
    counts, classes = confusion_matrix(y_true, y_pred, unknown_label=-1)
    assert classes.tolist() == [0, 1, 2, 3, -1]
    for i, true in enumerate(classes):
        for j, predicted in enumerate(classes):
            assert counts[i, j] == np.sum((y_true == true) & (y_pred == predicted))


def test_confusion_matrix_in_a_given_order():
    counts, classes = confusion_matrix(
        ["b", "?"], ["b", "b"], unknown_label="?", labels=["c", "b", "a"]
    )
    assert classes.tolist() == ["c", "b", "a", "?"]
    assert counts[1, 1] == counts[3, 1] == 1
    assert counts.sum() == 2
    counts, classes = confusion_matrix(["b"], ["b"], unknown_label="a long one")
    assert classes.tolist() == ["b", "a long one"]
    with pytest.raises(ValueError, match="does not hold b"):
        confusion_matrix(["b"], ["b"], unknown_label="?", labels=["a"])


def test_confusion_matrix_of_nothing():
    counts, classes = confusion_matrix([], [], unknown_label=-1)
    assert counts.tolist() == [[0]]
    assert classes.tolist() == [-1]


@pytest.mark.parametrize("metric", METRICS)
def test_scorers_agree_with_the_functions(metric, rng):
    y_true, y_pred, score, fine = samples(rng)
    X = np.column_stack([y_pred, score])
    scorer = pickle.loads(pickle.dumps(make_open_set_scorer(metric)))
    expected = by_function(y_true, y_pred, score, fine)[metric]
    assert scorer(Fixed(), X, fine) == pytest.approx(expected)


def test_a_scorer_asks_for_no_more_than_it_needs():
    class OnlyScores:
        classes_ = np.array(["a", "unknown"])

        def unknown_score(self, X):
            return X[:, 0]

    X = np.array([[0.0], [1.0]])
    assert make_open_set_scorer("AUROC")(OnlyScores(), X, ["a", "something else"]) == 1
    scorer = make_open_set_scorer("HOS", unknown_label=3)
    assert scorer(Fixed([3, 1]), np.array([[1, 0], [3, 0]]), [1, 7]) == 1
    with pytest.raises(ValueError, match="y numbers"):
        make_open_set_scorer("AUROC")(OnlyScores(), X, [0, 1])


def test_an_unknown_metric_is_refused():
    with pytest.raises(ValueError, match="OS, OS"):
        make_open_set_scorer("F1")


def test_scikit_learn_takes_the_scorers(rng):
    from froda.baselines import OSVM  # noqa: PLC0415

    X = rng.normal(size=(60, 4))
    y = np.repeat([0, 1, -1], 20)
    X[np.arange(60), y] += 8
    scoring = {name: make_open_set_scorer(name) for name in METRICS}
    found = cross_validate(OSVM(unit_norm=False), X, y, scoring=scoring, cv=3)
    assert found["test_HOS"].mean() > 0.8
    assert all(np.isfinite(found[f"test_{name}"]).all() for name in METRICS)


def test_bootstrap_against_explicit_resamples(rng):
    y_true, y_pred, score, fine = samples(rng, 80)
    intervals = bootstrap_intervals(
        y_true, y_pred, score, unknown_label=-1, fine_labels=fine, n_resamples=30, random_state=5
    )
    draws = np.random.default_rng(5)
    members = [np.flatnonzero(y_true == label) for label in (0, 1, 2, 3, -1)]
    drawn = []
    for _ in range(30):
        rows = np.concatenate([m[draws.integers(len(m), size=len(m))] for m in members])
        drawn.append(
            open_set_scores(
                y_true[rows], y_pred[rows], score[rows], unknown_label=-1, fine_labels=fine[rows]
            )
        )
    for name, (value, low, high) in intervals.items():
        column = [scores[name] for scores in drawn]
        assert (low, high) == pytest.approx(tuple(np.quantile(column, [0.025, 0.975])))
        assert value == pytest.approx(by_function(y_true, y_pred, score, fine)[name])


def test_bootstrap_width_is_that_of_a_share(rng):
    y_true = np.repeat([0, -1], 400)
    y_pred = np.where(rng.random(800) < 0.7, y_true, -1 - y_true)
    interval = bootstrap_intervals(y_true, y_pred, unknown_label=-1)["UNK"]
    spread = np.sqrt(interval.value * (1 - interval.value) / 400)
    assert interval.high - interval.low == pytest.approx(2 * 1.96 * spread, rel=0.15)


def test_bootstrap_of_one_side_is_nan():
    intervals = bootstrap_intervals([0, 1], [0, 0], [1, 2], unknown_label=-1, n_resamples=5)
    assert np.isnan(intervals["OSCR"]).all()
    assert intervals["OS"] == (0.5, 0.5, 0.5)


@pytest.mark.parametrize(
    ("setting", "word"), [({"level": 1.0}, "level"), ({"n_resamples": 0}, "n_resamples")]
)
def test_bootstrap_settings_are_checked(setting, word):
    with pytest.raises(ValueError, match=word):
        bootstrap_intervals([0, -1], [0, -1], unknown_label=-1, **setting)
