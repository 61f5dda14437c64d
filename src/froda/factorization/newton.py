"""Newton steps on all blocks of the code problem together, for the rows where sweeps are slow.

Where every block in use is non-zero the objective tᵀGt - 2cᵀt + lam Σ_g |t_g| is smooth and
convex; its Hessian is 2G plus (lam/|t_g|)(I - u uᵀ), u = t_g/|t_g|, on the diagonal blocks.
Blocks that are zero stay zero: sweeps decide which ones are.
"""

from __future__ import annotations

import numpy as np

from froda.factorization.penalties import group_slices, row_norms
from froda.factorization.problem import Array

_ROWS_AT_ONCE = 128
_HALVINGS = 25


def newton_step(
    gram: Array, targets: Array, codes: Array, widths: tuple[int, ...], lam: float
) -> None:
    """Move each row of ``codes`` (in place) by a Newton step that lowers its objective."""
    for first in range(0, len(codes), _ROWS_AT_ONCE):
        some = slice(first, first + _ROWS_AT_ONCE)
        direction = _directions(gram, targets[some], codes[some], widths, lam)
        slope = 2 * np.einsum("ij,ij->i", codes[some] @ gram - targets[some], direction)
        steps = _line_search(
            gram, slope, codes[some], direction, parts=group_slices(widths), lam=lam
        )
        codes[some] += (steps[:, None] * direction).astype(codes.dtype)


def _directions(
    gram: Array, targets: Array, codes: Array, widths: tuple[int, ...], lam: float
) -> Array:
    """Return the Newton direction of each row, zero on zero blocks."""
    n_rows, width = codes.shape
    point = codes.astype(np.float64, copy=False)
    gradient = 2 * (point @ gram - targets)
    hessian = np.broadcast_to(2 * gram, (n_rows, width, width)).copy()
    in_use = np.zeros((n_rows, width), dtype=bool)
    for part in group_slices(widths):
        norms = row_norms(point[:, part])
        in_use[:, part] = (norms > 0)[:, None]
        safe = np.where(norms > 0, norms, 1)
        unit = point[:, part] / safe[:, None]
        gradient[:, part] += lam * unit
        bend = np.eye(unit.shape[1]) - unit[:, :, None] * unit[:, None, :]
        hessian[:, part, part] += (lam / safe)[:, None, None] * bend
    gradient *= in_use
    hessian *= in_use[:, :, None] & in_use[:, None, :]
    diagonal = np.arange(width)
    ridge = 1e-14 * np.trace(gram)
    hessian[:, diagonal, diagonal] += np.where(in_use, ridge, 1.0)
    direction: Array = -np.linalg.solve(hessian, gradient[..., None])[..., 0]
    return direction


def _line_search(
    gram: Array, slope: Array, codes: Array, direction: Array, *, parts: list[slice], lam: float
) -> Array:
    """Return, per row, the first of 1, 1/2, 1/4, ... that lowers the objective, or 0.

    ``slope`` is the derivative of the smooth part along the direction.
    """
    curve = np.einsum("ij,ij->i", direction @ gram, direction)
    chosen = np.zeros(len(codes))
    step = 1.0
    open_rows = np.ones(len(codes), dtype=bool)
    for _ in range(_HALVINGS):
        change = step * slope + step * step * curve
        for part in parts:
            moved = row_norms(codes[:, part] + step * direction[:, part])
            change = change + lam * (moved - row_norms(codes[:, part]))
        lower = open_rows & (change < 0)
        chosen[lower] = step
        open_rows &= ~lower
        if not open_rows.any():
            break
        step /= 2
    return chosen
