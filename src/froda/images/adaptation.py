"""From the features of two folders to a label for each picture of the second."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from froda.bench.methods import METHODS
from froda.factorization.problem import Array
from froda.images.features import Features
from froda.images.listing import label_of
from froda.images.names import printable
from froda.metrics import open_set_scores

DEFAULT_METHOD = "ProgressiveMixture"
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Predictions:
    """What a method says of each picture of the target.

    Parameters
    ----------
    files : tuple of str
        Paths below the target folder.
    labels : array of str of shape (n_pictures,)
        Class or "unknown".
    probability : array of shape (n_pictures,)
        Softmax of the scores of the classes, at the label: an ordering, no calibrated chance.
    unknown_score : array of shape (n_pictures,)
        Higher is more surely unknown.
    classes : tuple of str
        The classes that the target could be given, without "unknown".
    notes : tuple of str
        What the method warned of.
    """

    files: tuple[str, ...]
    labels: Array
    probability: Array
    unknown_score: Array
    classes: tuple[str, ...]
    notes: tuple[str, ...] = ()


def choose_classes(found: tuple[str, ...], known: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the classes of the source that are used; refuse names that it does not have."""
    if not known:
        return found
    wanted: list[str] = []
    for word in known:
        wanted += [word] if word in found else [part.strip() for part in word.split(",")]
    absent = [name for name in wanted if name not in found]
    if absent:
        raise ValueError(
            f"the source has no class folder {printable(absent[0])!r}; it has "
            f"{', '.join(map(printable, found))}."
        )
    return tuple(name for name in found if name in wanted)


def check_classes(classes: tuple[str, ...], folder: str) -> None:
    """Refuse a source from which nothing can be learnt."""
    n_known = len(set(classes) - {UNKNOWN})
    if n_known >= 2:
        return
    found = f"only the class {printable(classes[0])!r}" if classes else "no class folders"
    raise ValueError(
        f"the source {folder} has {found}: put its pictures into one folder for each class, at "
        "least two."
    )


def adapt(
    source: Features,
    target: Features,
    classes: tuple[str, ...],
    method: str = DEFAULT_METHOD,
    callback: Callable[[Any], Any] | None = None,
) -> Predictions:
    """Fit a method on the source and the unlabelled target and label the target.

    Parameters
    ----------
    source, target : Features
        From the same network and layer. Of the target only the features are used.
    classes : tuple of str
        The classes of the source that are used.
    method : str, default="ProgressiveMixture"
        A name in `froda.bench.methods.METHODS`.
    callback : callable, default=None
        Called after each iteration of methods that have iterations.

    Returns
    -------
    predictions : Predictions
        In the order of the target's files.
    """
    assert source.y is not None
    rows = np.isin(source.y, classes)
    model = METHODS[method]()
    if "callback" in model.get_params() and callback is not None:
        model.set_params(callback=callback)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(source.X[rows], source.y[rows], target.X)
        scores = np.asarray(model.decision_function(target.X), dtype=np.float64)
        columns = scores.argmax(axis=1)
        unknown_score = np.asarray(model.unknown_score(target.X), dtype=np.float64)
        chances = _chances(model, target.X, scores)
    return Predictions(
        target.files,
        np.asarray(model.classes_)[columns],
        chances[np.arange(len(columns)), columns],
        unknown_score,
        tuple(np.asarray(model.classes_)[:-1].tolist()),
        tuple(sorted({str(entry.message) for entry in caught})),
    )


def _chances(model: Any, X: Array, scores: Array) -> Array:
    """Return the probabilities of a method, or the softmax of its scores where it has none."""
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X), dtype=np.float64)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances: Array = weights / weights.sum(axis=1, keepdims=True)
    return chances


def score_by_folders(predictions: Predictions) -> dict[str, float] | None:
    """Judge by the names of the target's folders; None where none is that of a class.

    Folders whose name is no class of the source are the unknowns.
    """
    folders = np.array([label_of(file) for file in predictions.files])
    if not np.isin(folders, predictions.classes).any():
        return None
    rows = folders != ""
    truth = np.where(np.isin(folders, predictions.classes), folders, UNKNOWN)
    return open_set_scores(
        truth[rows],
        predictions.labels[rows],
        predictions.unknown_score[rows],
        unknown_label=UNKNOWN,
    )
