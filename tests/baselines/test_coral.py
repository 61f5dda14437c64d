"""Correlation alignment against what it promises: equal covariances."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose

from froda.baselines import CORAL

NUMBERS = np.repeat([0, 1], 40)


def make_domains(rng, n_features=7):
    """Two domains of different covariance and mean."""
    mixings = rng.normal(size=(2, n_features, n_features))
    source = rng.normal(size=(80, n_features)) @ mixings[0] + 1
    return source, rng.normal(size=(90, n_features)) @ mixings[1] - 2


def test_covariances_match(rng):
    source, target = make_domains(rng)
    model = CORAL(ridge=1e-10)
    aligned = model._align(source, NUMBERS, target)
    assert_allclose(np.cov(aligned.T), np.cov(target.T), atol=1e-6)
    assert_allclose(aligned.mean(axis=0), 0, atol=1e-9)
    assert_allclose(model._map_target(target).mean(axis=0), 0, atol=1e-12)


@pytest.mark.parametrize("n_features", [7, 200])  # more features than samples: n × n side
def test_explicit_matrix_powers(n_features, rng):
    source, target = make_domains(rng, n_features)
    aligned = CORAL(ridge=0.3)._align(source, NUMBERS, target)
    ridged = [
        cov + 0.3 * np.trace(cov) / n_features * np.eye(n_features)
        for cov in (np.cov(source.T), np.cov(target.T))
    ]
    whiten = np.linalg.inv(scipy.linalg.sqrtm(ridged[0]))
    expected = (source - source.mean(axis=0)) @ whiten @ scipy.linalg.sqrtm(ridged[1])
    assert_allclose(aligned, expected, atol=1e-9 * np.abs(expected).max())


def test_identical_domains_are_left_alone(rng):
    source, _ = make_domains(rng)
    model = CORAL()
    aligned = model._align(source, NUMBERS, source.copy())
    assert_allclose(aligned, model._map_target(source), atol=1e-10)


def test_large_ridge_only_rescales(rng):
    source, target = make_domains(rng)
    aligned = CORAL(ridge=1e9)._align(source, NUMBERS, target)
    ratio = np.sqrt(np.trace(np.cov(target.T)) / np.trace(np.cov(source.T)))
    assert_allclose(aligned, ratio * (source - source.mean(axis=0)), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("ridge", [0, -1, np.nan, None, True, "small"])
def test_bad_ridge(ridge, rng):
    source, target = make_domains(rng)
    with pytest.raises(ValueError, match="ridge must be a finite number above 0"):
        CORAL(ridge=ridge).fit(source, NUMBERS, target)
