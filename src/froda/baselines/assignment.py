"""ATI's assignment: every sample to a column, every class taken, neighbours costing together."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import Bounds as VariableBounds
from scipy.optimize import LinearConstraint, linear_sum_assignment, milp
from scipy.sparse import csr_array
from sklearn.neighbors import NearestNeighbors

from froda.factorization.problem import Array

_SLACK = 1e-9  # relative: what rounding makes of a bound
_TOLERANCE = 1e-7  # relative rise of a bound that is worth another look
_PASSES = 10  # forth and back before the bounds are looked at
_MOST_PASSES = 1000
_FIRST = 1e-3  # share of the gap to the first guess within which columns are tried first


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

    def costs_given(self, columns: Array) -> Array:
        """Return the cost of each column of each sample, the others having these columns."""
        starts, ends, weights = self.both_ways()
        costs = self.costs.copy()
        np.add.at(costs, starts, weights[:, None] * self.pairs[columns[ends]])
        return costs

    def both_ways(self) -> tuple[Array, Array, Array]:
        """Return each edge from both of its ends: from, to, weight."""
        start, end = self.edges.T
        weights = np.concatenate([self.weights, self.weights])
        return np.concatenate([start, end]), np.concatenate([end, start]), weights


def nearest_neighbours(features: Array, n_neighbours: int) -> Array:
    """Return the other rows nearest to each row, n × min(n_neighbours, n - 1)."""
    n_neighbours = min(n_neighbours, len(features) - 1)
    if n_neighbours == 0:
        return np.empty((len(features), 0), dtype=np.intp)
    search = NearestNeighbors(n_neighbors=n_neighbours, algorithm="brute").fit(features)
    found: Array = search.kneighbors(return_distance=False)
    return found


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

    Lower bounds say what every assignment costs at least in which a sample has a column. A
    mixed-integer program chooses among the columns with the lowest ones. Its result is the
    solution unless a column that it was not given has a bound below it; then it chooses once
    more, among all columns with a bound below.
    """
    best = descend(graph, assign_alone(graph.costs, n_classes), n_classes)
    bounds = np.zeros(graph.costs.shape)
    for beliefs, bounds in ascend(graph, deadline):  # noqa: B007 - the last is used
        guess = complete(graph, beliefs.argmin(axis=1), n_classes)
        best = min(best, guess, key=graph.value)
    least = float(bounds.min())
    room = _FIRST * (graph.value(best) - least)
    while True:
        slack = _SLACK * abs(graph.value(best))
        candidates = bounds <= least + room + slack
        candidates[np.arange(len(best)), best] = True
        left = deadline - time.monotonic()
        found, is_optimal = solve_program(graph, candidates, n_classes, left)
        if found is not None and takes_all(found, n_classes):
            best = min(best, found, key=graph.value)
        gap = graph.value(best) - least
        if not is_optimal or gap <= room + slack:
            return Assignment(best, graph.value(best), is_optimal)
        room = min(gap, 10 * room)


def takes_all(columns: Array, n_classes: int) -> bool:
    """Return whether each of the first columns is taken by some sample."""
    return bool(np.bincount(columns, minlength=n_classes)[:n_classes].all())


def complete(graph: Graph, columns: Array, n_classes: int) -> Array:
    """Move samples to the classes that are not taken, each where it costs least, then descend."""
    columns = columns.copy()
    counts = np.bincount(columns, minlength=graph.costs.shape[1])
    for label in np.flatnonzero(counts[:n_classes] == 0):
        costs = graph.costs_given(columns)
        losses = costs[:, label] - costs[np.arange(len(columns)), columns]
        losses[(columns < n_classes) & (counts[columns] == 1)] = np.inf
        sample = losses.argmin()
        counts[columns[sample]] -= 1
        counts[label] += 1
        columns[sample] = label
    return descend(graph, columns, n_classes)


