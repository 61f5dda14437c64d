"""Subspace alignment against its closed form."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from froda.baselines import SA

NUMBERS = np.repeat([0, 1], 30)


def test_closed_form(rng):
    source, target = rng.normal(size=(60, 12)), rng.normal(size=(50, 12)) + 0.3
    model = SA(n_components=4)
    aligned = model._align(source, NUMBERS, target)
    Ps = np.linalg.svd(source - source.mean(axis=0))[2][:4].T
    Pt = np.linalg.svd(target - target.mean(axis=0))[2][:4].T
    centred = source - source.mean(axis=0)
    # Signs of the target's axes are free: compare in the space of the features.
    expected = centred @ Ps @ Ps.T @ Pt @ Pt.T
    assert_allclose(aligned @ model.target_axes_.T, expected, atol=1e-12)
    mapped = model._map_target(target)
    assert_allclose(mapped @ model.target_axes_.T, (target - target.mean(axis=0)) @ Pt @ Pt.T)


def test_alignment_is_the_best_rotation_and_scale(rng):
    model = SA(n_components=3)
    model._align(rng.normal(size=(60, 9)), NUMBERS, rng.normal(size=(70, 9)))

    def gap(matrix):
        return np.linalg.norm(model.source_axes_ @ matrix - model.target_axes_)

    best = gap(model.alignment_)
    others = [gap(model.alignment_ + 0.1 * rng.normal(size=(3, 3))) for _ in range(50)]
    assert best < min(others)


def test_identical_domains_are_left_alone(rng):
    source = rng.normal(size=(60, 8))
    model = SA(n_components=5)
    aligned = model._align(source, NUMBERS, source.copy())
    assert_allclose(model.alignment_, np.eye(5), atol=1e-12)
    assert_allclose(aligned, model._map_target(source), atol=1e-12)


def test_turned_target_is_turned_back(rng):
    spread = np.array([9, 7, 5, 3, 1, 0.5])
    source = rng.normal(size=(300, 6)) * spread
    rotation = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    model = SA(n_components=6)
    aligned = model._align(source, NUMBERS.repeat(5), source @ rotation)
    # With d = D the source is only written in the target's axes: distances are kept.
    assert_allclose(
        np.linalg.norm(aligned, axis=1), np.linalg.norm(source - source.mean(0), axis=1)
    )


def test_more_components_than_the_samples_span(rng):
    with pytest.raises(ValueError, match=r"n_components=9 is larger.*at most 5"):
        SA(n_components=9)._align(rng.normal(size=(60, 8)), NUMBERS, rng.normal(size=(6, 8)))


def test_sdm_does_not_depend_on_the_coordinates(rng):
    """Without the joint PCA the axes are not those that the measure reads: they are turned."""
    source = rng.normal(size=(80, 10)) * np.linspace(3, 0.5, 10)
    target = source @ np.linalg.qr(np.eye(10) + 0.1 * rng.normal(size=(10, 10)))[0]
    rotation = np.linalg.qr(rng.normal(size=(10, 10)))[0]
    numbers = np.repeat([0, 1], 40)
    plain, turned = SA(), SA()
    plain._align(source, numbers, target)
    turned._align(source @ rotation, numbers, target @ rotation)
    assert_allclose(turned.disagreement_, plain.disagreement_, atol=1e-6)
