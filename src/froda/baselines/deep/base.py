"""What the networks share: settings, threshold, judging. PyTorch comes in when one is fitted."""

from __future__ import annotations

import inspect
import sys
import time
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from textwrap import dedent, indent
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.utils import check_random_state

from froda.baselines.deep.network import (
    Layers,
    Shapes,
    class_scores,
    start_layers,
    unknown_log_odds,
)
from froda.door import (
    Baseline,
    canonical_order,
    document_shared,
    held_out_threshold,
    number_of_folds,
    reject,
)
from froda.extras import require
from froda.factorization.problem import Array
from froda.validation import check_count, check_positive, check_seed

if TYPE_CHECKING:
    from torch import Tensor

    from froda.baselines.deep.training import Batch, Network

_LINES = 10  # that `verbose` writes for each training

_SETTINGS = """
    n_bottleneck : int, default=256
        Units of the bottleneck.
    n_epochs : int, default=50
        Passes over the larger domain, of at least 10 steps each; the network of the last
        one is taken.
    batch_size : int, default=64
        Samples of each domain in a step.
    learning_rate : float, default=0.01
        Rate at the start; at the end it is 6 times smaller.
    device : str, default="auto"
        Where PyTorch computes; "auto" takes a GPU (CUDA) if there is one.
    callback : callable, default=None
        Called with a `froda.baselines.deep.base.Epoch` after each epoch.
    random_state : int or RandomState, default=0
        Seed of the first weights and of the batches.
    verbose : int, default=0
        Write some lines on each training to stderr when positive.
    """
_ATTRIBUTES = """
    layers_ : dict
        Weights and bias of each layer of the trained network, as arrays.
    losses_ : array of shape (n_epochs,)
        Mean loss in each epoch.
    device_ : str
        Where the network was trained.
    """

T = TypeVar("T", bound=type)


def document_deep(cls: T) -> T:
    """Fill {training_settings} and {training_attributes}, and what all baselines share."""
    filled = dedent(inspect.cleandoc(cls.__doc__ or ""))
    filled = filled.replace("{training_settings}", dedent(_SETTINGS).strip())
    filled = filled.replace("{training_attributes}", dedent(_ATTRIBUTES).strip())
    cls.__doc__ = "\n" + indent(filled, "    ") + "\n    "
    return document_shared(cls)


@dataclass(frozen=True)
class Epoch:
    """How far a fit has come, as handed to callbacks.

    Parameters
    ----------
    iteration : int
        Number of the epoch over all trainings of the fit, from 1.
    n_iterations : int
        How many epochs there will be in all trainings.
    training : int
        Number of the training, from 1; those before the last one set the threshold.
    n_trainings : int
        How many trainings there will be.
    loss : float
        Mean loss in the epoch.
    seconds : float
        Seconds since the fit began.
    """

    iteration: int
    n_iterations: int
    training: int
    n_trainings: int
    loss: float
    seconds: float


