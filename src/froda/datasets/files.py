"""Arrays from files: .mat (v5 and v7.3), .npz, .npy, .csv and .parquet, with clear errors.

Every error names the file, says what was found in it and what was expected.
"""

from __future__ import annotations

import csv
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from scipy import sparse
from scipy.io import loadmat
from scipy.io.matlab import MatReadError

from froda.datasets.record import Domain
from froda.extras import require
from froda.factorization.problem import Array

FEATURE_KEYS = ("fts", "features", "feas", "X")
LABEL_KEYS = ("labels", "label", "y", "Y")
SUFFIXES = (".mat", ".npz", ".npy", ".csv", ".parquet")
_HDF5 = b"\x89HDF\r\n\x1a\n"


def load_file(
    path: str | Path,
    *,
    keys: Mapping[str, str] | None = None,
    name: str | None = None,
    class_names: Iterable[Any] | None = None,
    licence: str = "not known: the file is yours",
    provenance: str | None = None,
) -> Domain:
    """Return one domain from a .mat, .npz, .npy, .csv or .parquet file.

    Parameters
    ----------
    path : str or Path
        The file.
    keys : mapping of str to str, default=None
        Where things are: ``{"X": ..., "y": ..., "classes": ...}``, each optional. In .mat and
        .npz files these are names of arrays, usual names being tried when nothing is given;
        in .csv and .parquet ``y`` is the column of labels (default ``y``, ``label`` or
        ``labels``) and all other columns are features; beside a .npy ``y`` is the name of a
        second .npy file in the same folder with the labels, and without it the last column
        holds them.
    name : str, default=None
        Name of the domain. None takes that of the file.
    class_names : iterable, default=None
        All classes in order. None takes the array of class names in the file, or else the
        labels that occur, in order.
    licence : str, default="not known: the file is yours"
        Terms of use, kept in the record.
    provenance : str, default=None
        Origin, kept in the record. None names the file.

    Returns
    -------
    domain : Domain
        Features as float64, or float32 where the file holds that.
    """
    path = Path(path)
    keys = dict(keys or {})
    strange = sorted(set(keys) - {"X", "y", "classes"})
    if strange:
        raise ValueError(f"keys maps X, y and classes, got {', '.join(strange)}.")
    arrays = read_arrays(path, keys)
    features = pick(arrays, (keys["X"],) if "X" in keys else FEATURE_KEYS, path)
    labels = pick(
        arrays, (keys["y"],) if "y" in keys and path.suffix != ".npy" else LABEL_KEYS, path
    )
    if class_names is None and keys.get("classes", "classes") in arrays:
        class_names = arrays[keys.get("classes", "classes")].ravel().tolist()
    elif "classes" in keys and class_names is None:
        pick(arrays, (keys["classes"],), path)
    return make_domain(
        features,
        labels,
        path,
        name=name or path.stem,
        class_names=class_names,
        licence=licence,
        provenance=provenance or f"file {path.name}",
    )


def make_domain(
    features: Array,
    labels: Array,
    path: Path,
    *,
    name: str,
    class_names: Iterable[Any] | None,
    licence: str,
    provenance: str,
    samples_are_columns: bool = False,
) -> Domain:
    """Turn raw arrays of a file into a record: rows, whole-number labels, floats."""
    class_names = None if class_names is None else tuple(map(str, class_names))
    labels = _label_column(labels, path, frozenset(class_names or ()))
    X = _feature_rows(features, len(labels), path, samples_are_columns)
    names = _usual_names(labels) if class_names is None else class_names
    return Domain(X, number_labels(labels, names, path), name, names, licence, provenance)


def number_labels(labels: Array, names: tuple[str, ...], path: Path) -> Array:
    """Return the place of each label: by name, or as numbers from 0 or 1."""
    text = np.array([str(label) for label in _plain(labels)])
    places = {name: place for place, name in enumerate(names)}
    if set(text.tolist()) <= set(places):
        return np.array([places[label] for label in text.tolist()], dtype=np.int64)
    if labels.dtype.kind not in "iufb":
        strange = sorted(set(text.tolist()) - set(places))
        raise ValueError(
            f"{path}: labels {', '.join(strange[:5])} are not among the {len(names)} classes "
            f"{', '.join(names[:3])} …"
        )
    first = _first_number(labels, len(names), path)
    numbers = labels - first
    fits = (numbers == np.floor(numbers)) & (numbers >= 0) & (numbers < len(names))
    if not fits.all():
        strange = np.unique(labels[~fits])[:5].tolist()
        raise ValueError(
            f"{path}: labels must be whole numbers from {first} to {len(names) - 1 + first} "
            f"({len(names)} classes), found {', '.join(map(str, strange))}."
        )
    return numbers.astype(np.int64)


