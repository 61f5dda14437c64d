"""The loop: its schedules, what it leaves alone, what it says on the way."""

from __future__ import annotations

import itertools
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

from froda.baselines import BP, DAN, OSBP, RTN
from froda.baselines.deep import training
from froda.baselines.deep.network import class_scores, start_layers, unknown_log_odds

SMALL = {"n_epochs": 2, "n_bottleneck": 8}
METHODS = (DAN, RTN, BP, OSBP)
every_method = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)


@pytest.fixture
def task(rng):
    y = np.repeat([0, 1], 15)
    X = 3 * rng.normal(size=(3, 6))[np.repeat([0, 1, 2], 15)] + rng.normal(size=(45, 6))
    return X[:30], y, X + 0.2


def test_schedules():
    assert training.learning_rate(0.01, 0.0) == 0.01
    assert training.learning_rate(0.01, 1.0) == pytest.approx(0.01 / 11**0.75)
    assert training.ramp(0.0) == 0
    assert training.ramp(0.1) == pytest.approx(np.tanh(0.5))
    assert training.ramp(1.0) == pytest.approx(1, abs=1e-4)


def test_every_row_comes_once_before_any_comes_again(rng):
    dealt = np.concatenate(list(itertools.islice(training.deal(10, 4, rng), 10)))
    for turn in dealt.reshape(4, 10):
        assert_array_equal(np.sort(turn), np.arange(10))


def test_layers_start_within_their_bounds(rng):
    layers = start_layers({"a": (100, 50), "b": (4, 2)}, rng)
    for name, bound in (("a", 0.1), ("b", 0.5)):
        both = np.vstack([layers[name].weights, layers[name].bias])
        assert both.dtype == np.float32
        assert 0.8 * bound < np.abs(both).max() <= bound


def test_arrays_say_what_the_network_says(rng):
    layers = start_layers({"bottleneck": (5, 7), "classifier": (7, 3)}, rng)
    rows = rng.normal(size=(6, 5))
    network = training.Network(layers, "cpu")
    scores = network.classify(network.bottleneck(torch.tensor(rows, dtype=torch.float32)))
    np.testing.assert_allclose(class_scores(layers, rows), scores.detach().numpy(), atol=1e-5)


def test_log_odds(rng):
    scores = rng.normal(size=(5, 4))
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    found = unknown_log_odds(scores, knows_unknown=True)
    np.testing.assert_allclose(found, np.log(p[:, -1] / (1 - p[:, -1])))
    found = unknown_log_odds(scores, knows_unknown=False)
    np.testing.assert_allclose(found, np.log((1 - p.max(axis=1)) / p.max(axis=1)))
    assert unknown_log_odds(np.array([[0.0, 2000.0]]), knows_unknown=False)[0] == -2000


@every_method
def test_nothing_global_is_touched(method, task):
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002 - what the test looks at
    before = torch.random.get_rng_state(), np.random.get_state()[1]  # noqa: NPY002
    settings = (
        torch.get_num_threads,
        torch.get_default_dtype,
        torch.is_grad_enabled,
        torch.are_deterministic_algorithms_enabled,
        torch.get_float32_matmul_precision,
    )
    values = [setting() for setting in settings]
    method(**SMALL).fit(*task)
    assert_array_equal(torch.random.get_rng_state(), before[0])
    assert_array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002
    assert [setting() for setting in settings] == values


@every_method
def test_what_others_have_set_does_not_matter(method, task):
    plain = method(**SMALL).fit(*task).decision_function(task[2])
    torch.manual_seed(8)
    with torch.inference_mode():
        again = method(**SMALL).fit(*task).decision_function(task[2])
    assert_array_equal(again, plain)


def test_one_thread_trains_and_the_others_come_back(task):
    seen = []
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        DAN(callback=lambda _: seen.append(torch.get_num_threads()), **SMALL).fit(*task)
        after_a_fit = torch.get_num_threads()
        with pytest.raises(ValueError, match="not finite"):
            DAN(learning_rate=1e20, **SMALL).fit(*task)
        after_a_failure = torch.get_num_threads()
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {1}
    assert after_a_fit == after_a_failure == 3


@every_method
def test_seeds(method, task):
    def scores(seed):
        return method(random_state=seed, **SMALL).fit(*task).decision_function(task[2])

    assert_array_equal(scores(5), scores(5))
    assert np.abs(scores(5) - scores(6)).max() > 1e-3
    assert_array_equal(scores(np.random.RandomState(1)), scores(np.random.RandomState(1)))


