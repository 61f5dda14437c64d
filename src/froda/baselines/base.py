"""The common door of the baselines: check, prepare, call, label; no method of its own."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.validation import check_is_fitted

from froda.factorization.problem import Array
from froda.heads import class_scores, make_head
from froda.preprocessing import RowSettings, fit_preprocessor
from froda.validation import check_fit_data, check_flag, check_share, check_target

_FOLDS = 5


class Baseline(ClassifierMixin, BaseEstimator):
    """Open-set classifier on prepared features; a method fills `_fit` and `_judge`.

    A method has the settings of `__init__` below besides its own. It never sees more than
    prepared source features, source labels as column numbers (``n_known`` for the unknown
    label) and prepared target features.
    """

    _uses_source_unknowns = True

    def __init__(
        self,
        *,
        row_sum: bool = True,
        zscore: bool = True,
        unit_norm: bool = True,
        pca_variance: float | None = 0.99,
        rejection: float = 0.05,
        unknown_label: Any = None,
    ) -> None:
        self.row_sum = row_sum
        self.zscore = zscore
        self.unit_norm = unit_norm
        self.pca_variance = pca_variance
        self.rejection = rejection
        self.unknown_label = unknown_label

    @abstractmethod
    def _fit(self, source: Array, numbers: Array, target: Array) -> None:
        """Fit on prepared features; ``self.n_known_`` is set. Nothing is written to."""

    @abstractmethod
    def _judge(self, features: Array) -> tuple[Array, Array]:
        """Return class scores, n × (n_known + 1), and the unknown score of target features.

        The row maximum of the class scores is the prediction; the last column is unknown.
        """

    def _check_settings(self) -> None:
        """Refuse settings that make no sense; methods add their own."""
        for name in ("row_sum", "zscore", "unit_norm"):
            check_flag(name, getattr(self, name))
        check_share("pca_variance", self.pca_variance)
        check_share("rejection", self.rejection)

    def fit(self, X: Any, y: Any, X_target: Any = None) -> Self:
        """Fit on labelled source and unlabelled target samples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_source, n_features)
            Labelled source samples.
        y : array-like of shape (n_source,)
            Source labels; rows with the unknown label are samples of unknown classes.
        X_target : array-like or sparse matrix of shape (n_target, n_features), default=None
            Unlabelled target samples; None takes the source as a target without unknowns.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_settings()
        domains = check_fit_data(
            self,
            X,
            y,
            X_target,
            unknown_label=self.unknown_label,
            keep_unknown=self._uses_source_unknowns,
        )
        self.classes_ = domains.labels.classes
        self.n_known_ = domains.labels.n_known
        n_left_out = len(np.asarray(y)) - len(domains.labels.numbers)
        if n_left_out:
            warnings.warn(
                f"{type(self).__name__} leaves out {n_left_out} source rows labelled "
                f"{self.classes_[-1:].tolist()[0]!r}: the method has no use for them.",
                UserWarning,
                stacklevel=2,
            )
        settings = RowSettings(self.row_sum, self.zscore, self.unit_norm)
        self._preprocessor, source, target = fit_preprocessor(
            domains.source, domains.target, settings, self.pca_variance
        )
        self._fit(source, domains.labels.numbers, target)
        return self

    def _judge_rows(self, X: Any) -> tuple[Array, Array]:
        """Check and prepare new target rows, then judge them."""
        check_is_fitted(self)
        return self._judge(self._preprocessor.transform_target(check_target(self, X, "X")))

    def decision_function(self, X: Any) -> Array:
        """Return one score per class; the largest one is the prediction.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Target samples.

        Returns
        -------
        scores : array of shape (n_samples, n_classes + 1)
            Columns in the order of ``classes_``, the unknown label last.
        """
        return self._judge_rows(X)[0]

    def unknown_score(self, X: Any) -> Array:
        """Return how surely each target sample is of an unknown class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Target samples.

        Returns
        -------
        score : array of shape (n_samples,)
            Higher is more surely unknown.
        """
        return self._judge_rows(X)[1]

    def predict(self, X: Any) -> Array:
        """Label target samples with a known class or the unknown label.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Target samples.

        Returns
        -------
        labels : array of shape (n_samples,)
            Entries of ``classes_``.
        """
        labels: Array = self.classes_[self.decision_function(X).argmax(axis=1)]
        return labels

    def fit_predict(self, X: Any, y: Any, X_target: Any = None) -> Array:
        """Fit, then label the target samples themselves.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_source, n_features)
            Labelled source samples.
        y : array-like of shape (n_source,)
            Source labels.
        X_target : array-like or sparse matrix of shape (n_target, n_features), default=None
            Unlabelled target samples; None takes the source.

        Returns
        -------
        labels : array of shape (n_target,)
            Entries of ``classes_``.
        """
        return self.fit(X, y, X_target).predict(X if X_target is None else X_target)

    def __sklearn_tags__(self) -> Any:
        """Declare sparse input."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


class SVMBaseline(Baseline):
    """A linear one-vs-one SVM on features that a method may align first.

    With source samples of unknown classes the SVM has a class for them. Without, a sample is
    rejected when its doubt exceeds the threshold that rejects a share ``rejection`` of the
    source samples in cross-validation.
    """

    _rejects = True

    def _align(self, source: Array, numbers: Array, target: Array) -> Array:  # noqa: ARG002
        """Return the aligned source; store what `_map_target` needs."""
        return source

    def _map_target(self, features: Array) -> Array:
        """Return target features in the space of the aligned source."""
        return features

    def _fit(self, source: Array, numbers: Array, target: Array) -> None:
        aligned = self._align(source, numbers, target)
        self.classifier_ = make_head("svm", aligned, None).fit(aligned, numbers)
        self.threshold_ = np.inf
        if self._rejects and not np.any(numbers == self.n_known_):
            self.threshold_ = source_threshold(aligned, numbers, self.n_known_, self.rejection)

    def _judge(self, features: Array) -> tuple[Array, Array]:
        mapped = self._map_target(features)
        scores = class_scores(self.classifier_, mapped, self.n_known_ + 1)
        doubt = svm_doubt(scores, knows_unknown=self.n_known_ in self.classifier_.classes_)
        return reject(scores, doubt, self.threshold_), doubt


def svm_doubt(scores: Array, *, knows_unknown: bool) -> Array:
    """Return the unknown score of class scores: high where the best known class is weak.

    Where the classifier has a class for unknowns it is the lead of that class over the best
    known one, otherwise minus the lead of the best known class over the second.
    """
    known = np.sort(scores[:, :-1], axis=1)
    doubt: Array = scores[:, -1] - known[:, -1] if knows_unknown else known[:, -2] - known[:, -1]
    return doubt


def source_threshold(features: Array, numbers: Array, n_known: int, share: float) -> float:
    """Return the doubt that a share ``share`` of held-out source samples exceeds."""
    counts = np.bincount(numbers, minlength=n_known)[:n_known]
    n_folds = int(min(_FOLDS, counts.min()))
    if n_folds < 2:
        return np.inf
    doubts = np.empty(len(features))
    for fitted, held_out in StratifiedKFold(n_folds).split(features, numbers):
        head = make_head("svm", features[fitted], None).fit(features[fitted], numbers[fitted])
        scores = class_scores(head, features[held_out], n_known + 1)
        doubts[held_out] = svm_doubt(scores, knows_unknown=False)
    return float(np.quantile(doubts, 1 - share))


def reject(scores: Array, doubt: Array, threshold: float) -> Array:
    """Lift the unknown column to the top where the doubt exceeds the threshold."""
    scores = scores.copy()
    rejected = doubt > threshold
    scores[rejected, -1] = scores[rejected].max(axis=1) + (doubt[rejected] - threshold)
    return scores
