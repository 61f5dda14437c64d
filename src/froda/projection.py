"""Supervised linear projections: the rows they start from, the pencil of a graph, its pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import eigh

from froda.factorization.problem import Array
from froda.pca import Principal, principal_axes
from froda.rows import Rows

OPEN = -1  # a row without a label


def unit_rows(rows: Array) -> Array:
    """Return rows divided by their norm; zero rows stay zero."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)


@dataclass(frozen=True)
class LeadingAxes:
    """The leading coordinates of the joint PCA, in float64, rows of norm 1."""

    principal: Principal | None  # None where the features are those coordinates already
    n_kept: int

    @classmethod
    def of(cls, source: Array, target: Array, n_kept: int, *, are_principal: bool) -> Self:
        """Take the coordinates as they are, or find the axes of both domains together."""
        if are_principal:
            return cls(None, n_kept)
        return cls(principal_axes([Rows(source), Rows(target)])[0], n_kept)

    def of_rows(self, features: Array) -> Array:
        """Return at most ``n_kept`` coordinates of each row, of norm 1."""
        if self.principal is not None:
            features = self.principal.project(Rows(features))
        return unit_rows(features[:, : self.n_kept].astype(np.float64))


def class_scatter(features: Array, labels: Array, alpha: float) -> tuple[Array, Array]:
    """Return Xᵀ D X and Xᵀ L X + alpha I of the graph that joins rows of equal labels.

    Rows without a label (-1) are joined with nothing.
    """
    labelled = labels != OPEN
    rows = features[labelled]
    _, classes, counts = np.unique(labels[labelled], return_inverse=True, return_counts=True)
    sums = np.zeros((len(counts), rows.shape[1]))
    np.add.at(sums, classes, rows)
    roots = np.sqrt(counts)[classes][:, None]
    weighted = roots * rows
    centred = weighted - roots * (sums / counts[:, None])[classes]
    return weighted.T @ weighted, centred.T @ centred + alpha * np.eye(rows.shape[1])


def leading_pairs(first: Array, second: Array, n_pairs: int) -> tuple[Array, Array]:
    """Return the largest generalised eigenvalues, falling, and vectors v: first v = w second v."""
    size = len(first)
    n_pairs = min(n_pairs, size)
    values, vectors = eigh(first, second, subset_by_index=[size - n_pairs, size - 1])
    values, vectors = values[::-1], vectors[:, ::-1]
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(n_pairs)])
    return values, np.ascontiguousarray(vectors * signs)
