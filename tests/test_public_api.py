"""What the package promises: names, docstrings, version."""

from __future__ import annotations

import importlib.metadata
import inspect
import subprocess
import sys

import pytest
from numpydoc.validate import validate

import froda
import froda.baselines
import froda.datasets
import froda.images
import froda.metrics
import froda.selection

PACKAGES = (
    froda,
    froda.baselines,
    froda.datasets,
    froda.images,
    froda.metrics,
    froda.selection,
)
MORE = [
    "froda.baselines.deep.base.Epoch",
    "froda.dimension.subspace_disagreement",
    "froda.factorization.problem.Record",
    "froda.images.extraction.Step",
    "froda.images.listing.Entry",
    "froda.images.listing.Listing",
    "froda.images.listing.Skipped",
    "froda.images.listing.list_folder",
    "froda.plots.score_distribution",
]


def public_names() -> list[str]:
    """Return what the packages offer, with the public methods of their classes."""
    names = list(MORE)
    for package in PACKAGES:
        for name, member in vars(package).items():
            is_offered = name in package.__all__ if hasattr(package, "__all__") else name[0] != "_"
            if not is_offered or not getattr(member, "__module__", "").startswith("froda"):
                continue
            if inspect.isclass(member) or inspect.isfunction(member):
                names.append(f"{package.__name__}.{name}")
            if inspect.isclass(member):
                names += [f"{package.__name__}.{name}.{method}" for method in own_methods(member)]
    return sorted(names)


def own_methods(cls: type) -> list[str]:
    """Return the public methods and properties that the package itself defines."""
    found = []
    for name, member in inspect.getmembers(cls):
        code = member.fget if isinstance(member, property) else member
        is_ours = str(getattr(code, "__module__", "")).startswith("froda")
        if name[0] != "_" and callable(code) and is_ours:
            found.append(name)
    return found


PUBLIC = public_names()
# No extended summary, See Also, Examples or Returns prose is asked of every name.
LEFT_OUT = {"ES01", "SA01", "SA04", "EX01", "RT02", "GL01", "GL02", "GL03", "SS05"}


def test_all_is_true():
    for module in (froda, froda.datasets, froda.selection):
        assert sorted(module.__all__) == sorted(set(module.__all__))
        assert all(hasattr(module, name) for name in module.__all__)


def test_version_is_that_of_the_distribution():
    assert froda.__version__ == importlib.metadata.version("froda")


@pytest.mark.parametrize("name", PUBLIC)
def test_docstrings_are_valid_numpydoc(name):
    errors = [error for error in validate(name)["errors"] if error[0] not in LEFT_OUT]
    assert errors == []


@pytest.mark.parametrize("name", froda.__all__)
def test_every_setting_and_attribute_is_documented(name):
    text = getattr(froda, name).__doc__ if name != "__version__" else froda.__doc__
    assert "{" + "settings}" not in text


def test_importing_brings_only_what_it_needs():
    """Or `import froda` takes more than a second."""
    heavy = ("torch", "matplotlib", "PIL", "rich", "typer")
    heavy += ("sklearn.svm", "sklearn.neighbors", "sklearn.decomposition", "froda.baselines")
    code = f"import sys, froda; print([name for name in {heavy} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
