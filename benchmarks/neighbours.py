"""Baselines against the same methods in skada and POT, where those are right.

    pip install --group neighbours
    python benchmarks/neighbours.py

Prints the largest relative difference of each comparison; exit code 1 where two that should
agree differ by more than the tolerance. Compared are the aligned samples of SA and CORAL and
the value of ATI's assignment, which POT finds as a transport problem. skada's TCA hands a
matrix that is not symmetric to a solver of symmetric ones, so its components are only put
into the objective of TCA, in which ours must be at least as good. Neither package has GFK,
OSNN or OSLPP.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
import ot
import scipy.linalg
from scipy.spatial.distance import cdist
from skada import CORALAdapter, SubspaceAlignmentAdapter, TransferComponentAnalysisAdapter

from froda.baselines import CORAL, SA, assignment
from froda.baselines.tca import linear_components

TOLERANCE = 1e-8
N_SOURCE, N_TARGET, N_FEATURES = 80, 110, 12
NUMBERS = np.arange(N_SOURCE) % 2
DOMAINS = np.repeat([1, -2], [N_SOURCE, N_TARGET])  # skada: above zero is source


@dataclass(frozen=True)
class Row:
    """What was compared, by how much both differ, and whether that is as it should be."""

    what: str
    difference: float
    is_right: bool


def make_domains(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two domains of different mean and covariance."""
    mixings = rng.normal(size=(2, N_FEATURES, N_FEATURES))
    source = rng.normal(size=(N_SOURCE, N_FEATURES)) @ mixings[0] + 1
    return source, rng.normal(size=(N_TARGET, N_FEATURES)) @ mixings[1] - 1


def distance(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Return the largest difference relative to the largest entry."""
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def compare_sa(source: np.ndarray, target: np.ndarray) -> Row:
    """Compare in the space of the features, where signs of axes do not matter."""
    ours = SA(n_components=4)
    aligned = ours._align(source, NUMBERS, target) @ ours.target_axes_.T
    theirs = SubspaceAlignmentAdapter(n_components=4, random_state=0)
    rows = theirs.fit_transform(np.vstack([source, target]), sample_domain=DOMAINS)
    expected = rows[:N_SOURCE] @ theirs.pca_target_.components_
    gap = distance(aligned, expected)
    return Row("SA, aligned source: skada", gap, gap <= TOLERANCE)


def compare_coral(source: np.ndarray, target: np.ndarray) -> Row:
    """Compare at one ridge r, a shrinkage r / (1 + r); skada divides by n, we by n - 1."""
    ridge = 0.3
    aligned = CORAL(ridge=ridge)._align(source, NUMBERS, target)
    theirs = CORALAdapter(reg=ridge / (1 + ridge))
    rows = theirs.fit_transform(np.vstack([source, target]), sample_domain=DOMAINS)
    unbiased = np.sqrt(N_TARGET / (N_TARGET - 1) / (N_SOURCE / (N_SOURCE - 1)))
    gap = distance(aligned, unbiased * rows[:N_SOURCE])
    return Row("CORAL, aligned source: skada", gap, gap <= TOLERANCE)


def compare_ati(source: np.ndarray, target: np.ndarray, *, far: bool) -> Row:
    """Compare with a transport: a unit to each class, the other samples where it is cheap."""
    means = np.array([source[k::6].mean(axis=0) for k in range(6)])
    means[0] += 100 * far  # no sample goes there unless it must
    costs = cdist(target, means, "sqeuclidean")
    lam = (costs.max() + costs.min()) / 2
    costs = np.column_stack([costs, np.full(N_TARGET, lam)])
    columns = assignment.assign_alone(costs, 6)
    value = costs[np.arange(N_TARGET), columns].sum()
    sinks = np.column_stack([costs[:, :6], costs.min(axis=1)])
    wanted = np.append(np.ones(6), N_TARGET - 6.0)
    plan = ot.emd(np.ones(N_TARGET), wanted, sinks)
    gap = abs(value / float((plan * sinks).sum()) - 1)
    case = "a class far away" if far else "no class far away"
    return Row(f"ATI-lambda, value of the assignment, {case}: POT", gap, gap <= TOLERANCE)


def compare_tca(source: np.ndarray, target: np.ndarray) -> Row:
    """Compare the objective of both solutions, each made feasible; ours must not be above."""
    rows, weight = np.vstack([source, target]), 1e-3
    signs = np.repeat([1 / N_SOURCE, -1 / N_TARGET], [N_SOURCE, N_TARGET])
    kernel = rows @ rows.T
    mean = kernel @ signs
    centred = kernel - kernel.mean(axis=0)
    scatter = centred.T @ centred
    mu = 1 / weight  # skada's weight stands at the other term

    def objective(W: np.ndarray) -> float:
        root = scipy.linalg.sqrtm(W.T @ scatter @ W).real
        W = W @ np.linalg.inv(root)
        return float(np.sum((mean @ W) ** 2) + mu * np.sum(W**2))

    theirs = TransferComponentAnalysisAdapter(kernel="linear", n_components=3, mu=weight)
    theirs.fit(rows, sample_domain=DOMAINS)
    mapping = linear_components(rows, signs, mu, 3)[1]
    ours = np.linalg.lstsq(rows.T, mapping, rcond=None)[0]
    gap = objective(theirs.eigvects_) / objective(ours) - 1
    return Row("TCA, objective of skada's components above ours", gap, gap >= -TOLERANCE)


def main() -> int:
    """Print all comparisons; return 1 where one is not as it should be."""
    source, target = make_domains(np.random.default_rng(0))
    rows = [
        compare_sa(source, target),
        compare_coral(source, target),
        compare_ati(source, target, far=False),
        compare_ati(source, target, far=True),
        compare_tca(source, target),
    ]
    for row in rows:
        print(f"{row.what:<62}{row.difference:9.1e}  {'ok' if row.is_right else 'WRONG'}")
    return int(not all(row.is_right for row in rows))


if __name__ == "__main__":
    sys.exit(main())
