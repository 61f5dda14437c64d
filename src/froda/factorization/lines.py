"""A line on stderr for each iteration of the outer loop."""

from __future__ import annotations

import sys
from typing import Any

from froda.factorization.problem import Callback, Record


def report_to(callback: Callback | None, verbose: Any, name: str) -> Callback | None:
    """Return a callback that writes a line per iteration to stderr before the given one."""
    if not verbose:
        return callback

    def report(record: Record) -> Any:
        sys.stderr.write(
            f"{name}: iteration {record.iteration:4d}  objective {record.objective:.8g}  "
            f"decrease {record.decrease:.2e}  {record.seconds:.2f} s\n"
        )
        return None if callback is None else callback(record)

    return report
