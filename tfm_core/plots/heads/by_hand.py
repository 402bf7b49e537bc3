"""Attention by hand: sheets of numbers, and the one board that is worked on.

Each step is a line of tables, with one cell written out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tfm_core.inspect import by_hand_text
from tfm_core.inspect.by_hand import Attended, Matrices, MultiHead
from tfm_core.inspect.mask_lab import MaskedAttention
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


Marks = dict[Place, str]


def _row(row: int, n: int) -> Marks:
    return {(row, i): "used" for i in range(n)}


def _column(column: int, n: int) -> Marks:
    return {(i, column): "used" for i in range(n)}


def projection_lines(
    vectors: Floats, matrices: Matrices, head: Attended, words: Sequence[str], pick: Pick
) -> list[SheetLine]:
    """Return ``X × W_Q = Q``, and so for K and V."""
    parts = (
        (N_("Queries: what a word looks for"), "query", "Q", matrices.query, head.query),
        (N_("Keys: what a word offers"), "key", "K", matrices.key, head.key),
        (N_("Values: what a word passes on"), "value", "V", matrices.value, head.value),
    )
    lines = []
    for title, kind, letter, matrix, made in parts:
        word, column = pick.query if kind == "query" else pick.key, pick.dimension
        used, across = _row(word, len(matrix)), _column(column, len(matrix))
        picked: Marks = {(word, column): "picked"}
        sides = "word", ""
        boards = (
            board(N_("X, the words"), vectors, words, sides, marks=used),
            board(f"W_{letter}", matrix, words, ("", ""), sign="×", hue=kind, marks=across),
            board(
                letter, made, words, sides, sign="=", hue=kind, name=f"made-{kind}", marks=picked
            ),
        )
        terms = by_hand_text.product(vectors[word], matrix[:, column], float(made[word, column]))
        written_out = f"{letter}({words[word]}, {column + 1}) = {terms}"
        lines.append(SheetLine(title, boards, arithmetic=(written_out,)))
    return lines


def attention_lines(
    attended: Attended,
    words: Sequence[str],
    pick: Pick,
    letters: tuple[str, str, str] = ("Q", "K", "V"),
    *,
    is_scaled: bool = True,
) -> list[SheetLine]:
    """Return the four lines of one attention: scores, scale and mask, softmax, weighted sum."""
    parts = (
        _scores(attended, words, pick, letters),
        _masked(attended, words, pick),
        _softmax(attended, words, pick),
        _summed(attended, words, pick, letters[2]),
    )
    titles = [title for title, _sentence in _STEPS]
    if not is_scaled:
        titles[1] = N_("2 · Mask, without dividing")
    return [
        SheetLine(title, tuple(boards), sentence, tuple(terms))
        for title, (_title, sentence), (boards, terms) in zip(titles, _STEPS, parts, strict=True)
    ]


_STEPS = (
    (
        N_("1 · Scores: each query times each key"),
        N_("Click a number to outline its inputs."),
    ),
    (N_("2 · Scale and mask"), N_("A sum of d products has a standard deviation of √d.")),
    (N_("3 · Softmax: each row adds up to 1"), N_("Exponentials, divided by their sum.")),
    (N_("4 · Weighted sum of the values"), N_("Each output is a weighted sum of all values.")),
)
_PAIR: dict[str, Any] = {"names": "{i},{j}", "lights": "{i},{j} q{i} k{j} t{i}"}
Part = tuple[Sequence[Board], Sequence[str]]
"""Of a line: its boards, and its arithmetic."""


def _scores(
    attended: Attended, words: Sequence[str], pick: Pick, letters: tuple[str, str, str]
) -> Part:
    width = attended.query.shape[1]
    query, key = pick.query, pick.key
    row, column, picked = _row(query, width), _column(key, width), {(query, key): "picked"}
    q, k, _v = letters
    k = re.sub(r"\bK\b", "Kᵀ", k)
    asks, answers = ("query", "number"), ("number", "key")
    is_asked: dict[str, Any] = {"name": "query", "hue": "query", "names": "q{i}"}
    is_key: dict[str, Any] = {"name": "key", "hue": "key", "names": "k{j}"}
    boards = (
        board(q, attended.query, words, asks, marks=row, **is_asked),
        board(k, attended.key.T, words, answers, sign="×", marks=column, **is_key),
        board("QKᵀ", attended.products, words, sign="=", name="scores", marks=picked, **_PAIR),
    )
    return boards, (by_hand_text.score(attended, query, key, (words[query], words[key])),)


def _masked(attended: Attended, words: Sequence[str], pick: Pick) -> Part:
    cell = (pick.query, pick.key)
    marks = {cell: "picked"}
    is_divided = attended.scale != 1
    sign = f"QKᵀ ÷ √{attended.query.shape[1]} =" if is_divided else N_("QKᵀ, not divided =")
    title, mask = _scaled_title(attended), N_("Mask: click a cell")
    boards = [
        board(title, attended.scores, words, sign=sign, name="scaled", marks=marks, **_PAIR),
        mask_board(mask, attended.allowed, words, sign=N_("with"), marks=marks),
    ]
    terms = [by_hand_text.scaled(attended, *cell)]
    if not attended.allowed.all():
        title = N_("Masked scores")
        look: dict[str, Any] = {"sign": "=", "name": "masked", "marks": marks}
        boards.append(board(title, attended.masked, words, **look, **_PAIR))
        if not attended.allowed[cell]:
            terms.append(N_("masked: replaced by the lowest number, −3.4 · 10³⁸"))
    return boards, terms


def _scaled_title(attended: Attended) -> str:
    return N_("Scaled scores") if attended.scale != 1 else N_("Scores, not divided")


def _softmax(attended: Attended, words: Sequence[str], pick: Pick) -> Part:
    cell = (pick.query, pick.key)
    picked: Marks = {cell: "picked"}
    row = _row(pick.query, len(words)) | picked
    share: dict[str, Any] = {"scale": "share", **_PAIR}
    total: dict[str, Any] = {"columns": (N_("sum"),), "names": "t{i}", "scale": "plain"}
    total["marks"] = {(pick.query, 0): "used"}
    title, totals = N_("e^(score − largest)"), attended.totals[:, None]
    boards = (
        board(title, attended.exponentials, words, name="exp", marks=row, **share),
        board(N_("Sum"), totals, words, ("word", ""), sign="÷", **total),
        board(
            N_("Weights"), attended.weights, words, sign="=", name="weights", marks=picked, **share
        ),
    )
    return boards, by_hand_text.softmaxed(attended, *cell)


def _summed(attended: Attended, words: Sequence[str], pick: Pick, letter: str) -> Part:
    query, dimension = pick.query, pick.dimension
    row, column = _row(query, len(words)), _column(dimension, len(words))
    mix: dict[str, Any] = {"name": "mix", "names": "w{i}", "lights": "w{i} v{j}", "marks": row}
    value: dict[str, Any] = {"name": "value", "hue": "value", "names": "v{i}", "marks": column}
    output: dict[str, Any] = {"name": "output", "names": "o{i},{j}", "lights": "o{i},{j} w{i}"}
    output["marks"] = {(query, dimension): "picked"}
    boards = (
        board(N_("Weights"), attended.weights, words, scale="share", **mix),
        board(letter, attended.value, words, ("key", "number"), sign="×", **value),
        board(N_("Output"), attended.output, words, ("query", "number"), sign="=", **output),
    )
    terms = by_hand_text.summed(attended, query, dimension)
    return boards, (_output_is(words[query], dimension, terms),)


def _output_is(word: str, dimension: int, terms: str) -> Sentence:
    values = {"output": N_("output"), "word": word, "n": dimension + 1, "terms": terms}
    return Sentence("{output}({word}, {n}) = {terms}", values)


def overview_line(attended: Attended, words: Sequence[str]) -> SheetLine:
    """Return what every stage comes to, side by side: Q, K, scores, weights, V and the output."""
    boards = (
        board("Q", attended.query, words, ("query", "number"), hue="query"),
        board("K", attended.key, words, ("key", "number"), hue="key"),
        board(_scaled_title(attended), attended.scores, words),
        board(N_("Weights"), attended.weights, words, scale="share"),
        board("V", attended.value, words, ("key", "number"), hue="value"),
        board(N_("Output"), attended.output, words, ("query", "number")),
    )
    sentence = N_("Every stage follows the training step above.")
    return SheetLine(N_("All stages at this training step"), boards, sentence)


def joined_line(attended: MultiHead, matrix: Floats, words: Sequence[str], pick: Pick) -> SheetLine:
    """Return the heads' outputs, one behind the other, times W_O."""
    width = attended.joined.shape[1]
    n = width // len(attended.heads)
    cell = pick.query, pick.dimension
    row, column = _row(pick.query, width), _column(pick.dimension, width)
    boards = []
    for h, head in enumerate(attended.heads):
        columns = tuple(str(number + 1) for number in range(h * n, (h + 1) * n))
        look: dict[str, Any] = {"columns": columns, "sign": "|" if h else "", "marks": row}
        boards.append(board(N_("Head {n}", n=h + 1), head.output, words, ("word", ""), **look))
    picked: dict[str, Any] = {"sign": "=", "name": "final", "marks": {cell: "picked"}}
    boards += [
        board("W_O", matrix, words, ("", ""), sign="×", marks=column),
        board(N_("Output"), attended.output, words, ("word", ""), **picked),
    ]
    total = float(attended.output[cell])
    terms = by_hand_text.product(attended.joined[pick.query], matrix[:, pick.dimension], total)
    return SheetLine(
        N_("5 · Concatenated, and mixed by W_O"),
        tuple(boards),
        N_("W_O mixes the outputs of the heads."),
        (_output_is(words[pick.query], pick.dimension, terms),),
    )


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
    zeros = {"value": N_("no key allowed, so zeros")}
    says = [
        [_said(N_("weight"), **(zeros if row in flow.blind else {}))] * len(key)
        for row in range(len(query))
    ]
    pairs: dict[str, Any] = {"columns": key, "names": "{i},{j} r{i}", "lights": "{i},{j} o{i}"}
    scores: dict[str, Any] = {"digits": 1, "top": float(np.abs(flow.scores).max()), **pairs}
    lowest = N_("min")  # what a cell has room for
    shares: dict[str, Any] = {"scale": "share", "texts": weights, "marks": forbidden, **pairs}
    rows: dict[str, Any] = {"names": "o{i} o{i},{j}", "lights": "r{i} o{i},{j}", "digits": 1}
    titles = (
        N_("1 · Scores: query · key / √d"),
        N_("2 · Mask: click to change"),
        N_("3 · Masked scores; min: −3.4·10³⁸"),
        N_("4 · Weights: softmax of each row"),
        N_("5 · Output: weights × values"),
    )
    sides = "query", "dimension"
    masked, output = _said(N_("masked score")), _said(N_("output"))
    boards = (
        board(titles[0], flow.scores, query, says=_said(N_("score")), **scores),
        mask_board(titles[1], flow.allowed, query, **pairs),
        board(titles[2], flow.masked, query, says=masked, lowest=lowest, **scores),
        board(titles[3], flow.weights, query, says=says, **shares),
        board(titles[4], flow.output, query, sides, says=output, **rows),
    )
    return SheetLine("", boards)


def _said(name: str, value: str = "{value}") -> Sentence:
    return Sentence("{name}: {value}", {"name": name, "value": value})
