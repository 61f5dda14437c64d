"""The contact sheet: the surest pictures of each label on one page."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from froda.extras import require
from froda.factorization.problem import Array
from froda.images.adaptation import UNKNOWN, Predictions
from froda.images.fonts import pick_font
from froda.images.names import printable
from froda.images.reading import UnreadableError, quiet, read_thumbnail
from froda.plots import KNOWN_COLOUR, UNKNOWN_COLOUR

COLUMNS = 8
UNKNOWN_ROWS = 2
TILE = 168
GAP = 16
MARGIN = 48
CAPTION = 26
TITLE = 92
HEADER = 58
BETWEEN = 26
GROUPS_ON_A_PAGE = 16
WIDTH = 2 * MARGIN + COLUMNS * TILE + (COLUMNS - 1) * GAP
_INK, _QUIET, _GROUND, _RULE = "#1b1f24", "#6b7280", "#f1f3f5", "#e3e6ea"
_NAME = "contact_sheet"


@dataclass(frozen=True)
class Group:
    """Pictures under one label.

    Parameters
    ----------
    title, detail : str
        The label, and a remark beside it.
    colour : str
        Of the mark before the title.
    tiles : tuple of (str, str)
        File and number of each picture, surest first.
    """

    title: str
    detail: str
    colour: str
    tiles: tuple[tuple[str, str], ...]

    @property
    def height(self) -> int:
        """Return how much of the page the group takes."""
        n_rows = -(-len(self.tiles) // COLUMNS)
        return HEADER + n_rows * (TILE + CAPTION + GAP) + BETWEEN


def make_groups(predictions: Predictions) -> list[Group]:
    """Return the surest unknowns, then the surest pictures of each class."""
    groups = []
    for label in (UNKNOWN, *predictions.classes):
        rows = np.flatnonzero(predictions.labels == label)
        is_unknown = label == UNKNOWN
        value: Array = predictions.unknown_score if is_unknown else predictions.probability
        most = COLUMNS * (UNKNOWN_ROWS if is_unknown else 1)
        rows = rows[np.argsort(-value[rows], kind="stable")]
        tiles = tuple((predictions.files[row], f"{value[row]:.2f}") for row in rows[:most])
        measure = "unknown score" if is_unknown else "probability"
        colour = UNKNOWN_COLOUR if is_unknown else KNOWN_COLOUR
        groups.append(Group(label, _detail(len(rows), len(tiles), measure), colour, tiles))
    return groups


def _detail(n_all: int, n_shown: int, measure: str) -> str:
    """Say how many pictures there are and which are shown."""
    if n_all == 0:
        return "no picture"
    count = "1 picture" if n_all == 1 else f"{n_all} pictures"
    if n_shown == n_all:
        return f"{count}, by {measure}"
    return f"{count}, the {n_shown} of highest {measure}"


def write_sheets(
    out: Path, folder: Path, groups: list[Group], title: str, subtitle: str
) -> list[Path]:
    """Write contact_sheet.png, and further pages where there are many classes."""
    pages = [groups[k : k + GROUPS_ON_A_PAGE] for k in range(0, len(groups), GROUPS_ON_A_PAGE)]
    written = []
    for number, page in enumerate(pages, start=1):
        name = f"{_NAME}.png" if number == 1 else f"{_NAME}_{number}.png"
        remark = subtitle if len(pages) == 1 else f"{subtitle} · page {number} of {len(pages)}"
        path = out / name
        partial = path.with_name(f".{name}.{os.getpid()}.partial")
        try:
            draw_sheet(folder, page, title, remark).save(partial, format="PNG")
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
        written.append(path)
    for old in out.glob(f"{_NAME}_*.png"):  # pages of an earlier run with more classes
        if old not in written and old.stem.removeprefix(f"{_NAME}_").isdigit():
            old.unlink()
    return written


def draw_sheet(folder: Path, groups: Iterable[Group], title: str, subtitle: str) -> Any:
    """Return one page as a Pillow image."""
    groups = list(groups)
    height = MARGIN + TITLE + sum(group.height for group in groups) + MARGIN - BETWEEN
    page = require("PIL.Image", "images", "pictures").new("RGB", (WIDTH, height), "white")
    draw = require("PIL.ImageDraw", "images", "pictures").Draw(page)
    _write(draw, (MARGIN, MARGIN + 20), title, 30, _INK, bold=True)
    _write(draw, (MARGIN, MARGIN + 56), subtitle, 17, _QUIET)
    top = MARGIN + TITLE
    for group in groups:
        _draw_group(page, draw, top, group, folder)
        top += group.height
    return page


def tile_box(top: int, place: int) -> tuple[int, int]:
    """Return the upper left corner of a picture in a group that begins at ``top``."""
    row, column = divmod(place, COLUMNS)
    return MARGIN + column * (TILE + GAP), top + HEADER + row * (TILE + CAPTION + GAP)


def _draw_group(page: Any, draw: Any, top: int, group: Group, folder: Path) -> None:
    """Draw the header and the tiles of one label."""
    draw.line((MARGIN, top, WIDTH - MARGIN, top), fill=_RULE, width=1)
    middle = top + 31
    draw.rectangle((MARGIN, middle - 12, MARGIN + 5, middle + 12), fill=group.colour)
    ink = _INK if group.tiles else _QUIET
    room = WIDTH - 2 * MARGIN - 420
    end = _write(draw, (MARGIN + 18, middle), group.title, 21, ink, bold=True, room=room)
    _write(draw, (end + 16, middle + 1), group.detail, 16, _QUIET)
    for place, (file, number) in enumerate(group.tiles):
        left, above = tile_box(top, place)
        _draw_tile(page, draw, (left, above), folder / file)
        line = above + TILE + CAPTION // 2 + 1
        end = _write(draw, (left, line), number, 14, _INK, bold=True)
        _write(draw, (end + 8, line), file, 13, _QUIET, room=left + TILE - end - 8)


def _draw_tile(page: Any, draw: Any, corner: tuple[int, int], path: Path) -> None:
    """Draw a whole picture in the middle of a square."""
    left, above = corner
    draw.rectangle((left, above, left + TILE - 1, above + TILE - 1), fill=_GROUND)
    try:
        with quiet():
            picture = read_thumbnail(path, TILE)
    except UnreadableError:  # it could be read before: somebody has changed it since
        _write(draw, (left + 12, above + TILE // 2), "not readable", 14, _QUIET)
        return
    width, height = picture.size
    page.paste(picture, (left + (TILE - width) // 2, above + (TILE - height) // 2))


def _write(
    draw: Any,
    place: tuple[int, int],
    text: str,
    size: int,
    colour: str,
    *,
    bold: bool = False,
    room: int | None = None,
) -> int:
    """Write a line centred on a height, shortened in the middle to fit; return its right end."""
    font, shown = pick_font(printable(text), size, bold=bold)
    whole, n_left = shown, len(shown)
    while room is not None and n_left > 1 and font.getlength(shown) > room:
        n_left -= 1
        shown = f"{whole[: -(-n_left // 2)]}…{whole[len(whole) - n_left // 2 :]}"
    draw.text(place, shown, font=font, fill=colour, anchor="lm")
    return int(place[0] + font.getlength(shown))
