"""Starting points of the alternation.

V starts as the leading principal axes of the source, U (and U2) as the first columns of
an orthonormal complement of V. In the coordinates of the joint PCA that complement is
deterministic. Where V and U leave no room, U is narrower than V.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from froda.factorization.problem import Array, Problem


@dataclass(frozen=True)
class StartingPoint:
    """The bases from which the first codes are computed."""

    V: Array
    U: Array
    U2: Array | None = None


def truncated_complement(V: Array, width: int) -> Array:
    """Return the first ``width`` columns of an orthonormal complement of V.

    With O the orthogonal factor of the leading block V_1, the block reflection
    I - 2 Z (ZᵀZ)⁻¹ Zᵀ of Z = V + [O; 0] maps -[O; 0] to V, so its columns beyond the d-th are
    the complement. ZᵀZ = 2 (I + |V_1|) is well conditioned, and a rotation of the columns
    of V changes nothing.
    """
    n_features, n_components = V.shape
    width = min(width, n_features - n_components)
    left, _, right = np.linalg.svd(V[:n_components])
    normal = V.copy()
    normal[:n_components] += left @ right
    tail = slice(n_components, n_components + width)
    complement: Array = -2 * normal @ np.linalg.solve(normal.T @ normal, normal[tail].T)
    complement[np.arange(n_components, n_components + width), np.arange(width)] += 1
    return complement


def from_source_axes(problem: Problem, axes: Array) -> StartingPoint:
    """Start from orthonormal source axes (D × d), scaled to satisfy the constraint."""
    V = np.ascontiguousarray(axes, dtype=problem.dtype)
    U = truncated_complement(V, V.shape[1]).astype(problem.dtype, copy=False)
    if problem.constraint == "total":
        shared = V.shape[1] + (U.shape[1] if problem.has_source_private else 0)
        private = shared if problem.has_source_private else max(U.shape[1], 1)
        V, U = V / shared, U / private
    return StartingPoint(V, U, U.copy() if problem.has_source_private else None)
