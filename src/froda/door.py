"""The door of methods on prepared features: check, prepare, call, label; no method of its own."""

from __future__ import annotations

import inspect
import re
import warnings
from abc import abstractmethod
from collections.abc import Callable
from textwrap import dedent, indent
from typing import Any, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from froda.docstrings import SETTINGS
from froda.factorization.problem import Array
from froda.heads import class_scores, make_head
from froda.preprocessing import RowSettings, fit_preprocessor
from froda.validation import check_fit_data, check_flag, check_share, check_target

_FOLDS = 5

# Doubt about held-out rows, after a fit on the rows and labels given first.
HeldOutDoubt = Callable[[Array, Array, Array], Array]

_REJECTION = """
    rejection : float, default=0.05
        Share of held-out source samples that the threshold of the unknown score rejects;
        unused where the source has samples of unknown classes.
    """
_ATTRIBUTES = """
    classes_ : array of shape (n_classes + 1,)
        The known classes in order, then the unknown label.
    n_known_ : int
        Number of known classes.
    threshold_ : float
        Unknown score above which a sample is rejected; infinite where the classifier has
        a class for unknowns.
    n_features_in_ : int
        Number of columns of the source.
    feature_names_in_ : array of str
        Column names, when the source had them.
    """

T = TypeVar("T", bound=type)


def document_shared(cls: T) -> T:
    """Fill {shared_settings} and {shared_attributes} of a class docstring."""
    texts = [SETTINGS[name] for name in ("row_sum", "zscore", "unit_norm", "pca_variance")]
    texts += [_REJECTION] if "rejection" in inspect.signature(cls).parameters else []
    texts += [SETTINGS["unknown_label"]]
    filled = dedent(inspect.cleandoc(cls.__doc__ or ""))
    shared = "\n".join(_with_default(cls, dedent(text).strip()) for text in texts)
    filled = filled.replace("{shared_settings}", shared)
    filled = filled.replace("{shared_attributes}", dedent(_ATTRIBUTES).strip())
    cls.__doc__ = "\n" + indent(filled, "    ") + "\n    "
    return cls


def _with_default(cls: type, text: str) -> str:
    """Return the text of a setting with the default that the class gives it."""
    name = text.partition(" ")[0]
    default = inspect.signature(cls).parameters[name].default
    return re.sub(r"default=\S+", f"default={default!r}", text, count=1)


class Baseline(ClassifierMixin, BaseEstimator):
    """Open-set classifier on prepared features; a method fills `_fit` and `_judge`.

    A method has the settings of `__init__` below besides its own. It never sees more than
    prepared source features, source labels as column numbers (``n_known`` for the unknown
    label) and prepared target features; ``_is_closed_set`` says that no target was given.
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

    def _row_settings(self) -> RowSettings:
        """Return the steps before the joint PCA."""
        return RowSettings(self.row_sum, self.zscore, self.unit_norm)

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
        self._is_closed_set = domains.is_closed_set
        n_left_out = len(np.asarray(y)) - len(domains.labels.numbers)
        if n_left_out:
            warnings.warn(
                f"{type(self).__name__} leaves out {n_left_out} source rows labelled "
                f"{self.classes_[-1:].tolist()[0]!r}: the method has no use for them.",
                UserWarning,
                stacklevel=2,
            )
        self._preprocessor, source, target = fit_preprocessor(
            domains.source, domains.target, self._row_settings(), self.pca_variance
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
        columns = self.decision_function(X).argmax(axis=1)
        labels: Array = self.classes_[columns]
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
    """Return the SVM's doubt that a share ``share`` of held-out source samples exceeds."""

    def doubt(fitted: Array, fitted_numbers: Array, held_out: Array) -> Array:
        head = make_head("svm", fitted, None).fit(fitted, fitted_numbers)
        return svm_doubt(class_scores(head, held_out, n_known + 1), knows_unknown=False)

    return held_out_threshold(features, numbers, share, doubt)


def held_out_threshold(features: Array, numbers: Array, share: float, doubt: HeldOutDoubt) -> float:
    """Return the doubt that a share ``share`` of held-out samples exceeds, or infinity."""
    doubts = held_out_doubts(features, numbers, doubt)
    return np.inf if doubts is None else float(np.quantile(doubts, 1 - share))


def held_out_doubts(features: Array, numbers: Array, doubt: HeldOutDoubt) -> Array | None:
    """Return the doubt about each sample in cross-validation; None where a class has one row.

    Rows are sorted before they are dealt out, so that the order in which they came does not
    matter, and dealt at random (fixed seed), so that no fold is a corner of the space.
    """
    from sklearn.model_selection import StratifiedKFold  # noqa: PLC0415 - quick `import froda`

    n_folds = number_of_folds(numbers)
    if n_folds < 2:
        return None
    order = canonical_order(features)
    features, numbers = features[order], numbers[order]
    doubts = np.empty(len(features))
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=0)
    for fitted, held_out in folds.split(features, numbers):
        doubts[order[held_out]] = doubt(features[fitted], numbers[fitted], features[held_out])
    return doubts


def number_of_folds(numbers: Array) -> int:
    """Return in how many parts a source is cut for cross-validation; 1 means not at all."""
    counts = np.bincount(numbers)
    return int(min(_FOLDS, counts[counts > 0].min()))


def canonical_order(features: Array) -> Array:
    """Return an order of rows that hangs neither on theirs nor on the signs of the axes."""
    return np.lexsort(np.abs(features).T[::-1])


def reject(scores: Array, doubt: Array, threshold: float) -> Array:
    """Lift the unknown column to the top where the doubt exceeds the threshold."""
    scores = scores.copy()
    rejected = doubt > threshold
    top = scores[rejected].max(axis=1)
    lifted = top + (doubt[rejected] - threshold)
    # A doubt just above the threshold must not be lost to rounding.
    scores[rejected, -1] = np.maximum(lifted, np.nextafter(top, np.inf, dtype=top.dtype))
    return scores
