"""Open-set metrics against counts made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from froda.metrics import harmonic_mean, open_set_scores


def test_against_brute_force(rng):
    y_true = rng.integers(-1, 4, 300)
    y_pred = np.where(rng.random(300) < 0.6, y_true, rng.integers(-1, 4, 300))
    score = rng.integers(0, 5, 300)  # ties
    scores = open_set_scores(y_true, y_pred, score, unknown_label=-1)
    recalls = {}
    for label in range(-1, 4):
        members = [i for i in range(300) if y_true[i] == label]
        recalls[label] = sum(y_pred[i] == label for i in members) / len(members)
    known = [recalls[label] for label in range(4)]
    pairs = [
        float(score[u] > score[k]) + 0.5 * float(score[u] == score[k])
        for u in np.flatnonzero(y_true == -1)
        for k in np.flatnonzero(y_true != -1)
    ]
    assert scores["OS"] == pytest.approx(sum(recalls.values()) / 5)
    assert scores["OS*"] == pytest.approx(sum(known) / 4)
    assert scores["UNK"] == pytest.approx(recalls[-1])
    assert scores["HOS"] == pytest.approx(
        2 * scores["OS*"] * scores["UNK"] / (scores["OS*"] + scores["UNK"])
    )
    assert scores["AUROC"] == pytest.approx(np.mean(pairs))


def test_what_the_samples_cannot_tell_is_nan():
    closed = open_set_scores([0, 1], [0, 0], [0.1, 0.2], unknown_label=-1)
    assert np.isnan([closed["UNK"], closed["HOS"], closed["AUROC"]]).all()
    assert closed["OS"] == closed["OS*"] == 0.5
    unknown = open_set_scores(["u", "u"], ["u", "a"], unknown_label="u")
    assert np.isnan([unknown["OS*"], unknown["HOS"]]).all()
    assert unknown["OS"] == unknown["UNK"] == 0.5


def test_nothing_right():
    assert open_set_scores([0, -1], [-1, 0], unknown_label=-1)["HOS"] == 0
    assert harmonic_mean(0.0, 0.0) == 0


@pytest.mark.parametrize(("y_true", "y_pred"), [([], []), ([0, 1], [0]), ([[0]], [[0]])])
def test_shapes_are_checked(y_true, y_pred):
    with pytest.raises(ValueError, match="y_true and y_pred"):
        open_set_scores(y_true, y_pred, unknown_label=-1)
