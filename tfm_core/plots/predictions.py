"""Predictions beside the truth: tokens marked right or wrong, pictures with their probabilities.

Drawn as small pieces of HTML, because text should wrap and be readable by a screen reader, and
pixels should stay pixels. What is wrong has a sign and an underline beside its colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tfm_core.plots.palette import COLOURS
from tfm_core.plots.png import picture_url

Verdict = Literal["right", "wrong", "missing"]
N_BARS = 3


@dataclass(frozen=True, slots=True)
class MarkedToken:
    """A predicted token, or one that should have come, and whether it is right."""

    token: str
    verdict: Verdict
    truth: str | None


def compare(predicted: Sequence[str], truth: Sequence[str]) -> list[MarkedToken]:
    """Compare a prediction with the truth, token by token; what is not there is ``missing``."""
    marked = []
    for index in range(max(len(predicted), len(truth))):
        true = truth[index] if index < len(truth) else None
        if index >= len(predicted):
            marked.append(MarkedToken(str(true), "missing", true))
        else:
            token = predicted[index]
            marked.append(MarkedToken(token, "right" if token == true else "wrong", true))
    return marked


def text_rows(
    items: Sequence[dict[str, Any]],
    tokens: Sequence[Sequence[str]],
    confidence: npt.NDArray[Any] | None = None,
    images: npt.NDArray[np.uint8] | None = None,
) -> str:
    """Return HTML: for each example its source, the truth, and the prediction token by token.

    items: ``tgt`` tokens, ``src_text``, ``tgt_text``. images: (P, C, height, width) uint8, where
    pictures are the sources. tokens: predicted, one list an example.
    confidence: (P, T) probability of each predicted token, said on hover.
    """
    rows = []
    for index, (item, predicted) in enumerate(zip(items, tokens, strict=False)):
        marked = compare(predicted, item["tgt"])
        sure = None if confidence is None else confidence[index]
        n_right = sum(mark.verdict == "right" for mark in marked)
        is_right = n_right == len(marked)
        verdict = "all right" if is_right else f"{n_right} of {len(marked)} right"
        if images is None:
            source = escape(item["src_text"])
        else:
            source = f'<img alt="{escape(item["tgt_text"])}" src="{picture_url(images[index])}">'
        rows.append(
            f'<div class="row"><div class="source">{source}</div>'
            f'<div class="truth">{escape(item["tgt_text"])}</div>'
            f'<div class="answer">{_tokens(marked, sure)}</div>'
            f'<div class="verdict {_class(is_right)}">{_sign(is_right)} {verdict}</div></div>'
        )
    head = "".join(
        f'<div class="{name}">{word}</div>'
        for name, word in (
            ("source", "Source" if images is None else "Picture"),
            ("truth", "Truth"),
            ("answer", "Prediction"),
            ("verdict", "Tokens"),
        )
    )
    return f'{_STYLE}<div class="tfm-texts"><div class="row head">{head}</div>{"".join(rows)}</div>'


def picture_cards(
    images: npt.NDArray[np.uint8],
    labels: Sequence[int],
    probabilities: npt.NDArray[Any],
    class_names: Sequence[str],
) -> str:
    """Return HTML: a card for each picture, with the likeliest classes as bars.

    images: (P, C, height, width) uint8. labels: P true classes. probabilities: (P, classes).
    """
    cards = []
    for image, label, row in zip(images, labels, probabilities, strict=False):
        best = [int(index) for index in np.argsort(-row.astype(np.float32))[:N_BARS]]
        is_right = best[0] == label
        bars = "".join(_bar(class_names[n], float(row[n]), n == label) for n in best)
        truth = escape(class_names[label])
        said = f"{_sign(is_right)} {truth}"
        if not is_right:
            said = f"{_sign(is_right)} {escape(class_names[best[0]])}, truly {truth}"
        cards.append(
            f'<div class="card {_class(is_right)}"><img alt="{truth}" src="{picture_url(image)}">'
            f'<div class="verdict {_class(is_right)}">{said}</div>{bars}</div>'
        )
    width = "narrow" if max(len(name) for name in class_names) <= 2 else "wide"
    return f'{_STYLE}<div class="tfm-pictures {width}">{"".join(cards)}</div>'


def _tokens(marked: Sequence[MarkedToken], sure: npt.NDArray[Any] | None) -> str:
    if not marked:
        return '<span class="t missing">nothing yet</span>'
    parts = []
    for index, mark in enumerate(marked):
        hint = {
            "right": "right",
            "wrong": f"wrong: should be {mark.truth}" if mark.truth else "wrong: one too many",
            "missing": "missing",
        }[mark.verdict]
        if sure is not None and mark.verdict != "missing" and index < len(sure):
            hint += f", probability {float(sure[index]):.0%}"
        sign = "" if mark.verdict == "right" else "<b>✗</b>"
        shown = "␣" if mark.token.isspace() else mark.token
        if mark.verdict == "missing":
            sign, shown = "", f"[{shown}]"
        parts.append(
            f'<span class="t {mark.verdict}" title="{escape(hint)}">{escape(shown)}{sign}</span>'
        )
    return "".join(parts)


def _bar(name: str, share: float, is_true: bool) -> str:
    kind = "right" if is_true else "other"
    return (
        f'<div class="bar"><span class="name">{escape(name)}</span><span class="track">'
        f'<span class="fill {kind}" style="width:{share:.1%}"></span></span>'
        f'<span class="share">{share:.0%}</span></div>'
    )


def _class(is_right: bool) -> str:
    return "right" if is_right else "wrong"


def _sign(is_right: bool) -> str:
    return "✓" if is_right else "✗"


_STYLE = f"""<style>
.tfm-texts {{ display: flex; flex-direction: column; font-size: 0.9rem; }}
.tfm-texts .row {{ display: grid; grid-template-columns: 2fr 2fr 3fr 7.5rem; gap: 0.25rem 1rem;
  padding: 0.5rem 0.25rem; border-bottom: 1px solid rgba(125, 133, 146, 0.25);
  align-items: start; }}
