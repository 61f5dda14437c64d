"""Each loss against its definition, term by term."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from froda.baselines.deep import losses

WIDTHS = (0.5, 1.0, 3.0)


def tensor(array):
    return torch.tensor(array, dtype=torch.float64)


def softmax(scores):
    weights = np.exp(scores)
    return weights / weights.sum(axis=1, keepdims=True)


def brute_force_mmd(z, n_source, weights, widths):
    """Every pair by itself."""
    n = len(z)
    squares = [[float(((a - b) ** 2).sum()) for b in z] for a in z]
    scale = sum(squares[i][j] for i in range(n) for j in range(n) if i != j) / (n * (n - 1))

    def k(i, j):
        pairs = zip(weights, widths, strict=True)
        return sum(w * np.exp(-squares[i][j] / (width * scale)) for w, width in pairs)

    s, t = range(n_source), range(n_source, n)
    return (
        sum(k(i, j) for i in s for j in s) / len(s) ** 2
        + sum(k(i, j) for i in t for j in t) / len(t) ** 2
        - 2 * sum(k(i, j) for i in s for j in t) / (len(s) * len(t))
    )


def test_full_mmd_is_the_sum_over_all_pairs(rng):
    z, weights = rng.normal(size=(11, 3)), rng.random(3)
    found = losses.mmd_full((tensor(z),), 4, tensor(weights), WIDTHS)
    assert float(found) == pytest.approx(brute_force_mmd(z, 4, weights, WIDTHS), rel=1e-10)
    assert float(found) > 0


def test_full_mmd_of_fused_features_is_that_of_their_tensor_products(rng):
    f, c = rng.normal(size=(9, 4)), rng.normal(size=(9, 3))
    fused = np.stack([np.outer(a, b).ravel() for a, b in zip(f, c, strict=True)])
    found = losses.mmd_full((tensor(f), tensor(c)), 5, tensor([1.0]), (1.0,))
    assert float(found) == pytest.approx(brute_force_mmd(fused, 5, [1.0], (1.0,)), rel=1e-10)


def test_full_mmd_of_a_domain_with_itself_is_zero(rng):
    z = rng.normal(size=(6, 3))
    both = tensor(np.vstack([z, z]))
    assert abs(float(losses.mmd_full((both,), 6, tensor([0.5] * 3), WIDTHS))) < 1e-12


def test_gradient_of_the_full_mmd_is_that_of_the_sum_with_a_fixed_scale(rng):
    """The width follows the data but is a constant on the way back."""
    z, weights = rng.normal(size=(7, 2)), np.array([0.2, 0.3, 0.5])
    rows = tensor(z).requires_grad_()
    losses.mmd_full((rows,), 3, tensor(weights), WIDTHS).backward()
    squares = ((z[:, None] - z) ** 2).sum(axis=2)
    scale = squares.sum() / (7 * 6)
    contrast = np.where(np.arange(7) < 3, 1 / 3, -1 / 4)

    def value(flat):
        moved = flat.reshape(7, 2)
        distances = ((moved[:, None] - moved) ** 2).sum(axis=2)
        parts = (w * np.exp(-distances / (b * scale)) for w, b in zip(weights, WIDTHS, strict=True))
        return contrast @ sum(parts) @ contrast

    assert_allclose(rows.grad.numpy().ravel(), slopes(value, z.ravel()), atol=1e-8)


def slopes(function, point, step=1e-6):
    """Central differences."""
    return np.array(
        [
            (function(point + d) - function(point - d)) / (2 * step)
            for d in step * np.eye(len(point))
        ]
    )


def test_linear_terms_are_those_of_their_definition(rng):
    s, t = rng.normal(size=(9, 3)), rng.normal(size=(6, 3)) + 0.5
    found = losses.linear_terms(tensor(s), tensor(t), WIDTHS).numpy()

    def square(a, b):
        return float(((a - b) ** 2).sum())

    quads = [(s[2 * i], s[2 * i + 1], t[2 * i], t[2 * i + 1]) for i in range(3)]
    scale = np.mean(
        [[square(a, b), square(u, v), square(a, v), square(b, u)] for a, b, u, v in quads]
    )
    expected = [
        [
            np.exp(-square(a, b) / (width * scale))
            + np.exp(-square(u, v) / (width * scale))
            - np.exp(-square(a, v) / (width * scale))
            - np.exp(-square(b, u) / (width * scale))
            for a, b, u, v in quads
        ]
        for width in WIDTHS
    ]
    assert_allclose(found, expected, rtol=1e-10)


def test_linear_terms_estimate_the_full_mmd(rng):
    s, t = rng.normal(size=(40_000, 2)), rng.normal(size=(40_000, 2)) + 0.7
    linear = losses.linear_terms(tensor(s), tensor(t), (1.0,)).mean()
    both = tensor(np.vstack([s[:1500], t[:1500]]))
    assert float(linear) == pytest.approx(
        float(losses.mmd_full((both,), 1500, tensor([1.0]), (1.0,))), rel=0.1
    )


def test_kernel_weights_solve_the_quadratic_program(rng):
    terms = rng.normal(size=(4, 60)) * np.array([[1], [2], [0.5], [1]]) + 0.2
    terms[3] = 0.8 * terms[0] + 0.2 * rng.normal(size=60)
    d, covariance = terms.mean(axis=1), np.cov(terms)
    regular = covariance + 1e-3 * np.trace(covariance) / 4 * np.eye(4)
    solved = minimize(
        lambda b: b @ regular @ b,
        np.full(4, 1 / d.sum()),
        jac=lambda b: 2 * regular @ b,
        method="SLSQP",
        bounds=[(0, None)] * 4,
        constraints={"type": "eq", "fun": lambda b: b @ d - 1, "jac": lambda _: d},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    found = losses.kernel_weights(terms)
    assert solved.success
    assert_allclose(found, solved.x / solved.x.sum(), atol=1e-5)
    assert found.sum() == pytest.approx(1)
    assert (found >= 0).all()


def test_kernel_weights_prefer_what_tells_the_domains_apart(rng):
    noise = rng.normal(size=(3, 200))
    noise -= noise.mean(axis=1, keepdims=True)
    assert losses.kernel_weights(noise + np.array([[0], [2], [0]])).argmax() == 1
    assert_allclose(losses.kernel_weights(noise - 1), 1 / 3)
    assert_allclose(losses.kernel_weights(np.ones((3, 1))), 1 / 3)
    assert_allclose(losses.kernel_weights(np.ones((3, 5))).sum(), 1)


def test_cross_entropy_and_entropy(rng):
    scores, numbers = rng.normal(size=(6, 4)), rng.integers(4, size=6)
    p = softmax(scores)
    found = losses.cross_entropy(tensor(scores), torch.tensor(numbers))
    assert float(found) == pytest.approx(-np.mean(np.log(p[np.arange(6), numbers])))
    found = losses.entropy(tensor(scores))
    assert float(found) == pytest.approx(-np.mean((p * np.log(p)).sum(axis=1)))
    assert float(losses.entropy(tensor(np.zeros((2, 8))))) == pytest.approx(np.log(8))
    assert float(losses.entropy(tensor([[0.0, 800.0]]))) == 0


def test_domain_loss(rng):
    scores = rng.normal(size=7)
    p = 1 / (1 + np.exp(-scores))
    expected = -(np.log(p[:3]).mean() + np.log(1 - p[3:]).mean()) / 2
    assert float(losses.domain_loss(tensor(scores), 3)) == pytest.approx(expected)
    assert float(losses.domain_loss(tensor([-800.0, 800.0]), 1)) == pytest.approx(800)


@pytest.mark.parametrize("share", [0.5, 0.2])
def test_unknown_loss_is_the_binary_cross_entropy(share, rng):
    scores = rng.normal(size=(5, 4))
    u = softmax(scores)[:, -1]
    expected = -np.mean(share * np.log(u) + (1 - share) * np.log(1 - u))
    assert float(losses.unknown_loss(tensor(scores), share)) == pytest.approx(expected)


def test_unknown_loss_at_one_half_is_least_where_odds_are_even():
    even = losses.unknown_loss(tensor([[0.0, 0.0, np.log(2)]]), 0.5)
    assert float(even) == pytest.approx(np.log(2))
    for last in (-900.0, 0.0, 900.0):
        other = losses.unknown_loss(tensor([[0.0, 0.0, last]]), 0.5)
        assert np.isfinite(float(other))
        assert float(other) > float(even)


def test_reversed_gradient_is_that_of_the_difference(rng):
    """What is below sees known - w · domain, what is above sees domain; by finite differences."""
    X, weight = rng.normal(size=(8, 3)), 0.7
    below, above = rng.normal(size=(3, 2)), rng.normal(size=2)
    labels = rng.integers(2, size=8)

    def known(hidden):
        return losses.cross_entropy(hidden, torch.tensor(labels))

    def domain(hidden, w):
        return losses.domain_loss(hidden @ w, 4)

    A, w = tensor(below).requires_grad_(), tensor(above).requires_grad_()
    hidden = torch.tanh(tensor(X) @ A)
    (known(hidden) + domain(losses.reverse_gradient(hidden, weight), w)).backward()

    def of_below(flat):
        h = torch.tanh(tensor(X) @ tensor(flat.reshape(3, 2)))
        return float(known(h) - weight * domain(h, tensor(above)))

    def of_above(flat):
        return float(domain(torch.tanh(tensor(X) @ tensor(below)), tensor(flat)))

    assert_allclose(A.grad.numpy().ravel(), slopes(of_below, below.ravel()), atol=1e-8)
    assert_allclose(w.grad.numpy(), slopes(of_above, above), atol=1e-8)


def test_reversal_leaves_the_rows_as_they_are(rng):
    rows = tensor(rng.normal(size=(4, 2)))
    assert torch.equal(losses.reverse_gradient(rows, 0.3), rows)
    followed = rows.clone().requires_grad_()
    losses.reverse_gradient(followed, 0.3).sum().backward()
    assert_allclose(followed.grad.numpy(), -0.3)
