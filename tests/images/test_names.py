"""Names can be printed and written, and stay apart."""

from __future__ import annotations

import pytest

from froda.images.names import encodable, printable

AWKWARD = ["plain.jpg", "mit Leerzeichen.jpg", "größe 猫.jpg", 'a "b", c.jpg', "it's.jpg"]


@pytest.mark.parametrize("name", AWKWARD)
def test_what_can_be_printed_stays(name):
    assert printable(name) == encodable(name) == name


def test_line_ends_stay_in_files_and_are_escaped_on_screen():
    assert encodable("a\nb\tc") == "a\nb\tc"
    assert printable("a\nb\tc\x1b[31m") == r"a\nb\tc\x1b[31m"


def test_bytes_that_are_no_text_are_spelt():
    name = b"caf\xe9.jpg".decode("utf-8", "surrogateescape")
    assert encodable(name) == printable(name) == r"caf\xe9.jpg"
    assert encodable("\ud800") == r"\ud800"
