"""ATI: each step against its definition, then the whole on planted problems."""

from __future__ import annotations

import time
import warnings
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import LinearConstraint, linprog, milp
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

from froda.baselines import ATI, OSVM, assignment, ati

VARIANTS = pytest.mark.parametrize("variant", ati.VARIANTS)


def literal_value(costs, columns, pairs, neighbours):
    """The objective of the paper, summed as it is written."""
    n_classes = len(pairs)
    total = sum(costs[t, column] for t, column in enumerate(columns))
    for t, column in enumerate(columns):
        for near in neighbours[t]:
            if column < n_classes and columns[near] < n_classes:
                total += pairs[column, columns[near]]
    return total


def brute_force(costs, n_classes, pairs, neighbours):
    """The least value over all assignments that take every class."""
    n_samples, n_columns = costs.shape
    return min(
        literal_value(costs, columns, pairs, neighbours)
        for columns in product(range(n_columns), repeat=n_samples)
        if set(range(n_classes)) <= set(columns)
    )


def make_costs(rng, variant, n_samples=6, n_classes=3, far_class=False):
    """Squared distances, with one class far from every sample where its demand is to bind."""
    target, means = rng.normal(size=(n_samples, 2)), rng.normal(size=(n_classes, 2))
    means[0] += 10 * far_class
    costs = cdist(target, means, "sqeuclidean")
    if variant != "plain":
        lam = (costs.max() + costs.min()) / 2
        costs = np.column_stack([costs, np.full(n_samples, lam)])
    neighbours = assignment.nearest_neighbours(
        target, {"lambda-N1": 1, "lambda-N2": 2}.get(variant, 0)
    )
    return costs, cdist(means, means, "sqeuclidean"), neighbours


@VARIANTS
@pytest.mark.parametrize("far_class", [False, True])
def test_assignment_is_that_of_brute_force(variant, far_class, rng):
    for _ in range(4):
        costs, pairs, neighbours = make_costs(rng, variant, far_class=far_class)
        found = assignment.assign(costs, 3, pairs, neighbours, 60.0)
        assert found.is_optimal
        assert set(range(3)) <= set(found.columns.tolist())
        literal = literal_value(costs, found.columns, pairs, neighbours)
        assert_allclose(found.value, literal)
        assert_allclose(literal, brute_force(costs, 3, pairs, neighbours), rtol=1e-7)
        if far_class:
            assert np.count_nonzero(found.columns == 0) == 1


def test_every_class_is_taken_by_the_cheapest_exchange():
    costs = np.array([[0.0, 5.0, 9.0], [0.0, 4.0, 1.0], [0.0, 3.0, 8.0], [0.0, 9.0, 9.0]])
    assert_array_equal(assignment.assign_alone(costs, 3), [0, 2, 1, 0])
    assert_array_equal(assignment.assign_alone(costs, 1), [0, 0, 0, 0])


@pytest.mark.parametrize("with_unknown", [False, True])
def test_reduction_equals_the_linear_and_the_integer_program(with_unknown, rng):
    n_samples, n_classes = 25, 8
    costs = rng.exponential(size=(n_samples, n_classes))
    costs[:, :3] += 5  # nobody goes there unless made to
    if with_unknown:
        costs = np.column_stack([costs, np.full(n_samples, 0.3)])
    columns = assignment.assign_alone(costs, n_classes)
    value = costs[np.arange(n_samples), columns].sum()
    n_columns = costs.shape[1]
    one_each = np.kron(np.eye(n_samples), np.ones(n_columns))
    taken = np.kron(np.ones(n_samples), np.eye(n_columns))[:n_classes]
    relaxed = linprog(
        costs.ravel(), -taken, -np.ones(n_classes), one_each, np.ones(n_samples), (0, 1)
    )
    whole = milp(
        costs.ravel(),
        integrality=np.ones(costs.size),
        constraints=[LinearConstraint(one_each, 1, 1), LinearConstraint(taken, 1, np.inf)],
    )
    assert set(range(n_classes)) <= set(columns.tolist())
    assert_allclose(value, relaxed.fun)
    assert_allclose(value, whole.fun)


