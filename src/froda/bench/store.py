"""Results on disk: one Parquet file a row, written whole, so that an interrupted run goes on."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from froda.extras import require

_LAYOUT = 2
_MARKER = "bench.json"
_PACKAGES = ("froda", "numpy", "scipy", "scikit-learn")


@dataclass(frozen=True)
class Job:
    """One fit: a method on a pair of domains with a seed."""

    dataset: str
    features: str
    split: str
    source: str
    target: str
    seed: int
    method: str

    @property
    def file_name(self) -> str:
        """Return a name that stands for this job alone."""
        text = json.dumps(asdict(self), sort_keys=True)
        return f"{hashlib.sha256(text.encode()).hexdigest()[:20]}.parquet"

    @property
    def pair(self) -> str:
        """Return the pair as tables show it."""
        return f"{self.source} → {self.target}"


def versions() -> dict[str, str]:
    """Return the versions that a result depends on."""
    found = {name: version(name) for name in _PACKAGES} | {"python": platform.python_version()}
    with suppress(PackageNotFoundError):  # only some methods need it
        found["torch"] = version("torch")
    return found


def machine() -> dict[str, str | int | None]:
    """Return what kind of machine this is, without its name."""
    kind = {"system": platform.system(), "machine": platform.machine()}
    return kind | {"cores": os.cpu_count()}


class Store:
    """A folder of results.

    Opening a folder that holds results of another version of the package is an error: rows of
    two versions do not belong into one table.
    """

    def __init__(self, folder: Path, *, for_writing: bool = False) -> None:
        self.folder = folder
        self._parquet = require("pyarrow.parquet", "bench", "results in Parquet")
        self._arrow = require("pyarrow", "bench", "results in Parquet")
        if folder.exists() and not folder.is_dir():
            raise NotADirectoryError(
                f"{folder} is a file: results need a folder, new or their own."
            )
        marker = folder / _MARKER
        if for_writing:
            (folder / "rows").mkdir(parents=True, exist_ok=True)
            if not marker.exists():
                _write_whole(marker, json.dumps({"layout": _LAYOUT, "versions": versions()}))
        elif not marker.exists():
            raise FileNotFoundError(
                f"{marker} is missing: {folder} holds no results of `froda bench`."
            )
        self._check(marker)

    def _check(self, marker: Path) -> None:
        """Refuse results of another layout or version."""
        try:
            found = json.loads(marker.read_text(encoding="utf-8"))
            layout, of_package = found["layout"], found["versions"]["froda"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{marker} is damaged: choose another folder for results.") from error
        if (layout, of_package) != (_LAYOUT, version("froda")):
            raise ValueError(
                f"{marker} says that the results were made by froda {of_package} (layout "
                f"{layout}), this is froda {version('froda')} (layout {_LAYOUT}): choose another "
                "--out, or delete the folder to run everything anew."
            )

    def has(self, job: Job) -> bool:
        """Say whether the job has a row."""
        return (self.folder / "rows" / job.file_name).exists()

    def write(self, job: Job, row: dict[str, Any]) -> None:
        """Write the row of a job, whole or not at all."""
        path = self.folder / "rows" / job.file_name
        partial = path.with_suffix(".partial")
        self._parquet.write_table(self._arrow.Table.from_pylist([asdict(job) | row]), partial)
        partial.replace(path)

    def rows(self) -> list[dict[str, Any]]:
        """Return all rows, in the order in which they were finished."""
        found = []
        for path in sorted((self.folder / "rows").glob("*.parquet")):
            try:
                found += self._parquet.read_table(path).to_pylist()
            except (OSError, self._arrow.ArrowInvalid) as error:
                raise ValueError(
                    f"{path} is damaged: delete it and run the same command again."
                ) from error
        return sorted(found, key=lambda row: str(row["finished"]))

    def write_summary(self) -> Path:
        """Write results.parquet: every row without its per-sample columns."""
        rows = [
            {name: value for name, value in row.items() if not isinstance(value, list)}
            for row in self.rows()
        ]
        # The columns of all rows: a row that failed has no scores, and may be the first.
        names = dict.fromkeys(name for row in rows for name in row)
        rows = [{name: row.get(name) for name in names} for row in rows]
        path = self.folder / "results.parquet"
        partial = path.with_suffix(".partial")
        self._parquet.write_table(self._arrow.Table.from_pylist(rows), partial)
        partial.replace(path)
        return path


def _write_whole(path: Path, text: str) -> None:
    """Write a text file beside its place and move it there."""
    partial = path.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
