"""BP: features from which a domain classifier cannot tell where a sample comes from."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from froda.baselines.deep.base import DeepBaseline, Epoch, document_deep
from froda.baselines.deep.losses import cross_entropy, domain_loss, reverse_gradient
from froda.baselines.deep.network import Shapes
from froda.validation import check_count, check_positive

if TYPE_CHECKING:
    from torch import Tensor

    from froda.baselines.deep.training import Batch, Network


@document_deep
class BP(DeepBaseline):
    """Adaptation by back-propagation: a domain classifier whose gradient is reversed.

    A domain classifier, two hidden layers on the bottleneck, learns to tell source from target
    samples, while the bottleneck learns to label the source and, through the reversed
    gradient, to deceive the domain classifier: at a share p of the training the bottleneck
    sees minus ``weight`` · (2 / (1 + exp(-10 p)) - 1) times the gradient of the domain loss. With
    source samples of unknown classes the classifier has a class for them; without, a sample
    is rejected when the odds against its best class exceed those of a share ``rejection`` of
    the source samples in cross-validation.

    Parameters
    ----------
    weight : float, default=1.0
        Weight of the reversed gradient at the end of the training.
    n_hidden : int, default=256
        Units of each hidden layer of the domain classifier.
    {training_settings}
    {shared_settings}

    Attributes
    ----------
    {training_attributes}
    {shared_attributes}

    See Also
    --------
    froda.baselines.OSBP : Reverses the gradient of a class for unknowns instead.

    Notes
    -----
    The paper fine-tunes AlexNet, has 1024 units in each hidden layer of the domain classifier,
    and dropout; here features are given, bottleneck and classifiers are what is trained, and
    the hidden layers are as wide as the bottleneck.

    References
    ----------
    .. [1] Y. Ganin, V. Lempitsky, "Unsupervised Domain Adaptation by Backpropagation",
       ICML 2015, arXiv:1409.7495.

    Examples
    --------
    >>> import numpy as np
    >>> from froda.baselines import BP
    >>> rng = np.random.default_rng(0)
    >>> centres = 4 * rng.normal(size=(3, 20))  # the third class is in the target alone
    >>> y = np.repeat([0, 1], 40)
    >>> X = centres[y] + rng.normal(size=(80, 20))
    >>> y_target = np.repeat([0, 1, 2], 40)
    >>> X_target = centres[y_target] + rng.normal(size=(120, 20)) + 0.5
    >>> model = BP(n_epochs=5).fit(X, y, X_target)
    >>> sorted(set(model.predict(X_target).tolist()))
    [-1, 0, 1]
    """

    def __init__(
        self,
        weight: float = 1.0,
        *,
        n_hidden: int = 256,
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
        self.n_hidden = n_hidden

    def _check_settings(self) -> None:
        super()._check_settings()
        check_positive("weight", self.weight, zero=True)
        check_count("n_hidden", self.n_hidden)

    def _shapes(self, n_columns: int) -> Shapes:  # noqa: ARG002
        return {
            "domain_1": (self.n_bottleneck, self.n_hidden),
            "domain_2": (self.n_hidden, self.n_hidden),
            "domain_3": (self.n_hidden, 1),
        }

    def _loss(self, network: Network, batch: Batch, ramp: float) -> Tensor:
        hidden = network.bottleneck(batch.rows)
        scores = domain_scores(network, reverse_gradient(hidden, ramp * self.weight))
        labelled = network.classify(hidden[: batch.n_source])
        return cross_entropy(labelled, batch.numbers) + domain_loss(scores, batch.n_source)


def domain_scores(network: Network, hidden: Tensor) -> Tensor:
    """Return a score of each row: higher is more surely of the source."""
    inner = network.linear("domain_1", hidden).relu()
    return network.linear("domain_3", network.linear("domain_2", inner).relu()).squeeze(1)
