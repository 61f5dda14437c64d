"""OSLPP: its eigenproblem, its selection and rejection, and planted problems."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from froda.baselines import OSLPP, oslpp
from froda.metrics import open_set_scores


@pytest.fixture
def labelled(rng):
    """Rows, and labels with a rejected class (-2) and rows without a label (-1)."""
    return rng.normal(size=(60, 8)) + 2, rng.permutation(np.repeat([0, 1, 2, -1, -2], 12))


def literal_scatter(X, labels, alpha):
    """The two matrices by the n × n graph."""
    graph = (labels[:, None] == labels) & (labels != -1)
    degrees = np.diag(graph.sum(axis=1))
    return X.T @ degrees @ X, X.T @ (degrees - graph) @ X + alpha * np.eye(X.shape[1])


def test_scatter_is_that_of_the_graph(labelled):
    X, labels = labelled
    for found, expected in zip(
        oslpp.class_scatter(X, labels, 0.7), literal_scatter(X, labels, 0.7), strict=True
    ):
        assert_allclose(found, expected, atol=1e-9)


def test_projection_solves_its_eigenproblem(labelled):
    first, second = oslpp.class_scatter(*labelled, 1.0)
    values, vectors = oslpp.leading_pairs(first, second, 3)
    assert_allclose(first @ vectors, second @ vectors * values, atol=1e-8 * values[0])
    assert_allclose(vectors.T @ second @ vectors, np.eye(3), atol=1e-9)
    every = np.linalg.eigvals(np.linalg.solve(second, first)).real
    assert_allclose(values, np.sort(every)[::-1][:3])
    assert oslpp.leading_pairs(first, second, 99)[1].shape == (8, 8)


def test_no_random_projection_has_a_larger_trace(labelled, rng):
    first, second = oslpp.class_scatter(*labelled, 1.0)
    _, best = oslpp.leading_pairs(first, second, 3)

    def objective(P):
        return np.trace(np.linalg.solve(P.T @ second @ P, P.T @ first @ P))

    top = objective(best)
    for _ in range(200):
        assert objective(rng.normal(size=(8, 3))) <= top
        assert objective(best + 1e-3 * rng.normal(size=(8, 3))) <= top


def test_pseudo_labels_are_the_nearest_means(rng):
    rows, means = rng.normal(size=(30, 4)), rng.normal(size=(3, 4))
    nearest, confidence = oslpp.pseudo_labels(rows, means)
    weights = np.exp(-cdist(rows, means))
    shares = weights / weights.sum(axis=1, keepdims=True)
    assert_array_equal(nearest, shares.argmax(axis=1))
    assert_allclose(confidence, shares.max(axis=1))


def test_selection_takes_the_most_confident_of_each_class():
    nearest = np.array([0, 0, 0, 0, 1, 1])
    confidence = np.array([0.9, 0.6, 0.7, 0.8, 0.1, 0.2])
    assert_array_equal(
        oslpp.select(nearest, confidence, 0.5), [True, False, False, True, False, True]
    )
    assert oslpp.select(nearest, confidence, 1.0).all()
    assert not oslpp.select(nearest, confidence, 0.0).any()


def test_rejection_margin_is_the_difference_of_distances(rng):
    rows, known, unknown = (rng.normal(size=(n, 5)) for n in (20, 6, 4))
    expected = cdist(rows, known).min(axis=1) - cdist(rows, unknown).min(axis=1)
    assert_allclose(oslpp.rejection_margins(rows, known, unknown), expected, atol=1e-5)
    assert np.all(oslpp.rejection_margins(known, known, unknown) < 0)
    assert np.all(oslpp.rejection_margins(known, known, known) < 0)  # ties are known


def make_task(rng, n=60, n_features=30, with_unknowns=False):
    """Three known classes and two unknown, the target shifted."""
    centres = 3 * rng.normal(size=(6, n_features))
    y = np.repeat([0, 1, 2, -1], n)[: (4 if with_unknowns else 3) * n]
    kinds = np.repeat([0, 1, 2, 3, 4], n)
    X = centres[y] + rng.normal(size=(len(y), n_features))
    X_target = centres[kinds] + rng.normal(size=(len(kinds), n_features)) + 0.5
    return X, y, X_target, np.where(kinds > 2, -1, kinds)


@pytest.mark.parametrize("with_unknowns", [False, True])
@pytest.mark.parametrize("pca_variance", [0.99, None])
def test_solves_a_planted_task(with_unknowns, pca_variance, rng):
    X, y, X_target, y_target = make_task(rng, with_unknowns=with_unknowns)
    model = OSLPP(pca_variance=pca_variance).fit(X, y, X_target)
    score = model.unknown_score(X_target)
    scores = open_set_scores(y_target, model.predict(X_target), score, unknown_label=-1)
    assert scores["HOS"] >= 0.9
    assert scores["AUROC"] >= 0.95
    again = make_task(rng, with_unknowns=with_unknowns)
    assert model.predict(again[2]).shape == again[3].shape


def test_new_samples_are_labelled_by_the_same_rule(rng):
    X, y, X_target, y_target = make_task(rng)
    fitted = rng.permutation(len(X_target)) < 220
    model = OSLPP().fit(X, y, X_target[fitted])
    new, truth = X_target[~fitted], y_target[~fitted]
    assert (model.predict(new) == truth).mean() >= 0.9
    assert roc_auc_score(truth == -1, model.unknown_score(new)) >= 0.95
    assert_array_equal(model.predict(new[:5]), model.predict(new)[:5])


@pytest.mark.parametrize("n_rounds", [2, 3, 10])
def test_samples_of_the_fit_get_their_final_pseudo_label(n_rounds, rng):
    X, y, X_target, _ = make_task(rng)
    model = OSLPP(n_rounds=n_rounds).fit(X, y, X_target)
    assert_array_equal(model.predict(X_target), model.target_labels_)
    assert_array_equal(model.unknown_score(X_target) > 0, model.target_labels_ == -1)
    assert len(model.n_selected_) == len(model.n_rejected_) == n_rounds
    assert model.n_selected_[-1] + model.n_rejected_[-1] == len(X_target)
    assert model.n_rejected_[0] == 0
    assert model.n_rejected_[1] >= 0.15 * len(X_target)
    assert np.all(np.diff(model.n_rejected_) >= 0)


def test_sizes_are_capped_by_the_data(rng):
    X, y, X_target, _ = make_task(rng, n_features=9)
    model = OSLPP(pca_components=5, lpp_components=99).fit(X, y, X_target)
    assert model.projection_.shape == (5, 5)
    assert model.class_means_.shape == (3, 5)
    assert np.all(np.diff(model.eigenvalues_) <= 0)
    model = OSLPP(pca_components=512, lpp_components=3).fit(X, y, X_target)
    assert model.projection_.shape[0] <= 9
    assert model.projection_.shape[1] == 3


def test_kept_axes_are_those_of_the_joint_pca(rng):
    X, y, X_target, _ = make_task(rng)
    from_door = OSLPP(pca_variance=1.0).fit(X, y, X_target).unknown_score(X_target)
    own = OSLPP(pca_variance=None).fit(X, y, X_target).unknown_score(X_target)
    assert_allclose(own, from_door, atol=1e-6)


def test_all_of_the_target_may_be_rejected(rng):
    X, y, X_target, _ = make_task(rng, n=5)
    model = OSLPP(unknown_share=0.999).fit(X, y, X_target)
    assert set(model.target_labels_.tolist()) == {-1}
    assert np.all(np.isfinite(model.decision_function(X_target)))


@pytest.mark.parametrize("with_unknowns", [False, True])
def test_without_a_target_nothing_is_rejected_to_begin_with(with_unknowns, rng):
    X, y, _, _ = make_task(rng, with_unknowns=with_unknowns)
    model = OSLPP().fit(X, y)
    assert (model.predict(X) == y).mean() >= 0.95
    assert model.n_rejected_[-1] == np.count_nonzero(model.target_labels_ == -1)
    assert np.all(np.isfinite(model.unknown_score(X)))
    assert with_unknowns == np.any(model.target_labels_ == -1)


def test_deterministic_and_clonable(rng):
    X, y, X_target, _ = make_task(rng)
    model = OSLPP(0.2, n_rounds=5)
    first = model.fit(X, y, X_target).decision_function(X_target)
    assert_array_equal(clone(model).fit(X, y, X_target).decision_function(X_target), first)
    assert clone(model).get_params() == model.get_params()


def test_order_scale_type_and_container_do_not_matter(rng):
    X, y, X_target, _ = make_task(rng)
    for array in (X, y, X_target):
        array.flags.writeable = False
    score = OSLPP().fit(X, y, X_target).unknown_score(X_target)
    order, order_target = rng.permutation(len(X)), rng.permutation(len(X_target))
    cases = {
        "order": (X[order], y[order], X_target[order_target], X_target, 1e-5),
        "scale": (1e4 * X, y, 1e4 * X_target, 1e4 * X_target, 1e-5),
        "sparse": (sparse.csr_array(X), y, sparse.csr_array(X_target), X_target, 1e-5),
        "names": (X, np.array(["a", "b", "c"])[y], X_target, X_target, 1e-9),
        "float32": (X.astype("f4"), y, X_target.astype("f4"), X_target.astype("f4"), 5e-3),
    }
    for name, (source, labels, goal, rows, tolerance) in cases.items():
        model = OSLPP().fit(source, labels, goal)
        assert_allclose(model.unknown_score(rows), score, atol=tolerance, err_msg=name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("unknown_share", 0.0),
        ("unknown_share", 1.0),
        ("n_rounds", 1),
        ("pca_components", 0),
        ("lpp_components", 2.5),
        ("alpha", 0),
        ("pca_variance", 2),
    ],
)
def test_bad_settings_are_refused_by_name(name, value, rng):
    X, y, X_target, _ = make_task(rng)
    with pytest.raises(ValueError, match=name):
        OSLPP(**{name: value}).fit(X, y, X_target)


def test_least_distances_come_in_chunks(rng, monkeypatch):
    rows, others = rng.normal(size=(23, 5)), rng.normal(size=(11, 5))
    monkeypatch.setattr(oslpp, "_CHUNK", 7)
    assert_allclose(oslpp.least_distances(rows, others), cdist(rows, others).min(axis=1))
    assert_allclose(oslpp.least_distances(rows, rows), 0, atol=1e-6)
