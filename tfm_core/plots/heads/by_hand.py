"""Attention by hand: sheets of numbers, the one board that is worked on, and a few gradient steps.

Each step is a line of tables, with one cell written out. ``say`` puts words into the language of
the page; without it they stay as they are here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from tfm_core.inspect.by_hand import arithmetic
from tfm_core.inspect.by_hand.arithmetic import Say
from tfm_core.inspect.by_hand.attention import Attended, MultiHead
from tfm_core.plots.heads.attention import DIVERGING, MASKED, SCALES
from tfm_core.plots.palette import BLUE, GREEN, GREY, OCHRE, PURPLE, SKY, VERMILION
from tfm_core.plots.sheet import PLAIN, Board, Panel, SheetCell, SheetLine, shades, written
from tfm_core.probe.types import Bools, Floats
from tfm_core.sentences import N_

if TYPE_CHECKING:
    from tfm_core.inspect.by_hand.forms import CodeForm


def projection_line(
    title: str, kind: str, vectors: Floats, matrix: Floats, made: Floats,
    words: Sequence[str], cell: tuple[int, int], say: Say = str,
) -> SheetLine:  # fmt: skip
    """Return ``X × W = Q``; cell: the word and the dimension that are written out."""
    word, dimension = cell
    letter = {"query": "Q", "key": "K", "value": "V"}[kind]
    n = matrix.shape[0]
    used = {(word, i): "used" for i in range(n)}
    column = {(i, dimension): "used" for i in range(n)}
    names = numbered(n)
    terms = arithmetic.product(vectors[word], matrix[:, dimension], float(made[word, dimension]))
    return SheetLine(
        title,
        (
            board(say("X, the words"), vectors, (words, names), roles=used),
            board(f"W_{letter}", matrix, (names, names), sign="×", roles=column, hue=kind),
            board(
                letter, made, (words, names), sign="=", hue=kind, name=f"made-{kind}",
                roles={cell: "picked"},
            ),
        ),
        arithmetic=(f"{letter}({words[word]}, {dimension + 1}) = {terms}",),
    )  # fmt: skip


def attention_lines(
    attended: Attended,
    words: Sequence[str],
    pick: Pick,
    titles: Sequence[str],
    sentences: Sequence[str],
    letters: tuple[str, str, str] = ("Q", "K", "V"),
    say: Say = str,
) -> list[SheetLine]:
    """Return the four lines of one attention: scores, scale and mask, softmax, weighted sum."""
    makers = (_scores, _masked, _softmax, _summed)
    return [
        make(attended, words, pick, title, sentence, letters, say)
        for make, title, sentence in zip(makers, titles, sentences, strict=True)
    ]


def _pair(i: int, j: int) -> tuple[str, ...]:
    return (f"{i},{j}", f"q{i}", f"k{j}", f"t{i}")


def _scores(
    attended: Attended, words: Sequence[str], pick: Pick, title: str, sentence: str,
    letters: tuple[str, str, str], say: Say,
) -> SheetLine:  # fmt: skip
    width = attended.query.shape[1]
    names = numbered(width)
    query, key = pick.query, pick.key
    row = {(query, i): "used" for i in range(width)}
    column = {(i, key): "used" for i in range(width)}
    q, k, _v = letters
    transposed = re.sub(r"\bK\b", "Kᵀ", k)
    boards = (
        board(q, attended.query, (words, names), hue="query", name="query", roles=row,
              axes=(say("query"), say("number")), links=lambda i, _j: (f"q{i}",)),
        board(transposed, attended.key.T, (names, words), hue="key", sign="×", name="key",
              roles=column, axes=(say("number"), say("key")), links=lambda _i, j: (f"k{j}",)),
        board("QKᵀ", attended.products, (words, words), sign="=", name="scores",
              axes=(say("query"), say("key")), roles={(query, key): "picked"}, links=_pair),
    )  # fmt: skip
    terms = arithmetic.score(attended, query, key, (words[query], words[key]))
    return SheetLine(title, boards, sentence, (terms,))


def _masked(
    attended: Attended, words: Sequence[str], pick: Pick, title: str, sentence: str,
    _letters: tuple[str, str, str], say: Say,
) -> SheetLine:  # fmt: skip
    cell = (pick.query, pick.key)
    width = attended.query.shape[1]
    sign = f"QKᵀ ÷ √{width} =" if attended.scale != 1 else say("QKᵀ, not divided =")
    boards = [
        board(say("Scaled scores") if attended.scale != 1 else say("Scores, not divided"),
              attended.scores, (words, words), sign=sign, name="scaled",
              axes=(say("query"), say("key")), roles={cell: "picked"}, links=_pair),
        mask_board(attended.allowed, words, pick, sign=say("with"), say=say),
    ]  # fmt: skip
    terms = [arithmetic.scaled(attended, *cell, say)]
    if not attended.allowed.all():
        boards.append(
            board(say("Masked scores"), attended.masked, (words, words), sign="=", name="masked",
                  lowest=say("lowest"), axes=(say("query"), say("key")), roles={cell: "picked"},
                  links=_pair)
        )  # fmt: skip
        if not attended.allowed[cell]:
            terms.append(say("forbidden: replaced by the lowest number, −3.4 · 10³⁸"))
    return SheetLine(title, tuple(boards), sentence, tuple(terms))


def _softmax(
    attended: Attended, words: Sequence[str], pick: Pick, title: str, sentence: str,
    _letters: tuple[str, str, str], say: Say,
) -> SheetLine:  # fmt: skip
    cell = (pick.query, pick.key)
    row = {(pick.query, j): "used" for j in range(len(words))}
    boards = (
        board(say("e^(score − largest)"), attended.exponentials, (words, words), scale="share",
              name="exp", axes=(say("query"), say("key")), links=_pair,
              roles=row | {cell: "picked"}),
        board(say("Sum"), attended.totals[:, None], (words, (say("sum"),)), sign="÷", scale="plain",
              roles={(pick.query, 0): "used"}, links=lambda i, _j: (f"t{i}",)),
        board(say("Weights"), attended.weights, (words, words), scale="share", sign="=",
              name="weights", axes=(say("query"), say("key")), roles={cell: "picked"}, links=_pair),
    )  # fmt: skip
    return SheetLine(title, boards, sentence, arithmetic.softmaxed(attended, *cell, say))


def _summed(
    attended: Attended, words: Sequence[str], pick: Pick, title: str, sentence: str,
    letters: tuple[str, str, str], say: Say,
) -> SheetLine:  # fmt: skip
    names = numbered(attended.value.shape[1])
    query, dimension = pick.query, pick.dimension
    row = {(query, j): "used" for j in range(len(words))}
    column = {(i, dimension): "used" for i in range(len(words))}
    boards = (
        board(say("Weights"), attended.weights, (words, words), scale="share", name="mix",
              roles=row, axes=(say("query"), say("key")), links=lambda i, j: (f"w{i}", f"v{j}")),
        board(letters[2], attended.value, (words, names), sign="×", hue="value", name="value",
              roles=column, axes=(say("key"), say("number")), links=lambda i, _j: (f"v{i}",)),
        board(say("Output"), attended.output, (words, names), sign="=", name="output",
              roles={(query, dimension): "picked"}, axes=(say("query"), say("number")),
              links=lambda i, j: (f"o{i},{j}", f"w{i}")),
    )  # fmt: skip
    terms = f"{say('output')}({words[query]}, {dimension + 1}) = "
    terms += arithmetic.summed(attended, query, dimension)
    return SheetLine(title, boards, sentence, (terms,))


def overview_line(
    attended: Attended, words: Sequence[str], title: str, sentence: str, say: Say = str
) -> SheetLine:
    """Return what every stage comes to, side by side: Q, K, scores, weights, V and the output."""
    names = numbered(attended.query.shape[1])
    axes, number = (say("query"), say("key")), say("number")
    scores = say("Scaled scores") if attended.scale != 1 else say("Scores, not divided")
    return SheetLine(
        title,
        (
            board("Q", attended.query, (words, names), hue="query", axes=(say("query"), number)),
            board("K", attended.key, (words, names), hue="key", axes=(say("key"), number)),
            board(scores, attended.scores, (words, words), axes=axes),
            board(say("Weights"), attended.weights, (words, words), scale="share", axes=axes),
            board("V", attended.value, (words, names), hue="value", axes=(say("key"), number)),
            board(say("Output"), attended.output, (words, names), axes=(say("query"), number)),
        ),
        sentence,
    )  # fmt: skip


def heads_line(
    attended: MultiHead, words: Sequence[str], title: str, sentence: str, say: Say = str
) -> SheetLine:
    """Return the weights of every head side by side."""
    boards = tuple(
        board(say(N_("Head {n}", n=h + 1)), head.weights, (words, words), scale="share",
              axes=(say("query"), say("key")), links=lambda i, j: (f"h{i},{j}",))
        for h, head in enumerate(attended.heads)
    )  # fmt: skip
    return SheetLine(title, boards, sentence)


def joined_line(
    attended: MultiHead,
    matrix: Floats,
    words: Sequence[str],
    pick: Pick,
    title: str,
    sentence: str,
    say: Say = str,
) -> SheetLine:
    """Return the heads' outputs, one behind the other, times W_O."""
    width = attended.joined.shape[1]
    names = numbered(width)
    boards = [
        board(say(N_("Head {n}", n=h + 1)), head.output, (words,
              names[h * head.output.shape[1] : (h + 1) * head.output.shape[1]]),
              sign="|" if h else "", roles={(pick.query, i): "used" for i in range(width)})
        for h, head in enumerate(attended.heads)
    ]  # fmt: skip
    cell = pick.query, pick.dimension
    boards += [
        board("W_O", matrix, (names, names), sign="×",
              roles={(i, pick.dimension): "used" for i in range(width)}),
        board(say("Output"), attended.output, (words, names), sign="=", name="final",
              roles={cell: "picked"}),
    ]  # fmt: skip
    total = float(attended.output[cell])
    terms = arithmetic.product(attended.joined[pick.query], matrix[:, pick.dimension], total)
    written_out = f"{say('output')}({words[pick.query]}, {pick.dimension + 1}) = {terms}"
    return SheetLine(title, tuple(boards), sentence, (written_out,))


