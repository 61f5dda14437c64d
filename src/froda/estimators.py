"""FRODA, D-FRODA and D-FRODA-U as scikit-learn estimators."""

from __future__ import annotations

from typing import Any

from froda.base import FactorizedClassifier
from froda.docstrings import document_settings
from froda.factorization.problem import Callback


@document_settings(heads='{"svm", "nn"}', linear="")
class FRODA(FactorizedClassifier):
    """Factorized representations for open-set domain adaptation.

    Source and target samples of known classes are taken to lie near a subspace spanned by a
    shared basis V, target samples of unknown classes near one spanned by a private basis U.
    Minimises, over V, U, the codes Tv, Tu of the target and S of the source,

    ``|Xt - Tv Vᵀ - Tu Uᵀ|² + alpha |Xs - S Vᵀ|² + lam Σ_i (|Tv_i| + |Tu_i|)``

    under a limit on the columns of V and U. The group penalty makes each target sample choose
    between the two; those that choose the private basis are flagged unknown and train, with
    the source, a classifier of one class more.

    Parameters
    ----------
    {settings}

    Attributes
    ----------
    {attributes}

    See Also
    --------
    DFRODA : Adds a linear classifier of the source codes to the objective.
    DFRODAU : Also makes use of source samples of unknown classes.

    References
    ----------
    {reference}

    Examples
    --------
    >>> import numpy as np
    >>> from froda import FRODA
    >>> rng = np.random.default_rng(0)
    >>> centres = 4 * rng.normal(size=(3, 20))  # the third class is in the target alone
    >>> y = np.repeat([0, 1], 40)
    >>> X = centres[y] + rng.normal(size=(80, 20))
    >>> y_target = np.repeat([0, 1, 2], 40)
    >>> X_target = centres[y_target] + rng.normal(size=(120, 20)) + 0.5
    >>> labels = FRODA(n_components=2).fit_predict(X, y, X_target)
    >>> sorted(set(labels.tolist()))
    [-1, 0, 1]
    """

    def __init__(
        self,
        n_components: int | str = "sdm",
        *,
        alpha: float = 0.1,
        lam: float = 0.4,
        epsilon: float | str = 0.2,
        head: Any = "svm",
        decision: str = "augmented",
        constraint: str = "per_column",
        scaling: str = "relative",
        row_sum: bool = True,
        zscore: bool = True,
        unit_norm: bool = True,
        pca_variance: float | None = 0.99,
        unknown_label: Any = None,
        max_iter: int = 200,
        tol: float = 1e-4,
        n_passes: int | None = None,
        chunk_size: int | None = None,
        head_rows: int | None = 10_000,
        checkpoint: Any = None,
        callback: Callback | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.alpha = alpha
        self.lam = lam
        self.epsilon = epsilon
        self.head = head
        self.decision = decision
        self.constraint = constraint
        self.scaling = scaling
        self.row_sum = row_sum
        self.zscore = zscore
        self.unit_norm = unit_norm
        self.pca_variance = pca_variance
        self.unknown_label = unknown_label
        self.max_iter = max_iter
        self.tol = tol
        self.n_passes = n_passes
        self.chunk_size = chunk_size
        self.head_rows = head_rows
        self.checkpoint = checkpoint
        self.callback = callback
        self.random_state = random_state
        self.verbose = verbose


@document_settings(heads='{"svm", "nn", "linear"}', linear=", or the learnt W on the codes")
class DFRODA(FRODA):
    """FRODA with a linear classifier of the source codes in the objective.

    Adds ``beta |Y - S Wᵀ|²`` to the objective of `FRODA`, Y being the one-hot source labels
    and W the classifier, so that the shared subspace also tells the known classes apart.

    Parameters
    ----------
    {settings}

    Attributes
    ----------
    {attributes}
    code_classifier_ : array of shape (n_classes, d)
        The learnt W.

    See Also
    --------
    FRODA : The same without labels in the objective.
    DFRODAU : Also makes use of source samples of unknown classes.

    References
    ----------
    {reference}

    Examples
    --------
    >>> import numpy as np
    >>> from froda import DFRODA
    >>> rng = np.random.default_rng(0)
    >>> centres = 4 * rng.normal(size=(3, 20))
    >>> y = np.repeat([0, 1], 40)
    >>> X = centres[y] + rng.normal(size=(80, 20))
    >>> y_target = np.repeat([0, 1, 2], 40)
    >>> X_target = centres[y_target] + rng.normal(size=(120, 20)) + 0.5
    >>> model = DFRODA(n_components=2, head="linear").fit(X, y, X_target)
    >>> model.code_classifier_.shape
    (2, 2)
    """

    _uses_labels = True

    def __init__(
        self,
        n_components: int | str = "sdm",
        *,
        alpha: float = 0.1,
        beta: float = 0.01,
        lam: float = 0.4,
        epsilon: float | str = 0.2,
        head: Any = "svm",
        decision: str = "augmented",
        constraint: str = "per_column",
        scaling: str = "relative",
        row_sum: bool = True,
        zscore: bool = True,
        unit_norm: bool = True,
        pca_variance: float | None = 0.99,
        unknown_label: Any = None,
        max_iter: int = 200,
        tol: float = 1e-4,
        n_passes: int | None = None,
        chunk_size: int | None = None,
        head_rows: int | None = 10_000,
        checkpoint: Any = None,
        callback: Callback | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            n_components,
            alpha=alpha,
            lam=lam,
            epsilon=epsilon,
            head=head,
            decision=decision,
            constraint=constraint,
            scaling=scaling,
            row_sum=row_sum,
            zscore=zscore,
            unit_norm=unit_norm,
            pca_variance=pca_variance,
            unknown_label=unknown_label,
            max_iter=max_iter,
            tol=tol,
            n_passes=n_passes,
            chunk_size=chunk_size,
            head_rows=head_rows,
            checkpoint=checkpoint,
            callback=callback,
            random_state=random_state,
            verbose=verbose,
        )
        self.beta = beta


@document_settings(heads='{"svm", "nn", "linear"}', linear=", or the learnt W on the codes")
class DFRODAU(DFRODA):
    """D-FRODA that makes use of source samples of unknown classes.

    Source rows that carry the unknown label get a private basis U2 of their own, the source
    codes [Sv, Su] a group penalty, and the labels a class more. Minimises

    ``|Xt - Tv Vᵀ - Tu Uᵀ|² + alpha |Xs - Sv Vᵀ - Su U2ᵀ|² + beta |Y - [Sv, Su] Wᵀ|²
    + lam Σ_i (|Tv_i| + |Tu_i|) + lam_source Σ_i (|Sv_i| + |Su_i|)``.

    Parameters
    ----------
    {settings}

    Attributes
    ----------
    {attributes}
    code_classifier_ : array of shape (n_classes + 1, d + d_private)
        The learnt W; the last row is the unknown class.
    source_private_basis_ : array of shape (n_kept, d_private)
        U2.

    See Also
    --------
    DFRODA : For sources without unknown classes.

    References
    ----------
    {reference}

    Examples
    --------
    >>> import numpy as np
    >>> from froda import DFRODAU
    >>> rng = np.random.default_rng(0)
    >>> centres = 4 * rng.normal(size=(4, 20))
    >>> numbers = np.repeat([0, 1, 2], 40)
    >>> X = centres[numbers] + rng.normal(size=(120, 20))
    >>> y = np.where(numbers == 2, -1, numbers)  # an unknown class of the source
    >>> X_target = centres[np.repeat([0, 1, 3], 40)] + rng.normal(size=(120, 20)) + 0.5
    >>> model = DFRODAU(n_components=2).fit(X, y, X_target)
    >>> model.classes_.tolist()
    [0, 1, -1]
    """

    _uses_source_unknowns = True

    def __init__(
        self,
        n_components: int | str = "sdm",
        *,
        alpha: float = 0.1,
        beta: float = 0.01,
        lam: float = 0.4,
        lam_source: float | None = None,
        epsilon: float | str = 0.2,
        head: Any = "svm",
        decision: str = "augmented",
        constraint: str = "per_column",
        scaling: str = "relative",
        row_sum: bool = True,
        zscore: bool = True,
        unit_norm: bool = True,
        pca_variance: float | None = 0.99,
        unknown_label: Any = None,
        max_iter: int = 200,
        tol: float = 1e-4,
        n_passes: int | None = None,
        chunk_size: int | None = None,
        head_rows: int | None = 10_000,
        checkpoint: Any = None,
        callback: Callback | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            n_components,
            alpha=alpha,
            beta=beta,
            lam=lam,
            epsilon=epsilon,
            head=head,
            decision=decision,
            constraint=constraint,
            scaling=scaling,
            row_sum=row_sum,
            zscore=zscore,
            unit_norm=unit_norm,
            pca_variance=pca_variance,
            unknown_label=unknown_label,
            max_iter=max_iter,
            tol=tol,
            n_passes=n_passes,
            chunk_size=chunk_size,
            head_rows=head_rows,
            checkpoint=checkpoint,
            callback=callback,
            random_state=random_state,
            verbose=verbose,
        )
        self.lam_source = lam_source
