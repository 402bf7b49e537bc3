"""Tokens as coloured chips with their numbers, and what a larger vocabulary buys.

Chips are small pieces of HTML, because text should wrap and be readable by a screen reader. Equal
tokens have equal colours; what is unknown is dashed and says <unk>.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import plotly.graph_objects as go

from tfm_core.inspect.text.tokenise import Token
from tfm_core.plots.attention import Floats
from tfm_core.plots.palette import BLUE, COLOURS, GREY, VERMILION
from tfm_core.plots.positions import axes
from tfm_core.plots.template import COLORWAY
from tfm_core.sentences import N_

MOST_CHIPS = 400
_SYMBOLS = ("square", "diamond", "triangle-up", "star")


def chips(tokens: Sequence[Token], most: int = MOST_CHIPS) -> str:
    """Return HTML: one chip a token, its number below it; after ``most`` how many more there are.

    A text of people's own is escaped.
    """
    parts = [_chip(token) for token in tokens[:most]]
    more = len(tokens) - most
    rest = f'<span class="more">and {more:,} more</span>' if more > 0 else ""
    return f'{_STYLE}<div class="tfm-tokens">{"".join(parts)}{rest}</div>'


def sizes(
    vocabulary: Floats, length: Floats, k: int, others: Mapping[str, tuple[int, int]]
) -> go.Figure:
    """Draw vocabulary size (x) against tokens of the text (y) after 0, 1, 2, ... merges.

    k: the merges that are chosen. others: label -> size and tokens of another tokeniser.
    """
    figure = go.Figure(
        [
            go.Scatter(
                x=vocabulary,
                y=length,
                name=N_("byte-pair encoding"),
                mode="lines",
                line={"color": BLUE, "width": 2.5},
                customdata=list(range(len(length))),
                hovertemplate=N_(
                    "%{customdata} merges<br>vocabulary %{x:,}<br>%{y:,} tokens<extra></extra>"
                ),
            ),
            go.Scatter(
                x=[vocabulary[k]],
                y=[length[k]],
                name=N_("after {k} merges", k=k),
                mode="markers",
                marker={"color": VERMILION, "size": 13, "symbol": "circle"},
                hovertemplate=N_("vocabulary %{x:,}<br>%{y:,} tokens<extra></extra>"),
            ),
        ]
    )
    for i, (label, (size, n)) in enumerate(others.items()):
        figure.add_scatter(
            x=[size],
            y=[n],
            name=escape(label, quote=False),
            mode="markers",
            marker={"color": GREY, "size": 11, "symbol": _SYMBOLS[i % len(_SYMBOLS)]},
            hovertemplate=N_(
                "{label}<br>vocabulary %{{x:,}}<br>%{{y:,}} tokens<extra></extra>",
                label=escape(label),
            ),
        )
    axes(figure, N_("vocabulary (tokens)"), N_("length of the text (tokens)"))
    figure.update_yaxes(rangemode="tozero")
    return figure.update_layout(height=340)


def _chip(token: Token) -> str:
    colour = COLORWAY[token.id % len(COLORWAY)]
    words = escape(token.shown).replace("&lt;/w&gt;", '<i class="end">&lt;/w&gt;</i>')
    kind = "chip unknown" if token.is_unknown else "chip"
    hint = f"number {token.id}" + (", not in the vocabulary" if token.is_unknown else "")
    shown = words if not token.is_unknown else f"{words}<s>&lt;unk&gt;</s>"
    if token.is_unknown and token.shown == "<unk>":
        shown = words
    return (
        f'<span class="{kind}" style="--c:{colour}" title="{hint}"><b>{shown}</b>'
        f"<small>{token.id}</small></span>"
    )


_STYLE = f"""<style>
.tfm-tokens {{ display: flex; flex-wrap: wrap; gap: 0.25rem; font-size: 0.95rem;
  line-height: 1.25; }}
.tfm-tokens .chip {{ display: inline-flex; flex-direction: column; align-items: center;
  padding: 0.1rem 0.4rem; border-radius: 0.3rem; border: 1px solid var(--c); max-width: 100%;
  background: color-mix(in srgb, var(--c) 20%, transparent); overflow-wrap: anywhere; }}
.tfm-tokens .chip b {{ font-weight: 500; white-space: pre-wrap; }}
.tfm-tokens .chip small {{ font-size: 0.68rem; opacity: 0.75; font-variant-numeric: tabular-nums; }}
.tfm-tokens .end {{ opacity: 0.8; font-size: 0.75em; font-style: normal; }}
.tfm-tokens .unknown {{ border: 2px dashed {COLOURS["wrong"]}; background: none; }}
.tfm-tokens .unknown s {{ text-decoration: none; color: {COLOURS["wrong"]}; font-size: 0.75em;
  margin-left: 0.3em; }}
.tfm-tokens .more {{ align-self: center; opacity: 0.75; }}
</style>"""
