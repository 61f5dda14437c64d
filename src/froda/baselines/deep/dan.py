"""DAN: a network whose features have the same kernel means in both domains."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from froda.baselines.deep.base import DeepBaseline, Epoch, document_deep
from froda.baselines.deep.losses import (
    WIDTHS,
    cross_entropy,
    kernel_weights,
    linear_terms,
    mmd_full,
)
from froda.validation import check_choice, check_positive

if TYPE_CHECKING:
    from torch import Tensor

    from froda.baselines.deep.training import Batch, Network

ESTIMATORS = ("full", "linear")
WEIGHTINGS = ("optimal", "uniform")


@document_deep
class DAN(DeepBaseline):
    """Deep adaptation network: multi-kernel maximum mean discrepancy on two layers.

    The network minimises the cross-entropy of the source plus ``weight`` (growing from 0) times
    the squared MMD between source and target, in the bottleneck and in the class scores. The
    kernel is a weighted sum of five Gaussian ones, whose widths are 1/4 to 4 mean squared
    distances. With source samples of unknown classes the classifier has a class for them;
    without, a sample is rejected when the odds against its best class exceed those of a share
    ``rejection`` of the source samples in cross-validation.

    Parameters
    ----------
    weight : float, default=1.0
        Weight of the discrepancy at the end of the training.
    estimator : {"full", "linear"}, default="full"
        "full" compares all pairs of samples in a batch, "linear" takes each sample once:
        unbiased and noisier.
    kernel_weights : {"optimal", "uniform"}, default="optimal"
        "optimal" weighs the kernels anew in each epoch, as a test of the two domains with
        least error would; "uniform" gives all the same weight.
    {training_settings}
    {shared_settings}

    Attributes
    ----------
    kernel_weights_ : array of shape (2, 5)
        Weights of the kernels in the last epoch, of the bottleneck and of the class scores.
    {training_attributes}
    {shared_attributes}

    See Also
    --------
    froda.baselines.RTN : Compares both layers at once, and lets the classifiers differ.

    Notes
    -----
    The paper adapts the upper layers of AlexNet and fine-tunes those below; here features
    are given, and bottleneck and classifier are what is trained. The paper has 33 kernels,
    widths in median squared distances, and a fixed weight. The rates of the steps and the
    growth of the weight over the training are those of [2]_.

    References
    ----------
    .. [1] M. Long, Y. Cao, J. Wang, M. I. Jordan, "Learning Transferable Features with Deep
       Adaptation Networks", ICML 2015, arXiv:1502.02791.
    .. [2] Y. Ganin, V. Lempitsky, "Unsupervised Domain Adaptation by Backpropagation",
       ICML 2015, arXiv:1409.7495.
    .. [3] A. Gretton et al., "Optimal Kernel Choice for Large-Scale Two-Sample Tests",
       NIPS 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from froda.baselines import DAN
    >>> rng = np.random.default_rng(0)
    >>> centres = 4 * rng.normal(size=(3, 20))  # the third class is in the target alone
    >>> y = np.repeat([0, 1], 40)
    >>> X = centres[y] + rng.normal(size=(80, 20))
    >>> y_target = np.repeat([0, 1, 2], 40)
    >>> X_target = centres[y_target] + rng.normal(size=(120, 20)) + 0.5
    >>> model = DAN(n_epochs=5).fit(X, y, X_target)
    >>> sorted(set(model.predict(X_target).tolist()))
    [-1, 0, 1]
    """

    def __init__(
        self,
        weight: float = 1.0,
        *,
        estimator: str = "full",
        kernel_weights: str = "optimal",
        n_bottleneck: int = 256,
        n_epochs: int = 50,
        batch_size: int = 64,
        learning_rate: float = 0.01,
        device: str = "auto",
        callback: Callable[[Epoch], Any] | None = None,
        random_state: Any = 0,
        verbose: int = 0,
        row_sum: bool = True,
        zscore: bool = True,
        unit_norm: bool = True,
        pca_variance: float | None = 0.99,
        rejection: float = 0.05,
        unknown_label: Any = None,
    ) -> None:
        super().__init__(
            n_bottleneck=n_bottleneck,
            n_epochs=n_epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            device=device,
            callback=callback,
            random_state=random_state,
            verbose=verbose,
            row_sum=row_sum,
            zscore=zscore,
            unit_norm=unit_norm,
            pca_variance=pca_variance,
            rejection=rejection,
            unknown_label=unknown_label,
        )
        self.weight = weight
        self.estimator = estimator
        self.kernel_weights = kernel_weights

    def _check_settings(self) -> None:
        super()._check_settings()
        check_positive("weight", self.weight, zero=True)
        check_choice("estimator", self.estimator, ESTIMATORS)
        check_choice("kernel_weights", self.kernel_weights, WEIGHTINGS)

    def _start_epoch(self, network: Network, source: Tensor, target: Tensor) -> None:
        self.kernel_weights_ = np.full((2, len(WIDTHS)), 1 / len(WIDTHS))
        if self.kernel_weights == "optimal":
            layers = zip(_adapted(network, source), _adapted(network, target), strict=True)
            for place, (mine, theirs) in enumerate(layers):
                terms = linear_terms(mine.detach(), theirs.detach()).cpu().numpy()
                self.kernel_weights_[place] = kernel_weights(terms.astype(np.float64))

    def _loss(self, network: Network, batch: Batch, ramp: float) -> Tensor:
        adapted = _adapted(network, batch.rows)
        loss = cross_entropy(adapted[1][: batch.n_source], batch.numbers)
        for layer, weights in zip(adapted, self.kernel_weights_, strict=True):
            discrepancy = self._discrepancy(layer, batch.n_source, layer.new_tensor(weights))
            loss = loss + ramp * self.weight * discrepancy
        return loss

    def _discrepancy(self, layer: Tensor, n_source: int, weights: Tensor) -> Tensor:
        """Return the squared MMD of one layer."""
        if self.estimator == "linear":
            return (weights @ linear_terms(layer[:n_source], layer[n_source:])).mean()
        return mmd_full((layer,), n_source, weights)


def _adapted(network: Network, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return the layers that are adapted."""
    hidden = network.bottleneck(rows)
    return hidden, network.classify(hidden)
