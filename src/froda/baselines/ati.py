"""ATI: assign target samples to source classes or to unknown, map the source, and again."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve
from scipy.optimize import Bounds, LinearConstraint, linear_sum_assignment, milp
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NearestNeighbors

from froda.baselines.base import SVMBaseline
from froda.factorization.problem import Array
from froda.validation import check_choice, check_count, check_positive

_N_NEIGHBOURS = {"plain": 0, "lambda": 0, "lambda-N1": 1, "lambda-N2": 2}
VARIANTS = tuple(_N_NEIGHBOURS)

# Mean square of the class means, in those of the target rows, below which they are rounding.
_NO_MEANS = float(np.sqrt(np.finfo(np.float64).eps))

SETTLED = "no assignment changed"
SMALL_CHANGE = "the objective changed by less than tol"
MAX_ITER = "max_iter rounds were made"


class ATI(SVMBaseline):
    """Assign-and-transform-iteratively: match target samples to source classes, map the source.

    Each round solves an assignment problem and a least-squares problem. With the source class
    means ``s_c``, the target samples ``t`` and ``d_ct = |s_c - t|²``, it first minimises

    ``Σ_t (Σ_c d_ct x_ct + lam o_t) + Σ_tt' Σ_cc' |s_c - s_c'|² x_ct x_c't'``

    (``tt'`` runs over each sample and its nearest neighbours in the target) over binary ``x``
    and ``o`` under ``Σ_c x_ct + o_t = 1`` for every sample and
    ``Σ_t x_ct >= 1`` for every class: a sample with ``o_t = 1`` is called unknown, at the cost
    ``lam = (max d_ct + min d_ct) / 2``. Then the linear map ``A`` (rows times A) minimises
    ``Σ_assigned |s_c A - t|²``, the mapped source takes the place of the source, and the next
    round starts. A linear one-vs-one SVM on the mapped source labels the target.

    Parameters
    ----------
    variant : {"plain", "lambda", "lambda-N1", "lambda-N2"}, default="lambda"
        "plain" assigns every sample to a class; "lambda" may call samples unknown; "lambda-N1"
        and "lambda-N2" add the terms of the nearest one or two target neighbours of each
        sample, which the other two leave out.
    max_iter : int, default=6
        Largest number of rounds.
    tol : float, default=0.01
        Stop when a round changes the objective of the assignment by less than this share.
    ridge : float, default=1e-3
        Weight of ``|A - I|²`` in the fit of the map, relative to the mean square of the class
        means times the number of samples assigned. There are fewer means than columns, so
        least squares alone leaves A open; this takes the map that moves least.
    time_limit : float, default=120.0
        Seconds that the mixed-integer programs of "lambda-N1" and "lambda-N2" may take
        together in one fit. When they are over the best assignment found so far is taken,
        with a warning.
    row_sum : bool, default=True
        Divide each row by its sum of absolute values.
    zscore : bool, default=True
        Standardise each column within its domain; constant columns become zero.
    unit_norm : bool, default=False
        Then divide each row by its norm.
    pca_variance : float, default=0.99
        Share of the variance that the joint PCA of source and target keeps; None leaves the
        PCA out (and makes sparse input dense).
    rejection : float, default=0.05
        Share of held-out source samples that the threshold rejects when the source has no
        samples of unknown classes.
    unknown_label : object, default=None
        Label that means unknown, in ``y`` and in predictions; None takes -1 for numbers and
        "unknown" for strings.

    Attributes
    ----------
    classes_ : array of shape (n_classes + 1,)
        The known classes in order, then the unknown label.
    n_known_ : int
        Number of known classes.
    assignment_ : array of shape (n_target,)
        Entry of ``classes_`` that the last assignment gave to each target sample.
    transform_ : array of shape (n_kept, n_kept)
        The map of all rounds together: mapped source rows are source rows times this, in the
        coordinates of the joint PCA.
    lam_ : float
        Cost of calling a sample unknown in the last round; infinite for "plain".
    objective_ : list of float
        Value of the assignment in each round.
    n_iter_ : int
        Number of rounds.
    stop_reason_ : str
        Why the rounds ended.
    time_limit_reached_ : bool
        Whether an assignment is only the best one found within ``time_limit``.
    classifier_ : SVC
        The fitted SVM.
    threshold_ : float
        Unknown score above which a sample is rejected; infinite with source unknowns.
    n_features_in_ : int
        Number of columns of the source.
    feature_names_in_ : array of str
        Column names, when the source had them.

    See Also
    --------
    froda.baselines.OSVM : The same without a map.

    Notes
    -----
    What the paper leaves open is read as follows. Source samples of unknown classes are one
    class more, with a mean of its own to which target samples may be assigned, besides ``o``.
    Without them samples with ``o_t = 1`` only stay out of the fit of the map, and the SVM
    rejects by the threshold of the source scores, for new samples as for those of the fit.
    The map of a round applies to the source as mapped by the rounds before. ``lam`` is taken
    anew in each round, from all classes. The SVM has the penalty of all baselines, 1 over the
    mean square norm of its input, which on z-scored features lies near the paper's 0.001.

    Without neighbours the integer program is solved exactly by choosing one sample for every
    class by an assignment problem (Σ of what each loses against its cheapest column) and
    leaving all other samples to their cheapest column. With neighbours, columns that can
    be no part of a solution are struck out first. The products ``x_ct x_c't'`` are linearised
    by their margins, which has the same solutions as the paper's bound on their sum and a
    tighter relaxation: the first linear program mostly solves it.

    References
    ----------
    .. [1] P. Panareda Busto, J. Gall, "Open Set Domain Adaptation", ICCV 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from froda.baselines import ATI
    >>> rng = np.random.default_rng(0)
    >>> centres = 4 * rng.normal(size=(3, 20))  # the third class is in the target alone
    >>> y = np.repeat([0, 1], 40)
    >>> X = centres[y] + rng.normal(size=(80, 20))
    >>> y_target = np.repeat([0, 1, 2], 40)
    >>> X_target = centres[y_target] + rng.normal(size=(120, 20)) + 0.5
    >>> model = ATI().fit(X, y, X_target)
    >>> sorted(set(model.predict(X_target).tolist()))
    [-1, 0, 1]
    """

    def __init__(
        self,
        variant: str = "lambda",
        *,
        max_iter: int = 6,
        tol: float = 0.01,
        ridge: float = 1e-3,
        time_limit: float = 120.0,
        row_sum: bool = True,
        zscore: bool = True,
        unit_norm: bool = False,
        pca_variance: float | None = 0.99,
        rejection: float = 0.05,
        unknown_label: Any = None,
    ) -> None:
        super().__init__(
            row_sum=row_sum,
            zscore=zscore,
            unit_norm=unit_norm,
            pca_variance=pca_variance,
            rejection=rejection,
            unknown_label=unknown_label,
        )
        self.variant = variant
        self.max_iter = max_iter
        self.tol = tol
        self.ridge = ridge
        self.time_limit = time_limit

    def _check_settings(self) -> None:
        super()._check_settings()
        check_choice("variant", self.variant, VARIANTS)
        check_count("max_iter", self.max_iter)
        check_positive("tol", self.tol, zero=True)
        check_positive("ridge", self.ridge)
        check_positive("time_limit", self.time_limit)

    def _align(self, source: Array, numbers: Array, target: Array) -> Array:
        goal = target.astype(np.float64, copy=False)
        means = class_means(source, numbers)
        if len(goal) < len(means):
            raise ValueError(
                f"X_target has {len(goal)} rows, but ATI assigns at least one to each of the "
                f"{len(means)} classes of the source: give more target samples."
            )
        neighbours = nearest_neighbours(goal, _N_NEIGHBOURS[self.variant])
        transform = np.eye(source.shape[1])
        deadline = time.monotonic() + self.time_limit
        previous: Assignment | None = None
        self.objective_: list[float] = []
        self.time_limit_reached_ = False
        self.stop_reason_ = MAX_ITER
        for _ in range(self.max_iter):
            mapped = means @ transform
            costs = cdist(goal, mapped, "sqeuclidean")
            self.lam_ = np.inf
            if self.variant != "plain":
                self.lam_ = float(costs.max() + costs.min()) / 2
                costs = np.column_stack([costs, np.full(len(costs), self.lam_)])
            pairs = cdist(mapped, mapped, "sqeuclidean")
            found = assign(costs, len(means), pairs, neighbours, deadline - time.monotonic())
            self.objective_.append(found.value)
            self.time_limit_reached_ |= not found.is_optimal
            if previous is not None and np.array_equal(found.columns, previous.columns):
                self.stop_reason_ = SETTLED
                break
            left, right = map_means(mapped, found.columns, goal, self.ridge)
            transform += (transform @ left) @ right
            if previous is not None and (
                abs(previous.value - found.value) < self.tol * abs(previous.value)
            ):
                self.stop_reason_ = SMALL_CHANGE
                break
            previous = found
        self.n_iter_ = len(self.objective_)
        self.assignment_ = self.classes_[np.minimum(found.columns, self.n_known_)]
        self.transform_ = transform.astype(source.dtype, copy=False)
        if self.time_limit_reached_:
            warnings.warn(
                f"ATI reached its time_limit of {self.time_limit:g} s: an assignment is the "
                "best one found, not a proven optimum. Raise time_limit, or use "
                "variant='lambda', which needs no mixed-integer program.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return source @ self.transform_


@dataclass(frozen=True)
class Assignment:
    """Column of each sample, what they cost together, and whether that is proven least."""

    columns: Array
    value: float
    is_optimal: bool


@dataclass(frozen=True)
class Graph:
    """Samples as nodes: cost of each column, joined by edges with a cost of each column pair."""

    costs: Array  # n × M
    pairs: Array  # M × M, symmetric
    edges: Array  # E × 2, each pair of nodes once
    weights: Array  # E, how often the pair counts

    def value(self, columns: Array) -> float:
        """Return the cost of an assignment."""
        single = self.costs[np.arange(len(columns)), columns].sum()
        first, second = columns[self.edges].T
        return float(single + self.weights @ self.pairs[first, second])

    def both_ways(self) -> tuple[Array, Array, Array]:
        """Return each edge from both of its ends: from, to, weight."""
        start, end = self.edges.T
        weights = np.concatenate([self.weights, self.weights])
        return np.concatenate([start, end]), np.concatenate([end, start]), weights


def class_means(features: Array, numbers: Array) -> Array:
    """Return the mean of each class that occurs, in the order of the numbers."""
    found = [features[numbers == c].mean(axis=0, dtype=np.float64) for c in np.unique(numbers)]
    return np.stack(found)


def nearest_neighbours(features: Array, n_neighbours: int) -> Array:
    """Return the other rows nearest to each row, n × min(n_neighbours, n - 1)."""
    n_neighbours = min(n_neighbours, len(features) - 1)
    if n_neighbours == 0:
        return np.empty((len(features), 0), dtype=np.intp)
    search = NearestNeighbors(n_neighbors=n_neighbours, algorithm="brute").fit(features)
    found: Array = search.kneighbors(return_distance=False)
    return found


def _square(rows: Array) -> float:
    """Return the mean square norm of rows."""
    return float(np.einsum("ij,ij->", rows, rows)) / len(rows)


def map_means(means: Array, columns: Array, target: Array, ridge: float) -> tuple[Array, Array]:
    """Return the D × K and K × D factors of A - I for the map A of the means.

    A minimises Σ_c n_c |s_c A - t̄_c|² + ρ |A - I|², which differs by a constant from the sum
    over the n_c samples assigned to each class. With S the means and Δ = t̄ - s, both
    with rows times √n_c, A - I = Sᵀ (S Sᵀ + ρ I)⁻¹ Δ. ρ is relative to the means, but where
    these are nothing but rounding (classes that do not differ) to the target.
    """
    n_classes = len(means)
    counts = np.bincount(columns, minlength=n_classes)[:n_classes]
    goals = np.stack([target[columns == c].mean(axis=0) for c in range(n_classes)])
    roots = np.sqrt(counts)[:, None]
    gram = (roots * means) @ (roots * means).T
    weight = ridge * max(np.trace(gram) / n_classes, _NO_MEANS * counts.sum() * _square(target))
    right = solve(gram + weight * np.eye(n_classes), roots * (goals - means), assume_a="pos")
    return (roots * means).T, right


def assign(
    costs: Array, n_classes: int, pairs: Array, neighbours: Array, time_limit: float
) -> Assignment:
    """Assign every sample to a column at least cost, the first columns all being taken.

    ``costs`` has a column for each class and may have one more, which need not be taken and
    costs nothing beside any neighbour. ``pairs`` is n_classes × n_classes.
    """
    if neighbours.shape[1] == 0:
        columns = assign_alone(costs, n_classes)
        return Assignment(columns, float(costs[np.arange(len(costs)), columns].sum()), True)
    graph = make_graph(costs, pairs, neighbours)
    return assign_together(graph, n_classes, time.monotonic() + time_limit)


def assign_alone(costs: Array, n_classes: int) -> Array:
    """Assign without neighbour terms.

    Any assignment that takes every class contains one sample of its own for each. What it
    costs is at least Σ of the cheapest columns plus what these samples lose against theirs,
    and the best choice of these samples attains that.
    """
    columns = costs.argmin(axis=1)
    if not takes_all(columns, n_classes):
        losses = costs[:, :n_classes] - costs.min(axis=1, keepdims=True)
        samples, classes = linear_sum_assignment(losses)
        columns[samples] = classes
    return columns


def make_graph(costs: Array, pairs: Array, neighbours: Array) -> Graph:
    """Join each sample with its neighbours; pairs that are each other's count twice."""
    n_columns = costs.shape[1]
    padded = np.zeros((n_columns, n_columns))
    padded[: len(pairs), : len(pairs)] = pairs
    ends = np.stack([np.repeat(np.arange(len(costs)), neighbours.shape[1]), neighbours.ravel()])
    edges, weights = np.unique(np.sort(ends, axis=0), axis=1, return_counts=True)
    return Graph(costs, padded, edges.T, weights.astype(np.float64))


def assign_together(graph: Graph, n_classes: int, deadline: float) -> Assignment:
    """Assign with neighbour terms.

    First without the demand that every class is taken, which leaves few columns; if the
    result takes them all nevertheless, it is the solution.
    """
    candidates = strike_out(graph)
    found, is_optimal = solve_program(graph, candidates, deadline - time.monotonic())
    if found is not None and not takes_all(found, n_classes):
        everything = np.ones(graph.costs.shape, dtype=bool)
        left = deadline - time.monotonic()
        found, is_optimal = solve_program(graph, everything, left, n_classes)
    if found is None or not is_optimal:
        fallback = descend(graph, assign_alone(graph.costs, n_classes), n_classes)
        if found is None or graph.value(fallback) < graph.value(found):
            found = fallback
    return Assignment(found, graph.value(found), is_optimal)


def takes_all(columns: Array, n_classes: int) -> bool:
    """Return whether each of the first columns is taken by some sample."""
    return bool(np.bincount(columns, minlength=n_classes)[:n_classes].all())


def strike_out(graph: Graph) -> Array:
    """Return which columns of each sample may be part of a solution.

    Column a of a sample is struck out when another of its columns is cheaper whatever the
    columns of its neighbours are (Goldstein's criterion), until nothing more falls.
    """
    slack = 1e-9 * max(float(np.abs(graph.costs).max()), float(graph.pairs.max()))
    starts, ends, weights = graph.both_ways()
    n_columns = graph.costs.shape[1]
    candidates = np.ones(graph.costs.shape, dtype=bool)
    while True:
        least = np.full((len(starts), n_columns, n_columns), np.inf)
        for column in range(n_columns):
            rises = graph.pairs[:, None, column] - graph.pairs[None, :, column]
            open_ends = candidates[ends, column]
            least[open_ends] = np.minimum(least[open_ends], rises)
        rise = graph.costs[:, :, None] - graph.costs[:, None, :]
        np.add.at(rise, starts, weights[:, None, None] * least)
        beaten = (rise > slack) & candidates[:, None, :]
        kept = candidates & ~beaten.any(axis=2)
        if np.array_equal(kept, candidates):
            return candidates
        candidates = kept


def solve_program(
    graph: Graph, candidates: Array, time_limit: float, n_required: int = 0
) -> tuple[Array | None, bool]:
    """Solve the mixed-integer program: the columns found, if any, and whether they are optimal.

    Binary x_ia says that sample i takes column a; y_eac >= 0 stands for x_ia x_jc on an edge
    e = (i, j), by its margins Σ_c y_eac = x_ia and Σ_a y_eac = x_jc. The first ``n_required``
    columns must be taken.
    """
    if time_limit <= 0:
        return None, False
    choices, margins = _linearise(graph, candidates)
    samples, columns = np.nonzero(candidates)
    n_choices, n_products = len(samples), margins.shape[1] - len(samples)
    required = columns < n_required
    takers = csr_array(
        (np.ones(required.sum()), (columns[required], np.flatnonzero(required))),
        shape=(n_required, n_choices + n_products),
    )
    one_each = csr_array(
        (np.ones(n_choices), (samples, np.arange(n_choices))),
        shape=(len(candidates), n_choices + n_products),
    )
    constraints = [LinearConstraint(one_each, 1, 1), LinearConstraint(margins, 0, 0)]
    if n_required:
        constraints.append(LinearConstraint(takers, 1, np.inf))
    scale = max(float(choices.max()), np.finfo(float).tiny)
    result = milp(
        choices / scale,
        integrality=np.arange(len(choices)) < n_choices,
        bounds=Bounds(0, 1),
        constraints=constraints,
        options={"time_limit": time_limit, "mip_rel_gap": 0.0},
    )
    if result.x is None:
        return None, False
    chosen = np.full(candidates.shape, -np.inf)
    chosen[candidates] = result.x[:n_choices]
    return chosen.argmax(axis=1), bool(result.status == 0)


def _linearise(graph: Graph, candidates: Array) -> tuple[Array, Any]:
    """Return the costs of all x and y, and the matrix of the margins, y minus x."""
    places = np.cumsum(candidates.ravel()).reshape(candidates.shape) - 1
    n_choices = int(candidates.sum())
    first, second = graph.edges.T
    edge, a, c = np.nonzero(candidates[first][:, :, None] & candidates[second][:, None, :])
    n_columns = candidates.shape[1]
    ends = np.concatenate([edge * n_columns + a, (edge + len(first)) * n_columns + c])
    found, kept, rows = np.unique(ends, return_index=True, return_inverse=True)
    choices = np.concatenate([places[first[edge], a], places[second[edge], c]])[kept]
    products = np.tile(n_choices + np.arange(len(edge)), 2)
    values = np.concatenate([np.ones(len(rows)), np.full(len(found), -1.0)])
    where = (
        np.concatenate([rows, np.arange(len(found))]),
        np.concatenate([products, choices]),
    )
    margins = csr_array((values, where), shape=(len(found), n_choices + len(edge)))
    product_costs = graph.weights[edge] * graph.pairs[a, c]
    return np.concatenate([graph.costs[candidates], product_costs]), margins


def descend(graph: Graph, columns: Array, n_classes: int) -> Array:
    """Give each sample in turn its best column until none changes; no class is left empty."""
    columns = columns.copy()
    n_samples, n_columns = graph.costs.shape
    starts, ends, weights = graph.both_ways()
    order = np.argsort(starts, kind="stable")
    ends, weights = ends[order], weights[order]
    edges = np.searchsorted(starts[order], np.arange(n_samples + 1))
    counts = np.bincount(columns, minlength=n_columns)
    is_moving = True
    while is_moving:
        is_moving = False
        for i in range(n_samples):
            old = columns[i]
            if old < n_classes and counts[old] == 1:
                continue
            near = slice(edges[i], edges[i + 1])
            costs = graph.costs[i] + weights[near] @ graph.pairs[columns[ends[near]]]
            new = costs.argmin()
            if costs[new] < costs[old]:
                columns[i] = new
                counts[old] -= 1
                counts[new] += 1
                is_moving = True
    return columns
