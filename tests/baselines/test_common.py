"""What every method of the common door keeps to. A method is one line of the table."""

from __future__ import annotations

import doctest
import inspect
import pickle
import tracemalloc
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpydoc.validate import validate
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from froda import ProgressiveMixture, baselines
from froda.baselines import (
    ATI,
    BP,
    CORAL,
    DAN,
    GFK,
    LSVM,
    OSBP,
    OSLPP,
    OSNN,
    OSVM,
    RTN,
    SA,
    TCA,
    PCAResidual,
)
from froda.baselines.deep.base import DeepBaseline
from froda.door import reject


@dataclass(frozen=True)
class Entry:
    """One method: settings for the tasks below and what is known not to hold."""

    method: type
    settings: dict[str, Any] = field(default_factory=dict)
    haste: dict[str, Any] = field(default_factory=dict)  # settings that only save time
    never_unknown: bool = False  # without source unknowns
    agreement: float = 0.98  # predictions that rounding and the SVM's tolerance leave alone
    score_atol: float = 5e-3
    expected_failures: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        values = {**self.settings, **self.haste}.values()
        words = [self.method.__name__, *(str(value) for value in values)]
        return "-".join(words)

    def make(self, **settings):
        return self.method(**{**self.settings, **self.haste, **settings})


ONE_COLUMN_MORE = (
    "decision_function has one column more than there are classes in y: the unknown label"
)
WITH_PROBABILITIES = {
    "check_decision_proba_consistency": ONE_COLUMN_MORE,
    "check_estimator_sparse_array": ONE_COLUMN_MORE,
    "check_estimator_sparse_matrix": ONE_COLUMN_MORE,
}
SHORT = {"n_epochs": 1, "n_bottleneck": 32, "learning_rate": 0.1}
METHODS = [
    Entry(LSVM, never_unknown=True),
    Entry(OSVM),
    Entry(SA, {"n_components": 3}),
    Entry(SA),
    Entry(CORAL),
    Entry(TCA, {"n_components": 3}),
    Entry(TCA, {"n_components": 3, "kernel": "rbf"}),
    Entry(GFK, {"n_components": 3}),
    Entry(OSNN),
    Entry(PCAResidual, {"n_components": 3}),
    Entry(PCAResidual),
    Entry(ATI, {"rejection": 0.2}),  # at 0.05 it rejects none of so few samples
    Entry(OSLPP),
    Entry(ProgressiveMixture, expected_failures=WITH_PROBABILITIES),
    Entry(DAN, haste=SHORT),
    Entry(DAN, {"estimator": "linear"}, SHORT),
    Entry(RTN, haste=SHORT),
    Entry(BP, haste={"n_hidden": 16, **SHORT}),
    Entry(OSBP, haste={**SHORT, "n_epochs": 5}),
]

EXPECTED_FAILURES = {
    "check_classifiers_classes": ONE_COLUMN_MORE,
    "check_classifiers_train": ONE_COLUMN_MORE,
}
BY_METHOD = {entry.method: entry for entry in METHODS[::-1]}

every_entry = pytest.mark.parametrize("entry", METHODS, ids=lambda entry: entry.name)
every_method = pytest.mark.parametrize("method", BY_METHOD, ids=lambda method: method.__name__)


def test_the_table_is_complete():
    expected = {*baselines.__all__, "ProgressiveMixture"}
    assert {method.__name__ for method in BY_METHOD} == expected


@parametrize_with_checks(
    [entry.method(**entry.haste) for entry in BY_METHOD.values()],
    expected_failed_checks=lambda estimator: {
        **EXPECTED_FAILURES,
        **BY_METHOD[type(estimator)].expected_failures,
    },
)
def test_scikit_learn_contract(estimator, check):
    with warnings.catch_warnings():
        # Two columns on toy data: no room outside a subspace.
        warnings.filterwarnings("ignore", category=UserWarning)
        check(estimator)


def make_task(rng, n=40, n_features=20):
    """Three known classes and one unknown around well separated centres, target shifted."""
    centres = 3 * rng.normal(size=(4, n_features))
    y = np.repeat([0, 1, 2], n)
    y_target = np.repeat([0, 1, 2, -1], n)
    X = centres[y] + rng.normal(size=(len(y), n_features))
    X_target = centres[y_target] + rng.normal(size=(len(y_target), n_features)) + 0.3
    return X, y, X_target, y_target


