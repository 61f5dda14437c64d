"""Comparisons: rows are stored, resumed and never dropped; tables and figures come of them."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from typer.testing import CliRunner

from froda.bench import methods, runner, runtimes
from froda.bench.figures import hos_curve
from froda.bench.published import FIGURES, PAIRS, published
from froda.bench.store import Job, Store
from froda.bench.tables import make_sheets, to_csv, to_latex, to_markdown
from froda.cli import app
from froda.metrics import open_set_scores, oscr

pyarrow = pytest.importorskip("pyarrow", reason="results in Parquet need the extra 'bench'")
pytest.importorskip("pyarrow.parquet", reason="results in Parquet need the extra 'bench'")
cli = CliRunner()
JOB = Job("synthetic", "planted", "5-2-3", "source", "target", 0, "LSVM")


class Broken:
    """A method that fails in fit."""

    def get_params(self):
        return {}

    def fit(self, X, y, X_target):
        raise RuntimeError("no luck")


class Nosy:
    """A method that looks for the answers in everything it can reach from its arguments."""

    found: list[object] = []  # noqa: RUF012 - what the test looks at

    def get_params(self):
        return {}

    def fit(self, *columns, **others):
        assert len(columns) == 3
        assert not others
        for column in columns:
            assert type(column) is np.ndarray
            assert not column.flags.writeable
            self.found.append(column.base)
        raise RuntimeError("seen enough")


def run(*words):
    return cli.invoke(app, ["bench", *map(str, words)])


def test_groups_and_names():
    everything = methods.select_methods("all")
    assert len(everything) == len(set(everything)) == 26
    assert methods.select_methods("osvm, ours,OSVM")[:2] == ("OSVM", "ProgressiveMixture")
    with pytest.raises(ValueError, match="no method 'XSVM'"):
        methods.select_methods("XSVM")


def test_without_pytorch_all_goes_on_and_a_network_says_what_it_needs(tmp_path, monkeypatch):
    assert methods.select_methods("deep") == ("DAN", "RTN", "BP", "OSBP")
    assert set(methods.DEEP) <= set(methods.select_methods("all"))
    monkeypatch.setattr(methods, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert set(methods.DEEP).isdisjoint(methods.select_methods("all"))
    for words in ("dan", "LSVM,deep"):
        result = run("synthetic", "--out", tmp_path / "x", "--methods", words)
        assert result.exit_code == 1
        assert "DAN need the package torch" in result.output
        assert 'pip install "froda[deep]"' in " ".join(result.output.split())
        assert not (tmp_path / "x").exists()
    monkeypatch.setitem(methods.GROUPS, "all", ("LSVM", "DAN"))
    result = run("synthetic", "--out", tmp_path / "y", "--methods", "all")
    assert result.exit_code == 0, result.output
    assert "left out: DAN, RTN, BP, OSBP, which need PyTorch" in " ".join(result.output.split())
    assert [row["method"] for row in Store(tmp_path / "y").rows()] == ["LSVM"]


def test_every_row_of_the_papers_office_tables_has_a_method():
    rows = [row | {"method": method} for row in make_rows()[:4] for method in FIGURES["office31"]]
    sheets = dict(make_sheets(rows))
    comparison = sheets["office31_decaf7_busto_comparison_OS"]
    variants = sheets["office31_decaf7_busto_variants_OS"]
    assert [*comparison.rows] == ["LSVM", "ATI", "DAN", "RTN", "BP", "FRODA-svm", "D-FRODA-svm"]
    assert [*comparison.paper] == [*comparison.rows]
    assert comparison.paper["BP"] == [78.3, 75.9]
    assert {*variants.rows} | {*comparison.rows} == {*FIGURES["office31"]}
    assert {*FIGURES["office31"]} <= {*methods.METHODS}


def test_no_two_names_stand_for_one_method():
    made = {}
    for name in methods.select_methods("all"):
        model = methods.METHODS[name]()
        made.setdefault((type(model), tuple(sorted(model.get_params().items()))), []).append(name)
    assert [names for names in made.values() if len(names) > 1] == []
    assert methods.METHODS["ATI"]().variant == "plain"
    assert methods.METHODS["ATI-lambda-N2"]().variant == "lambda-N2"
    assert methods.METHODS["D-FRODA-U-W"]().head == "linear"


def test_a_row_holds_scores_and_circumstances():
    row = runner.run_job(JOB, None)
    task = runner.task_of(JOB, None)
    assert row["status"] == "ok"
    assert "split 5-2-3" in row["description"]
    assert set(json.loads(row["versions"])) >= {"froda", "numpy", "python"}
    assert row["y_true"] == task.y_target.tolist()
    again = open_set_scores(row["y_true"], row["y_pred"], row["unknown_score"], unknown_label=-1)
    assert row["OS"] == again["OS"]
    assert row["AUROC"] == again["AUROC"]
    assert json.loads(row["settings"]) == json.loads(
        json.dumps(methods.METHODS["LSVM"]().get_params())
    )
    assert row["seconds"] > 0
    assert row["cpu_seconds"] > 0
    assert json.loads(row["machine"])["cores"] >= 1
    assert row["threads"] is None  # all of them
    assert runner.run_job(JOB, None, 1)["threads"] == 1
    assert row["n_target"] == len(task.X_target)
    other = replace(JOB, seed=1)
    assert runner.task_of(other, None).description.endswith("seed 1")
    assert runner.run_job(other, None)["y_true"] != row["y_true"]


def test_oscr_is_that_of_the_best_known_class():
    """A method that rejects much must not lose by it: the curve has its own thresholds."""
    row = runner.run_job(replace(JOB, method="OSVM"), None)
    assert -1 in row["y_pred"]
    assert -1 not in row["best_known"]
    columns = (row["y_true"], row["best_known"], row["unknown_score"])
    assert row["OSCR"] == oscr(*columns, unknown_label=-1)
    assert row["OSCR"] > oscr(row["y_true"], row["y_pred"], columns[2], unknown_label=-1)


def test_a_row_holds_the_threshold_of_its_method():
    model = methods.METHODS["OSVM"]().fit(*runner.task_of(JOB, None).visible())
    assert runner.run_job(replace(JOB, method="OSVM"), None)["threshold"] == model.threshold_
    assert runner.run_job(replace(JOB, method="FRODA-svm"), None)["threshold"] == 1 / 1.2


def test_a_method_that_fails_is_recorded(monkeypatch):
    monkeypatch.setitem(runner.METHODS, "LSVM", Broken)
    row = runner.run_job(JOB, None)
    assert row["status"] == "failed"
    assert row["reason"] == "RuntimeError: no luck"


def test_a_method_sees_the_visible_and_nothing_else(monkeypatch):
    monkeypatch.setitem(runner.METHODS, "LSVM", Nosy)
    row = runner.run_job(JOB, None)
    assert row["reason"] == "RuntimeError: seen enough"
    assert Nosy.found == [None, None, None]  # no way from the arrays to others


def test_store_resumes_and_refuses(tmp_path):
    store = Store(tmp_path, for_writing=True)
    assert not store.has(JOB)
    store.write(JOB, {"finished": "now", "OS": 0.5})
    assert Store(tmp_path).has(JOB)
    assert list(tmp_path.rglob("*.partial")) == []
    (tmp_path / "rows" / "killed.partial").write_bytes(b"PAR1")  # as an interrupted run leaves it
    assert not store.has(replace(JOB, seed=1))
    (row,) = store.rows()
    assert (row["method"], row["OS"]) == ("LSVM", 0.5)
    (tmp_path / "rows" / "damaged.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(ValueError, match=r"damaged\.parquet is damaged: delete it"):
        store.rows()
    marker = tmp_path / "bench.json"
    content = json.loads(marker.read_text())
    content["versions"]["froda"] = "0.0.0"
    marker.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"bench\.json says .* froda 0\.0\.0.*choose another"):
        Store(tmp_path)
    marker.write_text("{")
    with pytest.raises(ValueError, match=r"bench\.json is damaged"):
        Store(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"bench\.json is missing"):
        Store(tmp_path / "elsewhere")


def test_the_summary_has_every_column_though_the_first_row_failed(tmp_path):
    store = Store(tmp_path, for_writing=True)
    failed = {"status": "failed", "reason": "no luck", "finished": "1", "seconds": 2.0}
    store.write(JOB, failed)
    good = {"status": "ok", "finished": "2", "seconds": 1.0, "OS": 0.5, "y_pred": [0, 1]}
    store.write(replace(JOB, method="OSVM"), good)
    first, second = pyarrow.parquet.read_table(store.write_summary()).to_pylist()
    assert (first["reason"], first["OS"], first["seconds"]) == ("no luck", None, 2.0)
    assert (second["reason"], second["OS"], second["seconds"]) == (None, 0.5, 1.0)
    assert "y_pred" not in second


def test_end_to_end(tmp_path, monkeypatch):
    out = tmp_path / "out"
    command = ("synthetic", "--out", out, "--pairs", "source-target", "--seeds", 2)
    first = run(*command, "--methods", "OSVM")
    assert first.exit_code == 0, first.output
    calls = []
    real = runner.run_job
    monkeypatch.setattr(runner, "run_job", lambda job, *a: calls.append(job) or real(job, *a))
    second = run(*command, "--methods", "OSVM,FRODA-svm,LSVM,epsilon")
    assert second.exit_code == 0, second.output
    assert {job.method for job in calls}.isdisjoint({"OSVM"})
    assert len(Store(out).rows()) == 2 * (3 + len(methods.EPSILONS))
    assert (out / "results.parquet").exists()
    for word in ("OSVM", "FRODA-svm", "split 5-2-3", "HOS"):
        assert word in second.output
    assert run("tables", out).exit_code == 0
    table = (out / "tables" / "synthetic_planted_5-2-3_comparison_HOS.md").read_text()
    assert "source → target" in table
    assert "**" in table.splitlines()[-1] or "**" in table.splitlines()[-2]
    drawn = run("figures", out)
    assert drawn.exit_code == 0, drawn.output
    names = {path.stem.rpartition("_")[2] for path in (out / "figures").iterdir()}
    assert names == {"epsilon", "threshold", "scores", "wins", "runtime"}


def test_an_interrupted_run_says_how_to_go_on(tmp_path, monkeypatch):
    command = ("synthetic", "--out", tmp_path, "--methods", "LSVM,OSVM")
    real = runner.run_job

    def interrupted(job, *others):
        if job.method == "OSVM":
            raise KeyboardInterrupt
        return real(job, *others)

    monkeypatch.setattr(runner, "run_job", interrupted)
    result = run(*command)
    assert result.exit_code == 130
    assert "the same command goes on" in result.output
    assert [row["method"] for row in Store(tmp_path).rows()] == ["LSVM"]
    monkeypatch.setattr(runner, "run_job", real)
    assert run(*command).exit_code == 0
    assert [row["method"] for row in Store(tmp_path).rows()] == ["LSVM", "OSVM"]


def test_a_failing_method_is_shown(tmp_path, monkeypatch):
    monkeypatch.setitem(runner.METHODS, "LSVM", Broken)
    command = ("synthetic", "--out", tmp_path, "--pairs", "source-target", "--methods", "LSVM")
    result = run(*command)
    assert result.exit_code == 0, result.output
    assert "failed: LSVM, source → target, seed 0: RuntimeError: no luck" in result.output
    assert "failed" in to_markdown(make_sheets(Store(tmp_path).rows())[0][1])
    again = run(*command)  # nothing is left to do, but the failure is not forgotten
    assert "failed: LSVM, source → target, seed 0: RuntimeError: no luck" in again.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nothing", "--out", "x"), "there is no data set 'nothing'"),
        (("synthetic", "--out", "x", "--methods", "y"), "no method 'y'"),
        (("synthetic", "--out", "x", "--split", "y"), "no split 'y'"),
        (("synthetic", "--out", "x", "--pairs", "y"), "source-target"),
        (("synthetic", "--out", "x", "--pairs", "source-y"), "has no domain 'y'"),
        (("synthetic", "--out", "x", "--pairs", "source-source"), "are the same samples"),
        (("office-caltech10", "--out", "x"), "needs the folder"),
        (("office-caltech10", "--out", "x", "--data", "y"), "y is no folder"),
        (("runtimes", "nothing"), "there is no data set 'nothing'"),
        (("runtimes", "synthetic", "--pair", "source"), "written source-target, got 'source'"),
        (("runtimes", "bcis", "--data", "y"), "y is no folder"),
        (("tables", "x"), "is missing"),
        (("figures", "x"), "is missing"),
    ],
)
def test_errors_come_before_any_fit_and_write_nothing(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(*words)
    assert result.exit_code == 1
    assert message in " ".join(result.output.split())
    assert list(tmp_path.iterdir()) == []


def test_runtimes_are_taken_in_turns_and_divided_round_by_round(monkeypatch):
    order = []

    class Quick:
        def __init__(self, name):
            self.name = name

        def fit(self, *visible):
            order.append(self.name)
            return self

        def predict(self, X_target):
            return X_target

    for name in runtimes.TIMED:
        monkeypatch.setitem(methods.METHODS, name, partial(Quick, name))
    result = run("runtimes", "synthetic", "--rounds", 2)
    assert result.exit_code == 0, result.output
    assert order == [*runtimes.TIMED, *runtimes.TIMED]
    output = " ".join(result.output.split())
    assert "ATI-lambda-N2" in output
    assert "300 source and 400 target samples of 60 features; 2 rounds" in output
    found = runtimes.Comparison({"FRODA-svm": [1.0, 2.0, 4.0], "ATI": [3.0, 2.0, 8.0]}, "")
    assert (found.median("ATI"), found.ratio("ATI")) == (3.0, 2.0)


def make_rows():
    """Two methods, two pairs, two seeds, one failure, on the paper's data and split."""
    base = {
        "dataset": "office31",
        "features": "decaf7",
        "split": "busto",
        "description": "a to b; split busto; seed 0",
        "versions": "{}",
        "status": "ok",
    }
    rows = []
    for method, level in (("LSVM", 0.6), ("FRODA-svm", 0.7)):
        for target, gain in (("dslr", 0.0), ("webcam", 0.1)):
            rows += [
                base
                | {"method": method, "source": "amazon", "target": target, "seed": seed}
                | {"OS": level + gain + 0.02 * seed}
                for seed in (0, 1)
            ]
    rows[0] |= {"status": "failed", "OS": None}
    return rows


