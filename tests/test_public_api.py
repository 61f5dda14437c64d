"""What the package promises: names, docstrings, version."""

from __future__ import annotations

import importlib.metadata
import inspect

import pytest
from numpydoc.validate import validate

import froda
import froda.datasets

PUBLIC = [
    "froda.FRODA",
    "froda.DFRODA",
    "froda.DFRODAU",
    "froda.datasets.load_digits_pair",
    "froda.datasets.OpenSetTask",
    "froda.dimension.subspace_disagreement",
    "froda.images.extract",
    "froda.images.load_features",
    "froda.images.load_network",
    "froda.images.Features",
    "froda.images.Network",
    "froda.images.Network.parts",
    "froda.images.Network.settings",
    "froda.images.extraction.Step",
    "froda.images.listing.list_folder",
    "froda.images.listing.Listing",
    "froda.images.listing.Entry",
    "froda.images.listing.Skipped",
    "froda.metrics.open_set_scores",
    "froda.metrics.harmonic_mean",
    "froda.plots.score_distribution",
    "froda.factorization.problem.Record",
] + [
    f"froda.FRODA.{name}"
    for name, member in inspect.getmembers(froda.FRODA, inspect.isfunction)
    if not name.startswith("_") and "froda" in member.__module__
]
# No extended summary, See Also, Examples or Returns prose is asked of every name.
LEFT_OUT = {"ES01", "SA01", "SA04", "EX01", "RT02", "GL01", "GL02", "GL03", "SS05"}


def test_all_is_true():
    for module in (froda, froda.datasets):
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
