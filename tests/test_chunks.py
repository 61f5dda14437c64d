"""Rows that come in chunks: the same fit and the same predictions as in memory."""

from __future__ import annotations

import warnings
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
import zarr
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from froda import DFRODA, DFRODAU, FRODA, chunks
from froda.chunks import ArrayChunks, CodeFiles, IterableChunks, comes_in_chunks, open_rows

METHODS = [FRODA, DFRODA, DFRODAU]
PREPARATIONS = [
    {},
    {"row_sum": False},
    {"zscore": False},
    {"unit_norm": False},
    {"pca_variance": None},
    {"row_sum": False, "zscore": False, "unit_norm": False, "pca_variance": None},
    {"n_components": "sdm"},
    {"n_components": "sdm", "pca_variance": None},
    {"constraint": "total"},
]


@pytest.fixture
def task(rng):
    """Two known classes, one unknown in the source, another in the target."""
    centres = 2 * rng.normal(size=(4, 12))
    numbers, target_numbers = rng.integers(0, 3, 130), rng.choice([0, 1, 3], 170)
    X = np.abs(centres[numbers] + rng.normal(size=(130, 12)))
    X_target = np.abs(centres[target_numbers] + rng.normal(size=(170, 12)) + 0.3)
    return X, np.where(numbers == 2, -1, numbers), X_target


def fit(method, X, y, X_target, **settings):
    settings = {"n_components": 3, "max_iter": 40, **settings}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # left-out unknowns
        warnings.simplefilter("ignore", ConvergenceWarning)
        return method(**settings).fit(X, y, X_target)


def assert_same(found, expected, X_target, atol=1e-8):
    assert found.n_components_ == expected.n_components_
    assert found.n_iter_ == expected.n_iter_
    for name in ("shared_basis_", "private_basis_", "target_codes_", "source_codes_"):
        size = np.abs(getattr(expected, name)).max()
        assert_allclose(getattr(found, name), getattr(expected, name), atol=atol * size)
    assert_array_equal(found.unknown_mask_, expected.unknown_mask_)
    assert_array_equal(found.predict(X_target), expected.predict(X_target))
    assert_allclose(
        found.unknown_score(X_target), expected.unknown_score(X_target), atol=1e3 * atol
    )


@pytest.mark.parametrize("preparation", PREPARATIONS, ids=str)
@pytest.mark.parametrize("method", METHODS)
def test_a_fit_in_chunks_is_the_fit_in_memory(method, preparation, task):
    X, y, X_target = task
    expected = fit(method, X, y, X_target, **preparation)
    found = fit(method, X, y, X_target, chunk_size=17, **preparation)
    assert_same(found, expected, X_target)


@pytest.mark.parametrize("chunk_size", [1, 7, 64, 1000])
def test_the_size_of_chunks_changes_nothing(chunk_size, task):
    X, y, X_target = task
    expected = fit(DFRODAU, X, y, X_target)
    found = fit(DFRODAU, X, y, X_target, chunk_size=chunk_size)
    assert_same(found, expected, X_target)
    for name in ("predict_proba", "decision_function", "transform"):
        assert_allclose(
            getattr(found, name)(X_target), getattr(expected, name)(X_target), atol=1e-6
        )


def test_the_found_epsilon_is_that_of_all_chunks(task):
    X, y, X_target = task
    expected = fit(FRODA, X, y, X_target, epsilon="auto")
    found = fit(FRODA, X, y, X_target, epsilon="auto", chunk_size=17)
    assert found.epsilon_ == pytest.approx(expected.epsilon_)
    assert found.epsilon_ != pytest.approx(0.2)
    assert_same(found, expected, X_target)


def test_fit_predict_in_chunks(task):
    X, y, X_target = task
    settings = {"n_components": 3, "chunk_size": 20}
    labels = DFRODAU(**settings).fit_predict(X, y, X_target)
    assert_array_equal(labels, DFRODAU(**settings).fit(X, y, X_target).predict(X_target))


def test_closed_set_in_chunks(task):
    X, y, _ = task
    expected, found = fit(FRODA, X, y, None), fit(FRODA, X, y, None, chunk_size=11)
    assert_same(found, expected, X)
    assert not found.unknown_mask_.any()


def test_float32_stays_float32(task):
    X, y, X_target = task
    X, X_target = X.astype(np.float32), X_target.astype(np.float32)
    expected = fit(FRODA, X, y, X_target)
    found = fit(FRODA, X, y, X_target, chunk_size=16)
    assert found.shared_basis_.dtype == found.target_codes_.dtype == np.float32
    assert found.objective_[-1][2] == pytest.approx(expected.objective_[-1][2], rel=1e-4)
    agreement = np.mean(found.predict(X_target) == expected.predict(X_target))
    assert agreement >= 0.99


class Anew:
    """Chunks of an array, from the first on each time."""

    def __init__(self, X, height):
        self.X, self.height = X, height

    def __iter__(self):
        for first in range(0, self.X.shape[0], self.height):
            yield self.X[first : first + self.height]


def as_memory_map(X, folder):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


def as_hdf5(X, folder):
    file = h5py.File(folder / "X.h5", "w")
    return file.create_dataset("X", data=X, chunks=(16, X.shape[1]))


def as_zarr(X, folder):
    return zarr.create_array(folder / "X.zarr", data=X, chunks=(16, 5))


