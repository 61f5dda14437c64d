"""The two views of doubt, their agreement, and the cut."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import spearmanr

from froda.progressive.evidence import (
    Evidence,
    rank_correlation,
    share_outside,
    standardise,
)


def test_the_agreement_is_spearmans(rng):
    first = rng.integers(0, 5, size=60)  # with ties
    second = first + rng.normal(size=60)
    assert_allclose(rank_correlation(first, second), spearmanr(first, second)[0])
    assert rank_correlation(first, np.ones(60)) == 0


def test_standardised_values(rng):
    values = standardise(rng.normal(size=50) * 3 + 2)
    assert_allclose([values.mean(), values.std()], [0, 1], atol=1e-12)
    assert_array_equal(standardise(np.full(5, 2.0)), np.zeros(5))


def make_views(rng, n_classes=3, n_features=12):
    """Return source, labels and a target whose last third leaves the span of the source."""
    basis = np.linalg.qr(rng.normal(size=(n_features, n_features)))[0]
    centres = 4 * rng.normal(size=(n_classes, 5)) @ basis[:5]
    numbers = np.repeat(np.arange(n_classes), 30)
    noise = 0.3
    source = centres[numbers] + noise * rng.normal(size=(len(numbers), n_features))
    inside = centres[numbers] + noise * rng.normal(size=(len(numbers), n_features))
    away = 4 * rng.normal(size=(30, 3)) @ basis[5:8] + noise * rng.normal(size=(30, n_features))
    return source, numbers, np.vstack([inside, away])


def test_the_share_outside_is_that_of_the_residual(rng):
    source, numbers, target = make_views(rng)
    views = Evidence.of(source, numbers, target, 3, 5)
    axes = np.linalg.svd(source - source.mean(axis=0), full_matrices=False)[2][:5]
    centred = target - source.mean(axis=0)
    residual = centred - centred @ axes.T @ axes
    expected = (residual**2).sum(axis=1) / (centred**2).sum(axis=1)
    assert_allclose(share_outside(target, views.principal), expected, atol=1e-12)
    assert_allclose(views.outside(target), standardise(expected), atol=1e-8)


def test_rows_that_leave_the_source_are_outside(rng):
    source, numbers, target = make_views(rng)
    views = Evidence.of(source, numbers, target, 3, 5)
    outside = views.outside(target)
    assert outside[:90].max() < outside[90:].min()
    assert views.agreement > 0.3


def test_the_class_of_source_unknowns_takes_probability_from_the_known_ones(rng):
    source, numbers, target = make_views(rng)
    unknown = target[90:]
    with_unknown = Evidence.of(
        np.vstack([source, unknown]), np.append(numbers, np.full(30, 3)), target, 3, 5
    )
    without = Evidence.of(source, numbers, target, 3, 5)
    assert with_unknown.doubt(unknown).mean() > without.doubt(unknown).mean() + 0.2
    assert set(with_unknown.nearest(target)) <= {0, 1, 2}
    assert_allclose(with_unknown.principal.axes, without.principal.axes)


def test_views_that_disagree_have_little_weight(rng):
    source, numbers, target = make_views(rng)
    inside = np.tile(target[:90], (4, 1))
    normal = np.linalg.svd(source)[2][-1]  # a direction in which the source hardly varies
    aside = inside + 6 * rng.uniform(size=(360, 1)) * normal  # as far as chance has it
    assert Evidence.of(source, numbers, aside, 3, 5).agreement < 0.25
