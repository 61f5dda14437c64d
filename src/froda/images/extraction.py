"""Features of a folder of pictures: read and run in threads, store what is done, put together."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from froda.extras import require
from froda.factorization.problem import Array
from froda.images.ahead import in_batches, map_ahead
from froda.images.chunks import Chunk, ChunkStore
from froda.images.features import Features, load_features, read_settings, write_features
from froda.images.listing import Entry, Listing, Skipped, fingerprint, list_folder
from froda.images.names import printable
from froda.images.networks import (
    DEFAULT_LAYER,
    DEFAULT_NETWORK,
    Network,
    load_network,
    one_thread_each,
    running,
)
from froda.images.reading import UnreadableError, quiet, read_square

CHUNK = 64  # files; what an interruption costs at most
BATCH = 4  # larger ones are slower on a CPU and take more memory
_MOST_THREADS = 8
_LAYOUT = 1


@dataclass(frozen=True)
class Step:
    """How far an extraction is.

    Parameters
    ----------
    done : int
        Files that are finished.
    total : int
        Files there are.
    skipped : int
        Files among those finished that could not be read.
    resumed : int
        Files among those finished that an earlier run did.
    """

    done: int
    total: int
    skipped: int
    resumed: int


Report = Callable[[Step], None]


def extract(
    folder: str | Path,
    out: str | Path | None = None,
    *,
    network: str | Network = DEFAULT_NETWORK,
    layer: str = DEFAULT_LAYER,
    labelled: bool | None = None,
    batch_size: int = BATCH,
    n_threads: int | None = None,
    device: str = "cpu",
    callback: Report | None = None,
) -> Features:
    """Return the features of all pictures of a folder.

    Files that give no picture are listed with the reason and left out. With ``out``,
    finished parts are stored beside it, so the same call goes on where an earlier one was
    stopped, and returns at once what an earlier one has finished.

    Parameters
    ----------
    folder : str or Path
        Pictures in a folder for each class, or pictures alone.
    out : str or Path, default=None
        A .npz file for the result, which `froda.datasets.load_file` reads.
    network : str or Network, default="efficientnet-lite0"
        What computes the features: a name that `froda.images.load_network` knows, or a
        network of your own.
    layer : str, default="pooled"
        Which features: ``pooled`` is what the classifier of the network is given, ``multi``
        of the default network has three earlier layers beside it. Dotted names of parts of
        the network, comma-separated, stand for themselves.
    labelled : bool, default=None
        Whether folders of the first level are classes. None: if there are pictures in them.
    batch_size : int, default=4
        Pictures that go through the network together, 64 at most.
    n_threads : int, default=None
        Threads with a batch each. None takes as many as PyTorch would, eight at most.
    device : str, default="cpu"
        A device of PyTorch, for networks that are given by name.
    callback : callable, default=None
        Called with a `Step` after each batch.

    Returns
    -------
    features : Features
        One row a picture, in the order of the file names.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from froda.images import extract
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (64, 48), "red").save(Path(folder, "red.png"))
    ...     features = extract(folder)
    >>> features.X.shape, features.files
    ((1, 1280), ('red.png',))
    """
    if out is not None:
        write_extraction(
            folder,
            Path(out),
            network=network,
            layer=layer,
            labelled=labelled,
            batch_size=batch_size,
            n_threads=n_threads,
            device=device,
            callback=callback,
        )
        return load_features(out)
    with tempfile.TemporaryDirectory() as temporary:
        return extract(
            folder,
            Path(temporary, "features.npz"),
            network=network,
            layer=layer,
            labelled=labelled,
            batch_size=batch_size,
            n_threads=n_threads,
            device=device,
            callback=callback,
        )


def write_extraction(
    folder: str | Path,
    out: Path,
    *,
    network: str | Network = DEFAULT_NETWORK,
    layer: str = DEFAULT_LAYER,
    labelled: bool | None = None,
    batch_size: int = BATCH,
    n_threads: int | None = None,
    device: str = "cpu",
    callback: Report | None = None,
) -> None:
    """Write the features of a folder; memory does not depend on how many pictures it has."""
    if not 1 <= batch_size <= CHUNK:
        raise ValueError(f"batch_size must be from 1 to {CHUNK}, got {batch_size}.")
    torch = check_packages()
    n_threads = n_threads or min(torch.get_num_threads(), _MOST_THREADS)
    listing = list_folder(folder, labelled=labelled)
    if not listing.entries:
        raise ValueError(_nothing(listing, listing.skipped))
    check_output(out, [listing.folder])
    if isinstance(network, str):
        network = load_network(network, device=device)
    settings = network.settings(layer) | {"layout": _LAYOUT}
    whole = settings | {"files": fingerprint(listing.entries), "labelled": listing.is_labelled}
    store = ChunkStore(out, settings)
    if read_settings(out) != whole:
        run = _Run(listing, store, network, layer, batch_size, n_threads)
        run.compute(callback)
        run.put_together(out, whole)
    store.remove()


def check_packages() -> Any:
    """Say at once which extra is missing; return PyTorch."""
    require("PIL.Image", "images", "pictures")
    return require("torch", "images", "features of pictures")


def check_output(out: Path, folders: Iterable[Path]) -> None:
    """Refuse a result that could not be written, or would be read as a picture next time."""
    shown = printable(str(out))
    if out.suffix != ".npz":
        raise ValueError(f"{shown}: features are written to a file whose name ends in .npz.")
    check_outside(out, folders)
    if out.is_dir():
        raise ValueError(f"{shown} is a folder: name a file that ends in .npz.")
    if out.exists() and read_settings(out) is None:
        raise ValueError(f"{shown} exists and was not written by this command: choose another.")
    check_writable(out.parent)


def check_writable(folder: Path) -> None:
    """Make the folder if it is missing, and see that files can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ValueError(
            f"cannot write into {printable(str(folder))} ({error.strerror}): choose another --out."
        ) from error


