"""Group-sparse codes of all samples at once (eqs. 4 and 7).

Sub-problem, for each row x of the data with the basis B = [B_1, B_2, ...]:

    min_t |x - B t|² + lam Σ_g |t_g|

Each block is solved exactly while the others rest. With B_gᵀB_g = Q diag(e) Qᵀ and
z = Qᵀ r_g, r_g = B_gᵀ(x - B_other t_other), the block is zero where 2|r_g| <= lam;
elsewhere t_g = Q [z s / (s e + lam/2)], where s = |t_g| is the root of

    φ(s) = Σ_k z_k² / (s e_k + lam/2)² = 1.

φ^(-1/2) is concave and increasing, so Newton's method on φ^(-1/2) - 1 climbs to the root
from the left without overshooting. Blocks alternate until the optimality conditions hold.
The data enter only through ``cross`` = X B and the Gram matrix BᵀB.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from froda.factorization.penalties import group_slices, optimality_distance, row_norms
from froda.factorization.problem import Array

_NEWTON_STEPS = 60


@dataclass(frozen=True)
class PreparedCodes:
    """Gram matrix of the basis with each diagonal block diagonalised.

    ``rotation`` is block diagonal; in rotated codes every diagonal block of the Gram
    matrix is ``diag(eigenvalues[g])`` and group norms are unchanged.
    """

    gram: Array
    widths: tuple[int, ...]
    lam: float
    eigenvalues: list[Array]
    rotation: Array
    rotated_gram: Array


def prepare(gram: Array, widths: tuple[int, ...], lam: float) -> PreparedCodes:
    """Diagonalise the blocks of BᵀB once."""
    gram = np.asarray(gram, dtype=np.float64)
    rotation = np.zeros_like(gram)
    eigenvalues = []
    for part in group_slices(widths):
        values, vectors = np.linalg.eigh(gram[part, part])
        eigenvalues.append(np.maximum(values, 0))
        rotation[part, part] = vectors
    rotated = rotation.T @ gram @ rotation
    return PreparedCodes(gram, widths, lam, eigenvalues, rotation, rotated)


def update(
    prepared: PreparedCodes,
    cross: Array,
    start: Array | None = None,
    *,
    tol: float | None = None,
    max_sweeps: int = 2_000,
) -> Array:
    """Return the optimal codes, n × width.

    A row is done when its distance from optimality is at most ``tol`` times
    max(lam, 2|cross|); ``start`` is a warm start and is not written to.
    """
    dtype = cross.dtype
    if tol is None:
        tol = 1e-9 if dtype == np.float64 else 1e-5
    rotation = prepared.rotation.astype(dtype, copy=False)
    targets = cross @ rotation
    codes = np.zeros_like(targets) if start is None else start @ rotation
    limits = tol * np.maximum(prepared.lam, 2 * row_norms(targets))
    rows = np.arange(len(targets))
    active, aims, bounds = codes, targets, limits
    for _ in range(max_sweeps):
        violation = _sweep(prepared, active, aims)
        if active is not codes:
            codes[rows] = active
        unfinished = violation > bounds
        if not unfinished.any():
            break
        if len(unfinished) > 2 * np.count_nonzero(unfinished) or active is codes:
            rows = rows[unfinished]
            active, aims, bounds = codes[rows], targets[rows], limits[rows]
    return codes @ rotation.T


def _sweep(prepared: PreparedCodes, codes: Array, targets: Array) -> Array:
    """Update each block of ``codes`` in place; return how far earlier blocks are now off."""
    parts = group_slices(prepared.widths)
    moved = np.zeros_like(codes)
    for part, spectrum in zip(parts, prepared.eigenvalues, strict=True):
        coupling = prepared.rotated_gram[:, part].astype(codes.dtype)
        coupling[part] = 0
        pull = targets[:, part] - codes @ coupling
        new = solve_block(pull, spectrum.astype(codes.dtype), prepared.lam, codes[:, part])
        moved[:, part] = new - codes[:, part]
        codes[:, part] = new
    violation = np.zeros(len(codes), dtype=codes.dtype)
    for number, part in enumerate(parts[:-1]):
        later = slice(parts[number + 1].start, None)
        disturbance = moved[:, later] @ prepared.rotated_gram[later, part].astype(codes.dtype)
        violation = np.maximum(violation, 2 * row_norms(disturbance))
    return violation


def solve_block(pull: Array, spectrum: Array, lam: float, start: Array) -> Array:
    """Solve one block in its eigenbasis: min_t tᵀ diag(spectrum) t - 2 pullᵀt + lam |t|."""
    half = lam / 2
    solved = np.zeros_like(pull)
    squares = pull * pull
    nonzero = np.flatnonzero(squares.sum(axis=1) > half * half)
    if len(nonzero) == 0:
        return solved
    everyone = len(nonzero) == len(pull)
    squares = squares if everyone else squares[nonzero]
    norms = row_norms(start if everyone else start[nonzero])
    sizes = _secular_root(squares, spectrum, half, norms)
    weights = sizes[:, None] / (sizes[:, None] * spectrum + half)
    if everyone:
        return pull * weights
    solved[nonzero] = pull[nonzero] * weights
    return solved


def _secular_root(squares: Array, spectrum: Array, half: float, start: Array) -> Array:
    """Return the positive root s of Σ squares / (s spectrum + half)² = 1 for each row."""
    sizes = np.maximum(start, 0)
    accuracy = 16 * np.finfo(squares.dtype).eps
    for _ in range(_NEWTON_STEPS):
        inverse = 1 / (sizes[:, None] * spectrum + half)
        terms = squares * inverse * inverse
        total = terms.sum(axis=1)
        if np.all(np.abs(total - 1) <= accuracy):
            break
        slope = (terms * inverse) @ spectrum
        sizes = np.maximum(sizes + total * (np.sqrt(total) - 1) / slope, 0)
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