@pytest.mark.parametrize("n_neighbours", [1, 2])
def test_tight_linearisation_equals_that_of_the_paper(n_neighbours, rng):
    n_samples, n_classes = 30, 4
    target, means = rng.normal(size=(n_samples, 3)), 0.7 * rng.normal(size=(n_classes, 3))
    costs, pairs = cdist(target, means, "sqeuclidean"), cdist(means, means, "sqeuclidean")
    neighbours = assignment.nearest_neighbours(target, n_neighbours)
    found = assignment.assign(costs, n_classes, pairs, neighbours, 60.0)
    # w_ct >= Σ pairs x_c't' - a_c (1 - x_ct), a_c being the largest value of the sum.
    size = costs.size
    one_each = np.kron(np.eye(n_samples), np.ones(n_classes))
    taken = np.kron(np.ones(n_samples), np.eye(n_classes))
    bound, most = np.zeros((size, 2 * size)), np.zeros(size)
    for t, c in product(range(n_samples), range(n_classes)):
        row = t * n_classes + c
        most[row] = n_neighbours * pairs[c].sum()
        bound[row, row] = most[row]
        bound[row, size + row] = -1
        for near in neighbours[t]:
            bound[row, near * n_classes : (near + 1) * n_classes] += pairs[c]
    nothing = np.zeros((len(one_each), size)), np.zeros((len(taken), size))
    paper = milp(
        np.concatenate([costs.ravel(), np.ones(size)]),
        integrality=np.repeat([1, 0], size),
        constraints=[
            LinearConstraint(np.hstack([one_each, nothing[0]]), 1, 1),
            LinearConstraint(np.hstack([taken, nothing[1]]), 1, np.inf),
            LinearConstraint(bound, -np.inf, most),
        ],
        options={"mip_rel_gap": 0.0},
    )
    assert paper.status == 0
    assert_allclose(found.value, paper.fun, rtol=1e-6)


@pytest.mark.parametrize("variant", ["lambda-N1", "lambda-N2"])
def test_bounds_hold_for_every_assignment_and_strike_out_columns(variant, rng):
    n_struck = 0
    for _ in range(5):
        costs, pairs, neighbours = make_costs(rng, variant, n_samples=5)
        graph = assignment.make_graph(costs, pairs, neighbours)
        values = {
            columns: graph.value(np.array(columns)) for columns in product(range(4), repeat=5)
        }
        last = -np.inf
        for _, bounds in assignment.ascend(graph, np.inf):
            for columns, value in values.items():
                assert np.all(bounds[np.arange(5), columns] <= value + 1e-9)
            assert np.all(bounds >= last - 1e-12)
            last = bounds
        n_struck += np.count_nonzero(bounds > min(values.values()) + 1e-9)
    assert n_struck > 20


def test_bounds_are_exact_with_one_neighbour(rng):
    """Ways from neighbour to neighbour end in a pair, so there is no cycle."""
    costs, pairs, neighbours = make_costs(rng, "lambda-N1", n_samples=6)
    graph = assignment.make_graph(costs, pairs, neighbours)
    *_, (_, bounds) = assignment.ascend(graph, np.inf)
    best = min(graph.value(np.array(columns)) for columns in product(range(4), repeat=6))
    assert_allclose(bounds.min(), best, rtol=1e-6)


def test_joined_samples_have_different_colours(rng):
    neighbours = assignment.nearest_neighbours(rng.normal(size=(200, 3)), 2)
    graph = assignment.make_graph(rng.random((200, 3)), np.zeros((3, 3)), neighbours)
    colours = assignment.colour(graph)
    first, second = colours[graph.edges].T
    assert not np.any(first == second)
    assert colours.min() == 0
    assert colours.max() < 8


def test_completion_takes_every_class_and_empties_none(rng):
    costs, pairs, neighbours = make_costs(rng, "lambda-N2", n_samples=9, n_classes=6)
    graph = assignment.make_graph(costs, pairs, neighbours)
    for start in (np.full(9, 6), np.zeros(9, dtype=int), np.array([0, 1, 2, 3, 4, 4, 4, 4, 4])):
        assert assignment.takes_all(assignment.complete(graph, start, 6), 6)


def test_descent_ends_where_no_single_change_helps(rng):
    costs, pairs, neighbours = make_costs(rng, "lambda-N2", n_samples=30, far_class=True)
    graph = assignment.make_graph(costs, pairs, neighbours)
    start = assignment.assign_alone(costs, 3)
    columns = assignment.descend(graph, start, 3)
    assert graph.value(columns) <= graph.value(start)
    assert assignment.takes_all(columns, 3)
    for sample, column in product(range(30), range(4)):
        other = columns.copy()
        other[sample] = column
        assert (
            not assignment.takes_all(other, 3) or graph.value(other) >= graph.value(columns) - 1e-12
        )


