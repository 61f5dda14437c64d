"""What each method minimises, by hand, and what that is for."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from froda.baselines import BP, DAN, OSBP, RTN
from froda.baselines.deep import losses
from froda.baselines.deep.network import start_layers
from froda.baselines.deep.training import Batch, Network

RAMP = 0.4
N_SOURCE = 6
N_COLUMNS = 3


@pytest.fixture
def batch(rng):
    rows = torch.tensor(rng.normal(size=(11, 5)), dtype=torch.float32)
    return Batch(rows, torch.tensor([0, 1, 2, 0, 1, 2]))


def make(model, rng):
    """A network with random layers for a method."""
    model.n_bottleneck = 7
    shapes = {"bottleneck": (5, 7), "classifier": (7, N_COLUMNS), **model._shapes(N_COLUMNS)}
    layers = start_layers(shapes, rng)
    return layers, Network(layers, "cpu")


def forward(layers, rows):
    hidden = np.maximum(rows @ layers["bottleneck"].weights + layers["bottleneck"].bias, 0)
    return hidden, hidden @ layers["classifier"].weights + layers["classifier"].bias


def mean_log(scores, numbers):
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return np.log(p[np.arange(len(numbers)), numbers]).mean()


def mmd(z, widths, weights):
    squares = ((z[:, None] - z) ** 2).sum(axis=2)
    scale = squares.sum() / (len(z) * (len(z) - 1))
    pairs = zip(widths, weights, strict=True)
    kernel = sum(w * np.exp(-squares / (width * scale)) for width, w in pairs)
    s, t = slice(None, N_SOURCE), slice(N_SOURCE, None)
    return kernel[s, s].mean() + kernel[t, t].mean() - 2 * kernel[s, t].mean()


def test_dan_by_hand(batch, rng):
    model = DAN(weight=0.8, kernel_weights="uniform")
    layers, network = make(model, rng)
    model._start_epoch(network, batch.rows[:N_SOURCE], batch.rows[N_SOURCE:])
    hidden, scores = forward(layers, batch.rows.numpy())
    parts = sum(mmd(z, (0.25, 0.5, 1, 2, 4), [0.2] * 5) for z in (hidden, scores))
    expected = -mean_log(scores[:N_SOURCE], batch.numbers.numpy()) + RAMP * 0.8 * parts
    assert model._loss(network, batch, RAMP).item() == pytest.approx(expected, rel=1e-4)


def test_dan_by_the_linear_estimator(batch, rng):
    model = DAN(weight=0.8, estimator="linear")
    layers, network = make(model, rng)
    model._start_epoch(network, batch.rows[:N_SOURCE], batch.rows[N_SOURCE:])
    hidden, scores = forward(layers, batch.rows.numpy())
    expected = -mean_log(scores[:N_SOURCE], batch.numbers.numpy())
    for z, weights in zip((hidden, scores), model.kernel_weights_, strict=True):
        terms = losses.linear_terms(torch.tensor(z[:N_SOURCE]), torch.tensor(z[N_SOURCE:]))
        expected += RAMP * 0.8 * float(weights @ terms.double().numpy().mean(axis=1))
    assert model._loss(network, batch, RAMP).item() == pytest.approx(expected, rel=1e-4)


def test_dan_weighs_its_kernels_by_the_terms_of_both_layers(batch, rng):
    model = DAN()
    _, network = make(model, rng)
    source, target = batch.rows[:N_SOURCE], batch.rows[N_SOURCE:] + 3
    model._start_epoch(network, source, target)
    layers = [
        (network.bottleneck(r), network.classify(network.bottleneck(r))) for r in (source, target)
    ]
    for place in (0, 1):
        terms = losses.linear_terms(layers[0][place].detach(), layers[1][place].detach())
        expected = losses.kernel_weights(terms.numpy().astype(np.float64))
        np.testing.assert_allclose(model.kernel_weights_[place], expected)


def test_rtn_by_hand(batch, rng):
    model = RTN(weight=0.8, entropy_weight=0.6)
    layers, network = make(model, rng)
    hidden, scores = forward(layers, batch.rows.numpy())
    inner = np.maximum(scores @ layers["residual_1"].weights + layers["residual_1"].bias, 0)
    source = scores + inner @ layers["residual_2"].weights + layers["residual_2"].bias
    p = np.exp(scores[N_SOURCE:]) / np.exp(scores[N_SOURCE:]).sum(axis=1, keepdims=True)
    entropy = -(p * np.log(p)).sum(axis=1).mean()
    fused = np.stack([np.outer(f, c).ravel() for f, c in zip(hidden, scores, strict=True)])
    expected = -mean_log(source[:N_SOURCE], batch.numbers.numpy())
    expected += RAMP * (0.8 * mmd(fused, (1.0,), (1.0,)) + 0.6 * entropy)
    assert model._loss(network, batch, RAMP).item() == pytest.approx(expected, rel=1e-4)


def gradients(network, value):
    """The gradient of each layer's weights and bias, by name."""
    names = list(network._layers)
    found = torch.autograd.grad(value, network.parameters, allow_unused=True, retain_graph=True)
    return {
        name: [np.zeros(1) if g is None else g.numpy() for g in found[2 * i : 2 * i + 2]]
        for i, name in enumerate(names)
    }


