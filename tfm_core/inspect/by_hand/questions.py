"""One question for each stage of attention by hand, answered by the numbers on the page."""

from __future__ import annotations

import numpy as np

from tfm_core.inspect.by_hand.attention import Attended, MultiHead
from tfm_core.inspect.questions import Question, choice_question, number_question
from tfm_core.probe.types import Floats
from tfm_core.sentences import N_, Paragraph


def about_scale(
    scaled: Attended, plain: Attended, words: tuple[str, ...], query: int, *, is_scaled: bool = True
) -> Question:
    """Ask what the weight of a word on its own strongest key becomes without the scale, or with it.

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
    multiplied, divided, shared = (
        N_("The scores are multiplied, not the weights."),
        N_("The scores are divided, not the weights."),
        N_("Equal weights come from equal scores."),
    )
    if not is_scaled:
        text = Paragraph("by_hand/scaled", **values)
        because = N_("Smaller scores are closer together, so the softmax favours the largest less.")
    wrong = {
        before: N_("That is the weight now."),
        min(1.0, before * scaled.scale): multiplied,
        before / scaled.scale: divided,
        even: shared,
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
            no: N_("Here Q and K are equal, so both products are."),
            yes: N_("Only with Q = K: W_Q and W_K give a word two vectors."),
        },
        Paragraph("by_hand/two-matrices", one=one, other=other),
    )


def about_heads(vectors: Floats, n_heads: int) -> Question:
    """Ask how long the query of one head is."""
    d_model = vectors.shape[1]
    return number_question(
        Paragraph("by_hand/head-width", d_model=d_model, n_heads=n_heads),
        d_model // n_heads,
        Paragraph(
            "by_hand/head-scale", d_model=d_model, n_heads=n_heads, d_model_2=d_model // n_heads
        ),
        wrong={
            d_model: N_("That is the whole query."),
            n_heads: N_("That is the number of heads."),
        },
        hint=N_("The heads share a word's numbers equally."),
    )


def about_size(vectors: Floats, n_heads: int) -> Question:
    """Ask how many numbers the one large projection holds."""
    d_model = vectors.shape[1]
    return number_question(
        N_(
            "How many numbers has one matrix for Q, K and V of all {n_heads} heads?",
            n_heads=n_heads,
        ),
        3 * d_model**2,
        N_(
            "3 · {d_model}² = {d_model_2}, for any number of heads.",
            d_model=d_model,
            d_model_2=3 * d_model**2,
        ),
        wrong={
            d_model**2: N_("That is one of Q, K and V."),
            3 * d_model**2 * n_heads: N_("Heads only cut the same matrix into pieces."),
            3 * d_model: N_("That is the number of columns."),
        },
        hint=N_("A row per number of a word, a column per number of Q, K and V."),
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
            N_("Each reads other words"): N_("All three read every word of X."),
            N_("The softmax makes them differ"): N_("It comes later, and changes none of them."),
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
    fails, mixed = N_("An error"), N_("Numbers that compare no two words")
    options: dict[str, str] = {
        fails: N_("Both are square here, so they multiply."),
        mixed: N_("Rows of {d} numbers do not fit columns of {n}.", d=width, n=n_words),
        N_("The same scores"): N_("Scores are products of a query and a key, row with row."),
    }
    if n_words != width:
        because: str = Paragraph("by_hand/transposed-fails", right=right, **values)
        return choice_question(_without_transpose(n_words, width), fails, options, because)
    direct = float((head.query @ head.key)[0, other])
    because = Paragraph("by_hand/transposed-mixes", right=right, direct=direct, **values)
    return choice_question(_without_transpose(n_words, width), mixed, options, because)


def _without_transpose(n_words: int, width: int) -> str:
    return N_(
        "Q and K are both ({n}, {d}). What is Q @ K, without transposing K?", n=n_words, d=width
    )


def about_minus_one(attended: MultiHead, words: tuple[str, ...]) -> Question | None:
    """Ask what -1 is where heads are merged, and show what the transpose before it is for."""
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
            heads.size: N_("That is how many numbers there are in all."),
            n_heads: N_("That is the number of heads."),
        },
        hint=N_("All numbers, divided by the rows."),
    )


_MOST = 6


def _row(numbers: Floats) -> str:
    """Return the first numbers of a row, as a page writes them."""
    shown = ", ".join(f"{number:.2f}" for number in numbers[:_MOST].tolist())
    return f"({shown}{', …' if len(numbers) > _MOST else ''})"
