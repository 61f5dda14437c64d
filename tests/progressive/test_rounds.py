"""Clusters, selection, centres and margins of the rounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from froda.progressive import rounds
from froda.projection import class_scatter, unit_rows


def test_decided_rows_are_the_least_doubtful_of_each_group(rng):
    groups, doubt = rng.integers(0, 4, size=200), rng.normal(size=200)
    chosen = rounds.decided(groups, doubt, 0.3)
    for group in range(4):
        members = groups == group
        assert chosen[members].sum() == np.ceil(0.3 * members.sum())
        assert doubt[members & chosen].max() <= doubt[members & ~chosen].min()
    assert rounds.decided(groups, doubt, 1.0).all()


def test_clusters_do_not_hang_on_the_order_of_rows(rng):
    rows = np.repeat(5 * rng.normal(size=(3, 4)), 20, axis=0) + rng.normal(size=(60, 4))
    order = rng.permutation(60)
    labels = rounds.cluster(rows, 3, 0)
    assert_array_equal(rounds.cluster(rows[order], 3, 0), labels[order])
    assert [len(set(labels[20 * k : 20 * (k + 1)])) for k in range(3)] == [1, 1, 1]
    assert set(rounds.cluster(rows[:7], 3, 0)) == {0}  # too few for more than one


def make_domains(rng, n=40, n_features=10):
    """Two known classes and two unknown ones, an honest classifier and honest flags."""
    centres = 4 * rng.normal(size=(4, n_features))
    numbers = np.repeat([0, 1], n)
    truth = np.repeat([0, 1, 2, 3], n)
    shift = 0.5 * rng.normal(size=n_features)
    source = unit_rows(centres[numbers] + rng.normal(size=(2 * n, n_features)))
    target = unit_rows(centres[truth] + rng.normal(size=(4 * n, n_features)) + shift)
    suspicion = (truth >= 2) + 0.1 * rng.normal(size=4 * n)
    nearest = np.where(truth < 2, truth, rng.integers(0, 2, size=4 * n))
    flagged = suspicion > 0.5
    zeros = np.zeros(4 * n)
    domains = rounds.Domains(source, numbers, target, 2, nearest, suspicion, flagged, zeros)
    return domains, truth


SETTINGS = rounds.Settings(n_rounds=5, n_directions=3, n_clusters=2, alpha=1.0, lean=0.0)


def test_planted_classes_and_clusters_are_found(rng):
    domains, truth = make_domains(rng)
    centres, labels = rounds.run(domains, SETTINGS, 0)
    assert_array_equal(np.minimum(labels, 2), np.minimum(truth, 2))
    assert len({*labels[truth == 2]}) == len({*labels[truth == 3]}) == 1
    assert_allclose(np.linalg.norm(centres.known, axis=1), 1)
    assert_allclose(np.linalg.norm(centres.unknown, axis=1), 1)
    _, margins = centres.margins(domains.target, domains.outside)
    assert_array_equal(margins > 0, truth >= 2)


def test_the_projection_solves_its_eigenproblem(rng):
    domains, truth = make_domains(rng)
    labels = np.where(truth < 2, truth, -1)
    everything = np.vstack([domains.source, domains.target])
    centres = rounds._learn(domains, everything, domains.numbers, labels, SETTINGS)
    between, within = class_scatter(everything, np.append(domains.numbers, labels), 1.0)
    gram = centres.projection.T @ within @ centres.projection
    assert_allclose(gram, np.eye(3), atol=1e-8)
    values = np.diag(centres.projection.T @ between @ centres.projection)
    top = np.sort(np.linalg.eigvals(np.linalg.solve(within, between)).real)[::-1][:3]
    assert_allclose(values, top, atol=1e-8)
    assert len(centres.unknown) == 0


def test_without_unknown_centres_nothing_is_unknown(rng):
    domains, truth = make_domains(rng)
    blind = rounds.Domains(
        domains.source,
        domains.numbers,
        domains.target,
        2,
        domains.nearest,
        domains.suspicion,
        np.zeros(len(truth), dtype=bool),
        domains.outside,
    )
    centres, labels = rounds.run(blind, SETTINGS, 0)
    assert set(labels) <= {0, 1}
    assert len(centres.unknown) == 0


def test_the_evidence_shifts_the_margins_by_its_weight(rng):
    domains, _ = make_domains(rng)
    centres, _ = rounds.run(domains, SETTINGS, 0)
    outside = rng.normal(size=len(domains.target))
    leaning = replace(centres, lean=0.25)
    plain = centres.margins(domains.target, outside)[1]
    assert_allclose(leaning.margins(domains.target, outside)[1], plain + 0.25 * outside)


def test_clusters_that_are_part_of_a_class_are_left_out():
    known = np.eye(4)[:2]
    near, far = unit_rows(np.array([[1.0, 0, 0.8, 0], [0.2, 0, 0, 1.0]]))
    both, loose, tight = np.stack([near, far]), np.full(2, 0.8), np.full(2, 0.99)

    def left(unknown, tightness, share=0.35):
        centres = rounds.Centres(np.eye(4), np.zeros(4), known, unknown, tightness)
        return rounds.keep_apart(centres, share).unknown

    assert_array_equal(left(both, loose), far[None])
    assert_array_equal(left(both, loose, share=0.9), both)
    assert_array_equal(left(both, tight), both)
    assert left(np.zeros((0, 4)), np.zeros(0)).shape == (0, 4)
