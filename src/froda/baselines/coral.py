"""CORAL: the source gets the covariance of the target."""

from __future__ import annotations

from typing import Any

from froda.door import SVMBaseline, document_shared
from froda.factorization.problem import Array
from froda.pca import Principal, principal_axes
from froda.rows import Rows
from froda.validation import check_positive


@document_shared
class CORAL(SVMBaseline):
    """Correlation alignment, then a linear SVM.

    With Cs and Ct the covariances of source and target plus a ridge, source samples, less
    their mean, are whitened by Cs^(-1/2) and recoloured by Ct^(1/2): without the ridge, the map
    of a full-rank source whose covariance is that of the target. Target samples are only
    centred. Neither power is built: both are applied as the ridge's own power and a change
    along the principal axes.

    Parameters
    ----------
    ridge : float, default=1.0
        Multiple of the identity added to each covariance, in mean variances of the domain,
        so that multiplying all features by a constant changes nothing.
    {shared_settings}

    Attributes
    ----------
    classifier_ : SVC
        The linear SVM on the aligned source.
    {shared_attributes}

    References
    ----------
    .. [1] B. Sun, J. Feng, K. Saenko, "Return of Frustratingly Easy Domain Adaptation",
       AAAI 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from froda.baselines import CORAL
    >>> rng = np.random.default_rng(0)
    >>> centres = 4 * rng.normal(size=(3, 20))  # the third class is in the target alone
    >>> y = np.repeat([0, 1], 40)
    >>> X = centres[y] + rng.normal(size=(80, 20))
    >>> y_target = np.repeat([0, 1, 2], 40)
    >>> X_target = centres[y_target] + rng.normal(size=(120, 20)) + 0.5
    >>> labels = CORAL().fit_predict(X, y, X_target)
    >>> sorted(set(labels.tolist()))
    [-1, 0, 1]
    """

    def __init__(
        self,
        *,
        ridge: float = 1.0,
        row_sum: bool = True,
        zscore: bool = True,
        unit_norm: bool = True,
        pca_variance: float | None = 0.99,
        rejection: float = 0.05,
        unknown_label: Any = None,
    ) -> None:
        super().__init__(
            row_sum=row_sum,
            zscore=zscore,
            unit_norm=unit_norm,
            pca_variance=pca_variance,
            rejection=rejection,
            unknown_label=unknown_label,
        )
        self.ridge = ridge

    def _check_settings(self) -> None:
        super()._check_settings()
        check_positive("ridge", self.ridge)

    def _align(self, source: Array, numbers: Array, target: Array) -> Array:  # noqa: ARG002
        of_source, of_target = (principal_axes([Rows(rows)])[0] for rows in (source, target))
        self._target_mean = of_target.mean
        white = self._times_power(source - of_source.mean, of_source, len(source), -0.5)
        return self._times_power(white, of_target, len(target), 0.5)

    def _times_power(
        self, rows: Array, principal: Principal, n_samples: int, exponent: float
    ) -> Array:
        """Return rows times a power of the ridged covariance.

        The covariance is P diag(v) Pᵀ + r I, so its power is r^p I + P diag((v + r)^p - r^p) Pᵀ.
        """
        variances = principal.square_sums / (n_samples - 1)
        ridge = float(self.ridge) * variances.sum() / rows.shape[1]
        change = (variances + ridge) ** exponent - ridge**exponent
        along = (rows @ principal.axes) * change.astype(rows.dtype, copy=False)
        product: Array = rows * float(ridge**exponent) + along @ principal.axes.T
        return product

    def _map_target(self, features: Array) -> Array:
        centred: Array = features - self._target_mean
        return centred