def comparison_line(
    scaled: Attended,
    plain: Attended,
    words: Sequence[str],
    title: str,
    sentence: str,
    say: Say = str,
) -> SheetLine:
    """Return the weights with and without the scale."""
    boards = tuple(
        board(name, attended.weights, (words, words), scale="share",
              axes=(say("query"), say("key")), links=lambda i, j: (f"c{i},{j}",),
              facts=(say(N_("largest {weight:.4f}", weight=attended.weights.max())),))
        for name, attended in (
            (say(N_("Divided by √{d}", d=scaled.query.shape[1])), scaled),
            (say("Not divided"), plain),
        )
    )  # fmt: skip
    return SheetLine(title, boards, sentence)


def forms_line(
    forms: Sequence[CodeForm], words: Sequence[str], title: str, say: Say = str
) -> SheetLine:
    """Return the outputs (T, d_model) of the forms side by side."""
    names = numbered(forms[0].output.shape[1])
    boards = tuple(
        board(say(form.name), form.output, (words, names), links=lambda i, j: (f"f{i},{j}",),
              facts=(say(N_("differs by {value:.2g}", value=form.difference)),))
        for form in forms
    )  # fmt: skip
    return SheetLine(title, boards, say("Point at a number: the same one lights up in every form."))


_GREY = (MASKED["light"], MASKED["dark"])
_LOWEST = -1e30  # below that a score was masked
Links = Callable[[int, int], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Pick:
    """What is written out: a query, a key, and a dimension of the values, each from 0."""

    query: int
    key: int
    dimension: int

    def within(self, n_words: int, n_dimensions: int) -> Pick:
        """Return the pick moved to what there is."""
        last = n_words - 1
        return Pick(
            min(self.query, last), min(self.key, last), min(self.dimension, n_dimensions - 1)
        )


def numbered(n: int) -> tuple[str, ...]:
    """Return the names of dimensions: 1, 2, 3."""
    return tuple(str(i + 1) for i in range(n))


Names = tuple[Sequence[str], Sequence[str]]
"""Of rows and columns."""


def board(
    title: str,
    values: Floats,
    names: Names,
    *,
    scale: Literal["signed", "share", "plain"] = "signed",
    axes: tuple[str, str] = ("", ""),
    roles: dict[tuple[int, int], str] | None = None,
    links: Links | None = None,
    lowest: str = "lowest",
    **more: Any,
) -> Board:
    """Return a table of values (rows, columns).

    scale: two hues around zero, one hue from 0 to 1, or none. lowest: what a masked score is
    called. more: further fields of the board.
    """
    rows, columns = names
    fills = _fills(values, scale)
    cells = []
    for i, row in enumerate(values.tolist()):
        made = []
        for j, value in enumerate(row):
            is_out = value < _LOWEST
            role = (roles or {}).get((i, j), "") or ("out" if is_out else "")
            made.append(
                SheetCell(
                    lowest if is_out else written(value),
                    _GREY if is_out else fills[i][j],
                    tip=f"{title}, {rows[i]}, {columns[j]}: {value:.6g}",
                    links=links(i, j) if links else (),
                    role=role,
                )
            )
        cells.append(tuple(made))
    return Board(title, (Panel(tuple(cells), tuple(rows), tuple(columns), *axes),), **more)


def _fills(values: Floats, scale: str) -> list[list[tuple[str, str]]]:
    if scale == "plain":
        return [[(PLAIN["light"], PLAIN["dark"])] * values.shape[1]] * len(values)
    if scale == "share":
        return shades(values, SCALES, low=0, high=1)
    largest = float(np.abs(values[np.abs(values) < -_LOWEST]).max(initial=0)) or 1.0
    return shades(values, DIVERGING, low=-largest, high=largest)


def mask_board(
    allowed: Bools, words: Sequence[str], pick: Pick, sign: str = "", say: Say = str
) -> Board:
    """Return the mask (T, T) as ticks and crosses; a click turns one over."""
    yes, no = (SCALES["light"][1], SCALES["dark"][1]), _GREY
    cells = tuple(
        tuple(
            SheetCell(
                "✓" if may else "✕",
                yes if may else no,
                tip=say(
                    N_("{query} may attend to {key}; click to mask", query=words[i], key=words[j])
                    if may
                    else N_(
                        "{query} is masked from {key}; click to allow", query=words[i], key=words[j]
                    )
                ),
                links=(f"{i},{j}",),
                role="picked" if (i, j) == (pick.query, pick.key) else ("" if may else "out"),
            )
            for j, may in enumerate(row)
        )
        for i, row in enumerate(allowed.tolist())
    )
    panel = Panel(cells, tuple(words), tuple(words), say("query"), say("key"))
    return Board(say("Mask: click a cell"), (panel,), name="mask", sign=sign)


_COLOURS = (GREEN, VERMILION, PURPLE, OCHRE, SKY, GREY)
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


def lesson(losses: Floats, wanted: Mapping[str, Floats], step: int) -> go.Figure:
    """Draw losses (S + 1,) and, by name, the target weights (S + 1,); step: marked by a line."""
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.16)
    steps = np.arange(len(losses), dtype=np.float32)
    figure.add_scatter(
        x=steps, y=losses, name=N_("loss"), line={"color": BLUE}, row=1, col=1,
        hovertemplate=N_("step %{x}: %{y:.4f} nats<extra>loss</extra>"),
    )  # fmt: skip
    for i, (name, weights) in enumerate(wanted.items()):
        look = {"color": _COLOURS[i % 6], "dash": _DASHES[i % 6]}
        figure.add_scatter(
            x=steps, y=weights, name=name, line=look, row=2, col=1,
            hovertemplate=N_("step %{x}: %{y:.4f}<extra>weight</extra>"),
        )  # fmt: skip
    figure.add_vline(x=step, line={"color": GREY, "dash": "dot"})
    figure.update_yaxes(title={"text": N_("loss (nats)")}, rangemode="tozero", row=1, col=1)
    figure.update_yaxes(title={"text": N_("target weight")}, range=(0, 1.05), row=2, col=1)
    figure.update_xaxes(title={"text": N_("gradient step")}, row=2, col=1)
    figure.update_layout(height=360, margin={"l": 8, "r": 8, "t": 40, "b": 8})
    return figure