def test_table_figures():
    sheets = dict(make_sheets(make_rows()))
    sheet = sheets["office31_decaf7_busto_comparison_OS"]
    assert sheet.columns == ["amazon → dslr", "amazon → webcam", "mean"]
    first, second, mean = sheet.rows["FRODA-svm"]
    assert (first.mean, first.deviation) == (pytest.approx(71), pytest.approx(1))
    assert mean.mean == pytest.approx((71 + 81) / 2)
    assert first.is_best
    assert second.is_best
    assert not sheet.rows["LSVM"][0].is_best
    text = to_markdown(sheet)
    assert "| FRODA-svm | **71.0 ± 1.0** | **81.0 ± 1.0** | **76.0** |" in text
    assert "62.0 ± 0.0 (1 failed)" in text
    assert "| FRODA-svm, as published | 88.0 | 78.7 | 83.3 |" in text
    assert r"\textbf{71.0 $\pm$ 1.0}" in to_latex(sheet)
    assert "FRODA-svm,amazon → dslr,71" in to_csv(sheet)


def test_the_papers_ati_is_said_to_be_the_best_of_its_variants():
    rows = [row | {"method": "ATI"} for row in make_rows() if row["method"] == "FRODA-svm"]
    (sheet,) = (sheet for stem, sheet in make_sheets(rows) if stem.endswith("comparison_OS"))
    for text in (to_markdown(sheet), to_latex(sheet)):
        assert "ATI (best variant of each experiment), as published" in text


def test_published_figures_are_complete():
    for dataset, lines in FIGURES.items():
        assert {len(values) for values in lines.values()} == {len(PAIRS[dataset])}
    assert published("bcis", "bcis", "sun", "bing")["FRODA-svm"] == 55.7
    assert published("office31", "half", "amazon", "dslr") == {}


def test_hos_curve_ends_at_zero_and_peaks_at_the_truth():
    row = {
        "unknown_score": [0.1, 0.2, 0.8, 0.9],
        "y_true": [0, 1, -1, -1],
        "best_known": [0, 1, 0, 1],
    }
    curve = hos_curve(row)
    assert curve[0] == curve[-1] == 0
    assert curve.max() == curve[20] == 1


def test_a_file_is_no_folder_for_results(tmp_path):
    file = tmp_path / "results"
    file.write_text("mine")
    result = run("synthetic", "--out", file, "--methods", "LSVM")
    assert result.exit_code == 1
    assert "is a file: results need a folder" in " ".join(result.output.split())
    assert file.read_text() == "mine"
