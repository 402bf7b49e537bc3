"""Attention by hand: sheets of numbers, and the one board that is worked on.

Each step is a line of tables, with one cell written out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tfm_core.inspect.by_hand import arithmetic
from tfm_core.inspect.by_hand.attention import Attended, MultiHead
from tfm_core.inspect.masks.lab import MaskedAttention
from tfm_core.plots.sheet import Board, Cells, Numbers, Place, SheetLine, written
from tfm_core.probe.types import Bools, Floats
from tfm_core.sentences import N_, Sentence


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


_SIDES = {
    "query": N_("query"),
    "key": N_("key"),
    "word": "",
    "number": N_("number"),
    "dimension": N_("dimension"),
    "": "",
}
"""What rows and columns are, and their titles: the first three are words, others are numbered."""
_OF_BOARD = ("name", "sign", "hue", "facts")


def board(
    title: str,
    values: Numbers,
    words: Sequence[str],
    sides: tuple[str, str] = ("query", "key"),
    *,
    scale: Literal["signed", "share", "plain"] = "signed",
    **more: Any,
) -> Board:
    """Return a table of values (rows, columns). more: fields of the board or of its cells."""
    rows, columns = (
        tuple(words) if side in ("query", "key", "word") else tuple(map(str, range(1, n + 1)))
        for side, n in zip(sides, values.shape, strict=True)
    )
    own = {name: more.pop(name) for name in _OF_BOARD if name in more}
    look = {
        "rows": rows,
        "columns": columns,
        "row_title": _SIDES[sides[0]],
        "column_title": _SIDES[sides[1]],
    }
    return Board(title, (Cells(values=values, scale=scale, **(look | more)),), **own)


def mask_board(title: str, allowed: Bools, words: Sequence[str], **more: Any) -> Board:
    """Return the mask (Q, K) as ticks and crosses; a click turns one over."""
    names = {"query": "{row}", "key": "{column}"}
    states = (
        ("✕", N_("{query} is masked from {key}; click to allow", **names)),
        ("✓", N_("{query} may attend to {key}; click to mask", **names)),
    )
    look = {"name": "mask", "names": "{i},{j}"} | more
    return board(title, allowed, words, states=states, scale="share", **look)


def _row(row: int, n: int) -> dict[Place, str]:
    return {(row, i): "used" for i in range(n)}


def _column(column: int, n: int) -> dict[Place, str]:
    return {(i, column): "used" for i in range(n)}


def projection_line(
    title: str,
    kind: str,
    vectors: Floats,
    matrix: Floats,
    made: Floats,
    words: Sequence[str],
    cell: Place,
) -> SheetLine:
    """Return ``X × W = Q``; cell: the word and the dimension that are written out."""
    word, dimension = cell
    letter = {"query": "Q", "key": "K", "value": "V"}[kind]
    n = matrix.shape[0]
    terms = arithmetic.product(vectors[word], matrix[:, dimension], float(made[word, dimension]))
    of_matrix: dict[str, Any] = {"sign": "×", "hue": kind, "marks": _column(dimension, n)}
    product: dict[str, Any] = {
        "sign": "=",
        "hue": kind,
        "name": f"made-{kind}",
        "marks": {cell: "picked"},
    }
    boards = (
        board(N_("X, the words"), vectors, words, ("word", ""), marks=_row(word, n)),
        board(f"W_{letter}", matrix, words, ("", ""), **of_matrix),
        board(letter, made, words, ("word", ""), **product),
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


_PAIR = {"names": "{i},{j}", "lights": "{i},{j} q{i} k{j} t{i}"}
Part = tuple[Sequence[Board], Sequence[str]]
"""Of a line: its boards, and its arithmetic."""


def _scores(
    attended: Attended, words: Sequence[str], pick: Pick, letters: tuple[str, str, str]
) -> Part:
    width = attended.query.shape[1]
    query, key = pick.query, pick.key
    q, k, _v = letters
    rows: dict[str, Any] = {"name": "query", "hue": "query", "marks": _row(query, width)}
    columns: dict[str, Any] = {"name": "key", "hue": "key", "marks": _column(key, width)}
    picked: dict[str, Any] = {"name": "scores", "marks": {(query, key): "picked"}, **_PAIR}
    transposed = re.sub(r"\bK\b", "Kᵀ", k)
    boards = (
        board(q, attended.query, words, ("query", "number"), names="q{i}", **rows),
        board(
            transposed,
            attended.key.T,
            words,
            ("number", "key"),
            sign="×",
            names="k{j}",
            **columns,
        ),
        board("QKᵀ", attended.products, words, sign="=", **picked),
    )
    return boards, (arithmetic.score(attended, query, key, (words[query], words[key])),)


def _masked(attended: Attended, words: Sequence[str], pick: Pick) -> Part:
    cell = (pick.query, pick.key)
    width, is_scaled = attended.query.shape[1], attended.scale != 1
    sign = f"QKᵀ ÷ √{width} =" if is_scaled else N_("QKᵀ, not divided =")
    marks = {cell: "picked"}
    picked: dict[str, Any] = {"marks": marks, **_PAIR}
    title = _scaled_title(attended)
    boards = [
        board(title, attended.scores, words, sign=sign, name="scaled", **picked),
        mask_board(N_("Mask: click a cell"), attended.allowed, words, sign=N_("with"), marks=marks),
    ]
    terms = [arithmetic.scaled(attended, *cell)]
    if not attended.allowed.all():
        title = N_("Masked scores")
        boards.append(board(title, attended.masked, words, sign="=", name="masked", **picked))
        if not attended.allowed[cell]:
            terms.append(N_("forbidden: replaced by the lowest number, −3.4 · 10³⁸"))
    return boards, terms


def _scaled_title(attended: Attended) -> str:
    return N_("Scaled scores") if attended.scale != 1 else N_("Scores, not divided")


def _softmax(attended: Attended, words: Sequence[str], pick: Pick) -> Part:
    cell = (pick.query, pick.key)
    row: dict[str, Any] = {"name": "exp", "marks": _row(pick.query, len(words)) | {cell: "picked"}}
    total: dict[str, Any] = {"columns": (N_("sum"),), "marks": {(pick.query, 0): "used"}}
    picked: dict[str, Any] = {"name": "weights", "marks": {cell: "picked"}}
    share: dict[str, Any] = {"scale": "share", **_PAIR}
    totals = attended.totals[:, None]
    boards = (
        board(N_("e^(score − largest)"), attended.exponentials, words, **row, **share),
        board(
            N_("Sum"), totals, words, ("word", ""), sign="÷", names="t{i}", scale="plain", **total
        ),
        board(N_("Weights"), attended.weights, words, sign="=", **picked, **share),
    )
    return boards, arithmetic.softmaxed(attended, *cell)


def _summed(attended: Attended, words: Sequence[str], pick: Pick, letter: str) -> Part:
    n, query, dimension = len(words), pick.query, pick.dimension
    row: dict[str, Any] = {
        "name": "mix",
        "marks": _row(query, n),
        "names": "w{i}",
        "lights": "w{i} v{j}",
    }
    column: dict[str, Any] = {
        "name": "value",
        "hue": "value",
        "marks": _column(dimension, n),
        "names": "v{i}",
    }
    picked: dict[str, Any] = {
        "name": "output",
        "marks": {(query, dimension): "picked"},
        "names": "o{i},{j}",
        "lights": "o{i},{j} w{i}",
    }
    boards = (
        board(N_("Weights"), attended.weights, words, scale="share", **row),
        board(letter, attended.value, words, ("key", "number"), sign="×", **column),
        board(N_("Output"), attended.output, words, ("query", "number"), sign="=", **picked),
    )
    terms = arithmetic.summed(attended, query, dimension)
    return boards, (_output_is(words[query], dimension, terms),)


def _output_is(word: str, dimension: int, terms: str) -> Sentence:
    values = {"output": N_("output"), "word": word, "n": dimension + 1, "terms": terms}
    return Sentence("{output}({word}, {n}) = {terms}", values)


def overview_line(attended: Attended, words: Sequence[str], title: str, sentence: str) -> SheetLine:
    """Return what every stage comes to, side by side: Q, K, scores, weights, V and the output."""
    boards = (
        board("Q", attended.query, words, ("query", "number"), hue="query"),
        board("K", attended.key, words, ("key", "number"), hue="key"),
        board(_scaled_title(attended), attended.scores, words),
        board(N_("Weights"), attended.weights, words, scale="share"),
        board("V", attended.value, words, ("key", "number"), hue="value"),
        board(N_("Output"), attended.output, words, ("query", "number")),
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
    n = width // len(attended.heads)
    boards = [
        board(
            N_("Head {n}", n=h + 1),
            head.output,
            words,
            ("word", ""),
            columns=tuple(map(str, range(h * n + 1, (h + 1) * n + 1))),
            sign="|" if h else "",
            marks=_row(pick.query, width),
        )
        for h, head in enumerate(attended.heads)
    ]
    cell = pick.query, pick.dimension
    column: dict[str, Any] = {"sign": "×", "marks": _column(pick.dimension, width)}
    picked: dict[str, Any] = {"sign": "=", "name": "final", "marks": {cell: "picked"}}
    boards += [
        board("W_O", matrix, words, ("", ""), **column),
        board(N_("Output"), attended.output, words, ("word", ""), **picked),
    ]
    total = float(attended.output[cell])
    terms = arithmetic.product(attended.joined[pick.query], matrix[:, pick.dimension], total)
    written_out = _output_is(words[pick.query], pick.dimension, terms)
    return SheetLine(title, tuple(boards), sentence, (written_out,))


def beside(
    matrices: Sequence[tuple[str, Floats, str]],
    words: Sequence[str],
    title: str,
    sentence: str,
    sides: tuple[str, str] = ("query", "key"),
    **look: Any,
) -> SheetLine:
    """Return matrices side by side: the same cell of all of them lights up.

    matrices: name, values (rows, columns), and a fact, if any.
    """
    boards = tuple(
        board(name, values, words, sides, names="{i},{j}", facts=(fact,) if fact else (), **look)
        for name, values, fact in matrices
    )
    return SheetLine(title, boards, sentence)


def masked_line(flow: MaskedAttention, query: Sequence[str], key: Sequence[str]) -> SheetLine:
    """Return the five steps of a masked attention, whose pairs and rows light up together."""
    forbidden = {(i, j): "out" for i, j in np.argwhere(~flow.allowed).tolist()}
    weights = [[written(value).removeprefix("0") for value in row] for row in flow.weights.tolist()]
    zeros = {"value": N_("nothing allowed: zeros")}
    says = [
        [_said(N_("weight"), **(zeros if row in flow.blind else {}))] * len(key)
        for row in range(len(query))
    ]
    pairs: dict[str, Any] = {"columns": key, "names": "{i},{j} r{i}", "lights": "{i},{j} o{i}"}
    top = float(np.abs(flow.scores).max())
    scores: dict[str, Any] = {"digits": 1, "top": top, **pairs}
    lowest: dict[str, Any] = {
        "says": _said(N_("masked score")),
        "lowest": N_("min"),
    }  # what a cell has room for
    shares: dict[str, Any] = {"texts": weights, "says": says, "marks": forbidden, **pairs}
    rows: dict[str, Any] = {"names": "o{i} o{i},{j}", "lights": "r{i} o{i},{j}", "digits": 1}
    titles = (
        N_("1 · Scores: query · key / √d"),
        N_("2 · Mask: click to change"),
        N_("3 · Masked scores; min: −3.4·10³⁸"),
        N_("4 · Weights: softmax of each row"),
        N_("5 · Output: weights × values"),
    )
    sides = "query", "dimension"
    boards = (
        board(titles[0], flow.scores, query, says=_said(N_("score")), **scores),
        mask_board(titles[1], flow.allowed, query, **pairs),
        board(titles[2], flow.masked, query, **lowest, **scores),
        board(titles[3], flow.weights, query, scale="share", **shares),
        board(titles[4], flow.output, query, sides, says=_said(N_("output")), **rows),
    )
    return SheetLine("", boards)


def _said(name: str, value: str = "{value}") -> Sentence:
    return Sentence("{name}: {value}", {"name": name, "value": value})
