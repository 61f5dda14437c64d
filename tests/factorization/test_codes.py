"""Group-sparse codes: the conditions of design.md §3, and every case with a known answer."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from froda.factorization import codes
from froda.factorization.problem import Array

from . import reference

BOUND = 1e-8


@dataclass(frozen=True)
class Case:
    """One family of code problems: rows X, a basis, the widths of its groups, and lam."""

    X: Array
    basis: Array
    widths: tuple[int, ...]
    lam: float

    @property
    def prepared(self) -> codes.PreparedCodes:
        return codes.prepare(self.basis.T @ self.basis, self.widths, self.lam)

    @property
    def cross(self) -> Array:
        return self.X @ self.basis

    def violation(self, found: Array) -> float:
        return reference.code_violation(self.basis, self.X, found, self.widths, self.lam)


def _follow(basis: Array, spread: float) -> Array:
    """Return the basis with a second group close to the first four columns."""
    return np.hstack([basis[:, :5], basis[:, :4] + spread * basis[:, 5:]])


def _deficient(rng: np.random.Generator, basis: Array) -> Array:
    """Return the basis with a first group of rank 2 and a zero column in the second."""
    return np.hstack(
        [basis[:, :2] @ rng.standard_normal((2, 5)), basis[:, 5:8], np.zeros((len(basis), 1))]
    )


BASES = {
    "orthogonal": lambda _, basis: np.linalg.qr(basis)[0],
    "correlated": lambda _, basis: _follow(basis, 0.5),
    "identical": lambda _, basis: _follow(basis, 0.0),
    "rank deficient": _deficient,
    "badly scaled": lambda rng, basis: basis * 10 ** rng.uniform(-2, 2, 9),
    "one group strong": lambda _, basis: basis * np.repeat([1e4, 1], (5, 4)),
    "more columns than features": lambda _, basis: basis[:6],
}
WIDTHS = {
    "empty private group": (9, 0),
    "empty shared group": (0, 9),
    "one group": (9,),
    "three groups": (3, 2, 4),
}


def make(rng: np.random.Generator, kind: str, lam: float, n_rows: int = 60) -> Case:
    """Return a case of the named kind; most rows have norms around 9."""
    X = 2 * rng.standard_normal((n_rows, 20))
    basis = rng.standard_normal((20, 9)) / np.sqrt(20)
    if kind in BASES:
        basis = BASES[kind](rng, basis)
    if kind == "zero rows":
        X[::3] = 0
    return Case(X[:, : len(basis)], basis, WIDTHS.get(kind, (5, 4)), lam)


KINDS = ["random", "zero rows", *BASES, *WIDTHS]


@pytest.mark.parametrize("lam", [20.0, 3.0, 0.1, 1e-4])
@pytest.mark.parametrize("kind", KINDS)
def test_codes_are_optimal(rng, kind, lam):
    case = make(rng, kind, lam)
    assert case.violation(codes.update(case.prepared, case.cross)) <= BOUND


@pytest.mark.parametrize("lam", [3.0, 0.1, 1e-4])
@pytest.mark.parametrize("spread", [0.1, 0.03, 0.01, 1e-3, 1e-6])
def test_codes_are_optimal_where_bases_nearly_coincide(rng, spread, lam):
    """The smallest angle between V and U is about ``spread``."""
    case = make(rng, "random", lam)
    case = replace(case, basis=_follow(case.basis, spread))
    assert case.violation(codes.update(case.prepared, case.cross)) <= BOUND


@pytest.mark.parametrize("spread", [0.3, 0.03, 1e-3])
def test_codes_never_get_worse_than_their_start(rng, spread):
    """What the outer loop relies on, for every single row, however early the update stops."""
    case = make(rng, "random", 3.0)
    case = replace(case, basis=_follow(case.basis, spread))
    start = codes.update(case.prepared, case.cross, max_sweeps=3)
    for max_sweeps in (1, 2, 4, 8, 32, 128):
        found = codes.update(case.prepared, case.cross, start, max_sweeps=max_sweeps)
        before, after = (
            reference.code_objective(case.basis, case.X, point, case.widths, case.lam)
            for point in (start, found)
        )
        assert np.all(after <= before + 1e-13 * (case.X**2).sum(axis=1))


@pytest.mark.parametrize(("dtype", "lam"), [(np.float64, 1e-15), (np.float32, 1e-7)])
def test_tiny_lam_with_a_rank_deficient_basis(rng, dtype, lam):
    """Rounding along a null direction exceeds lam/2: followed, it would lead to infinity."""
    case = make(rng, "rank deficient", lam)
    case = Case(case.X.astype(dtype), case.basis.astype(dtype), case.widths, lam)
    found = codes.update(case.prepared, case.cross)
    assert np.isfinite(found).all()
    assert np.abs(found).max() < 1e4 * np.abs(case.cross).max()


@pytest.mark.parametrize("kind", ["random", "correlated", "rank deficient", "three groups"])
def test_distance_agrees_with_the_written_conditions(rng, kind):
    """At codes that are far from optimal, and at codes with a zero group."""
    case = make(rng, kind, 3.0)
    off = codes.update(case.prepared, case.cross) + 0.1 * rng.standard_normal((60, 9))
    off[::2, reference.parts(case.widths)[0]] = 0
    distance = codes.distance(case.prepared, case.cross, off)
    expected = [
        reference.code_violation(case.basis, x[None], t[None], case.widths, 3.0)
        for x, t in zip(case.X, off, strict=True)
    ]
    np.testing.assert_allclose(distance, expected, rtol=1e-9, atol=1e-13)
    assert distance.min() > 1e-4


@pytest.mark.parametrize("kind", ["random", "correlated", "badly scaled", "three groups"])
def test_fista_finds_nothing_lower(rng, kind):
    """A plain solver from another family: same minimum, and the same codes where unique."""
    case = make(rng, kind, 3.0, n_rows=25)
    mine = codes.update(case.prepared, case.cross)
    other = reference.fista_codes(case.basis, case.X, case.widths, case.lam)
    values = [
        reference.code_objective(case.basis, case.X, found, case.widths, case.lam)
        for found in (mine, other)
    ]
    assert np.all(values[0] <= values[1] + 1e-11 * (case.X**2).sum(axis=1))
    if kind != "badly scaled":  # where FISTA itself needs more steps than we wait for
        np.testing.assert_allclose(mine, other, atol=1e-6)


def test_spams_agrees(rng):
    """The toolbox that the paper used solves half our objective, samples as columns."""
    spams = pytest.importorskip("spams", reason="SPAMS comes with the dependency group 'literal'")
    case = make(rng, "correlated", 3.0, n_rows=25)
    groups = np.repeat([1, 2], case.widths).astype(np.int32)
    found = spams.fistaFlat(
        np.asfortranarray(case.X.T),
        np.asfortranarray(case.basis),
        np.zeros((9, 25), order="F"),
        loss="square",
        regul="group-lasso-l2",
        groups=groups,
        lambda1=case.lam / 2,
        tol=1e-12,
        max_it=20_000,
        numThreads=1,
    )
    mine = codes.update(case.prepared, case.cross)
    np.testing.assert_allclose(mine, found.T, atol=1e-5)


@pytest.mark.parametrize("margin", [1e-9, 1e-12, 4e-16])
@pytest.mark.parametrize("kind", ["random", "correlated", "three groups", "rank deficient"])
def test_critical_lam_gives_exactly_zero(rng, kind, margin):
    """At lam = max 2|B_gᵀx| the last group leaves; just below, that one group is there."""
    case = make(rng, kind, 1.0)
    pulls = np.stack(
        [
            2 * np.linalg.norm(case.X @ case.basis[:, part], axis=1)
            for part in reference.parts(case.widths)
        ],
        axis=1,
    )
    critical = float(pulls.max())
    for lam in (critical * (1 + margin), critical, critical * (1 - margin)):
        near = Case(case.X, case.basis, case.widths, lam)
        found = codes.update(near.prepared, near.cross)
        assert near.violation(found) <= BOUND
        assert np.abs(found).max() <= 1e3 * margin * critical
        if margin < 1e-14 or lam == critical:
            continue  # which side of zero is up to rounding
        row, group = np.unravel_index(pulls.argmax(), pulls.shape)
        assert found[row, reference.parts(case.widths)[group]].any() == (lam < critical)
        assert np.count_nonzero(found.any(axis=1)) == (lam < critical)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_blocks_that_just_enter_are_tiny_and_finite(rng, dtype):
    """Pulls within a few roundings of lam/2 on either side, for many rows."""
    spectrum = 10 ** rng.uniform(-3, 1, 5)
    pull = rng.standard_normal((2_000, 5))
    pull *= (
        0.7
        * (1 + 4 * np.finfo(dtype).eps * rng.standard_normal((2_000, 1)))
        / np.linalg.norm(pull, axis=1, keepdims=True)
    )
    prepared = codes.prepare(np.diag(spectrum), (5,), 1.4)
    found = codes.update(prepared, pull.astype(dtype))
    assert np.isfinite(found).all()
    assert np.abs(found).max() <= 1e5 * np.finfo(dtype).eps


def test_groups_of_one_are_the_lasso(rng):
    X, basis = 2 * rng.standard_normal((8, 30)), rng.standard_normal((30, 6))
    for lam in (30.0, 5.0, 0.1):
        prepared = codes.prepare(basis.T @ basis, (1,) * 6, lam)
        mine = codes.update(prepared, X @ basis)
        # scikit-learn: |x - B t|²/(2 D) + a |t|, so a = lam/(2 D)
        lasso = Lasso(alpha=lam / 60, fit_intercept=False, tol=1e-13, max_iter=100_000)
        other = np.stack([lasso.fit(basis, x).coef_ for x in X])
        np.testing.assert_allclose(mine, other, atol=1e-7)
        np.testing.assert_array_equal(mine == 0, other == 0)


@pytest.mark.parametrize("lam", [20.0, 3.0, 0.1])
def test_orthonormal_basis_is_block_soft_threshold(rng, lam):
    case = make(rng, "orthogonal", lam)
    expected = reference.shrink(case.cross, case.widths, lam / 2)
    found = codes.update(case.prepared, case.cross)
    np.testing.assert_allclose(found, expected, atol=1e-13)
    np.testing.assert_array_equal(found == 0, expected == 0)


@pytest.mark.parametrize(("kind", "n_sweeps"), [("orthogonal", 1), ("random", None)])
def test_one_sweep_where_bases_are_orthogonal(rng, monkeypatch, kind, n_sweeps):
    calls = []
    solve_block = codes.solve_block

    def count(*arguments):
        calls.append(None)
        return solve_block(*arguments)

    monkeypatch.setattr(codes, "solve_block", count)
    case = make(rng, kind, 3.0)
    codes.update(case.prepared, case.cross)
    if n_sweeps is None:
        assert len(calls) > 2
    else:
        assert len(calls) == 2 * n_sweeps


def test_a_block_alone_solves_its_secular_equation(rng):
    """Warm starts on either side of the root lead to the same block."""
    pull, spectrum = 3 * rng.standard_normal((50, 6)), np.array([0.0, 1e-6, 0.1, 1.0, 2.0, 1e3])
    pull[:, 0] = 0  # no pull along a null direction
    pull[:, 1] += np.where(pull[:, 1] > 0, 1, -1)  # every block is there: |pull| > lam/2
    prepared = codes.prepare(np.diag(spectrum), (6,), 2.0)
    answers = []
    for start in (None, 1e-8 * pull, pull, 1e6 * pull):
        solved = codes.update(prepared, pull, start, tol=1e-13)
        norms = np.linalg.norm(solved, axis=1, keepdims=True)
        assert np.all(norms > 0)
        gap = 2 * (spectrum * solved - pull) + 2.0 * solved / norms
        assert np.abs(gap).max() <= 1e-11
        answers.append(solved)
    for other in answers[1:]:
        np.testing.assert_allclose(other, answers[0], rtol=1e-6)


@pytest.mark.parametrize("kind", ["random", "correlated", "badly scaled", "three groups"])
def test_warm_start_changes_nothing(rng, kind):
    case = make(rng, kind, 3.0)
    cold = codes.update(case.prepared, case.cross, tol=1e-12)
    size = np.abs(cold).max()
    for start in (cold, 10 * cold, rng.standard_normal(cold.shape), 1e6 * np.ones(cold.shape)):
        warm = codes.update(case.prepared, case.cross, start, tol=1e-12)
        assert case.violation(warm) <= BOUND
        np.testing.assert_allclose(warm, cold, atol=1e-6 * size)


def test_inputs_are_not_written_to(rng):
    case = make(rng, "correlated", 3.0)
    arrays = [case.basis.T @ case.basis, case.cross, rng.standard_normal((60, 9))]
    copies = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    codes.update(codes.prepare(arrays[0], case.widths, 3.0), arrays[1], arrays[2])
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize("kind", ["random", "correlated", "orthogonal", "three groups"])
def test_float32_is_near_float64(rng, kind):
    case = make(rng, kind, 3.0)
    small = Case(case.X.astype(np.float32), case.basis.astype(np.float32), case.widths, 3.0)
    found = codes.update(small.prepared, small.cross)
    assert found.dtype == np.float32
    exact = codes.update(case.prepared, case.cross)
    np.testing.assert_allclose(found, exact, atol=2e-4 * np.abs(exact).max())


@pytest.mark.parametrize("kind", ["random", "correlated", "zero rows"])
def test_order_and_company_of_rows_do_not_matter(rng, kind):
    """Rows that finish early leave the iteration; the others must not notice."""
    case = make(rng, kind, 3.0)
    together = codes.update(case.prepared, case.cross)
    order = rng.permutation(len(case.X))
    shuffled = codes.update(case.prepared, case.cross[order])
    np.testing.assert_allclose(shuffled, together[order], atol=1e-11)
    alone = np.vstack([codes.update(case.prepared, row[None]) for row in case.cross])
    np.testing.assert_allclose(alone, together, atol=1e-7)


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_scaling_data_and_lam_scales_codes(rng, factor):
    case = make(rng, "correlated", 3.0)
    scaled = Case(factor * case.X, case.basis, case.widths, factor * 3.0)
    found = codes.update(scaled.prepared, scaled.cross)
    expected = factor * codes.update(case.prepared, case.cross)
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


def test_block_pulls_are_what_a_block_would_fit(rng):
    case = make(rng, "correlated", 3.0)
    found = codes.update(case.prepared, case.cross)
    pulls = codes.block_pulls(case.prepared, case.cross, found)
    first, second = reference.parts(case.widths)
    rest = case.X - found[:, second] @ case.basis[:, second].T
    np.testing.assert_allclose(
        pulls[:, 0], np.linalg.norm(rest @ case.basis[:, first], axis=1), rtol=1e-12
    )
    rest = case.X - found[:, first] @ case.basis[:, first].T
    np.testing.assert_allclose(
        pulls[:, 1], np.linalg.norm(rest @ case.basis[:, second], axis=1), rtol=1e-12
    )
    # Around lam/2: a pull of more means a non-zero group, a pull of less a zero one.
    present = np.stack([found[:, first].any(axis=1), found[:, second].any(axis=1)], axis=1)
    np.testing.assert_array_equal(present, pulls > 1.5)


def test_no_rows_give_no_codes(rng):
    case = make(rng, "random", 3.0, n_rows=0)
    assert codes.update(case.prepared, case.cross).shape == (0, 9)


@pytest.mark.parametrize("tol", [None, 1e-2])
def test_codes_of_a_row_do_not_depend_on_the_rows_beside_it(rng, tol):
    """Correlated bases, so that rows need from 1 to dozens of sweeps; several tiles of rows."""
    V = np.linalg.qr(rng.standard_normal((30, 8)))[0]
    B = np.hstack([V, 0.95 * V + 0.1 * rng.standard_normal((30, 8))])
    X = rng.standard_normal((2500, 30)) * rng.uniform(0.1, 3, (2500, 1))
    prepared = codes.prepare(B.T @ B, (8, 8), 0.5)
    together = codes.update(prepared, X @ B, tol=tol)
    for size in (1, 7, 300):
        alone = codes.update(prepared, X[100 : 100 + size] @ B, tol=tol)
        np.testing.assert_allclose(alone, together[100 : 100 + size], atol=1e-11)
