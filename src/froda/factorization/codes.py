"""Group-sparse codes of all samples at once (eqs. 4 and 7).

Sub-problem, for each row x of the data with the basis B = [B_1, B_2, ...]:

    min_t |x - B t|² + lam Σ_g |t_g|

Each block is solved exactly while the others rest. With B_gᵀB_g = Q diag(e) Qᵀ and
z = Qᵀ r_g, r_g = B_gᵀ(x - B_other t_other), the block is zero where 2|r_g| <= lam;
elsewhere t_g = Q [z s / (s e + lam/2)], where s = |t_g| is the root of

    φ(s) = Σ_k z_k² / (s e_k + lam/2)² = 1.

φ^(-1/2) is concave and increasing, so Newton's method on φ^(-1/2) - 1 climbs to the root
from the left without overshooting. Blocks alternate until the optimality conditions hold;
where the two subspaces are close this is slow: the sweeps are extrapolated, and rows that
still are not done get Newton steps on all their blocks together.
The data enter only through ``cross`` = X B and the Gram matrix BᵀB.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from froda.factorization.newton import newton_step
from froda.factorization.penalties import group_slices, optimality_distance, row_norms
from froda.factorization.problem import Array

_ROWS_AT_ONCE = 1024
_NEWTON_STEPS = 60
_EXTRAPOLATED_SWEEPS = 40


@dataclass(frozen=True)
class PreparedCodes:
    """Gram matrix of the basis with each diagonal block diagonalised.

    In codes rotated by ``rotations`` every diagonal block of the Gram matrix is
    ``diag(eigenvalues[g])`` and group norms are unchanged.
    """

    gram: Array
    widths: tuple[int, ...]
    lam: float
    eigenvalues: list[Array]
    rotations: list[Array]
    rotated_gram: Array


def prepare(
    gram: Array, widths: tuple[int, ...], lam: float, rounding: float | None = None
) -> PreparedCodes:
    """Diagonalise the blocks of BᵀB once.

    Eigenvalues that rounding (by default that of the type of ``gram``) could make up count
    as zero, and what a row has to fit there counts as rounding too.
    """
    rounding = float(np.finfo(gram.dtype).eps) if rounding is None else rounding
    gram = np.asarray(gram, dtype=np.float64)
    eigenvalues, rotations = [], []
    rotated = gram.copy()
    for part in group_slices(widths):
        values, vectors = np.linalg.eigh(gram[part, part])
        cutoff = 10 * len(values) * rounding * values.max(initial=0.0)
        eigenvalues.append(np.where(values > cutoff, values, 0.0))
        rotations.append(vectors)
        rotated[part] = vectors.T @ rotated[part]
        rotated[:, part] = rotated[:, part] @ vectors
    return PreparedCodes(gram, widths, lam, eigenvalues, rotations, rotated)


def default_tolerance(dtype: np.dtype[Any]) -> float:
    """Return the distance from optimality at which codes count as exact."""
    return 1e-9 if dtype == np.float64 else 1e-5


def update(
    prepared: PreparedCodes,
    cross: Array,
    start: Array | None = None,
    *,
    tol: float | None = None,
    max_sweeps: int = 200,
) -> Array:
    """Return the optimal codes, n × width.

    A row is done when its distance from optimality is at most ``tol`` times
    max(lam, 2|cross|); ``start`` is a warm start and is not written to. Rows are taken so
    many at a time that they stay in the cache; which rows come together changes nothing.
    """
    if len(cross) <= _ROWS_AT_ONCE:
        return _update_rows(prepared, cross, start, tol, max_sweeps)
    codes = np.empty_like(cross)
    for first in range(0, len(cross), _ROWS_AT_ONCE):
        some = slice(first, first + _ROWS_AT_ONCE)
        begin = None if start is None else start[some]
        codes[some] = _update_rows(prepared, cross[some], begin, tol, max_sweeps)
    return codes


def _update_rows(
    prepared: PreparedCodes,
    cross: Array,
    start: Array | None,
    tol: float | None,
    max_sweeps: int,
) -> Array:
    """Return the optimal codes of rows that are taken together."""
    tol = default_tolerance(cross.dtype) if tol is None else tol
    aims = _rotate(prepared, cross)
    first = np.zeros_like(aims) if start is None else _rotate(prepared, start)
    limits = tol * np.maximum(prepared.lam, 2 * row_norms(aims))
    newton_tol = min(max(np.sqrt(tol), 1e-4), 1e-2)
    codes, is_done = _descend(prepared, aims, first, limits, (max_sweeps, newton_tol))
    if not is_done:  # extrapolation may have left a row above its start
        worse = _values(prepared, aims, codes) > _values(prepared, aims, first)
        codes[worse] = first[worse]
    return _rotate(prepared, codes, back=True)


def _rotate(prepared: PreparedCodes, rows: Array, *, back: bool = False) -> Array:
    """Return rows in the eigenbases of the groups, or back from there."""
    turned = np.empty_like(rows)
    for part, vectors in zip(group_slices(prepared.widths), prepared.rotations, strict=True):
        matrix = (vectors.T if back else vectors).astype(rows.dtype, copy=False)
        turned[:, part] = rows[:, part] @ matrix
    return turned


def _descend(
    prepared: PreparedCodes,
    targets: Array,
    start: Array,
    limits: Array,
    effort: tuple[int, float],
) -> tuple[Array, bool]:
    """Sweep over the blocks until every row is within its limit; say whether that was reached.

    A row that is done is never touched again. ``effort`` holds the largest number of sweeps
    and the accuracy of the secular equation.
    """
    max_sweeps, newton_tol = effort
    couplings = _couplings(prepared, start.dtype)
    rows, active = np.arange(len(targets)), start.copy()
    is_open = np.ones(len(rows), dtype=bool)
    codes: Array | None = None
    memory = _Extrapolation(prepared)
    for sweep in range(max_sweeps):
        if sweep < _EXTRAPOLATED_SWEEPS:
            memory.before(active)
        else:
            newton_step(prepared.rotated_gram, targets, active, prepared.widths, prepared.lam)
        violation = _sweep(prepared, couplings, active, targets, newton_tol)
        finished = is_open & (violation <= limits)
        if codes is None:
            if finished.all():
                return active, True
            codes = np.empty_like(active)
        codes[rows[finished]] = active[finished]
        is_open &= ~finished
        n_open = np.count_nonzero(is_open)
        if n_open == 0:
            return codes, True
        if 4 * n_open <= 3 * len(active):
            rows, active = rows[is_open], active[is_open]
            targets, limits = targets[is_open], limits[is_open]
            memory.keep(is_open)
            is_open = np.ones(n_open, dtype=bool)
        if sweep < _EXTRAPOLATED_SWEEPS - 1:
            memory.after(active, targets)
    if codes is None:
        return active, max_sweeps > 0
    codes[rows[is_open]] = active[is_open]
    return codes, False


def _values(prepared: PreparedCodes, targets: Array, codes: Array) -> Array:
    """Return the objective of each row, without its constant."""
    fits = _dots(codes, codes @ prepared.rotated_gram.astype(codes.dtype) - 2 * targets)
    sizes = sum(row_norms(codes[:, part]) for part in group_slices(prepared.widths))
    values: Array = fits + prepared.lam * sizes
    return values


def _couplings(prepared: PreparedCodes, dtype: np.dtype[Any]) -> list[list[Array]]:
    """Return the blocks of the rotated Gram matrix: [h][g] couples codes h with block g."""
    parts = group_slices(prepared.widths)
    gram = prepared.rotated_gram.astype(dtype, copy=False)
    return [[np.ascontiguousarray(gram[h, g]) for g in parts] for h in parts]


def _sweep(
    prepared: PreparedCodes,
    couplings: list[list[Array]],
    codes: Array,
    targets: Array,
    newton_tol: float,
) -> Array:
    """Update each block of ``codes`` in place; return a bound on the distance from optimality.

    A block is off by what Newton's method left, and by the movement of the blocks after it.
    """
    parts = group_slices(prepared.widths)
    violation = np.zeros(len(codes), dtype=codes.dtype)
    pushes: list[Array | float] = [0.0] * len(parts)
    for g, part in enumerate(parts):
        pull = targets[:, part]
        for h, other in enumerate(parts):
            if h != g:
                pull = pull - codes[:, other] @ couplings[h][g]
        spectrum = prepared.eigenvalues[g].astype(codes.dtype, copy=False)
        new, residual = solve_block(pull, spectrum, prepared.lam, codes[:, part], newton_tol)
        np.maximum(violation, residual, out=violation)
        if g > 0:
            moved = new - codes[:, part]
            for earlier in range(g):
                pushes[earlier] = pushes[earlier] + moved @ couplings[g][earlier]
        codes[:, part] = new
    for push in pushes[:-1]:
        np.maximum(violation, 2 * row_norms(np.asarray(push)), out=violation)
    return violation


class _Extrapolation:
    """Anderson extrapolation of the sweeps, row by row, over all blocks but the first.

    A sweep is a contraction whose first block is a function of the others. From the last
    two changes of the step, each row picks the combination that would have made its step
    smallest. Rows with a zero group are left to the plain sweep, which ends there anyway;
    a row whose objective rose returns to where it was and starts its history anew.
    """

    def __init__(self, prepared: PreparedCodes) -> None:
        self.prepared = prepared
        self.later = slice(prepared.widths[0], None)
        self.entry: Array | None = None
        self.image: Array | None = None
        self.step: Array | None = None
        self.values: Array | None = None
        self.changes: list[tuple[Array, Array]] = []

    def before(self, codes: Array) -> None:
        """Note where the sweep starts."""
        self.entry = codes[:, self.later].copy()

    def keep(self, mask: Array) -> None:
        """Drop the rows that are finished."""
        kept = (self.entry, self.image, self.step, self.values)
        self.entry, self.image, self.step, self.values = (
            None if array is None else array[mask] for array in kept
        )
        self.changes = [(images[mask], steps[mask]) for images, steps in self.changes]

    def after(self, codes: Array, targets: Array) -> None:
        """Move the later blocks of ``codes`` to the extrapolated point."""
        values = _values(self.prepared, targets, codes)
        image = codes[:, self.later].copy()
        step = image - self.entry
        if self.image is not None and self.step is not None and self.values is not None:
            self.changes = [*self.changes[-1:], (image - self.image, step - self.step)]
            worse = values > self.values + 1e-12 * np.abs(self.values)
            if worse.any():
                image[worse] = codes[worse, self.later] = self.image[worse]
                step[worse], values[worse] = 0, self.values[worse]
                for images, steps in self.changes:
                    images[worse], steps[worse] = 0, 0
        self.image, self.step, self.values = image, step, values
        if len(self.changes) == 2:
            codes[:, self.later] -= self._correction(codes, step)

    def _correction(self, codes: Array, step: Array) -> Array:
        """Return what the best combination of the last two changes takes off."""
        (images_1, steps_1), (images_2, steps_2) = self.changes
        a, b, c = _dots(steps_1, steps_1), _dots(steps_1, steps_2), _dots(steps_2, steps_2)
        right_1, right_2 = _dots(steps_1, step), _dots(steps_2, step)
        determinant = a * c - b * b
        usable = determinant > 1e-10 * a * c
        usable &= row_norms(codes[:, self.later]) > 0
        usable &= row_norms(codes[:, : self.later.start]) > 0
        safe = np.where(usable, determinant, 1)
        weight_1 = np.where(usable, (c * right_1 - b * right_2) / safe, 0)
        weight_2 = np.where(usable, (a * right_2 - b * right_1) / safe, 0)
        correction: Array = weight_1[:, None] * images_1 + weight_2[:, None] * images_2
        return correction


def _dots(left: Array, right: Array) -> Array:
    """Return the inner product of each pair of rows."""
    products: Array = np.einsum("ij,ij->i", left, right)
    return products


def solve_block(
    pull: Array, spectrum: Array, lam: float, start: Array, newton_tol: float = 1e-4
) -> tuple[Array, Array]:
    """Solve one block in its eigenbasis: min_t tᵀ diag(spectrum) t - 2 pullᵀt + lam |t|.

    Returns the block and each row's distance from optimality, lam | |t|/s - 1 |, where s is
    the root that Newton's method found.
    """
    half = lam / 2
    if spectrum.size and spectrum.min() == 0:
        pull = pull * (spectrum > 0)
    nonzero = np.flatnonzero(row_norms(pull) > half)
    if len(nonzero) == 0:
        return np.zeros_like(pull), np.zeros(len(pull), dtype=pull.dtype)
    everyone = len(nonzero) == len(pull)
    pulls = pull if everyone else pull[nonzero]
    first = row_norms(start if everyone else start[nonzero])
    sizes = _secular_root(pulls, spectrum, half, first, newton_tol)
    denominator = sizes[:, None] * spectrum
    denominator += half
    blocks = np.divide(pulls, denominator, out=denominator)
    gaps = lam * np.abs(row_norms(blocks) - 1)
    gaps[sizes == 0] = 0
    blocks *= sizes[:, None]
    if everyone:
        return blocks, gaps
    solved = np.zeros_like(pull)
    residual = np.zeros(len(pull), dtype=pull.dtype)
    solved[nonzero], residual[nonzero] = blocks, gaps
    return solved, residual


def _secular_root(
    pull: Array, spectrum: Array, half: float, start: Array, newton_tol: float
) -> Array:
    """Return the positive root s of Σ pull² / (s spectrum + half)² = 1 for each row.

    A row's last step is taken from within ``newton_tol`` of the root, which Newton's method
    squares; warm starts make up for the rest in the next sweep.
    """
    sizes = start
    is_open = np.ones(len(sizes), dtype=bool)
    for _ in range(_NEWTON_STEPS):
        denominator = sizes[:, None] * spectrum
        denominator += half
        ratio = pull / denominator
        total = _dots(ratio, ratio)
        ratio *= ratio
        ratio /= denominator
        step = total * (np.sqrt(total) - 1) / (ratio @ spectrum)
        sizes = np.where(is_open, np.maximum(sizes + step, 0), sizes)
        is_open &= np.abs(total - 1) > newton_tol
        if not is_open.any():
            break
    return sizes


def block_pulls(prepared: PreparedCodes, cross: Array, codes: Array) -> Array:
    """Return |r_g| per row and group: what the block would fit if the others rest."""
    pulls = []
    for part in group_slices(prepared.widths):
        coupling = prepared.gram[:, part].astype(codes.dtype)
        coupling[part] = 0
        pulls.append(row_norms(cross[:, part] - codes @ coupling))
    return np.stack(pulls, axis=1)


def distance(prepared: PreparedCodes, cross: Array, codes: Array) -> Array:
    """Return each row's distance from optimality relative to max(lam, 2|cross|)."""
    gradient = 2 * (codes @ prepared.gram.astype(codes.dtype) - cross)
    gaps = optimality_distance(codes, gradient, prepared.widths, prepared.lam)
    relative: Array = gaps.max(axis=1) / np.maximum(prepared.lam, 2 * row_norms(cross))
    return relative
