"""What comes through the door: data, labels and settings are checked here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from froda.factorization.problem import Array

_FLOATS = (np.float64, np.float32)


@dataclass(frozen=True)
class Labels:
    """Source labels as column numbers: 0..C-1 for known classes, C for the unknown label."""

    classes: Array  # the known classes in order, then the unknown label
    numbers: Array

    @property
    def n_known(self) -> int:
        """Return the number of known classes."""
        return len(self.classes) - 1

    @property
    def is_unknown(self) -> Array:
        """Return the mask of source rows that carry the unknown label."""
        mask: Array = self.numbers == self.n_known
        return mask


@dataclass(frozen=True)
class Domains:
    """Checked source and target; ``is_closed_set`` where no target was given.

    ``in_chunks`` where both are tables that are read a chunk at a time.
    """

    source: Any
    labels: Labels
    target: Any
    is_closed_set: bool
    in_chunks: bool = False


def check_fit_data(
    estimator: Any, X: Any, y: Any, X_target: Any, *, unknown_label: Any, keep_unknown: bool
) -> Domains:
    """Check all arrays of a fit; leave source rows with the unknown label out unless kept."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None: "
            "give one label for each row of X."
        )
    X, y = validate_data(
        estimator,
        X,
        y,
        accept_sparse="csr",
        dtype=_FLOATS,
        ensure_min_samples=2,
        ensure_min_features=2,
    )
    _are_text(np.asarray(y))  # mixed labels cannot even be sorted
    check_classification_targets(y)
    labels = number_labels(np.asarray(y), unknown_label)
    if labels.is_unknown.any() and not keep_unknown:
        known = ~labels.is_unknown
        X, labels = X[known], Labels(labels.classes, labels.numbers[known])
    if X_target is None:
        return Domains(X, labels, X, True)
    target = check_target(estimator, X_target, "X_target", min_samples=2)
    dtype = np.result_type(X.dtype, target.dtype)
    return Domains(X.astype(dtype, copy=False), labels, target.astype(dtype, copy=False), False)


def check_fit_tables(
    estimator: Any, source: Any, y: Any, target: Any, *, unknown_label: Any, keep_unknown: bool
) -> Domains:
    """Check a fit whose rows come in chunks; values are checked as they are read.

    ``source`` and ``target`` are tables, the target None where the source stands for it.
    """
    name = type(estimator).__name__
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None.")
    y = column_or_1d(np.asarray(y))
    _are_text(y)
    check_classification_targets(y)
    if source.n_rows is not None and source.n_rows != len(y):
        raise ValueError(f"X has {source.n_rows} rows and y {len(y)} labels.")
    if source.n_features < 2:
        raise ValueError(f"X has {source.n_features} feature(s) while a minimum of 2 is required.")
    if target is not None and target.n_features != source.n_features:
        raise ValueError(
            f"X_target has {target.n_features} features, but {name} is expecting "
            f"{source.n_features} features as input: source and target must be described by the "
            "same columns in the same order."
        )
    for table in (source, target):
        if table is not None and table.n_rows is not None and table.n_rows < 2:
            raise ValueError(
                f"Found array with {table.n_rows} sample(s) while a minimum of 2 is required: "
                f"{table.name}."
            )
    estimator.n_features_in_ = source.n_features
    if hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    labels = number_labels(y, unknown_label)
    if labels.is_unknown.any() and not keep_unknown:
        known = ~labels.is_unknown
        source, labels = source.select(known), Labels(labels.classes, labels.numbers[known])
    if target is None:
        return Domains(source, labels, source, True, True)
    source.dtype = target.dtype = np.result_type(source.dtype, target.dtype)
    return Domains(source, labels, target, False, True)


def check_target(estimator: Any, X: Any, name: str, min_samples: int = 1) -> Any:
    """Check rows of the target domain against what ``fit`` has seen of the source."""
    shape = getattr(X, "shape", None)
    expected = estimator.n_features_in_
    if shape is not None and len(shape) == 2 and shape[1] != expected:
        raise ValueError(
            f"{name} has {shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{expected} features as input: source and target must be described by the same "
            "columns in the same order."
        )
    if shape is not None and len(shape) == 2 and shape[0] < min_samples:
        raise ValueError(
            f"Found array with {shape[0]} sample(s) (shape={tuple(shape)}) while a minimum of "
            f"{min_samples} is required: {name} holds the unlabelled target samples."
        )
    try:
        return validate_data(
            estimator,
            X,
            reset=False,
            accept_sparse="csr",
            dtype=_FLOATS,
            ensure_min_samples=min_samples,
        )
    except ValueError as error:
        if name == "X":
            raise
        text = str(error).replace("Input X ", "the array ")
        raise ValueError(f"{name}: {text}") from error


