"""Source codes without a penalty: least squares on the stack of features and labels."""

from __future__ import annotations

import numpy as np
import pytest

from froda.factorization import source
from froda.factorization.problem import Problem


@pytest.fixture
def parts(rng):
    """A problem, a basis and a classifier of random numbers."""
    Xs, Xt = rng.standard_normal((20, 9)), rng.standard_normal((15, 9))
    Y = np.eye(3)[rng.integers(0, 3, 20)]
    problem = Problem(Xs, Xt, alpha=0.3, lam=1.0, Y=Y, beta=2.0)
    return problem, rng.standard_normal((9, 4)), rng.standard_normal((3, 4))


def stack(problem, V, W):
    """Return the stacked basis and the stacked data as design.md writes them."""
    if W is None:
        return np.sqrt(problem.alpha) * V, np.sqrt(problem.alpha) * problem.Xs
    basis = np.vstack([np.sqrt(problem.alpha) * V, np.sqrt(problem.beta) * W])
    data = np.hstack([np.sqrt(problem.alpha) * problem.Xs, np.sqrt(problem.beta) * problem.Y])
    return basis, data


@pytest.mark.parametrize("has_labels", [True, False])
def test_codes_are_least_squares_on_the_stack(parts, has_labels):
    problem, V, W = parts
    W = W if has_labels else None
    basis, data = stack(problem, V, W)
    gram = source.stacked_gram(problem, V.T @ V, W)
    weights = None if W is None else problem.beta * W
    cross = source.stacked_cross(problem.alpha, problem.Xs @ V, weights, problem.Y)
    np.testing.assert_allclose(gram, basis.T @ basis, rtol=1e-12)
    np.testing.assert_allclose(cross, data @ basis, rtol=1e-10, atol=1e-12)
    S = source.update(source.prepare(gram), cross)
    np.testing.assert_allclose(S, np.linalg.lstsq(basis, data.T, rcond=None)[0].T, atol=1e-11)
    residual = (data - S @ basis.T) @ basis
    assert np.abs(residual).max() <= 1e-11 * np.abs(data @ basis).max()
    assert source.distance(gram, cross, S) <= 1e-12
    assert source.distance(gram, cross, 1.001 * S) == pytest.approx(1e-3, rel=1e-6)


def test_singular_stack_keeps_what_it_cannot_see(parts, rng):
    problem, V, _ = parts
    V[:, 3] = V[:, 0]
    current = rng.standard_normal((20, 4))
    gram = source.stacked_gram(problem, V.T @ V, None)
    cross = source.stacked_cross(problem.alpha, problem.Xs @ V, None, None)
    S = source.update(source.prepare(gram), cross, current)
    assert source.distance(gram, cross, S) <= 1e-11
    unseen = np.array([1.0, 0, 0, -1.0])
    np.testing.assert_allclose(S @ unseen, current @ unseen, atol=1e-12)


def test_inputs_are_not_written_to(parts):
    problem, V, W = parts
    gram, cross = V.T @ V, problem.Xs @ V
    for array in (gram, cross, W, problem.Y, problem.Xs):
        array.flags.writeable = False
    prepared = source.prepare(source.stacked_gram(problem, gram, W))
    source.update(prepared, source.stacked_cross(problem.alpha, cross, problem.beta * W, problem.Y))
