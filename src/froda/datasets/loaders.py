"""Published data sets from a folder that the user has: one function and one line each.

Nothing is downloaded. A loader knows the names of the files, their layout and who published
them; ``DATASETS`` at the end is the only list of data sets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from froda.datasets.digits import load_digits_domain
from froda.datasets.files import (
    FEATURE_KEYS,
    LABEL_KEYS,
    SUFFIXES,
    load_file,
    make_domain,
    pick,
    read_arrays,
)
from froda.datasets.record import Domain
from froda.datasets.synthetic import make_planted

_RESEARCH = "research data, not ours to redistribute; ask the publisher for the terms"

OFFICE_CALTECH10_CLASSES = (
    "backpack",
    "bike",
    "calculator",
    "headphones",
    "keyboard",
    "laptop",
    "monitor",
    "mouse",
    "mug",
    "projector",
)
OFFICE31_CLASSES = (
    "back_pack",
    "bike",
    "bike_helmet",
    "bookcase",
    "bottle",
    "calculator",
    "desk_chair",
    "desk_lamp",
    "desktop_computer",
    "file_cabinet",
    "headphones",
    "keyboard",
    "laptop_computer",
    "letter_tray",
    "mobile_phone",
    "monitor",
    "mouse",
    "mug",
    "paper_notebook",
    "pen",
    "phone",
    "printer",
    "projector",
    "punchers",
    "ring_binder",
    "ruler",
    "scissors",
    "speaker",
    "stapler",
    "tape_dispenser",
    "trash_can",
)


@dataclass(frozen=True)
class DatasetEntry:
    """What the table knows of a data set.

    Parameters
    ----------
    load : callable
        ``load(entry, folder, domain, features)`` returns a Domain.
    domains : tuple of str
        Names of the domains; empty where every file of the folder is one.
    features : tuple of str
        Usual kinds of features, the default first.
    split : str
        The split by which it is usually judged.
    published : str
        Project or paper that publishes the files; empty where no file is needed.
    class_names : tuple of str, default=()
        All classes in the order of the labels.
    pairs : tuple of (str, str), default=()
        The (source, target) pairs that can be compared; empty where all ordered pairs can.
    """

    load: Callable[[DatasetEntry, Path, str, str], Domain]
    domains: tuple[str, ...]
    features: tuple[str, ...]
    split: str
    published: str
    class_names: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()

    @property
    def needs_folder(self) -> bool:
        """Return whether the user must have files."""
        return bool(self.published)


def load_domain(
    dataset: str, domain: str, folder: str | Path | None = None, features: str | None = None
) -> Domain:
    """Return one domain of a data set in the table.

    Parameters
    ----------
    dataset : str
        A name in ``DATASETS``.
    domain : str
        One of its domains.
    folder : str or Path, default=None
        Where the files are. None for data sets that need none.
    features : str, default=None
        Which features, where there are several; part of the file names. None takes the
        default.

    Returns
    -------
    domain : Domain
        Samples, labels, class names, licence and provenance.

    Examples
    --------
    >>> from froda.datasets import load_domain
    >>> load_domain("synthetic", "target").X.shape
    (400, 60)
    """
    entry = _entry(dataset)
    known = dataset_domains(dataset, folder)
    if domain not in known:
        raise ValueError(
            f"data set {dataset!r} has no domain {domain!r}, only {', '.join(known) or 'none'}."
        )
    return entry.load(entry, _folder(dataset, entry, folder), domain, features or entry.features[0])


def dataset_domains(dataset: str, folder: str | Path | None = None) -> tuple[str, ...]:
    """Return the domains of a data set.

    Parameters
    ----------
    dataset : str
        A name in ``DATASETS``.
    folder : str or Path, default=None
        Where the files are; needed for ``folder``, whose files are its domains.

    Returns
    -------
    domains : tuple of str
        In the order of the table, or of the alphabet for files.
    """
    entry = _entry(dataset)
    if entry.domains:
        return entry.domains
    files = _folder(dataset, entry, folder).iterdir()
    return tuple(sorted({file.stem for file in files if file.suffix in SUFFIXES}))


def _entry(dataset: str) -> DatasetEntry:
    """Look a data set up."""
    if dataset not in DATASETS:
        raise ValueError(f"there is no data set {dataset!r}; there are: {', '.join(DATASETS)}.")
    return DATASETS[dataset]


def _folder(dataset: str, entry: DatasetEntry, folder: str | Path | None) -> Path:
    """Require a folder where files are needed."""
    if not entry.needs_folder:
        return Path()
    if folder is None:
        raise ValueError(
            f"data set {dataset!r} needs the folder with its files. Published by: "
            f"{entry.published}."
        )
    path = Path(folder)
    if not path.is_dir():
        raise FileNotFoundError(
            f"{path} is no folder: data set {dataset!r} is read from there. Published by: "
            f"{entry.published}."
        )
    return path


def _find(folder: Path, names: list[str], entry: DatasetEntry) -> Path:
    """Return the first of the files that the folder has, capitals aside."""
    present = {
        path.relative_to(folder).as_posix().lower(): path
        for pattern in ("*", "*/*")
        for path in folder.glob(pattern)
        if path.suffix in SUFFIXES
    }
    for name in names:
        if name.lower() in present:
            return present[name.lower()]
    found = [path.relative_to(folder).as_posix() for path in present.values()]
    held = ", ".join(sorted(found)[:6]) + (" …" if len(found) > 6 else "") or "no data file"
    others = f" (or {', '.join(names[1:])})" if len(names) > 1 else ""
    raise FileNotFoundError(
        f"{folder / names[0]} is missing{others}; the folder holds {held}. Published by: "
        f"{entry.published}."
    )


def _read(
    path: Path, entry: DatasetEntry, domain: str, *, samples_are_columns: bool = False
) -> Domain:
    """Read features and labels under any of their usual names."""
    arrays = read_arrays(path)
    names = arrays["classes"].ravel().tolist() if "classes" in arrays else entry.class_names
    return make_domain(
        pick(arrays, FEATURE_KEYS, path),
        pick(arrays, LABEL_KEYS, path),
        path,
        name=domain,
        class_names=names,
        licence=_RESEARCH,
        provenance=f"{entry.published}; file {path.name}",
        samples_are_columns=samples_are_columns,
    )


def _candidates(domain: str, features: str) -> list[str]:
    """Return the usual names of a file of precomputed features."""
    stems = (f"{features}_{domain}", f"{domain}_{features}", f"{features}/{domain}", domain)
    return [f"{stem}{suffix}" for stem in stems for suffix in (".npz", ".mat")]


def _office_caltech10(entry: DatasetEntry, folder: Path, domain: str, features: str) -> Domain:
    """SURF words (``fts``, ``labels`` 1..10) or network features; caltech10 is also caltech."""
    names = _candidates(domain, features)[:-2]
    if features.startswith("surf"):
        names += [f"{domain}_SURF_L10.mat"]
    if domain == "caltech10":
        names += [name.replace("caltech10", "caltech") for name in names]
    return _read(_find(folder, names, entry), entry, domain)


def _precomputed(entry: DatasetEntry, folder: Path, domain: str, features: str) -> Domain:
    """One file a domain with ``fts`` or ``features`` and ``labels``, MATLAB v5 or v7.3."""
    names = [name for name in _candidates(domain, features) if name.endswith(".mat")]
    names += [name for name in _candidates(domain, features) if name.endswith(".npz")]
    return _read(_find(folder, names, entry), entry, domain)


def _bcis(entry: DatasetEntry, folder: Path, domain: str, features: str) -> Domain:
    """Dense testbed: ``fts`` n × 4096 and ``label`` 1..40."""
    path = _find(folder, [f"dense_{domain}_{features}.mat"], entry)
    return _read(path, entry, domain)


def _pie(entry: DatasetEntry, folder: Path, domain: str, _features: str) -> Domain:
    """Faces, one file a camera: ``features`` 1024 × n in [0, 1], ``labels`` 1..67."""
    path = _find(folder, [f"{domain}.mat"], entry)
    return _read(path, entry, domain, samples_are_columns=True)


def _mnist_usps(entry: DatasetEntry, folder: Path, domain: str, _features: str) -> Domain:
    """One file with both: ``X_src``, ``X_tar`` 256 × n and ``Y_src``, ``Y_tar`` = digit + 1."""
    side = {"mnist": "src", "usps": "tar"}[domain]
    path = _find(folder, ["MNIST_vs_USPS.mat"], entry)
    arrays = read_arrays(path)
    return make_domain(
        pick(arrays, (f"X_{side}",), path),
        pick(arrays, (f"Y_{side}",), path).astype(float) - 1,
        path,
        name=domain,
        class_names=entry.class_names,
        licence=_RESEARCH,
        provenance=f"{entry.published}; file {path.name}",
        samples_are_columns=True,
    )


def _digits(_entry: DatasetEntry, _folder: Path, domain: str, _features: str) -> Domain:
    """Digits that come with packages."""
    return load_digits_domain(domain)


def _synthetic(_entry: DatasetEntry, _folder: Path, domain: str, _features: str) -> Domain:
    """Planted subspaces with the default settings."""
    planted = make_planted()
    return planted.source if domain == "source" else planted.target


def _own_files(entry: DatasetEntry, folder: Path, domain: str, _features: str) -> Domain:
    """Files of the user's own under the usual names of arrays or columns."""
    return load_file(_find(folder, [f"{domain}{suffix}" for suffix in SUFFIXES], entry))


