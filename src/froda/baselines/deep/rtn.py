"""RTN: source and target classifiers that differ by a residual."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from froda.baselines.deep.base import DeepBaseline, Epoch, document_deep
from froda.baselines.deep.losses import cross_entropy, entropy, mmd_full
from froda.baselines.deep.network import Shapes
from froda.validation import check_positive

if TYPE_CHECKING:
    from torch import Tensor

    from froda.baselines.deep.training import Batch, Network


@document_deep
class RTN(DeepBaseline):
    """Residual transfer network: a residual between the classifiers of the two domains.

    The target's classifier f gives class scores; the source's adds a residual to them,
    ``f(x) + R(f(x))`` with R two layers of as many units as there are classes. The network
    minimises the cross-entropy of the source under the source's classifier, plus
    ``entropy_weight`` times the entropy of the target under the target's, plus ``weight`` times
    the squared MMD between the domains' fused features, the tensor products of bottleneck
    and class scores, with one Gaussian kernel whose width is their mean squared distance. Both
    weights grow from 0. Labels come from the target's classifier. With source samples of
    unknown classes the classifiers have a class for them; without, a sample is rejected when
    the odds against its best class exceed those of a share ``rejection`` of the source
    samples in cross-validation.

    Parameters
    ----------
    weight : float, default=0.3
        Weight of the discrepancy at the end of the training.
    entropy_weight : float, default=0.3
        Weight of the entropy at the end of the training.
    {training_settings}
    {shared_settings}

    Attributes
    ----------
    {training_attributes}
    {shared_attributes}

    See Also
    --------
    froda.baselines.DAN : Compares the layers one by one, with one classifier.

    Notes
    -----
    The paper fine-tunes AlexNet; here features are given, and bottleneck and classifiers are
    what is trained. The tensor products are never formed: their inner products are the
    products of those of their parts. The rates of the steps and the growth of the weights
    over the training are those of [2]_.

    References
    ----------
    .. [1] M. Long, H. Zhu, J. Wang, M. I. Jordan, "Unsupervised Domain Adaptation with
       Residual Transfer Networks", NIPS 2016, arXiv:1602.04433.
    .. [2] Y. Ganin, V. Lempitsky, "Unsupervised Domain Adaptation by Backpropagation",
       ICML 2015, arXiv:1409.7495.

    Examples
    --------
    >>> import numpy as np
    >>> from froda.baselines import RTN
    >>> rng = np.random.default_rng(0)
    >>> centres = 4 * rng.normal(size=(3, 20))  # the third class is in the target alone
    >>> y = np.repeat([0, 1], 40)
    >>> X = centres[y] + rng.normal(size=(80, 20))
    >>> y_target = np.repeat([0, 1, 2], 40)
    >>> X_target = centres[y_target] + rng.normal(size=(120, 20)) + 0.5
    >>> model = RTN(n_epochs=5).fit(X, y, X_target)
    >>> sorted(set(model.predict(X_target).tolist()))
    [-1, 0, 1]
    """

    def __init__(
        self,
        weight: float = 0.3,
        *,
        entropy_weight: float = 0.3,
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
        self.entropy_weight = entropy_weight

    def _check_settings(self) -> None:
        super()._check_settings()
        check_positive("weight", self.weight, zero=True)
        check_positive("entropy_weight", self.entropy_weight, zero=True)

    def _shapes(self, n_columns: int) -> Shapes:
        return {"residual_1": (n_columns, n_columns), "residual_2": (n_columns, n_columns)}

    def _loss(self, network: Network, batch: Batch, ramp: float) -> Tensor:
        hidden = network.bottleneck(batch.rows)
        scores = network.classify(hidden)
        discrepancy = mmd_full((hidden, scores), batch.n_source, hidden.new_ones(1), (1.0,))
        of_source, of_target = scores[: batch.n_source], scores[batch.n_source :]
        loss = cross_entropy(source_scores(network, of_source), batch.numbers)
        return loss + ramp * (self.weight * discrepancy + self.entropy_weight * entropy(of_target))


def source_scores(network: Network, scores: Tensor) -> Tensor:
    """Return the scores of the source's classifier from those of the target's."""
    inner = network.linear("residual_1", scores).relu()
    return scores + network.linear("residual_2", inner)