def check_outside(out: Path, folders: Iterable[Path]) -> None:
    """Refuse to write into a folder of pictures."""
    for folder in folders:
        if out.resolve().is_relative_to(folder.resolve()):
            raise ValueError(
                f"{printable(str(out))} lies in {printable(str(folder))}, where it would be "
                "taken for a picture on the next run: choose another --out."
            )


@dataclass(frozen=True)
class _Run:
    """One extraction: which files, by which network, stored where."""

    listing: Listing
    store: ChunkStore
    network: Network
    layer: str
    batch_size: int
    n_threads: int

    def _blocks(self) -> Iterator[tuple[int, str, tuple[Entry, ...]]]:
        """Yield number, stamp and files of each chunk."""
        for number, block in enumerate(in_batches(self.listing.entries, CHUNK)):
            yield number, fingerprint(block), block

    def compute(self, callback: Report | None) -> None:
        """Fill the store with the chunks that it lacks."""
        done = skipped = 0
        missing = []
        for number, stamp, block in self._blocks():
            chunk = self.store.read(number, stamp)
            if chunk is None:
                missing.append((number, stamp, block))
            else:
                done, skipped = done + len(block), skipped + sum(map(bool, chunk.reasons))
        resumed = done

        def report(n_files: int, n_skipped: int) -> None:
            nonlocal done, skipped
            done, skipped = done + n_files, skipped + n_skipped
            if callback is not None:
                callback(Step(done, len(self.listing.entries), skipped, resumed))

        report(0, 0)
        torch = check_packages()
        batches = (batch for _, _, block in missing for batch in self._batches(block))
        with (
            quiet(),
            one_thread_each(torch) as prepare,
            running(self.network, self.layer) as features,
        ):
            work = partial(self._run_batch, features)
            results = map_ahead(work, batches, self.n_threads, prepare)
            for number, stamp, block in missing:
                parts = []
                for result in islice(results, len(list(self._batches(block)))):
                    parts.append(result)
                    report(len(result.reasons), sum(map(bool, result.reasons)))
                self.store.write(number, stamp, _joined(parts))

    def _batches(self, block: tuple[Entry, ...]) -> Iterator[tuple[Entry, ...]]:
        """Split a chunk always alike, so that a resumed run rounds like a whole one."""
        return in_batches(block, self.batch_size)

    def _run_batch(self, features: Callable[[Array], Array], batch: tuple[Entry, ...]) -> Chunk:
        """Read some files and run the network on those that are pictures."""
        pixels: list[Array] = []
        reasons = []
        for entry in batch:
            path, network = self.listing.folder / entry.name, self.network
            try:
                pixels.append(read_square(path, network.size, network.crop, network.resample))
                reasons.append("")
            except UnreadableError as error:
                reasons.append(str(error))
        X = features(np.stack(pixels)) if pixels else np.empty((0, 0), dtype=np.float32)
        return Chunk(X, tuple(reasons))

    def put_together(self, out: Path, settings: dict[str, Any]) -> None:
        """Write the result of all chunks."""
        files: list[Entry] = []
        skipped = list(self.listing.skipped)
        n_features = 0
        for number, stamp, block in self._blocks():
            chunk = self._stored(number, stamp)
            for entry, reason in zip(block, chunk.reasons, strict=True):
                if reason:
                    skipped.append(Skipped(entry.name, reason))
                else:
                    files.append(entry)
            n_features = max(n_features, chunk.X.shape[1])
        if not files:
            self.store.remove()
            raise ValueError(_nothing(self.listing, skipped))
        labels = None
        if self.listing.is_labelled:
            labels = ([entry.label for entry in files], self.listing.classes)
        skipped.sort(key=lambda item: os.fsencode(item.file))
        write_features(
            out,
            (self._stored(number, stamp).X for number, stamp, _ in self._blocks()),
            (len(files), n_features),
            [entry.name for entry in files],
            labels,
            skipped,
            settings,
        )

    def _stored(self, number: int, stamp: str) -> Chunk:
        """Return a chunk that was just there."""
        chunk = self.store.read(number, stamp)
        if chunk is None:
            raise OSError(
                f"{printable(str(self.store.folder))} lost a finished part while this run was "
                "going on: run the same command again, once at a time."
            )
        return chunk


def _joined(parts: list[Chunk]) -> Chunk:
    """Put the batches of a chunk together."""
    reasons = tuple(reason for part in parts for reason in part.reasons)
    rows = [part.X for part in parts if len(part.X)]
    return Chunk(np.concatenate(rows) if rows else parts[0].X, reasons)


def _nothing(listing: Listing, skipped: Iterable[Skipped]) -> str:
    """Say that a folder has no picture, and what it has instead."""
    skipped = list(skipped)
    examples = "; ".join(f"{printable(item.file)}: {item.reason}" for item in skipped[:3])
    found = f"{len(skipped)} files were skipped ({examples})" if skipped else "it is empty"
    return f"{printable(str(listing.folder))} has no picture that can be read: {found}."
