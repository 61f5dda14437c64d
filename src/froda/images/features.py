"""Features of a folder of pictures, as a record and as a .npz file."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from froda.factorization.problem import Array
from froda.images.listing import Skipped
from froda.images.names import printable

_DATE = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Features:
    """Features of the pictures of a folder, one row a picture.

    Parameters
    ----------
    X : array of float32 of shape (n_pictures, n_features)
        Features.
    y : array of str of shape (n_pictures,) or None
        Name of the class folder of each picture; None for a folder without class folders.
    classes : tuple of str
        Names of the class folders, also of those without a readable picture.
    files : tuple of str
        Path of each picture below the folder, with "/" between its parts.
    skipped : tuple of Skipped
        Files that were not used, with the reason.
    settings : dict
        Network, layer and a fingerprint of the files.
    """

    X: Array
    y: Array | None
    classes: tuple[str, ...]
    files: tuple[str, ...]
    skipped: tuple[Skipped, ...]
    settings: dict[str, Any] = field(default_factory=dict)


def load_features(path: str | Path) -> Features:
    """Return what `froda.images.extract` has written.

    Parameters
    ----------
    path : str or Path
        A .npz file.

    Returns
    -------
    features : Features
        As they were extracted.
    """
    settings = read_settings(Path(path))
    if settings is None:
        raise ValueError(f"{printable(str(path))} holds no features written by froda.")
    with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as arrays:
        skipped = zip(
            arrays["skipped_files"].tolist(), arrays["skipped_reasons"].tolist(), strict=True
        )
        return Features(
            X=arrays["X"],
            y=arrays.get("y"),
            classes=tuple(arrays["classes"].tolist()) if "y" in arrays else (),
            files=tuple(arrays["files"].tolist()),
            skipped=tuple(Skipped(file, reason) for file, reason in skipped),
            settings=settings,
        )


def read_settings(path: Path) -> dict[str, Any] | None:
    """Return the settings in a file of features, None where it is no such file."""
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as arrays:
            settings = json.loads(str(arrays["settings"]))
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
        return None
    return settings if isinstance(settings, dict) else None


def write_features(  # noqa: PLR0917 - the contents of the file
    path: Path,
    blocks: Iterable[Array],
    shape: tuple[int, int],
    files: Iterable[str],
    labels: tuple[Iterable[str], tuple[str, ...]] | None,
    skipped: Iterable[Skipped],
    settings: Mapping[str, Any],
) -> None:
    """Write a .npz file block by block, so that the features need not fit into memory.

    Its bytes depend on the contents alone. ``labels`` are the class of each row and all
    classes; they are written as names because numbers could be taken for names of folders.
    """
    skipped = list(skipped)
    arrays: dict[str, Array] = {
        "files": _text(files),
        "skipped_files": _text(item.file for item in skipped),
        "skipped_reasons": _text(item.reason for item in skipped),
        "settings": np.array(json.dumps(settings, sort_keys=True)),
    }
    if labels is not None:
        arrays |= {"y": _text(labels[0]), "classes": _text(labels[1])}
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_STORED) as archive:
            with archive.open(_member("X"), "w", force_zip64=True) as file:
                header = {"descr": "<f4", "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(file, header)
                for block in blocks:
                    file.write(np.ascontiguousarray(block, dtype="<f4").tobytes())
            for name, array in arrays.items():
                with archive.open(_member(name), "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, array, allow_pickle=False)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _member(name: str) -> zipfile.ZipInfo:
    """Name an array in the archive, with a fixed date."""
    return zipfile.ZipInfo(f"{name}.npy", date_time=_DATE)


def _text(words: Iterable[str]) -> Array:
    """Return an array of str, of that type also where it is empty."""
    return np.array(list(words), dtype=np.str_)
