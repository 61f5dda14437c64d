"""Planted problems of known structure, and features that look like those of a network.

The target rows come half from a subspace that the source shares and half from a private
one. Rows are centred together, rotated to the axes of their joint PCA (the coordinates in
which the package factorises) and brought to unit norm.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from froda.factorization.initialize import StartingPoint, from_source_axes
from froda.factorization.problem import Array, Problem

VARIANTS = ("FRODA", "D-FRODA", "D-FRODA-U")


@dataclass(frozen=True)
class Plan:
    """Sizes and difficulty of a planted problem.

    ``cosine`` is the cosine of every principal angle between the shared and the private
    subspace; ``decay`` is the ratio of the smallest to the largest deviation of the codes.
    """

    n_source: int
    n_target: int
    n_features: int
    width: int
    n_classes: int = 10
    cosine: float = 0.0
    decay: float = 0.3
    noise: float = 0.3
    lam: float = 0.4
    seed: int = 0


PAPER_SIZE = Plan(500, 750, 700, 40)
CORRELATED = Plan(300, 400, 200, 20, cosine=0.8, decay=0.05, noise=0.2, seed=1)
SMALL = Plan(150, 200, 80, 10, cosine=0.4, seed=2)


@dataclass(frozen=True)
class Planted:
    """A problem with the point from which every method starts."""

    name: str
    problem: Problem
    point: StartingPoint


def planted(plan: Plan, variant: str = "FRODA", constraint: str = "per_column") -> Planted:
    """Draw the problem that ``plan`` describes, for one of ``VARIANTS``."""
    rng = np.random.default_rng(plan.seed)
    has_unknowns = variant == "D-FRODA-U"
    shared, private, source_private = _subspaces(rng, plan)
    labels = np.arange(plan.n_source) % (plan.n_classes + has_unknowns)
    is_known = labels < plan.n_classes
    means = rng.standard_normal((plan.n_classes, plan.width))
    source = np.where(
        is_known[:, None],
        _codes(rng, plan, means[labels % plan.n_classes]) @ shared.T,
        _codes(rng, plan, rng.standard_normal((1, plan.width))) @ source_private.T,
    )
    half = plan.n_target // 2
    known = _codes(rng, plan, means[rng.integers(plan.n_classes, size=half)]) @ shared.T
    middles = rng.standard_normal((plan.n_classes, plan.width))
    groups = rng.integers(plan.n_classes, size=plan.n_target - half)
    unknown = _codes(rng, plan, middles[groups]) @ private.T
    target = np.vstack([known, unknown])
    Xs, Xt = _joint_coordinates(_noisy(rng, plan, source), _noisy(rng, plan, target))
    shorter = 1 if constraint == "per_column" else plan.width * (1 + has_unknowns)
    lam = plan.lam / shorter  # columns of length 1/d: codes d times as long
    problem = Problem(Xs, Xt, alpha=0.1, lam=lam, constraint=constraint)
    if variant != "FRODA":
        one_hot = np.eye(plan.n_classes + has_unknowns)[labels]
        problem = replace(problem, Y=one_hot, beta=0.01)
    if has_unknowns:
        lam_source = problem.alpha * lam
        problem = replace(problem, lam_source=lam_source, has_source_private=True)
    return Planted(variant, problem, _starting_point(problem, Xs[is_known], plan.width))


def _subspaces(rng: np.random.Generator, plan: Plan) -> tuple[Array, Array, Array]:
    """Return orthonormal bases: shared, private at the planned angle to it, source-private."""
    drawn = rng.standard_normal((plan.n_features, 3 * plan.width))
    shared, free, source_private = np.split(np.linalg.qr(drawn)[0], 3, axis=1)
    sine = np.sqrt(1 - plan.cosine**2)
    return shared, plan.cosine * shared + sine * free, source_private


def _codes(rng: np.random.Generator, plan: Plan, means: Array) -> Array:
    """Draw codes around ``means`` with deviations that fall geometrically."""
    n_rows = len(means) if len(means) > 1 else plan.n_source
    deviations = np.geomspace(1, plan.decay, plan.width)
    return (means + rng.standard_normal((n_rows, plan.width))) * deviations


def _noisy(rng: np.random.Generator, plan: Plan, rows: Array) -> Array:
    """Add noise whose norm is the planned share of the root mean square row norm."""
    size = np.sqrt(np.mean(np.sum(rows**2, axis=1)) / plan.n_features)
    return rows + plan.noise * size * rng.standard_normal(rows.shape)


def _joint_coordinates(source: Array, target: Array) -> tuple[Array, Array]:
    """Centre both domains together, rotate to the joint PCA axes, make rows unit."""
    rows = np.vstack([source, target])
    rows = rows - rows.mean(axis=0)
    rows = rows @ np.linalg.svd(rows, full_matrices=False)[2].T
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return np.ascontiguousarray(rows[: len(source)]), np.ascontiguousarray(rows[len(source) :])


def _starting_point(problem: Problem, known: Array, width: int) -> StartingPoint:
    """Start at the principal axes of the known source rows and their complement."""
    axes = np.linalg.svd(known - known.mean(axis=0), full_matrices=False)[2][:width].T
    return from_source_axes(problem, axes)


@dataclass(frozen=True)
class Features:
    """Raw features of both domains; target labels from ``n_known`` on are unknown classes."""

    Xs: Array
    ys: Array
    Xt: Array
    yt: Array
    n_known: int


def network_like_features(
    n_source: int = 500, n_target: int = 750, n_features: int = 4096, seed: int = 0
) -> Features:
    """Draw features like those of AlexNet: non-negative, half zeros, slowly falling spectrum.

    Ten known classes and five unknown ones, each with its mean among 600 latent factors of
    variance 1/k, are mixed into the columns; each domain has its own gains and offsets, and
    what falls below zero is cut off. After row scaling and z-score the leading 1, 10, 50,
    100, 200 axes of the joint PCA hold .07, .30, .52, .62, .72 of the variance (.06, .25,
    .45, .58, .71 for AlexNet features of 500 Caltech and 750 Amazon photographs).
    """
    rng = np.random.default_rng(seed)
    n_known, n_unknown, n_latent = 10, 5, 600
    deviations = np.arange(1, n_latent + 1) ** -0.5
    means = 0.7 * rng.standard_normal((n_known + n_unknown, n_latent))
    mixing = rng.standard_normal((n_latent, n_features)) * deviations[:, None]
    mixing /= np.linalg.norm(deviations)
    offset = -0.1 + 0.3 * rng.standard_normal(n_features)
    row = np.arange(n_target)
    is_known = row < n_target // 2
    labels = (
        np.arange(n_source) % n_known,
        np.where(is_known, row % n_known, n_known + row % n_unknown),
    )
    domains = []
    for y in labels:
        gain = 1 + 0.15 * rng.standard_normal(n_features)
        shift = offset + 0.3 * rng.standard_normal(n_features)
        latent = means[y] + rng.standard_normal((len(y), n_latent))
        noise = 0.2 * rng.standard_normal((len(y), n_features))
        domains.append(np.maximum((latent @ mixing) * gain + shift + noise, 0))
    return Features(domains[0], labels[0], domains[1], labels[1], n_known)
