"""Pictures as PNG, for pages and figures."""

import io
from base64 import b64encode
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint8]


def png(pixels: Pixels) -> bytes:
    """Return pixels as a PNG file, lossless: (height, width) grey or (height, width, 3) colours."""
    from PIL import Image  # many figures have no picture

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def png_url(pixels: Pixels) -> str:
    """Return pixels, shaped as for ``png``, as a data address."""
    return f"data:image/png;base64,{b64encode(png(pixels)).decode()}"


def picture_url(picture: npt.NDArray[Any]) -> str:
    """Return a picture of a data set, uint8 (C, height, width) with 1 or 3 channels, likewise."""
    return _picture_url(picture.tobytes(), picture.shape)


@lru_cache(maxsize=1024)
def _picture_url(content: bytes, shape: tuple[int, ...]) -> str:
    picture = np.frombuffer(content, np.uint8).reshape(shape)
    return png_url(picture[0] if len(picture) == 1 else np.moveaxis(picture, 0, -1))
