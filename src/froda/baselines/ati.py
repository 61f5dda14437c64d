"""ATI: assign target samples to source classes or to unknown, map the source, and again."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from scipy.linalg import solve
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning

from froda.baselines.assignment import Assignment, assign, nearest_neighbours
from froda.door import SVMBaseline
from froda.factorization.problem import Array
from froda.validation import check_choice, check_count, check_positive

_N_NEIGHBOURS = {"plain": 0, "lambda": 0, "lambda-N1": 1, "lambda-N2": 2}
VARIANTS = tuple(_N_NEIGHBOURS)

# Mean square of the class means, in those of the target rows, below which they are rounding.
_NO_MEANS = float(np.sqrt(np.finfo(np.float64).eps))

SETTLED = "no assignment changed"
SMALL_CHANGE = "the objective changed by less than tol"
MAX_ITER = "max_iter rounds were made"


class ATI(SVMBaseline):
    """Assign-and-transform-iteratively: match target samples to source classes, map the source.

    Each round solves an assignment problem and a least-squares problem. With the source class
    means ``s_c``, the target samples ``t`` and ``d_ct = |s_c - t|²``, it first minimises

    ``Σ_t (Σ_c d_ct x_ct + lam o_t) + Σ_tt' Σ_cc' |s_c - s_c'|² x_ct x_c't'``

    (``tt'`` runs over each sample and its nearest neighbours in the target) over binary ``x``
    and ``o`` under ``Σ_c x_ct + o_t = 1`` for every sample and
    ``Σ_t x_ct >= 1`` for every class: a sample with ``o_t = 1`` is called unknown, at the cost
    ``lam = (max d_ct + min d_ct) / 2``. Then the linear map ``A`` (rows times A) minimises
    ``Σ_assigned |s_c A - t|²``, the mapped source takes the place of the source, and the next
    round starts. A linear one-vs-one SVM on the mapped source labels the target.

    Parameters
    ----------
    variant : {"plain", "lambda", "lambda-N1", "lambda-N2"}, default="lambda"
        "plain" assigns every sample to a class; "lambda" may call samples unknown; "lambda-N1"
        and "lambda-N2" add the terms of the nearest one or two target neighbours of each
        sample, which the other two leave out.
    max_iter : int, default=6
        Largest number of rounds.
    tol : float, default=0.01
        Stop when a round changes the objective of the assignment by less than this share.
    ridge : float, default=1e-3
        Weight of ``|A - I|²`` in the fit of the map, relative to the mean square of the class
        means times the number of samples assigned. There are fewer means than columns, so
        least squares alone leaves A open; this takes the map that moves least.
    time_limit : float, default=120.0
        Seconds that the mixed-integer programs of "lambda-N1" and "lambda-N2" may take
        together in one fit. When they are over the best assignment found so far is taken,
        with a warning.
    row_sum : bool, default=True
        Divide each row by its sum of absolute values.
    zscore : bool, default=True
        Standardise each column within its domain; constant columns become zero.
    unit_norm : bool, default=False
        Then divide each row by its norm.
    pca_variance : float, default=0.99
        Share of the variance that the joint PCA of source and target keeps; None leaves the
        PCA out (and makes sparse input dense).
    rejection : float, default=0.05
        Share of held-out source samples that the threshold rejects when the source has no
        samples of unknown classes.
    unknown_label : object, default=None
        Label that means unknown, in ``y`` and in predictions; None takes -1 for numbers and
        "unknown" for strings.

    Attributes
    ----------
    classes_ : array of shape (n_classes + 1,)
        The known classes in order, then the unknown label.
    n_known_ : int
        Number of known classes.
    assignment_ : array of shape (n_target,)
        Entry of ``classes_`` that the last assignment gave to each target sample.
    transform_ : array of shape (n_kept, n_kept)
        The map of all rounds together: mapped source rows are source rows times this, in the
        coordinates of the joint PCA.
    lam_ : float
        Cost of calling a sample unknown in the last round; infinite for "plain".
    objective_ : list of float
        Value of the assignment in each round.
    n_iter_ : int
        Number of rounds.
    stop_reason_ : str
        Why the rounds ended.
    time_limit_reached_ : bool
        Whether an assignment is only the best one found within ``time_limit``.
    classifier_ : SVC
        The fitted SVM.
    threshold_ : float
        Unknown score above which a sample is rejected; infinite with source unknowns.
    n_features_in_ : int
        Number of columns of the source.
    feature_names_in_ : array of str
        Column names, when the source had them.

    See Also
    --------
    froda.baselines.OSVM : The same without a map.

    Notes
    -----
    What the paper leaves open is read as follows. Source samples of unknown classes are one
    class more, with a mean of its own to which target samples may be assigned, besides ``o``.
    Without them samples with ``o_t = 1`` only stay out of the fit of the map, and the SVM
    rejects by the threshold of the source scores, for new samples as for those of the fit.
    The map of a round applies to the source as mapped by the rounds before. ``lam`` is taken
    anew in each round, from all classes. The SVM has the penalty of all baselines, 1 over the
    mean square norm of its input, which on z-scored features lies near the paper's 0.001.

    Without neighbours the integer program is solved exactly by choosing one sample for every
    class by an assignment problem (Σ of what each loses against its cheapest column) and
    leaving all other samples to their cheapest column. With neighbours, lower bounds from the
    dual problem (messages between neighbours) say which columns can be part of a solution, and
    a mixed-integer program chooses among these. Its products ``x_ct x_c't'`` are linearised by
    their margins, which has the same solutions as the paper's bound on their sum and a tighter
    relaxation.

    References
    ----------
    .. [1] P. Panareda Busto, J. Gall, "Open Set Domain Adaptation", ICCV 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from froda.baselines import ATI
    >>> rng = np.random.default_rng(0)
    >>> centres = 4 * rng.normal(size=(3, 20))  # the third class is in the target alone
    >>> y = np.repeat([0, 1], 40)
    >>> X = centres[y] + rng.normal(size=(80, 20))
    >>> y_target = np.repeat([0, 1, 2], 40)
    >>> X_target = centres[y_target] + rng.normal(size=(120, 20)) + 0.5
    >>> model = ATI().fit(X, y, X_target)
    >>> sorted(set(model.predict(X_target).tolist()))
    [-1, 0, 1]
    """

    def __init__(
        self,
        variant: str = "lambda",
        *,
        max_iter: int = 6,
        tol: float = 0.01,
        ridge: float = 1e-3,
        time_limit: float = 120.0,
        row_sum: bool = True,
        zscore: bool = True,
        unit_norm: bool = False,
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
        self.variant = variant
        self.max_iter = max_iter
        self.tol = tol
        self.ridge = ridge
        self.time_limit = time_limit

    def _check_settings(self) -> None:
        super()._check_settings()
        check_choice("variant", self.variant, VARIANTS)
        check_count("max_iter", self.max_iter)
        check_positive("tol", self.tol, zero=True)
        check_positive("ridge", self.ridge)
        check_positive("time_limit", self.time_limit)

    def _align(self, source: Array, numbers: Array, target: Array) -> Array:
        goal = target.astype(np.float64, copy=False)
        means = class_means(source, numbers)
        if len(goal) < len(means):
            raise ValueError(
                f"X_target has {len(goal)} rows, but ATI assigns at least one to each of the "
                f"{len(means)} classes of the source: give more target samples."
            )
        neighbours = nearest_neighbours(goal, _N_NEIGHBOURS[self.variant])
        transform = np.eye(source.shape[1])
        deadline = time.monotonic() + self.time_limit
        previous: Assignment | None = None
        self.objective_: list[float] = []
        self.time_limit_reached_ = False
        self.stop_reason_ = MAX_ITER
        for _ in range(self.max_iter):
            mapped = means @ transform
            costs = cdist(goal, mapped, "sqeuclidean")
            self.lam_ = np.inf
            if self.variant != "plain":
                self.lam_ = float(costs.max() + costs.min()) / 2
                costs = np.column_stack([costs, np.full(len(costs), self.lam_)])
            pairs = cdist(mapped, mapped, "sqeuclidean")
            found = assign(costs, len(means), pairs, neighbours, deadline - time.monotonic())
            self.objective_.append(found.value)
            self.time_limit_reached_ |= not found.is_optimal
            if previous is not None and np.array_equal(found.columns, previous.columns):
                self.stop_reason_ = SETTLED
                break
            left, right = map_means(mapped, found.columns, goal, self.ridge)
            transform += (transform @ left) @ right
            if previous is not None and (
                abs(previous.value - found.value) < self.tol * abs(previous.value)
            ):
                self.stop_reason_ = SMALL_CHANGE
                break
            previous = found
        self.n_iter_ = len(self.objective_)
        self.assignment_ = self.classes_[np.minimum(found.columns, self.n_known_)]
        self.transform_ = transform.astype(source.dtype, copy=False)
        if self.time_limit_reached_:
            warnings.warn(
                f"ATI reached its time_limit of {self.time_limit:g} s: an assignment is the "
                "best one found, not a proven optimum. Raise time_limit, or use "
                "variant='lambda', which needs no mixed-integer program.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return source @ self.transform_


def class_means(features: Array, numbers: Array) -> Array:
    """Return the mean of each class that occurs, in the order of the numbers."""
    found = [features[numbers == c].mean(axis=0, dtype=np.float64) for c in np.unique(numbers)]
    return np.stack(found)


def _square(rows: Array) -> float:
    """Return the mean square norm of rows."""
    return float(np.einsum("ij,ij->", rows, rows)) / len(rows)


def map_means(means: Array, columns: Array, target: Array, ridge: float) -> tuple[Array, Array]:
    """Return the D × K and K × D factors of A - I for the map A of the means.

    A minimises Σ_c n_c |s_c A - t̄_c|² + ρ |A - I|², which differs by a constant from the sum
    over the n_c samples assigned to each class. With S the means and Δ = t̄ - s, both
    with rows times √n_c, A - I = Sᵀ (S Sᵀ + ρ I)⁻¹ Δ. ρ is relative to the means, but where
    these are nothing but rounding (classes that do not differ) to the target.
    """
    n_classes = len(means)
    counts = np.bincount(columns, minlength=n_classes)[:n_classes]
    goals = np.stack([target[columns == c].mean(axis=0) for c in range(n_classes)])
    roots = np.sqrt(counts)[:, None]
    gram = (roots * means) @ (roots * means).T
    weight = ridge * max(np.trace(gram) / n_classes, _NO_MEANS * counts.sum() * _square(target))
    right = solve(gram + weight * np.eye(n_classes), roots * (goals - means), assume_a="pos")
    return (roots * means).T, right
