"""The two commands from end to end, and one clear line for each mistake."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from typer.testing import CliRunner

from froda import cli
from froda.images import adaptation, load_features

runner = CliRunner()


def run(*words, env=None):
    return runner.invoke(cli.app, [str(word) for word in words], env={"COLUMNS": "200"})


@pytest.fixture
def adapted(two_folders, tmp_path, fake_network):
    """Results of one run."""
    source, target = two_folders
    out = tmp_path / "new" / "out"
    result = run("images", source, target, "--out", out, "--network", fake_network)
    assert result.exit_code == 0, result.output
    return result, out


def test_images_end_to_end(adapted):
    result, out = adapted
    assert sorted(path.name for path in out.iterdir()) == [
        "contact_sheet.png",
        "predictions.csv",
        "skipped.csv",
        "source.npz",
        "target.npz",
    ]
    frame = pd.read_csv(out / "predictions.csv")
    folders = frame["file"].str.partition("/")[0]
    truth = folders.where(folders != "yellow", "unknown")
    assert (frame["label"] == truth).mean() > 0.9
    assert frame.groupby(folders)["unknown_score"].mean().idxmax() == "yellow"
    assert frame["probability"].between(0, 1).all()
    with Image.open(out / "contact_sheet.png") as page:
        assert page.format == "PNG"
    for word in ("files used", "files skipped", "unknown", "24", "HOS", "AUROC"):
        assert word in result.output
    assert "scored with the names of the target's folders" in result.output


def test_folders_of_the_target_have_no_part_but_in_the_score(adapted, two_folders, fake_network):
    _, out = adapted
    source, target = two_folders
    flat = target.with_name("flat")
    flat.mkdir()
    for path in target.glob("*/*"):
        shutil.copy(path, flat / path.name)
    result = run("images", source, flat, "--out", out.with_name("b"), "--network", fake_network)
    assert result.exit_code == 0, result.output
    assert "HOS" not in result.output
    first, second = (pd.read_csv(o / "predictions.csv") for o in (out, out.with_name("b")))
    first["file"] = first["file"].str.rpartition("/")[2]
    first, second = (frame.sort_values("file", ignore_index=True) for frame in (first, second))
    assert (first[["file", "label"]] == second[["file", "label"]]).all(axis=None)
    np.testing.assert_allclose(first["unknown_score"], second["unknown_score"], atol=1e-4)


def test_a_target_that_is_all_unknown_is_remarked(two_folders, tmp_path, fake_network, monkeypatch):
    real = adaptation.adapt

    def all_unknown(*arguments):
        found = real(*arguments)
        return replace(found, labels=np.full(len(found.labels), "unknown"))

    words = ("images", *two_folders, "--out", tmp_path / "out", "--network", fake_network)
    assert "note: ProgressiveMixture calls every picture unknown" not in run(*words).output
    monkeypatch.setattr(adaptation, "adapt", all_unknown)
    result = run(*words)
    assert result.exit_code == 0, result.output
    assert "note: ProgressiveMixture calls every picture unknown" in result.output


def test_a_second_run_takes_the_features_that_are_there(
    adapted, two_folders, fake_network, monkeypatch
):
    _, out = adapted
    stamps = [(out / name).stat().st_mtime_ns for name in ("source.npz", "target.npz")]
    options = ("--network", fake_network, "--known", "red,blue", "--method", "osnn")
    result = run("images", *two_folders, "--out", out, *options)
    assert result.exit_code == 0, result.output
    assert [(out / n).stat().st_mtime_ns for n in ("source.npz", "target.npz")] == stamps
    assert set(pd.read_csv(out / "predictions.csv")["label"]) <= {"red", "blue", "unknown"}
    assert "of other classes" in result.output


def test_odd_files_are_reported(two_folders, tmp_path, fake_network):
    source, target = two_folders
    good = target / "red" / "red 100.png"
    for name in (
        "a b.png",
        'q"uote, x.png',
        "new\nline.png",
        "[bold]猫.png",
        os.fsdecode(b"\xff.png"),
    ):
        shutil.copy(good, target / "red" / name)
    (target / "text [x].jpg").write_text("no picture")
    (source / "red" / "cut.png").write_bytes(good.read_bytes()[:200])
    (target / "loop").symlink_to(target)
    out = tmp_path / "out"
    result = run("images", source, target, "--out", out, "--network", fake_network)
    assert result.exit_code == 0, result.output
    assert "skipped in the target: text [x].jpg: no picture of a format" in result.output
    assert "skipped in the source: red/cut.png: damaged" in result.output
    assert pd.read_csv(out / "skipped.csv")["file"].tolist() == [
        "red/cut.png",
        "loop",
        "text [x].jpg",
    ]
    frame = pd.read_csv(out / "predictions.csv")
    assert {r"red/\xff.png", "red/new\nline.png", 'red/q"uote, x.png'} <= set(frame["file"])
    assert len(frame) == 29


def test_features_end_to_end(two_folders, tmp_path, fake_network):
    out = tmp_path / "source.npz"
    result = run("features", two_folders[0], "--out", out, "--network", fake_network)
    assert result.exit_code == 0, result.output
    assert "24 pictures × 48 features, 0 files skipped" in result.output
    assert load_features(out).classes == ("blue", "green", "red")


def test_a_flat_folder_has_no_labels(two_folders, tmp_path, fake_network):
    out = tmp_path / "red.npz"
    result = run("features", two_folders[0] / "red", "--out", out, "--network", fake_network)
    assert result.exit_code == 0, result.output
    assert "the file has no labels" in result.output
    assert load_features(out).y is None


def test_the_bench_takes_folders_of_features(two_folders, tmp_path, fake_network):
    pytest.importorskip("pyarrow", reason="results in Parquet come with the extra 'bench'")
    data = tmp_path / "data"
    for folder in two_folders:
        out = data / f"{folder.name}.npz"
        assert run("features", folder, "--out", out, "--network", fake_network).exit_code == 0
    words = ("bench", "folder", "--data", data, "--out", tmp_path / "out", "--methods", "LSVM")
    result = run(*words, "--pairs", "source-target", "--split", "first-3")
    assert result.exit_code == 0, result.output
    assert (
        "known 3 (blue, green, red); source unknown 0; target unknown 1 (yellow)" in result.output
    )


def mistake(result, *words):
    """The command ended with one line that holds the words."""
    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, SystemExit)
    (line,) = result.stderr.strip().splitlines()
    for word in words:
        assert word in line


def test_missing_folders(two_folders, tmp_path):
    source, _ = two_folders
    mistake(
        run("images", source, tmp_path / "absent", "--out", tmp_path / "o"), "absent is missing"
    )
    mistake(run("images", tmp_path / "no", source, "--out", tmp_path / "o"), "no is missing")
    mistake(run("features", tmp_path / "no", "--out", tmp_path / "o.npz"), "no is missing")
    assert not (tmp_path / "o").exists()


def test_sources_without_classes(two_folders, tmp_path):
    source, target = two_folders
    mistake(run("images", source / "red", target, "--out", tmp_path / "o"), "no class folders")
    words = ("images", source, target, "--out", tmp_path / "o", "--known")
    mistake(run(*words, "red"), "only the class 'red'")
    mistake(run(*words, "red,pink"), "no class folder 'pink'")
    assert not (tmp_path / "o").exists()


def test_classes_without_a_readable_picture(two_folders, tmp_path, fake_network):
    source, target = two_folders
    for path in [*(source / "red").iterdir(), *(source / "blue").iterdir()]:
        path.write_text("no picture")
    result = run("images", source, target, "--out", tmp_path / "o", "--network", fake_network)
    mistake(result, "only the class 'green'")


def test_targets_without_a_picture(two_folders, tmp_path, fake_network):
    source, _ = two_folders
    target = tmp_path / "texts"
    target.mkdir()
    mistake(run("images", source, target, "--out", tmp_path / "o"), "holds no files")
    (target / "a.jpg").write_text("no picture")
    result = run("images", source, target, "--out", tmp_path / "o", "--network", fake_network)
    mistake(result, "texts has no picture that can be read", "a.jpg: no picture of a format")


def test_places_that_cannot_be_written(two_folders, tmp_path):
    (tmp_path / "file").write_text("")
    for out, word in (("file", "is a file"), ("file/o", "cannot write"), ("target/o", "lies in")):
        mistake(run("images", *two_folders, "--out", tmp_path / out), word, "--out")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--method", "magic"), ("no method 'magic'", "FRODA-svm")),
        (("--method", "all"), ("--method takes one method",)),
        (("--network", "magic"), ("no network 'magic'", "efficientnet-lite0")),
        (("--layer", "magic"), ("no layer 'magic'", "pooled, multi")),
        (("--device", "magic"), ("device 'magic'", "cpu works everywhere")),
    ],
)
def test_wrong_options(two_folders, tmp_path, options, words):
    mistake(run("images", *two_folders, "--out", tmp_path / "o", *options), *words)


def test_names_that_are_no_text_can_be_printed(tmp_path):
    folder = tmp_path / os.fsdecode(b"\xff\n")
    mistake(run("features", folder, "--out", tmp_path / "o.npz"), r"\xff\n is missing")


@pytest.mark.parametrize("package", ["torch", "PIL", "matplotlib"])
def test_without_the_extra_it_is_named(two_folders, tmp_path, package, monkeypatch):
    for name in [package, *(name for name in sys.modules if name.startswith(f"{package}."))]:
        monkeypatch.setitem(sys.modules, name, None)
    result = run("images", *two_folders, "--out", tmp_path / "o")
    mistake(result, package, 'pip install "froda[images]"')
    assert not (tmp_path / "o").exists()


def test_an_interruption_is_told(two_folders, tmp_path, fake_network, monkeypatch):
    def stop(*_args, **_names):
        raise KeyboardInterrupt

    monkeypatch.setattr("froda.images.extraction.running", stop)
    result = run("features", two_folders[0], "--out", tmp_path / "o.npz", "--network", fake_network)
    assert result.exit_code == 130
    assert "the same command goes on" in result.stderr


def test_importing_and_help_need_no_extra():
    code = (
        "import sys\n"
        "class Without:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('torch', 'PIL', 'matplotlib'):\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Without())\n"
        "import froda.images, froda.cli\n"
        "froda.cli.app(['images', '--help'])\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert "Label the pictures of a folder" in result.stdout
