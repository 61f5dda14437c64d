"""Choose a method or its settings without a single target label.

A scorer is called as ``scorer(estimator, X, y, X_target)`` and returns a number, higher is better.
It fits clones of the estimator, which stays unfitted. Two scorers ask how well known and unknown
are told apart or how firmly (`leave_classes_out`, `stability`), two look at the labels of one fit
(`certainty`, `neighbourhood`). `OpenSetSearch` fits the candidate that a scorer prefers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from time import perf_counter
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.metrics import cohen_kappa_score
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted

from froda.factorization.problem import Array
from froda.metrics import hos
from froda.validation import Labels, check_choice, check_count, number_labels

__all__ = [
    "SCORERS",
    "OpenSetSearch",
    "Scorer",
    "Trial",
    "certainty",
    "leave_classes_out",
    "neighbourhood",
    "stability",
]

Scorer = Callable[[Any, Any, Any, Any], float]

_HIDDEN_SHARE = 1 / 3  # of the known classes, and of the rows of the others
_TARGET_SHARE = 2 / 3


def leave_classes_out(
    estimator: Any, X: Any, y: Any, X_target: Any, *, n_draws: int = 3, seed: int = 0
) -> float:
    """Return the HOS on source rows of which some are of classes that the fit does not know.

    In each draw about a third of the known classes is taken out of the source, and a third of the
    rows of each other known class. These rows join the target; the fit sees them unlabelled, and
    the classes taken out count as unknown.

    Parameters
    ----------
    estimator : estimator
        Unfitted; ``fit(X, y, X_target)`` and ``predict``.
    X : array-like or sparse matrix of shape (n_source, n_features)
        Source samples.
    y : array-like of shape (n_source,)
        Source labels, of at least three known classes.
    X_target : array-like or sparse matrix of shape (n_target, n_features)
        Target samples.
    n_draws : int, default=3
        Number of draws.
    seed : int, default=0
        Of the draws.

    Returns
    -------
    score : float
        Mean over the draws, from 0 to 1.

    Examples
    --------
    >>> from froda import ProgressiveMixture
    >>> from froda.datasets import make_planted
    >>> from froda.selection import leave_classes_out
    >>> X, y, X_target = make_planted(n_source_unknown=0).task().visible()
    >>> 0 <= leave_classes_out(ProgressiveMixture(), X, y, X_target) <= 1
    True
    """
    check_count("n_draws", n_draws)
    X, labels, X_target = _open(estimator, X, y, X_target)
    if labels.n_known < 3:
        raise ValueError(
            "leave_classes_out hides a class and needs two more: y has "
            f"{labels.n_known} known classes. Take another scorer."
        )
    rng = np.random.default_rng(seed)
    return float(
        np.mean([_hos_of_draw(estimator, X, labels, X_target, rng) for _ in range(n_draws)])
    )


def _hos_of_draw(
    estimator: Any, X: Any, labels: Labels, X_target: Any, rng: np.random.Generator
) -> float:
    """Hide classes and rows, fit, and judge the rows that were hidden."""
    n_hidden = max(round(labels.n_known * _HIDDEN_SHARE), 1)
    hidden = rng.choice(labels.n_known, n_hidden, replace=False)
    probes = np.isin(labels.numbers, hidden)
    for number in np.setdiff1d(np.arange(labels.n_known), hidden):
        rows = np.flatnonzero(labels.numbers == number)
        n_held_out = min(max(round(len(rows) * _HIDDEN_SHARE), 1), len(rows) - 1)
        probes[rng.choice(rows, n_held_out, replace=False)] = True
    unknown = labels.classes[-1]
    truth = np.where(np.isin(labels.numbers, hidden), labels.n_known, labels.numbers)[probes]
    if np.all(truth == labels.n_known):
        raise ValueError("leave_classes_out needs known classes with two rows or more.")
    target = _stack(X_target, X[np.flatnonzero(probes)])
    kept = np.flatnonzero(~probes)
    model = clone(estimator).fit(X[kept], labels.classes[labels.numbers[kept]], target)
    found = model.predict(target)[X_target.shape[0] :]
    return hos(labels.classes[truth], found, unknown_label=unknown)


def stability(
    estimator: Any, X: Any, y: Any, X_target: Any, *, n_draws: int = 3, seed: int = 0
) -> float:
    """Return how far fits on random two thirds of the target agree on the labels of all of it.

    Agreement is Cohen's kappa, so that calling everything the same earns nothing.

    Parameters
    ----------
    estimator : estimator
        Unfitted; ``fit(X, y, X_target)`` and ``predict``.
    X : array-like or sparse matrix of shape (n_source, n_features)
        Source samples.
    y : array-like of shape (n_source,)
        Source labels.
    X_target : array-like or sparse matrix of shape (n_target, n_features)
        Target samples.
    n_draws : int, default=3
        Number of fits, at least 2.
    seed : int, default=0
        Of the draws.

    Returns
    -------
    score : float
        Mean over pairs of fits, at most 1; about 0 for chance.

    Examples
    --------
    >>> from froda import ProgressiveMixture
    >>> from froda.datasets import make_planted
    >>> from froda.selection import stability
    >>> X, y, X_target = make_planted(n_source_unknown=0).task().visible()
    >>> stability(ProgressiveMixture(), X, y, X_target) > 0.5
    True
    """
    check_count("n_draws", n_draws, least=2)
    X, labels, X_target = _open(estimator, X, y, X_target)
    rng = np.random.default_rng(seed)
    n_target = X_target.shape[0]
    n_drawn = max(round(n_target * _TARGET_SHARE), 2)
    found = []
    for _ in range(n_draws):
        drawn = np.sort(rng.choice(n_target, n_drawn, replace=False))
        model = clone(estimator).fit(X, labels.classes[labels.numbers], X_target[drawn])
        found.append(model.predict(X_target))
    return float(np.mean([_kappa(one, other) for one, other in combinations(found, 2)]))


def _kappa(one: Array, other: Array) -> float:
    """Return Cohen's kappa, 0 where both call everything the same."""
    if len(np.unique(np.concatenate([one, other]))) == 1:
        return 0.0
    return float(cohen_kappa_score(one, other))