def make_task_with_unknowns(rng):
    """Add source rows of the unknown class of the target, and of another one."""
    X, y, X_target, y_target = make_task(rng)
    other = 3 * rng.normal(size=20) + rng.normal(size=(25, 20))
    same = X_target[y_target == -1][:25] + rng.normal(size=(25, 20))
    return np.vstack([X, other, same]), np.append(y, np.full(50, -1)), X_target, y_target


TASKS = {"without": make_task, "with": make_task_with_unknowns}
both_tasks = pytest.mark.parametrize("unknowns", TASKS)


def assert_same_judgement(entry, model, other, rows, other_rows=None):
    """Require the same labels and scores of all rows but a few.

    The SVM stops at a tolerance, and its scores jump where one of its votes changes.
    """
    other_rows = rows if other_rows is None else other_rows
    assert (model.predict(rows) == other.predict(other_rows)).mean() >= entry.agreement
    score, other_score = model.unknown_score(rows), other.unknown_score(other_rows)
    is_close = np.abs(other_score - score) <= entry.score_atol * np.ptp(score)
    assert is_close.mean() >= entry.agreement - 0.03


@every_entry
@both_tasks
def test_labels_and_scores(entry, unknowns, rng):
    X, y, X_target, y_target = TASKS[unknowns](rng)
    model = entry.make().fit(X, y, X_target)
    labels, scores = model.predict(X_target), model.decision_function(X_target)
    doubt = model.unknown_score(X_target)
    assert_array_equal(model.classes_, [0, 1, 2, -1])
    assert scores.shape == (len(X_target), 4)
    assert doubt.shape == (len(X_target),)
    assert np.isfinite(scores).all()
    assert np.isfinite(doubt).all()
    assert_array_equal(model.classes_[scores.argmax(axis=1)], labels)
    is_known = y_target != -1
    closed = model.classes_[scores[:, :-1].argmax(axis=1)]
    assert (closed == y_target)[is_known].mean() >= 0.9
    assert roc_auc_score(~is_known, doubt) >= 0.7
    never = entry.never_unknown and unknowns == "without"
    assert (labels == -1).any() != never
    assert np.all(labels[doubt > model.threshold_] == -1)


@every_entry
@both_tasks
def test_inputs_are_never_written_to(entry, unknowns, rng):
    arrays = TASKS[unknowns](rng)[:3]
    before = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    for settings in ({}, {"row_sum": False, "zscore": False, "pca_variance": None}):
        model = entry.make(**settings).fit(*arrays)
        model.predict(arrays[2])
    for array, copy in zip(arrays, before, strict=True):
        assert_array_equal(array, copy)


@every_entry
@both_tasks
def test_order_of_rows_is_irrelevant(entry, unknowns, rng):
    X, y, X_target, _ = TASKS[unknowns](rng)
    order, order_target = rng.permutation(len(X)), rng.permutation(len(X_target))
    plain = entry.make().fit(X, y, X_target)
    shuffled = entry.make().fit(X[order], y[order], X_target[order_target])
    assert_same_judgement(entry, plain, shuffled, X_target)
    assert_allclose(shuffled.threshold_, plain.threshold_, atol=entry.score_atol)


@every_entry
@both_tasks
def test_float32_is_near_float64(entry, unknowns, rng):
    X, y, X_target, _ = TASKS[unknowns](rng)
    double = entry.make().fit(X, y, X_target)
    X, single_target = X.astype(np.float32), X_target.astype(np.float32)
    single = entry.make().fit(X, y, single_target)
    assert single.decision_function(single_target).dtype == np.float32
    assert_same_judgement(entry, double, single, X_target, single_target)


