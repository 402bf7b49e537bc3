"""A custom picture, converted to the form of the training pictures, with notes on the changes.

MNIST's digits are light on dark, scaled into 20 x 20 pixels and centred by their mass in 28 x 28
(LeCun et al. 1998, III.A); a photograph of a pencil stroke is converted to that.
"""

from __future__ import annotations

import base64
import binascii
import io
import re
import struct
import warnings
import zlib
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tfm_core.choices.config.image_tasks import ImageTaskFacts
from tfm_core.sentences import N_, Paragraph, Sentence, StudentError

if TYPE_CHECKING:
    from PIL import Image

MAX_BYTES = 10_000_000
_MAX_PIXELS = 12_000_000
_MAX_PIXELS_JPEG = 60_000_000  # it is read at a fraction of its size
_LARGE = 1_024  # pixels of the shorter side, beyond which a picture is made smaller at once
_FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF")  # some others start programs to be read
_FAINT = 30  # of 255: paler than this is background
_INK_SHARE = 20 / 28  # of the side of a picture, that the longer side of a digit fills

Grey = npt.NDArray[np.uint8]
Size = tuple[int, int]
"""Width and height."""


def picture_to_input(
    picture: bytes | npt.NDArray[np.uint8], facts: ImageTaskFacts
) -> tuple[npt.NDArray[np.uint8], list[str]]:
    """Return a picture as the task's, uint8 (C, H, W), and notes on the changes.

    picture: the bytes of a PNG, JPEG or other file, or uint8 (H, W), (H, W, 3) or (H, W, 4). Raises
    ValueError: not a picture, more than 10 MB, blank.
    """
    image, size = opened(picture)
    notes: list[str] = []
    side = facts.image_size
    if (n_bits := image.info.get("n_bits", 8)) > 8:
        notes.append(N_("Stretched from {n} bits to 8.", n=n_bits))
    if facts.channels == 3:
        colours = _square(flattened(image).convert("RGB"), side, notes, size)
        return np.asarray(colours).transpose(2, 0, 1).copy(), notes
    flat = flattened(image)
    if flat.mode != "L":
        notes.append(N_("Converted to greyscale."))
    grey = np.asarray(flat.convert("L"))
    if facts.ground != "any" and (_background(grey) > 127) != (facts.ground == "bright"):
        grey = 255 - grey
        words = {
            "dark": N_("Inverted to light on dark, as in the task."),
            "bright": N_("Inverted to dark on light, as in the task."),
        }
        notes.append(words[facts.ground])
    ground = _background(grey)
    if max(int(grey.max()) - ground, ground - int(grey.min())) < _FAINT:
        raise StudentError("The picture is blank.")
    is_digit = facts.ground == "dark" and all(name.isdigit() for name in facts.class_names)
    if grey.shape == (side, side):
        return grey[None].copy(), notes
    if is_digit:
        return _like_mnist(grey, side, notes, size)[None], notes
    from PIL import Image

    return np.asarray(_square(Image.fromarray(grey), side, notes, size))[None].copy(), notes


def to_text(picture: npt.NDArray[np.uint8]) -> str:
    """Return a picture uint8 (C, H, W) as letters for a link, without loss: zlib and base64url."""
    return base64.urlsafe_b64encode(zlib.compress(picture.tobytes(), 9)).decode().rstrip("=")


def from_text(text: str, facts: ImageTaskFacts) -> npt.NDArray[np.uint8]:
    """Return the picture of ``to_text``. Raises ValueError where it is none of this task's."""
    shape = (facts.channels, facts.image_size, facts.image_size)
    size = facts.channels * facts.image_size**2
    try:
        packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        raw = zlib.decompressobj().decompress(packed, size + 1)
    except (binascii.Error, ValueError, zlib.error):
        raw = b""
    if len(raw) != size:
        raise StudentError("The link's picture is incomplete. Draw or upload it again.")
    return np.frombuffer(raw, np.uint8).reshape(shape).copy()


