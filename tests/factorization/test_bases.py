"""One basis with its codes fixed: optimality under both limits, and second opinions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from froda.factorization import bases
from froda.factorization.problem import Array

from . import reference

BOUND = 1e-8


@dataclass(frozen=True)
class Case:
    """Sums over rows, and the basis that is there before the update."""

    gram: Array
    cross: Array
    current: Array


def _squeeze(rng: np.random.Generator, codes: Array) -> Array:
    left, _, right = np.linalg.svd(codes, full_matrices=False)
    return left * np.logspace(1, -2, codes.shape[1]) @ right


def _follow(codes: Array, factor: float) -> Array:
    return np.column_stack([codes[:, 0], factor * codes[:, 0], codes[:, 2:]])


CODES = {
    "random": lambda _, codes: codes,
    "ill-conditioned": _squeeze,
    "badly scaled": lambda rng, codes: codes * 10 ** rng.uniform(-2, 2, codes.shape[1]),
    "singular": lambda rng, codes: codes[:, :2] @ rng.standard_normal((2, codes.shape[1])),
    "fewer rows than columns": lambda _, codes: codes * (np.arange(len(codes)) < 3)[:, None],
    "one row": lambda _, codes: codes * (np.arange(len(codes)) < 1)[:, None],
    "repeated column": lambda _, codes: _follow(codes, 1),
    "nearly repeated column": lambda _, codes: _follow(codes, 1 + 1e-9),
    "opposite column": lambda _, codes: _follow(codes, -2),
    "unused column": lambda _, codes: codes * ~np.isin(np.arange(codes.shape[1]), [1, 4]),
}


def make(
    rng: np.random.Generator,
    kind: str,
    n_features: int = 12,
    n_columns: int = 6,
    strength: float = 1.0,
) -> Case:
    """Return a case of the named kind; around ``strength`` 1 the limits bind."""
    codes = CODES[kind](rng, rng.standard_normal((40, n_columns)))
    truth = rng.standard_normal((n_features, n_columns)) / np.sqrt(n_features)
    X = strength * codes @ truth.T + 0.3 * strength * rng.standard_normal((40, n_features))
    current = rng.standard_normal((n_features, n_columns))
    current /= n_columns * np.linalg.norm(current, axis=0)
    return Case(codes.T @ codes, X.T @ codes, current)


REGULAR = ["random", "ill-conditioned", "badly scaled"]
SINGULAR = [
    "singular",
    "fewer rows than columns",
    "one row",
    "repeated column",
    "nearly repeated column",
    "opposite column",
]


def solve_per_column(case: Case, multipliers: Array | None = None) -> tuple[Array, Array]:
    prepared = bases.prepare(case.gram, case.cross)
    return bases.update_per_column(prepared, case.current, multipliers)


def solve_total(case: Case, radius: float = 1.0) -> Array:
    return bases.update_total(bases.prepare(case.gram, case.cross), case.current, radius)


@pytest.mark.parametrize("strength", [1e-3, 0.5, 1.0, 2.0, 1e3])
@pytest.mark.parametrize("kind", REGULAR + SINGULAR)
def test_per_column_is_optimal(rng, kind, strength):
    """With the multipliers that are handed back, and with those that the basis implies."""
    case = make(rng, kind, strength=strength)
    basis, multipliers = solve_per_column(case)
    with_theirs = reference.per_column_violation(case.gram, case.cross, basis, multipliers)
    assert with_theirs <= BOUND
    assert reference.per_column_violation(case.gram, case.cross, basis) <= BOUND


def test_per_column_is_optimal_time_and_again(rng):
    """Codes of condition 1e3, where about one problem in sixteen used to end far off."""
    for _ in range(60):
        case = make(rng, "ill-conditioned")
        basis, multipliers = solve_per_column(case)
        assert reference.per_column_violation(case.gram, case.cross, basis, multipliers) <= BOUND


@pytest.mark.parametrize("strength", [1e-3, 1.0, 30.0])
@pytest.mark.parametrize("kind", ["four", "eight", "eight, few rows", "close"])
def test_per_column_leaves_no_duality_gap(rng, kind, strength):
    """Codes of sizes down to 1e-4 or 1e-8, and two that differ by 1e-6."""
    codes = rng.standard_normal((12 if "few" in kind else 50, 20))
    if kind == "close":
        codes[:, 2] = codes[:, 0] + 1e-6 * rng.standard_normal(len(codes))
    else:
        codes *= np.geomspace(1, 1e-4 if kind == "four" else 1e-8, 20)
    X = strength * rng.standard_normal((len(codes), 60))
    case = Case(codes.T @ codes, X.T @ codes, np.zeros((60, 20)))
    basis, multipliers = solve_per_column(case)
    primal = reference.basis_objective(case.gram, case.cross, basis)
    inverse = np.linalg.pinv(case.gram + np.diag(multipliers), rcond=1e-19, hermitian=True)
    dual = -np.vdot(case.cross @ inverse, case.cross) - multipliers.sum()
    assert np.linalg.norm(basis, axis=0).max() <= 1 + 1e-12
    assert primal - dual <= BOUND * abs(primal)


@pytest.mark.parametrize("strength", [1e-3, 0.1, 1.0, 1e3])
@pytest.mark.parametrize("kind", REGULAR + SINGULAR)
def test_total_is_optimal(rng, kind, strength):
    case = make(rng, kind, strength=strength)
    basis = solve_total(case)
    assert reference.total_violation(case.gram, case.cross, basis, 1.0) <= BOUND
    assert bases.distance_total(case.gram, case.cross, basis) <= BOUND


@pytest.mark.parametrize("kind", REGULAR + SINGULAR)
@pytest.mark.parametrize("limit", reference.LIMITS)
def test_update_never_raises_the_objective(rng, kind, limit):
    """Not even where the present basis is already the answer."""
    case = make(rng, kind)
    current = case.current
    size = np.abs(case.gram).max() + np.abs(case.cross).sum()
    for _ in range(3):
        prepared = bases.prepare(case.gram, case.cross)
        if limit == "total":
            basis = bases.update_total(prepared, current)
        else:
            basis, _ = bases.update_per_column(prepared, current)
        before = reference.basis_objective(case.gram, case.cross, current)
        assert reference.basis_objective(case.gram, case.cross, basis) <= before + 1e-13 * size
        current = basis


@pytest.mark.parametrize("n_features", [3, 12])
@pytest.mark.parametrize("limit", reference.LIMITS)
def test_slsqp_finds_nothing_lower(rng, limit, n_features):
    case = make(rng, "random", n_features=n_features, n_columns=3)
    basis = solve_total(case) if limit == "total" else solve_per_column(case)[0]
    other = reference.slsqp_basis(case.gram, case.cross, limit)
    np.testing.assert_allclose(basis, other, atol=1e-4)
    mine, theirs = (
        reference.basis_objective(case.gram, case.cross, found) for found in (basis, other)
    )
    assert mine == pytest.approx(theirs, rel=1e-5)  # SLSQP oversteps limits by 1e-6


def test_slsqp_agrees_where_the_budget_silences_columns(rng):
    """Under the total limit some columns vanish: the non-smooth part of the problem."""
    case = make(rng, "random", n_features=4, n_columns=4)
    case.cross[:, 1:3] *= 0.05
    basis = solve_total(case, 0.2)
    assert np.count_nonzero(np.linalg.norm(basis, axis=0)) < 4
    other = reference.slsqp_basis(case.gram, case.cross, "total", 0.2)
    np.testing.assert_allclose(basis, other, atol=1e-3)


@pytest.mark.parametrize("limit", reference.LIMITS)
def test_slack_limits_give_least_squares(rng, limit):
    case = make(rng, "random", strength=1e-2)
    expected = np.linalg.solve(case.gram, case.cross.T).T
    assert np.linalg.norm(expected, axis=0).sum() < 1
    basis = solve_total(case) if limit == "total" else solve_per_column(case)[0]
    np.testing.assert_allclose(basis, expected, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("excess", [-1e-4, 0, 1e-9, 1e-6, 5e-4])
def test_limits_that_hardly_bind(rng, excess):
    """Columns of the least-squares basis, or their sum, end just before or beyond the limit."""
    codes = rng.standard_normal((40, 6))
    gram = codes.T @ codes
    best = rng.standard_normal((12, 6))
    best *= (1 + excess) / np.linalg.norm(best, axis=0)
    basis, multipliers = solve_per_column(Case(gram, best @ gram, 0 * best))
    assert reference.per_column_violation(gram, best @ gram, basis, multipliers) <= BOUND
    basis = solve_total(Case(gram, best @ gram / 6, 0 * best))
    assert reference.total_violation(gram, best @ gram / 6, basis, 1.0) <= BOUND


def test_binding_limits_bind(rng):
    case = make(rng, "random", strength=1e3)
    basis, multipliers = solve_per_column(case)
    np.testing.assert_allclose(np.linalg.norm(basis, axis=0), 1, rtol=1e-10)
    assert multipliers.min() > 0
    assert np.linalg.norm(solve_total(case, 0.7), axis=0).sum() == pytest.approx(0.7, rel=1e-12)


@pytest.mark.parametrize("limit", reference.LIMITS)
def test_unused_columns_keep_their_value(rng, limit):
    """And under the total limit they keep their share of it."""
    case = make(rng, "unused column", strength=3.0)
    basis = solve_total(case) if limit == "total" else solve_per_column(case)[0]
    np.testing.assert_array_equal(basis[:, [1, 4]], case.current[:, [1, 4]])
    used = [0, 2, 3, 5]
    gram, cross = case.gram[np.ix_(used, used)], case.cross[:, used]
    if limit == "total":
        assert reference.total_violation(gram, cross, basis[:, used], 4 / 6) <= BOUND
    else:
        assert reference.per_column_violation(gram, cross, basis[:, used]) <= BOUND


@pytest.mark.parametrize("limit", reference.LIMITS)
def test_nothing_used_changes_nothing(rng, limit):
    current = rng.standard_normal((5, 3)) / 10
    case = Case(np.zeros((3, 3)), np.zeros((5, 3)), current)
    basis = solve_total(case) if limit == "total" else solve_per_column(case)[0]
    np.testing.assert_array_equal(basis, current)


@pytest.mark.parametrize("kind", REGULAR)
def test_warm_multipliers_change_nothing(rng, kind):
    case = make(rng, kind)
    cold, multipliers = solve_per_column(case)
    size = multipliers.max()
    for start in (multipliers, 1e3 * multipliers, np.full(6, size), size * rng.random(6)):
        warm, again = solve_per_column(case, start)
        assert reference.per_column_violation(case.gram, case.cross, warm, again) <= BOUND
        np.testing.assert_allclose(warm, cold, atol=1e-6)


def test_total_of_radius_zero_is_zero(rng):
    case = make(rng, "random")
    assert not solve_total(case, 0.0).any()


def test_distance_total_accepts_radius_zero(rng):
    case = make(rng, "random")
    basis = np.zeros_like(case.current)
    assert bases.distance_total(case.gram, case.cross, basis, 0.0) == 0


@pytest.mark.parametrize("radius", [1e-17, 1e-30])
def test_total_of_hardly_any_radius(rng, radius):
    """What V leaves over for U in D-FRODA-U may be rounding."""
    basis = solve_total(make(rng, "random"), radius)
    assert np.linalg.norm(basis, axis=0).sum() <= radius * (1 + 1e-12)


@pytest.mark.parametrize("radius", [1e-6, 0.3, 1.0])
def test_total_keeps_to_its_radius(rng, radius):
    case = make(rng, "random", strength=5.0)
    basis = solve_total(case, radius)
    assert reference.total_violation(case.gram, case.cross, basis, radius) <= BOUND


@pytest.mark.parametrize("kind", ["random", "unused column"])
def test_inputs_are_not_written_to(rng, kind):
    case = make(rng, kind)
    multipliers = rng.random(6)
    for array in (case.gram, case.cross, case.current, multipliers):
        array.flags.writeable = False
    basis, _ = solve_per_column(case, multipliers)
    assert not np.shares_memory(basis, case.current)
    assert not np.shares_memory(solve_total(case), case.current)


@pytest.mark.parametrize("limit", reference.LIMITS)
def test_float32_is_near_float64(rng, limit):
    case = make(rng, "random")
    small = Case(case.gram, case.cross.astype(np.float32), case.current.astype(np.float32))
    solve = solve_total if limit == "total" else lambda case: solve_per_column(case)[0]
    found, exact = solve(small), solve(case)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, exact, atol=1e-5)


@pytest.mark.parametrize("kind", ["random", "badly scaled"])
def test_scale_of_the_data_does_not_matter(rng, kind):
    """G and H times any constant have the same minimiser."""
    case = make(rng, kind)
    for factor in (1e-12, 1e12):
        scaled = Case(factor * case.gram, factor * case.cross, case.current)
        np.testing.assert_allclose(
            solve_per_column(scaled)[0], solve_per_column(case)[0], atol=1e-9
        )
        np.testing.assert_allclose(solve_total(scaled), solve_total(case), atol=1e-7)


def test_quadratic_is_the_objective(rng):
    case = make(rng, "random")
    expected = reference.basis_objective(case.gram, case.cross, case.current)
    assert bases.quadratic(case.gram, case.cross, case.current) == pytest.approx(expected)


@pytest.mark.parametrize("limit", reference.LIMITS)
def test_distances_see_what_is_off(rng, limit):
    """Near 0 at the answer, and about as large as the error elsewhere."""
    case = make(rng, "random", strength=2.0)
    basis, multipliers = solve_per_column(case)
    if limit == "total":
        basis = solve_total(case)

    def distance(point: Array, forces: Array = multipliers) -> float:
        if limit == "total":
            return bases.distance_total(case.gram, case.cross, point)
        return bases.distance_per_column(case.gram, case.cross, point, forces)

    assert distance(basis) <= BOUND
    assert distance(0.999 * basis) > 1e-4
    turned = basis + 1e-3 * rng.standard_normal(basis.shape)
    assert distance(turned) > 1e-5
    if limit == "per_column":
        assert distance(basis, 1.001 * multipliers) > 1e-5
