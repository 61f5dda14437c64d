"""Principal subspaces of source and target, and how many dimensions to give them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from froda.dimension import subspace_disagreement
from froda.factorization.problem import Array
from froda.pca import Principal, principal_axes
from froda.rows import Rows
from froda.validation import check_count


@dataclass(frozen=True)
class Subspaces:
    """The d leading principal axes of each domain, each around its own mean."""

    source: Principal
    target: Principal
    disagreement: Array  # for d = 1, 2, ... as far as it was needed

    @property
    def n_components(self) -> int:
        """Return the dimension d of both."""
        return self.source.axes.shape[1]


def check_n_components(value: Any) -> None:
    """Require a whole number above 0, or "sdm"."""
    if isinstance(value, str):
        if value != "sdm":
            raise ValueError(f"n_components must be a whole number or 'sdm', got {value!r}.")
        return
    check_count("n_components", value)


def fit_subspaces(source: Array, target: Array, n_components: Any) -> Subspaces:
    """Return the principal subspaces of both domains, of a given dimension or by "sdm"."""
    both = [principal_axes([Rows(rows)])[0] for rows in (source, target)]
    limit = min(principal.axes.shape[1] for principal in both)
    if limit == 0:
        raise ValueError("the known source rows are all the same after preprocessing.")
    disagreement = np.empty(0)
    if n_components == "sdm":
        # The measure reads axes in the coordinates of the joint PCA, which are not those of
        # the features where the preparation left it out.
        joint = principal_axes([Rows(source), Rows(target)])[0].axes
        most = max(min(limit, joint.shape[1] // 2), 1)
        rotated = [joint.T @ principal.axes for principal in both]
        d, disagreement = subspace_disagreement(rotated[0], rotated[1], most)
    else:
        d = int(n_components)
        check_room(d, limit, f"{len(source)} source and {len(target)} target samples", source)
    return Subspaces(leading(both[0], d), leading(both[1], d), disagreement)


def check_room(d: int, limit: int, samples: str, features: Array) -> None:
    """Refuse more dimensions than the prepared samples span."""
    if d > limit:
        raise ValueError(
            f"n_components={d} is larger than possible: {samples} in {features.shape[1]} "
            f"dimensions (after preprocessing) allow at most {limit}."
        )


def leading(principal: Principal, d: int) -> Principal:
    """Return the first d axes."""
    axes = np.ascontiguousarray(principal.axes[:, :d])
    return Principal(principal.mean, axes, principal.square_sums[:d])
