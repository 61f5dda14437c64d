"""The group penalty lam Σ_g |t_g| on rows of codes: value, prox, distance from optimality."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from froda.factorization.problem import Array


def group_slices(widths: tuple[int, ...]) -> list[slice]:
    """Return the column range of each group."""
    edges = np.concatenate([[0], np.cumsum(widths)])
    return [slice(int(a), int(b)) for a, b in pairwise(edges)]


def row_norms(matrix: Array) -> Array:
    """Return the Euclidean norm of each row."""
    norms: Array = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))
    return norms


def group_norms(codes: Array, widths: tuple[int, ...]) -> Array:
    """Return the norm of each group of each row, n × number of groups."""
    return np.stack([row_norms(codes[:, part]) for part in group_slices(widths)], axis=1)


def value(codes: Array, widths: tuple[int, ...], lam: float) -> float:
    """Return lam times the sum of all group norms."""
    return lam * float(group_norms(codes, widths).sum(dtype=np.float64))


def prox(codes: Array, widths: tuple[int, ...], step: float) -> Array:
    """Shrink each group of each row towards zero by ``step`` (block soft threshold)."""
    shrunk = np.zeros_like(codes)
    for part in group_slices(widths):
        norms = row_norms(codes[:, part])
        positive = norms > step
        factor = 1 - step / norms[positive]
        shrunk[positive, part] = codes[positive, part] * factor[:, None]
    return shrunk


def optimality_distance(
    codes: Array, gradient: Array, widths: tuple[int, ...], lam: float
) -> Array:
    """Return, per row and group, the distance of -gradient from the subdifferential.

    A non-zero group needs gradient + lam t/|t| = 0, a zero group |gradient| <= lam.
    """
    distances = np.empty((codes.shape[0], len(widths)), dtype=codes.dtype)
    for number, part in enumerate(group_slices(widths)):
        group, slope = codes[:, part], gradient[:, part]
        norms = row_norms(group)
        safe = np.where(norms > 0, norms, 1)
        at_zero = np.maximum(row_norms(slope) - lam, 0)
        elsewhere = row_norms(slope + lam * group / safe[:, None])
        distances[:, number] = np.where(norms > 0, elsewhere, at_zero)
    return distances
