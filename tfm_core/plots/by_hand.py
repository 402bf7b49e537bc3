"""Attention by hand as sheets of numbers: each step a line of tables, with one cell written out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfm_core.inspect import by_hand_arithmetic as arithmetic
from tfm_core.inspect.by_hand import Attended, Floats, MultiHead
from tfm_core.plots.by_hand_boards import Pick, board, mask_board, numbered
from tfm_core.plots.sheet import Line

if TYPE_CHECKING:
    from tfm_core.inspect.by_hand_forms import Form


def projection_line(
    title: str, kind: str, vectors: Floats, matrix: Floats, made: Floats,
    words: Sequence[str], place: tuple[int, int],
) -> Line:  # fmt: skip
    """Return ``X × W = Q``; place: the word and the dimension that are written out."""
    word, dimension = place
    letter = {"query": "Q", "key": "K", "value": "V"}[kind]
    n = matrix.shape[0]
    used = {(word, i): "used" for i in range(n)}
    column = {(i, dimension): "used" for i in range(n)}
    names = numbered(n)
    terms = arithmetic.product(vectors[word], matrix[:, dimension], float(made[word, dimension]))
    return Line(
        title,
        (
            board("X, the words", vectors, words, names, roles=used),
            board(f"W_{letter}", matrix, names, names, sign="×", roles=column, hue=kind),
            board(
                letter, made, words, names, sign="=", hue=kind, name=f"made-{kind}",
                roles={place: "picked"},
            ),
        ),
        arithmetic=(f"{letter}({words[word]}, {dimension + 1}) = {terms}",),
    )  # fmt: skip


def attention_lines(
    found: Attended,
    words: Sequence[str],
    pick: Pick,
    titles: tuple[str, str, str, str],
    sentences: tuple[str, str, str, str],
    letters: tuple[str, str, str] = ("Q", "K", "V"),
) -> list[Line]:
    """Return the four lines of one attention: scores, scale and mask, softmax, weighted sum."""
    makers = (_scores, _masked, _softmax, _summed)
    return [
        make(found, words, pick, title, sentence, letters)
        for make, title, sentence in zip(makers, titles, sentences, strict=True)
    ]


def _pair(i: int, j: int) -> tuple[str, ...]:
    return (f"{i},{j}", f"q{i}", f"k{j}", f"t{i}")


def _scores(
    found: Attended, words: Sequence[str], pick: Pick, title: str, sentence: str,
    letters: tuple[str, str, str],
) -> Line:  # fmt: skip
    width = found.query.shape[1]
    names = numbered(width)
    query, key = pick.query, pick.key
    row = {(query, i): "used" for i in range(width)}
    column = {(i, key): "used" for i in range(width)}
    q, k, _v = letters
    boards = (
        board(q, found.query, words, names, hue="query", name="query", roles=row,
              axes=("query", "number"), links=lambda i, _j: (f"q{i}",)),
        board(f"{k[0]}ᵀ{k[1:]}", found.key.T, names, words, hue="key", sign="×", name="key",
              roles=column, axes=("number", "key"), links=lambda _i, j: (f"k{j}",)),
        board("QKᵀ", found.products, words, words, sign="=", name="scores",
              axes=("query", "key"), roles={(query, key): "picked"}, links=_pair),
    )  # fmt: skip
    told = arithmetic.score(found, query, key, (words[query], words[key]))
    return Line(title, boards, sentence, (told,))


def _masked(
    found: Attended, words: Sequence[str], pick: Pick, title: str, sentence: str,
    _letters: tuple[str, str, str],
) -> Line:  # fmt: skip
    place = (pick.query, pick.key)
    width = found.query.shape[1]
    sign = f"QKᵀ ÷ √{width} =" if found.scale != 1 else "QKᵀ, not divided ="
    boards = [
        board("Scaled scores", found.scores, words, words, sign=sign, name="scaled",
              axes=("query", "key"), roles={place: "picked"}, links=_pair),
        mask_board(found.allowed, words, pick, sign="with"),
    ]  # fmt: skip
    told = [arithmetic.scaled(found, *place)]
    if not found.allowed.all():
        boards.append(
            board("Masked scores", found.masked, words, words, sign="=", name="masked",
                  axes=("query", "key"), roles={place: "picked"}, links=_pair)
        )  # fmt: skip
        if not found.allowed[place]:
            told.append("forbidden: replaced by the lowest number, −3.4 · 10³⁸")
    return Line(title, tuple(boards), sentence, tuple(told))


def _softmax(
    found: Attended, words: Sequence[str], pick: Pick, title: str, sentence: str,
    _letters: tuple[str, str, str],
) -> Line:  # fmt: skip
    place = (pick.query, pick.key)
    row = {(pick.query, j): "used" for j in range(len(words))}
    boards = (
        board("e^(score − largest)", found.exponentials, words, words, is_share=True, name="exp",
              axes=("query", "key"), roles=row | {place: "picked"}, links=_pair),
        board("Sum", found.totals[:, None], words, ("sum",), sign="÷", is_plain=True,
              roles={(pick.query, 0): "used"}, links=lambda i, _j: (f"t{i}",)),
        board("Weights", found.weights, words, words, is_share=True, sign="=", name="weights",
              axes=("query", "key"), roles={place: "picked"}, links=_pair),
    )  # fmt: skip
    return Line(title, boards, sentence, arithmetic.softmaxed(found, *place))


def _summed(
    found: Attended, words: Sequence[str], pick: Pick, title: str, sentence: str,
    letters: tuple[str, str, str],
) -> Line:  # fmt: skip
    names = numbered(found.value.shape[1])
    query, dimension = pick.query, pick.dimension
    row = {(query, j): "used" for j in range(len(words))}
    column = {(i, dimension): "used" for i in range(len(words))}
    boards = (
        board("Weights", found.weights, words, words, is_share=True, name="mix", roles=row,
              axes=("query", "key"), links=lambda i, j: (f"w{i}", f"v{j}")),
        board(letters[2], found.value, words, names, sign="×", hue="value", name="value",
              roles=column, axes=("key", "number"), links=lambda i, _j: (f"v{i}",)),
        board("Output", found.output, words, names, sign="=", name="output",
              roles={(query, dimension): "picked"}, axes=("query", "number"),
              links=lambda i, j: (f"o{i},{j}", f"w{i}")),
    )  # fmt: skip
    told = f"output({words[query]}, {dimension + 1}) = "
    return Line(title, boards, sentence, (told + arithmetic.summed(found, query, dimension),))


def heads_line(found: MultiHead, words: Sequence[str], title: str, sentence: str) -> Line:
    """Return the weights of every head side by side."""
    boards = tuple(
        board(f"Head {h + 1}", head.weights, words, words, is_share=True, axes=("query", "key"),
              links=lambda i, j: (f"h{i},{j}",))
        for h, head in enumerate(found.heads)
    )  # fmt: skip
    return Line(title, boards, sentence)


def joined_line(
    found: MultiHead, matrix: Floats, words: Sequence[str], pick: Pick, title: str, sentence: str
) -> Line:
    """Return the heads' outputs, one behind the other, times W_O."""
    width = found.joined.shape[1]
    names = numbered(width)
    boards = [
        board(f"Head {h + 1}", head.output, words,
              names[h * head.output.shape[1] : (h + 1) * head.output.shape[1]],
              sign="|" if h else "", roles={(pick.query, i): "used" for i in range(width)})
        for h, head in enumerate(found.heads)
    ]  # fmt: skip
    place = pick.query, pick.dimension
    boards += [
        board("W_O", matrix, names, names, sign="×",
              roles={(i, pick.dimension): "used" for i in range(width)}),
        board("Output", found.output, words, names, sign="=", name="final",
              roles={place: "picked"}),
    ]  # fmt: skip
    total = float(found.output[place])
    terms = arithmetic.product(found.joined[pick.query], matrix[:, pick.dimension], total)
    told = f"output({words[pick.query]}, {pick.dimension + 1}) = {terms}"
    return Line(title, tuple(boards), sentence, (told,))


def comparison_line(
    scaled: Attended, plain: Attended, words: Sequence[str], title: str, sentence: str
) -> Line:
    """Return the weights with and without the scale."""
    boards = tuple(
        board(name, found.weights, words, words, is_share=True, axes=("query", "key"),
              links=lambda i, j: (f"c{i},{j}",), facts=(f"largest {found.weights.max():.4f}",))
        for name, found in (
            (f"Divided by √{scaled.query.shape[1]}", scaled), ("Not divided", plain)
        )
    )  # fmt: skip
    return Line(title, boards, sentence)


def forms_line(found: Sequence[Form], words: Sequence[str], title: str) -> Line:
    """Return the outputs (T, d_model) of the forms side by side."""
    names = numbered(found[0].output.shape[1])
    boards = tuple(
        board(form.name, form.output, words, names, links=lambda i, j: (f"f{i},{j}",),
              facts=(f"differs by {form.difference:.2g}",))
        for form in found
    )  # fmt: skip
    return Line(title, boards, "Point at a number: the same one lights up in every form.")