@every_entry
@both_tasks
@pytest.mark.parametrize("factor", [2.0**-20, 2.0**17, 1e-6, 1e5])
def test_scale_of_the_features_is_irrelevant(entry, unknowns, factor, rng):
    X, y, X_target, _ = TASKS[unknowns](rng)
    for settings in ({}, {"row_sum": False, "zscore": False, "unit_norm": False}):
        plain = entry.make(**settings).fit(X, y, X_target)
        scaled = entry.make(**settings).fit(factor * X, y, factor * X_target)
        assert_same_judgement(entry, plain, scaled, X_target, factor * X_target)
        if np.log2(factor).is_integer():  # nothing is rounded: not even the SVM may differ
            assert_array_equal(scaled.predict(factor * X_target), plain.predict(X_target))


@every_entry
@both_tasks
@pytest.mark.parametrize("pca_variance", [0.99, None])
def test_sparse_gives_the_same_as_dense(entry, unknowns, pca_variance, rng):
    X, y, X_target, _ = TASKS[unknowns](rng)
    X, X_target = np.maximum(X, 0), np.maximum(X_target, 0)
    dense = entry.make(pca_variance=pca_variance).fit(X, y, X_target)
    model = entry.make(pca_variance=pca_variance)
    model.fit(sparse.csr_array(X), y, sparse.coo_array(X_target))
    assert_same_judgement(entry, dense, model, X_target, sparse.csc_matrix(X_target))


@every_entry
@both_tasks
def test_text_labels(entry, unknowns, rng):
    X, y, X_target, _ = TASKS[unknowns](rng)
    names = np.array(["bike", "mug", "pen", "unknown"])
    numbers = entry.make().fit_predict(X, y, X_target)
    model = entry.make()
    assert_array_equal(model.fit_predict(X, names[y], X_target), names[numbers])
    assert model.classes_.tolist() == names.tolist()


@every_entry
def test_new_samples_are_judged_one_by_one(entry, rng):
    X, y, X_target, _ = make_task(rng)
    model = entry.make().fit(X, y, X_target)
    scores = model.decision_function(X_target)
    assert_allclose(model.decision_function(X_target[7:9]), scores[7:9], atol=1e-8)
    assert_allclose(model.decision_function(X_target[::-1])[::-1], scores, atol=1e-8)


@every_entry
def test_fits_are_repeatable(entry, rng):
    X, y, X_target, _ = make_task(rng)
    model = entry.make().fit(X, y, X_target)
    again = clone(model).fit(X, y, X_target)
    assert_array_equal(again.decision_function(X_target), model.decision_function(X_target))
    restored = pickle.loads(pickle.dumps(model))
    assert_array_equal(restored.decision_function(X_target), model.decision_function(X_target))


@every_entry
def test_identical_domains_are_classified(entry, rng):
    X, y, _, _ = make_task(rng)
    labels = entry.make().fit(X, y).predict(X)
    assert (labels == y).mean() >= 0.75  # ATI rejects a fifth
    assert np.all((labels == y) | (labels == -1))


@every_entry
def test_two_classes_of_few_rows(entry, rng):
    X, y, X_target, _ = make_task(rng)
    few = np.r_[0:5, 40:45]
    model = entry.make().fit(X[few], y[few], X_target)
    assert model.decision_function(X_target).shape == (len(X_target), 3)
    assert np.isfinite(model.unknown_score(X_target)).all()


SHALLOW = [entry for entry in METHODS if not issubclass(entry.method, DeepBaseline)]
SHALLOW += [Entry(ATI, {"variant": variant}) for variant in ("plain", "lambda-N1", "lambda-N2")]


