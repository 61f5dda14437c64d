"""A font that has the letters of a text; what no font has is spelt out."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from froda.extras import require

_PURPOSE = "labels on contact sheets"


def pick_font(text: str, size: int, *, bold: bool = False) -> tuple[Any, str]:
    r"""Return a Pillow font and the text, letters that it lacks written as ``\u732b``.

    The first choice covers Latin, Greek, Cyrillic and more; for the rest the fonts of the
    system are searched.
    """
    needed = {ord(character) for character in text if not character.isspace()}
    best = _own_font(bold)
    if not needed <= _letters(best):
        best = min((best, *_other_fonts()), key=lambda font: len(needed - _letters(font)))
    lacking = needed - _letters(best)
    shown = "".join(_spelt(c) if ord(c) in lacking else c for c in text)
    return _sized(best, size), shown


def _own_font(bold: bool) -> str:
    """Return the path of the font that comes with Matplotlib."""
    matplotlib = require("matplotlib", "images", _PURPOSE)
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return str(Path(matplotlib.get_data_path(), "fonts", "ttf", name))


@cache
def _other_fonts() -> tuple[str, ...]:
    """Return the fonts of the system, in an order that does not depend on the disk."""
    manager = require("matplotlib.font_manager", "images", _PURPOSE)
    return tuple(_usable(sorted(manager.findSystemFonts())))


def _usable(paths: list[str]) -> Iterator[str]:
    """Yield the fonts that can be opened and drawn with."""
    for path in paths:
        try:
            _letters(path)
            _sized(path, 12)
        except (OSError, RuntimeError, ValueError):
            continue
        yield path


@cache
def _letters(path: str) -> frozenset[int]:
    """Return the characters that a font has."""
    ft2font = require("matplotlib.ft2font", "images", _PURPOSE)
    return frozenset(ft2font.FT2Font(path).get_charmap())


@cache
def _sized(path: str, size: int) -> Any:
    """Return a font for drawing."""
    return require("PIL.ImageFont", "images", _PURPOSE).truetype(path, size)


def _spelt(character: str) -> str:
    r"""Return ``\u732b`` for a letter that cannot be drawn."""
    return character.encode("ascii", "backslashreplace").decode("ascii")
