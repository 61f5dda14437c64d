"""The two records: one domain of a data set, and an open-set task made of two of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from froda.factorization.problem import Array
from froda.metrics import open_set_scores


@dataclass(frozen=True)
class Domain:
    """Labelled samples of one domain, with what must be said about their origin.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Samples are rows.
    y : array of shape (n_samples,)
        Whole numbers: label k stands for ``class_names[k]``.
    name : str
        The name of the domain within its data set.
    class_names : tuple of str
        All classes of the data set in order, also those without a sample here.
    licence : str
        What is known of the terms of use.
    provenance : str
        Who published the data and which file was read.
    """

    X: Array
    y: Array
    name: str
    class_names: tuple[str, ...]
    licence: str = ""
    provenance: str = ""

    def __post_init__(self) -> None:
        if self.X.ndim != 2 or self.y.shape != self.X.shape[:1]:
            raise ValueError(
                f"domain {self.name!r}: X must be samples × features with one label a row, got "
                f"X of shape {self.X.shape} and y of shape {self.y.shape}."
            )
        if len(set(self.class_names)) != len(self.class_names):
            raise ValueError(f"domain {self.name!r}: class_names has a name twice.")
        is_place = self.y.dtype.kind in "iu" and np.all((self.y >= 0) & (self.y < self.n_classes))
        if not is_place:
            raise ValueError(
                f"domain {self.name!r}: y must hold whole numbers from 0 to "
                f"{self.n_classes - 1}, the places of its classes in class_names."
            )

    @property
    def n_classes(self) -> int:
        """Return the number of classes of the data set."""
        return len(self.class_names)


class Visible(NamedTuple):
    """What a method is given, in the order of ``fit``.

    Parameters
    ----------
    X, y : array
        Source samples and labels.
    X_target : array
        Target samples.
    """

    X: Array
    y: Array
    X_target: Array


@dataclass(frozen=True)
class OpenSetTask:
    """Labelled source, unlabelled target, and the target labels for the judge.

    A method is given ``task.visible()`` and nothing else; ``task.score`` is the judge.

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
    y_target_fine : array of shape (n_target,), default=None
        Target labels before the unknown classes were replaced. For scoring alone.
    class_names : tuple of str, default=()
        The name of each number in ``y_target_fine``, the known classes first.
    target_rows : array of shape (n_target,), default=None
        The row of each target sample in its domain. For scoring alone.
    """

    X: Array
    y: Array
    X_target: Array
    y_target: Array
    unknown_label: object
    description: str
    y_target_fine: Array | None = None
    class_names: tuple[str, ...] = ()
    target_rows: Array | None = None

    def visible(self) -> Visible:
        """Return what a method may see, as read-only copies that lead nowhere else.

        Returns
        -------
        visible : Visible
            ``(X, y, X_target)``: ``model.fit(*task.visible())``. The arrays own their memory,
            so that nothing of the task, and no removed class, hangs on their ``base``.
        """
        columns = [np.array(column) for column in (self.X, self.y, self.X_target)]
        for column in columns:
            column.setflags(write=False)
        return Visible(*columns)

    def score(self, y_pred: Any, unknown_score: Any = None) -> dict[str, float]:
        """Judge the predictions for the target.

        Parameters
        ----------
        y_pred : array-like of shape (n_target,)
            Predicted labels.
        unknown_score : array-like of shape (n_target,), default=None
            Higher = more surely unknown.

        Returns
        -------
        scores : dict of str to float
            See `froda.metrics.open_set_scores`.
        """
        return open_set_scores(
            self.y_target,
            y_pred,
            unknown_score,
            unknown_label=self.unknown_label,
            fine_labels=self.y_target_fine,
        )