KINDS = {
    "memory map": as_memory_map,
    "hdf5": as_hdf5,
    "zarr": as_zarr,
    "list": lambda X, _: [X[:50], X[50:51], X[51:]],
    "iterable": lambda X, _: Anew(X, 23),
    "sparse chunks": lambda X, _: Anew(sparse.csr_array(X), 40),
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_rows(kind, task, tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "READ_AT_ONCE", 0)
    monkeypatch.setattr(chunks, "_CHUNK_BYTES", 30 * 12 * 8)
    X, y, X_target = task
    expected = fit(FRODA, X, y, X_target)
    rows = KINDS[kind](X_target, tmp_path)
    found = fit(FRODA, X, y, rows)
    assert_same(found, expected, X_target)
    assert_array_equal(found.predict(rows), expected.predict(X_target))


def test_a_source_in_chunks_and_its_unknown_rows(task, tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "READ_AT_ONCE", 0)
    X, y, X_target = task
    expected = fit(FRODA, X, y, X_target)
    assert_same(fit(FRODA, as_memory_map(X, tmp_path), y, X_target), expected, X_target)
    assert_same(fit(FRODA, [X[:70], X[70:]], y, X_target), expected, X_target)


def test_small_files_are_simply_read(task, tmp_path):
    _, _, X_target = task
    rows = as_memory_map(X_target, tmp_path)
    assert not comes_in_chunks(rows, None)
    assert comes_in_chunks(rows, 10)
    assert not comes_in_chunks(X_target, None)
    assert not comes_in_chunks(X_target.tolist(), 10)
    assert not comes_in_chunks(sparse.csr_array(X_target), 10)


def test_chunks_of_a_file_are_kept_whole(tmp_path):
    rows = as_hdf5(np.zeros((500, 4)), tmp_path)
    assert ArrayChunks(rows, None, "X").height % 16 == 0
    assert ArrayChunks(rows, 10, "X").height == 10


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only Linux says what is mapped")
def test_memory_maps_are_let_go(tmp_path):
    """What was read does not stay in the memory of the process."""
    rows = as_memory_map(np.ones((40_000, 128)), tmp_path)  # 40 MB

    def resident() -> int:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[2]) * 4096  # shared pages: files that are mapped

    before = resident()
    total = open_rows(rows, 1000, "X").map_reduce(lambda chunk: (None, chunk.sum()))[1]
    assert total == 40_000 * 128
    assert resident() - before < 10 << 20


def test_iterators_are_refused(task):
    X, y, X_target = task
    with pytest.raises(ValueError, match="gone through only once"):
        fit(FRODA, X, y, iter([X_target]))


def test_what_gives_no_chunks_is_refused(task):
    X, y, _ = task
    for rows in ({1.0, 2.0}, Anew(np.arange(5.0), 2)):
        with pytest.raises(ValueError, match="2-dimensional"):
            fit(FRODA, X, y, rows)
    with pytest.raises(ValueError, match="gives no chunk"):
        fit(FRODA, X, y, Anew(np.empty((0, 12)), 2))


def test_tensors_are_taken_like_arrays(task):
    X, y, X_target = task
    expected = fit(FRODA, X, y, X_target)
    tensors = torch.from_numpy(X_target)
    assert_same(fit(FRODA, X, y, tensors), expected, X_target)
    assert_same(fit(FRODA, X, y, Anew(tensors, 50)), expected, X_target)


class Shrinking(Anew):
    """Rows that are fewer every time."""

    def __iter__(self):
        self.X = self.X[1:]
        return super().__iter__()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (lambda X: Shrinking(X, 30), "the same rows every time"),
        (lambda X: [X, X[:, 1:]], "need 12 columns"),
        (lambda X: [X[:, 1:]], "expecting 12 features"),
        (lambda X: [X[:1]], "fewer than 2 samples"),
        (lambda X: [np.where(np.arange(12) == 3, np.nan, X)], "X_target contains NaN"),
        (lambda X: [X.astype(complex)], "real numbers"),
        (lambda X: [X[:1].repeat(9, axis=0)], "the same after preprocessing"),
    ],
)
def test_bad_chunks_are_refused(rows, message, task):
    X, y, X_target = task
    with pytest.raises(ValueError, match=message):
        fit(FRODA, X, y, rows(X_target))


def test_labels_must_match_rows(task):
    X, y, X_target = task
    with pytest.raises(ValueError, match="130 rows and y 129"):
        fit(FRODA, X, y[1:], X_target, chunk_size=20)
    with pytest.raises(ValueError, match="more rows than y"):
        fit(FRODA, [X], y[1:], X_target)
    with pytest.raises(ValueError, match="130 rows and y 129"):
        fit(DFRODAU, [X], y[1:], X_target)


def test_head_rows_are_drawn_alike_in_memory_and_in_chunks(task):
    X, y, X_target = task
    expected = fit(FRODA, X, y, X_target, head_rows=60, head="nn")
    found = fit(FRODA, X, y, X_target, head_rows=60, head="nn", chunk_size=13)
    assert expected.classifier_.n_samples_fit_ == 60
    assert_allclose(found.classifier_._fit_X, expected.classifier_._fit_X, atol=1e-9)
    other = fit(FRODA, X, y, X_target, head_rows=60, head="nn", random_state=1)
    assert not np.array_equal(other.classifier_._fit_X, expected.classifier_._fit_X)
    assert fit(FRODA, X, y, X_target, head_rows=None, head="nn").classifier_.n_samples_fit_ > 60


def test_code_files_take_turns(tmp_path):
    files = CodeFiles(tmp_path, "T")
    first = files.empty((3, 2), np.dtype(float), None)
    second = files.empty((3, 2), np.dtype(float), first)
    first[:] = 1
    assert not second.any()
    assert files.empty((3, 2), np.dtype(float), second).filename == first.filename


def test_iterables_know_their_length_after_a_pass(task):
    rows = IterableChunks(Anew(task[2], 40), "X")
    assert rows.n_rows is None
    rows.map_reduce(lambda chunk: (None, None))
    assert rows.n_rows == 170
