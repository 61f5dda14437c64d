"""The geodesic flow kernel against the integral that defines it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose
from scipy.integrate import quad_vec

from froda.baselines import GFK
from froda.baselines.gfk import kernel_factor


def geodesic(Ps, Pt, t):
    """Return P(t): the exponential map of the tangent from Ps towards Pt (textbook form)."""
    overlap = Ps.T @ Pt
    tangent = (Pt - Ps @ overlap) @ np.linalg.inv(overlap)
    left, tangents, right = np.linalg.svd(tangent, full_matrices=False)
    angles = np.arctan(tangents)
    return (Ps @ right.T * np.cos(t * angles) + left * np.sin(t * angles)) @ right


def integral(Ps, Pt):
    """Return the kernel by quadrature."""

    def integrand(t):
        basis = geodesic(Ps, Pt, t)
        return basis @ basis.T

    return quad_vec(integrand, 0, 1, epsabs=1e-12)[0]


def random_axes(rng, n_features, d):
    """Return orthonormal columns."""
    return np.linalg.qr(rng.normal(size=(n_features, d)))[0]


@pytest.mark.parametrize(("n_features", "d"), [(10, 3), (10, 1), (9, 4), (6, 5), (5, 5)])
def test_is_the_integral_over_the_geodesic(n_features, d, rng):
    Ps, Pt = random_axes(rng, n_features, d), random_axes(rng, n_features, d)
    factor, angles = kernel_factor(Ps, Pt)
    assert_allclose(factor @ factor.T, integral(Ps, Pt), atol=1e-9)
    assert_allclose(np.sort(angles), np.sort(scipy.linalg.subspace_angles(Ps, Pt)), atol=1e-7)


def test_papers_closed_form(rng):
    """Gong et al. 2012, eqs. 5 and 6, whose kernel is twice the integral."""
    n_features, d = 11, 4
    Ps, Pt = random_axes(rng, n_features, d), random_axes(rng, n_features, d)
    Rs = scipy.linalg.null_space(Ps.T)
    U1, cosines, Vt = np.linalg.svd(Ps.T @ Pt)
    theta = np.arccos(cosines)
    U2 = -(Rs.T @ Pt @ Vt.T) / np.sin(theta)
    first = np.diag(1 + np.sin(2 * theta) / (2 * theta))
    mixed = np.diag((np.cos(2 * theta) - 1) / (2 * theta))
    second = np.diag(1 - np.sin(2 * theta) / (2 * theta))
    sides = np.hstack([Ps @ U1, Rs @ U2])
    expected = sides @ np.block([[first, mixed], [mixed, second]]) @ sides.T
    factor, _ = kernel_factor(Ps, Pt)
    assert_allclose(2 * factor @ factor.T, expected, atol=1e-12)


@pytest.mark.parametrize("angle", [1e-9, 1e-5, 0.0099, 0.0101, 0.3, 1.5, np.pi / 2])
def test_one_angle(angle):
    """In the plane all is known; small angles must not lose digits."""
    start, end = np.array([[1.0], [0.0]]), np.array([[np.cos(angle)], [np.sin(angle)]])
    factor, angles = kernel_factor(start, end)
    mixed = np.sin(angle) ** 2 / (2 * angle)
    across = (1 - np.sinc(2 * angle / np.pi)) / 2
    assert_allclose(angles, angle, rtol=1e-7)
    assert_allclose(factor @ factor.T, [[1 - across, mixed], [mixed, across]], atol=1e-11)
    if angle < 0.01:
        assert_allclose((factor @ factor.T)[1, 1], angle**2 / 3, rtol=1e-4)


def test_identical_domains_give_the_projection(rng):
    axes = random_axes(rng, 8, 3)
    factor, angles = kernel_factor(axes, axes.copy())
    assert_allclose(angles, 0, atol=1e-7)
    assert_allclose(factor @ factor.T, axes @ axes.T, atol=1e-12)


def test_symmetric_in_the_domains(rng):
    Ps, Pt = random_axes(rng, 9, 4), random_axes(rng, 9, 4)
    forth, back = kernel_factor(Ps, Pt)[0], kernel_factor(Pt, Ps)[0]
    assert_allclose(forth @ forth.T, back @ back.T, atol=1e-12)


def test_kernel_of_mapped_samples(rng):
    source, target = rng.normal(size=(60, 10)), rng.normal(size=(50, 10)) + 0.5
    model = GFK(n_components=3)
    mapped = model._align(source, np.repeat([0, 1], 30), target)
    other = model._map_target(target)
    kernel = integral(model.source_axes_, model.target_axes_)
    left, right = source - source.mean(axis=0), target - target.mean(axis=0)
    assert_allclose(mapped @ other.T, left @ kernel @ right.T, atol=1e-8)
    assert np.all(np.diff(model.angles_) >= 0)
