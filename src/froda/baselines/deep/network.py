"""Linear layers as arrays: how they start, and what a trained network says without PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from froda.factorization.problem import Array

Shapes = Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class Layer:
    """Weights, inputs × outputs, and bias of a linear layer."""

    weights: Array
    bias: Array


Layers = dict[str, Layer]


def start_layers(shapes: Shapes, rng: np.random.Generator) -> Layers:
    """Draw weights and biases uniformly within ±1/√inputs, as PyTorch does."""
    layers = {}
    for name, (n_inputs, n_outputs) in shapes.items():
        bound = 1 / np.sqrt(n_inputs)
        drawn = rng.uniform(-bound, bound, (n_inputs + 1, n_outputs)).astype(np.float32)
        layers[name] = Layer(drawn[:-1], drawn[-1])
    return layers


def class_scores(layers: Layers, features: Array) -> Array:
    """Return the scores of the classifier, in float64 so that a row does not hang on others."""
    bottleneck, classifier = layers["bottleneck"], layers["classifier"]
    hidden = features.astype(np.float64, copy=False) @ bottleneck.weights + bottleneck.bias
    scores: Array = np.maximum(hidden, 0) @ classifier.weights + classifier.bias
    return scores


def unknown_log_odds(scores: Array, *, knows_unknown: bool) -> Array:
    """Return the logarithm of the odds of being unknown by the softmax of the scores.

    Where there is a class for unknowns, the last one, these are the odds of that class;
    otherwise the odds against the best class.
    """
    ordered = scores if knows_unknown else np.sort(scores, axis=1)
    odds: Array = logsumexp(ordered[:, :-1], axis=1) - ordered[:, -1]
    return -odds if knows_unknown else odds
