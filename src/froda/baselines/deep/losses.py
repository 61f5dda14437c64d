"""The losses, by their definitions. They use methods of tensors alone: nothing is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import nnls

from froda.factorization.problem import Array

if TYPE_CHECKING:
    from torch import Tensor

Features = tuple["Tensor", ...]  # kinds of features of the same rows
# Widths of the kernels in mean squared distances.
WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
_RIDGE = 1e-3


def cross_entropy(scores: Tensor, numbers: Tensor) -> Tensor:
    """Return -mean_i log p_i(y_i), p the softmax of the scores."""
    return -scores.log_softmax(1).gather(1, numbers[:, None]).mean()


def entropy(scores: Tensor) -> Tensor:
    """Return -mean_i Σ_c p_ic log p_ic, p the softmax of the scores."""
    logs = scores.log_softmax(1)
    return -(logs.exp() * logs).sum(1).mean()


def domain_loss(source: Tensor, target: Tensor) -> Tensor:
    """Return the logistic loss of scores that should be positive for source samples alone.

    Both domains have the same weight: ½ mean log(1 + e^-source) + ½ mean log(1 + e^target).
    """
    zero = source.new_zeros(())
    return ((-source).logaddexp(zero).mean() + target.logaddexp(zero).mean()) / 2


def unknown_loss(scores: Tensor, share: float) -> Tensor:
    """Return -mean_i [t log u_i + (1 - t) log(1 - u_i)], u the last column of the softmax."""
    logs = scores.log_softmax(1)
    unknown, known = logs[:, -1], logs[:, :-1].logsumexp(1)
    return -(share * unknown + (1 - share) * known).mean()


def reverse_gradient(rows: Tensor, weight: float) -> Tensor:
    """Return the same rows; on the way back gradients are multiplied by -weight."""
    same = rows.view_as(rows)
    if same.requires_grad:
        same.register_hook(lambda gradient: -weight * gradient)
    return same


def inner_products(first: Features, second: Features) -> Tensor:
    """Return the inner products of the tensor products of the features of each row.

    A single kind of features gives its own inner products. <f ⊗ c, f' ⊗ c'> is
    <f, f'> <c, c'>, so that the tensor products are never formed.
    """
    products = first[0] @ second[0].T
    for mine, theirs in zip(first[1:], second[1:], strict=True):
        products = products * (mine @ theirs.T)
    return products


def square_distances(first: Features, second: Features) -> Tensor:
    """Return |z_i - z_j|² between the tensor products z of the features of each row."""
    squares, others = (_square_norms(features) for features in (first, second))
    return (squares[:, None] + others - 2 * inner_products(first, second)).clamp(min=0)


def _square_norms(features: Features) -> Tensor:
    """Return the squared norms of the tensor products of the features of each row."""
    squares = features[0].square().sum(1)
    for other in features[1:]:
        squares = squares * other.square().sum(1)
    return squares


def kernels(distances: Tensor, scale: Tensor, widths: tuple[float, ...] = WIDTHS) -> Tensor:
    """Return exp(-distance / (width · scale)), one more dimension in front: that of the widths.

    The scale says how large distances are; it is a constant on the way back.
    """
    size = scale.detach().clamp(min=1e-30)
    shares = distances.new_tensor(widths).view(-1, *[1] * distances.ndim)
    return (-distances / (size * shares)).exp()


def mmd_full(
    source: Features, target: Features, weights: Tensor, widths: tuple[float, ...] = WIDTHS
) -> Tensor:
    """Return the squared MMD between two domains, from all pairs of their rows.

    With k the weighted sum of Gaussian kernels of the given widths in mean squared distances
    between different rows: mean k(s, s') + mean k(t, t') - 2 mean k(s, t). Several kinds of
    features are compared through the tensor products of each row's.
    """
    pairs = (source, source), (target, target), (source, target)
    own, other, across = (square_distances(first, second) for first, second in pairs)
    n_rows = len(own) + len(other)
    scale = (own.sum() + other.sum() + 2 * across.sum()) / (n_rows * (n_rows - 1))
    within_source, within_target, between = (
        (weights[:, None, None] * kernels(distances, scale, widths)).sum(0).mean()
        for distances in (own, other, across)
    )
    return within_source + within_target - 2 * between


def linear_terms(source: Tensor, target: Tensor, widths: tuple[float, ...] = WIDTHS) -> Tensor:
    """Return the terms of the linear-time estimator of the squared MMD, kernels × quadruples.

    Rows are taken two by two: k(s, s') + k(t, t') - k(s, t') - k(s', t). Their mean is an
    unbiased estimate. What is left over in the larger domain has no part.
    """
    n_pairs = min(len(source), len(target)) // 2
    s, t = source[: 2 * n_pairs], target[: 2 * n_pairs]
    pairs = ((s[::2], s[1::2]), (t[::2], t[1::2]), (s[::2], t[1::2]), (s[1::2], t[::2]))
    distances = [(a - b).square().sum(1) for a, b in pairs]
    scale = sum(distances[1:], distances[0]).mean() / 4
    of_source, of_target, first, second = (kernels(d, scale, widths) for d in distances)
    return of_source + of_target - first - second


def kernel_weights(terms: Array) -> Array:
    """Return the weights β >= 0, of sum 1, with which a test by the linear estimator errs least.

    With d the mean and Q the covariance of the terms of the single kernels, β minimises
    βᵀ (Q + ρ I) β subject to βᵀ d = 1; up to its length that is the non-negative β with the
    least βᵀ (Q + ρ I) β - 2 βᵀ d. Where no kernel tells the domains apart (d <= 0), all
    have the same weight.
    """
    n_kernels = len(terms)
    d = terms.mean(axis=1)
    if terms.shape[1] < 2 or d.max() <= 0:
        return np.full(n_kernels, 1 / n_kernels)
    covariance = np.atleast_2d(np.cov(terms))
    ridge = _RIDGE * max(float(np.trace(covariance)) / n_kernels, np.finfo(float).tiny)
    factor = np.linalg.cholesky(covariance + ridge * np.eye(n_kernels))
    weights, _ = nnls(factor.T, np.linalg.solve(factor, d))
    total = weights.sum()
    return weights / total if total > 0 else np.full(n_kernels, 1 / n_kernels)
