"""Rows keep their files, batches do not matter, and what was interrupted goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from PIL import Image

from froda.datasets import load_domain, load_file
from froda.images import extract, load_features
from froda.images.extraction import CHUNK, write_extraction
from froda.images.reading import read_square


def many(folder, count):
    """Write small pictures of random grey."""
    folder.mkdir(parents=True, exist_ok=True)
    greys = np.random.default_rng(0).integers(0, 256, count)
    for number, grey in enumerate(greys.tolist()):
        Image.new("L", (8, 8), grey).save(folder / f"{number:04d}.png")
    return greys


def by_hand(path, tiny):
    square = read_square(path, tiny.SIZE, 0.875)
    return square.reshape(4, 8, 4, 8, 3).mean(axis=(1, 3)).transpose(2, 0, 1).ravel() / 255


def test_one_row_a_picture_equal_to_the_network_by_hand(tiny, two_folders):
    source, _ = two_folders
    features = extract(source, network=tiny.tiny_network())
    assert features.classes == ("blue", "green", "red")
    assert features.y.tolist() == ["blue"] * 8 + ["green"] * 8 + ["red"] * 8
    assert features.files[:2] == ("blue/blue 0.png", "blue/blue 1.png")
    expected = [by_hand(source / file, tiny) for file in features.files]
    assert_allclose(features.X, expected, atol=1e-6)
    assert features.X.dtype == np.float32
    assert features.skipped == ()


@pytest.mark.parametrize("batch_size", [1, 5, 64])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_batches_and_threads_do_not_matter(tiny, tmp_path, batch_size, n_threads):
    many(tmp_path / "a", CHUNK + 7)
    (tmp_path / "a" / "0003.png").write_bytes(b"no picture")
    plain = extract(tmp_path / "a", network=tiny.tiny_network())
    other = extract(
        tmp_path / "a", network=tiny.tiny_network(), batch_size=batch_size, n_threads=n_threads
    )
    assert other.files == plain.files
    assert len(plain.files) == CHUNK + 6
    assert_allclose(other.X, plain.X, atol=1e-6)


def test_odd_files_are_listed_and_the_others_used(tiny, tmp_path, paint):
    folder = tmp_path / "odd"
    (good,) = paint(folder / "c", "red", 1)
    names = [
        "a b.png",
        'it\'s "q", x.png',
        "new\nline.png",
        "größe 猫.png",
        os.fsdecode(b"\xff.png"),
    ]
    for name in names:
        (folder / "c" / name).write_bytes(good.read_bytes())
    (folder / "c" / "text.jpg").write_text("no picture")
    (folder / "c" / "empty.jpg").write_bytes(b"")
    (folder / "c" / "cut.png").write_bytes(good.read_bytes()[:300])
    (folder / "c" / "loop").symlink_to("..")
    (folder / "d").mkdir()
    (folder / "d" / "readme.txt").write_text("nothing here")
    features = extract(folder, tmp_path / "odd.npz", network=tiny.tiny_network())
    assert sorted(features.files) == sorted(f"c/{name}" for name in [*names, good.name])
    assert np.ptp(features.X, axis=0).max() == 0
    found = {item.file: item.reason for item in features.skipped}
    assert set(found) == {"c/text.jpg", "c/empty.jpg", "c/cut.png", "c/loop", "d/readme.txt"}
    assert found["c/text.jpg"] == "no picture of a format that can be read"
    assert found["c/empty.jpg"] == "empty file"
    assert found["c/cut.png"].startswith("damaged: ")
    assert features.classes == ("c", "d")
    again = load_features(tmp_path / "odd.npz")
    assert (again.files, again.skipped) == (features.files, features.skipped)


def test_a_chunk_without_a_picture_is_no_obstacle(tiny, tmp_path):
    many(tmp_path / "a", 3)
    for number in range(2 * CHUNK):
        (tmp_path / "a" / f"00{number:04d}.jpg").write_text("no picture")
    features = extract(tmp_path / "a", network=tiny.tiny_network())
    assert features.X.shape == (3, 48)
    assert len(features.skipped) == 2 * CHUNK


def test_progress_counts_files(tiny, tmp_path):
    many(tmp_path / "a", 10)
    (tmp_path / "a" / "0003.png").write_bytes(b"no picture")
    steps = []
    extract(tmp_path / "a", network=tiny.tiny_network(), batch_size=4, callback=steps.append)
    assert [(s.done, s.total, s.skipped, s.resumed) for s in steps] == [
        (0, 10, 0, 0),
        (4, 10, 1, 0),
        (8, 10, 1, 0),
        (10, 10, 1, 0),
    ]


def stops_at(n_files):
    """Return a callback that interrupts the run."""

    def stop(step):
        if step.done - step.resumed >= n_files:
            raise KeyboardInterrupt

    return stop


def interrupt(folder, out, network, n_files=CHUNK + 10, **settings):
    with pytest.raises(KeyboardInterrupt):
        write_extraction(folder, out, network=network, callback=stops_at(n_files), **settings)
    assert not out.exists()


def test_an_interrupted_run_goes_on(tiny, tmp_path):
    folder, out, steps = tmp_path / "a", tmp_path / "a.npz", []
    many(folder, 2 * CHUNK + 5)
    interrupt(folder, out, tiny.tiny_network())
    write_extraction(folder, out, network=tiny.tiny_network(), callback=steps.append)
    assert steps[0].resumed == steps[0].done == CHUNK
    write_extraction(folder, tmp_path / "whole.npz", network=tiny.tiny_network())
    assert out.read_bytes() == (tmp_path / "whole.npz").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "a.npz", "whole.npz"]


def test_a_killed_run_goes_on(tiny, tmp_path):
    folder, out = tmp_path / "a", tmp_path / "a.npz"
    many(folder, 3 * CHUNK)
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from tiny import tiny_network\n"
        "from froda.images import extract\n"
        f"extract({str(folder)!r}, {str(out)!r}, network=tiny_network(delay=0.05))\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    first = tmp_path / ".a.npz.parts" / "0000000.npz"
    patience = time.monotonic() + 60
    while not first.exists() and process.poll() is None and time.monotonic() < patience:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert first.exists()
    assert not out.exists()
    steps = []
    write_extraction(folder, out, network=tiny.tiny_network(), callback=steps.append)
    assert CHUNK <= steps[0].resumed < 3 * CHUNK
    write_extraction(folder, tmp_path / "whole.npz", network=tiny.tiny_network())
    assert out.read_bytes() == (tmp_path / "whole.npz").read_bytes()
    assert not first.parent.exists()


def test_damaged_and_outdated_parts_are_done_again(tiny, tmp_path):
    folder, out, steps = tmp_path / "a", tmp_path / "a.npz", []
    greys = many(folder, 4 * CHUNK)
    interrupt(folder, out, tiny.tiny_network(), 3 * CHUNK + 10)
    parts = tmp_path / ".a.npz.parts"
    (parts / "0000000.npz").write_bytes(b"damaged")
    Image.new("L", (8, 8), 77).save(folder / f"{CHUNK:04d}.png")
    os.utime(folder / f"{CHUNK:04d}.png", ns=(1, 1))
    greys[CHUNK] = 77
    write_extraction(folder, out, network=tiny.tiny_network(), callback=steps.append)
    assert steps[0].resumed == CHUNK
    assert_allclose(load_features(out).X[:, 0], greys / 255, atol=1e-6)


def test_parts_of_other_settings_are_refused(tiny, tmp_path):
    folder, out = tmp_path / "a", tmp_path / "a.npz"
    many(folder, CHUNK + 20)
    interrupt(folder, out, tiny.tiny_network())
    with pytest.raises(ValueError, match=r"other settings \(layer was \['pooled'\]\): go on with"):
        write_extraction(folder, out, network=tiny.tiny_network(), layer="early")


def test_a_finished_result_is_taken_and_an_outdated_one_replaced(tiny, tmp_path):
    folder, out = tmp_path / "a", tmp_path / "a.npz"
    many(folder, 5)
    first = extract(folder, out, network=tiny.tiny_network())
    steps = []
    again = extract(folder, out, network=tiny.tiny_network(), callback=steps.append)
    assert steps == []
    assert_array_equal(again.X, first.X)
    assert extract(folder, out, network=tiny.tiny_network(), layer="early").X.shape == (5, 3)
    (folder / "0000.png").unlink()
    assert len(extract(folder, out, network=tiny.tiny_network(), layer="early").X) == 4


def test_data_sets_read_the_result(tiny, tmp_path, paint):
    for name in ("01", "10", " 2", "größe"):
        paint(tmp_path / "pictures" / name, "red", 2)
    out = tmp_path / "features" / "own.npz"
    features = extract(tmp_path / "pictures", out, network=tiny.tiny_network())
    for domain in (load_file(out), load_domain("folder", "own", out.parent)):
        assert domain.class_names == features.classes == (" 2", "01", "10", "größe")
        assert domain.y.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
        assert_array_equal(domain.X, features.X)


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("a.txt", "ends in .npz"),
        ("a/a.npz", "taken for a picture"),
        ("folder.npz", "is a folder"),
        ("other.npz", "was not written by this command"),
        ("file/a.npz", "cannot write into"),
    ],
)
def test_results_that_cannot_be_written_are_refused_at_once(tiny, tmp_path, out, message):
    many(tmp_path / "a", 1)
    (tmp_path / "folder.npz").mkdir()
    (tmp_path / "file").write_text("")
    np.savez(tmp_path / "other.npz", X=np.eye(2))
    with pytest.raises(ValueError, match=message):
        extract(tmp_path / "a", tmp_path / out, network=tiny.tiny_network())


def test_folders_without_a_picture_are_refused(tiny, tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(ValueError, match="a has no picture that can be read: it is empty"):
        extract(tmp_path / "a", network=tiny.tiny_network())
    (tmp_path / "a" / "text.jpg").write_text("no picture")
    with pytest.raises(ValueError, match=r"1 files were skipped \(text.jpg: no picture of"):
        extract(tmp_path / "a", tmp_path / "a.npz", network=tiny.tiny_network())
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("batch_size", [0, CHUNK + 1])
def test_batch_sizes_are_checked(tiny, tmp_path, batch_size):
    with pytest.raises(ValueError, match="batch_size must be from 1 to 64"):
        extract(tmp_path, network=tiny.tiny_network(), batch_size=batch_size)


def test_other_files_hold_no_features(tmp_path):
    np.savez(tmp_path / "other.npz", X=np.eye(2))
    with pytest.raises(ValueError, match="holds no features written by froda"):
        load_features(tmp_path / "other.npz")


def test_the_default_network_on_pictures(two_folders):
    features = extract(two_folders[0])
    assert features.X.shape == (24, 1280)
    assert features.settings["network"] == "efficientnet-lite0"
    same = features.y[:, None] == features.y
    distance = np.linalg.norm(features.X[:, None] - features.X, axis=2)
    assert distance[same].mean() < 0.5 * distance[~same].mean()
