"""Results as CSV files, written whole or not at all."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from pathlib import Path

from froda.images.adaptation import Predictions
from froda.images.listing import Skipped
from froda.images.names import encodable


def write_predictions(path: Path, predictions: Predictions) -> None:
    r"""Write a line a picture: file, label, probability, unknown score.

    The file is UTF-8; bytes of a file name that are no UTF-8 become ``\xff``.
    """
    columns = (predictions.probability.tolist(), predictions.unknown_score.tolist())
    rows = zip(predictions.files, predictions.labels.tolist(), *columns, strict=True)
    _write(
        path,
        ("file", "label", "probability", "unknown_score"),
        ((file, label, f"{sure:.6f}", f"{score:.9g}") for file, label, sure, score in rows),
    )


def write_skipped(path: Path, folders: Iterable[tuple[str, Iterable[Skipped]]]) -> None:
    """Write a line a file that was left out: source or target, file, reason."""
    _write(
        path,
        ("folder", "file", "reason"),
        ((which, item.file, item.reason) for which, items in folders for item in items),
    )


def _write(path: Path, header: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """Quote what needs quotes, line ends in names included."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("w", newline="", encoding="utf-8") as file:
            # Line ends of two characters make the csv module quote either of them in a name.
            writer = csv.writer(file, lineterminator="\r\n")
            writer.writerow(header)
            writer.writerows([encodable(cell) for cell in row] for row in rows)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
