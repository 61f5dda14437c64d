"""Finished parts of an extraction, on disk beside the result until it is whole."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from froda.factorization.problem import Array
from froda.images.names import printable

_SETTINGS = "settings.json"


@dataclass(frozen=True)
class Chunk:
    """Features of some files in a row.

    Parameters
    ----------
    X : array of shape (n_readable, n_features)
        Features of those that could be read.
    reasons : tuple of str
        One a file: why it was skipped, "" where it was not.
    """

    X: Array
    reasons: tuple[str, ...]


class ChunkStore:
    """A hidden folder of chunks beside the file that they will make up.

    A chunk counts only while the files that it was made of are the same. Chunks of other
    settings are an error: they may be hours of somebody's work.
    """

    def __init__(self, out: Path, settings: dict[str, Any]) -> None:
        self.folder = out.with_name(f".{out.name}.parts")
        marker = self.folder / _SETTINGS
        self.folder.mkdir(exist_ok=True)
        found = self._read_marker(marker)
        if found is None:
            _replace(marker, json.dumps(settings, sort_keys=True).encode())
        elif found != json.loads(json.dumps(settings)):
            keys = sorted(k for k in found.keys() | settings.keys() if found.get(k) != settings[k])
            differing = ", ".join(f"{k} was {found.get(k)!r}" for k in keys)
            raise ValueError(
                f"{printable(str(self.folder))} holds an unfinished run with other settings "
                f"({differing}): go on with those, choose another --out or delete that folder."
            )

    @staticmethod
    def _read_marker(marker: Path) -> dict[str, Any] | None:
        """Return the settings of the chunks that are there, None where there are none."""
        try:
            found = json.loads(marker.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def write(self, number: int, stamp: str, chunk: Chunk) -> None:
        """Store a chunk, whole or not at all; ``stamp`` identifies its files."""
        path = self._path(number)
        partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
        with partial.open("wb") as file:
            np.savez(file, X=chunk.X, reasons=np.array(chunk.reasons), stamp=np.array(stamp))
        partial.replace(path)

    def read(self, number: int, stamp: str) -> Chunk | None:
        """Return a chunk, None where it is missing, damaged or made of other files."""
        try:
            with self._path(number).open("rb") as raw, np.load(raw, allow_pickle=False) as arrays:
                if str(arrays["stamp"]) != stamp:
                    return None
                return Chunk(arrays["X"], tuple(arrays["reasons"].tolist()))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None

    def remove(self) -> None:
        """Delete all chunks."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:07d}.npz"


def _replace(path: Path, contents: bytes) -> None:
    """Write a small file beside its place and move it there."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    partial.write_bytes(contents)
    partial.replace(path)
