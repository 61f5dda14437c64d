"""What is solved and what comes out: shapes, sums over rows, reasons to stop."""

from __future__ import annotations

import numpy as np
import pytest

from froda.factorization.problem import Factors, Problem, Stats, StopReason, square_norm


def test_factors_know_their_groups(rng):
    V, U, U2 = rng.random((6, 3)), rng.random((6, 2)), rng.random((6, 1))
    plain = Factors(V, U, rng.random((4, 5)), rng.random((7, 3)))
    assert (plain.target_widths, plain.source_widths) == ((3, 2), (3,))
    np.testing.assert_array_equal(plain.target_basis, np.hstack([V, U]))
    np.testing.assert_array_equal(plain.source_basis, V)
    both = Factors(V, U, rng.random((4, 5)), rng.random((7, 4)), None, U2)
    assert both.source_widths == (3, 1)
    np.testing.assert_array_equal(both.source_basis, np.hstack([V, U2]))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_over_chunks_are_sums_over_rows(rng, dtype):
    """All that the bases see of the data may be added up in pieces."""
    X, codes = (
        rng.standard_normal((30, 8)).astype(dtype),
        rng.standard_normal((30, 4)).astype(dtype),
    )
    Y = np.eye(3, dtype=dtype)[rng.integers(0, 3, 30)]
    whole = Stats.of(X, codes, Y)
    pieces = [Stats.of(X[i : i + 7], codes[i : i + 7], Y[i : i + 7]) for i in range(0, 30, 7)]
    near = {"rtol": 1e-12, "atol": 1e-12} if dtype == np.float64 else {"rtol": 1e-4, "atol": 1e-5}
    np.testing.assert_allclose(sum(piece.gram for piece in pieces), whole.gram, **near)
    np.testing.assert_allclose(sum(piece.cross for piece in pieces), whole.cross, **near)
    np.testing.assert_allclose(
        sum(piece.label_cross for piece in pieces), whole.label_cross, **near
    )
    np.testing.assert_allclose(whole.gram, codes.T @ codes, **near)
    np.testing.assert_allclose(whole.cross, X.T @ codes, **near)
    np.testing.assert_allclose(whole.label_cross, Y.T @ codes, **near)
    assert whole.gram.dtype == whole.label_cross.dtype == np.float64
    assert whole.cross.dtype == dtype


def test_square_norms(rng):
    Xs, Xt = rng.standard_normal((5, 3)), np.asfortranarray(rng.standard_normal((4, 3)))
    problem = Problem(Xs, Xt, 0.1, 1.0)
    assert problem.source_square_norm == pytest.approx((Xs**2).sum(), rel=1e-14)
    assert problem.target_square_norm == pytest.approx((Xt**2).sum(), rel=1e-14)
    assert square_norm(Xt[::2, 1:]) == pytest.approx((Xt[::2, 1:] ** 2).sum(), rel=1e-14)


@pytest.mark.parametrize("reason", StopReason)
def test_every_reason_has_a_name_and_a_remedy(reason):
    name, remedy = str(reason).split(": ", 1)
    assert name == reason.name.lower()
    assert len(remedy) > 30
