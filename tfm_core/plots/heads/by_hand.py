"""Attention by hand: sheets of numbers, the one board that is worked on, and a few gradient steps.

Each step is a line of tables, with one cell written out.
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
from tfm_core.inspect.by_hand.attention import Attended, MultiHead
from tfm_core.plots.heads.attention import DIVERGING, MASKED, SCALES
from tfm_core.plots.palette import BLUE, GREEN, GREY, OCHRE, PURPLE, SKY, VERMILION
from tfm_core.plots.sheet import PLAIN, Board, Panel, SheetCell, SheetLine, shades, written
from tfm_core.probe.types import Bools, Floats
from tfm_core.sentences import N_, Sentence

if TYPE_CHECKING:
    from tfm_core.inspect.by_hand.forms import CodeForm


def projection_line(
    title: str,
    kind: str,
    vectors: Floats,
    matrix: Floats,
    made: Floats,
    words: Sequence[str],
    cell: tuple[int, int],
) -> SheetLine:
    """Return ``X × W = Q``; cell: the word and the dimension that are written out."""
    word, dimension = cell
    letter = {"query": "Q", "key": "K", "value": "V"}[kind]
    n = matrix.shape[0]
    names = numbered(n)
    terms = arithmetic.product(vectors[word], matrix[:, dimension], float(made[word, dimension]))
    product: dict[str, Any] = {"sign": "=", "name": f"made-{kind}", "roles": {cell: "picked"}}
    boards = (
        board(N_("X, the words"), vectors, (words, names), roles=_row(word, n)),
        board(
            f"W_{letter}", matrix, (names, names), sign="×", roles=_column(dimension, n), hue=kind
        ),
        board(letter, made, (words, names), hue=kind, **product),
    )
    return SheetLine(
        title, boards, arithmetic=(f"{letter}({words[word]}, {dimension + 1}) = {terms}",)
    )


def attention_lines(
    attended: Attended,
    words: Sequence[str],
    pick: Pick,
    titles: Sequence[str],
    sentences: Sequence[str],
    letters: tuple[str, str, str] = ("Q", "K", "V"),
) -> list[SheetLine]:
    """Return the four lines of one attention: scores, scale and mask, softmax, weighted sum."""
    parts = (
        _scores(attended, words, pick, letters),
        _masked(attended, words, pick),
        _softmax(attended, words, pick),
        _summed(attended, words, pick, letters[2]),
    )
    return [
        SheetLine(title, tuple(boards), sentence, tuple(terms))
        for title, sentence, (boards, terms) in zip(titles, sentences, parts, strict=True)
    ]


def _pair(i: int, j: int) -> tuple[str, ...]:
    return (f"{i},{j}", f"q{i}", f"k{j}", f"t{i}")


def _row(row: int, n: int) -> dict[tuple[int, int], str]:
    return {(row, i): "used" for i in range(n)}


def _column(column: int, n: int) -> dict[tuple[int, int], str]:
    return {(i, column): "used" for i in range(n)}


def _by_words(title: str, values: Floats, words: Sequence[str], **more: Any) -> Board:
    """Return a table of queries (down) and keys (across)."""
    return board(title, values, (words, words), axes=(N_("query"), N_("key")), **more)


Part = tuple[Sequence[Board], Sequence[str]]
"""Of a line: its boards, and its arithmetic."""


def _scores(
    attended: Attended, words: Sequence[str], pick: Pick, letters: tuple[str, str, str]
) -> Part:
    width = attended.query.shape[1]
    names = numbered(width)
    query, key = pick.query, pick.key
    q, k, _v = letters
    rows: dict[str, Any] = {"hue": "query", "name": "query", "roles": _row(query, width)}
    columns: dict[str, Any] = {"hue": "key", "name": "key", "roles": _column(key, width)}
    queries = board(
        q,
        attended.query,
        (words, names),
        axes=(N_("query"), N_("number")),
        links=lambda i, _j: (f"q{i}",),
        **rows,
    )
    keys = board(
        re.sub(r"\bK\b", "Kᵀ", k),
        attended.key.T,
        (names, words),
        sign="×",
        axes=(N_("number"), N_("key")),
        links=lambda _i, j: (f"k{j}",),
        **columns,
    )
    picked = {"roles": {(query, key): "picked"}, "links": _pair}
    scores = _by_words("QKᵀ", attended.products, words, sign="=", name="scores", **picked)
    terms = arithmetic.score(attended, query, key, (words[query], words[key]))
    return (queries, keys, scores), (terms,)


def _masked(attended: Attended, words: Sequence[str], pick: Pick) -> Part:
    cell = (pick.query, pick.key)
    width, is_scaled = attended.query.shape[1], attended.scale != 1
    sign = f"QKᵀ ÷ √{width} =" if is_scaled else N_("QKᵀ, not divided =")
    picked = {"roles": {cell: "picked"}, "links": _pair}
    boards = [
        _by_words(
            _scaled_title(attended), attended.scores, words, sign=sign, name="scaled", **picked
        ),
        mask_board(attended.allowed, words, pick, sign=N_("with")),
    ]
    terms = [arithmetic.scaled(attended, *cell)]
    if not attended.allowed.all():
        masked = {"sign": "=", "name": "masked", **picked}
        boards.append(_by_words(N_("Masked scores"), attended.masked, words, **masked))
        if not attended.allowed[cell]:
            terms.append(N_("forbidden: replaced by the lowest number, −3.4 · 10³⁸"))
    return boards, terms


def _scaled_title(attended: Attended) -> str:
    return N_("Scaled scores") if attended.scale != 1 else N_("Scores, not divided")


def _softmax(attended: Attended, words: Sequence[str], pick: Pick) -> Part:
    cell = (pick.query, pick.key)
    roles = _row(pick.query, len(words)) | {cell: "picked"}
    share = {"scale": "share", "links": _pair}
    exponentials = _by_words(
        N_("e^(score − largest)"), attended.exponentials, words, name="exp", roles=roles, **share
    )
    total = board(
        N_("Sum"),
        attended.totals[:, None],
        (words, (N_("sum"),)),
        sign="÷",
        scale="plain",
        roles={(pick.query, 0): "used"},
        links=lambda i, _j: (f"t{i}",),
    )
    picked = {"sign": "=", "name": "weights", "roles": {cell: "picked"}}
    weights = _by_words(N_("Weights"), attended.weights, words, **picked, **share)
    return (exponentials, total, weights), arithmetic.softmaxed(attended, *cell)


def _summed(attended: Attended, words: Sequence[str], pick: Pick, letter: str) -> Part:
    names, n = numbered(attended.value.shape[1]), len(words)
    query, dimension = pick.query, pick.dimension
    row = {"scale": "share", "name": "mix", "roles": _row(query, n)}
    column: dict[str, Any] = {"hue": "value", "name": "value", "roles": _column(dimension, n)}
    picked: dict[str, Any] = {"name": "output", "roles": {(query, dimension): "picked"}}
    weights = _by_words(
        N_("Weights"), attended.weights, words, links=lambda i, j: (f"w{i}", f"v{j}"), **row
    )
    values = board(
        letter,
        attended.value,
        (words, names),
        sign="×",
        axes=(N_("key"), N_("number")),
        links=lambda i, _j: (f"v{i}",),
        **column,
    )
    output = board(
        N_("Output"),
        attended.output,
        (words, names),
        sign="=",
        axes=(N_("query"), N_("number")),
        links=lambda i, j: (f"o{i},{j}", f"w{i}"),
        **picked,
    )
    terms = arithmetic.summed(attended, query, dimension)
    return (weights, values, output), (_output_is(words[query], dimension, terms),)


def _output_is(word: str, dimension: int, terms: str) -> Sentence:
    values = {"output": N_("output"), "word": word, "n": dimension + 1, "terms": terms}
    return Sentence("{output}({word}, {n}) = {terms}", values)


def overview_line(attended: Attended, words: Sequence[str], title: str, sentence: str) -> SheetLine:
    """Return what every stage comes to, side by side: Q, K, scores, weights, V and the output."""
    names = (words, numbered(attended.query.shape[1]))
    queries, keys = (N_("query"), N_("number")), (N_("key"), N_("number"))
    boards = (
        board("Q", attended.query, names, hue="query", axes=queries),
        board("K", attended.key, names, hue="key", axes=keys),
        _by_words(_scaled_title(attended), attended.scores, words),
        _by_words(N_("Weights"), attended.weights, words, scale="share"),
        board("V", attended.value, names, hue="value", axes=keys),
        board(N_("Output"), attended.output, names, axes=queries),
    )
    return SheetLine(title, boards, sentence)


def heads_line(attended: MultiHead, words: Sequence[str], title: str, sentence: str) -> SheetLine:
    """Return the weights of every head side by side."""
    look = {"scale": "share", "links": lambda i, j: (f"h{i},{j}",)}
    boards = tuple(
        _by_words(N_("Head {n}", n=n), head.weights, words, **look)
        for n, head in enumerate(attended.heads, 1)
    )
    return SheetLine(title, boards, sentence)


def joined_line(
    attended: MultiHead,
    matrix: Floats,
    words: Sequence[str],
    pick: Pick,
    title: str,
    sentence: str,
) -> SheetLine:
    """Return the heads' outputs, one behind the other, times W_O."""
    width = attended.joined.shape[1]
    names, n = numbered(width), width // len(attended.heads)
    boards = [
        board(
            N_("Head {n}", n=h + 1),
            head.output,
            (words, names[h * n : (h + 1) * n]),
            sign="|" if h else "",
            roles=_row(pick.query, width),
        )
        for h, head in enumerate(attended.heads)
    ]
    cell = pick.query, pick.dimension
    column, picked = _column(pick.dimension, width), {cell: "picked"}
    boards += [
        board("W_O", matrix, (names, names), sign="×", roles=column),
        board(N_("Output"), attended.output, (words, names), sign="=", name="final", roles=picked),
    ]
    total = float(attended.output[cell])
    terms = arithmetic.product(attended.joined[pick.query], matrix[:, pick.dimension], total)
    written_out = _output_is(words[pick.query], pick.dimension, terms)
    return SheetLine(title, tuple(boards), sentence, (written_out,))


