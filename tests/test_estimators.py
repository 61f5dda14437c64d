"""The three estimators as a user meets them."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from froda import DFRODA, DFRODAU, FRODA, base, openset
from froda.factorization import alternate, codes
from froda.factorization.problem import Record, StopReason

ALL = [FRODA, DFRODA, DFRODAU]
HEADS = [(FRODA, "svm"), (FRODA, "nn")] + [
    (method, head) for method in (DFRODA, DFRODAU) for head in ("svm", "nn", "linear")
]

ONE_COLUMN_MORE = (
    "decision_function and predict_proba have one column more than there are classes in y: "
    "the unknown label"
)
EXPECTED_FAILURES = {
    "check_estimator_sparse_array": ONE_COLUMN_MORE,
    "check_estimator_sparse_matrix": ONE_COLUMN_MORE,
    "check_classifiers_classes": ONE_COLUMN_MORE,
    "check_classifiers_train": ONE_COLUMN_MORE,
    "check_decision_proba_consistency": ONE_COLUMN_MORE,
}


@parametrize_with_checks(
    [method() for method in ALL], expected_failed_checks=lambda _: EXPECTED_FAILURES
)
def test_scikit_learn_contract(estimator, check):
    with warnings.catch_warnings():
        # Two columns on toy data: no room for a private basis, or lam zeroes all codes.
        warnings.filterwarnings("ignore", category=UserWarning)
        check(estimator)


def make_task(rng, n=60, n_features=30, dtype=np.float64):
    """Two known classes and one unknown around well separated centres, target shifted."""
    centres = 3 * rng.normal(size=(4, n_features))
    y = np.repeat([0, 1], n)
    y_target = np.repeat([0, 1, -1], n)
    X = centres[y] + rng.normal(size=(len(y), n_features))
    X_target = centres[y_target] + rng.normal(size=(len(y_target), n_features)) + 0.3
    return X.astype(dtype), y, X_target.astype(dtype), y_target


def make_task_with_unknowns(rng):
    """Add rows of an unknown class to the source."""
    X, y, X_target, y_target = make_task(rng)
    extra = 3 * rng.normal(size=30) + rng.normal(size=(40, 30))
    return np.vstack([X, extra]), np.append(y, np.full(40, -1)), X_target, y_target


@pytest.mark.parametrize(("method", "head"), HEADS)
def test_labels_known_and_unknown(method, head, rng):
    X, y, X_target, y_target = make_task(rng)
    model = method(n_components=2, head=head).fit(X, y, X_target)
    assert (model.predict(X_target) == y_target).mean() >= 0.85
    assert roc_auc_score(y_target == -1, model.unknown_score(X_target)) >= 0.95


@pytest.mark.parametrize(("method", "head"), HEADS)
@pytest.mark.parametrize("decision", ["augmented", "flag"])
def test_outputs_agree_with_each_other(method, head, decision, rng):
    X, y, X_target, _ = make_task(rng)
    model = method(n_components=2, head=head, decision=decision).fit(X, y, X_target)
    scores, shares = model.decision_function(X_target), model.predict_proba(X_target)
    labels = model.predict(X_target)
    assert scores.shape == shares.shape == (len(X_target), 3)
    assert_allclose(shares.sum(axis=1), 1)
    assert_array_equal(model.classes_, [0, 1, -1])
    assert_array_equal(model.classes_[scores.argmax(axis=1)], labels)
    assert_array_equal(model.classes_[shares.argmax(axis=1)], labels)
    flagged = model.unknown_score(X_target) >= model.unknown_threshold_
    assert_array_equal(flagged, model.unknown_mask_)
    if decision == "flag" or head == "linear":
        assert np.all(labels[flagged] == -1)
        if method is not DFRODAU:
            assert_array_equal(labels == -1, flagged)


@pytest.mark.parametrize("decision", ["augmented", "flag"])
@pytest.mark.parametrize("method", ALL)
def test_epsilon_is_found_in_the_target(method, decision, rng):
    X, y, X_target, y_target = make_task(rng)
    model = method(n_components=2, epsilon="auto", decision=decision).fit(X, y, X_target)
    found = model.predict(X_target)
    assert (found == y_target).mean() >= 0.85
    norms = [np.linalg.norm(part, axis=1) for part in np.split(model.target_codes_, [2], axis=1)]
    shares = np.divide(norms[1], norms[0] + norms[1], out=np.ones(180), where=sum(norms) > 0)
    cut = openset.otsu_cut(shares)
    if decision == "augmented":  # the flagged train the head: the surest of them
        cut = openset.otsu_cut(shares[shares > cut])
    assert model.unknown_threshold_ == pytest.approx(cut)
    assert model.epsilon_ == pytest.approx(1 / cut - 1)
    assert_array_equal(model.unknown_mask_, shares > cut)
    assert_array_equal(model.unknown_mask_, model.unknown_score(X_target) >= cut)
    given = clone(model).set_params(epsilon=model.epsilon_)
    assert_array_equal(given.fit_predict(X, y, X_target), found)
    assert given.epsilon_ == given.epsilon
    assert model.set_params(epsilon=7.0).epsilon_ == given.epsilon  # until the next fit
    assert_array_equal(model.predict(X_target), found)


@pytest.mark.parametrize("method", ALL)
def test_fit_predict_is_fit_then_predict(method, rng):
    X, y, X_target, _ = make_task(rng)
    together = method(n_components=2).fit_predict(X, y, X_target)
    apart = method(n_components=2).fit(X, y, X_target).predict(X_target)
    assert_array_equal(together, apart)


@pytest.mark.parametrize("method", ALL)
def test_codes_of_new_samples_match_those_of_the_fit(method, rng):
    X, y, X_target, _ = make_task(rng)
    model = method(n_components=3).fit(X, y, X_target)
    codes_again = model.transform(X_target)
    size = np.abs(codes_again).max()
    assert_allclose(codes_again, model.target_codes_, atol=1e-6 * size)
    assert_allclose(model.transform(X_target[:7]), codes_again[:7], atol=1e-7 * size)
    assert model.get_feature_names_out().tolist()[0] == f"{method.__name__.lower()}0"
    assert len(model.get_feature_names_out()) == codes_again.shape[1]


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("factor", [1e-6, 1e5])
def test_multiplying_all_features_changes_no_prediction(method, factor, rng):
    X, y, X_target, _ = make_task(rng)
    for preprocessing in ({}, {"row_sum": False, "zscore": False, "unit_norm": False}):
        plain = method(n_components=3, **preprocessing).fit(X, y, X_target)
        scaled = method(n_components=3, **preprocessing).fit(factor * X, y, factor * X_target)
        assert_allclose(
            scaled.unknown_score(factor * X_target), plain.unknown_score(X_target), atol=1e-5
        )
        assert_array_equal(scaled.predict(factor * X_target), plain.predict(X_target))


@pytest.mark.parametrize("method", ALL)
def test_order_of_rows_is_irrelevant(method, rng):
    X, y, X_target, _ = make_task(rng)
    order, order_target = rng.permutation(len(X)), rng.permutation(len(X_target))
    plain = method(n_components=3).fit(X, y, X_target)
    shuffled = method(n_components=3).fit(X[order], y[order], X_target[order_target])
    assert_array_equal(shuffled.predict(X_target), plain.predict(X_target))
    assert_allclose(shuffled.unknown_score(X_target), plain.unknown_score(X_target), atol=1e-5)


@pytest.mark.parametrize("method", ALL)
def test_float32_stays_and_is_near_float64(method, rng):
    X, y, X_target, _ = make_task(rng)
    double = method(n_components=3).fit(X, y, X_target)
    X, X_target = X.astype(np.float32), X_target.astype(np.float32)
    single = method(n_components=3).fit(X, y, X_target)
    for name in ("shared_basis_", "private_basis_", "target_codes_", "source_codes_"):
        assert getattr(single, name).dtype == np.float32
    assert single.transform(X_target).dtype == np.float32
    assert single.decision_function(X_target).dtype == np.float32
    assert getattr(single, "code_classifier_", X).dtype == np.float32
    assert_allclose(single.unknown_score(X_target), double.unknown_score(X_target), atol=5e-3)
    assert (single.predict(X_target) == double.predict(X_target)).mean() >= 0.99


@pytest.mark.parametrize("method", ALL)
def test_inputs_are_never_written_to(method, rng):
    X, y, X_target, _ = make_task_with_unknowns(rng)
    for array in (X, y, X_target):
        array.flags.writeable = False
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*leaves out")
        model = method(n_components=2).fit(X, y, X_target)
    assert model.predict(X_target).shape == (len(X_target),)


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_sparse_gives_the_same_as_dense(method, container, rng):
    X, y, X_target, _ = make_task(rng)
    X, X_target = np.maximum(X, 0), np.maximum(X_target, 0)
    dense = method(n_components=3).fit(X, y, X_target)
    model = method(n_components=3).fit(container(X), y, container(X_target))
    assert_allclose(
        model.unknown_score(container(X_target)), dense.unknown_score(X_target), atol=1e-6
    )
    assert_array_equal(model.predict(X_target), dense.predict(X_target))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_in_and_column_names_checked(frame, rng):
    X, y, X_target, _ = make_task(rng)
    names = [f"column {number}" for number in range(X.shape[1])]
    source = frame(dict(zip(names, X.T, strict=True)))
    target = frame(dict(zip(names, X_target.T, strict=True)))
    model = FRODA(n_components=2).fit(source, y, target)
    assert model.feature_names_in_.tolist() == names
    expected = FRODA(n_components=2).fit_predict(X, y, X_target)
    assert_array_equal(model.predict(target), expected)
    swapped = target[[*names[1:], names[0]]]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(swapped)
    with pytest.raises(ValueError, match=r"X_target.*feature names"):
        FRODA(n_components=2).fit(source, y, swapped)


@pytest.mark.parametrize(
    ("known", "unknown"),
    [
        (np.array(["cat", "dog"]), "unknown"),
        (np.array(["cat", "dog"], dtype=object), "unknown"),
        (np.array([3, 7]), -1),
        (np.array([3, 7], dtype=np.uint8), -1),
        (np.array([3.0, 7.0]), -1.0),
    ],
)
def test_unknown_label_follows_the_labels(known, unknown, rng):
    X, y, X_target, y_target = make_task(rng)
    model = FRODA(n_components=2).fit(X, known[y], X_target)
    assert model.classes_.tolist() == [*known.tolist(), unknown]
    assert np.all(model.predict(X_target)[y_target == -1][:5] == unknown)


def test_unknown_label_is_settable(rng):
    X, y, X_target, _ = make_task_with_unknowns(rng)
    y = np.where(y == -1, 9, y)
    model = DFRODAU(n_components=2, unknown_label=9).fit(X, y, X_target)
    assert model.classes_.tolist() == [0, 1, 9]
    assert set(model.predict(X_target)) <= {0, 1, 9}


def test_source_unknowns_are_used_or_left_out_with_a_word(rng):
    X, y, X_target, _ = make_task_with_unknowns(rng)
    known = y != -1
    with pytest.warns(UserWarning, match="leaves out 40 source rows labelled"):
        model = FRODA(n_components=2).fit(X, y, X_target)
    without = FRODA(n_components=2).fit(X[known], y[known], X_target)
    assert_array_equal(model.target_codes_, without.target_codes_)
    used = DFRODAU(n_components=2).fit(X, y, X_target)
    assert used.source_codes_.shape == (len(X), 4)
    assert used.code_classifier_.shape == (3, 4)


def test_closed_set_predicts_known_classes_only():
    X, y = make_blobs(n_samples=200, centers=3, n_features=10, random_state=0)
    for method in ALL:
        for decision in ("augmented", "flag"):
            model = method(n_components=3, decision=decision).fit(X, y)
            assert not model.unknown_mask_.any()
            assert model.score(X, y) >= 0.95
            assert not np.any(model.predict(X) == -1)


@pytest.mark.parametrize("method", ALL)
def test_fitted_attributes(method, rng):
    X, y, X_target, _ = make_task(rng)
    model = method(n_components=3).fit(X, y, X_target)
    assert model.shared_basis_.shape == model.private_basis_.shape
    assert model.n_components_ == model.shared_basis_.shape[1] == 3
    assert model.target_codes_.shape == (len(X_target), 6)
    assert model.stop_reason_ is StopReason.CONVERGED
    assert model.n_iter_ == model.objective_[-1][0]
    assert model.disagreement_.size == 0
    values = np.array([value for _, _, value in model.objective_])
    assert np.all(np.diff(values) <= 1e-10 * values[0])
    assert np.linalg.norm(model.shared_basis_, axis=0).max() <= 1 + 1e-10


def test_subspace_disagreement_chooses_d(rng):
    X, y, X_target, _ = make_task(rng)
    model = FRODA().fit(X, y, X_target)
    assert model.n_components_ == len(model.disagreement_)
    assert np.all(model.disagreement_[:-1] < 1 - 1e-3)


def test_subspace_disagreement_leaves_room_for_the_private_basis(rng):
    """Domains that agree in every dimension would otherwise leave nothing to the private one."""
    X, y, X_target, _ = make_task(rng, n_features=9)
    X = np.vstack([X, X_target])
    y = np.append(y, rng.integers(0, 2, size=len(X_target)))
    model = FRODA(row_sum=False, pca_variance=None).fit(X, y, X.copy())
    assert model.disagreement_.max() < 1e-3
    assert model.shared_basis_.shape == (9, 4)
    assert model.private_basis_.shape == (9, 4)


def test_subspace_disagreement_does_not_depend_on_the_coordinates(rng):
    X, y, X_target, _ = make_task(rng)
    with_pca = FRODA(pca_variance=1.0).fit(X, y, X_target)
    without = FRODA(pca_variance=None).fit(X, y, X_target)
    assert_allclose(without.disagreement_, with_pca.disagreement_, atol=1e-7)
    assert without.n_components_ == with_pca.n_components_ > 1


@pytest.mark.parametrize("scaling", ["relative", "absolute"])
@pytest.mark.parametrize("constraint", ["per_column", "total"])
def test_weights_of_the_objective_are_those_of_the_notation(constraint, scaling, rng, monkeypatch):
    seen = []
    real = alternate.solve
    monkeypatch.setattr(alternate, "solve", lambda p, *a, **k: seen.append(p) or real(p, *a, **k))
    X, y, X_target, _ = make_task_with_unknowns(rng)
    settings = {"lam": 0.3, "lam_source": 0.5, "alpha": 0.2, "beta": 0.7, "unit_norm": False}
    DFRODAU(3, constraint=constraint, scaling=scaling, **settings).fit(X, y, X_target)
    (problem,) = seen
    of_target, of_source = (np.sqrt((Z**2).sum(axis=1).mean()) for Z in (problem.Xt, problem.Xs))
    n_columns = 6 if constraint == "total" else 1
    expected = (0.3 * of_target / n_columns, 0.2 * 0.5 * of_source / n_columns, 0.7 * of_source**2)
    expected = expected if scaling == "relative" else (0.3, 0.5, 0.7)
    assert_allclose((problem.lam, problem.lam_source, problem.beta), expected)
    assert problem.alpha == 0.2
    assert problem.constraint == constraint
    assert len(problem.Xs) == len(X)


def test_limit_on_the_sum_of_column_norms(rng):
    X, y, X_target, y_target = make_task(rng)
    model = DFRODAU(n_components=2, constraint="total").fit(X, y, X_target)
    norms = [
        np.linalg.norm(basis, axis=0).sum()
        for basis in (model.shared_basis_, model.private_basis_, model.source_private_basis_)
    ]
    assert norms[0] + max(norms[1:]) <= 1 + 1e-9
    assert roc_auc_score(y_target == -1, model.unknown_score(X_target)) >= 0.95


def test_private_basis_takes_what_room_is_left(rng):
    X, y, X_target, _ = make_task(rng, n_features=5)
    model = FRODA(n_components=3, row_sum=False).fit(X, y, X_target)
    assert model.shared_basis_.shape[1] == 3
    assert model.private_basis_.shape[1] == model.shared_basis_.shape[0] - 3
    assert model.target_codes_.shape[1] == model.shared_basis_.shape[0]


def test_one_direction_leaves_nothing_to_flag(rng):
    X = rng.uniform(1, 2, size=(40, 2))  # divided by its sum, a row has one free number
    y = (X[:, 0] > X[:, 1]).astype(int)
    with pytest.warns(UserWarning, match="one direction only"):
        model = FRODA().fit(X, y, X.copy())
    assert model.private_basis_.shape == (1, 0)
    assert not model.unknown_mask_.any()


def test_papers_literal_settings(rng):
    model = DFRODA.from_paper(head="nn")
    literal = {"alpha": 0.1, "beta": 0.01, "lam": 0.001, "epsilon": 0.2, "n_components": "sdm"}
    assert literal.items() <= model.get_params().items()
    assert model.head == "nn"
    X, y, X_target, _ = make_task(rng)
    model.set_params(max_iter=500).fit(X, y, X_target)
    assert "beta" not in FRODA.from_paper().get_params()


def test_any_classifier_is_a_head(rng):
    X, y, X_target, y_target = make_task(rng)
    head = LogisticRegression(random_state=None)
    model = FRODA(n_components=2, head=head, random_state=3).fit(X, y, X_target)
    assert model.classifier_.random_state == 3
    assert head.random_state is None
    assert not hasattr(head, "coef_")
    assert (model.predict(X_target) == y_target).mean() >= 0.85


def test_callback_sees_every_iteration_and_may_stop(rng):
    X, y, X_target, _ = make_task(rng)
    records: list[Record] = []

    def note(record):
        records.append(record)
        return record.iteration == 3

    model = FRODA(n_components=2, callback=note).fit(X, y, X_target)
    assert model.stop_reason_ is StopReason.CALLBACK
    assert [record.iteration for record in records] == [1, 2, 3]
    assert list(records[0].blocks) == ["U", "V", "T", "S"]
    assert (3, "S", records[-1].objective) in model.objective_
    assert records[-1].objective >= model.objective_[-1][2]  # then the codes are made exact


def test_verbose_writes_to_stderr(rng, capsys):
    X, y, X_target, _ = make_task(rng)
    model = FRODA(n_components=2, verbose=1).fit(X, y, X_target)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("iteration") == model.n_iter_


def test_says_why_it_stopped(rng):
    X, y, X_target, _ = make_task(rng)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        FRODA(n_components=2, max_iter=1).fit(X, y, X_target)
    with pytest.warns(ConvergenceWarning, match="lower lam"):
        model = FRODA(n_components=2, lam=50).fit(X, y, X_target)
    assert model.stop_reason_ is StopReason.ALL_CODES_ZERO
    assert model.unknown_mask_.all()


def test_pickle_clone_and_pipeline(rng):
    X, y, X_target, _ = make_task(rng)
    model = DFRODA(n_components=2).fit(X, y, X_target)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(X_target), model.predict(X_target))
    assert clone(model).get_params() == model.get_params()
    pipeline = make_pipeline(FunctionTransformer(), FRODA(n_components=2))
    pipeline.fit(X, y, froda__X_target=X_target)
    assert_array_equal(
        pipeline.predict(X_target), FRODA(n_components=2).fit_predict(X, y, X_target)
    )


def test_not_fitted(rng):
    with pytest.raises(NotFittedError):
        FRODA().predict(rng.normal(size=(3, 4)))


def put(array, value):
    """Return a copy with one entry replaced."""
    array = array.copy()
    array[3, 2] = value
    return array


BAD_DATA = {
    "NaN in the source": (lambda X, y, Z: (put(X, np.nan), y, Z), "Input X contains NaN"),
    "infinite source": (lambda X, y, Z: (put(X, np.inf), y, Z), "Input X contains infinity"),
    "NaN in the target": (lambda X, y, Z: (X, y, put(Z, np.nan)), "X_target: the array .*NaN"),
    "infinite target": (lambda X, y, Z: (X, y, put(Z, -np.inf)), "X_target.*infinity"),
    "other columns": (lambda X, y, Z: (X, y, Z[:, :-1]), "X_target has 29 features.*expecting 30"),
    "empty target": (
        lambda X, y, Z: (X, y, Z[:0]),
        "X_target.*minimum of 2|minimum of 2.*X_target",
    ),
    "one target row": (lambda X, y, Z: (X, y, Z[:1]), "minimum of 2 is required: X_target"),
    "flat target": (lambda X, y, Z: (X, y, Z[0]), "X_target.*2D array"),
    "empty source": (lambda X, y, Z: (X[:0], y[:0], Z), "minimum of 2 is required"),
    "one class": (lambda X, y, Z: (X, np.zeros_like(y), Z), "two known classes, got 1 class"),
    "only unknown": (lambda X, y, Z: (X, np.full_like(y, -1), Z), "got 0 class.*unknown_label"),
    "lengths": (lambda X, y, Z: (X, y[:-1], Z), "inconsistent numbers of samples"),
    "regression labels": (lambda X, y, Z: (X, y + 0.5, Z), "Unknown label type"),
    "NaN label": (lambda X, y, Z: (X, np.where(y == 0, np.nan, 1.0), Z), "NaN"),
    "minus one is a class": (lambda X, y, Z: (X, 2 * y - 1, Z), "choose another unknown_label"),
    "negative labels": (
        lambda X, y, Z: (X, np.where(np.arange(len(y)) < 5, -2, -y), Z),
        "-1 may be a real class: set unknown_label",
    ),
    "boolean labels": (lambda X, y, Z: (X, y == 1, Z), "boolean"),
    "object features": (lambda X, y, Z: (X.astype(str).astype(object) + "x", y, Z), "convert"),
    "complex features": (lambda X, y, Z: (X + 1j, y, Z), "Complex"),
    "strings and numbers": (
        lambda X, y, Z: (X, np.array(["a", 1], dtype=object)[y], Z),
        "y mixes strings with other labels.*such as 1",
    ),
    "missing among strings": (
        lambda X, y, Z: (X, np.array(["a", None], dtype=object)[y], Z),
        "y mixes strings.*such as None",
    ),
    "no labels": (lambda X, y, Z: (X, None, Z), "requires y to be passed"),
    "constant source": (lambda X, y, Z: (np.ones_like(X), y, Z), "all rows of X are"),
    "constant target": (lambda X, y, Z: (X, y, np.ones_like(Z)), "all rows of X_target are"),
    "too small to be divided": (lambda X, y, Z: (1e-320 * X, y, Z), "all rows of X are the same"),
    "two rows, repeated": (
        lambda X, y, Z: (np.vstack([X[:1], X[-1:]])[y], y, Z),
        "n_components=2 is larger than possible.*vary in 1 of",
    ),
    "all zero": (lambda X, y, Z: (0 * X, y, 0 * Z), "all rows of X are the same"),
    "constant known": (
        lambda X, y, Z: (np.vstack([np.ones_like(X), X]), np.append(y, np.full(len(y), -1)), Z),
        "(all rows of X|known source rows) are",
    ),
}


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data_is_refused_before_any_factorisation(case, method, rng, monkeypatch):
    spoil, message = BAD_DATA[case]
    monkeypatch.setattr(alternate, "solve", lambda *a, **k: pytest.fail("went on computing"))
    X, y, X_target, _ = make_task(rng)
    warnings.filterwarnings("ignore", message=".*leaves out 120")
    with pytest.raises(ValueError, match=f"(?s){message}"):
        method(n_components=2).fit(*spoil(X, y, X_target))


BAD_SETTINGS = {
    "n_components": [0, -3, 2.5, "auto", None, True, 30, 10_000],
    "alpha": [0, -1, np.nan, np.inf, "much", None],
    "lam": [0, -1, np.nan, None],
    "epsilon": [-0.1, np.nan, None, "automatic"],
    "tol": [-1e-3, np.nan],
    "max_iter": [0, 1.5],
    "head": ["tree", 3],
    "decision": ["maybe"],
    "constraint": ["none"],
    "scaling": ["log"],
    "pca_variance": [0, 1.5, "all"],
    "callback": ["print"],
    "unknown_label": ["unknown", np.nan, [9], True],
    "row_sum": ["yes"],
    "verbose": ["yes", -1, None],
    "random_state": ["seed", 1.5],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in BAD_SETTINGS.items() for value in values]
)
def test_bad_settings_are_refused_by_name(name, value, rng, monkeypatch):
    monkeypatch.setattr(alternate, "solve", lambda *a, **k: pytest.fail("went on computing"))
    X, y, X_target, _ = make_task(rng)
    with pytest.raises(ValueError, match=name):
        FRODA(**{"n_components": 2, name: value}).fit(X, y, X_target)


@pytest.mark.parametrize(
    ("method", "name", "value"),
    [(DFRODA, "beta", -1), (DFRODAU, "beta", np.nan), (DFRODAU, "lam_source", 0)],
)
def test_bad_settings_of_the_discriminative_methods(method, name, value, rng):
    X, y, X_target, _ = make_task(rng)
    with pytest.raises(ValueError, match=name):
        method(**{"n_components": 2, name: value}).fit(X, y, X_target)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_too_large_to_be_squared_are_refused(dtype, rng):
    X, y, X_target, _ = make_task(rng)
    plain = {"row_sum": False, "zscore": False, "unit_norm": False}
    huge = dtype(np.finfo(dtype).max / 1e3)
    X, X_target = X.astype(dtype), X_target.astype(dtype)
    with pytest.raises(ValueError, match=r"X has values whose squares are too large for float"):
        FRODA(n_components=2, **plain).fit(huge * X / abs(X).max(), y, X_target)
    with pytest.raises(ValueError, match=r"X_target has values whose squares"):
        FRODA(n_components=2, **plain).fit(X, y, huge * X_target / abs(X_target).max())


def test_a_wrong_unknown_label_is_told_in_plain_words(rng):
    X, y, X_target, _ = make_task(rng)
    with pytest.raises(ValueError, match=r"unknown_label='u' .* labels such as 0: choose a number"):
        FRODA(unknown_label="u").fit(X, y, X_target)
    with pytest.raises(ValueError, match=r"labels such as 'a': choose a string"):
        FRODA(unknown_label=-1).fit(X, np.array(["a", "b"])[y], X_target)


def test_the_learnt_classifier_is_not_for_froda(rng):
    X, y, X_target, _ = make_task(rng)
    with pytest.raises(ValueError, match="head must be one of 'svm', 'nn'"):
        FRODA(n_components=2, head="linear").fit(X, y, X_target)


def test_fewer_samples_than_dimensions_asked_for(rng):
    X, y, X_target, _ = make_task(rng)
    few = np.r_[:4, 60:64]
    with pytest.raises(ValueError, match=r"n_components=9 is larger than possible.*at most 7"):
        FRODA(n_components=9).fit(X[few], y[few], X_target)


@pytest.mark.parametrize("method", ALL)
def test_components_that_no_data_of_this_shape_allow_are_refused_at_once(method, rng, monkeypatch):
    monkeypatch.setattr(base, "fit_preprocessor", lambda *a: pytest.fail("went on computing"))
    X, y, X_target, _ = make_task_with_unknowns(rng)
    with pytest.raises(ValueError, match=r"n_components=30 .* of 30 features allow at most 29"):
        method(n_components=30).fit(X, y, X_target)
    few = np.r_[:4, 60:64, 120:140]  # 8 rows of known classes and 20 of an unknown one
    with pytest.raises(ValueError, match=r"n_components=8 .*: 8 known .* allow at most 7"):
        method(n_components=8).fit(X[few], y[few], X_target)


@pytest.mark.parametrize("method", ALL)
def test_constant_columns_and_zero_rows_are_harmless(method, rng):
    X, y, X_target, y_target = make_task(rng)
    X[:, 4], X_target[:, 4] = 2.0, 5.0
    X[:, 5] = 0.0
    X[7], X_target[9] = 0.0, 0.0
    model = method(n_components=2).fit(X, y, X_target)
    score = model.unknown_score(X_target)
    assert np.isfinite(score).all()
    assert roc_auc_score(y_target == -1, score) >= 0.9


def test_bad_target_at_predict(rng):
    X, y, X_target, _ = make_task(rng)
    model = FRODA(n_components=2).fit(X, y, X_target)
    for method in (model.predict, model.transform, model.unknown_score, model.predict_proba):
        with pytest.raises(ValueError, match=r"29 features.*expecting 30"):
            method(X_target[:, 1:])
        with pytest.raises(ValueError, match="NaN"):
            method(put(X_target, np.nan))
    assert model.predict(X_target[:1]).shape == (1,)


def test_target_codes_are_optimal(rng):
    X, y, X_target, _ = make_task(rng)
    model = DFRODA(n_components=3).fit(X, y, X_target)
    features = model._preprocessor.transform_target(X_target)
    cross = features @ np.hstack([model.shared_basis_, model.private_basis_])
    assert codes.distance(model._prepared, cross, model.target_codes_).max() <= 1e-8
