"""A folder from which an interrupted fit goes on and ends with the same result.

``fit.json`` says which fit it is, ``*.pickle`` hold what has been computed, and codes that
are too many for memory lie beside them in files of their own, which take turns: the last
complete iteration is never overwritten by the one that is running. Every file appears
under its name when it is complete. Like all pickles these are to be read only from
folders that one trusts.
"""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from froda.factorization.problem import Factors

Result = TypeVar("Result")


@dataclass(frozen=True)
class StoredCodes:
    """Codes that lie in a file of the folder."""

    file: str


@dataclass(frozen=True)
class Checkpoint:
    """A folder that belongs to one fit."""

    folder: Path

    @classmethod
    def open(cls, folder: str | os.PathLike[str], identity: dict[str, Any]) -> Checkpoint:
        """Take a folder for the fit that ``identity`` describes; refuse that of another fit."""
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        text = json.dumps(identity, indent=1, sort_keys=True, default=repr)
        label = path / "fit.json"
        if not label.exists():
            _write(label, text.encode())
        found = json.loads(label.read_text(encoding="utf-8"))
        wanted = json.loads(text)
        different = sorted(k for k in {*found, *wanted} if found.get(k) != wanted.get(k))
        if different:
            raise ValueError(
                f"{path} holds the checkpoint of another fit: {', '.join(different)} differ. "
                "Choose another folder, or delete this one to start anew."
            )
        return cls(path)

    def recall(self, name: str, compute: Callable[[], Result]) -> Result:
        """Return what is stored under a name, or compute and store it."""
        path = self.folder / f"{name}.pickle"
        if path.exists():
            found: Result = pickle.loads(path.read_bytes())
            return found
        result = compute()
        _write(path, pickle.dumps(result))
        return result

    def save(self, loop: Any) -> None:
        """Store where the outer loop stands; ``loop.state.factors`` holds the codes."""
        factors: Factors = loop.state.factors
        stored = replace(factors, T=self._store(factors.T), S=self._store(factors.S))
        state = replace(loop.state, factors=stored)
        _write(self.folder / "loop.pickle", pickle.dumps(replace(loop, state=state)))

    def load(self) -> Any:
        """Return where the loop stood, None at the beginning."""
        path = self.folder / "loop.pickle"
        if not path.exists():
            return None
        loop = pickle.loads(path.read_bytes())
        factors = loop.state.factors
        whole = replace(factors, T=self._fetch(factors.T), S=self._fetch(factors.S))
        return replace(loop, state=replace(loop.state, factors=whole))

    def _store(self, codes: Any) -> Any:
        """Return codes as they are pickled: by the name of their file where they have one."""
        if not isinstance(codes, np.memmap):
            return codes
        codes.flush()
        return StoredCodes(Path(str(codes.filename)).name)

    def _fetch(self, codes: Any) -> Any:
        """Return codes as the loop uses them."""
        if not isinstance(codes, StoredCodes):
            return codes
        return np.lib.format.open_memmap(self.folder / codes.file, mode="r+")


def _write(path: Path, content: bytes) -> None:
    """Write a file that is there either whole or not at all."""
    unfinished = path.with_name(path.name + ".unfinished")
    with unfinished.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
