"""Planted truth: data drawn from the model at the paper's size come back as they were drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from froda import openset
from froda.factorization import alternate, codes
from froda.factorization.initialize import StartingPoint, from_source_axes, truncated_complement
from froda.factorization.problem import Array, Problem, Solution

from . import reference

N_SOURCE, N_TARGET, N_FEATURES, WIDTH, N_CLASSES = 500, 750, 700, 40, 5
NOISE = 0.3  # norm of a row's noise relative to that of its signal


@dataclass(frozen=True)
class Planted:
    """A problem with its truth."""

    problem: Problem
    V: Array
    U: Array
    is_unknown: Array

    def expected_angle(self, n_rows: int) -> float:
        """Bound the angle, in degrees, that noise puts between a subspace and its estimate.

        Rows of signal G ∈ R^(n × d) with unit entries have σ_min(G) >= √n - √d, the noise
        inside and outside the subspace at most sd (√D + √d): tan(angle) is their ratio.
        """
        spread = NOISE * np.sqrt(WIDTH / N_FEATURES)
        noise = spread * (np.sqrt(N_FEATURES) + np.sqrt(WIDTH))
        return float(np.rad2deg(np.arctan(noise / (np.sqrt(n_rows) - np.sqrt(WIDTH)))))


@pytest.fixture(params=["froda", "dfroda"])
def planted(request, seed) -> Planted:
    """Known target samples lie in V, unknown ones (two in five) in U, all with noise."""
    rng = np.random.default_rng([seed, 22])
    frame = np.linalg.qr(rng.standard_normal((N_FEATURES, 2 * WIDTH)))[0]
    is_unknown = rng.random(N_TARGET) < 0.4
    S, T = rng.standard_normal((N_SOURCE, WIDTH)), rng.standard_normal((N_TARGET, 2 * WIDTH))
    T[is_unknown, :WIDTH] = 0
    T[~is_unknown, WIDTH:] = 0
    spread = NOISE * np.sqrt(WIDTH / N_FEATURES)
    Xs = S @ frame[:, :WIDTH].T + spread * rng.standard_normal((N_SOURCE, N_FEATURES))
    Xt = T @ frame.T + spread * rng.standard_normal((N_TARGET, N_FEATURES))
    Y = np.eye(N_CLASSES)[S[:, :N_CLASSES].argmax(axis=1)] if request.param == "dfroda" else None
    lam = 0.4 * float(np.sqrt((Xt**2).sum(axis=1).mean()))
    problem = Problem(Xs, Xt, 1.0, lam, Y, 0.0 if Y is None else 1.0)
    return Planted(problem, frame[:, :WIDTH], frame[:, WIDTH:], is_unknown)


def judge(problem: Problem, solution: Solution) -> openset.Verdict:
    factors = solution.factors
    basis = factors.target_basis
    prepared = codes.prepare(basis.T @ basis, factors.target_widths, problem.lam)
    return openset.judge(prepared, problem.Xt @ basis, factors.T, 0.2)


def auroc(score: Array, is_unknown: Array) -> float:
    """Return the share of pairs in the right order, ties counting half."""
    difference = score[is_unknown][:, None] - score[~is_unknown][None, :]
    return float(((difference > 0) + 0.5 * (difference == 0)).mean())


def largest_angle(truth: Array, found: Array) -> float:
    return float(np.rad2deg(subspace_angles(truth, found)[0]))


def test_truth_comes_back_from_the_source_axes(planted):
    problem = planted.problem
    point = from_source_axes(problem, reference.source_axes(problem.Xs, WIDTH))
    check(planted, alternate.solve(problem, point, max_iter=3, tol=0))


def test_truth_comes_back_from_a_start_that_is_far_off(planted, rng):
    """V starts more than 45 degrees away, so that it is the updates that find it."""
    tilted = planted.V + rng.standard_normal(planted.V.shape) / np.sqrt(N_FEATURES)
    V = np.linalg.qr(tilted)[0]
    assert largest_angle(planted.V, V) > 45
    point = StartingPoint(V, truncated_complement(V, WIDTH))
    check(planted, alternate.solve(planted.problem, point, max_iter=3, tol=0))


def check(planted: Planted, solution: Solution) -> None:
    """Demand both subspaces, the ranking and the decisions."""
    n_unknown = int(planted.is_unknown.sum())
    n_known = N_SOURCE + N_TARGET - n_unknown
    assert largest_angle(planted.V, solution.factors.V) <= planted.expected_angle(n_known)
    assert largest_angle(planted.U, solution.factors.U) <= planted.expected_angle(n_unknown)
    verdict = judge(planted.problem, solution)
    assert auroc(verdict.score, planted.is_unknown) >= 0.999
    assert np.mean(verdict.is_unknown == planted.is_unknown) >= 0.99
