"""Upright RGB from every kind of picture, and a reason from every kind of wreck."""

from __future__ import annotations

import io
import resource
import struct
import time
import zlib

import numpy as np
import pytest
from numpy.testing import assert_allclose
from PIL import Image, ImageOps

from froda.images import reading
from froda.images.reading import UnreadableError, quiet, read_square, read_thumbnail

TOP = (200, 30, 40)
BOTTOM = (20, 60, 210)


def halves(width=64, height=64):
    """Red above blue, with a green corner at the upper left."""
    pixels = np.empty((height, width, 3), dtype=np.uint8)
    pixels[: height // 2], pixels[height // 2 :] = TOP, BOTTOM
    pixels[: height // 4, : width // 4] = (30, 200, 50)
    return Image.fromarray(pixels)


def assert_halves(pixels, tolerance=12):
    """The corner is where it belongs and so are the halves."""
    side = len(pixels)
    near, far = side // 10, side - side // 10
    places = {
        (near, near): (30, 200, 50),
        (near, far): TOP,
        (far, near): BOTTOM,
        (far, far): BOTTOM,
    }
    for place, colour in places.items():
        assert_allclose(pixels[place].astype(int), colour, atol=tolerance)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("suffix", ["jpg", "png", "tif", "webp"])
def test_exif_orientation(tmp_path, orientation, suffix):
    undo = {2: 2, 3: 3, 4: 4, 5: 5, 6: 8, 7: 7, 8: 6}
    exif = Image.Exif()
    exif[0x0112] = undo.get(orientation, 1)
    buffer = io.BytesIO()
    halves().save(buffer, format="PNG", exif=exif)
    stored = ImageOps.exif_transpose(Image.open(buffer))  # turned so that the tag turns it back
    exif[0x0112] = orientation
    path = tmp_path / f"a.{suffix}"
    stored.save(path, exif=exif.tobytes(), quality=95)
    assert_halves(read_square(path, 40, 1.0), 25)
    assert_halves(np.asarray(read_thumbnail(path, 40)), 25)


def test_damaged_exif_is_no_obstacle(tmp_path):
    path = tmp_path / "a.jpg"
    halves().save(path, exif=b"Exif\x00\x00MM\x00\x2a\xff\xff\xff\xff", quality=95)
    with quiet():
        assert_halves(read_square(path, 40, 1.0), 25)


MODES = {
    "RGB": lambda image: image,
    "RGBA": lambda image: image.convert("RGBA"),
    "CMYK": lambda image: image.convert("CMYK"),
    "YCbCr": lambda image: image.convert("YCbCr"),
    "palette": lambda image: image.quantize(16),
}


@pytest.mark.parametrize("mode", MODES)
def test_colour_modes(tmp_path, mode):
    path = tmp_path / ("a.tif" if mode in ("CMYK", "YCbCr") else "a.png")
    MODES[mode](halves()).save(path)
    assert_halves(read_square(path, 40, 1.0))


def test_cmyk_jpeg(tmp_path):
    path = tmp_path / "a.jpg"
    halves().convert("CMYK").save(path, quality=95)
    assert_halves(read_square(path, 40, 1.0), 40)


@pytest.mark.parametrize("suffix", ["gif", "bmp", "webp", "ppm"])
def test_formats(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    halves().save(path, **({"lossless": True} if suffix == "webp" else {}))
    assert_halves(read_square(path, 40, 1.0))


def test_contents_count_and_not_the_name(tmp_path):
    path = tmp_path / "a.jpg"
    halves().save(path, format="PNG")
    assert_halves(read_square(path, 40, 1.0))


def ramp(top, dtype):
    return np.linspace(0, top, 64 * 64).reshape(64, 64).astype(dtype)


GREYS = {
    "L": lambda: Image.fromarray(ramp(255, np.uint8)),
    "16 bits": lambda: Image.fromarray(ramp(65535, np.uint16)),
    "32 bits": lambda: Image.fromarray(ramp(10**9, np.int32)),
    "floats": lambda: Image.fromarray(ramp(1, np.float32)),
}


@pytest.mark.parametrize("mode", GREYS)
def test_greys_keep_their_range(tmp_path, mode):
    path = tmp_path / "a.tif"
    GREYS[mode]().save(path)
    pixels = read_square(path, 64, 1.0).astype(int)
    assert (pixels[..., 0] == pixels[..., 1]).all()
    assert_allclose(pixels[..., 0], ramp(255, np.float64), atol=1.5)


def test_dark_16_bits_stay_dark(tmp_path):
    Image.fromarray(np.full((8, 8), 6553, dtype=np.uint16)).save(tmp_path / "a.png")
    assert_allclose(read_square(tmp_path / "a.png", 8, 1.0).astype(int), 25.5, atol=1)


def test_black_and_white(tmp_path):
    pixels = np.zeros((64, 64), dtype=np.uint8)
    pixels[:32] = 255
    Image.fromarray(pixels).convert("1").save(tmp_path / "a.png")
    square = read_square(tmp_path / "a.png", 40, 1.0)
    assert square[:15].min() > 240
    assert square[25:].max() < 15


TRANSPARENT = {
    "RGBA": lambda: Image.new("RGBA", (16, 16), (0, 0, 0, 0)),
    "LA": lambda: Image.new("LA", (16, 16), (0, 0)),
    "RGBA half": lambda: Image.new("RGBA", (16, 16), (0, 0, 0, 128)),
}


@pytest.mark.parametrize("mode", TRANSPARENT)
def test_transparent_parts_are_white(tmp_path, mode):
    TRANSPARENT[mode]().save(tmp_path / "a.png")
    expected = 127 if "half" in mode else 255
    assert_allclose(read_square(tmp_path / "a.png", 8, 1.0).astype(int), expected, atol=1)


@pytest.mark.parametrize("mode", ["P", "L", "RGB"])
def test_a_transparent_colour_is_white(tmp_path, mode):
    image = Image.new(mode, (16, 16), 0)
    image.save(tmp_path / "a.png", transparency=(0, 0, 0) if mode == "RGB" else 0)
    assert (read_square(tmp_path / "a.png", 8, 1.0) == 255).all()


def test_the_square_is_central(tmp_path):
    pixels = np.zeros((40, 100, 3), dtype=np.uint8)
    pixels[5:35, 35:65] = 255
    Image.fromarray(pixels).save(tmp_path / "a.png")
    assert (read_square(tmp_path / "a.png", 30, 0.75) == 255).all()


def test_large_jpegs_are_reduced_while_decoding_and_look_alike(tmp_path):
    image = halves(1600, 1600).resize((1600, 1600))
    image.save(tmp_path / "a.jpg", quality=95)
    image.save(tmp_path / "a.png")
    fast = read_square(tmp_path / "a.jpg", 64, 0.875).astype(int)
    assert abs(fast - read_square(tmp_path / "a.png", 64, 0.875)).mean() < 2


@pytest.mark.parametrize("size", [(1, 1), (1, 500), (500, 1), (3, 2)])
def test_tiny_and_thin_pictures(tmp_path, size):
    Image.new("RGB", size, (10, 200, 30)).save(tmp_path / "a.png")
    assert_allclose(read_square(tmp_path / "a.png", 16, 0.875)[8, 8].astype(int), (10, 200, 30))
    assert max(read_thumbnail(tmp_path / "a.png", 20).size) == 20


def write_bomb(path, side):
    """Write a valid black PNG of one bit a pixel without holding it in memory."""

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    packer = zlib.compressobj(1)
    row = bytes(1 + -(-side // 8))
    packed = b"".join(packer.compress(row) for _ in range(side)) + packer.flush()
    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("side", [30_000, 12_000, 9_500])
def test_a_huge_picture_costs_neither_memory_nor_time(tmp_path, side):
    write_bomb(tmp_path / "a.png", side)
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with quiet(), pytest.raises(UnreadableError, match="huge: more than 89 million pixels"):
        read_square(tmp_path / "a.png", 32, 0.875)
    assert time.process_time() - began < 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000  # kilobytes


def test_a_huge_file_is_not_read(tmp_path, monkeypatch):
    halves().save(tmp_path / "a.png")
    monkeypatch.setattr(reading, "MAX_BYTES", 100)
    with pytest.raises(UnreadableError, match="huge: more than"):
        read_square(tmp_path / "a.png", 32, 0.875)


def wreck(path, kind):
    """Write a file that gives no picture."""
    buffer = io.BytesIO()
    noise = np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)
    Image.fromarray(noise).save(buffer, format="PNG" if "png" in kind else "JPEG")
    data = buffer.getvalue()
    if "truncated" in kind:
        data = data[: len(data) // 2]
    elif "flipped" in kind:
        data = data[:60] + bytes(255 - byte for byte in data[60:])
    elif kind == "text":
        data = b"this is no picture\n" * 20
    elif kind == "header":
        data = data[:20]
    elif kind == "eps":
        data = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n"
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("truncated jpeg", "damaged: .*truncated"),
        ("truncated png", "damaged"),
        ("flipped png", "damaged"),
        ("text", "no picture of a format"),
        ("header", "no picture of a format|damaged"),
        ("eps", "no picture of a format"),
    ],
)
def test_wrecks_have_a_reason(tmp_path, kind, reason):
    path = tmp_path / "it's \n a.jpg"
    wreck(path, kind)
    with quiet(), pytest.raises(UnreadableError, match=reason) as caught:
        read_square(path, 32, 0.875)
    assert str(tmp_path) not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_gone_has_a_reason(tmp_path):
    with pytest.raises(UnreadableError, match="no such file"):
        read_square(tmp_path / "a.jpg", 32, 0.875)
