"""Four shapes, drawn by us: the set of pictures that comes along, and a template for one's own."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import numpy.typing as npt
from PIL import Image

from tfm_core.data.own.pictures import Grid, Pictures

NAMES = ("circle", "cross", "square", "triangle")
N_EACH = 60
SIDE = 28


def shapes() -> Pictures:
    """Return 60 pictures of each shape, the same ones every time."""
    rng = np.random.default_rng(7)
    images = [_drawn(name, rng) for _n in range(N_EACH) for name in NAMES]
    labels = np.arange(len(images)) % len(NAMES)
    names = tuple(f"{NAMES[label]}/{at // len(NAMES):02}.png" for at, label in enumerate(labels))
    return Pictures(np.stack(images)[:, None], labels.astype(np.int64), NAMES, names)


def as_zip(pictures: Pictures) -> bytes:
    """Return pictures as a zip of folders by class, as it can be taken in again."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for image, name in zip(pictures.images, pictures.names, strict=True):
            png = io.BytesIO()
            Image.fromarray(np.moveaxis(image, 0, -1).squeeze()).save(png, "PNG")
            entry = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
            archive.writestr(entry, png.getvalue())
    return file.getvalue()


def _drawn(name: str, rng: np.random.Generator) -> Grid:
    """Return one shape of some size, place and tilt, as a line, with a little noise."""
    radius, tilt = rng.uniform(6, 10), rng.uniform(-0.25, 0.25)
    middle = SIDE / 2 - 0.5 + rng.uniform(-3, 3, 2)
    rows, columns = np.mgrid[:SIDE, :SIDE] - middle[:, None, None]
    y = rows * np.cos(tilt) - columns * np.sin(tilt)
    x = rows * np.sin(tilt) + columns * np.cos(tilt)
    line = np.clip(rng.uniform(1.1, 1.7) - np.abs(_distance(name, x, y, radius)) + 0.4, 0, 1)
    noise = rng.normal(0, 9, line.shape)
    grey: Grid = np.clip(line * rng.uniform(170, 250) + noise, 0, 255).astype(np.uint8)
    return grey


def _distance(
    name: str, x: npt.NDArray[np.float64], y: npt.NDArray[np.float64], radius: float
) -> npt.NDArray[np.float64]:
    """Return the distance of each pixel from the line of a shape around the origin."""
    if name == "circle":
        return np.asarray(np.hypot(x, y) - radius)
    if name == "square":
        return np.asarray(np.maximum(np.abs(x), np.abs(y)) - 0.85 * radius)
    if name == "triangle":
        sides = [
            x * np.cos(angle) + y * np.sin(angle)
            for angle in (np.pi / 2, np.pi * 7 / 6, np.pi * 11 / 6)
        ]
        return np.asarray(np.maximum.reduce(sides) - 0.6 * radius)
    arms = np.minimum(
        np.maximum(np.abs(x), np.abs(y) - radius), np.maximum(np.abs(y), np.abs(x) - radius)
    )
    return np.asarray(arms.clip(0))
