"""Labels come from the source and the target's pictures, never from the target's folders."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from froda.bench.methods import BASELINES, METHODS
from froda.images import extract
from froda.images.adaptation import (
    DEFAULT_METHOD,
    Predictions,
    adapt,
    check_classes,
    choose_classes,
    score_by_folders,
)
from froda.metrics import open_set_scores

CLASSES = ("blue", "green", "red")


@pytest.fixture
def domains(tiny, two_folders):
    network = tiny.tiny_network()
    return tuple(
        extract(folder, network=network, labelled=labelled)
        for folder, labelled in zip(two_folders, (True, False), strict=True)
    )


def colours(predictions):
    return np.array([file.partition("/")[0] for file in predictions.files])


def test_known_colours_are_named_and_the_new_one_is_unknown(domains):
    predictions = adapt(*domains, CLASSES)
    truth = np.where(colours(predictions) == "yellow", "unknown", colours(predictions))
    assert predictions.classes == CLASSES
    assert (predictions.labels == truth).mean() > 0.9


def test_the_default_method_exists():
    assert DEFAULT_METHOD in METHODS


def test_labels_scores_and_probabilities_are_those_of_the_estimator(domains):
    source, target = domains
    predictions = adapt(source, target, CLASSES, "D-FRODA-svm")
    model = METHODS["D-FRODA-svm"]().fit(source.X, source.y, target.X)
    assert_array_equal(predictions.labels, model.predict(target.X))
    assert_allclose(predictions.probability, model.predict_proba(target.X).max(axis=1), rtol=1e-4)
    assert_allclose(predictions.unknown_score, model.unknown_score(target.X), rtol=1e-4)


@pytest.mark.parametrize("method", ["OSNN", "LSVM", "OSLPP"])
def test_baselines_give_probabilities_too(domains, method):
    assert method in BASELINES
    predictions = adapt(*domains, CLASSES, method)
    assert ((predictions.probability > 0) & (predictions.probability <= 1)).all()


def test_classes_that_are_left_out_have_no_part(domains):
    source, target = domains
    predictions = adapt(source, target, ("blue", "red"))
    rows = np.isin(source.y, ("blue", "red"))
    files = tuple(file for file, keep in zip(source.files, rows, strict=True) if keep)
    without = dataclasses.replace(source, X=source.X[rows], y=source.y[rows], files=files)
    assert predictions.classes == ("blue", "red")
    assert_array_equal(adapt(without, target, ("blue", "red")).labels, predictions.labels)
    assert "green" not in predictions.labels


def test_warnings_become_notes(domains):
    source, target = domains
    renamed = dataclasses.replace(source, y=np.where(source.y == "green", "unknown", source.y))
    predictions = adapt(renamed, target, ("blue", "red", "unknown"), "FRODA-svm")
    assert any("leaves out 8 source rows" in note for note in predictions.notes)


def test_iterations_are_reported(domains):
    seen = []
    adapt(*domains, CLASSES, "FRODA-svm", lambda record: seen.append(record.iteration))
    assert seen[:2] == [1, 2]


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (None, ("a", "b", "c, d")),
        (("b",), ("b",)),
        (("b,a",), ("a", "b")),
        (("b", " a"), ("a", "b")),
        (("c, d", "a"), ("a", "c, d")),
    ],
)
def test_choice_of_classes(known, expected):
    assert choose_classes(("a", "b", "c, d"), known) == expected


def test_classes_that_are_not_there_are_named():
    with pytest.raises(ValueError, match="no class folder 'x'; it has a, b"):
        choose_classes(("a", "b"), ("a,x",))


@pytest.mark.parametrize(
    ("classes", "found"),
    [
        ((), "no class folders"),
        (("a",), "only the class 'a'"),
        (("a", "unknown"), "only the class 'a'"),
    ],
)
def test_one_class_is_not_enough(classes, found):
    with pytest.raises(ValueError, match=f"the source photos has {found}.*at least two"):
        check_classes(classes, "photos")


def predictions_for(files, labels, scores, classes=("a", "b")):
    n = len(files)
    return Predictions(tuple(files), np.array(labels), np.ones(n), np.array(scores), classes)


def test_scores_by_folders():
    files = ["a/1", "a/2", "b/1", "x/1", "y/1", "stray"]
    labels = ["a", "unknown", "b", "unknown", "a", "b"]
    scores = [0.1, 0.6, 0.2, 0.9, 0.3, 5.0]
    found = score_by_folders(predictions_for(files, labels, scores))
    truth = ["a", "a", "b", "unknown", "unknown"]
    assert found == open_set_scores(truth, labels[:5], scores[:5], unknown_label="unknown")
    assert found["OS*"] == 0.75
    assert found["UNK"] == 0.5


@pytest.mark.parametrize("files", [["1", "2"], ["x/1", "y/2"]])
def test_without_names_of_classes_there_is_no_score(files):
    assert score_by_folders(predictions_for(files, ["a", "b"], [0.0, 1.0])) is None
