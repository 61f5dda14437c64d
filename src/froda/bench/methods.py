"""The methods that can be compared, by name; to add one, add a line."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

from froda.baselines import (
    ATI,
    BP,
    CORAL,
    DAN,
    GFK,
    LSVM,
    OSBP,
    OSLPP,
    OSNN,
    OSVM,
    RTN,
    SA,
    TCA,
    PCAResidual,
)
from froda.baselines.deep.base import require_torch
from froda.estimators import DFRODA, DFRODAU, FRODA
from froda.progressive.estimator import ProgressiveMixture

Maker = Callable[[], Any]

OURS: dict[str, Maker] = {
    "ProgressiveMixture": ProgressiveMixture,
    "FRODA-svm": FRODA,
    "FRODA-nn": partial(FRODA, head="nn"),
    "D-FRODA-svm": DFRODA,
    "D-FRODA-W": partial(DFRODA, head="linear"),
    "D-FRODA-nn": partial(DFRODA, head="nn"),
    "D-FRODA-U-svm": DFRODAU,
    "D-FRODA-U-W": partial(DFRODAU, head="linear"),
    "D-FRODA-U-nn": partial(DFRODAU, head="nn"),
}
BASELINES: dict[str, Maker] = {
    "LSVM": LSVM,
    "OSVM": OSVM,
    "OSNN": OSNN,
    "TCA": TCA,
    "GFK": GFK,
    "SA": SA,
    "CORAL": CORAL,
    "PCA residual": PCAResidual,
    "ATI": partial(ATI, variant="plain"),
    "ATI-lambda": partial(ATI, variant="lambda"),
    "ATI-lambda-N1": partial(ATI, variant="lambda-N1"),
    "ATI-lambda-N2": partial(ATI, variant="lambda-N2"),
    "OSLPP": OSLPP,
}
# OSLPP over its dimensions and the guessed share: what its best setting could do.
GRID: dict[str, Maker] = {
    f"OSLPP-{pca}-{lpp}-{share}": partial(OSLPP, share, pca_components=pca, lpp_components=lpp)
    for pca, lpp in ((16, 16), (32, 32), (64, 32), (128, 64))
    for share in (0.15, 0.30, 0.45)
}
# These need PyTorch.
DEEP: dict[str, Maker] = {"DAN": DAN, "RTN": RTN, "BP": BP, "OSBP": OSBP}
EPSILONS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0)
SENSITIVITY: dict[str, Maker] = {
    f"FRODA, epsilon {epsilon:g}": partial(FRODA, epsilon=epsilon) for epsilon in EPSILONS
}
METHODS: dict[str, Maker] = {**BASELINES, **DEEP, **OURS, **SENSITIVITY, **GRID}
GROUPS: dict[str, tuple[str, ...]] = {
    "all": (*BASELINES, *DEEP, *OURS),
    "ours": tuple(OURS),
    "baselines": tuple(BASELINES),
    "deep": tuple(DEEP),
    "epsilon": tuple(SENSITIVITY),
    "oslpp": tuple(GRID),
}


def has_torch() -> bool:
    """Say whether the methods of the group "deep" can be fitted."""
    return find_spec("torch") is not None


def select_methods(words: str) -> tuple[str, ...]:
    """Return the method names that a comma-separated list of names and groups stands for.

    Without PyTorch "all" leaves out the group "deep", and asking for one of that is an error.
    """
    chosen: list[str] = []
    by_lower = {name.lower(): name for name in METHODS}
    for word in (part.strip() for part in words.split(",")):
        if word == "all" and not has_torch():
            chosen += [name for name in GROUPS["all"] if name not in DEEP]
        elif word in GROUPS:
            chosen += GROUPS[word]
        elif word.lower() in by_lower:
            chosen.append(by_lower[word.lower()])
        else:
            raise ValueError(
                f"there is no method {word!r}; there are the groups {', '.join(GROUPS)} and "
                f"{', '.join((*BASELINES, *DEEP, *OURS))}."
            )
    deep = [name for name in chosen if name in DEEP]
    if deep and not has_torch():
        require_torch(deep[0])
    return tuple(dict.fromkeys(chosen))
