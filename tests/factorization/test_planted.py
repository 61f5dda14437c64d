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
    is_unknown_source: Array
    U2: Array

    def expected_angle(self, n_rows: int) -> float:
        """Bound the angle, in degrees, that noise puts between a subspace and its estimate.

        Rows of signal G ∈ R^(n × d) with unit entries have σ_min(G) >= √n - √d, the noise
        inside and outside the subspace at most sd (√D + √d): tan(angle) is their ratio.
        """
        spread = NOISE * np.sqrt(WIDTH / N_FEATURES)
        noise = spread * (np.sqrt(N_FEATURES) + np.sqrt(WIDTH))
        return float(np.rad2deg(np.arctan(noise / (np.sqrt(n_rows) - np.sqrt(WIDTH)))))


@pytest.fixture(params=["froda", "dfroda", "dfrodau"])
def planted(request, seed) -> Planted:
    """Known samples lie in V, unknown ones (two in five) in U or, of the source, in U2, with noise.

    Only D-FRODA-U is given unknown source samples.
    """
    rng = np.random.default_rng([seed, 22])
    V, U, U2 = np.split(np.linalg.qr(rng.standard_normal((N_FEATURES, 3 * WIDTH)))[0], 3, axis=1)
    has_private = request.param == "dfrodau"
    is_unknown = rng.random(N_TARGET) < 0.4
    is_unknown_source = (rng.random(N_SOURCE) < 0.4) & has_private
    S, T = rng.standard_normal((N_SOURCE, WIDTH)), rng.standard_normal((N_TARGET, WIDTH))
    spread = NOISE * np.sqrt(WIDTH / N_FEATURES)
    Xs = np.where(is_unknown_source[:, None], S @ U2.T, S @ V.T)
    Xt = np.where(is_unknown[:, None], T @ U.T, T @ V.T)
    Xs = Xs + spread * rng.standard_normal(Xs.shape)
    Xt = Xt + spread * rng.standard_normal(Xt.shape)
    numbers = np.where(is_unknown_source, N_CLASSES, S[:, :N_CLASSES].argmax(axis=1))
    Y = None if request.param == "froda" else np.eye(N_CLASSES + has_private)[numbers]
    lam, lam_source = (0.4 * float(np.sqrt((X**2).sum(axis=1).mean())) for X in (Xt, Xs))
    beta = 0.0 if Y is None else 1.0
    problem = Problem(Xs, Xt, 1.0, lam, Y, beta, lam_source if has_private else 0.0, has_private)
    return Planted(problem, V, U, is_unknown, is_unknown_source, U2)


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
    known = problem.Xs[~planted.is_unknown_source]
    point = from_source_axes(problem, reference.source_axes(known, WIDTH))
    check(planted, alternate.solve(problem, point, max_iter=3, tol=0))


@pytest.mark.parametrize("planted", ["froda", "dfroda"], indirect=True)
def test_truth_comes_back_from_a_start_that_is_far_off(planted, rng):
    """V starts more than 45 degrees away, so that it is the updates that find it."""
    tilted = planted.V + 1.3 * rng.standard_normal(planted.V.shape) / np.sqrt(N_FEATURES)
    V = np.linalg.qr(tilted)[0]
    assert largest_angle(planted.V, V) > 45
    point = StartingPoint(V, truncated_complement(V, WIDTH))
    check(planted, alternate.solve(planted.problem, point, max_iter=6, tol=0))


def check(planted: Planted, solution: Solution) -> None:
    """Demand both subspaces, the ranking and the decisions."""
    n_unknown = int(planted.is_unknown.sum())
    n_unknown_source = int(planted.is_unknown_source.sum())
    n_known = N_SOURCE - n_unknown_source + N_TARGET - n_unknown
    assert largest_angle(planted.V, solution.factors.V) <= planted.expected_angle(n_known)
    assert largest_angle(planted.U, solution.factors.U) <= planted.expected_angle(n_unknown)
    if solution.factors.U2 is not None:
        # The label of the unknown class is constant, which codes around zero cannot fit, and W is
        # not limited: one direction of U2 is spent on tiny codes that carry it.
        angle = np.rad2deg(subspace_angles(planted.U2, solution.factors.U2)[1])
        assert angle <= planted.expected_angle(n_unknown_source)
        private = np.linalg.norm(solution.factors.S[:, WIDTH:], axis=1)
        assert auroc(private, planted.is_unknown_source) >= 0.999
    verdict = judge(planted.problem, solution)
    assert auroc(verdict.score, planted.is_unknown) >= 0.999
    assert np.mean(verdict.is_unknown == planted.is_unknown) >= 0.99
