"""Imports go one way, and heavy packages stay where they belong."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import froda

ROOT = Path(froda.__file__).parent

# A module may import those in its own layer and in the layers before it.
LAYERS = [
    ["factorization.problem", "factorization", "extras", "tally"],
    [
        "factorization.lines",
        "factorization.penalties",
        "factorization.constraints",
        "factorization.linear",
        "rows",
    ],
    ["factorization.objective", "factorization.initialize", "pca", "dimension"],
    ["projection", "factorization.newton", "factorization.bases", "factorization.source"],
    ["factorization.codes", "factorization.classifier", "preprocessing", "metrics", "validation"],
    ["factorization.encoding", "factorization.checkpoint"],
    ["factorization.alternate", "openset", "heads", "docstrings", "chunks"],
    ["factorization.minibatch", "daskrows"],
    ["tables"],
    ["base", "door", "baselines.subspace", "baselines.assignment"],
    [
        "baselines.svm",
        "baselines.sa",
        "baselines.coral",
        "baselines.tca",
        "baselines.gfk",
        "baselines.osnn",
        "baselines.pca_residual",
        "baselines.ati",
        "baselines.oslpp",
        "baselines.deep.network",
    ],
    ["baselines.deep.losses", "baselines.deep.training"],
    ["baselines.deep.base"],
    ["baselines.deep.dan", "baselines.deep.rtn", "baselines.deep.bp", "baselines.deep.osbp"],
    ["baselines.deep"],
    ["baselines"],
    ["progressive", "progressive.evidence", "progressive.rounds"],
    ["progressive.estimator"],
    ["estimators", "datasets.record"],
    ["datasets.files", "datasets.protocols"],
    ["__init__", "datasets.digits", "datasets.synthetic", "datasets.loaders", "datasets", "plots"],
    ["selection"],
    ["bench", "bench.methods", "bench.published"],
    ["bench.store", "bench.runtimes", "demo"],
    ["bench.runner", "bench.tables", "bench.figures"],
    ["bench.command"],
    ["images.names", "images.ahead"],
    ["images.listing", "images.reading", "images.networks"],
    ["images.features", "images.chunks"],
    ["images.extraction"],
    ["images"],
    ["images.adaptation", "images.fonts"],
    ["images.tables", "images.sheet"],
    ["images.command"],
    ["cli"],
]
ORDER = {module: number for number, layer in enumerate(LAYERS) for module in layer}

# All but `training` import the types alone, for the type checker.
_OF_PYTORCH = ("training", "losses", "base", "dan", "rtn", "bp", "osbp")
ALLOWED_ONLY_IN = {
    "matplotlib": {"plots"},
    "torch": {f"baselines.deep.{name}" for name in _OF_PYTORCH},
    "dask": set(),  # imported by name where it is needed: see extras
    "typer": {"cli", "bench.command", "images.command"},
}


def module_name(path: Path) -> str:
    """Return the dotted name below the package."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def imports_of(path: Path) -> set[str]:
    """Return every module that the file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


FILES = sorted(ROOT.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_imports_go_one_way(path):
    name = module_name(path)
    assert name in ORDER, f"{name} has no layer: put it into LAYERS"
    own = {found.removeprefix("froda.") for found in imports_of(path) if "froda." in found}
    later = {found for found in own if ORDER.get(found, -1) > ORDER[name]}
    assert not later, f"{name} imports from later layers: {later}"


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_optional_packages_stay_in_their_modules(path):
    roots = {found.partition(".")[0] for found in imports_of(path)}
    for package, modules in ALLOWED_ONLY_IN.items():
        assert package not in roots or module_name(path) in modules


def test_import_is_light():
    heavy = ("matplotlib", "torch", "typer", "mlxtend", "PIL", "dask", "h5py", "zarr")
    code = "import sys, froda.baselines, froda.bench.methods; "
    code += f"print([m for m in {heavy} if m in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