def opened(picture: bytes | npt.NDArray[np.uint8]) -> tuple[Image.Image, Size]:
    """Return the picture opened and turned upright, and its size before it was made smaller.

    Raises ValueError.
    """
    from PIL import Image, ImageOps

    if isinstance(picture, np.ndarray):
        fits = picture.ndim == 2 or (picture.ndim == 3 and picture.shape[2] in (3, 4))
        if picture.dtype != np.uint8 or not fits or not picture.size:
            raise StudentError(Paragraph("data/array", dtype=picture.dtype, shape=picture.shape))
        image = Image.fromarray(picture)
        return image, image.size
    if len(picture) > MAX_BYTES:
        raise StudentError(
            "The file has {size:.1f} MB; the limit is {most} MB.",
            size=len(picture) / 1000000.0,
            most=MAX_BYTES // 10**6,
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a picture that Pillow finds large: judged below
            image = Image.open(io.BytesIO(picture), formats=_FORMATS)
            # the header is read, no pixel yet
            limit = _MAX_PIXELS_JPEG if image.format == "JPEG" else _MAX_PIXELS
            if image.width * image.height > limit:
                raise StudentError(
                    "The picture has {width} x {height} pixels; the limit is {most_pixels} "
                    "million.",
                    width=image.width,
                    height=image.height,
                    most_pixels=limit // 10**6,
                )
            size = image.size
            image.draft(None, (_LARGE, _LARGE))  # of a JPEG, as small as it may be decoded
            image.load()
            n_bits = 8
            if image.mode.startswith("I"):  # Pillow would cut what is brighter than 255
                values = np.asarray(image).astype(np.int64).clip(0)
                n_bits = max(8, int(values.max()).bit_length())  # a scanner stores 12 of them in 16
                image = Image.fromarray((values >> (n_bits - 8)).astype(np.uint8))
            factor = min(image.size) // _LARGE  # no task's pictures are nearly as large
            is_large = factor > 1 and image.mode not in {"P", "1"}
            shrunk = image.reduce(factor) if is_large else image
            upright = ImageOps.exif_transpose(shrunk)
            if (upright.width > upright.height) != (shrunk.width > shrunk.height):
                size = size[::-1]  # it lay on its side
    except StudentError:
        raise
    except Image.DecompressionBombError:
        raise StudentError(
            "The picture has too many pixels; the limit is {most_pixels} million.",
            most_pixels=_MAX_PIXELS // 10**6,
        ) from None
    except _DAMAGE:
        raise StudentError(why_not(picture)) from None
    is_plain = upright.mode in {"L", "RGB", "RGBA"}
    upright = upright if is_plain else upright.convert("RGBA")
    upright.info["n_bits"] = n_bits
    return upright, size


_DAMAGE = (OSError, SyntaxError, EOFError, ValueError, TypeError, KeyError, struct.error)
"""What Pillow raises on a file that is damaged or forged."""


_SIGNATURES = {
    "PNG": b"\x89PNG\r\n\x1a\n",
    "JPEG": b"\xff\xd8\xff",
    "GIF": b"GIF8",
    "WebP": b"RIFF",
    "BMP": b"BM",
}
_FOREIGN = (
    ("TIFF", re.compile(rb"II\*\0|MM\0\*")),
    ("HEIC", re.compile(rb".{4}ftyp(heic|heix|mif1|msf1)", re.DOTALL)),
    ("AVIF", re.compile(rb".{4}ftypavi", re.DOTALL)),
    (
        "SVG",
        re.compile(
            rb"\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)?(<!DOCTYPE svg[^>]*>\s*)?<svg", re.DOTALL
        ),
    ),
    ("PDF", re.compile(rb"%PDF-")),
)


def looks_like_picture(begin: bytes) -> bool:
    """Return whether a file begins like a picture that is read here."""
    return bool(_format_of(begin))


def why_not(content: bytes) -> Sentence:
    """Return why a file is not a picture, judged by its first bytes."""
    if not content.strip(b"\0"):
        return N_("This file is empty.")
    kind = _format_of(content)
    if kind and _is_cut_off(kind, content):
        return N_("This {kind} file is cut off. Copy it again.", kind=kind)
    if kind:
        return N_("This {kind} file is damaged. Copy it again.", kind=kind)
    for foreign, beginning in _FOREIGN:
        if beginning.match(content):
            return N_("{kind} files are not supported. Save it as PNG or JPEG.", kind=foreign)
    if re.match(rb"\s*<(!doctype html|html)", content, re.IGNORECASE):
        return N_("This is a web page, not a picture.")
    if _is_text(content):
        return N_("This is a text file, not a picture.")
    return N_("This is not a picture. Use a PNG or JPEG file.")


def _format_of(content: bytes) -> str:
    """Return the format that a file begins like, "" for none that is read here."""
    kind = next((kind for kind, sign in _SIGNATURES.items() if content.startswith(sign)), "")
    if kind == "WebP" and content[8:12] != b"WEBP":
        return ""
    return "" if kind == "BMP" and content[6:10] != bytes(4) else kind


def _is_cut_off(kind: str, content: bytes) -> bool:
    """Return whether the end of a picture is missing, as its format marks or counts it."""
    if kind == "PNG":
        return b"IHDR" in content[:16] and b"IEND" not in content[-64:]
    if kind == "JPEG":
        return b"\xff\xd9" not in content[-64:]
    if kind == "GIF":
        return content[-1:] != b";"
    at = 4 if kind == "WebP" else 2
    return int.from_bytes(content[at : at + 4], "little") > len(content)


def _is_text(content: bytes) -> bool:
    """Return whether a file begins like text, in UTF-8 or UTF-16."""
    begin = content[:4096]
    if begin.startswith((b"\xff\xfe", b"\xfe\xff")):
        return True
    try:
        text = begin[: len(begin) - 3 * (len(content) > 4096)].decode()
    except UnicodeDecodeError:
        text = begin.decode("latin-1")
        if sum(character.isascii() for character in text) < 0.8 * len(text):
            return False
    return all(character.isprintable() or character.isspace() for character in text)


def flattened(image: Image.Image) -> Image.Image:
    """Return the picture without transparency, on a ground that its strokes stand out from."""
    from PIL import Image

    if image.mode != "RGBA":
        return image
    alpha = np.asarray(image)[..., 3]
    visible = np.asarray(image.convert("L"))[alpha > 127]
    is_bright = bool(visible.size) and float(visible.mean()) > 127
    is_clear = bool((alpha < 128).any())
    ground = Image.new("RGBA", image.size, "black" if is_bright and is_clear else "white")
    return Image.alpha_composite(ground, image).convert("RGB")


def _background(grey: Grey) -> int:
    """Return the usual brightness along the border."""
    border = np.concatenate([grey[0], grey[-1], grey[:, 0], grey[:, -1]])
    return int(np.median(border))


def _square(image: Image.Image, side: int, notes: list[str], size: Size) -> Image.Image:
    """Cut the middle square out and resize it; ``size`` is that of the picture as it came."""
    from PIL import ImageOps

    if image.size == (side, side):
        return image
    if image.width != image.height:
        notes.append(N_("Cropped to the centre square."))
    notes.append(
        N_(
            "Resized from {width} x {height} to {side} x {side} pixels.",
            width=size[0],
            height=size[1],
            side=side,
        )
    )
    return ImageOps.fit(image, (side, side))


def _like_mnist(grey: Grey, side: int, notes: list[str], size: Size) -> Grey:
    """Scale the digit into the middle box and centre it by its mass.

    size: of the picture as it came.
    """
    from PIL import Image

    ground = _background(grey)
    ink = (grey.astype(np.float32) - ground).clip(0) * (255 / (int(grey.max()) - ground))
    rows, columns = (np.flatnonzero((ink > _FAINT).any(axis)) for axis in (1, 0))
    cut = ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    box = round(side * _INK_SHARE)
    factor = box / max(cut.shape)
    fitted = (max(1, round(cut.shape[1] * factor)), max(1, round(cut.shape[0] * factor)))
    small = np.asarray(Image.fromarray(cut.astype(np.uint8)).resize(fitted, Image.Resampling.BOX))
    mass = small.astype(np.float64)
    result = np.zeros((side, side), np.uint8)
    starts = []
    for axis, length in enumerate(small.shape):
        centre = (mass.sum(1 - axis) @ (np.arange(length) + 0.5)) / max(mass.sum(), 1.0)
        starts.append(min(max(round(side / 2 - centre), 0), side - length))
    top, left = starts
    result[top : top + small.shape[0], left : left + small.shape[1]] = small
    notes.append(Paragraph("data/resized-digit", width=size[0], height=size[1], side=side))
    return result