@pytest.mark.parametrize(
    "entry",
    [entry for entry in SHALLOW if "kernel" not in entry.settings],  # see test_tca.py
    ids=lambda entry: entry.name,
)
def test_no_matrix_of_all_pairs_of_samples_is_built(entry, rng):
    """At 5,000 a side such a matrix would take 200 MB."""
    n = 1440
    X, y, X_target, _ = (rows.repeat(n // 120, axis=0) for rows in make_task(rng))
    X, X_target = (rows + 0.1 * rng.normal(size=rows.shape) for rows in (X, X_target))
    tracemalloc.start()
    entry.make().fit(X, y, X_target).predict(X_target)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < len(X) ** 2 * 8


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_doubt_just_above_the_threshold_is_not_lost_to_rounding(dtype):
    scores = np.array([[1e8, 3, -1], [1e8, 3, -1]], dtype=dtype)
    doubt = np.array([np.nextafter(dtype(0.5), dtype(1)), 0.5], dtype=dtype)
    assert_array_equal(reject(scores, doubt, 0.5).argmax(axis=1), [2, 0])


def put(array, value):
    """Return a copy with one entry replaced."""
    array = array.copy()
    array[3, 2] = value
    return array


BAD_DATA = {
    "NaN in the source": (lambda X, y, Z: (put(X, np.nan), y, Z), "Input X contains NaN"),
    "infinite target": (lambda X, y, Z: (X, y, put(Z, np.inf)), "X_target.*infinity"),
    "other columns": (lambda X, y, Z: (X, y, Z[:, :-1]), "X_target has 19 features.*expecting 20"),
    "one target row": (lambda X, y, Z: (X, y, Z[:1]), "minimum of 2 is required: X_target"),
    "flat target": (lambda X, y, Z: (X, y, Z[0]), "X_target.*2D array"),
    "one class": (lambda X, y, Z: (X, np.zeros_like(y), Z), "two known classes, got 1 class"),
    "only unknown": (lambda X, y, Z: (X, np.full_like(y, -1), Z), "got 0 class.*unknown_label"),
    "lengths": (lambda X, y, Z: (X, y[:-1], Z), "inconsistent numbers of samples"),
    "no labels": (lambda X, y, Z: (X, None, Z), "requires y to be passed"),
    "constant source": (lambda X, y, Z: (np.ones_like(X), y, Z), "all rows of X are"),
    "constant target": (lambda X, y, Z: (X, y, np.ones_like(Z)), "all rows of X_target are"),
}


@every_method
@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data_is_refused(case, method, rng, monkeypatch):
    spoil, message = BAD_DATA[case]
    monkeypatch.setattr(method, "_fit", lambda *a: pytest.fail("went on computing"))
    X, y, X_target, _ = make_task(rng)
    with pytest.raises(ValueError, match=f"(?s){message}"):
        method().fit(*spoil(X, y, X_target))


@every_method
def test_bad_target_at_predict(method, rng):
    X, y, X_target, _ = make_task(rng)
    model = BY_METHOD[method].make()
    with pytest.raises(NotFittedError):
        model.predict(X_target)
    model.fit(X, y, X_target)
    for call in (model.predict, model.unknown_score, model.decision_function):
        with pytest.raises(ValueError, match=r"19 features.*expecting 20"):
            call(X_target[:, 1:])
        with pytest.raises(ValueError, match="NaN"):
            call(put(X_target, np.nan))


BAD_SETTINGS = {
    "n_components": [0, -3, 2.5, "auto", None, True, 10_000],
    "rejection": [0, 1.5, "all", True],
    "pca_variance": [0, 1.5, "all"],
    "row_sum": ["yes"],
    "zscore": [1],
    "unit_norm": [None],
    "unknown_label": ["unknown", np.nan],
    "n_clusters": [0, 2.5, "all"],
    "n_axes": [0, None],
    "floor": [-1, "high", np.inf],
}


@every_method
def test_bad_settings_are_refused_by_name(method, rng):
    X, y, X_target, _ = make_task(rng)
    names = inspect.signature(method).parameters
    for name in BAD_SETTINGS.keys() & names:
        for value in BAD_SETTINGS[name]:
            with pytest.raises(ValueError, match=name):
                BY_METHOD[method].make(**{name: value}).fit(X, y, X_target)


@pytest.mark.parametrize(
    "method",
    [method for method in BY_METHOD if method not in (LSVM, OSVM)],  # documented by their file
    ids=lambda method: method.__name__,
)
def test_docstring_is_complete_and_its_example_runs(method):
    left_out = {"ES01", "SA01", "GL01", "GL02", "GL03", "SS05"}
    errors = validate(f"{method.__module__}.{method.__name__}")["errors"]
    assert [error for error in errors if error[0] not in left_out] == []
    assert "{" not in method.__doc__.replace('{"', "")
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner()
    (example,) = finder.find(method, method.__name__)
    assert runner.run(example).attempted > 0
    assert runner.failures == 0
