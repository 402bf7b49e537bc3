"""What a folder says of the pictures that its model reads: size, pixels, and names of classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tfm_core.choices.config.image_tasks import MARKUP, ImageTaskFacts
from tfm_core.choices.config.image_tasks import MAX_NAME as MAX_LETTERS
from tfm_core.data.image_data import PHOTOGRAPHS
from tfm_core.data.opened_folder import CONFIG, Unopenable, json_in
from tfm_core.data.user_picture import picture_to_input
from tfm_core.reading import is_number, is_whole
from tfm_core.sentences import N_, Sentence

PREPROCESSOR = "preprocessor_config.json"
_USUAL = 0.5
"""Mean and deviation where no file gives them, as in the first Vision Transformer."""


@dataclass(frozen=True, slots=True)
class Pixels:
    """Mean and deviation of each channel, of pixels from 0 to 1. note: what was assumed."""

    mean: tuple[float, ...]
    std: tuple[float, ...]
    note: Sentence | None = None


def pixels_of(folder: Path, *, image_size: int, channels: int) -> Pixels:
    """Return how a folder's model wants its pixels. Raises Unopenable for what cannot be so."""
    if not (folder / PREPROCESSOR).exists():
        note = N_(
            "Without {name}, pixels get mean {usual} and deviation {usual}.",
            name=PREPROCESSOR,
            usual=_USUAL,
        )
        return Pixels((_USUAL,) * channels, (_USUAL,) * channels, note)
    values = json_in(folder, PREPROCESSOR)
    size = _size(values)
    if size is not None and size != image_size:
        raise Unopenable(
            "{name} makes pictures of {found} pixels, but the model reads {image_size}.",
            name=PREPROCESSOR,
            found=size,
            image_size=image_size,
        )
    factor = 1.0
    if _is_on(values, "do_rescale"):
        factor = values.get("rescale_factor", 1 / 255)
        if not is_number(factor, 1e-6, 1e3):
            raise _invalid("rescale_factor", factor)
    mean, std = [0.0] * channels, [1.0] * channels
    if _is_on(values, "do_normalize"):
        mean = _channels(values, "image_mean", channels, -1e3)
        std = _channels(values, "image_std", channels, 1e-3)
    scale = 255 * factor  # of pixels from 0 to 1, as we have them
    return Pixels(tuple(value / scale for value in mean), tuple(value / scale for value in std))


def class_names(config: Mapping[str, Any], n: int) -> tuple[str, ...]:
    """Return the names of n classes, each different, as a page may show them.

    Raises Unopenable where id2label has no name for one of them.
    """
    given = config.get("id2label")
    if given is None:
        return tuple(map(str, range(n)))
    names: list[str] = []
    known: set[str] = set()
    for number in range(n):
        label = given.get(str(number)) if isinstance(given, dict) else None
        if not isinstance(label, str):
            raise Unopenable(
                "id2label in {file} has no name for class {number}.", file=CONFIG, number=number
            )
        name = _shown(label) or str(number)
        if name in known:
            name = f"{name[: MAX_LETTERS - 8]} {number}"
        known.add(name)
        names.append(name)
    return tuple(names)


def photographs(facts: ImageTaskFacts) -> npt.NDArray[np.uint8]:
    """Return the app's photographs as a model reads them, uint8 (N, C, H, W)."""
    return np.stack([picture_to_input(photograph, facts)[0] for photograph in _photographs()])


@lru_cache(maxsize=1)
def _photographs() -> tuple[bytes, ...]:
    return tuple(path.read_bytes() for path in PHOTOGRAPHS)


def _shown(label: str) -> str:
    """Return a label without marks of Markdown, cut to what fits a page."""
    plain = "".join(
        " " if letter in MARKUP or not letter.isprintable() else letter for letter in label
    )
    plain = " ".join(plain.split())
    return plain if len(plain) <= MAX_LETTERS else f"{plain[: MAX_LETTERS - 1]}…"


def _size(values: Mapping[str, Any]) -> int | None:
    """Return the side of the pictures that a preprocessor makes; None where it depends on them."""
    name = "crop_size" if values.get("do_center_crop") is True else "size"
    size = values.get(name)
    if isinstance(size, dict):
        height, width = size.get("height"), size.get("width")
        if height is None and width is None:
            return None
        if height != width:
            raise _invalid(name, size)
        size = height
    if size is None or (name == "size" and values.get("do_resize") is False):
        return None
    if not is_whole(size, 1, 2**16):
        raise _invalid(name, size)
    return size


def _is_on(values: Mapping[str, Any], name: str) -> bool:
    value = values.get(name, True)
    if not isinstance(value, bool):
        raise _invalid(name, value)
    return value


def _channels(values: Mapping[str, Any], name: str, n: int, least: float) -> list[float]:
    found = values.get(name, [_USUAL] * n)
    numbers = found if isinstance(found, list) else [found] * n
    if len(numbers) != n or not all(is_number(number, least, 1e3) for number in numbers):
        raise _invalid(name, found)
    return [float(number) for number in numbers]


def _invalid(name: str, value: object) -> Unopenable:
    return Unopenable(
        "{file} has no valid {name}: {value}.",
        file=PREPROCESSOR,
        name=name,
        value=str(value)[:40],
    )
