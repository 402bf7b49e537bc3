"""Attention by hand as text: what is typed, each number written out, and a question for each stage.

What is typed comes from a link or a field, and is answered with sentences. Questions are answered
by the numbers on the page.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tfm_core.inspect.by_hand import LARGEST, MAX, MAX_LETTERS, MIN, Attended, MultiHead
from tfm_core.inspect.questions import Question, choice_question, number_question
from tfm_core.probe.types import Floats
from tfm_core.sentences import N_, Paragraph, Sentence, StudentError

_MAX_TEXT = 400
MINUS = "−"


def words_of(text: str) -> tuple[str, ...]:
    """Cut a line into words at spaces and commas.

    Raises ValueError, in a sentence, for too few, too many, or a monstrous one.
    """
    words = tuple(re.split(r"[\s,]+", text.strip())) if text.strip() else ()
    if not MIN <= len(words) <= MAX:
        raise StudentError("Type {fewest} to {most} words.", fewest=MIN, most=MAX)
    for word in words:
        if len(word) > MAX_LETTERS:
            raise StudentError(
                "“{word}…” has {n} letters; the limit is {most_letters}.",
                word=word[:MAX_LETTERS],
                n=len(word),
                most_letters=MAX_LETTERS,
            )
    return words


def text_of(table: npt.ArrayLike) -> str:
    """Write a table for a link: ``1,0,0;0,1,0``."""
    rows = np.asarray(table).tolist()
    return ";".join(",".join(f"{round(value, 4):g}" for value in row) for row in rows)


def table_of(text: str, name: str, n_rows: int, n_columns: int) -> Floats:
    """Read a table from a link; ``name`` is its name on the page.

    Raises ValueError, in a sentence, where it is not that many numbers from -10 to 10.
    """
    rows = [row.split(",") for row in text[:_MAX_TEXT].split(";")]
    if [len(row) for row in rows] != [n_columns] * n_rows:
        raise StudentError(
            "{name} in the link is not {n_rows} rows of {n_columns} numbers.",
            name=name,
            n_rows=n_rows,
            n_columns=n_columns,
        )
    return rounded([[_number(part) for part in row] for row in rows])


def pairs_of(text: str, n_words: int) -> tuple[tuple[int, int], ...]:
    """Read pairs of words, each counted from 1, from a link: ``1-3,2-2``; returned from 0.

    Raises ValueError, in a sentence, for a pair of words that are not there.
    """
    pairs = set()
    for pair in filter(None, text[:_MAX_TEXT].split(",")):
        pairs.add(indices_of(pair, (n_words, n_words)))
    return tuple(sorted((query, key) for query, key in pairs))


def indices_of(text: str, sizes: Sequence[int]) -> tuple[int, ...]:
    """Read indices counted from 1, ``3-2-1``, one within each size; returned from 0.

    Raises ValueError, in a sentence, where they are not that many or beyond a size.
    """
    parts = text.split("-")
    indices = tuple(int(part) - 1 for part in parts if re.fullmatch(r"[1-9]\d?", part))
    is_there = len(indices) == len(parts) == len(sizes)
    if not is_there or any(at >= size for at, size in zip(indices, sizes, strict=True)):
        ranges = ", ".join(f"1 to {size}" for size in sizes)
        raise StudentError(
            "“{text}” in the link is not {n_sizes} indices ({ranges}).",
            text=text[:20],
            n_sizes=len(sizes),
            ranges=ranges,
        )
    return indices


def text_of_indices(indices: Sequence[int]) -> str:
    """Write indices for a link, counted from 1: ``3-2-1``."""
    return "-".join(str(index + 1) for index in indices)


def rounded(vectors: npt.ArrayLike) -> Floats:
    """Return numbers as a link gives them back, with four digits.

    Raises ValueError for a missing or a too large one.
    """
    values = np.round(np.asarray(vectors, np.float64), 4).astype(np.float32)
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise StudentError(
            "Type a number in row {row}, column {column}.", row=row + 1, column=column + 1
        )
    if np.abs(values).max(initial=0) > LARGEST:
        worst = float(values.flat[int(np.abs(values).argmax())])
        raise StudentError("{worst:g} is not between -10 and 10.", worst=worst)
    return values


def _number(text: str) -> float:
    if not re.fullmatch(r"\s*[-+]?(\d+\.?\d*|\.\d+)\s*", text) or not math.isfinite(float(text)):
        raise StudentError("“{text}” is not a number, such as 1, 0.5 or -2.", text=text[:20])
    return float(text)


def number(value: float, *, is_whole: bool = False) -> str:
    """Return a number with two digits where they are exact, else with four.

    is_whole: a whole number stands without digits.
    """
    digits = (
        0 if is_whole and value == round(value) else 2 if abs(value - round(value, 2)) < 1e-6 else 4
    )
    text = f"{value:.{digits}f}"
    if not text.strip("-0."):
        text = text.removeprefix("-")
    return text.replace("-", MINUS)


def product(
    left: Sequence[float] | Floats,
    right: Sequence[float] | Floats,
    total: float,
    *,
    is_whole: bool = False,
) -> str:
    """Return ``0.71 × 1.00 + 0.00 × 2.00 = 0.71``; total: what the computer found."""
    pairs = zip(left, right, strict=True)
    terms = " + ".join(
        f"{_bracket(float(a), is_whole)} × {_bracket(float(b), is_whole)}" for a, b in pairs
    )
    return f"{terms} = {number(total, is_whole=is_whole)}"


def score(attended: Attended, query: int, key: int, names: tuple[str, str]) -> str:
    """Write out the dot product of a query and a key."""
    terms = product(attended.query[query], attended.key[key], float(attended.products[query, key]))
    return f"q({names[0]}) · k({names[1]}) = {terms}"


def scaled(attended: Attended, query: int, key: int) -> str:
    """Write out the division by sqrt(D)."""
    before, after = float(attended.products[query, key]), float(attended.scores[query, key])
    if attended.scale == 1.0:
        return N_("{value} (not divided)", value=number(after))
    width = attended.query.shape[1]
    quotient = f"{number(before)} / √{width}"
    return f"{quotient} = {number(before)} / {attended.scale:.4f} = {number(after)}"


def softmaxed(attended: Attended, query: int, key: int) -> tuple[str, ...]:
    """Write out the exponentials of a row, their sum, and one weight; one string a line."""
    allowed = attended.allowed[query]
    if not allowed.any():
        return (N_("The mask forbids the whole row, so this app sets its weights to 0."),)
    row = attended.masked[query][allowed]
    largest = float(row.max())
    exponents = " + ".join(
        f"e^({number(float(value))} {MINUS} {_bracket(largest)})" for value in row
    )
    values = " + ".join(number(float(value)) for value in attended.exponentials[query][allowed])
    total = float(attended.totals[query])
    lines = (_equals(N_("sum"), exponents), f"= {values} = {number(total)}")
    if not allowed[key]:
        return (*lines, N_("The mask forbids this key, so its weight is exactly 0."))
    mine, weight = float(attended.exponentials[query, key]), float(attended.weights[query, key])
    return (*lines, _equals(N_("weight"), f"{number(mine)} / {number(total)} = {number(weight)}"))


def _equals(name: str, terms: str) -> Sentence:
    return Sentence("{name} = {terms}", {"name": name, "terms": terms})


def summed(attended: Attended, query: int, dimension: int) -> str:
    """Write out one number of the output: the weights of a row times a column of the values."""
    value = float(attended.output[query, dimension])
    return product(attended.weights[query], attended.value[:, dimension], value)


def _bracket(value: float, is_whole: bool = False) -> str:
    text = number(value, is_whole=is_whole)
    return f"({text})" if text.startswith(MINUS) else text


def about_scale(
    scaled: Attended, plain: Attended, words: tuple[str, ...], query: int, *, is_scaled: bool = True
) -> Question:
    """Ask for the weight of a word on its strongest key without the scale, or with the scale.

    is_scaled: the sheet shows the weights with the scale, and the question is about the others.
    """
    shown, other_way = (scaled, plain) if is_scaled else (plain, scaled)
    key = int(shown.weights[query].argmax())
    before, after = float(shown.weights[query, key]), float(other_way.weights[query, key])
    even = 1 / max(1, int(scaled.allowed[query].sum()))
    d = scaled.query.shape[1]
    values = {"word": words[query], "word_2": words[key], "before": before, "shape": d}
    text: str = Paragraph("by_hand/unscaled", **values)
    because = N_("Larger scores are further apart, so the softmax favours the largest more.")
    if not is_scaled:
        text = Paragraph("by_hand/scaled", **values)
        because = N_("Smaller scores are closer together, so the softmax favours the largest less.")
    wrong = {
        before: N_("That is the weight now."),
        min(1.0, before * scaled.scale): N_("The scores are multiplied, not the weights."),
        before / scaled.scale: N_("The scores are divided, not the weights."),
        even: N_("Equal weights come from equal scores."),
    }
    right = f"{after:.2f}"
    why = {f"{value:.2f}": reason for value, reason in wrong.items()}
    why.pop(right, None)
    return Question(text, right, because, tuple(sorted({right, *why})), why)


def about_symmetry(attended: Attended, words: tuple[str, ...]) -> Question:
    """Ask to read off the scores whether two words score each other alike, and what follows."""
    is_alike = bool(np.allclose(attended.products, attended.products.T, atol=1e-5))
    first, last = words[0], words[-1]
    at = len(words) - 1
    one, other = float(attended.products[0, at]), float(attended.products[at, 0])
    yes, no = N_("Yes, QKᵀ is symmetric"), N_("No, query and key differ")
    return choice_question(
        Paragraph("by_hand/is-symmetric", first=first, last=last),
        yes if is_alike else no,
        {
            no: N_("Here Q and K are equal, so both products are equal."),
            yes: N_("Only if Q = K. W_Q and W_K give a word two different vectors."),
        },
        Paragraph("by_hand/two-matrices", one=one, other=other),
    )


def about_heads(vectors: Floats, n_heads: int) -> Question:
    """Ask how long the query of one head is."""
    d_model = vectors.shape[1]
    width = d_model // n_heads
    values = {"d_model": d_model, "n_heads": n_heads, "d_model_2": width}
    return number_question(
        Paragraph("by_hand/head-width", **values),
        width,
        Paragraph("by_hand/head-scale", **values),
        wrong={
            d_model: N_("That is the query of all heads."),
            n_heads: N_("That is the number of heads."),
        },
        hint=N_("The heads share a word's numbers equally."),
    )


def about_size(vectors: Floats, n_heads: int) -> Question:
    """Ask how many numbers the one large projection holds."""
    d_model = vectors.shape[1]
    size = 3 * d_model**2
    values = {"n_heads": n_heads, "d_model": d_model, "d_model_2": size}
    return number_question(
        N_(
            "How many numbers does one matrix for Q, K and V of all {n_heads} heads hold?", **values
        ),
        size,
        N_("3 · {d_model}² = {d_model_2}, for any number of heads.", **values),
        wrong={
            d_model**2: N_("That is one of Q, K and V."),
            size * n_heads: N_("Heads only cut the same matrix into pieces."),
            3 * d_model: N_("That is the number of columns."),
        },
        hint=N_(
            "It has a row for each number of a word and a column for each number of Q, K and V."
        ),
    )


def about_three_maps(head: Attended, words: tuple[str, ...]) -> Question | None:
    """Ask why three maps of the same words differ; None where two of them are equal."""
    made = (head.query, head.key, head.value)
    if any(np.allclose(made[i], made[j], atol=1e-5) for i, j in ((0, 1), (0, 2), (1, 2))):
        return None
    return choice_question(
        N_("W_Q, W_K and W_V read the same X. Why do Q, K and V differ?"),
        N_("Their numbers differ"),
        {
            N_("They read different words"): N_("All three read every word of X."),
            N_("The softmax makes them differ"): N_(
                "The softmax comes later and changes none of them."
            ),
        },
        Paragraph(
            "by_hand/three-maps",
            word=words[0],
            query=_row(head.query[0]),
            key=_row(head.key[0]),
            value=_row(head.value[0]),
        ),
    )


def about_transposed_keys(head: Attended, words: tuple[str, ...]) -> Question:
    """Ask what Q @ K is without the transpose of K."""
    n_words, width = head.query.shape
    other = min(1, n_words - 1)
    values = {"n": n_words, "d": width, "first": words[0], "second": words[other]}
    right = float(head.products[0, other])
    text = N_("Q and K are both ({n}, {d}). What is Q @ K, without transposing K?", **values)
    fails, mixed = N_("An error"), N_("Numbers that don't compare words")
    options: dict[str, str] = {
        fails: N_("Both are square here, so the product exists."),
        mixed: N_("Rows of {d} numbers do not fit columns of {n}.", d=width, n=n_words),
        N_("The same scores"): N_("A score multiplies a row of Q by a row of K."),
    }
    if n_words != width:
        because: str = Paragraph("by_hand/transposed-fails", right=right, **values)
        return choice_question(text, fails, options, because)
    direct = float((head.query @ head.key)[0, other])
    because = Paragraph("by_hand/transposed-mixes", right=right, direct=direct, **values)
    return choice_question(text, mixed, options, because)


def about_minus_one(attended: MultiHead, words: tuple[str, ...]) -> Question | None:
    """Ask for -1 where heads are merged, and show why a transpose comes first."""
    heads = np.stack([head.output for head in attended.heads])  # (H, T, d_head)
    n_heads, n_words, d_head = heads.shape
    if n_heads == 1:
        return None
    width = n_heads * d_head
    direct, merged = heads.reshape(n_words, -1), heads.transpose(1, 0, 2).reshape(n_words, -1)
    return number_question(
        Paragraph("by_hand/minus-one", heads=n_heads, n=n_words, d=d_head),
        width,
        Paragraph(
            "by_hand/why-transpose-again",
            total=heads.size,
            n=n_words,
            width=width,
            word=words[0],
            direct=_row(direct[0]),
            merged=_row(merged[0]),
        ),
        wrong={
            d_head: N_("That is the width of one head."),
            heads.size: N_("That is the count of all numbers."),
            n_heads: N_("That is the number of heads."),
        },
        hint=N_("Divide the count of all numbers by the number of rows."),
    )


def _row(numbers: Floats) -> str:
    """Return the first numbers of a row, as a page writes them."""
    shown = ", ".join(f"{number:.2f}" for number in numbers[:6].tolist())
    return f"({shown}{', …' if len(numbers) > 6 else ''})"