def comparison_line(
    scaled: Attended, plain: Attended, words: Sequence[str], title: str, sentence: str
) -> SheetLine:
    """Return the weights with and without the scale."""
    look = {"scale": "share", "links": lambda i, j: (f"c{i},{j}",)}
    divided = N_("Divided by √{d}", d=scaled.query.shape[1])
    boards = tuple(
        _by_words(
            name,
            attended.weights,
            words,
            facts=(N_("largest {weight:.4f}", weight=attended.weights.max()),),
            **look,
        )
        for name, attended in ((divided, scaled), (N_("Not divided"), plain))
    )
    return SheetLine(title, boards, sentence)


def forms_line(forms: Sequence[CodeForm], words: Sequence[str], title: str) -> SheetLine:
    """Return the outputs (T, d_model) of the forms side by side."""
    names = (words, numbered(forms[0].output.shape[1]))
    boards = tuple(
        board(
            form.name,
            form.output,
            names,
            links=lambda i, j: (f"f{i},{j}",),
            facts=(N_("differs by {value:.2g}", value=form.difference),),
        )
        for form in forms
    )
    return SheetLine(title, boards, N_("Point at a number: the same one lights up in every form."))


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
    **more: Any,
) -> Board:
    """Return a table of values (rows, columns).

    scale: two hues around zero, one hue from 0 to 1, or none. more: further fields of the board.
    """
    rows, columns = names
    fills = _fills(values, scale)
    cells = []
    for i, row in enumerate(values.tolist()):
        made = []
        for j, value in enumerate(row):
            is_out = value < _LOWEST
            role = (roles or {}).get((i, j), "") or ("out" if is_out else "")
            facts = {"board": title, "row": rows[i], "column": columns[j], "value": value}
            made.append(
                SheetCell(
                    N_("lowest") if is_out else written(value),
                    _GREY if is_out else fills[i][j],
                    tip=Sentence("{board}, {row}, {column}: {value:.6g}", facts),
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


def mask_board(allowed: Bools, words: Sequence[str], pick: Pick, sign: str = "") -> Board:
    """Return the mask (T, T) as ticks and crosses; a click turns one over."""
    yes, no = (SCALES["light"][1], SCALES["dark"][1]), _GREY
    cells = tuple(
        tuple(
            SheetCell(
                "✓" if may else "✕",
                yes if may else no,
                tip=N_("{query} may attend to {key}; click to mask", query=words[i], key=words[j])
                if may
                else N_(
                    "{query} is masked from {key}; click to allow", query=words[i], key=words[j]
                ),
                links=(f"{i},{j}",),
                role="picked" if (i, j) == (pick.query, pick.key) else ("" if may else "out"),
            )
            for j, may in enumerate(row)
        )
        for i, row in enumerate(allowed.tolist())
    )
    panel = Panel(cells, tuple(words), tuple(words), N_("query"), N_("key"))
    return Board(N_("Mask: click a cell"), (panel,), name="mask", sign=sign)


_COLOURS = (GREEN, VERMILION, PURPLE, OCHRE, SKY, GREY)
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


def lesson(losses: Floats, wanted: Mapping[str, Floats], step: int) -> go.Figure:
    """Draw losses (S + 1,) and, by name, the target weights (S + 1,); step: marked by a line."""
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.16)
    steps = np.arange(len(losses), dtype=np.float32)
    figure.add_scatter(
        x=steps,
        y=losses,
        name=N_("loss"),
        line={"color": BLUE},
        hovertemplate=N_("step %{x}: %{y:.4f} nats<extra>loss</extra>"),
        row=1,
        col=1,
    )
    for i, (name, weights) in enumerate(wanted.items()):
        look = {"color": _COLOURS[i % 6], "dash": _DASHES[i % 6]}
        hover = N_("step %{x}: %{y:.4f}<extra>weight</extra>")
        line = {"x": steps, "y": weights, "name": name, "line": look, "hovertemplate": hover}
        figure.add_scatter(**line, row=2, col=1)
    figure.add_vline(x=step, line={"color": GREY, "dash": "dot"})
    figure.update_yaxes(title={"text": N_("loss (nats)")}, rangemode="tozero", row=1, col=1)
    figure.update_yaxes(title={"text": N_("target weight")}, range=(0, 1.05), row=2, col=1)
    figure.update_xaxes(title={"text": N_("gradient step")}, row=2, col=1)
    figure.update_layout(height=360, margin={"l": 8, "r": 8, "t": 40, "b": 8})
    return figure
