"""What a language model makes of a text: surprise, beams, and what it computes at each token.

Texts are HTML, because they should wrap and be readable by a screen reader; surprising tokens are
underlined beside their colour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from tfm_core.data.vocabulary import SPECIALS, text_pieces, token_labels
from tfm_core.inspect.generation import NEXT, WAYS, first_error, in_nats
from tfm_core.korean import lang
from tfm_core.plots.chart import cells, chart, texts_of
from tfm_core.plots.kinds import frame, lay_out, legend_to
from tfm_core.plots.palette import COLOURS, GREY, ORANGE
from tfm_core.sentences import N_, Say, percent, whole_percent

if TYPE_CHECKING:
    import pandas as pd

SURE, SURPRISED = 1.0, 5.0
"""Bits below which a token has no colour, and above which it has all of it and an underline."""


def surprise_text(
    tokens: Sequence[str], nats: npt.NDArray[Any], picked: int, gap: str, *, say: Say = str
) -> str:
    """Return HTML: a text whose tokens are coloured by how much they surprise, with the scale.

    nats: (T,) surprisal of each token. picked: the position of a token that gets a frame. gap: what
    stands between tokens (a space between words, nothing between characters). say: translates.
    """
    spans = []
    for position, (token, loss) in enumerate(zip(text_pieces(tokens), nats, strict=True)):
        bits = float(loss) / np.log(2)
        classes = ["t"] + (["high"] if bits >= SURPRISED else [])
        classes += ["picked"] if position == picked else []
        hint = say(
            N_(
                "{n}: {bits:.2f} bits ({nats:.2f} nats), p = {p:.3g}",
                n=position + 1,
                bits=bits,
                nats=float(loss),
                p=float(np.exp(-loss)),
            )
        )
        attributes = f'class="{" ".join(classes)}" style="--s:{_strength(bits):.0f}%"'
        spans.append(_span(token, f'{attributes} title="{escape(hint)}"', gap))
    scale = "".join(
        f'<span class="t{" high" if bits >= SURPRISED else ""}" '
        f'style="--s:{_strength(bits):.0f}%">{bits:.0f}{"+" if bits >= SURPRISED else ""}</span>'
        for bits in (0, 1, 2, 3, 4, 5)
    )
    legend = say(
        N_(
            "Surprise in bits: {scale}, underlined from {n} "
            "(1 bit: a coin toss; {n} bits: one in 32)",
            scale=scale,
            n=f"{SURPRISED:.0f}",
        )
    )
    text = f'<div class="tfm-gpt text">{"".join(spans)}</div>'
    return f'{_STYLE}{text}<div class="tfm-gpt scale">{legend}</div>'


def written_text(
    tokens: Sequence[str], chances: Sequence[float], n_prompt: int, gap: str, *, say: Say = str
) -> str:
    """Return HTML: a prompt, and what was written behind it; the paler, the less likely it was.

    chances: the probability of each written token, said on hover. say: translates.
    """
    texts = text_pieces(tokens)
    parts = [_span(token, 'class="given"', gap) for token in texts[:n_prompt]]
    for token, chance in zip(texts[n_prompt:], chances, strict=True):
        look = f'class="t own" title="p = {chance:.3g}" style="--s:{100 * chance:.0f}%"'
        parts.append(_span(token, look, gap))
    scale = " ".join(
        f'<span class="t own" style="--s:{share}%">{share}%</span>' for share in (10, 50, 90)
    )
    words = say(N_("Underlined: written by the model, darker if likelier: {scale}", scale=scale))
    legend = f'<div class="tfm-gpt scale">{words}</div>' if chances else ""
    return f'{_STYLE}<div class="tfm-gpt text">{"".join(parts) or "–"}</div>{legend}'


def _span(token: str, attributes: str, gap: str) -> str:
    end = "<br>" if token == "\n" else gap
    return f"<span {attributes}{lang(token)}>{escape(visible(token))}</span>{end}"


def visible(token: str) -> str:
    """Return a token with a line break as ↵."""
    return "↵" if token == "\n" else token


def marked(token: str) -> str:
    """Return a token as shown alone: leading spaces as ␣, a line break as ↵."""
    rest = token.lstrip(" ")
    return "␣" * (len(token) - len(rest)) + visible(rest)


def _strength(bits: float) -> float:
    """Return how much of the colour a token gets, in per cent."""
    return 70 * float(np.clip((bits - SURE) / (SURPRISED - SURE), 0, 1))


_STYLE = f"""<style>
.tfm-gpt {{ font-size: 0.95rem; line-height: 1.9; overflow-wrap: anywhere; }}
.tfm-gpt.text {{ white-space: pre-wrap; }}
@media (min-width: 641px) {{ .tfm-gpt.text {{ max-height: 26rem; overflow-y: auto; }} }}
.tfm-gpt.scale {{ font-size: 0.8rem; margin-top: 0.5rem; }}
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