def test_neighbours_are_the_nearest_others(rng):
    points = rng.normal(size=(20, 3))
    distances = cdist(points, points)
    np.fill_diagonal(distances, np.inf)
    assert_array_equal(assignment.nearest_neighbours(points, 2), distances.argsort(axis=1)[:, :2])
    assert assignment.nearest_neighbours(points, 0).shape == (20, 0)
    assert assignment.nearest_neighbours(points[:2], 2).tolist() == [[1], [0]]


@pytest.mark.parametrize("dependent", [False, True])
def test_map_solves_its_normal_equations(dependent, rng):
    means, target = rng.normal(size=(4, 7)), rng.normal(size=(30, 7))
    if dependent:
        means[3] = -means[:3].sum(axis=0)
    columns = np.append(np.arange(5), rng.integers(0, 5, size=25))  # 4 is unknown
    left, right = ati.map_means(means, columns, target, 1e-3)
    transform = np.eye(7) + left @ right
    assigned = columns < 4
    matched, goals = means[columns[assigned]], target[assigned]
    weight = 1e-3 * np.trace(matched.T @ matched) / 4
    gradient = matched.T @ (matched @ transform - goals) + weight * (transform - np.eye(7))
    assert_allclose(gradient, 0, atol=1e-10)


def test_map_without_ridge_is_least_squares(rng):
    means, target = rng.normal(size=(9, 4)), rng.normal(size=(60, 4))  # more means than columns
    columns = rng.permutation(np.arange(60) % 9)
    left, right = ati.map_means(means, columns, target, 1e-7)
    expected = np.linalg.lstsq(means[columns], target, rcond=None)[0]
    assert_allclose(np.eye(4) + left @ right, expected, atol=1e-5)


def test_means_of_rounding_size_move_nothing_far(rng):
    target = rng.normal(size=(30, 7))
    for means in (1e-16 * rng.normal(size=(2, 7)), np.zeros((2, 7))):
        left, right = ati.map_means(means, np.arange(30) % 2, target, 1e-3)
        assert np.abs(left @ right).max() < 1e-3