def assert_gradients(found, of_labels, of_others, factors):
    """Each layer's gradient is that of the labels plus a factor times that of the others."""
    for name, factor in factors.items():
        for mine, label, other in zip(found[name], of_labels[name], of_others[name], strict=True):
            np.testing.assert_allclose(mine, label + factor * other, atol=1e-6)


def test_bp_by_hand(batch, rng):
    model = BP(weight=0.8, n_hidden=4)
    layers, network = make(model, rng)
    hidden, scores = forward(layers, batch.rows.numpy())
    inner = hidden
    for name in ("domain_1", "domain_2"):
        inner = np.maximum(inner @ layers[name].weights + layers[name].bias, 0)
    domain = (inner @ layers["domain_3"].weights + layers["domain_3"].bias).ravel()
    p = 1 / (1 + np.exp(-domain))
    expected = -mean_log(scores[:N_SOURCE], batch.numbers.numpy())
    expected -= (np.log(p[:N_SOURCE]).mean() + np.log(1 - p[N_SOURCE:]).mean()) / 2
    value = model._loss(network, batch, RAMP)
    assert value.item() == pytest.approx(expected, rel=1e-5)
    rows = network.bottleneck(batch.rows)
    labels = losses.cross_entropy(network.classify(rows[:N_SOURCE]), batch.numbers)
    inner = network.linear("domain_2", network.linear("domain_1", rows).relu()).relu()
    domains = losses.domain_loss(network.linear("domain_3", inner).squeeze(1), N_SOURCE)
    factors = {"bottleneck": -RAMP * 0.8, "domain_1": 1, "domain_2": 1, "domain_3": 1}
    of_labels, of_domains = gradients(network, labels), gradients(network, domains)
    assert_gradients(gradients(network, value), of_labels, of_domains, factors)


def test_osbp_by_hand(batch, rng):
    model = OSBP(weight=0.8)
    model._is_closed_set = False
    layers, network = make(model, rng)
    _, scores = forward(layers, batch.rows.numpy())
    u = (np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True))[N_SOURCE:, -1]
    expected = -mean_log(scores[:N_SOURCE], batch.numbers.numpy())
    expected -= np.mean(0.5 * np.log(u) + 0.5 * np.log(1 - u))
    value = model._loss(network, batch, RAMP)
    assert value.item() == pytest.approx(expected, rel=1e-5)
    rows = network.bottleneck(batch.rows)
    labels = losses.cross_entropy(network.classify(rows[:N_SOURCE]), batch.numbers)
    unknown = losses.unknown_loss(network.classify(rows[N_SOURCE:]), 0.5)
    of_labels, of_unknown = gradients(network, labels), gradients(network, unknown)
    factors = {"bottleneck": -0.8, "classifier": 1}
    assert_gradients(gradients(network, value), of_labels, of_unknown, factors)
    model._is_closed_set = True
    assert model._loss(network, batch, RAMP).item() == pytest.approx(labels.item())


def shifted(rng):
    """Two classes; the target's are moved along a direction that says nothing of the class."""
    y = np.repeat([0, 1], 60)
    X = rng.normal(size=(120, 8))
    X[:, 0] += 4 * y
    X_target = rng.normal(size=(120, 8))
    X_target[:, 0] += 4 * y
    X_target[:, 1] += 3
    return X, y, X_target


def gap(model, X, X_target):
    """How far apart the domains are in the bottleneck."""
    hidden = []
    for rows in (X, X_target):
        layer = model.layers_["bottleneck"]
        found = np.maximum(rows / model._scale @ layer.weights + layer.bias, 0)
        hidden.append(found)
    both = torch.tensor(np.vstack(hidden))
    return float(losses.mmd_full((both,), len(X), both.new_ones(1), (1.0,)))


@pytest.mark.parametrize(("method", "strong"), [(DAN, 2.0), (RTN, 2.0), (BP, 1.0)])
def test_adaptation_brings_the_domains_together(method, strong, rng):
    X, y, X_target = shifted(rng)
    settings = {"zscore": False, "row_sum": False, "unit_norm": False, "pca_variance": None}
    settings |= {"n_epochs": 30, "n_bottleneck": 16, "learning_rate": 0.02}
    settings |= {"n_hidden": 32} if method is BP else {}
    gaps = []
    for weight in (0.0, strong):
        y_known = y.copy()
        y_known[::30] = -1  # with a class for unknowns there is no threshold to train for
        model = method(weight=weight, **settings).fit(X, y_known, X_target)
        gaps.append(gap(model, X, X_target))
    assert gaps[1] < 0.8 * gaps[0]


def test_osbp_finds_a_new_class_that_lies_apart(rng):
    centres = 4 * rng.normal(size=(3, 10))
    y, y_target = np.repeat([0, 1], 60), np.repeat([0, 1, -1], 60)
    X = centres[y] + rng.normal(size=(120, 10))
    X_target = centres[y_target] + rng.normal(size=(180, 10)) + 0.3
    settings = {"n_epochs": 20, "n_bottleneck": 32, "row_sum": False, "zscore": False}
    model = OSBP(**settings).fit(X, y, X_target)
    assert roc_auc_score(y_target == -1, model.unknown_score(X_target)) > 0.95
    assert (model.predict(X_target) == y_target).mean() > 0.8
    assert (OSBP(n_epochs=10, n_bottleneck=32).fit(X, y).predict(X) == y).mean() > 0.95
