"""From codes to the unknown score and to known/unknown: the only place where that is decided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from froda.factorization.codes import PreparedCodes, block_pulls
from froda.factorization.penalties import group_norms
from froda.factorization.problem import Array
from froda.validation import check_positive

_PAPERS_EPSILON = 0.2


@dataclass(frozen=True)
class Verdict:
    """Per sample: the score (higher = more surely unknown) and the decision."""

    score: Array
    is_unknown: Array


def check_epsilon(value: Any) -> None:
    """Require a number from 0 on, or "auto"."""
    if not isinstance(value, str):
        check_positive("epsilon", value, zero=True)
    elif value != "auto":
        raise ValueError(f"epsilon must be a number of at least 0 or 'auto', got {value!r}.")


def threshold(epsilon: float) -> float:
    """Return the score from which on a sample counts as unknown."""
    return 1 / (1 + epsilon)


def judge(prepared: PreparedCodes, cross: Array, codes: Array, epsilon: float) -> Verdict:
    """Apply the paper's rule |Tv| <= epsilon |Tu| and give every sample a score without ties.

    The score is |Tu| / (|Tv| + |Tu|), which lies in [0, 1] and grows as the paper's ratio
    |Tv|/|Tu| falls. Many samples have a group that is exactly zero; these are ordered by
    how far that group is from entering: a zero shared group adds 1 - 2|r_v|/lam, a zero
    private group subtracts 1 - 2|r_u|/lam, r being what the group would have to fit. Both
    corrections vanish where the group enters. Where both groups are zero the sample counts
    as unknown and has a score of at least 1. Scores lie in [-1, 2].
    """
    shared, private = group_norms(codes, prepared.widths).T
    share = _share(shared, private)
    idle = np.clip(1 - 2 * block_pulls(prepared, cross, codes) / prepared.lam, 0, 1)
    only_shared = (private == 0) & (shared > 0)
    score = share + np.where(shared == 0, idle[:, 0], 0) - np.where(only_shared, idle[:, 1], 0)
    is_unknown = shared <= epsilon * private
    return Verdict(score, is_unknown)


@dataclass(frozen=True)
class Judge:
    """The decision for samples by products with the bases and codes; small enough to be sent."""

    prepared: PreparedCodes
    epsilon: float

    def __call__(self, cross: Array, codes: Array) -> Array:
        """Return which samples are unknown."""
        return judge(self.prepared, cross, codes, self.epsilon).is_unknown


@dataclass(frozen=True)
class PrivateShare:
    """|Tu| / (|Tv| + |Tu|) by codes, 1 where both are zero; called like `Judge`."""

    widths: tuple[int, ...]

    def __call__(self, cross: Array, codes: Array) -> Array:  # noqa: ARG002
        """Return the share of each sample."""
        return _share(*group_norms(codes, self.widths).T)


def _share(shared: Array, private: Array) -> Array:
    both = shared + private
    return np.divide(private, both, out=np.ones_like(both), where=both > 0)


def epsilon_of(shares: Array, *, surest: bool) -> float:
    """Return the epsilon at which the shares of the private code part in two by Otsu's cut.

    The share is 1 / (1 + |Tv|/|Tu|), so that a cut of the one is a cut of the other. With
    ``surest`` the upper part is parted once more: what teaches a classifier must be pure rather
    than complete. Shares that are all the same have no cut; the paper's 0.2 is returned.
    """
    shares = shares.astype(np.float64)
    cut = otsu_cut(shares)
    if not np.isfinite(cut):
        return _PAPERS_EPSILON
    second = otsu_cut(shares[shares > cut]) if surest else np.inf
    return 1 / second - 1 if np.isfinite(second) else 1 / cut - 1


def overrule(scores: Array, verdict: Verdict, epsilon: float) -> Array:
    """Let the flag decide: lift the unknown column (the last) to the top where it is set.

    Elsewhere the unknown column stays below the best other class, or where the
    classifier put it if it knows the class. The distance from the threshold sets the margin.
    """
    scores = scores.copy()
    best = scores[:, :-1].max(axis=1)
    margin = verdict.score - threshold(epsilon)
    tiny = np.finfo(scores.dtype).eps * np.maximum(1, np.abs(best))
    lifted = np.maximum(best, scores[:, -1]) + np.maximum(margin, 2 * tiny)
    scores[verdict.is_unknown, -1] = lifted[verdict.is_unknown]
    return scores


def otsu_cut(values: Array) -> float:
    """Return the cut between the two groups that Otsu's criterion tells apart best.

    The criterion is the variance between the groups below and above the cut. Constant values
    have no cut, and infinity is returned.
    """
    ordered = np.sort(values)
    if len(ordered) < 2 or ordered[0] == ordered[-1]:
        return np.inf
    sums = np.cumsum(ordered)
    below = np.arange(1, len(ordered))
    above = len(ordered) - below
    gap = (sums[-1] - sums[:-1]) / above - sums[:-1] / below
    place = int(np.argmax(below * above * gap**2))
    return float((ordered[place] + ordered[place + 1]) / 2)
