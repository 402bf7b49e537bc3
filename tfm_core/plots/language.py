"""What a language model makes of a text: one coloured by surprise, and one that it has written.

Drawn as pieces of HTML, because text should wrap and be readable by a screen reader. What surprises
is underlined beside its colour, and every token says its number on hover.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from tfm_core.plots.palette import COLOURS, ORANGE

SURE, SURPRISED = 1.0, 5.0
"""Bits below which a token has no colour, and above which it has all of it and an underline."""


def surprise_text(tokens: Sequence[str], nats: npt.NDArray[Any], picked: int, gap: str) -> str:
    """Return HTML: a text whose tokens are coloured by how much they surprise, with the scale.

    nats: (T,) surprisal of each token. picked: the position of a token that gets a frame. gap: what
    stands between tokens (a space between words, nothing between characters).
    """
    spans = []
    for position, (token, loss) in enumerate(zip(tokens, nats, strict=True)):
        bits = float(loss) / np.log(2)
        classes = ["t"] + (["high"] if bits >= SURPRISED else [])
        classes += ["picked"] if position == picked else []
        hint = f"{position + 1}: {bits:.2f} bits ({float(loss):.2f} nats), p = {np.exp(-loss):.3g}"
        end = "<br>" if token == "\n" else gap
        spans.append(
            f'<span class="{" ".join(classes)}" style="--s:{_strength(bits):.0f}%" '
            f'title="{escape(hint)}">{escape(visible(token))}</span>{end}'
        )
    scale = "".join(
        f'<span class="t{" high" if bits >= SURPRISED else ""}" '
        f'style="--s:{_strength(bits):.0f}%">{bits:.0f}{"+" if bits >= SURPRISED else ""}</span>'
        for bits in (0, 1, 2, 3, 4, 5)
    )
    return (
        f'{_STYLE}<div class="tfm-gpt text">{"".join(spans)}</div>'
        f'<div class="tfm-gpt scale">Surprise in bits: {scale} (underlined from '
        f"{SURPRISED:.0f} on; 1 bit is a coin, {SURPRISED:.0f} bits one of 32)</div>"
    )


def written_text(tokens: Sequence[str], chances: Sequence[float], n_prompt: int, gap: str) -> str:
    """Return HTML: a prompt, and what was written behind it; the paler, the less likely it was.

    chances: the probability of each written token, said on hover.
    """
    parts = [
        f'<span class="given">{escape(visible(token))}</span>{"<br>" if token == chr(10) else gap}'
        for token in tokens[:n_prompt]
    ]
    for token, chance in zip(tokens[n_prompt:], chances, strict=True):
        parts.append(
            f'<span class="t own" title="p = {chance:.3g}" style="--s:{100 * chance:.0f}%">'
            f"{escape(visible(token))}</span>{'<br>' if token == chr(10) else gap}"
        )
    scale = " ".join(
        f'<span class="t own" style="--s:{share}%">{share} %</span>' for share in (10, 50, 90)
    )
    legend = (
        f'<div class="tfm-gpt scale">Underlined: written by the model, the likelier the stronger: '
        f"{scale}</div>"
    )
    shown = legend if len(tokens) > n_prompt else ""
    return f'{_STYLE}<div class="tfm-gpt text">{"".join(parts) or "–"}</div>{shown}'


def visible(token: str) -> str:
    """Return a token as it can be seen: a line break as ↵."""
    return "↵" if token == "\n" else token


def marked(token: str) -> str:
    """Return a token that stands by itself: the spaces that it begins with as ␣, too."""
    rest = token.lstrip(" ")
    return "␣" * (len(token) - len(rest)) + visible(rest)


def _strength(bits: float) -> float:
    """Return how much of the colour a token gets, in per cent."""
    return 70 * float(np.clip((bits - SURE) / (SURPRISED - SURE), 0, 1))


_STYLE = f"""<style>
.tfm-gpt {{ font-size: 0.95rem; line-height: 1.9; overflow-wrap: anywhere; }}
.tfm-gpt.text {{ white-space: pre-wrap; max-height: 26rem; overflow-y: auto; }}
.tfm-gpt.scale {{ font-size: 0.8rem; opacity: 0.85; margin-top: 0.5rem; }}
.tfm-gpt .t {{ border-radius: 0.2em; padding: 0.1em 0;
  background: color-mix(in srgb, {ORANGE} var(--s, 0%), transparent); }}
.tfm-gpt.scale .t {{ padding: 0.1em 0.5em; }}
.tfm-gpt .high {{ text-decoration: underline; text-decoration-thickness: 2px;
  text-underline-offset: 0.2em; }}
.tfm-gpt .picked {{ outline: 2px solid {COLOURS["query"]}; outline-offset: 1px; }}
.tfm-gpt .given {{ opacity: 0.65; }}
.tfm-gpt .own {{ border-bottom: 2px solid
  color-mix(in srgb, {COLOURS["decoder"]} var(--s, 0%), transparent); background: none; }}
</style>"""
