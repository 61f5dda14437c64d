"""The linear classifier on the source codes."""

from __future__ import annotations

import numpy as np
import pytest

from froda.factorization import classifier


def test_agrees_with_lstsq(rng):
    S, Y = rng.standard_normal((40, 5)), np.eye(3)[rng.integers(0, 3, 40)]
    gram, cross = S.T @ S, Y.T @ S
    W = classifier.update(classifier.prepare(gram), cross)
    assert W.shape == (3, 5)
    np.testing.assert_allclose(W, np.linalg.lstsq(S, Y, rcond=None)[0].T, atol=1e-12)
    assert np.abs((Y - S @ W.T).T @ S).max() <= 1e-12 * np.abs(cross).max()
    assert classifier.distance(gram, cross, W) <= 1e-13
    assert classifier.distance(gram, cross, 1.01 * W) == pytest.approx(1e-2, rel=1e-6)


@pytest.mark.parametrize("n_rows", [3, 40])
def test_singular_codes_never_raise_the_objective(rng, n_rows):
    """Fewer samples than codes, and codes that are copies of each other."""
    S, Y = rng.standard_normal((n_rows, 5)), np.eye(3)[rng.integers(0, 3, n_rows)]
    S[:, 4] = S[:, 0]
    current = np.linalg.lstsq(S, Y, rcond=None)[0].T + 1e-3 * rng.standard_normal((3, 5))
    W = classifier.update(classifier.prepare(S.T @ S), Y.T @ S, current)
    before, after = (((Y - S @ point.T) ** 2).sum() for point in (current, W))
    best = ((Y - S @ np.linalg.pinv(S) @ Y) ** 2).sum()
    assert after < before
    assert after <= best + 1e-12