def certainty(estimator: Any, X: Any, y: Any, X_target: Any) -> float:
    """Return the mutual information between target samples and their labels.

    It is the entropy of the mean of `predict_proba` over the target less the mean of the
    entropies: high where each sample is labelled firmly and all classes, unknown among them, are
    made use of. Without `predict_proba` the softmax of `decision_function` is taken.

    Parameters
    ----------
    estimator : estimator
        Unfitted; ``fit(X, y, X_target)`` and ``predict_proba`` or ``decision_function``.
    X : array-like or sparse matrix of shape (n_source, n_features)
        Source samples.
    y : array-like of shape (n_source,)
        Source labels.
    X_target : array-like or sparse matrix of shape (n_target, n_features)
        Target samples.

    Returns
    -------
    score : float
        From 0 to 1, in units of the logarithm of the number of columns.

    Examples
    --------
    >>> from froda import ProgressiveMixture
    >>> from froda.datasets import make_planted
    >>> from froda.selection import certainty
    >>> X, y, X_target = make_planted(n_source_unknown=0).task().visible()
    >>> 0 < certainty(ProgressiveMixture(), X, y, X_target) < 1
    True
    """
    X, labels, X_target = _open(estimator, X, y, X_target)
    model = clone(estimator).fit(X, labels.classes[labels.numbers], X_target)
    if hasattr(model, "predict_proba"):
        chances = np.asarray(model.predict_proba(X_target), dtype=float)
    elif hasattr(model, "decision_function"):
        scores = np.asarray(model.decision_function(X_target), dtype=float)
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
    else:
        raise ValueError(
            f"certainty needs predict_proba or decision_function, and {type(estimator).__name__} "
            "has neither. Take another scorer."
        )
    shared = _entropy(chances.mean(axis=0)) - _entropy(chances).mean()
    return float(shared / np.log(chances.shape[1]))


def _entropy(chances: Array) -> Array:
    """Return the entropy along the last axis."""
    logs = np.log(chances, out=np.zeros_like(chances), where=chances > 0)
    entropy: Array = -(chances * logs).sum(axis=-1)
    return entropy


