"""Files of every kind and layout come out the same; each fault is named with its file."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from scipy.io import savemat

from froda.datasets import load_file
from froda.datasets.files import is_hdf5, make_domain

X = np.arange(20.0).reshape(5, 4) / 7
Y = np.array([1, 2, 3, 1, 2])


def write_hdf5(path, **arrays):
    """MATLAB v7.3: 512 bytes of text, then HDF5 with axes reversed."""
    h5py = pytest.importorskip("h5py", reason="MATLAB v7.3 files need the extra 'data'")
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, array in arrays.items():
            file[name] = np.asarray(array).T
        file.create_group("#refs#")
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(512))


def write_parquet(path, columns):
    """One row group."""
    pyarrow = pytest.importorskip("pyarrow", reason="Parquet files need the extra 'data'")
    from pyarrow import parquet  # noqa: PLC0415

    parquet.write_table(pyarrow.table(columns), path)


def write_csv(path, label="y", labels=Y):
    """A line of names, the labels in the middle."""
    rows = [f"{a},{b},{y},{c},{d}" for (a, b, c, d), y in zip(X.tolist(), labels, strict=True)]
    path.write_text("\n".join([f"a,b,{label},c,d", *rows]) + "\n", encoding="utf-8")


WRITERS = {
    "mat, rows": lambda p: savemat(p / "d.mat", {"fts": X, "labels": Y[:, None]}),
    "mat, columns": lambda p: savemat(p / "d.mat", {"features": X.T, "labels": Y[None]}),
    "mat, sparse": lambda p: savemat(p / "d.mat", {"fts": sparse.csc_matrix(X), "label": Y}),
    "mat, compressed": lambda p: savemat(p / "d.mat", {"X": X, "y": Y}, do_compression=True),
    "mat, v4": lambda p: savemat(p / "d.mat", {"X": X, "Y": Y * 1.0}, format="4"),
    "mat, v7.3": lambda p: write_hdf5(p / "d.mat", fts=X, labels=Y[:, None] * 1.0),
    "npz": lambda p: np.savez(p / "d.npz", X=X, y=Y),
    "npy": lambda p: np.save(p / "d.npy", np.column_stack([X, Y])),
    "csv": lambda p: write_csv(p / "d.csv"),
    "csv, label": lambda p: write_csv(p / "d.csv", "label"),
    "parquet": lambda p: write_parquet(
        p / "d.parquet", {**{f"f{k}": X[:, k] for k in range(4)}, "y": Y}
    ),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_all_kinds_give_the_same(kind, tmp_path):
    WRITERS[kind](tmp_path)
    (path,) = tmp_path.iterdir()
    domain = load_file(path)
    assert_array_equal(domain.X, X)
    assert_array_equal(domain.y, Y - 1)
    assert domain.class_names == ("1", "2", "3")
    assert domain.name == "d"
    assert domain.X.flags.c_contiguous
    assert path.name in domain.provenance


def test_mapping_of_keys(tmp_path):
    np.savez(tmp_path / "d.npz", codes=X, who=Y - 1, people=np.array(["x", "y", "z"]), y=Y + 5)
    keys = {"X": "codes", "y": "who", "classes": "people"}
    domain = load_file(tmp_path / "d.npz", keys=keys, name="n", licence="l", provenance="p")
    assert_array_equal(domain.y, Y - 1)
    assert domain.class_names == ("x", "y", "z")
    assert (domain.name, domain.licence, domain.provenance) == ("n", "l", "p")
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "who.npy", Y)
    assert_array_equal(load_file(tmp_path / "X.npy", keys={"y": "who.npy"}).y, Y - 1)
    write_csv(tmp_path / "d.csv", "kind")
    assert_array_equal(load_file(tmp_path / "d.csv", keys={"y": "kind"}).X, X)


def test_labels_as_words(tmp_path):
    words = ["cup", "jug", "pot", "cup", "jug"]
    write_csv(tmp_path / "d.csv", labels=words)
    assert load_file(tmp_path / "d.csv").class_names == ("cup", "jug", "pot")
    savemat(tmp_path / "d.mat", {"X": X, "y": np.array(words, dtype=object)})
    domain = load_file(tmp_path / "d.mat", class_names=["pot", "jug", "cup"])
    assert domain.y.tolist() == [2, 1, 0, 2, 1]
    with pytest.raises(
        ValueError, match=r"d\.mat: labels pot are not among the 2 classes cup, jug"
    ):
        load_file(tmp_path / "d.mat", class_names=["cup", "jug"])


@pytest.mark.parametrize(
    ("suffix", "labels", "places"),
    [
        (".npz", [0, 1, 2, 1, 1], [0, 1, 2, 1, 1]),
        (".npz", [1, 1, 2, 1, 1], [1, 1, 2, 1, 1]),
        (".npz", [1, 1, 3, 1, 1], [0, 0, 2, 0, 0]),
        (".mat", [1, 1, 2, 1, 1], [0, 0, 1, 0, 0]),
        (".mat", [0, 1, 2, 1, 1], [0, 1, 2, 1, 1]),
    ],
)
def test_numbers_from_zero_or_one(suffix, labels, places, tmp_path):
    path = tmp_path / f"d{suffix}"
    if suffix == ".npz":
        np.savez(path, X=X, y=labels)
    else:
        savemat(path, {"X": X, "y": np.array(labels)})
    assert load_file(path, class_names=["x", "y", "z"]).y.tolist() == places


def test_precision(tmp_path):
    for stored, kept in (("f2", "f8"), ("f4", "f4"), ("u1", "f8"), ("f8", "f8")):
        np.savez(tmp_path / "d.npz", X=X.astype(stored), y=Y)
        assert load_file(tmp_path / "d.npz").X.dtype == kept


def test_a_square_array_goes_by_its_layout(tmp_path):
    settings = {"name": "d", "class_names": None, "licence": "", "provenance": ""}
    square = X[:4]
    for columns in (False, True):
        domain = make_domain(
            square, Y[:4], tmp_path / "d.mat", samples_are_columns=columns, **settings
        )
        assert_array_equal(domain.X, square.T if columns else square)


def save(tmp_path, **arrays):
    """Write d.npz."""
    np.savez(tmp_path / "d.npz", **arrays)
    return tmp_path / "d.npz"


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"Z": X, "y": Y}, r"expected fts or features or feas or X, found Z \(5, 4\), y \(5,\)"),
        ({"X": X, "who": Y}, "expected labels or label or y or Y, found X"),
        ({"X": X, "y": Y[:3]}, r"3 labels do not match features of shape \(5, 4\)"),
        ({"X": X, "y": np.ones((5, 2))}, r"one column or one row, got \(5, 2\)"),
        ({"X": X.ravel(), "y": Y}, r"5 labels do not match features of shape \(20,\)"),
        ({"X": X.astype(str), "y": Y}, "features must be numbers, found <U"),
        ({"X": np.where(X == 0, np.nan, X), "y": Y}, "1 features are NaN"),
        ({"X": X, "y": np.where(Y == 3, np.nan, Y)}, "1 labels are NaN"),
        ({"X": X[:0], "y": Y[:0]}, "holds no samples"),
        ({f"a{k}": X for k in range(12)}, r"a0, a1, .* … \(12 names\)"),
    ],
)
def test_wrong_layouts_are_named(arrays, words, tmp_path):
    with pytest.raises(ValueError, match=rf"d\.npz.*{words}"):
        load_file(save(tmp_path, **arrays))


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([1, 2, 3, 4, 5], "from 1 to 3 .3 classes., found 4, 5"),
        ([0, 1, 2, 3, 1], "from 0 to 2 .3 classes., found 3"),
        ([0, 1, 2, 0.5, 1], "whole numbers .* found 0.5"),
        ([0, -1, 2, 1, 1], "found -1"),
    ],
)
def test_numbers_that_are_no_class(labels, words, tmp_path):
    with pytest.raises(ValueError, match=rf"d\.npz: labels must be .*{words}"):
        load_file(save(tmp_path, X=X, y=labels), class_names=["x", "y", "z"])


def test_missing_keys_and_files(tmp_path):
    path = save(tmp_path, X=X, y=Y)
    for keys in ({"X": "Q"}, {"y": "Q"}, {"classes": "Q"}):
        with pytest.raises(ValueError, match=r"d\.npz .*expected Q, found X \(5, 4\), y \(5,\)"):
            load_file(path, keys=keys)
    with pytest.raises(ValueError, match="keys maps X, y and classes, got label"):
        load_file(path, keys={"label": "y"})
    with pytest.raises(FileNotFoundError, match=r"e\.npz is missing"):
        load_file(tmp_path / "e.npz")
    with pytest.raises(ValueError, match=r"cannot read '.txt' files, only .mat"):
        load_file(tmp_path / "e.txt")
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(FileNotFoundError, match=r"gone\.npy, the labels for X\.npy, is missing"):
        load_file(tmp_path / "X.npy", keys={"y": "gone.npy"})
    np.save(tmp_path / "X.npy", X[:, 0])
    with pytest.raises(ValueError, match=r"X\.npy must hold samples × \(features, label\)"):
        load_file(tmp_path / "X.npy")


@pytest.mark.parametrize("suffix", [".mat", ".npz", ".npy", ".parquet"])
@pytest.mark.parametrize("content", [b"", b"no array at all " * 40, b"PK\x03\x04 half a file"])
def test_damaged_files_are_named(suffix, content, tmp_path):
    path = tmp_path / f"d{suffix}"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"d\{suffix} is damaged or no \{suffix} file"):
        load_file(path)


def test_damaged_compressed_and_hdf5_files(tmp_path):
    path = tmp_path / "d.mat"
    savemat(path, {"X": np.random.default_rng(0).normal(size=(50, 50))}, do_compression=True)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ValueError, match=r"d\.mat is damaged"):
        load_file(path)
    pytest.importorskip("h5py", reason="MATLAB v7.3 files need the extra 'data'")
    path.write_bytes(b"\x89HDF\r\n\x1a\n and no more")
    assert is_hdf5(path)
    with pytest.raises(ValueError, match=r"d\.mat is damaged"):
        load_file(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,y\n1,2\n3\n", "row 3 has 1 cells under 2 column names"),
        ("a,y\n", "no rows"),
        ("", "no rows"),
        ("a,b\n1,2\n", "expected labels or label or y"),
        ("y\n1\n", "no column beside the labels"),
        ("a,y\nred,2\n", "column 'a' holds what is no number"),
    ],
)
def test_faulty_tables_are_named(text, words, tmp_path):
    path = tmp_path / "d.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=rf"d\.csv.*{words}"):
        load_file(path)


def test_tables_have_no_name_for_features(tmp_path):
    write_csv(tmp_path / "d.csv")
    with pytest.raises(ValueError, match="every column but y is a feature"):
        load_file(tmp_path / "d.csv", keys={"X": "a"})


@pytest.mark.parametrize(
    ("suffix", "package", "content"),
    [(".mat", "h5py", b"\x89HDF\r\n\x1a\n"), (".parquet", "pyarrow", b"PAR1")],
)
def test_missing_packages_are_named(suffix, package, content, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setitem(sys.modules, f"{package}.parquet", None)
    (tmp_path / f"d{suffix}").write_bytes(content)
    with pytest.raises(ImportError, match=rf"d\{suffix} need the package {package}.*froda\[data\]"):
        load_file(tmp_path / f"d{suffix}")


def test_pickled_objects_are_not_run(tmp_path):
    path = save(tmp_path, X=X, y=np.array([1, "a", None, 2, 3], dtype=object))
    with pytest.raises(ValueError, match=r"d\.npz is damaged .*pickle"):
        load_file(path)


def test_text_that_names_classes_stays_text(tmp_path):
    names = np.array(["01", "10", "2", " cup"])
    labels = np.array(["10", "2", "01", " cup", "2"])
    np.savez(tmp_path / "d.npz", X=X, y=labels, classes=names)
    domain = load_file(tmp_path / "d.npz")
    assert domain.class_names == tuple(names.tolist())
    assert_array_equal(domain.y, [1, 2, 0, 3, 2])