.tfm-texts .source img {{ width: 5rem; image-rendering: pixelated; display: block;
  border-radius: 0.25rem; background: #000; }}
.tfm-texts .head {{ font-size: 0.8rem; opacity: 0.75; }}
.tfm-texts .row > div {{ min-width: 0; overflow-wrap: anywhere; }}
.tfm-texts .t {{ display: inline-block; padding: 0 0.3em; margin: 0 0.15em 0.2em 0;
  border-radius: 0.25em; background: rgba(125, 133, 146, 0.14); }}
.tfm-texts .t.wrong {{ background: color-mix(in srgb, {COLOURS["wrong"]} 22%, transparent);
  text-decoration: underline wavy {COLOURS["wrong"]}; text-underline-offset: 0.2em; }}
.tfm-texts .t.wrong b {{ font-size: 0.75em; margin-left: 0.2em; }}
.tfm-texts .t.missing {{ background: none; opacity: 0.8; line-height: 1.3;
  border: 1px dashed rgba(125, 133, 146, 0.7); }}
.tfm-texts .verdict, .tfm-pictures .verdict {{ font-weight: 600; white-space: nowrap; }}
.tfm-texts .verdict.right, .tfm-pictures .verdict.right {{ color: {COLOURS["right"]}; }}
.tfm-texts .verdict.wrong, .tfm-pictures .verdict.wrong {{ color: {COLOURS["wrong"]}; }}
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
  .tfm-texts .head {{ display: none; }}
  .tfm-texts .row {{ grid-template-columns: 1fr; }}
  .tfm-texts .source::before {{ content: "Source "; opacity: 0.6; }}
  .tfm-texts .source:has(img)::before {{ content: "Picture "; }}
  .tfm-texts .truth::before {{ content: "Truth "; opacity: 0.6; }}
  .tfm-pictures, .tfm-pictures.narrow {{ grid-template-columns: repeat(3, 1fr); }}
}}
</style>"""