def neighbourhood(estimator: Any, X: Any, y: Any, X_target: Any, *, n_neighbors: int = 5) -> float:
    """Return how much more often nearest target neighbours get the same label than by chance.

    Neighbours are those of the raw features, rows scaled to norm 1. With p the share of
    neighbours that get the label of the sample and q the sum of the squared shares of the labels,
    the score is ``(p - q) / (1 - q)``, and 0 where all labels are the same.

    Parameters
    ----------
    estimator : estimator
        Unfitted; ``fit(X, y, X_target)`` and ``predict``.
    X : array-like or sparse matrix of shape (n_source, n_features)
        Source samples.
    y : array-like of shape (n_source,)
        Source labels.
    X_target : array-like or sparse matrix of shape (n_target, n_features)
        Target samples.
    n_neighbors : int, default=5
        Number of neighbours, fewer where the target is smaller.

    Returns
    -------
    score : float
        At most 1; about 0 for labels by chance.

    Examples
    --------
    >>> from froda import ProgressiveMixture
    >>> from froda.datasets import make_planted
    >>> from froda.selection import neighbourhood
    >>> X, y, X_target = make_planted(n_source_unknown=0).task().visible()
    >>> neighbourhood(ProgressiveMixture(), X, y, X_target) > 0.5
    True
    """
    check_count("n_neighbors", n_neighbors)
    X, labels, X_target = _open(estimator, X, y, X_target)
    model = clone(estimator).fit(X, labels.classes[labels.numbers], X_target)
    _, found, counts = np.unique(model.predict(X_target), return_inverse=True, return_counts=True)
    by_chance = float(np.sum((counts / counts.sum()) ** 2))
    if len(counts) == 1:
        return 0.0
    finder = NearestNeighbors(n_neighbors=min(n_neighbors, len(found) - 1))
    nearest = finder.fit(normalize(X_target)).kneighbors(return_distance=False)
    alike = float(np.mean(found[nearest] == found[:, None]))
    return (alike - by_chance) / (1 - by_chance)


def _open(estimator: Any, X: Any, y: Any, X_target: Any) -> tuple[Any, Labels, Any]:
    """Return checked rows of both domains and the source labels as numbers."""
    X, X_target = _check_rows(X, X_target)
    y = column_or_1d(y)
    check_consistent_length(X, y)
    return X, number_labels(y, getattr(estimator, "unknown_label", None)), X_target


def _check_rows(X: Any, X_target: Any) -> tuple[Any, Any]:
    """Return the rows of both domains, dense or CSR."""
    if X_target is None:
        raise ValueError("X_target is missing: without a target there is nothing to choose by.")
    rules: dict[str, Any] = {"accept_sparse": "csr", "dtype": (np.float64, np.float32)}
    X = check_array(X, input_name="X", ensure_min_samples=2, **rules)
    X_target = check_array(X_target, input_name="X_target", ensure_min_samples=2, **rules)
    if X.shape[1] != X_target.shape[1]:
        raise ValueError(
            f"X has {X.shape[1]} columns and X_target {X_target.shape[1]}: source and target must "
            "be described by the same columns in the same order."
        )
    return X, X_target


def _stack(first: Any, second: Any) -> Any:
    """Return the rows of both, sparse where one of them is."""
    if sparse.issparse(first) or sparse.issparse(second):
        return sparse.vstack([first, second], format="csr")
    return np.vstack([first, second])


SCORERS: dict[str, Scorer] = {
    "leave_classes_out": leave_classes_out,
    "stability": stability,
    "certainty": certainty,
    "neighbourhood": neighbourhood,
}


@dataclass(frozen=True)
class Trial:
    """What became of one candidate.

    Parameters
    ----------
    name : str
        Its name.
    score : float
        What the scorer gave; NaN where it failed.
    seconds : float
        Time that the scorer took.
    failure : str, default=None
        Type and text of the error, None where there was none.
    """

    name: str
    score: float
    seconds: float
    failure: str | None = None