_LONGEST = 9  # letters of a token that are drawn; hover says all


def beam_tree(tree: pd.DataFrame, *, max_steps: int = 16) -> go.Figure:
    """Draw a tree of beams (``BeamComparison.tree``), of a long one the last ``max_steps`` steps.

    Branches that lead to a text that is still kept at the end are coloured, the others grey.
    """
    last = int(tree["step"].max())
    first = max(0, last - max_steps + 1)
    nodes = list(tree[tree["step"] >= first].itertuples())
    figure = go.Figure()
    for lives, colour, width, dash in (
        (False, GREY, 1.0, "dot"),
        (True, COLOURS["cross"], 2.5, "solid"),
    ):
        x: list[float | None] = []
        y: list[float | None] = []
        for node in nodes:
            if node.lives == lives and node.step > first:
                x += [node.step, node.step + 1, None]
                y += [node.parent + 1, node.place + 1, None]
        figure.add_scatter(
            x=x,
            y=y,
            mode="lines",
            hoverinfo="skip",
            showlegend=False,
            line={"color": colour, "width": width, "dash": dash},
        )
    for lives, colour in ((False, GREY), (True, COLOURS["cross"])):
        figure.add_scatter(**_marks([node for node in nodes if node.lives == lives], colour))
    depth = max(node.place for node in nodes) + 1
    plain: dict[str, Any] = {"dtick": 1, "showgrid": False, "zeroline": False}
    return lay_out(
        figure,
        height=70 + 52 * depth,
        x={"title": N_("token"), "range": [first + 0.4, last + 1.6], **plain},
        y={"title": N_("beam rank"), "range": [depth + 0.75, 0.4], **plain},
        showlegend=False,
    )


