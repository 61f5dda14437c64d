"""The record in which an open-set task is handed over."""

from __future__ import annotations

from dataclasses import dataclass

from froda.factorization.problem import Array


@dataclass(frozen=True)
class OpenSetTask:
    """Labelled source, unlabelled target, and the target labels for the judge.

    Parameters
    ----------
    X : array of shape (n_source, n_features)
        Source samples.
    y : array of shape (n_source,)
        Source labels.
    X_target : array of shape (n_target, n_features)
        Target samples.
    y_target : array of shape (n_target,)
        Target labels, unknown classes replaced by ``unknown_label``. For scoring alone.
    unknown_label : object
        The label that stands for unknown.
    description : str
        What the data are and where they come from.
    """

    X: Array
    y: Array
    X_target: Array
    y_target: Array
    unknown_label: object
    description: str