def _numbers(count: int) -> tuple[str, ...]:
    """Return "1" to "count"."""
    return tuple(map(str, np.arange(1, count + 1).tolist()))


# One line a data set.
DATASETS: dict[str, DatasetEntry] = {
    "office-caltech10": DatasetEntry(
        _office_caltech10,
        ("amazon", "caltech10", "dslr", "webcam"),
        ("alexnet4096", "surf800"),
        "half",
        "B. Gong, Y. Shi, F. Sha, K. Grauman, Geodesic flow kernel for unsupervised domain "
        "adaptation, CVPR 2012 (project page of the authors: SURF features and images)",
        OFFICE_CALTECH10_CLASSES,
    ),
    "office31": DatasetEntry(
        _precomputed,
        ("amazon", "dslr", "webcam"),
        ("decaf7", "alexnet", "googlenet", "resnet50"),
        "busto",
        "images: K. Saenko, B. Kulis, M. Fritz, T. Darrell, Adapting visual category models to "
        "new domains, ECCV 2010; features: computed with a network of your choice",
        OFFICE31_CLASSES,
    ),
    "bcis": DatasetEntry(
        _bcis,
        ("bing", "caltech256", "imagenet", "sun"),
        ("decaf7",),
        "bcis",
        "T. Tommasi, T. Tuytelaars, A testbed for cross-dataset analysis, ECCV workshops 2014 "
        "(project page of the testbed, dense set-up, DeCAF7 features)",
        _numbers(40),
    ),
    "pie": DatasetEntry(
        _pie,
        ("C02", "C05", "C09", "C25", "C27", "C37"),
        ("pixels",),
        "first-20",
        "faces: T. Sim, S. Baker, M. Bsat, The CMU pose, illumination, and expression database, "
        "2002; the .mat files: S. Herath, M. Harandi, F. Porikli, Learning an invariant Hilbert "
        "space for domain adaptation, CVPR 2017 (PIE-Multiview in the code of the authors)",
        _numbers(67),
    ),
    "mnist-usps": DatasetEntry(
        _mnist_usps,
        ("mnist", "usps"),
        ("pixels",),
        "half",
        "M. Long, J. Wang, G. Ding, J. Sun, P. Yu, Transfer feature learning with joint "
        "distribution adaptation, ICCV 2013 (data with the code of the authors)",
        tuple("0123456789"),
    ),
    "office-home": DatasetEntry(
        _precomputed,
        ("Art", "Clipart", "Product", "RealWorld"),
        ("resnet50",),
        "first-25",
        "images: H. Venkateswara, J. Eusebio, S. Chakraborty, S. Panchanathan, Deep hashing "
        "network for unsupervised domain adaptation, CVPR 2017; features: computed with a "
        "ResNet",
        _numbers(65),
    ),
    "digits": DatasetEntry(_digits, ("mnist", "digits"), ("gradients",), "half", ""),
    "synthetic": DatasetEntry(
        _synthetic,
        ("source", "target"),
        ("planted",),
        "5-2-3",
        "",
        pairs=(("source", "target"),),  # the unknown classes of the source are in it alone
    ),
    "folder": DatasetEntry(_own_files, (), ("own",), "half", "yourself: one file a domain"),
}
