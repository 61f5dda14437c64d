"""The right pictures in the right places, and labels that can be read."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from PIL import Image, ImageColor

from froda.images import sheet
from froda.images.adaptation import Predictions
from froda.images.fonts import pick_font
from froda.plots import KNOWN_COLOUR, UNKNOWN_COLOUR


def coloured(folder, count):
    """Write pictures whose colour tells their number."""
    colours = [(10 * number % 250, 200 - 7 * number, 3 * number) for number in range(count)]
    for number, colour in enumerate(colours):
        Image.new("RGB", (40, 30), colour).save(folder / f"{number}.png")
    return colours


def predict(labels, probability, score, classes):
    files = tuple(f"{number}.png" for number in range(len(labels)))
    return Predictions(
        files, np.array(labels), np.array(probability), np.array(score), tuple(classes)
    )


def middle(page, top, place):
    left, above = sheet.tile_box(top, place)
    return page.getpixel((left + sheet.TILE // 2, above + sheet.TILE // 2))


def test_the_surest_come_first():
    labels = ["a", "unknown", "a", "unknown", "b"]
    predictions = predict(labels, [0.5, 0.9, 0.8, 0.9, 0.7], [0, 1.2, 0, 1.5, 0], ["a", "b", "c"])
    groups = sheet.make_groups(predictions)
    assert [group.title for group in groups] == ["unknown", "a", "b", "c"]
    assert groups[0].tiles == (("3.png", "1.50"), ("1.png", "1.20"))
    assert groups[1].tiles == (("2.png", "0.80"), ("0.png", "0.50"))
    assert [group.detail for group in groups] == [
        "2 pictures, by unknown score",
        "2 pictures, by probability",
        "1 picture, by probability",
        "no picture",
    ]


def test_rows_are_full_and_no_fuller():
    n = 60
    labels = ["unknown"] * 30 + ["a"] * 30
    groups = sheet.make_groups(predict(labels, np.linspace(0, 1, n), np.linspace(0, 1, n), ["a"]))
    assert [len(group.tiles) for group in groups] == [16, 8]
    assert groups[0].detail == "30 pictures, the 16 of highest unknown score"
    assert groups[1].tiles[0][0] == "59.png"


def test_every_picture_is_where_it_belongs(tmp_path):
    colours = coloured(tmp_path, 24)
    labels = ["unknown"] * 11 + ["a"] * 9 + ["b"] * 4
    falling = np.linspace(1, 0, 24)
    groups = sheet.make_groups(predict(labels, falling, falling, ["a", "b"]))
    page = sheet.draw_sheet(tmp_path, groups, "title", "subtitle")
    heights = [group.height for group in groups]
    assert page.size == (sheet.WIDTH, 2 * sheet.MARGIN + sheet.TITLE + sum(heights) - sheet.BETWEEN)
    top = sheet.MARGIN + sheet.TITLE
    for group, first, mark in zip(
        groups, (0, 11, 20), (UNKNOWN_COLOUR, KNOWN_COLOUR, KNOWN_COLOUR), strict=True
    ):
        assert page.getpixel((sheet.MARGIN + 2, top + 31)) == ImageColor.getrgb(mark)
        for place in range(len(group.tiles)):
            assert middle(page, top, place) == colours[first + place]
        top += group.height
    last = sheet.MARGIN + sheet.TITLE + sum(heights[:2])
    assert middle(page, last, 4) == (255, 255, 255)


def test_pictures_are_whole_and_not_stretched(tmp_path):
    Image.new("RGB", (400, 100), (200, 0, 0)).save(tmp_path / "0.png")
    groups = [sheet.Group("a", "", KNOWN_COLOUR, (("0.png", "1.00"),))]
    page = np.asarray(sheet.draw_sheet(tmp_path, groups, "", ""))
    left, above = sheet.tile_box(sheet.MARGIN + sheet.TITLE, 0)
    tile = page[above : above + sheet.TILE, left : left + sheet.TILE]
    red = (tile == (200, 0, 0)).all(axis=2)
    assert red.any(axis=0).sum() == sheet.TILE
    assert red.any(axis=1).sum() == sheet.TILE // 4


def test_a_picture_that_has_gone_leaves_an_empty_tile(tmp_path):
    groups = [sheet.Group("a", "", KNOWN_COLOUR, (("gone.png", "1.00"),))]
    page = sheet.draw_sheet(tmp_path, groups, "", "")
    left, above = sheet.tile_box(sheet.MARGIN + sheet.TITLE, 0)
    assert page.getpixel((left + 3, above + 3)) == ImageColor.getrgb("#f1f3f5")


def test_many_classes_take_more_pages_and_old_pages_go(tmp_path):
    coloured(tmp_path, 1)
    groups = [sheet.Group(str(k), "", KNOWN_COLOUR, (("0.png", "1.00"),)) for k in range(40)]
    names = ["contact_sheet.png", "contact_sheet_2.png", "contact_sheet_3.png"]
    for count, expected in ((40, names), (20, names[:2]), (3, names[:1])):
        written = sheet.write_sheets(tmp_path, tmp_path, groups[:count], "title", "subtitle")
        assert [path.name for path in written] == expected
        assert sorted(path.name for path in tmp_path.glob("*contact*")) == expected
    with Image.open(tmp_path / "contact_sheet.png") as page:
        assert page.size[0] == sheet.WIDTH


def ink(text, tmp_path):
    """Return where a group's title is dark."""
    groups = [sheet.Group(text, "", KNOWN_COLOUR, ())]
    page = np.asarray(sheet.draw_sheet(tmp_path, groups, "", "").convert("L"))
    return page[sheet.MARGIN + sheet.TITLE + 5 :, sheet.MARGIN + 14 :] < 128


@pytest.mark.parametrize("text", ["größe", "Ωμέγα", "кот", "naïve ñandú"])
def test_letters_beyond_ascii_are_drawn(tmp_path, text):
    font, shown = pick_font(text, 20)
    assert shown == text
    assert len({font.getmask(letter).getbbox() for letter in set(text)}) > 1
    assert ink(text, tmp_path).sum() > 100


def test_letters_that_no_font_has_are_spelt():
    shown = pick_font("a\U0010fffd", 20)[1]
    assert shown == r"a\U0010fffd"


def test_long_names_are_shortened_in_the_middle(tmp_path):
    columns = ink("begin" + 300 * "x" + "end", tmp_path).any(axis=0)
    assert_allclose(np.flatnonzero(columns).max(), sheet.WIDTH - 2 * sheet.MARGIN - 420, atol=30)


def test_names_with_line_ends_stay_on_one_line(tmp_path):
    lines = np.flatnonzero(ink("a\nb\x1b", tmp_path).any(axis=1))
    assert np.ptp(lines) < 30
