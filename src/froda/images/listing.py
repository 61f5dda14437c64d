"""Which files a folder holds, in an order that does not depend on machine or locale."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from froda.images.names import printable

_PICTURE_SUFFIXES = (
    ".avif",
    ".bmp",
    ".gif",
    ".jp2",
    ".jpe",
    ".jpeg",
    ".jpg",
    ".mpo",
    ".pgm",
    ".png",
    ".ppm",
    ".tif",
    ".tiff",
    ".webp",
)


@dataclass(frozen=True)
class Entry:
    """A file that may be a picture.

    Parameters
    ----------
    name : str
        Path below the folder, with "/" between its parts.
    size : int
        Bytes.
    modified : int
        Time of the last change in nanoseconds.
    """

    name: str
    size: int
    modified: int

    @property
    def label(self) -> str:
        """Return the folder of the first level, "" for files that lie in none."""
        return label_of(self.name)


@dataclass(frozen=True)
class Skipped:
    """A file or folder that is not used, and why.

    Parameters
    ----------
    file : str
        Path below the folder, with "/" between its parts.
    reason : str
        In a few words.
    """

    file: str
    reason: str


@dataclass(frozen=True)
class Listing:
    """The files of a folder.

    Parameters
    ----------
    folder : Path
        The folder.
    entries : tuple of Entry
        Files that may be pictures, in the order of their names as bytes.
    skipped : tuple of Skipped
        What was left aside without a look into it.
    is_labelled : bool
        Whether the folders of the first level are the classes.
    """

    folder: Path
    entries: tuple[Entry, ...]
    skipped: tuple[Skipped, ...]
    is_labelled: bool

    @property
    def classes(self) -> tuple[str, ...]:
        """Return the names of the class folders in order."""
        return tuple(dict.fromkeys(e.label for e in self.entries)) if self.is_labelled else ()


def label_of(name: str) -> str:
    """Return the first part of a path of several parts, "" for a bare file name."""
    return name.partition("/")[0] if "/" in name else ""


def fingerprint(entries: Iterable[Entry]) -> str:
    """Return a number that changes with the names, sizes or times of the files."""
    digest = hashlib.sha256()
    for entry in entries:
        digest.update(os.fsencode(entry.name))
        digest.update(f"\0{entry.size}\0{entry.modified}\0".encode())
    return digest.hexdigest()


def list_folder(folder: str | Path, *, labelled: bool | None = None) -> Listing:
    """Return the files below a folder.

    Parameters
    ----------
    folder : str or Path
        Where to look. Symbolic links are followed; a folder that was seen already below the
        same class is not entered again, so loops end.
    labelled : bool, default=None
        Whether folders of the first level are classes; files outside of them are then left
        aside. None: where one of them has a file whose name ends like that of a picture.

    Returns
    -------
    listing : Listing
        Files in order, and what was left aside with the reason.
    """
    folder = Path(folder)
    if not folder.is_dir():
        what = "is a file, not a folder" if folder.exists() else "is missing"
        raise FileNotFoundError(f"{printable(str(folder))} {what}: name a folder of pictures.")
    entries: list[Entry] = []
    skipped: list[Skipped] = []
    for found in _walk(folder):
        (entries if isinstance(found, Entry) else skipped).append(found)  # type: ignore[arg-type]
    entries.sort(key=lambda entry: os.fsencode(entry.name))
    if labelled is None:
        labelled = any(_in_class_folder(entry) for entry in entries)
    if labelled:
        outside = "lies outside of the class folders"
        skipped += [Skipped(entry.name, outside) for entry in entries if not entry.label]
        entries = [entry for entry in entries if entry.label]
    skipped.sort(key=lambda item: os.fsencode(item.file))
    return Listing(folder, tuple(entries), tuple(skipped), labelled)


def _in_class_folder(entry: Entry) -> bool:
    """Say whether the file lies in a folder and is named like a picture."""
    return bool(entry.label) and entry.name.lower().endswith(_PICTURE_SUFFIXES)


def _walk(folder: Path) -> Iterator[Entry | Skipped]:
    """Yield everything below the folder, each folder once a class, never one above it."""
    above = {_identity(os.stat(parent)) for parent in (folder.resolve(), *folder.resolve().parents)}
    seen: dict[str, set[tuple[int, int]]] = {}
    waiting = [""]
    while waiting:
        below = waiting.pop()
        try:
            children = sorted(os.scandir(folder / below), key=lambda child: child.name)
        except OSError as error:
            yield Skipped(f"{below}/", _reason(error))
            continue
        for child in children:
            name = f"{below}/{child.name}" if below else child.name
            found = _look_at(name, child)
            if isinstance(found, (Entry, Skipped)):
                yield found
                continue
            known = seen.setdefault(label_of(f"{name}/"), set(above))
            if _identity(found) in known:
                yield Skipped(name, "symbolic link to a folder that was seen already")
                continue
            known.add(_identity(found))
            waiting.append(name)


def _look_at(name: str, child: os.DirEntry[str]) -> Entry | Skipped | os.stat_result:
    """Return a file, a reason to skip it, or the status of a folder to enter."""
    if child.name.startswith("."):
        return Skipped(name, "hidden")
    try:
        status = os.stat(child.path)
    except OSError as error:
        return Skipped(name, _reason(error))
    if stat.S_ISDIR(status.st_mode):
        return status
    if not stat.S_ISREG(status.st_mode):
        return Skipped(name, "neither a file nor a folder")  # opening a pipe would wait for ever
    if status.st_size == 0:
        return Skipped(name, "empty file")
    return Entry(name, status.st_size, status.st_mtime_ns)


def _identity(status: os.stat_result) -> tuple[int, int]:
    """Return what tells folders apart, whatever links lead there."""
    return status.st_dev, status.st_ino


def _reason(error: OSError) -> str:
    """Put the complaint of the system into words."""
    if isinstance(error, FileNotFoundError):
        return "broken symbolic link"
    if isinstance(error, PermissionError):
        return "no permission to read it"
    return (error.strerror or type(error).__name__).lower()
