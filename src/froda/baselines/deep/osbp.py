"""OSBP: a class for unknowns that the features of each target sample join or leave."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from froda.baselines.deep.base import DeepBaseline, Epoch, document_deep
from froda.baselines.deep.losses import cross_entropy, reverse_gradient, unknown_loss
from froda.validation import check_positive

if TYPE_CHECKING:
    from torch import Tensor

    from froda.baselines.deep.training import Batch, Network


@document_deep
class OSBP(DeepBaseline):
    """Open-set adaptation by back-propagation: an adversarial class for unknowns.

    The classifier has one class more than the source. It learns the labels of the source and
    to give every target sample the probability ``share`` of being unknown, by the binary
    cross-entropy -t log u - (1 - t) log(1 - u); the bottleneck learns the labels and, through
    the reversed gradient, the opposite: to bring u away from ``share``, towards 0 or 1. Source
    samples of unknown classes are labelled samples of the class more. The unknown score is
    the logarithm of the odds of that class.

    Parameters
    ----------
    weight : float, default=1.0
        Weight of the reversed gradient.
    share : float, default=0.5
        The probability t.
    {training_settings}
    {shared_settings}

    Attributes
    ----------
    {training_attributes}
    {shared_attributes}

    See Also
    --------
    froda.baselines.BP : Reverses the gradient of a domain classifier instead.

    Notes
    -----
    The paper trains layers of 100 units with batch normalisation on the features of AlexNet
    or VGG; here the bottleneck is that of the other methods. The reversed gradient has its
    full weight from the start, as in the paper; the rates of the steps are those of [2]_. The
    paper has no source samples of unknown classes. Without a target there is nothing to
    join or leave, and the source alone is learnt.

    References
    ----------
    .. [1] K. Saito, S. Yamamoto, Y. Ushiku, T. Harada, "Open Set Domain Adaptation by
       Backpropagation", ECCV 2018, arXiv:1804.10427.
    .. [2] Y. Ganin, V. Lempitsky, "Unsupervised Domain Adaptation by Backpropagation",
       ICML 2015, arXiv:1409.7495.

    Examples
    --------
    >>> import numpy as np
    >>> from froda.baselines import OSBP
    >>> rng = np.random.default_rng(0)
    >>> centres = 4 * rng.normal(size=(3, 20))  # the third class is in the target alone
    >>> y = np.repeat([0, 1], 40)
    >>> X = centres[y] + rng.normal(size=(80, 20))
    >>> y_target = np.repeat([0, 1, 2], 40)
    >>> X_target = centres[y_target] + rng.normal(size=(120, 20)) + 0.5
    >>> model = OSBP(n_epochs=10).fit(X, y, X_target)
    >>> sorted(set(model.predict(X_target).tolist()))
    [-1, 0, 1]
    """

    _has_unknown_class = True

    def __init__(
        self,
        weight: float = 1.0,
        *,
        share: float = 0.5,
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
            unknown_label=unknown_label,
        )
        self.weight = weight
        self.share = share

    def _check_settings(self) -> None:
        super()._check_settings()
        check_positive("weight", self.weight, zero=True)
        check_positive("share", self.share)
        if self.share >= 1:
            raise ValueError(f"share must be below 1, got {self.share!r}: it is a probability.")

    def _loss(self, network: Network, batch: Batch, ramp: float) -> Tensor:  # noqa: ARG002
        hidden = network.bottleneck(batch.rows)
        of_source, of_target = hidden[: batch.n_source], hidden[batch.n_source :]
        loss = cross_entropy(network.classify(of_source), batch.numbers)
        if self._is_closed_set:
            return loss
        reversed_rows = reverse_gradient(of_target, self.weight)
        return loss + unknown_loss(network.classify(reversed_rows), self.share)
