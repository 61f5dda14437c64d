"""The objective: three ways to the same number."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from froda.factorization import alternate, objective
from froda.factorization.initialize import from_source_axes
from froda.factorization.problem import Factors, Problem, Stats

from . import reference


def random_factors(rng, problem, d=3, d_u=2):
    """Return factors that solve nothing."""
    n_features = problem.Xs.shape[1]
    width = d + (d_u if problem.has_source_private else 0)
    return Factors(
        rng.standard_normal((n_features, d)),
        rng.standard_normal((n_features, d_u)),
        rng.standard_normal((len(problem.Xt), d + d_u)),
        rng.standard_normal((len(problem.Xs), width)),
        None if problem.Y is None else rng.standard_normal((problem.Y.shape[1], width)),
        rng.standard_normal((n_features, d_u)) if problem.has_source_private else None,
    )


@pytest.mark.parametrize("method", reference.METHODS)
def test_evaluate_directly_is_the_objective_of_the_paper(rng, seed, method):
    problem, _ = reference.random_problem(seed, method, "per_column")
    factors = random_factors(rng, problem)
    terms = reference.objective_terms(problem, factors)
    assert objective.evaluate_directly(problem, factors) == pytest.approx(
        sum(terms.values()), rel=1e-13
    )


@pytest.mark.parametrize("method", reference.METHODS)
def test_terms_from_sums_alone(rng, seed, method):
    problem, _ = reference.random_problem(seed, method, "per_column")
    factors = random_factors(rng, problem)
    expected = reference.objective_terms(problem, factors)
    B, A = factors.target_basis, factors.source_basis
    target = Stats.of(problem.Xt, factors.T)
    source = Stats.of(problem.Xs, factors.S, problem.Y)
    fit = objective.fit_term(problem.target_square_norm, target, B, B.T @ B)
    assert fit == pytest.approx(expected["target"], rel=1e-12)
    fit = objective.fit_term(problem.source_square_norm, source, A, A.T @ A)
    assert problem.alpha * fit == pytest.approx(expected["source"], rel=1e-12)
    labels = objective.label_term(problem, source, factors.W)
    assert labels == pytest.approx(expected.get("labels", 0.0), rel=1e-12)


def test_terms_add_up():
    assert objective.Terms(1.0, 2.0, 4.0, 8.0, 16.0).total == 31.0


@pytest.mark.parametrize("constraint", reference.LIMITS)
@pytest.mark.parametrize("method", reference.METHODS)
def test_every_term_stays_right_along_the_way(seed, method, constraint):
    """After every single block, from whatever that block thought worth updating."""
    problem, axes = reference.random_problem(4 * seed, method, constraint)
    state = alternate.start(problem, from_source_axes(problem, axes))
    for _ in range(3):
        for _, block in alternate.blocks(problem):
            state = block(problem, state)
            expected = reference.objective_terms(problem, state.factors)
            size = reference.rounding_size(problem, state.factors)
            found = {
                "target": state.terms.target_fit,
                "target_penalty": state.terms.target_penalty,
                "source": state.terms.source_fit,
                "source_penalty": state.terms.source_penalty,
                "labels": state.terms.label_fit,
            }
            for name, value in found.items():
                assert value == pytest.approx(expected.get(name, 0.0), abs=1e-13 * size)
            B, A = state.factors.target_basis, state.factors.source_basis
            np.testing.assert_allclose(state.target_gram, B.T @ B, atol=1e-14)
            np.testing.assert_allclose(state.source_gram, A.T @ A, atol=1e-14)


def test_without_labels_there_is_no_label_term(rng, seed):
    problem, _ = reference.random_problem(seed, "dfroda", "per_column")
    factors = random_factors(rng, problem)
    stats = Stats.of(problem.Xs, factors.S, problem.Y)
    assert objective.label_term(problem, stats, None) == 0
    assert objective.label_term(replace(problem, Y=None), stats, factors.W) == 0
    assert isinstance(problem, Problem)
