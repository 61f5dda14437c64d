"""FRODA, D-FRODA and D-FRODA-U as scikit-learn estimators."""

from __future__ import annotations

from typing import Any

from froda._base import _Factorized
from froda.factorization.problem import Callback


class FRODA(_Factorized):
    """DOC"""

    def __init__(
        self,
        n_components: int | str = "sdm",
        *,
        alpha: float = 0.1,
        lam: float = 0.4,
        epsilon: float = 0.2,
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
        self.callback = callback
        self.random_state = random_state
        self.verbose = verbose


class DFRODA(FRODA):
    """DOC"""

    _uses_labels = True

    def __init__(
        self,
        n_components: int | str = "sdm",
        *,
        alpha: float = 0.1,
        beta: float = 0.01,
        lam: float = 0.4,
        epsilon: float = 0.2,
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
            callback=callback,
            random_state=random_state,
            verbose=verbose,
        )
        self.beta = beta


class DFRODAU(DFRODA):
    """DOC"""

    _uses_source_unknowns = True

    def __init__(
        self,
        n_components: int | str = "sdm",
        *,
        alpha: float = 0.1,
        beta: float = 0.01,
        lam: float = 0.4,
        lam_source: float | None = None,
        epsilon: float = 0.2,
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
            callback=callback,
            random_state=random_state,
            verbose=verbose,
        )
        self.lam_source = lam_source