class OpenSetSearch(ClassifierMixin, BaseEstimator):
    """Fit the candidate that a scorer without target labels prefers.

    A candidate may be a method or a setting of one. One that fails is recorded with its reason
    and is out; of equal scores the first wins.

    Parameters
    ----------
    candidates : dict of str to estimator
        Unfitted estimators with ``fit(X, y, X_target)``, by name; they stay unfitted.
    scoring : str or callable, default="neighbourhood"
        "leave_classes_out", "stability", "certainty" or "neighbourhood", or a function of
        ``(estimator, X, y, X_target)`` whose larger values are better. Over the methods measured
        in ``docs/results/selection.md`` the first and the last rank methods as their HOS does,
        "stability" and "certainty" against it.

    Attributes
    ----------
    best_estimator_ : estimator
        The winner, fitted to all samples.
    best_name_ : str
        Its name.
    best_score_ : float
        Its score.
    results_ : list of Trial
        Name, score, seconds and failure of each candidate in the order given.
    classes_ : array
        Classes of the winner, the unknown label last.
    n_features_in_ : int
        Number of columns of the source.

    See Also
    --------
    froda.ProgressiveMixture : An estimator that needs no choice.

    Examples
    --------
    >>> from froda import ProgressiveMixture
    >>> from froda.baselines import LSVM
    >>> from froda.datasets import make_planted
    >>> from froda.selection import OpenSetSearch
    >>> X, y, X_target = make_planted(n_source_unknown=0).task().visible()
    >>> search = OpenSetSearch({"svm": LSVM(), "mixture": ProgressiveMixture()})
    >>> search.fit(X, y, X_target).best_name_
    'mixture'
    """

    def __init__(
        self, candidates: Mapping[str, Any], *, scoring: str | Scorer = "neighbourhood"
    ) -> None:
        self.candidates = candidates
        self.scoring = scoring

    def fit(self, X: Any, y: Any, X_target: Any) -> Self:
        """Score all candidates and fit the best one.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_source, n_features)
            Labelled source samples.
        y : array-like of shape (n_source,)
            Source labels.
        X_target : array-like or sparse matrix of shape (n_target, n_features)
            Unlabelled target samples.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        candidates, scorer = self._check_settings()
        _check_rows(X, X_target)  # what is wrong with the data is no candidate's fault
        self.results_ = [
            _try(name, estimator, scorer, (X, y, X_target))
            for name, estimator in candidates.items()
        ]
        # The sort is stable: of equal scores the first stays first.
        places = [place for place, trial in enumerate(self.results_) if trial.failure is None]
        for place in sorted(places, key=lambda place: -self.results_[place].score):
            trial = self.results_[place]
            try:
                best = clone(candidates[trial.name]).fit(X, y, X_target)
            except Exception as error:  # it may fail on all rows alone
                self.results_[place] = replace(trial, failure=_reason(error))
                continue
            self.best_estimator_, self.best_name_, self.best_score_ = best, trial.name, trial.score
            self.classes_ = best.classes_
            self.n_features_in_ = int(np.shape(X)[1])
            return self
        reasons = "; ".join(f"{trial.name}: {trial.failure}" for trial in self.results_)
        raise ValueError(f"all candidates failed. {reasons}")

    def _check_settings(self) -> tuple[dict[str, Any], Scorer]:
        """Return the candidates and the scorer, or refuse them."""
        if not isinstance(self.candidates, Mapping) or not self.candidates:
            raise ValueError(
                "candidates must be a dict of names and unfitted estimators with at least one "
                f"entry, got {self.candidates!r}."
            )
        for name, estimator in self.candidates.items():
            if isinstance(estimator, type) or not all(
                hasattr(estimator, method) for method in ("fit", "predict", "get_params")
            ):
                raise ValueError(f"candidates[{name!r}] is not an estimator: {estimator!r}.")
        if callable(self.scoring):
            return dict(self.candidates), self.scoring
        check_choice("scoring", self.scoring, tuple(SCORERS))
        return dict(self.candidates), SCORERS[self.scoring]

    def predict(self, X: Any) -> Array:
        """Label target samples by the best estimator.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Target samples.

        Returns
        -------
        labels : array of shape (n_samples,)
            Entries of ``classes_``.
        """
        check_is_fitted(self)
        labels: Array = self.best_estimator_.predict(X)
        return labels

    def unknown_score(self, X: Any) -> Array:
        """Return the unknown score of the best estimator.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Target samples.

        Returns
        -------
        score : array of shape (n_samples,)
            Higher is more surely unknown.
        """
        check_is_fitted(self)
        score: Array = self.best_estimator_.unknown_score(X)
        return score

    def decision_function(self, X: Any) -> Array:
        """Return the class scores of the best estimator.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Target samples.

        Returns
        -------
        scores : array of shape (n_samples, n_classes + 1)
            Columns in the order of ``classes_``, the unknown label last.
        """
        check_is_fitted(self)
        scores: Array = self.best_estimator_.decision_function(X)
        return scores

    def fit_predict(self, X: Any, y: Any, X_target: Any) -> Array:
        """Choose and fit, then label the target samples themselves.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_source, n_features)
            Labelled source samples.
        y : array-like of shape (n_source,)
            Source labels.
        X_target : array-like or sparse matrix of shape (n_target, n_features)
            Unlabelled target samples.

        Returns
        -------
        labels : array of shape (n_target,)
            Entries of ``classes_``.
        """
        return self.fit(X, y, X_target).predict(X_target)


def _try(name: str, estimator: Any, scorer: Scorer, data: tuple[Any, Any, Any]) -> Trial:
    """Score one candidate; whatever it does wrong is written down."""
    start = perf_counter()
    try:
        score, failure = float(scorer(estimator, *data)), None
    except Exception as error:
        score, failure = np.nan, _reason(error)
    if failure is None and not np.isfinite(score):
        score, failure = np.nan, f"the score is {score}, not a finite number"
    return Trial(name, score, perf_counter() - start, failure)


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
