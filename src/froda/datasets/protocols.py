"""Named splits of classes into known and unknown, and the tasks made with them.

Several different splits go by "Office-31 open-set" in the literature, so a split has a name
and one line of text (``str(split)``) that is printed beside every score. A task selects its
classes before anyone computes a statistic: rows of removed classes are in none of its arrays.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from froda.datasets.record import Domain, OpenSetTask
from froda.factorization.problem import Array

UNKNOWN = -1
WITHOUT = "-without-source-unknown"
Names = tuple[str, ...]

SHARED_WITH_CALTECH: Names = (
    "back_pack",
    "bike",
    "calculator",
    "headphones",
    "keyboard",
    "laptop_computer",
    "monitor",
    "mouse",
    "mug",
    "projector",
)


@dataclass(frozen=True)
class Draw:
    """How many samples of each class are drawn, with a seed.

    Parameters
    ----------
    source : int
        Samples of each source class; a class with fewer gives all it has.
    target : int
        The same for target classes.
    exceptions : tuple of (str, int), default=()
        Target domains that give another number.
    """

    source: int
    target: int
    exceptions: tuple[tuple[str, int], ...] = ()

    def from_target(self, domain: str) -> int:
        """Return the number for this target domain.

        Parameters
        ----------
        domain : str
            Name of the target domain.

        Returns
        -------
        n_samples : int
            How many of each class.
        """
        return dict(self.exceptions).get(domain, self.target)


@dataclass(frozen=True)
class Split:
    """Which classes are known, unknown in the source, unknown in the target, or left out.

    Parameters
    ----------
    name : str
        As printed in tables.
    known : tuple of str
        Classes of source and target that are to be told apart.
    source_unknown : tuple of str
        Classes whose source samples are labelled unknown.
    target_unknown : tuple of str
        Classes whose target samples should be found unknown.
    left_out : tuple of str, default=()
        Classes of the data set that the split does without. A class that occurs in a domain
        and in no list is an error.
    draw : Draw, default=None
        How many samples of each class. None takes all.
    note : str, default=""
        Closes the text.
    """

    name: str
    known: Names
    source_unknown: Names
    target_unknown: Names
    left_out: Names = ()
    draw: Draw | None = None
    note: str = ""

    def __post_init__(self) -> None:
        parts = {
            "known": self.known,
            "source_unknown": self.source_unknown,
            "target_unknown": self.target_unknown,
            "left_out": self.left_out,
        }
        for part, names in parts.items():
            if len(set(names)) != len(names):
                raise ValueError(f"split {self.name!r}: {part} has a class twice.")
        for first, second in (
            ("known", "source_unknown"),
            ("known", "target_unknown"),
            ("known", "left_out"),
            ("source_unknown", "left_out"),
            ("target_unknown", "left_out"),
        ):
            both = sorted(set(parts[first]) & set(parts[second]))
            if both:
                raise ValueError(
                    f"split {self.name!r}: {', '.join(both)} both in {first} and in {second}."
                )
        if len(self.known) < 2:
            raise ValueError(f"split {self.name!r} must have at least two known classes.")

    def __str__(self) -> str:
        text = (
            f"split {self.name}: known {_brief(self.known)}; source unknown "
            f"{_brief(self.source_unknown)}; target unknown {_brief(self.target_unknown)}"
        )
        if self.left_out:
            text += f"; left out {_brief(self.left_out)}"
        if self.draw is not None:
            others = "".join(f", {n} from {domain}" for domain, n in self.draw.exceptions)
            text += f"; {self.draw.source} source and {self.draw.target} target a class{others}"
        return text + (f"; {self.note}" if self.note else "")


def named_split(name: str, class_names: Names, seed: int = 0) -> Split:
    """Return a split by name for the classes of a data set.

    Parameters
    ----------
    name : str
        One of ``busto``, ``bcis``, ``alphabetical-10-11``, ``alphabetical-20-11``, ``half``,
        ``second-half``, ``A-B-C`` (4-3-3, say), ``first-K`` (first-20, say),
        ``random-K-known``, ``random-K-known-M-source`` or ``random-K-known-M-unknown``. Those
        with unknown classes in the source are there without them too: the name followed by
        ``-without-source-unknown``.
    class_names : tuple of str
        All classes of the data set in order.
    seed : int, default=0
        For the splits that draw classes.

    Returns
    -------
    split : Split
        Made of these class names.

    Examples
    --------
    >>> from froda.datasets.protocols import named_split
    >>> print(named_split("first-2", ("cup", "jug", "pot", "pan")))
    split first-2: known 2 (cup, jug); source unknown 0; target unknown 2 (pot, pan)
    """
    for rule in SPLITS:
        match = re.fullmatch(rule.pattern, name.removesuffix(WITHOUT))
        if match:
            split = rule.make(name, tuple(class_names), tuple(map(int, match.groups())), seed)
            return _without_source_unknown(split) if name.endswith(WITHOUT) else split
    raise ValueError(
        f"there is no split {name!r}; there are: {', '.join(r.shown for r in SPLITS)}; and those "
        f"with unknown classes in the source also with {WITHOUT} after the name."
    )


def _without_source_unknown(split: Split) -> Split:
    """Return the split whose source keeps to the known classes, all else being the same."""
    if not split.source_unknown:
        raise ValueError(
            f"split {split.name!r} has no unknown classes in the source to go without: leave out "
            f"{WITHOUT}."
        )
    gone = tuple(name for name in split.source_unknown if name not in split.target_unknown)
    return replace(split, source_unknown=(), left_out=split.left_out + gone)


def make_task(source: Domain, target: Domain, split: Split | str, seed: int = 0) -> OpenSetTask:
    """Select the classes of a split, label the unknown ones and keep the answers apart.

    Nothing is computed from features here, and rows of classes that the split removes are
    gone from every array, so no statistic can see them. Target rows are put into an order
    drawn with the seed: an order by class would tell a method the labels.

    Parameters
    ----------
    source, target : Domain
        Two domains with the same features; their classes are matched by name.
    split : Split or str
        A split or the name of one.
    seed : int, default=0
        For drawn samples, drawn classes and the order of the target rows.

    Returns
    -------
    task : OpenSetTask
        Label k is ``split.known[k]``, the unknown label is -1.
    """
    if isinstance(split, str):
        split = named_split(split, all_classes(source, target), seed)
    if source.X.shape[1] != target.X.shape[1]:
        raise ValueError(
            f"domain {source.name!r} has {source.X.shape[1]} features and domain "
            f"{target.name!r} {target.X.shape[1]}: take the same features of both."
        )
    names = tuple(dict.fromkeys(split.known + split.source_unknown + split.target_unknown))
    source_fine = _number(source, split, split.known + split.source_unknown, names, "source")
    target_fine = _number(target, split, split.known + split.target_unknown, names, "target")
    source_count, target_count = (
        (split.draw.source, split.draw.from_target(target.name)) if split.draw else (None, None)
    )
    rows = _draw(source_fine, source_count, np.random.default_rng([seed, 0]))
    target_rows = _draw(target_fine, target_count, np.random.default_rng([seed, 1]))
    target_rows = np.random.default_rng([seed, 2]).permutation(target_rows)
    y, fine = source_fine[rows], target_fine[target_rows]
    n_known = len(split.known)
    short = _short(y, source_count, names, "source") + _short(fine, target_count, names, "target")
    return OpenSetTask(
        X=source.X[rows],
        y=np.where(y < n_known, y, UNKNOWN),
        X_target=target.X[target_rows],
        y_target=np.where(fine < n_known, fine, UNKNOWN),
        unknown_label=UNKNOWN,
        description=f"{source.name} to {target.name}; {split}; seed {seed}{short}",
        y_target_fine=fine,
        class_names=names,
        target_rows=target_rows,
    )


def all_classes(source: Domain, target: Domain) -> Names:
    """Return the classes of both domains, those of the source first.

    Parameters
    ----------
    source, target : Domain
        Two domains.

    Returns
    -------
    class_names : tuple of str
        Each name once.
    """
    return tuple(dict.fromkeys(source.class_names + target.class_names))


def _number(domain: Domain, split: Split, wanted: Names, names: Names, role: str) -> Array:
    """Return for each row the place of its class in ``names``, -1 where the class is removed."""
    counts = np.bincount(domain.y, minlength=domain.n_classes)
    present = {name for name, count in zip(domain.class_names, counts, strict=True) if count}
    for name in wanted:
        if name not in present:
            raise ValueError(
                f"class {name!r} of split {split.name!r} "
                f"({'known' if name in split.known else role + ' unknown'}) is absent from the "
                f"{role} domain {domain.name!r}, which has {_brief(_kept(domain, present))}. "
                f"{_origin(domain)}Complete it, or choose a split without this class."
            )
    allowed = {*names, *split.left_out}
    strange = [name for name in domain.class_names if name in present - allowed]
    if strange:
        raise ValueError(
            f"the {role} domain {domain.name!r} has samples of "
            f"{'class' if len(strange) == 1 else 'classes'} {', '.join(map(repr, strange[:5]))}"
            f"{' …' if len(strange) > 5 else ''}, which split {split.name!r} does not mention: "
            "add the name to known, source_unknown, target_unknown or left_out."
        )
    places = {name: place for place, name in enumerate(names) if name in wanted}
    return np.array([places.get(name, -1) for name in domain.class_names])[domain.y]


def _origin(domain: Domain) -> str:
    """Return a sentence on where a domain was read from, if it says so."""
    return (
        f"It was read from {domain.provenance.rpartition('; ')[2]}. " if domain.provenance else ""
    )


def _kept(domain: Domain, present: set[str]) -> Names:
    """Return the classes that have samples, in order."""
    return tuple(name for name in domain.class_names if name in present)


def _draw(fine: Array, count: int | None, rng: np.random.Generator) -> Array:
    """Return the rows that stay: all of the wanted classes, or ``count`` of each."""
    rows = np.flatnonzero(fine >= 0)
    if count is None:
        return rows
    members = [np.flatnonzero(fine == place) for place in np.unique(fine[rows])]
    drawn = [rng.permutation(rows_of_class)[:count] for rows_of_class in members]
    return np.sort(np.concatenate(drawn))


def _short(fine: Array, count: int | None, names: Names, role: str) -> str:
    """Say which classes had fewer samples than were to be drawn."""
    found = zip(*np.unique(fine, return_counts=True), strict=True)
    few = [f"{names[place]} {n}" for place, n in found if count is not None and n < count]
    return f"; fewer in the {role}: {', '.join(few)}" if few else ""


def _brief(names: Names) -> str:
    """Return the number of classes and the first and last of them."""
    if len(names) > 3:
        return f"{len(names)} ({names[0]} … {names[-1]})"
    return f"{len(names)} ({', '.join(names)})" if names else "0"


def _require_count(name: str, classes: Names, count: int, data: str) -> None:
    """Refuse class lists of another length."""
    if len(classes) != count:
        raise ValueError(f"split {name!r} is for {data}, got {len(classes)} classes.")


def _busto(name: str, classes: Names, _sizes: tuple[int, ...], _seed: int) -> Split:
    """Office-31: shared with Caltech known, the next ten of the source, the rest of the target."""
    _require_count(name, classes, 31, "the 31 classes of Office-31")
    absent = [known for known in SHARED_WITH_CALTECH if known not in classes]
    if absent:
        raise ValueError(
            f"split {name!r} needs the class {absent[0]!r} of Office-31; the names given are "
            f"{', '.join(classes[:3])} …"
        )
    others = tuple(sorted(set(classes) - set(SHARED_WITH_CALTECH)))
    return Split(name, SHARED_WITH_CALTECH, others[:10], others[10:])


def _bcis(name: str, classes: Names, _sizes: tuple[int, ...], _seed: int) -> Split:
    """Forty classes in four data sets; 50 and 30 images a class, 20 where the target is SUN."""
    _require_count(name, classes, 40, "the 40 classes of the dense testbed")
    draw = Draw(50, 30, (("sun", 20),))
    return Split(name, classes[:10], classes[10:25], classes[25:], draw=draw)


def _alphabetical(name: str, classes: Names, sizes: tuple[int, ...], _seed: int) -> Split:
    """Office-31 in alphabetical order: the first ones known, the last ones unknown."""
    _require_count(name, classes, 31, "the 31 classes of Office-31")
    n_known, n_unknown = sizes
    if n_known + n_unknown > len(classes):
        raise ValueError(f"split {name!r} needs {n_known + n_unknown} classes, there are 31.")
    ordered = tuple(sorted(classes))
    middle = ordered[n_known:-n_unknown]
    return Split(name, ordered[:n_known], (), ordered[-n_unknown:], left_out=middle)


def _half(name: str, classes: Names, _sizes: tuple[int, ...], _seed: int) -> Split:
    """First half of the classes known, second half in the target alone."""
    half = len(classes) // 2
    return Split(name, classes[:half], (), classes[half:])


def _second_half(name: str, classes: Names, _sizes: tuple[int, ...], _seed: int) -> Split:
    """Second half of the classes known, first half in the target alone."""
    half = len(classes) // 2
    return Split(name, classes[half:], (), classes[:half])


def _three_runs(name: str, classes: Names, sizes: tuple[int, ...], _seed: int) -> Split:
    """Three runs of classes: known, source unknown, target unknown."""
    _require_count(name, classes, sum(sizes), f"{sum(sizes)} classes")
    first, second = sizes[0], sizes[0] + sizes[1]
    return Split(name, classes[:first], classes[first:second], classes[second:])


def _first(name: str, classes: Names, sizes: tuple[int, ...], _seed: int) -> Split:
    """First classes known, the others in the target alone."""
    _require_more(name, classes, sizes[0])
    return Split(name, classes[: sizes[0]], (), classes[sizes[0] :])


def _random(name: str, classes: Names, sizes: tuple[int, ...], seed: int) -> Split:
    """Drawn known classes and, if asked for, drawn source unknowns; the others in the target."""
    _require_more(name, classes, sum(sizes))
    order = np.random.default_rng([seed, 3]).permutation(len(classes))
    ends = np.cumsum(sizes).tolist()
    runs = np.split(order, ends if len(ends) == 2 else [ends[0], ends[0]])
    known, private, rest = (tuple(classes[k] for k in sorted(run.tolist())) for run in runs)
    return Split(name, known, private, rest, note=f"classes drawn with seed {seed}")


def _random_unknown(name: str, classes: Names, sizes: tuple[int, ...], seed: int) -> Split:
    """Drawn known classes and drawn unknown ones in the target alone; the others left out."""
    _require_more(name, classes, sum(sizes) - 1)
    order = np.random.default_rng([seed, 4]).permutation(len(classes))
    known, unknown, rest = (
        tuple(classes[k] for k in sorted(run.tolist()))
        for run in np.split(order, np.cumsum(sizes).tolist())
    )
    note = f"classes drawn with seed {seed}"
    return Split(name, known, (), unknown, left_out=rest, note=note)


def _require_more(name: str, classes: Names, count: int) -> None:
    """Refuse splits that leave no class unknown."""
    if len(classes) <= count:
        raise ValueError(
            f"split {name!r} needs more than {count} classes, got {len(classes)}: none would "
            "be left for the unknown ones of the target."
        )


@dataclass(frozen=True)
class _Rule:
    """A pattern of names, as shown in messages, and what makes the split."""

    pattern: str
    shown: str
    make: Callable[[str, Names, tuple[int, ...], int], Split]


# One line a split.
SPLITS: tuple[_Rule, ...] = (
    _Rule("busto", "busto", _busto),
    _Rule("bcis", "bcis", _bcis),
    _Rule(r"alphabetical-(10|20)-(11)", "alphabetical-10-11, alphabetical-20-11", _alphabetical),
    _Rule("half", "half", _half),
    _Rule("second-half", "second-half", _second_half),
    _Rule(r"(\d+)-(\d+)-(\d+)", "A-B-C (such as 4-3-3)", _three_runs),
    _Rule(r"first-(\d+)", "first-K (such as first-20)", _first),
    _Rule(r"random-(\d+)-known", "random-K-known", _random),
    _Rule(r"random-(\d+)-known-(\d+)-source", "random-K-known-M-source", _random),
    _Rule(r"random-(\d+)-known-(\d+)-unknown", "random-K-known-M-unknown", _random_unknown),
)