def ascend(graph: Graph, deadline: float) -> Iterator[tuple[Array, Array]]:
    """Raise lower bounds by messages between neighbours (sequential tree-reweighted ones).

    The sum of all costs is not changed by what an edge gives to the costs of its two ends, its
    messages m: costs_i + Σ m_ji, and pairs - m_ij - m_ji on the edge. The least entries of all
    of these together are a bound, which rises as each sample in turn takes what its edges can
    give and shares the sum among the edges to the samples after it. Samples that are not
    joined take their turn together. Ends when the bound rises no more.
    """
    colours = colour(graph)
    starts, ends, weights = graph.both_ways()  # a message goes from start to end
    n_edges = len(graph.edges)
    back = np.roll(np.arange(2 * n_edges), n_edges)
    messages = np.zeros((2 * n_edges, graph.costs.shape[1]))
    beliefs = graph.costs.copy()
    is_later = colours[starts] > colours[ends]
    n_later, n_earlier = (
        np.bincount(ends[mask], minlength=len(beliefs)) for mask in (is_later, ~is_later)
    )
    share = 1 / np.maximum(np.maximum(n_later, n_earlier), 1)
    turns = [np.flatnonzero(colours[ends] == turn) for turn in range(colours.max() + 1)]

    def gather(edges: Array) -> Array:
        """Return the most that edges can give to each column of their ends."""
        together = weights[edges, None, None] * graph.pairs - messages[back[edges], None, :]
        given: Array = together.min(axis=2)
        return given

    last, every = -np.inf, np.arange(2 * n_edges)
    bounds = np.full(beliefs.shape, -np.inf)
    for number in range(_MOST_PASSES):
        for order, is_next in ((turns, is_later), (turns[::-1], ~is_later)):
            for edges in order:
                nodes = np.unique(ends[edges])
                messages[edges] = gather(edges)
                beliefs[nodes] = graph.costs[nodes]
                np.add.at(beliefs, ends[edges], messages[edges])
                excess = beliefs[nodes] - beliefs[nodes].min(axis=1, keepdims=True)
                bounds[nodes] = np.maximum(bounds[nodes], last + excess)
                onward = edges[is_next[edges]]
                passed = share[ends[onward], None] * beliefs[ends[onward]]
                messages[onward] -= passed
                np.subtract.at(beliefs, ends[onward], passed)
        if number % _PASSES == _PASSES - 1:
            spare = gather(every) - messages
            least = spare.min(axis=1)
            total = beliefs.min(axis=1).sum() + least[:n_edges].sum()
            excess = beliefs - beliefs.min(axis=1, keepdims=True)
            np.add.at(excess, ends, spare - least[:, None])
            bounds = np.maximum(bounds, total + excess)
            yield beliefs, bounds
            has_risen = total - last > _TOLERANCE * abs(total)
            if not has_risen or time.monotonic() > deadline:
                return
            last = total


def colour(graph: Graph) -> Array:
    """Give joined samples different numbers, few in all: the most joined first."""
    starts, ends, _ = graph.both_ways()
    order = np.argsort(starts, kind="stable")
    near = np.split(ends[order], np.cumsum(np.bincount(starts, minlength=len(graph.costs)))[:-1])
    colours = np.full(len(graph.costs), -1)
    for sample in np.argsort([-len(others) for others in near], kind="stable"):
        taken = set(colours[near[sample]].tolist())
        colours[sample] = next(number for number in range(len(taken) + 1) if number not in taken)
    return colours


def solve_program(
    graph: Graph, candidates: Array, n_classes: int, time_limit: float
) -> tuple[Array | None, bool]:
    """Solve the mixed-integer program: the columns found, if any, and whether they are optimal.

    Binary x_ia says that sample i takes column a; y_eac >= 0 stands for x_ia x_jc on an edge
    e = (i, j), by its margins Σ_c y_eac = x_ia and Σ_a y_eac = x_jc. Every class must be taken.
    """
    if time_limit <= 0:
        return None, False
    choices, margins = _linearise(graph, candidates)
    samples, columns = np.nonzero(candidates)
    n_choices, n_products = len(samples), margins.shape[1] - len(samples)
    takes_class = columns < n_classes
    takers = csr_array(
        (np.ones(takes_class.sum()), (columns[takes_class], np.flatnonzero(takes_class))),
        shape=(n_classes, n_choices + n_products),
    )
    one_each = csr_array(
        (np.ones(n_choices), (samples, np.arange(n_choices))),
        shape=(len(candidates), n_choices + n_products),
    )
    constraints = [
        LinearConstraint(one_each, 1, 1),
        LinearConstraint(margins, 0, 0),
        LinearConstraint(takers, 1, np.inf),
    ]
    scale = max(float(choices.max()), np.finfo(float).tiny)
    result = milp(
        choices / scale,
        integrality=np.arange(len(choices)) < n_choices,
        bounds=VariableBounds(0, 1),
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