def _marks(nodes: Sequence[Any], colour: str) -> dict[str, object]:
    return {
        "x": [node.step + 1 for node in nodes],
        "y": [node.place + 1 for node in nodes],
        "mode": "markers+text",
        "text": [_label(node) for node in nodes],
        "textposition": "top center",
        "textfont": {"size": 12},
        "cliponaxis": False,
        "marker": {
            "color": colour,
            "size": [8 if node.is_new else 4 for node in nodes],
            "symbol": ["square" if node.is_done else "circle" for node in nodes],
        },
        "customdata": [
            f"{escape(' '.join(map(marked, token_labels(node.text))))}<br>ln p {node.score:.3f}"
            for node in nodes
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _label(node: Any) -> str:
    if not node.is_new:
        return ""
    token = marked(token_labels(node.text)[-1])
    short = token if len(token) <= _LONGEST else f"{token[: _LONGEST - 1]}…"
    return f"{escape(short, quote=False)}<br><sup>{in_nats(node.score)}</sup>"


def beside_table(places: pd.DataFrame, words: Mapping[str, str]) -> str:
    """Return HTML: a row each for truth, teacher forcing and free running; the parting is marked.

    places: of ``beside_truth``. words: of the rows (``place``, ``truth``, ``taught``, ``free``) and
    of the mark (``parts``).
    """
    at = first_error(places)
    heads = "".join(
        f'<th scope="col"{_part(n, at)}>{n + 1}{_mark(words["parts"]) if n == at else ""}</th>'
        for n in range(len(places))
    )
    rows = ""
    for way in WAYS:
        is_right = [None] * len(places) if way == "truth" else places[f"{way}_right"]
        cells = zip(places[way], places[f"{way}_chance"], is_right, strict=True)
        drawn = "".join(_cell(*cell, n, at) for n, cell in enumerate(cells))
        rows += f'<tr><th scope="row">{escape(words[way])}</th>{drawn}</tr>'
    return (
        f'{_TABLE_STYLE}<div class="tfm-beside"><table><tr>'
        f'<th scope="row">{escape(words["place"])}</th>'
        f"{heads}</tr>{rows}</table></div>"
    )


def _cell(token: str | None, chance: float, is_right: bool | None, n: int, at: int | None) -> str:
    if token is None:
        return f"<td{_part(n, at)}></td>"
    kind = {None: "", True: "good", False: "bad"}[is_right]
    tick = {None: "", True: " ✓", False: " ✗"}[is_right]
    share = f"{100 * chance:.1f}%"
    if chance < 0.001:
        share = "&lt; 0.1%"
    elif chance >= 0.9995:
        share = "&gt; 99.9%"
    return (
        f'<td class="{kind}{" parts" if n == at else ""}">'
        f"<b{lang(token)}>{escape(visible(token))}</b>{tick}<br><small>{share}</small></td>"
    )


def _part(n: int, at: int | None) -> str:
    return ' class="parts"' if n == at else ""


def _mark(words: str) -> str:
    return f"<br><small>▼ {escape(words)}</small>"


_TABLE_STYLE = f"""<style>
.tfm-beside {{ overflow-x: auto; }}
.tfm-beside table {{ border-collapse: collapse; font-size: 0.92rem; }}
.tfm-beside td, .tfm-beside th {{ padding: 4px 9px; text-align: center; vertical-align: top;
  border-bottom: 1px solid color-mix(in srgb, currentColor 15%, transparent); }}
.tfm-beside th[scope=row] {{ text-align: left; font-weight: 400; max-width: 15rem; opacity: 0.85;
  min-width: 7rem; }}
.tfm-beside .good b {{ color: inherit; }}
.tfm-beside .bad {{ background: color-mix(in srgb, {COLOURS["wrong"]} 18%, transparent); }}
.tfm-beside .parts {{ border-left: 3px solid {COLOURS["wrong"]}; }}
</style>"""


Floats = npt.NDArray[np.floating]
_LEGEND = legend_to(0, 1, N_("probability")) | {"yref": "container", "y": 0.99, "yanchor": "top"}
"""At the figure's top: where plotly makes room for a scale it lifts the x title by as much."""


def shown(token: str) -> str:
    """Return a token for an axis: a space and a line break can be seen, and no markup acts."""
    return escape(marked(token), quote=False)


def guesses(best: Sequence[tuple[str, float]], truth: str, chance: float, rank: int) -> go.Figure:
    """Draw the likeliest tokens as bars, and always the true one, marked."""
    rows = [(token, p, token == truth) for token, p in best]
    if not any(is_true for *_, is_true in rows):
        rows.append((truth, chance, True))
    names = [
        N_("{token} ◀ actual, rank {rank}", token=shown(t), rank=rank) if came else shown(t)
        for t, _, came in rows
    ]
    columns = {"place": range(len(rows)), "value": [p for _, p, _ in rows]}
    texts = [percent(p) if p >= 0.001 else "< 0.1%" for _, p, _ in rows]
    return chart(
        NEXT.table({**columns, "words": texts}),
        "bars",
        x="value",
        y="place",
        orientation="h",
        text="words",
        ticks=names,
        looks=[{"colour": [COLOURS["right"] if came else GREY for *_, came in rows]}],
    )


def lens_map(
    tokens_read: Sequence[str],
    answers_by_depth: Sequence[Sequence[str]],
    probability: Floats,
    final: Floats,
    *,
    max_tokens: int = 24,
) -> go.Figure:
    """Draw the likeliest next token for each token read (down) at each depth (across).

    tokens_read, answers_by_depth, probability, final: of ``look_through``. max_tokens: how many to
    show, the first ones.
    """
    depth, length = len(probability), min(max_tokens, probability.shape[1])
    labels = [N_("embedding"), *(N_("layer {n}", n=i) for i in range(1, depth))]
    tokens = [shown(token) for token in tokens_read[:length]]
    answers = [[shown(answers_at[t]) for answers_at in answers_by_depth] for t in range(length)]
    hover = texts_of(
        N_(
            "after {token}, {depth}: {says}, p = {p:.4f}<br>"
            "final answer {answer}: p = {final:.4f} here"
        ),
        rows={"token": tokens, "answer": [row[-1] for row in answers]},
        columns={"depth": labels},
        says=answers,
        p=probability[:, :length].T,
        final=final[:, :length].T,
    )
    return cells(
        probability[:, :length].T,
        "share",
        (0, 1),
        says=hover,
        texts=answers,
        trace={"colorbar": _LEGEND, "showscale": True},
        height=150 + 28 * length,
        top=64,
        x={"title": N_("answer after"), "names": labels},
        y={"title": N_("token read"), "names": tokens},
    )


def digit_map(truth: Sequence[str], table: pd.DataFrame) -> go.Figure:
    """Draw the probability of each digit (down) at each position of the answer (across).

    The true digits have a frame and a tick. table: a row a place, a column a token.
    """
    names = [*(token for token in table if token not in SPECIALS), "<eos>"]
    chances = table[names].to_numpy().T  # (digits, places)
    true_cells = {(names.index(token), column) for column, token in enumerate(truth[: len(table)])}
    text = [
        [
            (whole_percent(p) if p >= 0.005 else "") + (" ✓" if (row, column) in true_cells else "")
            for column, p in enumerate(values)
        ]
        for row, values in enumerate(chances)
    ]
    figure = cells(
        chances,
        "share",
        (0, 1),
        says=N_("position %{x}, %{customdata}: %{z:.5f}<extra></extra>"),
        texts=text,
        trace={
            "colorbar": _LEGEND,
            "showscale": True,
            "customdata": [[shown(name)] * chances.shape[1] for name in names],
            "x": list(range(1, chances.shape[1] + 1)),
        },
        height=480,
        top=64,
        x={"title": N_("position in the answer"), "dtick": 1},
        y={"title": N_("digit"), "names": [shown(name) for name in names]},
    )
    for row, column in true_cells:
        ends = (column + 0.5, row - 0.5, column + 1.5, row + 0.5)
        figure.add_shape(frame(*ends, colour=COLOURS["right"], width=3))
    return figure


def with_signs(words: Sequence[str], marked: Sequence[int] = ()) -> list[str]:
    """Return words for an axis, the marked ones with a sign."""
    names = [escape(word, quote=False) for word in words]
    return [f"▸ {name}" if index in marked else name for index, name in enumerate(names)]


def head_rows(heads: Floats, words: Sequence[str], *, marked: Sequence[int] = ()) -> go.Figure:
    """Draw the attention of one query in every head: heads (L, H, n), head down, word across.

    marked: places of words with a sign. Raises ValueError when weights and words do not fit.
    """
    heads = np.asarray(heads, np.float32)
    if heads.shape[2] != len(words):
        raise ValueError(f"weights are {heads.shape}, but there are {len(words)} words.")
    n_layers, n_heads, n = heads.shape
    rows = [
        N_("layer {layer}, head {head}", layer=i + 1, head=j + 1)
        for i in range(n_layers)
        for j in range(n_heads)
    ]
    return cells(
        heads.reshape(-1, n),
        "share",
        (0, float(heads.max(initial=1e-6))),
        trace={"y": rows, "customdata": [with_signs(words)] * len(rows)},
        says=N_("%{y} attends to “%{customdata}”: %{z:.4f}<extra></extra>"),
        height=150 + 26 * len(rows),
        right=44,  # tilted words
        x={
            "title": N_("key: word read"),
            "side": "top",
            "names": with_signs(words, marked),
            "tickangle": -40,
        },
        y={"title": N_("attention head")},
    )
