"""The rounds: a projection from the labels there are, centres in it, and labels for more rows.

Each round

1. learns the projection that gathers rows of one label (source labels, known labels and unknown
   clusters of the target; rows left open do not count),
2. puts a centre to each known class, between its source and its target rows, and one to each
   unknown cluster, all of norm 1,
3. takes as margin of a target row how much closer it is to the closest unknown centre than to
   the closest known one, leaning towards unknown by the evidence from outside the source,
4. in the second half of the rounds leaves out unknown clusters that are as good as part of a known
   class, and with them what would be called unknown where nothing is (not where the source has
   samples of unknown classes: these hold their clusters together),
5. labels the most decided target rows of each known class, and of the unknown ones together,
   anew; a growing share, in the end all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from froda.factorization.problem import Array
from froda.projection import OPEN, class_scatter, leading_pairs, unit_rows

_RESTARTS = 3
_LEAST_ROWS = 5  # an unknown cluster needs on average
_RADII = 2.5  # that part a cluster from a class whatever the angle
_LEAST_MEMBERS = 2  # from which the target's mean of a class counts


@dataclass(frozen=True)
class Settings:
    """What the rounds may be told."""

    n_rounds: int
    n_directions: int
    n_clusters: int
    alpha: float
    lean: float  # weight of the evidence from outside, in deviations of the margins
    first_share: float = 0.5  # of each group that is labelled to begin with
    target_weight: float = 2.0  # of the target's mean of a class beside that of the source
    apart: float = 0.35  # how far from known centres an unknown one must be, see `keep_apart`


@dataclass(frozen=True)
class Domains:
    """Rows of norm 1 of both domains, source labels, and what is known of the target at first."""

    source: Array
    numbers: Array  # n_known marks source rows of unknown classes
    target: Array
    n_known: int
    nearest: Array  # known class of each target row by a classifier of the source
    suspicion: Array  # how much each target row looks unknown at first
    flagged: Array  # target rows that look unknown enough to begin with
    outside: Array  # evidence that is added to the margins

    @property
    def of_unknown(self) -> Array:
        """Return the mask of source rows of unknown classes."""
        mask: Array = self.numbers == self.n_known
        return mask


@dataclass(frozen=True)
class Centres:
    """A projection and the centres of known classes and unknown clusters in it, of norm 1."""

    projection: Array
    origin: Array
    known: Array
    unknown: Array
    tightness: Array  # mean cosine of the rows of each unknown cluster with its centre
    lean: float = 0.0  # weight of the evidence in the margin

    def project(self, rows: Array) -> Array:
        """Return projected rows of norm 1."""
        return unit_rows(rows @ self.projection - self.origin)

    def closeness(self, rows: Array) -> tuple[Array, Array]:
        """Return the cosine with each known centre, and the largest with an unknown one."""
        projected = self.project(rows)
        to_known = projected @ self.known.T
        if len(self.unknown) == 0:
            return to_known, np.full(len(rows), -np.inf)
        return to_known, (projected @ self.unknown.T).max(axis=1)

    def margins(self, rows: Array, outside: Array) -> tuple[Array, Array]:
        """Return the cosine with each known centre, and the lead of unknown over known."""
        to_known, to_unknown = self.closeness(rows)
        return to_known, to_unknown - to_known.max(axis=1) + self.lean * outside


def keep_apart(centres: Centres, share: float) -> Centres:
    """Leave out the unknown clusters that are as good as part of a known class.

    Known centres are as close to each other as classes are, or at right angles where they are
    further apart. A cluster that is closer to one of them, by a share of what is left to 1, and
    not further from it than some of its own radii, is taken for a part of that class.
    """
    between = centres.known @ centres.known.T - 2 * np.eye(len(centres.known))
    usual = max(float(between.max(axis=1).mean()), 0.0)
    closest = (centres.unknown @ centres.known.T).max(axis=1, initial=-1.0)
    is_close = closest > usual + share * (1 - usual)
    is_near = np.arccos(np.clip(closest, -1, 1)) < _RADII * np.arccos(centres.tightness)
    kept = ~(is_close & is_near)
    return replace(centres, unknown=centres.unknown[kept], tightness=centres.tightness[kept])


def cluster(rows: Array, n_clusters: int, seed: int) -> Array:
    """Return the cluster of each row; the order of the rows does not matter."""
    from sklearn.cluster import KMeans  # noqa: PLC0415 - keeps `import froda` quick

    n_clusters = min(n_clusters, max(1, len(rows) // _LEAST_ROWS))
    order = np.lexsort(rows.T[::-1])
    found = KMeans(n_clusters, n_init=_RESTARTS, random_state=seed).fit(rows[order])
    labels = np.empty(len(rows), dtype=int)
    labels[order] = found.labels_
    return labels


def decided(groups: Array, doubt: Array, share: float) -> Array:
    """Return the mask of the least doubtful rows, the given share of each group."""
    chosen = np.zeros(len(groups), dtype=bool)
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        order = np.argsort(doubt[members], kind="stable")
        chosen[members[order[: int(np.ceil(share * len(members)))]]] = True
    return chosen


def run(domains: Domains, settings: Settings, seed: int) -> tuple[Centres, Array]:
    """Return the centres of the last round and the labels of the target that they stand on."""
    n_known = domains.n_known
    everything = np.concatenate([domains.source, domains.target])
    own, labels = _first_labels(domains, settings, seed)
    for number in range(1, settings.n_rounds + 1):
        centres = _learn(domains, everything, own, labels, settings)
        if number > settings.n_rounds // 2 and not domains.of_unknown.any():
            centres = keep_apart(centres, settings.apart)
        to_known, margins = centres.margins(domains.target, np.zeros(len(labels)))
        if len(centres.unknown):
            lean = settings.lean * float(margins.std())
            centres = replace(centres, lean=lean)
            margins = margins + lean * domains.outside
        closest = to_known.argmax(axis=1)
        unknown = margins > 0
        if unknown.any():
            closest[unknown] = n_known + _nearest_cluster(centres, domains.target[unknown])
        if domains.of_unknown.any() and len(centres.unknown):
            rows = domains.source[domains.of_unknown]
            own[domains.of_unknown] = n_known + _nearest_cluster(centres, rows)
        share = settings.first_share + (1 - settings.first_share) * number / settings.n_rounds
        kept = decided(np.minimum(closest, n_known), -np.abs(margins), share)
        labels = np.where(kept, closest, OPEN)
    return centres, closest


def _nearest_cluster(centres: Centres, rows: Array) -> Array:
    """Return the number of the closest unknown centre."""
    nearest: Array = (centres.project(rows) @ centres.unknown.T).argmax(axis=1)
    return nearest


def _first_labels(domains: Domains, settings: Settings, seed: int) -> tuple[Array, Array]:
    """Return first labels of source and target: classes, clusters from ``n_known`` on, or open."""
    own, labels = domains.numbers.copy(), np.full(len(domains.target), OPEN)
    unknown = np.concatenate([domains.target[domains.flagged], domains.source[domains.of_unknown]])
    if len(unknown):
        clusters = domains.n_known + cluster(unknown, settings.n_clusters, seed)
        n_flagged = int(domains.flagged.sum())
        labels[domains.flagged] = clusters[:n_flagged]
        own[domains.of_unknown] = clusters[n_flagged:]
    known = np.flatnonzero(~domains.flagged)
    kept = known[decided(domains.nearest[known], domains.suspicion[known], settings.first_share)]
    labels[kept] = domains.nearest[kept]
    return own, labels


def _learn(
    domains: Domains, everything: Array, own: Array, labels: Array, settings: Settings
) -> Centres:
    """Learn the projection from all labels, then the centres in it."""
    between, within = class_scatter(everything, np.concatenate([own, labels]), settings.alpha)
    projection = leading_pairs(between, within, settings.n_directions)[1]
    coordinates = everything @ projection
    origin = coordinates.mean(axis=0)
    rows = unit_rows(coordinates - origin)
    near, far = rows[: len(own)], rows[len(own) :]
    known = np.stack(
        [
            _direction(near[own == c], far[labels == c], settings.target_weight)
            for c in range(domains.n_known)
        ]
    )
    numbers = np.concatenate([own, labels])
    clusters = np.unique(numbers[numbers >= domains.n_known])
    unknown = [rows[numbers == number].mean(axis=0) for number in clusters]
    stacked = np.stack(unknown) if unknown else np.zeros((0, rows.shape[1]))
    # The mean of rows of norm 1 is as long as their mean cosine with its direction.
    tightness = np.minimum(np.linalg.norm(stacked, axis=1), 1.0)
    return Centres(projection, origin, unit_rows(known), unit_rows(stacked), tightness)


def _direction(near: Array, far: Array, weight: float) -> Array:
    """Return the direction between the means of a class in the source and in the target."""
    of_source = unit_rows(near.mean(axis=0, keepdims=True))[0]
    if len(far) < _LEAST_MEMBERS:
        return of_source
    direction: Array = of_source + weight * unit_rows(far.mean(axis=0, keepdims=True))[0]
    return direction
