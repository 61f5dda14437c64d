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


def domain_loss(scores: Tensor, n_source: int) -> Tensor:
    """Return the logistic loss of scores that should be positive for source rows alone.

    The first ``n_source`` are of the source. Both domains have the same weight:
    ½ mean log(1 + e^-score) over the source + ½ mean log(1 + e^score) over the target.
    """
    zero = scores.new_zeros(())
    source, target = (-scores[:n_source]).logaddexp(zero), scores[n_source:].logaddexp(zero)
    return (source.mean() + target.mean()) / 2


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


def square_distances(features: Features) -> Tensor:
    """Return |z_i - z_j|² between the tensor products z of the features of each row.

    A single kind of features stands for itself. The tensor products are never formed:
    <f ⊗ c, f' ⊗ c'> is <f, f'> <c, c'>.
    """
    gram = features[0] @ features[0].T
    for other in features[1:]:
        gram = gram * (other @ other.T)
    squares = gram.diagonal()
    return (squares[:, None] + squares - 2 * gram).clamp(min=0)


def kernels(distances: Tensor, scale: Tensor, widths: tuple[float, ...] = WIDTHS) -> Tensor:
    """Return exp(-distance / (width · scale)), one more dimension in front: that of the widths.

    The scale says how large distances are; it is a constant on the way back.
    """
    size = scale.detach().clamp(min=1e-30)
    shares = distances.new_tensor(widths).view(-1, *[1] * distances.ndim)
    return (-distances / (size * shares)).exp()


def mmd_full(
    features: Features, n_source: int, weights: Tensor, widths: tuple[float, ...] = WIDTHS
) -> Tensor:
    """Return the squared MMD between the first ``n_source`` rows and the others, by all pairs.

    With k the weighted sum of Gaussian kernels of the given widths in mean squared distances
    between different rows: mean k(s, s') + mean k(t, t') - 2 mean k(s, t), which is cᵀ K c for c
    with 1/n_s for rows of the source and -1/n_t for others. Several kinds of features are
    compared through the tensor products of each row's.
    """
    distances = square_distances(features)
    n_rows = len(distances)
    contrast = distances.new_full((n_rows,), -1 / (n_rows - n_source))
    contrast[:n_source] = 1 / n_source
    scale = distances.sum() / (n_rows * (n_rows - 1))
    return weights @ (kernels(distances, scale, widths) @ contrast @ contrast)


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
