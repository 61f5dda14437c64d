"""Transfer component analysis against the trace problem that it solves."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose

from froda.baselines import TCA
from froda.baselines.tca import kernel_components, linear_components, rbf_kernel

N_SOURCE, N_TARGET = 30, 24
NUMBERS = np.repeat([0, 1], N_SOURCE // 2)
N = N_SOURCE + N_TARGET
E = np.repeat([1 / N_SOURCE, -1 / N_TARGET], [N_SOURCE, N_TARGET])
L = np.outer(E, E)
H = np.eye(N) - 1 / N


def make_rows(rng, n_features=6):
    """Stacked domains with different means."""
    rows = rng.normal(size=(N, n_features)) * np.linspace(2, 0.5, n_features)
    rows[N_SOURCE:] += 0.7
    return rows


def gaussian(rows):
    """The RBF kernel entry by entry."""
    return np.exp(-0.2 * ((rows[:, None] - rows) ** 2).sum(axis=2))


KERNELS = {"linear": lambda rows: rows @ rows.T, "rbf": gaussian}


def solve(name, rows, mu, d):
    """Return the kernel, the eigenvalues and W, whichever way the kernel goes."""
    kernel = KERNELS[name](rows)
    if name == "rbf":
        return kernel, *kernel_components(kernel, E, mu, d)
    values, mapping = linear_components(rows, E, mu, d)
    return kernel, values, np.linalg.lstsq(rows.T, mapping)[0]  # the W of least norm


def objective(kernel, W, mu):
    """The trace that TCA minimises."""
    return np.trace(W.T @ kernel @ L @ kernel @ W) + mu * np.trace(W.T @ W)


CASES = [(name, mu) for name in KERNELS for mu in (1e-3, 1.0, 50.0)]


@pytest.mark.parametrize(("name", "mu"), CASES)
def test_solves_its_eigenproblem(name, mu, rng):
    kernel, values, W = solve(name, make_rows(rng), mu, 4)
    scatter, cost = kernel @ H @ kernel, kernel @ L @ kernel + mu * np.eye(N)
    assert_allclose(W.T @ scatter @ W, np.eye(4), atol=1e-9)
    residual = scatter @ W - cost @ W * values
    assert np.linalg.norm(residual) <= 1e-8 * np.linalg.norm(scatter @ W)
    expected = scipy.linalg.eigh(scatter, cost, eigvals_only=True)[::-1][:4]
    assert_allclose(values, expected, rtol=1e-8)


@pytest.mark.parametrize(("name", "mu"), CASES)
def test_no_feasible_point_is_better(name, mu, rng):
    kernel, values, W = solve(name, make_rows(rng), mu, 3)
    best = objective(kernel, W, mu)
    assert_allclose(best, (1 / values).sum(), rtol=1e-8)
    scatter = kernel @ H @ kernel
    directions = [W + 0.05 * np.abs(W).max() * rng.normal(size=W.shape) for _ in range(50)]
    directions += [rng.normal(size=W.shape) for _ in range(50)]
    for direction in directions:
        V = (
            direction @ np.linalg.inv(np.linalg.cholesky(direction.T @ scatter @ direction)).T
        )  # feasible
        assert_allclose(V.T @ scatter @ V, np.eye(3), atol=1e-6)
        assert objective(kernel, V, mu) >= best * (1 - 1e-9)


@pytest.mark.parametrize("n_features", [6, 80])  # more features than samples: n × n side
def test_linear_kernel_agrees_with_explicit_features(n_features, rng):
    rows = make_rows(rng, n_features)
    values, mapping = linear_components(rows, E, 2.0, 4)
    kernel = rows @ rows.T
    from_kernel, W = kernel_components(kernel, E, 2.0, 4)
    assert_allclose(values, from_kernel, rtol=1e-9)
    components, expected = rows @ mapping, kernel @ W
    signs = np.sign((components * expected).sum(axis=0))
    assert_allclose(components, expected * signs, atol=1e-9)


def test_closer_means_for_smaller_mu(rng):
    rows = make_rows(rng)

    def gap(mu):
        components = rows @ linear_components(rows, E, mu, 2)[1]
        return np.linalg.norm(components[:N_SOURCE].mean(0) - components[N_SOURCE:].mean(0))

    assert gap(1e-4) < 1e-3 * gap(1e4)


def test_identical_domains_are_left_to_kernel_pca(rng):
    half = rng.normal(size=(30, 6)) * np.linspace(3, 1, 6)
    rows = np.vstack([half, half])
    signs = np.repeat([1 / 30, -1 / 30], 30)
    mapping = linear_components(rows, signs, 1.0, 3)[1]
    # Without a gap it is v = eigenvalue of KHK; near-centred rows give the principal axes.
    centred = rows - rows.mean(axis=0)
    values, mapping = linear_components(centred, signs, 1.0, 3)
    axes = np.linalg.svd(centred)[2][:3]
    assert_allclose(np.abs(axes @ mapping / np.linalg.norm(mapping, axis=0)), np.eye(3), atol=1e-9)
    assert_allclose(values, np.linalg.svd(centred)[1][:3] ** 4, rtol=1e-9)


def test_rbf_kernel_entries(rng):
    rows = make_rows(rng)
    assert_allclose(rbf_kernel(rows, rows, 0.2), gaussian(rows), atol=1e-13)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_new_samples_go_through_the_kernel(kernel, rng):
    rows = make_rows(rng)
    model = TCA(n_components=3, kernel=kernel)
    components = model._align(rows[:N_SOURCE], NUMBERS, rows[N_SOURCE:])
    again = model._map_target(rows)
    assert_allclose(again[:N_SOURCE], components, atol=1e-10)
    assert_allclose(model._map_target(rows[:5]), components[:5], atol=1e-10)
    assert_allclose(np.cov(again.T) * (N - 1), np.eye(3), atol=1e-8)


def test_no_second_kernel_matrix_is_built(rng):
    """At 5,000 a side the kernel alone takes 800 MB; here 32 MB, and the same share more."""
    n, numbers = 1000, np.arange(1000) % 2
    source, target = rng.normal(size=(n, 20)), rng.normal(size=(n, 20)) + 0.5
    model = TCA(n_components=3, kernel="rbf")
    tracemalloc.start()
    model._align(source, numbers, target)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 1.2 * (2 * n) ** 2 * 8


def test_linear_kernel_builds_no_kernel_matrix_at_5000_a_side(rng):
    n, numbers = 5000, np.arange(5000) % 2
    source, target = rng.normal(size=(n, 40)), rng.normal(size=(n, 40)) + 0.5
    tracemalloc.start()
    TCA(n_components=5)._align(source, numbers, target)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 0.05 * (2 * n) ** 2 * 8


@pytest.mark.parametrize(
    ("name", "value"),
    [("kernel", "poly"), ("kernel", None), ("mu", 0), ("mu", np.nan), ("gamma", -1)],
)
def test_bad_settings(name, value, rng):
    rows = make_rows(rng)
    with pytest.raises(ValueError, match=name):
        TCA(**{"n_components": 2, name: value}).fit(rows[:N_SOURCE], NUMBERS, rows[N_SOURCE:])


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_more_components_than_possible(kernel, rng):
    rows = make_rows(rng)
    with pytest.raises(ValueError, match=r"n_components=60 is larger than possible"):
        TCA(60, kernel=kernel)._align(rows[:N_SOURCE], NUMBERS, rows[N_SOURCE:])
