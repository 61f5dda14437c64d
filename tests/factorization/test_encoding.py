"""A pass over rows: in pieces as at once, and batches that make up all rows."""

from __future__ import annotations

import numpy as np
import pytest

from froda.factorization import codes, encoding, source
from froda.factorization.encoding import Encoder, encode, visit_batches
from froda.factorization.problem import Problem
from froda.factorization.source import SourceSums


@pytest.fixture
def rows(rng):
    """Rows, a basis of two groups, and one-hot labels."""
    return rng.standard_normal((97, 9)), rng.standard_normal((9, 5)), np.eye(3)[np.arange(97) % 3]


def encoders(basis, W):
    gram = basis.T @ basis
    yield Encoder(codes.prepare(gram, (3, 2), 1.5))
    yield Encoder(codes.prepare(0.3 * gram, (3, 2), 1.5), 0.3, 0.1 * W)
    yield Encoder(source.prepare(gram), 0.3, 0.1 * W)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("number", range(3))
def test_rows_in_pieces_are_rows_at_once(number, dtype, rows, rng, monkeypatch):
    X, basis, Y = (part.astype(dtype) for part in rows)
    encoder = list(encoders(basis, rng.standard_normal((3, 5))))[number]
    whole, sums = encode(X, basis, encoder, None, Y)
    monkeypatch.setattr(encoding, "_BYTES_AT_ONCE", 10 * X.shape[1] * X.itemsize)
    pieces, piece_sums = encode(X, basis, encoder, None, Y)
    rtol = 1e-10 if dtype == np.float64 else 1e-4
    np.testing.assert_allclose(pieces, whole, atol=rtol)
    assert pieces.dtype == whole.dtype == dtype
    assert piece_sums.penalty == pytest.approx(sums.penalty, rel=rtol)
    assert (sums.penalty > 0) == (number < 2)
    for name in ("gram", "cross", "label_cross"):
        expected = getattr(sums.stats, name)
        np.testing.assert_allclose(getattr(piece_sums.stats, name), expected, atol=100 * rtol)


def test_sums_are_what_they_say(rows):
    X, basis, Y = rows
    encoder = next(encoders(basis, None))
    found, sums = encode(X, basis, encoder, None, Y)
    np.testing.assert_allclose(sums.stats.gram, found.T @ found)
    np.testing.assert_allclose(sums.stats.cross, X.T @ found)
    np.testing.assert_allclose(sums.stats.label_cross, Y.T @ found)
    norms = np.linalg.norm(found[:, :3], axis=1) + np.linalg.norm(found[:, 3:], axis=1)
    assert sums.penalty == pytest.approx(1.5 * norms.sum())
    half = sums.scaled(0.5)
    assert half.penalty == sums.penalty / 2
    np.testing.assert_array_equal((half + half).stats.cross, sums.stats.cross)


@pytest.mark.parametrize("height", [1, 10, 97, 1000])
def test_batches_make_up_all_rows(height, rows):
    X, basis, _ = rows
    encoder = next(encoders(basis, None))
    _, whole = encode(X, basis, encoder)
    sizes, parts = [], []

    def visit(n_rows, encode_batch):
        sizes.append(n_rows)
        parts.append(encode_batch(basis, encoder, None)[1])

    visit_batches(X, height, visit)
    assert sum(sizes) == 97
    assert max(sizes) - min(sizes) <= 1
    total = sum(parts[1:], parts[0])
    np.testing.assert_allclose(total.stats.cross, whole.stats.cross, atol=1e-9)


@pytest.mark.parametrize("has_labels", [True, False])
def test_source_sums_give_the_sums_over_least_squares_codes(has_labels, rows, rng):
    X, basis, Y = rows
    W = rng.standard_normal((3, 5)) if has_labels else None
    labels = Y if has_labels else None
    problem = Problem(X, X, 0.3, 1.0, labels, 0.7)
    prepared = source.prepare(source.stacked_gram(problem, basis.T @ basis, W))
    weights = None if W is None else 0.7 * W
    _, sums = encode(X, basis, Encoder(prepared, 0.3, weights), None, labels)
    pieces = [
        SourceSums.of(X[some], None if labels is None else labels[some])
        for some in (slice(0, 40), slice(40, None))
    ]
    found = (pieces[0] + pieces[1]).stats(prepared, problem, basis, W)
    for name in ("gram", "cross", "label_cross"):
        expected = getattr(sums.stats, name)
        if expected is None:
            assert getattr(found, name) is None
        else:
            np.testing.assert_allclose(getattr(found, name), expected, atol=1e-10)
