"""Tokens as coloured chips with their numbers, batches of them, and their embeddings.

Chips are small pieces of HTML, because text should wrap and be readable by a screen reader. Equal
tokens have equal colours; what is unknown is dashed and says <unk>.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.data.vocabulary import SPECIALS
from tfm_core.inspect.text.tokenise import PaddedBatch, Token
from tfm_core.korean import lang
from tfm_core.plots.chart import bands_of, cells, texts_of
from tfm_core.plots.heads.attention import Theme, short
from tfm_core.plots.kinds import COLORWAY
from tfm_core.plots.palette import CARDS, COLOURS, INKS, SCALES
from tfm_core.probe.types import Floats
from tfm_core.sentences import N_, Say

MAX_CHIPS = 400


def chips(tokens: Sequence[Token], max_chips: int = MAX_CHIPS, *, say: Say = str) -> str:
    """Return HTML: one chip a token, its number below it; after ``most`` how many more there are.

    A text of people's own is escaped. say: translates.
    """
    parts = [_chip(token, say) for token in tokens[:max_chips]]
    more = len(tokens) - max_chips
    rest = f'<span class="more">{say(N_("and {n:,} more", n=more))}</span>' if more > 0 else ""
    return f'{_STYLE}<div class="tfm-tokens">{"".join(parts)}{rest}</div>'


def _chip(token: Token, say: Say) -> str:
    colour = COLORWAY[token.id % len(COLORWAY)]
    words = escape(token.shown).replace("&lt;/w&gt;", '<i class="end">&lt;/w&gt;</i>')
    kind = "chip unknown" if token.is_unknown else "chip"
    hint = say(
        N_("number {n} (not in the vocabulary)", n=token.id)
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
    labels = batch.ids.astype(str).tolist()
    if batch.ids.shape[1] <= 12:
        labels = [
            [f"{id}<br>{_cut(token)}" for id, token in zip(row, words, strict=True)]
            for row, words in zip(labels, batch.tokens, strict=True)
        ]
    return _cells(batch, kinds, (CARDS[theme], _SPECIAL[theme], SCALES[theme][1]), labels, theme)


def mask(batch: PaddedBatch, theme: Theme = "light") -> go.Figure:
    """Draw the padding mask: 1 where there is a token, 0 where there is padding."""
    ones = batch.mask.astype(np.int64)
    return _cells(batch, ones, (CARDS[theme], SCALES[theme][1]), ones.astype(str).tolist(), theme)


def _cut(token: str) -> str:
    return escape(token if len(token) <= _MAX_WORD else f"{token[: _MAX_WORD - 1]}…", quote=False)


def _cells(
    batch: PaddedBatch,
    values: npt.NDArray[np.int64],
    shades: Sequence[str],
    labels: list[list[str]],
    theme: Theme,
) -> go.Figure:
    rows, columns = (np.arange(1, n + 1).tolist() for n in batch.ids.shape)
    says = texts_of(
        N_("sentence {n}, position {place}<br>{token} = {id}<br>{kind}"),
        rows={"n": rows},
        columns={"place": columns},
        token=[[escape(word, quote=False) for word in words] for words in batch.tokens],
        id=batch.ids,
        kind=np.array([N_("padding: masked"), N_("token")], object)[batch.mask.astype(int)],
    )
    return cells(
        values,
        bands_of(shades),
        (0, len(shades) - 1),
        says=says,
        texts=labels,
        gap=2,
        trace={"textfont": {"size": 11 if len(columns) <= 16 else 9, "color": INKS[theme]}},
        height=90 + 44 * len(rows),
        x={
            "title": N_("position T = {length}", length=len(columns)),
            "names": list(map(str, columns)),
        },
        y={"title": N_("sentence B = {n}", n=len(rows)), "names": list(map(str, rows))},
    )


_DIMENSIONS_SHOWN = 8


def likeness(like: Floats, tokens: Sequence[str], order: Sequence[int]) -> go.Figure:
    """Draw the cosines (V, V) of all words with all, in an order."""
    shown = like[np.ix_(order, order)]
    names = [escape(tokens[index], quote=False) for index in order]
    axis = {"names": [short(tokens[index]) for index in order], "constrain": "domain"}
    return cells(
        shown,
        "signed",
        (-1, 1),
        says=N_("%{y} and %{x}<br>cosine %{z:.4f}<extra></extra>"),
        trace={"x": names, "y": names},
        legend=N_("cosine  "),
        gap=0,
        height=500,
        top=52,
        x={"title": N_("word"), "tickangle": -90, **axis},
        y={"title": N_("word"), "scaleanchor": "x", "constraintoward": "top", **axis},
    )


def lookup(
    table: Floats,
    id: int,
    tokens: Sequence[str],
    say: Say = str,
) -> go.Figure:
    """Draw a window of the table (V, D) around row ``id``, the one-hot beside it.

    The first column is the one-hot vector, the others are the first dimensions of the table. say:
    translates.
    """
    first = max(0, min(id - 3, len(table) - 7))
    rows = range(first, min(len(table), first + 7))
    shown = table[rows.start : rows.stop, :_DIMENSIONS_SHOWN]
    one_hot = np.array([[float(row == id)] for row in rows])
    top = float(np.abs(shown).max())
    values = np.concatenate([one_hot * top, np.full((len(rows), 1), np.nan), shown], 1)
    texts = [
        [f"{hot[0]:.0f}", "", *(f"{v:z.2f}" for v in row)]
        for hot, row in zip(one_hot, shown, strict=True)
    ]
    names = [say(N_("one-hot")), "", *(str(n + 1) for n in range(shown.shape[1]))]
    return cells(
        values,
        "signed",
        (-top, top),
        says="%{y}<br>%{x}: %{text}<extra></extra>",
        texts=texts,
        height=300,
        x={
            "title": N_("one-hot, then {n} of {d} numbers", n=shown.shape[1], d=table.shape[1]),
            "names": names,
        },
        y={
            "title": N_("table row: its word"),
            "names": [f"{row}: {short(tokens[row])}" for row in rows],
        },
    )
