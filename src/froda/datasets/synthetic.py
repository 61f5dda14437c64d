"""Two domains with planted subspaces: what a factorisation should find is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from froda.datasets.protocols import Split, make_task
from froda.datasets.record import Domain, OpenSetTask
from froda.factorization.problem import Array


@dataclass(frozen=True)
class Planted:
    """Source, target and the truth behind them.

    Parameters
    ----------
    source, target : Domain
        The samples.
    split : Split
        Which classes are known, source unknown, target unknown.
    shared_basis : array of shape (n_features, n_shared)
        Orthonormal; known samples of both domains lie near its span.
    source_basis, target_basis : array of shape (n_features, n_private)
        Orthonormal and orthogonal to the rest; unknown samples lie near these.
    """

    source: Domain
    target: Domain
    split: Split
    shared_basis: Array
    source_basis: Array
    target_basis: Array

    def task(self, seed: int = 0) -> OpenSetTask:
        """Return the open-set task.

        Parameters
        ----------
        seed : int, default=0
            Order of the target rows.

        Returns
        -------
        task : OpenSetTask
            Source unknowns are labelled -1.
        """
        return make_task(self.source, self.target, self.split, seed)


def make_planted(
    n_source: int = 300,
    n_target: int = 400,
    *,
    n_features: int = 60,
    n_known: int = 5,
    n_source_unknown: int = 2,
    n_target_unknown: int = 3,
    n_shared: int = 6,
    n_private: int = 6,
    separation: float = 4.0,
    shift: float = 1.0,
    noise: float = 0.1,
    imbalance: float = 1.0,
    unknown_share: float = 0.4,
    seed: int = 0,
) -> Planted:
    """Return two domains whose known classes share a subspace and whose unknown ones do not.

    A sample is ``basis @ (mean of its class + standard normal) + noise``, with the shared
    basis for known classes and the private basis of the domain for unknown ones. Known target
    samples are moved by ``shift`` within the shared subspace.

    Parameters
    ----------
    n_source, n_target : int, default=300 and 400
        Samples.
    n_features : int, default=60
        At least ``n_shared + 2 * n_private``.
    n_known, n_source_unknown, n_target_unknown : int, default=5, 2 and 3
        Classes; the source may have no unknown ones.
    n_shared, n_private : int, default=6
        Dimensions of the shared subspace and of each private one.
    separation : float, default=4.0
        Distance of each class mean from the origin, in units of the spread within a class.
    shift : float, default=1.0
        Distance between the domains' known classes, in the same units.
    noise : float, default=0.1
        Standard deviation of what lies in no subspace.
    imbalance : float, default=1.0
        The first class of a kind has this many times the samples of the last; sizes fall
        geometrically.
    unknown_share : float, default=0.4
        Share of unknown samples in a domain that has unknown classes.
    seed : int, default=0
        Of everything random.

    Returns
    -------
    planted : Planted
        Domains, split and bases.

    Examples
    --------
    >>> from froda.datasets import make_planted
    >>> task = make_planted(unknown_share=0.25).task()
    >>> float((task.y_target == -1).mean())
    0.25
    """
    if n_features < n_shared + 2 * n_private:
        raise ValueError(
            f"n_features must be at least n_shared + 2 * n_private = {n_shared + 2 * n_private}, "
            f"got {n_features}."
        )
    if imbalance < 1 or not 0 <= unknown_share < 1:
        raise ValueError(
            "imbalance must be at least 1 and unknown_share in [0, 1), got "
            f"{imbalance!r} and {unknown_share!r}."
        )
    if n_known < 2 or n_target_unknown < 1 or n_source_unknown < 0:
        raise ValueError("at least 2 known and 1 target unknown class are needed.")
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.normal(size=(n_features, n_shared + 2 * n_private)))[0]
    shared, source_basis, target_basis = np.split(axes, [n_shared, n_shared + n_private], axis=1)
    known_means = _directions(rng, n_known, n_shared) * separation
    moved = known_means + _directions(rng, 1, n_shared) * shift
    names = tuple(f"known {k}" for k in range(n_known))
    private = tuple(f"source unknown {k}" for k in range(n_source_unknown))
    new = tuple(f"target unknown {k}" for k in range(n_target_unknown))
    split = Split("planted", names, private, new)

    def domain(
        name: str, n_samples: int, means: Array, basis: Array, *, first: int, n_unknown: int
    ) -> Domain:
        """Draw one domain whose unknown classes are numbered from ``first`` on."""
        unknown_means = _directions(rng, n_unknown, n_private) * separation
        n_new = round(n_samples * unknown_share) if n_unknown else 0
        known_y = np.repeat(np.arange(n_known), class_sizes(n_samples - n_new, n_known, imbalance))
        new_y = np.repeat(np.arange(n_unknown), class_sizes(n_new, n_unknown, imbalance))
        X = np.vstack(
            [
                (means[known_y] + rng.normal(size=(len(known_y), n_shared))) @ shared.T,
                (unknown_means[new_y] + rng.normal(size=(len(new_y), n_private))) @ basis.T,
            ]
        )
        X += noise * rng.normal(size=X.shape)
        y = np.concatenate([known_y, first + new_y])
        return Domain(X, y, name, names + private + new, "none needed", "froda make_planted")

    source = domain(
        "source", n_source, known_means, source_basis, first=n_known, n_unknown=n_source_unknown
    )
    target = domain(
        "target",
        n_target,
        moved,
        target_basis,
        first=n_known + n_source_unknown,
        n_unknown=n_target_unknown,
    )
    return Planted(source, target, split, shared, source_basis, target_basis)


def class_sizes(n_samples: int, n_classes: int, imbalance: float) -> Array:
    """Return geometrically falling sizes, each at least 1, that sum to ``n_samples``."""
    if n_classes == 0 or n_samples == 0:
        return np.zeros(n_classes, dtype=int)
    if n_samples < n_classes:
        raise ValueError(f"{n_samples} samples are too few for {n_classes} classes.")
    shares = float(imbalance) ** -np.linspace(0, 1, n_classes)
    wanted = (n_samples - n_classes) * shares / shares.sum()
    sizes = 1 + np.floor(wanted).astype(int)
    late = np.argsort(np.floor(wanted) - wanted, kind="stable")
    sizes[late[: n_samples - sizes.sum()]] += 1
    return sizes


def _directions(rng: np.random.Generator, count: int, n_dimensions: int) -> Array:
    """Draw unit vectors as rows."""
    drawn = rng.normal(size=(count, n_dimensions))
    unit: Array = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return unit
