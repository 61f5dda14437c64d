"""A folder of checkpoints: an interrupted fit ends as if it had never stopped."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from froda import DFRODA, DFRODAU, FRODA
from froda.factorization.checkpoint import Checkpoint

METHODS = [FRODA, DFRODA, DFRODAU]
NAMES = ("shared_basis_", "private_basis_", "target_codes_", "source_codes_")


@pytest.fixture
def task(rng):
    """Two known classes, one unknown in the source, another in the target."""
    centres = 2 * rng.normal(size=(4, 12))
    numbers, target_numbers = rng.integers(0, 3, 130), rng.choice([0, 1, 3], 170)
    X = np.abs(centres[numbers] + rng.normal(size=(130, 12)))
    X_target = np.abs(centres[target_numbers] + rng.normal(size=(170, 12)) + 0.3)
    return X, np.where(numbers == 2, -1, numbers), X_target


class Interrupted(Exception):
    """What stops a fit from outside."""


def fit(method, task, **settings):
    settings = {"n_components": 3, "max_iter": 12, "tol": 1e-9, **settings}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # left-out unknowns
        warnings.simplefilter("ignore", ConvergenceWarning)
        return method(**settings).fit(*task)


def stop_at(number):
    def callback(record):
        if record.iteration == number:
            raise Interrupted

    return callback


@pytest.mark.parametrize("chunk_size", [None, 25])
@pytest.mark.parametrize("method", METHODS)
def test_an_interrupted_fit_goes_on(method, chunk_size, task, tmp_path):
    expected = fit(method, task, chunk_size=chunk_size)
    settings = {"chunk_size": chunk_size, "checkpoint": tmp_path / "folder"}
    for number in (1, 4, 9):
        with pytest.raises(Interrupted):
            fit(method, task, callback=stop_at(number), **settings)
    numbers = []
    found = fit(method, task, callback=lambda r: numbers.append(r.iteration) and None, **settings)
    assert numbers == [10, 11, 12]
    assert found.objective_ == expected.objective_
    for name in NAMES:
        assert_array_equal(getattr(found, name), getattr(expected, name))
    assert_array_equal(found.predict(task[2]), expected.predict(task[2]))


@pytest.mark.parametrize("chunk_size", [None, 25])
def test_a_finished_fit_is_found_again(chunk_size, task, tmp_path):
    settings = {"chunk_size": chunk_size, "checkpoint": str(tmp_path), "tol": 1e-3}
    first = fit(DFRODA, task, max_iter=100, **settings)
    again = fit(DFRODA, task, max_iter=100, callback=stop_at(first.n_iter_ + 1), **settings)
    assert again.stop_reason_ is first.stop_reason_
    for name in NAMES:
        assert_array_equal(getattr(again, name), getattr(first, name))


def test_more_iterations_may_be_asked_for(task, tmp_path):
    fit(FRODA, task, max_iter=3, checkpoint=tmp_path)
    assert fit(FRODA, task, max_iter=5, checkpoint=tmp_path).n_iter_ == 5


def test_codes_in_chunks_lie_in_the_folder(task, tmp_path):
    model = fit(DFRODAU, task, chunk_size=25, checkpoint=tmp_path)
    for codes in (model.target_codes_, model.source_codes_):
        assert isinstance(codes, np.memmap)
        assert str(codes.filename).startswith(str(tmp_path))
    in_memory = fit(DFRODAU, task, chunk_size=25)
    assert not isinstance(in_memory.target_codes_, np.memmap)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lam": 0.3}, "lam differ"),
        ({"n_components": 2}, "n_components differ"),
        ({"X": 1}, "X differ"),
        ({"y": 1}, "y differ"),
        ({"X_target": 1}, "X_target differ"),
    ],
)
@pytest.mark.parametrize("chunk_size", [None, 25])
def test_another_fit_is_refused(change, message, chunk_size, task, tmp_path):
    settings = {"max_iter": 2, "chunk_size": chunk_size, "checkpoint": tmp_path}
    fit(FRODA, task, **settings)
    X, y, X_target = (part.copy() for part in task)
    change = dict(change)
    if "X" in change:
        X[0, 0] += change.pop("X")
    if "y" in change:
        y[:2] = y[:2][::-1] if y[0] != y[1] else 1 - np.abs(y[:2])
        change.pop("y")
    if "X_target" in change:
        X_target[0, 0] += change.pop("X_target")
    with pytest.raises(ValueError, match=message):
        fit(FRODA, (X, y, X_target), **settings, **change)


def test_only_complete_files_have_their_name(tmp_path):
    store = Checkpoint.open(tmp_path, {"a": 1})
    assert store.load() is None
    assert store.recall("x", lambda: 3) == 3
    assert store.recall("x", lambda: 4) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fit.json", "x.pickle"]


KILLED = """
import sys, warnings
import numpy as np
from froda import DFRODAU
warnings.simplefilter("ignore")
data = np.load(sys.argv[1])
model = DFRODAU(n_components=12, max_iter=60, tol=0.0, chunk_size=500, checkpoint=sys.argv[2])
model.fit(data["X"], data["y"], data["X_target"])
np.savez(sys.argv[3], V=model.shared_basis_, U=model.private_basis_, U2=model.source_private_basis_)
"""


def test_killed_three_times_at_random(rng, tmp_path):
    numbers = rng.integers(0, 5, 2000)
    X = rng.normal(size=(5, 60))[numbers] + rng.normal(size=(2000, 60))
    X_target = rng.normal(size=(4000, 60)) @ rng.normal(size=(60, 60))
    y = np.where(numbers == 4, -1, numbers)
    np.savez(tmp_path / "data.npz", X=X, y=y, X_target=X_target)

    def start(folder, result):
        names = [str(tmp_path / name) for name in ("data.npz", folder, result)]
        return subprocess.Popen([sys.executable, "-c", KILLED, *names])

    assert start("whole", "whole.npz").wait() == 0
    for _ in range(3):
        process = start("killed", "killed.npz")
        loop = tmp_path / "killed" / "loop.pickle"
        before = loop.stat().st_mtime_ns if loop.exists() else 0
        while process.poll() is None and not (loop.exists() and loop.stat().st_mtime_ns > before):
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.1))
        process.kill()
        assert process.wait() == -signal.SIGKILL  # and not finished before
    assert start("killed", "killed.npz").wait() == 0
    with np.load(tmp_path / "whole.npz") as whole, np.load(tmp_path / "killed.npz") as killed:
        for name in ("V", "U", "U2"):
            assert_allclose(killed[name], whole[name], atol=1e-10)
