"""Dask arrays in: the same fit as in memory, predictions that are lazy, workers that may die."""

from __future__ import annotations

import os
import signal
import warnings

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from froda import DFRODA, DFRODAU, FRODA
from froda.daskrows import is_dask

METHODS = [FRODA, DFRODA, DFRODAU]
BASES = ("shared_basis_", "private_basis_")


@pytest.fixture
def task(rng):
    """Two known classes, one unknown in the source, another in the target."""
    centres = 2 * rng.normal(size=(4, 12))
    numbers, target_numbers = rng.integers(0, 3, 130), rng.choice([0, 1, 3], 170)
    X = np.abs(centres[numbers] + rng.normal(size=(130, 12)))
    X_target = np.abs(centres[target_numbers] + rng.normal(size=(170, 12)) + 0.3)
    return X, np.where(numbers == 2, -1, numbers), X_target


def fit(method, X, y, X_target, **settings):
    settings = {"n_components": 3, "max_iter": 15, **settings}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # left-out unknowns
        warnings.simplefilter("ignore", ConvergenceWarning)
        return method(**settings).fit(X, y, X_target)


def assert_same(found, expected, X_target):
    for name in BASES:
        assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-8)
    for name in ("target_codes_", "source_codes_"):
        size = np.abs(getattr(expected, name)).max()
        assert_allclose(np.asarray(getattr(found, name)), getattr(expected, name), atol=1e-8 * size)
    assert_array_equal(found.unknown_mask_, expected.unknown_mask_)
    assert_array_equal(found.predict(X_target), expected.predict(X_target))


@pytest.mark.parametrize(
    "settings",
    [{}, {"n_components": "sdm"}, {"pca_variance": None}, {"epsilon": "auto"}],
    ids=str,
)
@pytest.mark.parametrize("method", METHODS)
def test_threads_find_what_memory_finds(method, settings, task):
    X, y, X_target = task
    expected = fit(method, X, y, X_target, **settings)
    lazy_source = da.from_array(X, chunks=(40, 5))  # columns in several blocks too
    lazy_target = da.from_array(X_target, chunks=(33, 12))
    with dask.config.set(scheduler="threads"):
        assert_same(fit(method, lazy_source, y, lazy_target, **settings), expected, X_target)
        assert_same(fit(method, X, y, lazy_target, **settings), expected, X_target)
        assert_same(fit(method, lazy_source, y, X_target, **settings), expected, X_target)


def test_closed_set(task):
    X, y, _ = task
    expected = fit(FRODA, X, y, None)
    assert_same(fit(FRODA, da.from_array(X, chunks=(50, 12)), y, None), expected, X)


def test_predictions_are_lazy(task):
    X, y, X_target = task
    model = fit(FRODA, X, y, X_target)
    read = []

    def note(block):
        read.append(len(block))
        return block

    rows = da.from_array(X_target, chunks=(60, 12)).map_blocks(note, meta=np.empty((0, 0)))
    for name in ("predict", "predict_proba", "decision_function", "unknown_score", "transform"):
        lazy = getattr(model, name)(rows)
        expected = getattr(model, name)(X_target)
        assert is_dask(lazy)
        assert read == []
        assert lazy.shape == expected.shape
        assert lazy.dtype == expected.dtype
        assert_allclose(lazy.compute(), expected, atol=1e-7)
        read.clear()


def test_fit_predict_and_codes_are_lazy(task):
    X, y, X_target = task
    rows = da.from_array(X_target, chunks=(60, 12))
    model = FRODA(n_components=3)
    labels = model.fit_predict(X, np.abs(y), rows)
    assert is_dask(labels)
    assert is_dask(model.target_codes_)
    assert model.target_codes_.shape == (170, 6)
    assert_array_equal(labels.compute(), model.predict(X_target))


def test_bad_dask_arrays_are_refused(task):
    X, y, X_target = task
    rows = da.from_array(X_target, chunks=(60, 12))
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        fit(FRODA, X, y, rows[rows[:, 0] > 1])
    with pytest.raises(ValueError, match="expecting 12 features"):
        fit(FRODA, X, y, rows[:, 1:])
    with pytest.raises(ValueError, match="two dimensions"):
        fit(FRODA, X, y, rows[:, 0])
    with pytest.raises(ValueError, match="real numbers"):
        fit(FRODA, X, y, rows.astype(complex))
    with pytest.raises(ValueError, match="X_target contains NaN"):
        fit(FRODA, X, y, da.where(rows == rows.max(), np.nan, rows))
    with pytest.raises(ValueError, match="is a Dask array"):
        fit(FRODA, X, y, rows, checkpoint="never-made")
    assert not os.path.exists("never-made")


@pytest.fixture(scope="module")
def client():
    """Two workers, each a process with one thread."""
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as started,
    ):
        yield started


@pytest.mark.parametrize("method", METHODS)
def test_workers_find_what_memory_finds(method, task, client):
    X, y, X_target = task
    expected = fit(method, X, y, X_target)
    rows = da.from_array(X_target, chunks=(30, 12)).persist()
    found = fit(method, da.from_array(X, chunks=(60, 12)), y, rows)
    assert_same(found, expected, X_target)
    assert_array_equal(found.predict(rows).compute(), expected.predict(X_target))


def test_a_worker_that_dies_costs_time_alone(task, client):
    X, y, X_target = task
    expected = fit(DFRODAU, X, y, X_target)
    rows = da.from_array(X_target, chunks=(30, 12)).persist()
    killed = []

    def kill(record):
        if record.iteration == 7:
            identity = next(iter(client.scheduler_info()["workers"]))
            pid = client.run(os.getpid, workers=[identity])[identity]
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    found = fit(DFRODAU, da.from_array(X, chunks=(60, 12)), y, rows, callback=kill)
    assert len(killed) == 1
    assert_same(found, expected, X_target)