def _first_number(labels: Array, n_classes: int, path: Path) -> int:
    """Return 0 or 1, whichever the labels start from; in doubt MATLAB counts from 1."""
    if np.any(labels == 0):
        return 0
    return 1 if np.any(labels == n_classes) or path.suffix == ".mat" else 0


def pick(arrays: Mapping[str, Array], names: Iterable[str], path: Path) -> Array:
    """Return the first of the named arrays that the file has."""
    names = tuple(names)
    for name in names:
        if name in arrays:
            return arrays[name]
    found = ", ".join(f"{name} {array.shape}" for name, array in arrays.items()) or "nothing"
    if len(arrays) > 8:
        found = ", ".join(list(arrays)[:8]) + f" … ({len(arrays)} names)"
    raise ValueError(
        f"{path} has the wrong layout: expected {' or '.join(names)}, found {found}. "
        "froda.datasets.load_file(path, keys=...) reads other names."
    )


def read_arrays(path: Path, keys: Mapping[str, str] | None = None) -> dict[str, Array]:
    """Return every array of a file by name."""
    keys = keys or {}
    if path.suffix not in SUFFIXES:
        raise ValueError(f"{path}: cannot read {path.suffix!r} files, only {', '.join(SUFFIXES)}.")
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing.")
    if path.suffix == ".npy":
        return _read_npy(path, keys.get("y"))
    if path.suffix == ".npz":
        return _read_npz(path)
    if path.suffix == ".mat":
        return _read_hdf5(path) if is_hdf5(path) else _read_mat(path)
    columns = _read_csv(path) if path.suffix == ".csv" else _read_parquet(path)
    return _split_columns(columns, keys, path)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Name the file in what a reading library complains about."""
    try:
        yield
    except (
        OSError,
        ValueError,
        TypeError,
        EOFError,
        KeyError,
        NotImplementedError,
        BadZipFile,
        MatReadError,
        zlib.error,
    ) as error:
        raise ValueError(
            f"{path} is damaged or no {path.suffix} file ({type(error).__name__}: {error}): "
            "get it anew."
        ) from error


def is_hdf5(path: Path) -> bool:
    """Tell MATLAB v7.3 files, which are HDF5 behind 512 bytes of text, from older ones."""
    with path.open("rb") as file:
        head = file.read(512 + len(_HDF5))
    return head.startswith(_HDF5) or head[512:] == _HDF5


def _read_mat(path: Path) -> dict[str, Array]:
    """Read MATLAB v4 to v7."""
    with _readable(path):
        found = {name: value for name, value in loadmat(path).items() if name[:2] != "__"}
    return {
        name: value.toarray() if sparse.issparse(value) else np.asarray(value)
        for name, value in found.items()
    }


def _read_hdf5(path: Path) -> dict[str, Array]:
    """Read the numeric variables of MATLAB v7.3, which stores axes in the reverse order."""
    h5py = require("h5py", "data", f"MATLAB v7.3 files such as {path.name}")
    with _readable(path), h5py.File(path, "r") as file:
        return {
            name: np.asarray(value).T
            for name, value in file.items()
            if isinstance(value, h5py.Dataset) and value.dtype.kind in "biuf"
        }


def _read_npz(path: Path) -> dict[str, Array]:
    """Read named arrays; pickled objects are refused."""
    with _readable(path), path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def _read_npy(path: Path, labels_name: str | None) -> dict[str, Array]:
    """Read features, and labels from a second file or the last column."""
    X = _read_array(path)
    if labels_name is not None:
        labels_path = path.parent / labels_name
        if not labels_path.is_file():
            raise FileNotFoundError(f"{labels_path}, the labels for {path.name}, is missing.")
        return {"X": X, "y": _read_array(labels_path)}
    if X.ndim != 2 or X.shape[1] < 2:
        raise ValueError(
            f"{path} must hold samples × (features, label), got shape {X.shape}; labels in a "
            'second file are named by keys={"y": "labels.npy"}.'
        )
    return {"X": X[:, :-1], "y": X[:, -1]}


def _read_array(path: Path) -> Array:
    """Read one array; the file is opened here because np.load leaves damaged ones open."""
    with _readable(path), path.open("rb") as raw:
        array: Array = np.lib.format.read_array(raw, allow_pickle=False)
    return array


def _read_csv(path: Path) -> dict[str, Array]:
    """Read columns under a line of names."""
    with _readable(path), path.open(newline="", encoding="utf-8") as file:
        rows = csv.reader(file)
        header = next(rows, [])
        lines = [row for row in rows if row]
    for number, line in enumerate(lines, start=2):
        if len(line) != len(header):
            raise ValueError(
                f"{path}: row {number} has {len(line)} cells under {len(header)} column names."
            )
    if not lines:
        raise ValueError(f"{path} holds no rows below its line of column names.")
    return {
        name: np.array(cells) for name, cells in zip(header, zip(*lines, strict=True), strict=True)
    }


def _read_parquet(path: Path) -> dict[str, Array]:
    """Read columns with pyarrow."""
    parquet = require("pyarrow.parquet", "data", f"Parquet files such as {path.name}")
    with _readable(path), parquet.ParquetFile(path) as file:
        table = file.read()
        return {name: table[name].to_numpy() for name in table.column_names}


def _split_columns(
    columns: dict[str, Array], keys: Mapping[str, str], path: Path
) -> dict[str, Array]:
    """Return the label column and the matrix of all others."""
    if "X" in keys:
        raise ValueError(f"{path}: keys has no X for tables: every column but y is a feature.")
    label_names = (keys["y"],) if "y" in keys else LABEL_KEYS
    labels = pick(columns, label_names, path)
    features = {name: column for name, column in columns.items() if column is not labels}
    if not features:
        raise ValueError(f"{path} has no column beside the labels.")
    for name, column in features.items():
        try:
            features[name] = column.astype(float)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}: column {name!r} holds what is no number: {error}") from error
    label_name = next(name for name in label_names if name in columns)
    return {"X": np.column_stack(list(features.values())), label_name: labels}


def _plain(labels: Array) -> list[Any]:
    """Return labels as Python values, whole floats and digits as whole numbers."""
    if labels.dtype.kind == "f":
        whole = np.floor(labels) == labels
        return [int(x) if is_int else x for x, is_int in zip(labels.tolist(), whole, strict=True)]
    return labels.tolist()


def _usual_names(labels: Array) -> tuple[str, ...]:
    """Return the labels that occur as names, numbers in their order."""
    return tuple(str(label) for label in _plain(np.unique(labels)))


def _label_column(labels: Array, path: Path, names: frozenset[str]) -> Array:
    """Return one label a sample: n × 1, 1 × n, cells of strings, digits of a table.

    Text that names classes as it stands stays so: "07" and " cup" may be names of folders.
    """
    if labels.ndim > 1 and sum(size != 1 for size in labels.shape) > 1:
        raise ValueError(f"{path}: labels must be one column or one row, got {labels.shape}.")
    column = labels.ravel()
    if len(column) == 0:
        raise ValueError(f"{path} holds no samples.")
    if column.dtype.kind == "O":
        column = np.array([str(np.asarray(cell).ravel()[0]) for cell in column])
    if column.dtype.kind == "U" and not names.issuperset(column.tolist()):
        try:
            column = column.astype(float)
        except ValueError:
            column = np.char.strip(column)
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        raise ValueError(f"{path}: {np.sum(~np.isfinite(column))} labels are NaN or infinite.")
    return column


def _feature_rows(features: Array, n_labels: int, path: Path, samples_are_columns: bool) -> Array:
    """Return samples as rows: the axis that is as long as the labels is that of samples.

    The known layout of the file only decides where both axes are.
    """
    if features.dtype.kind not in "biuf":
        raise ValueError(f"{path}: features must be numbers, found {features.dtype}.")
    if features.ndim != 2 or n_labels not in features.shape:
        raise ValueError(
            f"{path}: {n_labels} labels do not match features of shape {features.shape}: one "
            "axis must be as long as the labels."
        )
    axis = features.shape.index(n_labels)
    if features.shape[0] == features.shape[1]:
        axis = int(samples_are_columns)
    rows = features.T if axis else features
    if not np.isfinite(rows).all():
        raise ValueError(f"{path}: {np.sum(~np.isfinite(rows))} features are NaN or infinite.")
    dtype = np.float32 if rows.dtype == np.float32 else np.float64
    return np.ascontiguousarray(rows, dtype=dtype)
