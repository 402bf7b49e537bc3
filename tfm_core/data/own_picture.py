"""A user's own picture, made into what a model was trained on; says what was done to it.

MNIST's digits are light on dark, scaled into 20 x 20 pixels and centred by their mass in 28 x 28
(LeCun et al. 1998, III.A). A photograph of a pencil stroke is none of that, so it is made so.
"""

from __future__ import annotations

import base64
import binascii
import io
import warnings
import zlib
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tfm_core.config.image_tasks import ImageTaskFacts
from tfm_core.sentences import N_, StudentError

if TYPE_CHECKING:
    from PIL import Image

MOST_BYTES = 10_000_000
_MOST_PIXELS = 40_000_000
_FAINT = 30  # of 255: paler than this is background
_INK_SHARE = 20 / 28  # of the side of a picture, that the longer side of a digit fills

Grey = npt.NDArray[np.uint8]


def picture_to_input(
    picture: bytes | npt.NDArray[np.uint8], facts: ImageTaskFacts
) -> tuple[npt.NDArray[np.uint8], list[str]]:
    """Return a picture as the task's pictures are, uint8 (C, H, W), and notes on what was done.

    picture: the bytes of a PNG, JPEG or other file, or uint8 (H, W), (H, W, 3) or (H, W, 4). Raises
    ValueError, in a sentence: not a picture, more than 10 MB, blank.
    """
    image = _opened(picture)
    notes: list[str] = []
    side = facts.image_size
    if facts.channels == 3:
        colours = _square(_flattened(image).convert("RGB"), side, notes)
        return np.asarray(colours).transpose(2, 0, 1).copy(), notes
    flat = _flattened(image)
    if flat.mode != "L":
        notes.append(N_("Made grey."))
    grey = np.asarray(flat.convert("L"))
    if _background(grey) > 127:
        grey = 255 - grey
        notes.append(N_("Inverted: the task's pictures are light on dark."))
    if int(grey.max()) - _background(grey) < _FAINT:
        raise StudentError("The picture is blank: nothing stands out from its background.")
    is_digit = all(name.isdigit() for name in facts.class_names)
    if grey.shape == (side, side):
        return grey[None].copy(), notes
    if is_digit:
        return _like_mnist(grey, side, notes)[None], notes
    from PIL import Image

    return np.asarray(_square(Image.fromarray(grey), side, notes))[None].copy(), notes


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
        raise StudentError(
            "The picture in the link cannot be read; perhaps a part of the link is missing. Draw "
            "or upload it again."
        )
    return np.frombuffer(raw, np.uint8).reshape(shape).copy()


def _opened(picture: bytes | npt.NDArray[np.uint8]) -> Image.Image:
    """Return the picture opened and turned upright. Raises ValueError."""
    from PIL import Image, ImageOps

    if isinstance(picture, np.ndarray):
        fits = picture.ndim == 2 or (picture.ndim == 3 and picture.shape[2] in (3, 4))
        if picture.dtype != np.uint8 or not fits or not picture.size:
            raise StudentError(
                "The picture is {dtype} {shape}, but must be uint8 (height, width) with 3 or 4 "
                "colour channels or none.",
                dtype=picture.dtype,
                shape=picture.shape,
            )
        return Image.fromarray(picture)
    if len(picture) > MOST_BYTES:
        raise StudentError(
            "The file has {size:.1f} MB, but at most {most} are read; make the picture smaller.",
            size=len(picture) / 1000000.0,
            most=MOST_BYTES // 10**6,
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a picture that Pillow finds large: judged below
            image = Image.open(io.BytesIO(picture))
            if image.width * image.height > _MOST_PIXELS:
                raise StudentError(
                    "The picture has {width} x {height} pixels, but at most {most_pixels} "
                    "million are read; make it smaller.",
                    width=image.width,
                    height=image.height,
                    most_pixels=_MOST_PIXELS // 10**6,
                )
            image.load()
            upright = ImageOps.exif_transpose(image)
    except (OSError, SyntaxError, EOFError, Image.DecompressionBombError):
        raise StudentError(
            "This file cannot be read as a picture; a PNG or JPEG file would be right."
        ) from None
    return upright if upright.mode in {"L", "RGB", "RGBA"} else upright.convert("RGBA")


def _flattened(image: Image.Image) -> Image.Image:
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


def _square(image: Image.Image, side: int, notes: list[str]) -> Image.Image:
    """Cut the middle square out and resize it."""
    from PIL import ImageOps

    if image.size == (side, side):
        return image
    if image.width != image.height:
        notes.append(N_("Cut to the square in the middle."))
    notes.append(
        N_(
            "Resized from {width} x {height} to {side} x {side} pixels.",
            width=image.width,
            height=image.height,
            side=side,
        )
    )
    return ImageOps.fit(image, (side, side))


def _like_mnist(grey: Grey, side: int, notes: list[str]) -> Grey:
    """Scale what stands out into the middle box, and centre it by its mass."""
    from PIL import Image

    height, width = grey.shape
    ground = _background(grey)
    ink = (grey.astype(np.float32) - ground).clip(0) * (255 / (int(grey.max()) - ground))
    rows, columns = (np.flatnonzero((ink > _FAINT).any(axis)) for axis in (1, 0))
    cut = ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    box = round(side * _INK_SHARE)
    factor = box / max(cut.shape)
    size = (max(1, round(cut.shape[1] * factor)), max(1, round(cut.shape[0] * factor)))
    small = np.asarray(Image.fromarray(cut.astype(np.uint8)).resize(size, Image.Resampling.BOX))
    mass = small.astype(np.float64)
    result = np.zeros((side, side), np.uint8)
    starts = []
    for axis, length in enumerate(small.shape):
        centre = (mass.sum(1 - axis) @ (np.arange(length) + 0.5)) / max(mass.sum(), 1.0)
        starts.append(min(max(round(side / 2 - centre), 0), side - length))
    top, left = starts
    result[top : top + small.shape[0], left : left + small.shape[1]] = small
    notes.append(
        N_(
            "Resized from {width} x {height} to {side} x {side} pixels, the digit {box} pixels "
            "long and centred, as in MNIST.",
            width=width,
            height=height,
            side=side,
            box=box,
        )
    )
    return result
