"""Optional packages: import one, or say which extra brings it."""

from __future__ import annotations

import importlib
from typing import Any

_REMARKS = {
    "torch": " (without a GPU, install a CPU build of torch first: what pip takes by itself may be "
    "several gigabytes)"
}


def require(module: str, extra: str, purpose: str) -> Any:
    """Return the imported module, or raise an ImportError that names the extra."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(
            f'{purpose} need the package {package}: pip install "froda[{extra}]"'
            f"{_REMARKS.get(package, '')}"
        ) from error
