"""Tokens as coloured chips with their numbers, batches of them, and what a vocabulary buys.

Chips are small pieces of HTML, because text should wrap and be readable by a screen reader. Equal
tokens have equal colours; what is unknown is dashed and says <unk>.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import cycle

import numpy as np
import numpy.typing as npt
import pandas as pd
import plotly.graph_objects as go

from tfm_core.data.vocabulary import SPECIALS
from tfm_core.inspect.text.bpe import SIZES
from tfm_core.inspect.text.tokenise import PaddedBatch, Token
from tfm_core.korean import lang
from tfm_core.plots.chart import bands_of, cells, chart
from tfm_core.plots.heads.attention import Theme
from tfm_core.plots.kinds import COLORWAY
from tfm_core.plots.palette import BLUE, CARDS, COLOURS, GREY, INKS, SCALES, VERMILION
from tfm_core.sentences import N_, Say

MAX_CHIPS = 400
_SYMBOLS = ("square", "diamond", "triangle-up", "star")


def chips(tokens: Sequence[Token], most: int = MAX_CHIPS, *, say: Say = str) -> str:
    """Return HTML: one chip a token, its number below it; after ``most`` how many more there are.

    A text of people's own is escaped. say: translates.
    """
    parts = [_chip(token, say) for token in tokens[:most]]
    more = len(tokens) - most
    rest = f'<span class="more">{say(N_("and {n:,} more", n=more))}</span>' if more > 0 else ""
    return f'{_STYLE}<div class="tfm-tokens">{"".join(parts)}{rest}</div>'


def sizes(curve: pd.DataFrame, k: int, others: Mapping[str, tuple[int, int]]) -> go.Figure:
    """Draw vocabulary size (x) against tokens of the text (y), of ``bpe.lengths``.

    k: the merges that are chosen. others: label -> size and tokens of another tokeniser.
    """
    points = {
        N_("after {k} merges", k=k): {"colour": VERMILION, "size": 13},
        **{
            escape(label, quote=False): {"colour": GREY, "size": 11, "symbol": symbol}
            for label, symbol in zip(others, cycle(_SYMBOLS), strict=False)
        },
    }
    places = [curve.loc[k, ["size", "length"]], *others.values()]
    table = pd.DataFrame(np.array(places), columns=["size", "length"])
    table["name"] = pd.Series([*points], dtype=object)
    figure = chart(
        curve,
        x="size",
        y={"length": N_("byte-pair encoding")},
        hover=["merges"],
        looks=[{"colour": BLUE, "width": 2.5}],
        marked=0,
        top=36,
    )
    marks = chart(SIZES.table(table), "points", x="size", y="length", colour="name", looks=points)
    return figure.add_traces(marks.data)


def _chip(token: Token, say: Say) -> str:
    colour = COLORWAY[token.id % len(COLORWAY)]
    words = escape(token.shown).replace("&lt;/w&gt;", '<i class="end">&lt;/w&gt;</i>')
    kind = "chip unknown" if token.is_unknown else "chip"
    hint = say(
        N_("number {n}, not in the vocabulary", n=token.id)
        if token.is_unknown
        else N_("number {n}", n=token.id)
    )
    shown = words if not token.is_unknown else f"{words}<s>&lt;unk&gt;</s>"
    if token.is_unknown and token.shown == "<unk>":
        shown = words
    return (
        f'<span class="{kind}" style="--c:{colour}" title="{hint}">'
        f"<b{lang(token.shown)}>{shown}</b><small>{token.id}</small></span>"
    )


_STYLE = f"""<style>
.tfm-tokens {{ display: flex; flex-wrap: wrap; gap: 0.25rem; font-size: 0.95rem;
  line-height: 1.25; }}
.tfm-tokens .chip {{ display: inline-flex; flex-direction: column; align-items: center;
  padding: 0.1rem 0.4rem; border-radius: 0.3rem; border: 1px solid var(--c); max-width: 100%;
  background: color-mix(in srgb, var(--c) 20%, transparent); overflow-wrap: anywhere; }}
.tfm-tokens .chip b {{ font-weight: 500; white-space: pre-wrap; }}
.tfm-tokens .chip small {{ font-size: 0.75rem; opacity: 0.75; font-variant-numeric: tabular-nums; }}
.tfm-tokens .end {{ opacity: 0.8; font-size: 0.75em; font-style: normal; }}
.tfm-tokens .unknown {{ border: 2px dashed {COLOURS["wrong"]}; background: none; }}
.tfm-tokens .unknown s {{ text-decoration: none; color: {COLOURS["wrong"]}; font-size: 0.75em;
  margin-left: 0.3em; }}
.tfm-tokens .more {{ align-self: center; opacity: 0.75; }}
</style>"""


_MAX_WORD = 7
_SPECIAL: dict[Theme, str] = {"light": "#f3dfb8", "dark": "#4a3d22"}


def ids(batch: PaddedBatch, theme: Theme = "light") -> go.Figure:
    """Draw the numbers of a batch, with their words where there is room."""
    is_special = (batch.ids < len(SPECIALS)) & batch.mask
    kinds = batch.mask.astype(np.int64) * 2 - is_special
    shades = (CARDS[theme], _SPECIAL[theme], SCALES[theme][1])
    return _cells(batch, kinds, shades, _labels(batch), theme)


def mask(batch: PaddedBatch, theme: Theme = "light") -> go.Figure:
    """Draw the padding mask: 1 where there is a token, 0 where there is padding."""
    shades = (CARDS[theme], SCALES[theme][1])
    labels = [[str(int(cell)) for cell in row] for row in batch.mask]
    return _cells(batch, batch.mask.astype(np.int64), shades, labels, theme)


def _labels(batch: PaddedBatch) -> list[list[str]]:
    wide = batch.ids.shape[1] <= 12
    return [
        [
            f"{id}<br>{_cut(token)}" if wide else str(id)
            for id, token in zip(row, words, strict=True)
        ]
        for row, words in zip(batch.ids.tolist(), batch.tokens, strict=True)
    ]


def _cut(token: str) -> str:
    return escape(token if len(token) <= _MAX_WORD else f"{token[: _MAX_WORD - 1]}…", quote=False)


def _cells(
    batch: PaddedBatch,
    values: npt.NDArray[np.int64],
    shades: Sequence[str],
    labels: list[list[str]],
    theme: Theme,
) -> go.Figure:
    n, length = batch.ids.shape
    texts = [
        [
            N_(
                "sentence {n}, place {place}<br>{token} = {id}<br>{kind}",
                n=b + 1,
                place=t + 1,
                token=escape(word, quote=False),
                id=int(batch.ids[b, t]),
                kind=N_("token") if batch.mask[b, t] else N_("padding: masked"),
            )
            for t, word in enumerate(words)
        ]
        for b, words in enumerate(batch.tokens)
    ]
    return cells(
        values,
        bands_of(shades),
        (0, len(shades) - 1),
        says=texts,
        texts=labels,
        gap=2,
        trace={"textfont": {"size": 11 if length <= 16 else 9, "color": INKS[theme]}},
        height=90 + 44 * n,
        x={
            "title": N_("position T = {length}", length=length),
            "names": [str(i + 1) for i in range(length)],
        },
        y={"title": N_("sentence B = {n}", n=n), "names": [str(i + 1) for i in range(n)]},
    )