def number_labels(y: Array, unknown_label: Any) -> Labels:
    """Turn labels into column numbers, the unknown label last."""
    unknown = _resolve_unknown_label(y, unknown_label)
    known = np.unique(y[y != unknown])
    if len(known) < 2:
        seen = ", ".join(repr(label) for label in known.tolist()) or "none"
        hint = (
            f" Rows labelled {unknown!r} count as source samples of unknown classes; if "
            f"{unknown!r} is a real class of yours, choose another unknown_label."
            if np.any(y == unknown)
            else ""
        )
        raise ValueError(
            f"y must hold at least two known classes, got {len(known)} class ({seen}).{hint}"
        )
    if unknown_label is None and unknown == -1 and np.any(known < 0):
        raise ValueError(
            "-1 would mean 'unknown', but y has other negative labels "
            f"({known[known < 0].tolist()}), so -1 may be a real class: set unknown_label to a "
            "value that is not a class."
        )
    classes = np.append(known, np.asarray([unknown], dtype=_common_dtype(known, unknown)))
    numbers = np.searchsorted(known, y)
    numbers[y == unknown] = len(known)
    return Labels(classes, numbers)


def _common_dtype(known: Array, unknown: Any) -> np.dtype[Any]:
    """Return a dtype that holds the known labels and the unknown one."""
    if known.dtype.kind == "O":
        return np.dtype(object)
    if known.dtype.kind == "u":
        return np.dtype(np.int64)
    return np.result_type(known.dtype, np.asarray(unknown).dtype)


def _resolve_unknown_label(y: Array, unknown_label: Any) -> Any:
    """Return the unknown label: the given one, else -1 or "unknown" by the type of y."""
    if y.dtype.kind == "b":
        raise ValueError(
            "y is boolean, which leaves no value for 'unknown': use 0 and 1, or strings."
        )
    is_text = _are_text(y)
    if unknown_label is None:
        return "unknown" if is_text else -1
    is_scalar = isinstance(unknown_label, str if is_text else Real)
    if not is_scalar or isinstance(unknown_label, bool):
        raise ValueError(
            f"unknown_label={unknown_label!r} does not go with labels such as "
            f"{y[:1].tolist()[0]!r}: choose a {'string' if is_text else 'number'} that is not a "
            "class."
        )
    if not is_text and np.isnan(unknown_label):
        raise ValueError("unknown_label is NaN: choose a number that can be compared.")
    return unknown_label


def _are_text(y: Array) -> bool:
    """Say whether labels are strings rather than numbers; refuse what is neither or both."""
    if y.dtype.kind != "O":
        return y.dtype.kind in "US"
    kinds = {isinstance(label, str) for label in y}
    strange = [label for label in y if not isinstance(label, str | Real)]
    if strange or len(kinds) > 1:
        seen = strange[0] if strange else next(label for label in y if not isinstance(label, str))
        raise ValueError(
            f"y mixes strings with other labels or holds neither strings nor numbers, such as "
            f"{seen!r}: give all classes as strings or all as numbers."
        )
    return kinds == {True}


def check_positive(name: str, value: Any, *, zero: bool = False) -> None:
    """Require a finite number above 0 (or from 0 on)."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not np.isfinite(value) or value < 0 or (value == 0 and not zero):
        bound = "at least 0" if zero else "above 0"
        raise ValueError(f"{name} must be a finite number {bound}, got {value!r}.")


def check_count(name: str, value: Any, least: int = 1) -> None:
    """Require a whole number of at least ``least``."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}.")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Require one of the given words."""
    if value not in choices:
        allowed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {allowed}, got {value!r}.")


def check_flag(name: str, value: Any) -> None:
    """Require True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {value!r}.")


def check_seed(name: str, value: Any) -> None:
    """Require what NumPy takes for a seed, or a generator of its older kind."""
    try:
        check_random_state(value)
    except ValueError as error:
        raise ValueError(
            f"{name} must be None, a whole number or a RandomState, got {value!r}."
        ) from error


def check_share(name: str, value: Any) -> None:
    """Require None or a share in (0, 1]."""
    if value is None:
        return
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not 0 < float(value) <= 1:
        raise ValueError(f"{name} must be None or a number in (0, 1], got {value!r}.")
