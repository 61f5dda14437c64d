"""From raw features to the coordinates of the joint PCA."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import sparse

from froda.preprocessing import RowSettings, fit_preprocessor

SETTINGS = [RowSettings(*flags) for flags in product([True, False], repeat=3)]
NAMES = ["+".join(n for n, on in vars(s).items() if on) or "nothing" for s in SETTINGS]
FORMS = {"dense": np.asarray, "csr array": sparse.csr_array, "csr matrix": sparse.csr_matrix}
every_setting = pytest.mark.parametrize("settings", SETTINGS, ids=NAMES)
every_share = pytest.mark.parametrize("variance", [None, 0.9, 1.0])


def make(rng, n_source=14, n_target=11, n_features=20):
    """Return counts with many zeros, a zero row and a constant column in each domain."""
    Xs = rng.poisson(2, (n_source, n_features)) * rng.random((n_source, n_features))
    Xt = rng.poisson(3, (n_target, n_features)) * rng.random((n_target, n_features))
    Xs[3], Xt[5] = 0, 0
    Xs[:, 2], Xt[:, 2] = 0, 0
    return Xs, Xt


def by_hand(X, settings, statistics):
    """Return the rows of one domain with the column statistics of ``statistics``."""

    def summed(rows):
        sums = np.abs(rows).sum(axis=1, keepdims=True)
        return rows / np.where(sums > 0, sums, 1) if settings.row_sum else rows

    rows, seen = summed(X), summed(statistics)
    if settings.zscore:
        deviation = seen.std(axis=0)
        constant = deviation < 1e-12
        rows = (rows - seen.mean(axis=0)) / np.where(constant, 1, deviation) * ~constant
    if settings.unit_norm:
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        rows = rows / np.where(norms > 0, norms, 1)
    return rows


@every_setting
def test_rows_without_pca_are_those_by_hand(rng, settings):
    Xs, Xt = make(rng)
    _, source, target = fit_preprocessor(Xs, Xt, settings, None)
    np.testing.assert_allclose(source, by_hand(Xs, settings, Xs), atol=1e-12)
    np.testing.assert_allclose(target, by_hand(Xt, settings, Xt), atol=1e-12)


@every_setting
def test_joint_pca_keeps_the_geometry(rng, settings):
    """Distances between rows, across domains too, and a centre at the origin."""
    Xs, Xt = make(rng)
    _, source, target = fit_preprocessor(Xs, Xt, settings, 1.0)
    expected = np.vstack([by_hand(X, settings, X) for X in (Xs, Xt)])
    expected -= expected.mean(axis=0)
    found = np.vstack([source, target])
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-10)
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-12)


@every_setting
@every_share
def test_transform_of_the_fit_is_the_fit(rng, settings, variance):
    Xs, Xt = make(rng)
    for form in FORMS.values():
        preprocessor, _, target = fit_preprocessor(form(Xs), form(Xt), settings, variance)
        np.testing.assert_allclose(preprocessor.transform_target(form(Xt)), target, atol=1e-10)
        np.testing.assert_allclose(
            preprocessor.transform_target(form(Xt[4:6])), target[4:6], atol=1e-10
        )


@every_setting
def test_new_rows_use_the_statistics_of_the_fit(rng, settings):
    Xs, Xt = make(rng)
    new = make(rng)[1][:4]
    preprocessor, _, _ = fit_preprocessor(Xs, Xt, settings, None)
    np.testing.assert_allclose(
        preprocessor.transform_target(new), by_hand(new, settings, Xt), atol=1e-11
    )


@every_setting
@every_share
@pytest.mark.parametrize("shape", ["few rows", "many rows"])
def test_sparse_equals_dense(rng, settings, variance, shape):
    n_features = 30 if shape == "few rows" else 9
    Xs, Xt = make(rng, n_features=n_features)
    _, *expected = fit_preprocessor(Xs, Xt, settings, variance)
    for form in ("csr array", "csr matrix"):
        _, *found = fit_preprocessor(FORMS[form](Xs), FORMS[form](Xt), settings, variance)
        for a, b in zip(found, expected, strict=True):
            assert type(a) is np.ndarray
            np.testing.assert_allclose(a, b, atol=1e-9)


@every_setting
@pytest.mark.parametrize("shape", ["many rows", "few rows"])
@pytest.mark.parametrize("forms", [("csr array", "dense"), ("dense", "csr matrix")])
def test_one_domain_sparse_and_one_dense(rng, settings, shape, forms):
    Xs, Xt = make(rng, n_features=30 if shape == "few rows" else 9)
    _, *expected = fit_preprocessor(Xs, Xt, settings, 1.0)
    _, *found = fit_preprocessor(FORMS[forms[0]](Xs), FORMS[forms[1]](Xt), settings, 1.0)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_each_domain_sees_its_own_rows_alone(rng, form):
    """Whatever the other domain holds, and whatever rows were left out before."""
    Xs, Xt = make(rng)
    settings = RowSettings()
    _, source, target = fit_preprocessor(FORMS[form](Xs), FORMS[form](Xt), settings, None)
    _, same, _ = fit_preprocessor(FORMS[form](Xs), FORMS[form](9 + Xt[:4]), settings, None)
    np.testing.assert_array_equal(same, source)
    _, _, same = fit_preprocessor(FORMS[form](Xs[6:] ** 2), FORMS[form](Xt), settings, None)
    np.testing.assert_array_equal(same, target)
    _, fewer, _ = fit_preprocessor(FORMS[form](Xs[:8]), FORMS[form](Xt), settings, None)
    assert np.abs(fewer - source[:8]).max() > 0.01


@pytest.mark.parametrize("form", FORMS)
def test_zscore_standardises(rng, form):
    Xs, Xt = make(rng)
    settings = RowSettings(row_sum=False, unit_norm=False)
    _, source, target = fit_preprocessor(FORMS[form](Xs), FORMS[form](Xt), settings, None)
    for rows in (source, target):
        np.testing.assert_allclose(rows.mean(axis=0), 0, atol=1e-14)
        expected = np.ones(20)
        expected[2] = 0  # the constant column
        np.testing.assert_allclose(rows.std(axis=0), expected, atol=1e-12)


@pytest.mark.parametrize("level", [0.0, 1.0, 0.1, 1e6])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_constant_columns_become_zero(rng, dtype, level):
    """Also where their mean is not exactly their value."""
    Xs, Xt = (X.astype(dtype) for X in make(rng))
    Xs[:, 4], Xt[:, 4] = level, level
    settings = RowSettings(row_sum=False, unit_norm=False)
    for form in ("dense", "csr array"):
        _, source, target = fit_preprocessor(FORMS[form](Xs), FORMS[form](Xt), settings, None)
        np.testing.assert_array_equal(source[:, 4], 0)
        np.testing.assert_array_equal(target[:, 4], 0)


@pytest.mark.parametrize(
    ("dtype", "n_source"),
    [
        (np.float64, 14),
        (np.float64, 3_000),
        (np.float32, 14),
        (np.float32, 3_000),
    ],
)
def test_columns_that_hardly_vary_still_count(rng, dtype, n_source):
    """Years around 2020 are information, however many of them, in float32 too."""
    Xs, Xt = make(rng, n_source=n_source)
    Xs[:, 4] = 2020 + 0.5 * rng.standard_normal(n_source)
    settings = RowSettings(row_sum=False, unit_norm=False)
    _, source, _ = fit_preprocessor(Xs.astype(dtype), Xt.astype(dtype), settings, None)
    assert source[:, 4].std() == pytest.approx(1, abs=1e-3)


@every_setting
@pytest.mark.parametrize("form", FORMS)
def test_zero_rows_stay_finite(rng, settings, form):
    Xs, Xt = make(rng)
    _, source, target = fit_preprocessor(FORMS[form](Xs), FORMS[form](Xt), settings, None)
    assert np.isfinite(source).all()
    assert np.isfinite(target).all()
    if not settings.zscore:
        assert not source[3].any()
        assert not target[5].any()
    elif settings.unit_norm:
        assert np.linalg.norm(source[3]) == pytest.approx(1)


@pytest.mark.parametrize("factors", [(1e-3, 1e-3), (1e3, 1e3), (1e3, 1e-3)])
@every_share
@pytest.mark.parametrize("settings", SETTINGS[:-1], ids=NAMES[:-1])
def test_the_unit_of_the_features_does_not_matter(rng, settings, variance, factors):
    """Not even a unit per domain: each of the three steps takes it away."""
    Xs, Xt = make(rng)
    _, *expected = fit_preprocessor(Xs, Xt, settings, variance)
    _, *found = fit_preprocessor(factors[0] * Xs, factors[1] * Xt, settings, variance)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)


@every_share
def test_without_any_step_the_unit_stays(rng, variance):
    Xs, Xt = make(rng)
    _, *expected = fit_preprocessor(Xs, Xt, SETTINGS[-1], variance)
    _, *found = fit_preprocessor(1e3 * Xs, 1e3 * Xt, SETTINGS[-1], variance)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, 1e3 * b, atol=1e-8)


@every_setting
@pytest.mark.parametrize("form", FORMS)
def test_inputs_are_not_written_to(rng, settings, form):
    Xs, Xt = (FORMS[form](X) for X in make(rng))
    copies = [X.copy() for X in (Xs, Xt)]
    for X in (Xs, Xt):
        (X if form == "dense" else X.data).flags.writeable = False
    preprocessor, _, _ = fit_preprocessor(Xs, Xt, settings, 0.9)
    preprocessor.transform_target(Xt)
    for X, copy in zip((Xs, Xt), copies, strict=True):
        assert abs(X - copy).max() == 0


@every_setting
@pytest.mark.parametrize("form", FORMS)
def test_float32_stays_and_is_near_float64(rng, settings, form):
    Xs, Xt = make(rng)
    _, *expected = fit_preprocessor(FORMS[form](Xs), FORMS[form](Xt), settings, 0.9)
    small = [FORMS[form](X.astype(np.float32)) for X in (Xs, Xt)]
    preprocessor, *found = fit_preprocessor(*small, settings, 0.9)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == np.float32
        np.testing.assert_allclose(a, b, atol=1e-3 * np.abs(b).max())
    assert preprocessor.transform_target(small[1]).dtype == np.float32


def test_a_domain_that_does_not_vary_is_refused(rng):
    Xs, Xt = make(rng)
    for settings in (RowSettings(), RowSettings(False, False, False)):
        with pytest.raises(ValueError, match="all rows of X are the same"):
            fit_preprocessor(np.ones_like(Xs), Xt, settings, 0.9)
        with pytest.raises(ValueError, match="all rows of X_target are the same"):
            fit_preprocessor(Xs, np.ones_like(Xt), settings, 0.9)


def test_a_floor_keeps_small_columns_small(rng):
    rows = rng.normal(size=(200, 4)) * np.array([1.0, 1.0, 1.0, 1e-3])
    settings = RowSettings(row_sum=False, unit_norm=False, floor=1.0)
    preprocessor, source, _ = fit_preprocessor(rows, rows, settings, None)
    variance = rows.var(axis=0)
    expected = (rows - rows.mean(axis=0)) / np.sqrt(variance + variance.mean())
    np.testing.assert_allclose(source, expected)
    np.testing.assert_allclose(preprocessor.transform_target(rows), expected)
    assert source[:, 3].std() < 0.01