class DeepBaseline(Baseline):
    """A bottleneck and a classifier, trained on the given features of both domains.

    A method fills `_loss`, and `_shapes` where it has layers of its own. Features are divided
    by the root mean square of their entries in both domains, so that their scale does not
    matter, and rows are put into an order of their own, so that theirs does not either.
    """

    _has_unknown_class = False  # also without source samples of unknown classes

    def __init__(
        self,
        *,
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
            row_sum=row_sum,
            zscore=zscore,
            unit_norm=unit_norm,
            pca_variance=pca_variance,
            rejection=rejection,
            unknown_label=unknown_label,
        )
        self.n_bottleneck = n_bottleneck
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.device = device
        self.callback = callback
        self.random_state = random_state
        self.verbose = verbose

    @abstractmethod
    def _loss(self, network: Network, batch: Batch, ramp: float) -> Tensor:
        """Return what a step makes smaller; ``ramp`` grows from 0 to 1 over the training."""

    def _shapes(self, n_columns: int) -> Shapes:  # noqa: ARG002 - for layers of a method's own
        """Return inputs and outputs of the layers beside bottleneck and classifier."""
        return {}

    def _start_epoch(self, network: Network, source: Tensor, target: Tensor) -> None:
        """Do what is done once an epoch."""

    def _check_settings(self) -> None:
        super()._check_settings()
        for name in ("n_bottleneck", "n_epochs", "batch_size"):
            check_count(name, getattr(self, name))
        check_positive("learning_rate", self.learning_rate)
        if self.callback is not None and not callable(self.callback):
            raise ValueError(f"callback must be callable, got {self.callback!r}.")
        check_seed("random_state", self.random_state)
        if not isinstance(self.verbose, bool):
            check_count("verbose", self.verbose, least=0)
        if not isinstance(self.device, str):
            raise ValueError(f"device must be 'auto' or a device of PyTorch, got {self.device!r}.")
        require_torch(type(self).__name__)
        from froda.baselines.deep.training import choose_device  # noqa: PLC0415 - PyTorch

        self.device_ = choose_device(self.device)

    def _fit(self, source: Array, numbers: Array, target: Array) -> None:
        sums = [np.einsum("ij,ij->", rows, rows, dtype=np.float64) for rows in (source, target)]
        self._scale = float(np.sqrt(sum(sums) / (source.size + target.size)))
        self._seed = check_random_state(self.random_state).randint(2**31)
        self._knows_unknown = self._has_unknown_class or bool(np.any(numbers == self.n_known_))
        order = canonical_order(source)
        source, numbers = source[order] / self._scale, numbers[order]
        target = target[canonical_order(target)] / self._scale
        n_before = 0 if self._knows_unknown else number_of_folds(numbers)
        progress = _Progress(self, 1 + (n_before if n_before > 1 else 0))

        def doubt(fitted: Array, fitted_numbers: Array, held_out: Array) -> Array:
            layers = self._train(fitted, fitted_numbers, target, progress)
            return unknown_log_odds(class_scores(layers, held_out), knows_unknown=False)

        self.threshold_ = np.inf
        if not self._knows_unknown:
            self.threshold_ = held_out_threshold(source, numbers, self.rejection, doubt)
        self.layers_ = self._train(source, numbers, target, progress)
        self.losses_ = np.array(progress.losses)

    def _train(self, source: Array, numbers: Array, target: Array, progress: _Progress) -> Layers:
        """Train a network from the start."""
        from froda.baselines.deep.training import Data, Plan, train  # noqa: PLC0415 - PyTorch

        rng = np.random.default_rng(self._seed)
        n_columns = self.n_known_ + int(self._knows_unknown)
        shapes = {
            "bottleneck": (source.shape[1], self.n_bottleneck),
            "classifier": (self.n_bottleneck, n_columns),
            **self._shapes(n_columns),
        }
        order, other = rng.permutation(len(source)), rng.permutation(len(target))
        progress.start()
        return train(
            Data(source[order], numbers[order], target[other]),
            start_layers(shapes, rng),
            Plan(self.n_epochs, self.batch_size, float(self.learning_rate), self.device_),
            rng,
            loss=self._loss,
            start_epoch=self._start_epoch,
            report=progress.report,
        )

    def _judge(self, features: Array) -> tuple[Array, Array]:
        scores = class_scores(self.layers_, features / self._scale)
        doubt = unknown_log_odds(scores, knows_unknown=self._knows_unknown)
        if not self._knows_unknown:
            scores = np.column_stack([scores, scores.min(axis=1) - 1])
        scores, doubt = (found.astype(features.dtype, copy=False) for found in (scores, doubt))
        return reject(scores, doubt, self.threshold_), doubt


def require_torch(method: str) -> None:
    """Ask for PyTorch."""
    require("torch", "deep", f"networks such as {method}")


class _Progress:
    """Counts the epochs of a fit and tells callback and stderr of them."""

    def __init__(self, model: DeepBaseline, n_trainings: int) -> None:
        self._model = model
        self._n_trainings = n_trainings
        self._training = 0
        self._began = time.perf_counter()
        self.losses: list[float] = []

    def start(self) -> None:
        """Begin a training."""
        self._training += 1
        self.losses = []

    def report(self, epoch: int, loss: float) -> None:
        """Pass one epoch on; refuse a loss that is no number."""
        model, name = self._model, type(self._model).__name__
        if not np.isfinite(loss):
            raise ValueError(
                f"the loss of {name} is not finite after epoch {epoch}: lower learning_rate "
                f"({model.learning_rate:g}) or the weights of the losses."
            )
        self.losses.append(loss)
        done = (self._training - 1) * model.n_epochs + epoch
        seconds = time.perf_counter() - self._began
        if model.verbose and (epoch % -(-model.n_epochs // _LINES) == 0 or epoch == model.n_epochs):
            sys.stderr.write(
                f"{name}: training {self._training} of {self._n_trainings}, epoch {epoch} of "
                f"{model.n_epochs}  loss {loss:.4g}  {seconds:.1f} s\n"
            )
        if model.callback is not None:
            total = self._n_trainings * model.n_epochs
            model.callback(Epoch(done, total, self._training, self._n_trainings, loss, seconds))