@every_method
def test_progress(method, task, capsys):
    seen = []
    model = method(callback=seen.append, verbose=1, **SMALL).fit(*task)
    n_trainings = 1 if method is OSBP else 6  # five of them for the threshold
    assert [epoch.iteration for epoch in seen] == list(range(1, 2 * n_trainings + 1))
    assert seen[-1].n_iterations == 2 * n_trainings
    assert seen[-1].training == seen[-1].n_trainings == n_trainings
    assert_array_equal(model.losses_, [epoch.loss for epoch in seen[-2:]])
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert len(lines) == 2 * n_trainings
    assert lines[-1].startswith(
        f"{method.__name__}: training {n_trainings} of {n_trainings}, epoch 2 of 2  loss "
    )


def test_long_trainings_write_about_ten_lines_and_silent_ones_none(task, capsys):
    OSBP(n_epochs=34, n_bottleneck=8, verbose=1).fit(*task)
    assert len(capsys.readouterr().err.splitlines()) == 9
    OSBP(**SMALL).fit(*task)
    assert capsys.readouterr().err == ""


@every_method
def test_the_last_epoch_counts(method, task):
    """More epochs make a smaller loss of the source, and nothing is stopped early."""
    X, y, X_target = task
    model = method(n_epochs=12, n_bottleneck=8, learning_rate=0.05).fit(X, y, X_target)
    assert len(model.losses_) == 12
    assert model.losses_[-1] < model.losses_[0]


def test_a_loss_that_is_no_number_is_an_error(task):
    with pytest.raises(ValueError, match=r"loss of DAN is not finite.*lower learning_rate \(1e\+2"):
        DAN(learning_rate=1e20, **SMALL).fit(*task)


def test_no_threshold_where_a_class_has_one_row(task):
    X, y, X_target = task
    seen = []
    model = BP(callback=seen.append, **SMALL).fit(X[:16], y[:16], X_target)
    assert model.threshold_ == np.inf
    assert {epoch.n_trainings for epoch in seen} == {1}


def test_devices(task):
    assert training.choose_device("auto") == ("cuda" if torch.cuda.is_available() else "cpu")
    assert DAN(device="cpu", **SMALL).fit(*task).device_ == "cpu"
    for wrong in ("gpu", "cuda:77", 3):
        with pytest.raises(ValueError, match="device"):
            DAN(device=wrong).fit(*task)


BAD_SETTINGS = {
    "n_bottleneck": [0, 2.5],
    "n_epochs": [0, None],
    "batch_size": [0, "all"],
    "learning_rate": [0, -1, np.inf],
    "callback": [3],
    "random_state": ["seed"],
    "verbose": [-1, "yes"],
    "weight": [-1, None, np.nan],
    "entropy_weight": [-1],
    "estimator": ["quadratic"],
    "kernel_weights": [None],
    "n_hidden": [0],
    "share": [0, 1, -0.5],
}


@every_method
def test_bad_settings_are_refused_by_name(method, task, monkeypatch):
    monkeypatch.setattr(method, "_fit", lambda *a: pytest.fail("went on computing"))
    names = BAD_SETTINGS.keys() & method().get_params().keys()
    for name in names:
        for value in BAD_SETTINGS[name]:
            with pytest.raises(ValueError, match=name):
                method(**{name: value}).fit(*task)


@every_method
def test_without_pytorch(method, task, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "froda.baselines.deep.training")
    monkeypatch.setattr(method, "_fit", lambda *a: pytest.fail("went on computing"))
    with pytest.raises(ImportError, match=rf"{method.__name__} need .*froda\[deep\].*CPU build"):
        method().fit(*task)


def test_predictions_need_no_pytorch(task, tmp_path):
    models = [method(**SMALL).fit(*task) for method in METHODS]
    expected = [model.decision_function(task[2]) for model in models]
    (tmp_path / "all").write_bytes(pickle.dumps((models, task[2], expected)))
    (tmp_path / "torch.py").write_text("raise ImportError")
    code = (
        "import pickle; import numpy as np; "
        "models, X, expected = pickle.load(open('all', 'rb')); "
        "print([np.array_equal(m.decision_function(X), e) for m, e in zip(models, expected)])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == str([True] * 4)