def make_task(rng, n=40, n_features=20, with_unknowns=False):
    """Two known classes and one unknown, the target rotated a little."""
    centres = 4 * rng.normal(size=(4, n_features))
    y_target = np.repeat([0, 1, -1], n)
    y = np.repeat([0, 1, -1], n)[: (3 if with_unknowns else 2) * n]
    turn = np.eye(n_features) + 0.1 * rng.normal(size=(n_features, n_features))
    X = centres[y] + rng.normal(size=(len(y), n_features))
    if with_unknowns:  # the target has another unknown class besides
        y_target = np.append(y_target, np.full(n // 2, -1))
        X = np.where((y == -1)[:, None], X + 0.3, X)
    kinds = np.where(y_target == -1, 3, y_target)
    X_target = (centres[kinds] + rng.normal(size=(len(kinds), n_features))) @ turn
    return X, y, X_target, y_target


@VARIANTS
def test_labels_known_classes_of_a_planted_task(variant, rng):
    X, y, X_target, y_target = make_task(rng)
    model = ATI(variant).fit(X, y, X_target)
    known = y_target != -1
    scores = model.decision_function(X_target[known])[:, :-1]
    assert (scores.argmax(axis=1) == y_target[known]).mean() >= 0.95
    assert np.isfinite(model.threshold_)
    assert model.decision_function(X_target).shape == (len(X_target), 3)
    assert_array_equal(
        model.predict(X_target) == -1,
        (model.unknown_score(X_target) > model.threshold_),
    )


def test_unknown_column_takes_what_is_far_from_every_class(rng):
    centres = np.zeros((3, 6))
    centres[[0, 1, 2], [0, 0, 1]] = [5, -5, 20]
    y, y_target = np.repeat([0, 1], 30), np.repeat([0, 1, -1], 30)
    X = centres[y] + 0.3 * rng.normal(size=(60, 6))
    X_target = centres[y_target] + 0.3 * rng.normal(size=(90, 6)) + 0.2
    settings = {"row_sum": False, "zscore": False, "pca_variance": 1.0}
    model = ATI("lambda", **settings).fit(X, y, X_target)
    assert_array_equal(model.assignment_, y_target)
    assert np.isfinite(model.lam_)
    means = np.stack([X[y == c].mean(axis=0) for c in (0, 1)])
    goals = np.stack([X_target[y_target == c].mean(axis=0) for c in (0, 1)])
    mapped = (means - model._preprocessor.principal.mean) @ model._preprocessor.principal.axes
    mapped = mapped @ model.transform_ @ model._preprocessor.principal.axes.T
    mapped += model._preprocessor.principal.mean
    before, after = np.linalg.norm(means - goals), np.linalg.norm(mapped - goals)
    assert after < 0.1 * before  # samples called unknown had no part in the map
    plain = ATI("plain", **settings).fit(X, y, X_target)
    assert set(plain.assignment_.tolist()) == {0, 1}
    assert plain.lam_ == np.inf


@VARIANTS
def test_source_unknowns_are_a_class_of_their_own(variant, rng):
    X, y, X_target, y_target = make_task(rng, with_unknowns=True)
    model = ATI(variant).fit(X, y, X_target)
    assert model.threshold_ == np.inf
    assert model.classifier_.classes_.tolist() == [0, 1, 2]
    assert set(model.assignment_.tolist()) == {0, 1, -1}
    assert roc_auc_score(y_target == -1, model.unknown_score(X_target)) >= 0.95


def test_map_is_what_labels_the_target(rng):
    X, y, X_target, _ = make_task(rng)
    settings = {"unit_norm": False, "pca_variance": None}
    model = ATI(max_iter=1, **settings).fit(X, y, X_target)
    assert model.n_iter_ == 1
    assert model.stop_reason_ == ati.MAX_ITER
    assert model.transform_.shape == (20, 20)
    plain = OSVM(**settings).fit(X, y, X_target)
    assert not np.allclose(model.unknown_score(X_target), plain.unknown_score(X_target))
    still = ATI(max_iter=1, ridge=1e12, **settings).fit(X, y, X_target)
    assert_allclose(still.transform_, np.eye(20), atol=1e-9)
    assert_allclose(still.unknown_score(X_target), plain.unknown_score(X_target), atol=1e-3)


def test_the_cost_of_unknown_is_halfway_between_the_extreme_distances(rng):
    X, y, X_target, _ = make_task(rng)
    model = ATI(max_iter=1, row_sum=False, zscore=False, pca_variance=None).fit(X, y, X_target)
    means = np.stack([X[y == c].mean(axis=0) for c in np.unique(y)])
    costs = cdist(X_target, means, "sqeuclidean")
    assert_allclose(model.lam_, (costs.max() + costs.min()) / 2)
    expected = np.minimum(costs.min(axis=1), model.lam_).sum()  # every class is someone's nearest
    assert set(model.assignment_) >= set(y)
    assert_allclose(model.objective_, [expected])


def test_maps_of_all_rounds_together_are_the_transform(rng, monkeypatch):
    """The means of the last round are those of the source mapped by all rounds before."""
    seen = []
    real = ati.map_means
    monkeypatch.setattr(ati, "map_means", lambda means, *a: seen.append(means) or real(means, *a))
    X, y = rng.normal(size=(60, 5)), np.arange(60) % 3
    X_target = 3 * rng.normal(size=(200, 5)) + np.arange(5)
    settings = {"row_sum": False, "zscore": False, "pca_variance": None, "tol": 0}
    for n_rounds in (2, 3, 4):
        before = ATI(max_iter=n_rounds - 1, **settings).fit(X, y, X_target)
        seen.clear()
        model = ATI(max_iter=n_rounds, **settings).fit(X, y, X_target)
        assert model.n_iter_ == n_rounds
        means = ati.class_means(X @ before.transform_, y)
        assert_allclose(seen[-1], means, atol=1e-9)
        assert not np.allclose(model.transform_, before.transform_)


def test_says_why_it_stopped(rng):
    X, y, X_target, _ = make_task(rng)
    settled = ATI(tol=0).fit(X, y, X_target)
    assert settled.stop_reason_ == ati.SETTLED
    assert 2 <= settled.n_iter_ == len(settled.objective_) <= 6
    small = ATI(tol=0.99).fit(X, y, X_target)
    assert small.n_iter_ == 2
    assert small.stop_reason_ in (ati.SETTLED, ati.SMALL_CHANGE)
    assert not settled.time_limit_reached_


def test_small_change_stops(rng):
    X, y = rng.normal(size=(60, 5)), np.arange(60) % 3
    model = ATI(tol=0.99).fit(X, y, rng.normal(size=(200, 5)))
    assert model.stop_reason_ == ati.SMALL_CHANGE
    assert model.n_iter_ == 2


@pytest.mark.parametrize("variant", ["lambda-N1", "lambda-N2"])
def test_time_limit_is_kept_and_said(variant, rng):
    X, y = rng.normal(size=(120, 10)), np.arange(120) % 6
    X_target = rng.normal(size=(400, 10))
    started = time.monotonic()
    with pytest.warns(ConvergenceWarning, match=r"time_limit of 0\.01 s.*Raise time_limit"):
        model = ATI(variant, time_limit=0.01).fit(X, y, X_target)
    assert time.monotonic() - started < 20
    assert model.time_limit_reached_
    assert set(model.assignment_.tolist()) >= set(range(6))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not ATI("lambda", time_limit=0.01).fit(X, y, X_target).time_limit_reached_


def test_time_limit_keeps_what_the_solver_found_or_better(rng, monkeypatch):
    costs, pairs, neighbours = make_costs(rng, "lambda-N1", n_samples=12)
    graph = assignment.make_graph(costs, pairs, neighbours)
    best = assignment.assign(costs, 3, pairs, neighbours, 60.0)
    for interrupted in (best.columns, None, np.arange(12) % 3):
        monkeypatch.setattr(
            assignment, "solve_program", lambda *_, found=interrupted: (found, False)
        )
        found = assignment.assign(costs, 3, pairs, neighbours, 60.0)
        assert not found.is_optimal
        assert best.value <= found.value + 1e-12
        if interrupted is not None:
            assert found.value <= graph.value(interrupted)


@VARIANTS
def test_deterministic_and_clonable(variant, rng):
    X, y, X_target, _ = make_task(rng)
    model = ATI(variant, ridge=0.01)
    first = model.fit(X, y, X_target).decision_function(X_target)
    assert_array_equal(clone(model).fit(X, y, X_target).decision_function(X_target), first)
    assert clone(model).get_params() == model.get_params()


@VARIANTS
def test_order_scale_type_and_container_do_not_matter(variant, rng):
    X, y, X_target, _ = make_task(rng)
    for array in (X, y, X_target):
        array.flags.writeable = False
    score = ATI(variant).fit(X, y, X_target).unknown_score(X_target)
    order, order_target = rng.permutation(len(X)), rng.permutation(len(X_target))
    cases = {  # the SVM is solved to 1e-3
        "order": (X[order], y[order], X_target[order_target], X_target, 1e-2),
        "scale": (1e4 * X, y, 1e4 * X_target, 1e4 * X_target, 1e-2),
        "sparse": (sparse.csr_array(X), y, sparse.csr_array(X_target), X_target, 1e-2),
        "names": (X, np.array(["a", "b"])[y], X_target, X_target, 1e-9),
        "float32": (X.astype("f4"), y, X_target.astype("f4"), X_target.astype("f4"), 1e-2),
    }
    for name, (source, labels, goal, rows, tolerance) in cases.items():
        model = ATI(variant).fit(source, labels, goal)
        assert_allclose(model.unknown_score(rows), score, atol=tolerance, err_msg=name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("variant", "lambda-N3"),
        ("max_iter", 0),
        ("tol", -1.0),
        ("ridge", 0.0),
        ("time_limit", 0),
        ("unit_norm", 1),
    ],
)
def test_bad_settings_are_refused_by_name(name, value, rng):
    X, y, X_target, _ = make_task(rng)
    with pytest.raises(ValueError, match=name):
        ATI(**{name: value}).fit(X, y, X_target)


def test_fewer_target_samples_than_classes(rng):
    X, y = rng.normal(size=(40, 6)), np.arange(40) % 4
    with pytest.raises(ValueError, match=r"X_target has 3 rows.*4 classes"):
        ATI().fit(X, y, rng.normal(size=(3, 6)))
