"""A picture from a file: upright, in RGB, of the wanted size; or why it cannot be had."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from froda.extras import require
from froda.factorization.problem import Array

MAX_PIXELS = 89_478_485  # what Pillow takes for the mark of a decompression bomb
MAX_BYTES = 2**28
_FORMATS = ("JPEG", "MPO", "PNG", "GIF", "BMP", "TIFF", "WEBP", "PPM", "JPEG2000", "AVIF")
_ORIENTATION = 0x0112
_WHITE = (255, 255, 255)
# A JPEG is decoded at 1/2, 1/4 or 1/8 of its size where this many times the wanted pixels stay.
_DRAFT_MARGIN = 2


class UnreadableError(Exception):
    """A file that gives no picture; the text is the reason."""


def read_square(path: Path, size: int, crop: float, resample: str = "bicubic") -> Array:
    """Return the central square of a picture.

    Parameters
    ----------
    path : Path
        The file.
    size : int
        Pixels a side of the result.
    crop : float
        Side of the square as a share of the shorter side of the picture.
    resample : str, default="bicubic"
        Name of a filter of Pillow.

    Returns
    -------
    pixels : array of uint8 of shape (size, size, 3)
        RGB.
    """
    with _decoded(path, size / crop) as (image, orientation):
        width, height = image.size
        side = min(width, height) * crop
        left, top = (width - side) / 2, (height - side) / 2
        box = (left, top, left + side, top + side)
        filters = require("PIL.Image", "images", "pictures").Resampling
        square = image.resize((size, size), getattr(filters, resample.upper()), box=box)
        pixels: Array = np.array(_upright(_on_white(square), orientation))
    return pixels


def read_thumbnail(path: Path, size: int) -> Any:
    """Return a whole picture as a Pillow image whose longer side is ``size`` pixels."""
    with _decoded(path, size) as (image, orientation):
        scale = size / max(image.size)
        width, height = (max(round(side * scale), 1) for side in image.size)
        return _upright(_on_white(image.resize((width, height))), orientation)


@contextmanager
def _decoded(path: Path, wanted: float) -> Iterator[tuple[Any, int]]:
    """Give the picture in RGB or RGBA as stored, and its orientation."""
    module = require("PIL.Image", "images", "pictures")
    try:
        if os.path.getsize(path) > MAX_BYTES:
            raise UnreadableError(f"huge: more than {MAX_BYTES >> 20} MB")
        with module.open(path, formats=_formats()) as image:
            if image.size[0] * image.size[1] > MAX_PIXELS:
                raise UnreadableError(_huge())
            least = round(_DRAFT_MARGIN * wanted)
            image.draft(None, (least, least))
            image.load()
            yield _in_colour(image), _orientation(image)
    except UnreadableError:
        raise
    except (module.DecompressionBombError, module.DecompressionBombWarning) as error:
        raise UnreadableError(_huge()) from error
    except module.UnidentifiedImageError as error:
        raise UnreadableError("no picture of a format that can be read") from error
    except MemoryError as error:
        raise UnreadableError("needs more memory than there is") from error
    except Exception as error:  # a decoder may raise anything when bytes are damaged
        raise UnreadableError(_complaint(error)) from error


@contextmanager
def quiet() -> Iterator[None]:
    """Keep Pillow's warnings away: what matters of them becomes a reason or is handled."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"PIL\.")
        yield


@cache
def _formats() -> tuple[str, ...]:
    """Return the formats that this Pillow can read; none that runs another program."""
    module = require("PIL.Image", "images", "pictures")
    module.init()
    return tuple(name for name in _FORMATS if name in module.OPEN)


def _huge() -> str:
    return f"huge: more than {MAX_PIXELS // 10**6} million pixels"


def _complaint(error: Exception) -> str:
    """Return what the system or a decoder complained about, in one line without paths."""
    if isinstance(error, OSError) and error.errno and error.strerror:
        return error.strerror.lower()
    lines = str(error).splitlines()
    return f"damaged: {lines[0][:120] if lines else type(error).__name__}"


def _in_colour(image: Any) -> Any:
    """Return RGB, or RGBA where something is transparent."""
    if image.mode in ("I", "F") or image.mode.startswith("I;"):
        image = _eight_bits(image)
    has_alpha = image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info
    return image.convert("RGBA" if has_alpha else "RGB")


def _eight_bits(image: Any) -> Any:
    """Return greys of more than eight bits as eight: 16 bits by their range, others by theirs."""
    module = require("PIL.Image", "images", "pictures")
    values = np.asarray(image, dtype=np.float32)
    if not np.isfinite(values).all():
        raise UnreadableError("damaged: pixels that are no numbers")
    low, high = float(values.min()), float(values.max())
    if image.mode != "F" and low >= 0 and high <= 65535:
        low, high = 0.0, 65535.0
    scaled = (values - low) * (255 / (high - low)) if high > low else np.zeros_like(values)
    return module.fromarray(np.round(scaled).astype(np.uint8))


def _on_white(image: Any) -> Any:
    """Lay a picture with transparent parts on white."""
    if image.mode != "RGBA":
        return image
    module = require("PIL.Image", "images", "pictures")
    ground = module.new("RGB", image.size, _WHITE)
    ground.paste(image, mask=image.getchannel("A"))
    return ground


def _orientation(image: Any) -> int:
    """Return the EXIF orientation, 1 where it is missing or damaged."""
    try:
        value = image.getexif().get(_ORIENTATION, 1)
    except Exception:  # damaged EXIF data are no reason to do without the picture
        return 1
    return value if isinstance(value, int) else 1


def _upright(image: Any, orientation: int) -> Any:
    """Turn and mirror a picture as its EXIF orientation asks for."""
    steps = require("PIL.Image", "images", "pictures").Transpose
    how = {
        2: steps.FLIP_LEFT_RIGHT,
        3: steps.ROTATE_180,
        4: steps.FLIP_TOP_BOTTOM,
        5: steps.TRANSPOSE,
        6: steps.ROTATE_270,
        7: steps.TRANSVERSE,
        8: steps.ROTATE_90,
    }.get(orientation)
    return image if how is None else image.transpose(how)
