"""CSV files come back as they were, whatever the names hold."""

from __future__ import annotations

import csv
import os

import numpy as np
import pandas as pd
import pytest

from froda.images.adaptation import Predictions
from froda.images.listing import Skipped
from froda.images.tables import write_predictions, write_skipped

FILES = (
    "plain.jpg",
    " spaces .jpg",
    'quo"te, comma.jpg',
    "it's.jpg",
    "new\nline.jpg",
    "carriage\rreturn.jpg",
    "both\r\n.jpg",
    "größe 猫.jpg",
    "semi;colon\ttab.jpg",
)


def predictions_of(files):
    n = len(files)
    labels = np.array([f"label {number}, \n" for number in range(n)])
    return Predictions(tuple(files), labels, np.linspace(0.1, 1, n), np.linspace(-1, 2, n), ())


def test_predictions_come_back(tmp_path):
    expected = predictions_of(FILES)
    write_predictions(tmp_path / "p.csv", expected)
    with (tmp_path / "p.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == ["file", "label", "probability", "unknown_score"]
    assert tuple(row[0] for row in rows) == FILES
    assert [row[1] for row in rows] == expected.labels.tolist()
    np.testing.assert_allclose([float(row[2]) for row in rows], expected.probability, atol=1e-6)
    np.testing.assert_allclose([float(row[3]) for row in rows], expected.unknown_score, atol=1e-8)
    frame = pd.read_csv(tmp_path / "p.csv")
    assert tuple(frame["file"]) == FILES


def test_bytes_that_are_no_text_do_not_spoil_the_file(tmp_path):
    write_predictions(tmp_path / "p.csv", predictions_of([os.fsdecode(b"caf\xe9.jpg"), "b.jpg"]))
    assert pd.read_csv(tmp_path / "p.csv")["file"].tolist() == [r"caf\xe9.jpg", "b.jpg"]


def test_skipped_files(tmp_path):
    items = (Skipped('a "b"\n.jpg', "empty file"),)
    write_skipped(tmp_path / "s.csv", (("source", items), ("target", ())))
    frame = pd.read_csv(tmp_path / "s.csv")
    assert frame.to_numpy().tolist() == [["source", 'a "b"\n.jpg', "empty file"]]


def test_a_failure_leaves_what_was_there(tmp_path):
    (tmp_path / "p.csv").write_text("before")
    broken = predictions_of(["a", "b"])
    object.__setattr__(broken, "files", ("a",))
    with pytest.raises(ValueError, match="zip"):
        write_predictions(tmp_path / "p.csv", broken)
    assert (tmp_path / "p.csv").read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["p.csv"]
