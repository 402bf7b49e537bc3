"""Pixels as PNG, and pictures with their likeliest classes beside the truth.

The cards are HTML, because text should wrap and be readable by a screen reader, and pixels should
stay pixels. Wrong answers have a sign beside their colour.
"""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Sequence
from functools import lru_cache
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from tfm_core.plots.palette import COLOURS
from tfm_core.sentences import N_, Say, whole_percent

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


N_BARS = 3


def picture_cards(
    images: npt.NDArray[np.uint8],
    labels: Sequence[int],
    probabilities: npt.NDArray[Any],
    class_names: Sequence[str],
    say: Say = str,
) -> str:
    """Return HTML: a card for each picture, with the likeliest classes as bars.

    images: (P, C, height, width) uint8. labels: P true classes. probabilities: (P, classes). say:
    translates.
    """
    cards = []
    for image, label, row in zip(images, labels, probabilities, strict=False):
        best = [int(index) for index in np.argsort(-row.astype(np.float32))[:N_BARS]]
        is_right = best[0] == label
        bars = "".join(_bar(class_names[n], float(row[n]), n == label) for n in best)
        truth = escape(class_names[label])
        verdict = f"{_sign(is_right)} {truth}"
        if not is_right:
            wrong = N_("{name}, truly {truth}", name=class_names[best[0]], truth=class_names[label])
            verdict = f"{_sign(is_right)} {escape(say(wrong))}"
        cards.append(
            f'<div class="card {_class(is_right)}"><img alt="{truth}" src="{picture_url(image)}">'
            f'<div class="verdict {_class(is_right)}">{verdict}</div>{bars}</div>'
        )
    width = "narrow" if max(len(name) for name in class_names) <= 2 else "wide"
    return f'{_STYLE}<div class="tfm-pictures {width}">{"".join(cards)}</div>'


def _bar(name: str, share: float, is_true: bool) -> str:
    kind = "right" if is_true else "other"
    return (
        f'<div class="bar"><span class="name">{escape(name)}</span><span class="track">'
        f'<span class="fill {kind}" style="width:{share:.1%}"></span></span>'
        f'<span class="share">{whole_percent(share)}</span></div>'
    )


def _class(is_right: bool) -> str:
    return "right" if is_right else "wrong"


def _sign(is_right: bool) -> str:
    return "✓" if is_right else "✗"


_STYLE = f"""<style>
.tfm-pictures .verdict {{ font-weight: 600; white-space: nowrap; }}
.tfm-pictures .verdict.right {{ color: {COLOURS["right"]}; }}
.tfm-pictures .verdict.wrong {{ color: {COLOURS["wrong"]}; }}
.tfm-pictures {{ display: grid; gap: 0.75rem;
  grid-template-columns: repeat(auto-fit, minmax(8rem, 1fr)); font-size: 0.8rem; }}
.tfm-pictures.narrow {{ grid-template-columns: repeat(auto-fit, minmax(6.5rem, 1fr)); gap: 0.5rem;
  font-size: 0.75rem; }}
.tfm-pictures .card {{ border: 1px solid rgba(125, 133, 146, 0.3); border-radius: 0.5rem;
  padding: 0.35rem; max-width: 11rem; }}
.tfm-pictures .card.wrong {{ border: 2px dashed {COLOURS["wrong"]}; }}
.tfm-pictures img {{ width: 100%; aspect-ratio: 1; image-rendering: pixelated; display: block;
  border-radius: 0.25rem; background: #000; }}
.tfm-pictures .verdict {{ margin: 0.35rem 0 0.2rem; white-space: normal; }}
.tfm-pictures .bar {{ display: grid; grid-template-columns: minmax(1.2em, auto) 1fr 2.6em;
  gap: 0.35rem; align-items: center; }}
.tfm-pictures .track {{ height: 0.5rem; background: rgba(125, 133, 146, 0.2);
  border-radius: 0.25rem; overflow: hidden; }}
.tfm-pictures .fill {{ display: block; height: 100%; background: #7d8592; }}
.tfm-pictures .fill.right {{ background: {COLOURS["right"]}; }}
.tfm-pictures .share {{ text-align: right; font-variant-numeric: tabular-nums; }}
.tfm-pictures .name {{ white-space: nowrap; overflow: hidden; text-overflow: ellipsis;
  max-width: 5em; }}
@media (max-width: 640px) {{
  .tfm-pictures, .tfm-pictures.narrow {{ grid-template-columns: repeat(3, 1fr); }}
}}
</style>"""
