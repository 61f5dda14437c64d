"""Rows with pending shift and scale: every operation equals that on the dense rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from froda.rows import Rows

FORMS = {
    "dense": np.asarray,
    "csr array": sparse.csr_array,
    "csr matrix": sparse.csr_matrix,
}
PENDING = [(False, False), (True, False), (False, True), (True, True)]
entries = st.one_of(st.just(0.0), st.floats(-100, 100, allow_subnormal=False))
every_form = pytest.mark.parametrize("form", FORMS)
every_pending = pytest.mark.parametrize(("has_shift", "has_scale"), PENDING)


def make(rng, form, has_shift, has_scale, *, n_rows=6, dtype=np.float64):
    """Return rows and what they stand for."""
    matrix = (rng.standard_normal((n_rows, 5)) * (rng.random((n_rows, 5)) < 0.5)).astype(dtype)
    shift = rng.standard_normal(5).astype(dtype) if has_shift else None
    scale = rng.random(n_rows).astype(dtype) if has_scale else None
    if scale is not None:
        scale[0] = 0  # a zero row stays zero
    dense = matrix - (0 if shift is None else shift)
    dense = dense * (1 if scale is None else scale[:, None])
    return Rows(FORMS[form](matrix), shift, scale), dense


@every_pending
@every_form
def test_operations_equal_the_dense_ones(rng, form, has_shift, has_scale):
    rows, dense = make(rng, form, has_shift, has_scale)
    right, left = rng.standard_normal((5, 3)), rng.standard_normal((6, 2))
    near = {"rtol": 1e-12, "atol": 1e-13}
    assert rows.shape == dense.shape
    np.testing.assert_allclose(rows.toarray(), dense, **near)
    np.testing.assert_allclose(rows @ right, dense @ right, **near)
    np.testing.assert_allclose(rows.transposed_matmul(left), dense.T @ left, **near)
    np.testing.assert_allclose(rows.second_moment(), dense.T @ dense, **near)
    np.testing.assert_allclose(rows.inner(rows), dense @ dense.T, **near)
    np.testing.assert_allclose(rows.column_sums(), dense.sum(axis=0), **near)
    np.testing.assert_allclose(rows.square_norms(), (dense**2).sum(axis=1), **near)


@every_pending
@every_form
def test_results_are_plain_arrays_of_the_same_type(rng, form, has_shift, has_scale):
    rows, _ = make(rng, form, has_shift, has_scale, dtype=np.float32)
    assert rows.dtype == np.float32
    right, left = np.ones((5, 3), np.float32), np.ones((6, 2), np.float32)
    results = {
        "toarray": (rows.toarray(), (6, 5)),
        "product": (rows @ right, (6, 3)),
        "transposed": (rows.transposed_matmul(left), (5, 2)),
        "moment": (rows.second_moment(), (5, 5)),
        "inner": (rows.inner(rows), (6, 6)),
        "sums": (rows.column_sums(), (5,)),
        "norms": (rows.square_norms(), (6,)),
    }
    for name, (result, shape) in results.items():
        assert type(result) is np.ndarray, name
        assert (result.shape, result.dtype) == (shape, np.float32), name


@pytest.mark.parametrize("forms", [(a, b) for a in FORMS for b in FORMS])
@every_pending
def test_inner_of_two_domains(rng, forms, has_shift, has_scale):
    first, dense_first = make(rng, forms[0], has_shift, has_scale)
    second, dense_second = make(rng, forms[1], has_shift, has_scale, n_rows=4)
    inner = first.inner(second)
    assert type(inner) is np.ndarray
    np.testing.assert_allclose(inner, dense_first @ dense_second.T, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(("has_shift", "has_scale"), PENDING[1:])
@pytest.mark.parametrize("is_swapped", [False, True])
def test_inner_of_pending_and_finished_rows(rng, has_shift, has_scale, is_swapped):
    """A sparse source and a dense target: one side pending, the other not."""
    first, dense_first = make(rng, "csr array", has_shift, has_scale)
    second, dense_second = make(rng, "dense", False, False, n_rows=4)
    inner = second.inner(first).T if is_swapped else first.inner(second)
    np.testing.assert_allclose(inner, dense_first @ dense_second.T, rtol=1e-12, atol=1e-13)


@given(
    matrix=arrays(np.float64, (4, 3), elements=entries),
    shift=arrays(np.float64, 3, elements=entries),
    scale=arrays(np.float64, 4, elements=st.floats(0, 10, allow_subnormal=False)),
)
def test_any_sparse_rows_equal_the_dense_ones(matrix, shift, scale):
    rows = Rows(sparse.csr_array(matrix), shift, scale)
    dense = (matrix - shift) * scale[:, None]
    near = {"rtol": 1e-11, "atol": 1e-7}  # entries reach 1e6, differences of squares 1e-16 of that
    np.testing.assert_allclose(rows.second_moment(), dense.T @ dense, **near)
    np.testing.assert_allclose(rows.inner(rows), dense @ dense.T, **near)
    np.testing.assert_allclose(rows.square_norms(), (dense**2).sum(axis=1), **near)
    assert rows.square_norms().min() >= 0


def test_finished_dense_rows_are_not_copied(rng):
    matrix = rng.standard_normal((6, 5))
    assert Rows(matrix).toarray() is matrix


@every_form
def test_inputs_are_not_written_to(rng, form):
    rows, dense = make(rng, form, True, True)
    arrays_ = [rows.shift, rows.scale, rows.matrix if form == "dense" else rows.matrix.data]
    for array in arrays_:
        array.flags.writeable = False
    rows.second_moment(), rows.inner(rows), rows.square_norms(), rows.column_sums()
    np.testing.assert_allclose(rows.toarray(), dense, rtol=1e-12, atol=1e-13)
