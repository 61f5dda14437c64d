"""The subspace disagreement measure, next to principal angles from SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from froda.dimension import subspace_disagreement
from froda.pca import principal_axes
from froda.rows import Rows


def make(rng, n_features=10, shared=4):
    """Return source and target that vary most along the same few directions, and then not."""
    turn = np.linalg.qr(rng.standard_normal((n_features, n_features)))[0]
    spread = np.geomspace(3, 0.3, n_features)
    other = np.append(spread[:shared] * 0.9, rng.permutation(spread[shared:]))
    Xs = rng.standard_normal((80, n_features)) * spread @ turn
    Xt = rng.standard_normal((70, n_features)) * other @ turn
    return Xs, Xt


def axes_in_joint_coordinates(Xs, Xt):
    """Return both domains' axes the way the estimators hand them over."""
    _, (Zs, Zt) = principal_axes([Rows(Xs), Rows(Xt)])
    return [principal_axes([Rows(Z)])[0].axes for Z in (Zs, Zt)]


def svd_axes(X, d):
    """Return the leading axes in the original space by a plain SVD."""
    return np.linalg.svd(X - X.mean(axis=0))[2][:d].T


def measure_by_angles(Xs, Xt, d):
    """Return (sin a + sin b)/2 from SciPy's largest principal angles."""
    joint = svd_axes(np.vstack([Xs, Xt]), d)
    return sum(np.sin(subspace_angles(svd_axes(X, d), joint)[0]) for X in (Xs, Xt)) / 2


def test_agrees_with_principal_angles(rng):
    Xs, Xt = make(rng)
    n_components, curve = subspace_disagreement(*axes_in_joint_coordinates(Xs, Xt), 9, slack=-1)
    assert n_components == len(curve) == 9
    expected = [measure_by_angles(Xs, Xt, d) for d in range(1, 10)]
    np.testing.assert_allclose(curve, expected, atol=1e-8)
    assert np.any(np.diff(curve) < 0)  # not monotone, so the scan has to stop at the first


def test_stops_at_the_first_hit(rng):
    Xs, Xt = make(rng)
    axes = axes_in_joint_coordinates(Xs, Xt)
    expected = np.array([measure_by_angles(Xs, Xt, d) for d in range(1, 10)])
    for slack in (0.1, 0.3, 0.6, 0.9):
        hits = np.flatnonzero(expected >= 1 - slack)
        first = int(hits[0]) + 1 if len(hits) else 9
        n_components, curve = subspace_disagreement(*axes, 9, slack=slack)
        assert n_components == len(curve) == first
    assert subspace_disagreement(*axes, 9, slack=1.0)[0] == 1


def test_default_slack_is_a_thousandth():
    """Two dimensions with angles whose sine is just below and just above 0.999."""
    for sine, expected in ((0.9989, 2), (0.9991, 1)):
        turned = np.array([[np.sqrt(1 - sine**2), sine], [-sine, np.sqrt(1 - sine**2)]])
        assert subspace_disagreement(turned, turned, 2)[0] == expected


@pytest.mark.parametrize("cap", [1, 3])
def test_stops_at_the_cap(rng, cap):
    axes = np.eye(10)
    n_components, curve = subspace_disagreement(axes, axes, cap)
    assert n_components == len(curve) == cap
    np.testing.assert_array_equal(curve, 0)


def test_orthogonal_subspaces_disagree_at_once():
    n_components, curve = subspace_disagreement(np.eye(4)[:, ::-1], np.eye(4)[:, ::-1], 2)
    assert n_components == 1
    np.testing.assert_array_equal(curve, [1])


def test_half_of_the_measure_comes_from_each_domain():
    source, target = np.eye(4)[:, ::-1], np.eye(4)
    np.testing.assert_allclose(subspace_disagreement(source, target, 1)[1], [0.5])
    np.testing.assert_allclose(subspace_disagreement(target, source, 1)[1], [0.5])


def test_signs_of_axes_do_not_matter(rng):
    source, target = axes_in_joint_coordinates(*make(rng))
    expected = subspace_disagreement(source, target, 9, slack=-1)[1]
    signs = rng.choice([-1, 1], source.shape[1])
    found = subspace_disagreement(source * signs, target * -signs, 9, slack=-1)[1]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_float32_axes_are_enough(rng):
    source, target = axes_in_joint_coordinates(*make(rng))
    exact = subspace_disagreement(source, target, 9, slack=-1)[1]
    small = subspace_disagreement(source.astype("f4"), target.astype("f4"), 9, slack=-1)[1]
    np.testing.assert_allclose(small, exact, atol=1e-4)
