"""What the three estimators share: check, call, store; no mathematics."""

from __future__ import annotations

import os
import warnings
from importlib.metadata import version
from typing import Any, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from froda import openset
from froda.dimension import subspace_disagreement
from froda.factorization import alternate, codes
from froda.factorization.checkpoint import Checkpoint
from froda.factorization.constraints import CONSTRAINTS
from froda.factorization.initialize import from_source_axes
from froda.factorization.lines import report_to
from froda.factorization.minibatch import solve_in_passes
from froda.factorization.problem import Array, Problem, StopReason
from froda.heads import HEADS, class_scores, linear_scores, make_head
from froda.preprocessing import Preprocessor, RowSettings, fit_preprocessor
from froda.tables import (
    axes_of,
    come_as_tables,
    identity_of,
    open_table,
    prepare_tables,
    root_mean_square,
    take_rows,
    takes_tables,
)
from froda.validation import (
    Domains,
    check_choice,
    check_count,
    check_fit_data,
    check_fit_tables,
    check_flag,
    check_positive,
    check_seed,
    check_share,
    check_target,
)

_DECISIONS = ("augmented", "flag")
_SCALINGS = ("relative", "absolute")


class FactorizedClassifier(
    ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, BaseEstimator
):
    """Common door of the factorised methods: fit, predict, score, transform."""

    _uses_labels = False
    _uses_source_unknowns = False

    n_components: Any
    alpha: Any
    lam: Any
    epsilon: Any
    head: Any
    decision: Any
    constraint: Any
    scaling: Any
    row_sum: Any
    zscore: Any
    unit_norm: Any
    pca_variance: Any
    unknown_label: Any
    max_iter: Any
    tol: Any
    callback: Any
    random_state: Any
    verbose: Any

    def fit(self, X: Any, y: Any, X_target: Any = None) -> Self:
        """Factorise source and target together and train the head.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_source, n_features)
            Labelled source samples; a pandas or polars frame also fixes column names.
        y : array-like of shape (n_source,)
            Source labels. Rows that carry the unknown label are source samples of unknown
            classes.
        X_target : array-like or sparse matrix of shape (n_target, n_features), default=None
            Unlabelled target samples. None takes the source itself as a target without
            unknown classes.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._fit(X, y, X_target)
        return self

    def _fit(self, X: Any, y: Any, X_target: Any) -> Array:
        """Fit, and return the target in the coordinates of the fit."""
        self._check_settings()
        domains = self._check_data(X, y, X_target)
        self._check_room(domains)
        self.classes_ = domains.labels.classes
        n_left_out = len(np.asarray(y)) - len(domains.labels.numbers)
        if n_left_out:
            warnings.warn(
                f"{type(self).__name__} leaves out {n_left_out} source rows labelled "
                f"{self.classes_[-1:].tolist()[0]!r}; DFRODAU makes use of them.",
                UserWarning,
                stacklevel=3,
            )
        checkpoint = self._open_checkpoint(domains)
        self._preprocessor, source, target = self._prepare(domains, checkpoint)
        axes = self._choose_dimension(domains, source, target)
        problem = self._problem(domains, source, target)
        self._factorize(problem, axes, checkpoint)
        self._judge_target(domains, target)
        self._train_head(domains, source, target)
        return target

    def _check_data(self, X: Any, y: Any, X_target: Any) -> Domains:
        """Check data and labels; rows that come in chunks are not read yet."""
        rules: dict[str, Any] = {
            "unknown_label": self.unknown_label,
            "keep_unknown": self._uses_source_unknowns,
        }
        if not come_as_tables(X, X_target, self._chunk_size):
            return check_fit_data(self, X, y, X_target, **rules)
        source = open_table(X, self._chunk_size, "X")
        target = None if X_target is None else open_table(X_target, self._chunk_size, "X_target")
        return check_fit_tables(self, source, y, target, **rules)

    @property
    def _chunk_size(self) -> int | None:
        return getattr(self, "chunk_size", None)

    def _open_checkpoint(self, domains: Domains) -> Checkpoint | None:
        """Return the folder to go on from; it must be that of the same data and settings."""
        folder = getattr(self, "checkpoint", None)
        if folder is None:
            return None
        left_out = ("callback", "verbose", "checkpoint", "max_iter", "tol")
        settings = {k: v for k, v in self.get_params(deep=False).items() if k not in left_out}
        identity = {k: repr(v) for k, v in settings.items()}
        identity["X"], identity["X_target"] = (
            identity_of(domains.source),
            identity_of(domains.target),
        )
        identity["y"] = identity_of(np.asarray(domains.labels.numbers))
        identity["estimator"] = f"{type(self).__name__} of froda {version('froda')}"
        return Checkpoint.open(folder, identity)

    def _prepare(
        self, domains: Domains, checkpoint: Checkpoint | None
    ) -> tuple[Preprocessor, Any, Any]:
        """Return the preprocessor and both domains, arrays or tables, in its coordinates."""
        settings = RowSettings(self.row_sum, self.zscore, self.unit_norm)
        if not domains.in_chunks:
            return fit_preprocessor(domains.source, domains.target, settings, self.pca_variance)
        labels = (domains.labels.numbers, domains.labels.n_known)
        raws = (domains.source, domains.target)
        return prepare_tables(raws, labels, settings, self.pca_variance, checkpoint)

    def _check_settings(self) -> None:
        """Refuse settings that make no sense before anything is computed."""
        self._check_counts()
        for name in ("alpha", "lam", "lam_source"):
            if getattr(self, name, None) is not None or name != "lam_source":
                check_positive(name, getattr(self, name))
        for name in ("beta", "tol"):
            check_positive(name, getattr(self, name, 0.0), zero=True)
        openset.check_epsilon(self.epsilon)
        for name in ("row_sum", "zscore", "unit_norm"):
            check_flag(name, getattr(self, name))
        check_choice("constraint", self.constraint, CONSTRAINTS)
        check_choice("scaling", self.scaling, _SCALINGS)
        check_choice("decision", self.decision, _DECISIONS)
        check_share("pca_variance", self.pca_variance)
        self._check_head()
        checkpoint = getattr(self, "checkpoint", None)
        if checkpoint is not None and not isinstance(checkpoint, str | os.PathLike):
            raise ValueError(f"checkpoint must be None or the name of a folder: {checkpoint!r}.")
        if checkpoint is not None and getattr(self, "n_passes", None) is not None:
            raise ValueError("checkpoint is for full iterations: leave it or n_passes out.")
        if self.callback is not None and not callable(self.callback):
            raise ValueError(f"callback must be callable, got {self.callback!r}.")
        if not isinstance(self.verbose, bool):
            check_count("verbose", self.verbose, least=0)
        check_seed("random_state", self.random_state)

    def _check_room(self, domains: Domains) -> None:
        """Refuse more components than data of this shape allow, before any work on them.

        Less may be possible once they are prepared: `_choose_dimension` sees to that.
        """
        n_known, n_columns = int((~domains.labels.is_unknown).sum()), domains.source.shape[1]
        limit = min(n_known, n_columns) - 1
        if not isinstance(self.n_components, str) and self.n_components > limit:
            raise ValueError(
                f"n_components={self.n_components} is larger than possible: {n_known} known "
                f"source samples of {n_columns} features allow at most {limit}."
            )

    def _check_counts(self) -> None:
        """Require whole numbers where whole numbers are meant."""
        if not isinstance(self.n_components, str):
            check_count("n_components", self.n_components)
        elif self.n_components != "sdm":
            raise ValueError(
                f"n_components must be a whole number or 'sdm', got {self.n_components!r}."
            )
        check_count("max_iter", self.max_iter)
        for name, least in (("chunk_size", 1), ("head_rows", 1), ("n_passes", 2)):
            if getattr(self, name, None) is not None:
                check_count(name, getattr(self, name), least)

    def _check_head(self) -> None:
        """Require the name of a head that the method has, or a classifier."""
        if isinstance(self.head, str):
            check_choice("head", self.head, HEADS if self._uses_labels else HEADS[:2])
        elif not (hasattr(self.head, "fit") and hasattr(self.head, "predict")):
            raise ValueError(f"head must be a name or a scikit-learn classifier: {self.head!r}.")

    def _choose_dimension(self, domains: Domains, source: Any, target: Any) -> Array:
        """Set n_components_ and disagreement_; return the source axes that start V."""
        is_known = ~domains.labels.is_unknown
        source_axes = axes_of(source, is_known=is_known)
        n_features = source.shape[1]
        limit = min(source_axes.shape[1], max(n_features - 1, 1))
        if limit == 0:
            raise ValueError("the known source rows are all the same after preprocessing.")
        if n_features == 1:
            warnings.warn(
                "after preprocessing the data vary along one direction only: there is no room "
                "for a private basis and no sample can be flagged unknown. Switch row_sum, "
                "zscore or unit_norm off if the features have few columns.",
                UserWarning,
                stacklevel=4,
            )
        self.disagreement_ = np.empty(0)
        if self.n_components == "sdm":
            own, other = source_axes, axes_of(target)
            if self.pca_variance is None:  # the measure reads axes in those of the joint PCA
                joint = axes_of(source, target)
                own, other = joint.T @ own, joint.T @ other
            most = max(min(limit, other.shape[1], len(other) // 2), 1)
            self.n_components_, self.disagreement_ = subspace_disagreement(own, other, most)
        else:
            self.n_components_ = int(self.n_components)
            if self.n_components_ > limit:
                raise ValueError(
                    f"n_components={self.n_components_} is larger than possible: "
                    f"{np.count_nonzero(is_known)} known source samples that vary in "
                    f"{source_axes.shape[1]} of {n_features} dimensions (after preprocessing) "
                    f"allow at most {limit}."
                )
        return source_axes[:, : self.n_components_]

    def _problem(self, domains: Domains, source: Any, target: Any) -> Problem:
        """State the factorisation with absolute weights."""
        lam, lam_source, beta = self._absolute_weights(source, target)
        one_hot = None
        if self._uses_labels:
            n_columns = domains.labels.n_known + int(self._uses_source_unknowns)
            one_hot = np.eye(n_columns, dtype=source.dtype)[domains.labels.numbers]
        return Problem(
            source,
            target,
            float(self.alpha),
            lam,
            one_hot,
            beta,
            lam_source,
            self._uses_source_unknowns,
            self.constraint,
        )

    def _absolute_weights(self, source: Any, target: Any) -> tuple[float, float, float]:
        """Return lam, lam_source and beta in the units of the data.

        A code shrinks by lam/2 for an orthonormal basis, so lam is measured in root mean
        square row norms; columns of length 1/d under the total constraint make codes d
        times longer and lam d times shorter. The source term is weighted by alpha, and
        lam_source with it. beta compares squared features with one-hot labels.
        """
        lam, beta = float(self.lam), float(getattr(self, "beta", 0.0))
        lam_source = getattr(self, "lam_source", None)
        lam_source = lam if lam_source is None else float(lam_source)
        if self.scaling == "absolute":
            return lam, lam_source, beta
        target_size, source_size = root_mean_square(target), root_mean_square(source)
        width = 1
        if self.constraint == "total":
            width = self.n_components_ * (2 if self._uses_source_unknowns else 1)
        return (
            lam * target_size / width,
            float(self.alpha) * lam_source * source_size / width,
            beta * source_size**2,
        )

    def _factorize(self, problem: Problem, axes: Array, checkpoint: Checkpoint | None) -> None:
        """Run the outer loop and store what it returns."""
        point = from_source_axes(problem, axes)
        report = report_to(self.callback, self.verbose, type(self).__name__)
        n_passes = getattr(self, "n_passes", None)
        if n_passes is not None:
            solution = solve_in_passes(problem, point, n_passes=n_passes, callback=report)
        else:
            solution = alternate.solve(
                problem,
                point,
                max_iter=self.max_iter,
                tol=float(self.tol),
                callback=report,
                checkpoint=checkpoint,
            )
        factors = solution.factors
        self.shared_basis_, self.private_basis_ = factors.V, factors.U
        self.target_codes_ = _present(problem.Xt, factors.T)
        self.source_codes_ = _present(problem.Xs, factors.S)
        if factors.W is not None:
            self.code_classifier_ = factors.W.astype(factors.V.dtype, copy=False)
        if factors.U2 is not None:
            self.source_private_basis_ = factors.U2
        self.objective_ = solution.history
        self.n_iter_, self.stop_reason_ = solution.n_iter, solution.stop_reason
        if self.stop_reason_ in (StopReason.MAX_ITER, StopReason.ALL_CODES_ZERO):
            warnings.warn(
                f"{type(self).__name__} stopped with {self.stop_reason_}",
                ConvergenceWarning,
                stacklevel=4,
            )
        self._n_features_out = sum(factors.target_widths)
        basis = factors.target_basis
        self._prepared = codes.prepare(basis.T @ basis, factors.target_widths, problem.lam)

    def _judge_target(self, domains: Domains, target: Any) -> None:
        """Set unknown_mask_: the target samples that the codes call unknown."""
        self._is_closed_set = domains.is_closed_set
        basis = self._target_basis

        def over_target(function: Any) -> Array:
            if isinstance(target, np.ndarray):
                return function(target @ basis, self.target_codes_)
            return np.asarray(target.map_products(function, basis, self.target_codes_))

        if isinstance(self.epsilon, str):
            shares = over_target(openset.PrivateShare(self._prepared.widths))
            self.epsilon_ = openset.epsilon_of(shares, surest=not self._decides_by_flag)
        else:
            self.epsilon_ = float(self.epsilon)
        flags = over_target(openset.Judge(self._prepared, self.epsilon_))
        self.unknown_mask_ = flags & (not self._is_closed_set)

    def _verdict(self, features: Array, sample_codes: Array) -> openset.Verdict:
        """Return score and decision for codes of preprocessed samples."""
        cross = features @ self._target_basis
        return openset.judge(self._prepared, cross, sample_codes, self.epsilon_)

    @property
    def _target_basis(self) -> Array:
        return np.hstack([self.shared_basis_, self.private_basis_])

    @property
    def _decides_by_flag(self) -> bool:
        return bool(self.decision == "flag" or self._has_linear_head)

    @property
    def _has_linear_head(self) -> bool:
        return isinstance(self.head, str) and self.head == "linear"

    def _train_head(self, domains: Domains, source: Any, target: Any) -> None:
        """Train the classifier on the source and, unless flags decide, the flagged samples."""
        if self._has_linear_head:
            self.classifier_ = self.code_classifier_
            return
        flagged = self.unknown_mask_
        if self._decides_by_flag:
            flagged = np.zeros_like(flagged)
        own, flagged = self._draw_head_rows(len(domains.labels.numbers), flagged)
        features = np.vstack([take_rows(source, own), take_rows(target, flagged)])
        unknowns = np.full(np.count_nonzero(flagged), domains.labels.n_known)
        numbers = np.append(domains.labels.numbers[own], unknowns)
        self.classifier_ = make_head(self.head, features, self.random_state).fit(features, numbers)

    def _draw_head_rows(self, n_source: int, flagged: Array) -> tuple[Array, Array]:
        """Return masks of the source and of the flagged rows that train the head.

        These are all of them, or as many as ``head_rows`` allows, drawn at random.
        """
        own, candidates = np.ones(n_source, dtype=bool), np.flatnonzero(flagged)
        most = getattr(self, "head_rows", None)
        n_rows = n_source + len(candidates)
        if most is None or n_rows <= most:
            return own, flagged
        generator = check_random_state(0 if self.random_state is None else self.random_state)
        drawn = np.zeros(n_rows, dtype=bool)
        drawn[generator.choice(n_rows, size=most, replace=False)] = True
        chosen = np.zeros_like(flagged)
        chosen[candidates[drawn[n_source:]]] = True
        return drawn[:n_source], chosen

    def _code(self, X: Any) -> tuple[Array, Array]:
        """Return preprocessed target samples and their codes with the bases fixed."""
        check_is_fitted(self)
        X = check_target(self, X, "X").astype(self.shared_basis_.dtype, copy=False)
        features = self._preprocessor.transform_target(X)
        return features, codes.update(self._prepared, features @ self._target_basis)

    @takes_tables
    def transform(self, X: Any) -> Array:
        """Return the codes [Tv, Tu] of target samples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Target samples, new ones or those of the fit.

        Returns
        -------
        codes : array of shape (n_samples, n_shared + n_private)
            Codes on the shared basis, then on the private one.
        """
        return self._code(X)[1]

    @takes_tables
    def unknown_score(self, X: Any) -> Array:
        """Return how surely each target sample is of an unknown class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Target samples.

        Returns
        -------
        score : array of shape (n_samples,)
            Higher is more surely unknown; from ``unknown_threshold_`` on a sample is
            flagged. See `froda.openset.judge` for the definition.
        """
        return self._verdict(*self._code(X)).score

    @property
    def unknown_threshold_(self) -> float:
        """Score from which on the codes call a sample unknown."""
        return openset.threshold(self.epsilon_)

    @takes_tables
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
        return self._scores(*self._code(X))

    def _scores(self, features: Array, sample_codes: Array) -> Array:
        """Return one score per class for preprocessed samples and their codes."""
        n_columns = len(self.classes_)
        if not self._has_linear_head:
            scores = class_scores(self.classifier_, features, n_columns)
        else:
            shared = sample_codes[:, : self.shared_basis_.shape[1]]
            scores = linear_scores(shared, self.classifier_, n_columns)
        if not self._decides_by_flag or self._is_closed_set:
            return scores
        verdict = self._verdict(features, sample_codes)
        return openset.overrule(scores, verdict, self.epsilon_)

    @takes_tables
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
        scores = self.decision_function(X)
        labels: Array = self.classes_[scores.argmax(axis=1)]
        return labels

    @takes_tables
    def predict_proba(self, X: Any) -> Array:
        """Return the softmax of `decision_function`: an ordering, not a calibrated chance.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Target samples.

        Returns
        -------
        probabilities : array of shape (n_samples, n_classes + 1)
            Rows sum to 1; columns in the order of ``classes_``, the unknown label last.
        """
        scores = self.decision_function(X)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        probabilities: Array = weights / weights.sum(axis=1, keepdims=True)
        return probabilities

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
        features = self._fit(X, y, X_target)
        if not isinstance(features, np.ndarray):
            return self.predict(X if X_target is None else X_target)
        labels: Array = self.classes_[self._scores(features, self.target_codes_).argmax(axis=1)]
        return labels

    def __sklearn_tags__(self) -> Any:
        """Declare sparse input and the dtypes that are kept."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @classmethod
    def from_paper(cls, **changes: Any) -> Self:
        """Return an estimator with the paper's literal settings.

        alpha 0.1, beta 0.01, lam 0.001 and epsilon 0.2 in the units of the data, rows
        divided by their sums and columns standardised per domain but rows not brought to
        unit norm, 99 % of the variance in the joint PCA, n_components by the subspace
        disagreement measure, 50 iterations.

        What was measured: a lam of 0.001 is so small beside standardised features that no
        code becomes exactly zero and no sample is flagged. On Office-Caltech10 (first five
        classes known, mean of 12 pairs) UNK and HOS are 0 for AlexNet and for SURF features,
        OS* is that of a linear SVM on the source (86.5 and 73.1 %), and the unknown score
        still ranks with AUROC .79 and .74. Use it to compare, not to label.

        Parameters
        ----------
        **changes : object
            Settings that replace the literal ones.

        Returns
        -------
        estimator : object
            An unfitted estimator.
        """
        literal: dict[str, Any] = {
            "n_components": "sdm",
            "alpha": 0.1,
            "lam": 0.001,
            "epsilon": 0.2,
            "scaling": "absolute",
            "unit_norm": False,
            "pca_variance": 0.99,
            "max_iter": 50,
        }
        if cls._uses_labels:
            literal["beta"] = 0.01
        return cls(**{**literal, **changes})


def _present(rows: Any, codes: Any) -> Any:
    """Return codes as users see them."""
    return codes if isinstance(rows, np.ndarray) else rows.present(codes)
