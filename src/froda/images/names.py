"""File names as text: they are bytes, and not all of them can be printed."""

from __future__ import annotations


def encodable(name: str) -> str:
    r"""Return the name with bytes that are no text written as ``\xff``; all else stays."""
    return "".join(_escape(c) if "\ud800" <= c <= "\udfff" else c for c in name)


def printable(name: str) -> str:
    r"""Return the name on one line: control characters and stray bytes as escapes."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in encodable(name))


def _escape(surrogate: str) -> str:
    """Python keeps the byte b of a name that is no UTF-8 as the character U+DC00 + b."""
    place = ord(surrogate)
    return f"\\x{place - 0xDC00:02x}" if 0xDC80 <= place <= 0xDCFF else f"\\u{place:04x}"
