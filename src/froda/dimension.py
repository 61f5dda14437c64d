"""The subspace disagreement measure: how many dimensions source and target share."""

from __future__ import annotations

import numpy as np

from froda.factorization.problem import Array


def subspace_disagreement(
    source_axes: Array, target_axes: Array, max_components: int, slack: float = 1e-3
) -> tuple[int, Array]:
    """Return the smallest d whose subspaces disagree, and the measure for 1..d.

    The axes are those of source and target alone, in coordinates whose own axes are those
    of the joint PCA, so the d-dimensional joint subspace is spanned by the first d unit
    vectors and the largest principal angle to it follows from the smallest singular value
    of a leading d × d block. The measure is (sin a + sin b) / 2; the scan stops at the
    first d where it reaches ``1 - slack`` (it is not monotone), and at
    ``max_components`` when it never does.

    Parameters
    ----------
    source_axes, target_axes : array of shape (n_features, n_axes)
        Orthonormal principal axes by falling variance.
    max_components : int
        Largest d that the caller can use.
    slack : float, default=1e-3
        How far below 1 the measure may stay.

    Returns
    -------
    n_components : int
        The chosen d.
    disagreement : array of shape (n_components,)
        The measure for every d that was tried.
    """
    curve = []
    for d in range(1, max_components + 1):
        sines = [_largest_sine(axes[:d, :d]) for axes in (source_axes, target_axes)]
        curve.append(sum(sines) / 2)
        if curve[-1] >= 1 - slack:
            break
    return len(curve), np.array(curve)


def _largest_sine(block: Array) -> float:
    """Return the sine of the largest principal angle, from the smallest singular value."""
    block = block.astype(np.float64, copy=False)
    smallest = np.linalg.eigvalsh(block.T @ block)[0]
    return float(np.sqrt(min(max(1 - smallest, 0.0), 1.0)))
