"""A few passes with updates after every batch: close to the full alternation, and consistent."""

from __future__ import annotations

import warnings

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from froda import DFRODA, DFRODAU, FRODA
from froda.factorization import codes
from froda.factorization.problem import StopReason

METHODS = [FRODA, DFRODA, DFRODAU]
SIZES = {"n_components": 6, "tol": 1e-7, "max_iter": 300}


@pytest.fixture
def task(rng):
    """Rows sorted by class, as they often are: five known classes, three unknown."""
    shared, private = np.linalg.qr(rng.normal(size=(30, 12)))[0].T.reshape(2, 6, 30)
    means = 2 * rng.normal(size=(8, 6))
    numbers, target_numbers = np.arange(600) // 100, np.arange(6000) // 1000

    def rows(classes, basis):
        draws = means[classes] + rng.normal(size=(len(classes), 6))
        return draws @ basis + 0.2 * rng.normal(size=(len(classes), 30))

    X = rows(numbers, shared)
    X_target = np.vstack(
        [rows(target_numbers[:3000], shared), rows(target_numbers[3000:] + 2, private)]
    )
    return X, np.where(numbers == 5, -1, numbers), X_target


def fit(method, X, y, X_target, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # left-out unknowns
        warnings.simplefilter("ignore", ConvergenceWarning)
        return method(**{**SIZES, **settings}).fit(X, y, X_target)


@pytest.mark.parametrize("method", METHODS)
def test_three_passes_come_within_one_percent(method, task):
    full = fit(method, *task)
    quick = fit(method, *task, n_passes=3)
    assert quick.n_iter_ == 3
    assert quick.objective_[-1][2] <= 1.01 * full.objective_[-1][2]
    assert np.mean(quick.predict(task[2]) == full.predict(task[2])) >= 0.98


@pytest.mark.parametrize("method", METHODS)
def test_the_result_is_consistent(method, task):
    """Codes are exact for the bases, new rows get the same ones, bases keep their limit."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        model = method(n_components=6, n_passes=2).fit(*task)
    assert model.stop_reason_ is StopReason.PASSES
    basis = np.hstack([model.shared_basis_, model.private_basis_])
    cross = model._preprocessor.transform_target(task[2]) @ basis
    assert codes.distance(model._prepared, cross, model.target_codes_).max() <= 1e-8
    size = np.abs(model.target_codes_).max()
    assert_allclose(model.transform(task[2]), model.target_codes_, atol=1e-6 * size)
    assert np.linalg.norm(basis, axis=0).max() <= 1 + 1e-12


def test_in_chunks(rng, task):
    X, y, X_target = task
    order = rng.permutation(len(X_target))  # files should not be sorted
    full = fit(FRODA, X, y, X_target)
    quick = fit(FRODA, X, y, X_target[order], n_passes=3, chunk_size=700)
    assert quick.objective_[-1][2] <= 1.01 * full.objective_[-1][2]
    assert quick.target_codes_.shape == full.target_codes_.shape


def test_callback_sees_every_pass_but_the_last(task):
    records = []
    model = fit(FRODA, *task, n_passes=4, callback=records.append)
    assert [record.iteration for record in records] == [1, 2, 3]
    assert records[-1].objective == pytest.approx(model.objective_[-1][2], rel=0.05)
    stopped = fit(FRODA, *task, n_passes=4, callback=lambda record: True)
    assert stopped.stop_reason_ is StopReason.CALLBACK
    assert stopped.n_iter_ == 2  # the one that was stopped, and the codes


def test_the_same_twice(task):
    first, second = (fit(DFRODAU, *task, n_passes=2) for _ in range(2))
    assert_array_equal(first.shared_basis_, second.shared_basis_)


def test_what_does_not_go_together_is_refused(task, tmp_path):
    X, y, X_target = task
    with pytest.raises(ValueError, match="n_passes must be a whole number of at least 2"):
        fit(FRODA, X, y, X_target, n_passes=1)
    with pytest.raises(ValueError, match="leave it or n_passes out"):
        fit(FRODA, X, y, X_target, n_passes=3, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="X_target is on Dask"):
        fit(FRODA, X, y, da.from_array(X_target, chunks=(1000, 30)), n_passes=3)
