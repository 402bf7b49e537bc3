"""Questions about texts and what models make of them, answered by the text or model in hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from tfm_core.inspect.questions import Question, choice_question, number_question
from tfm_core.inspect.text import tokenise
from tfm_core.inspect.text.blanks import Blank
from tfm_core.inspect.text.caption_look import CaptionReading
from tfm_core.inspect.text.sentence import SentenceReading
from tfm_core.inspect.text.tokenise import PaddedBatch, Token
from tfm_core.sentences import N_, Paragraph, percent

MAX_OPTIONS = 4
ALIKE = 1.1
"""Perplexities whose ratio is below this count as alike."""


def compound_of(text: str) -> str:
    """Return a new word: the two longest different words of a text in one; "" with fewer."""
    words = [word for word in tokenise.words_of(text) if word.isalpha()]
    longest = sorted(dict.fromkeys(words), key=lambda word: -len(word))[:2]
    return "".join(longest) if len(longest) == 2 else ""


def about_compound(word: str, tokens: Sequence[Token]) -> Question:
    """Ask into how many tokens a new word is cut, as ``tokens`` are."""
    pieces = " · ".join(token.shown for token in tokens)
    return number_question(
        N_("Into how many tokens is the new word “{word}” cut?", word=word),
        len(tokens),
        N_("It becomes {pieces}.", pieces=pieces),
        wrong={
            1: N_("For that, the whole word would have to be in the vocabulary."),
            2: N_("Its two halves were words of the text, but the cut doesn't know that."),
            len(word): N_("That is the number of characters, but here pieces are longer."),
            len(word.encode()): N_("That is the number of bytes, but here pieces are longer."),
        },
        hint=N_("Look at how the two words inside it are cut above."),
    )


def about_padding(made: PaddedBatch) -> Question:
    """Ask how much padding the rows get when a sentence two tokens longer than all joins them."""
    n, width = made.ids.shape
    lengths = made.mask.sum(1)
    longer = width + 2
    before, after = (int((size - lengths).sum()) for size in (width, longer))
    return number_question(
        Paragraph("questions/padding", n=n, longer=longer),
        after,
        N_("Each of the {n} rows grows by 2: {before} + 2 · {n}.", n=n, before=before),
        wrong={
            before: N_("The rectangle grows, because every row is as long as the longest."),
            before + 2: N_("All {n} rows grow by 2, not just one.", n=n),
            before + 2 * (n + 1): N_("The new sentence fills its own row."),
            longer * n: N_("Those are all cells of the old rows, not only their padding."),
        },
        hint=N_("Count the cells without a token that each row gets."),
    )


def about_word(read: SentenceReading) -> Question | None:
    """Ask which word the answer depends on most; None where no two words differ."""
    lost = {word: 0.0 for word in read.words}
    for word, share in zip(read.words, read.needed.tolist(), strict=True):
        lost[word] = max(lost[word], share)
    best = sorted(lost, key=lambda word: -lost[word])
    if len(best) < 2 or lost[best[0]] <= lost[best[1]]:
        return None
    last = [best[0], *best[1 : MAX_OPTIONS - 1], best[-1]]
    why = {
        word: N_(
            "Without “{word}” the answer's probability changes by {points:+.1f} points.",
            word=word,
            points=-100 * lost[word],
        )
        for word in last
    }
    return choice_question(
        N_("Which word does this answer depend on most?"), best[0], why, why[best[0]]
    )


def about_gap(blank: Blank) -> Question | None:
    """Ask which word the model finds likeliest in a gap; None where two are as likely."""
    best = sorted(blank.model, key=lambda word: -blank.model[word])[:MAX_OPTIONS]
    if len(best) < 2 or blank.model[best[0]] == blank.model[best[1]]:
        return None
    why = {
        word: N_(
            "The model gives “{word}” a probability of {share}.",
            word=word,
            share=percent(blank.model[word]),
        )
        for word in best
    }
    return choice_question(
        N_("Which word does the model find most likely?"), best[0], why, why[best[0]]
    )


def about_order(read: pd.DataFrame, backwards: pd.DataFrame) -> Question:
    """Ask how well the model predicts the same text read backwards; both of ``surprisals``."""
    one, other = (float(np.exp(table["nats"].mean())) for table in (read, backwards))
    better, same, worse = (
        N_("Better, with a lower perplexity"),
        N_("About as well"),
        N_("Worse, with a higher perplexity"),
    )
    answer = worse if other > ALIKE * one else better if one > ALIKE * other else same
    figures = N_("Perplexity {one:.2f} forwards, {other:.2f} backwards.", one=one, other=other)
    return choice_question(
        N_("How well does the model predict the same tokens in reverse order?"),
        answer,
        {
            better: N_("It never saw texts backwards, so no token gets easier."),
            same: N_("The tokens are the same, but what comes before each is not."),
            worse: N_("Here the order helps less than you think."),
        },
        figures,
    )


def about_temperature(now: pd.DataFrame, hotter: pd.DataFrame) -> Question:
    """Ask what more temperature does to the likeliest token's share; both of ``next_token``."""
    one, other = float(now["after"][0]), float(hotter["after"][0])
    rises, same, falls = N_("It rises"), N_("It stays the same"), N_("It falls")
    answer = same if np.isclose(one, other, atol=5e-4) else rises if other > one else falls
    token = now["token"][0].strip() or "␣"
    return choice_question(
        N_("At temperature 2, what happens to the probability of “{token}”?", token=token),
        answer,
        {
            rises: N_(
                "Dividing the logits by 2 brings them closer together, so the "
                "likeliest token loses."
            ),
            same: N_(
                "Temperature divides the logits before the softmax, so the probabilities change."
            ),
            falls: N_("Here no other token can be drawn."),
        },
        N_("It goes from {one} to {other}.", one=percent(one), other=percent(other)),
    )


def about_swap(now: CaptionReading, swapped: CaptionReading) -> Question | None:
    """Ask what the model writes once the first two digits change places; None if no two differ."""
    answer = swapped.example.answer_text
    now_text, truth = now.example.answer_text, swapped.example.item["tgt_text"]
    wrong = {
        now_text: N_("That is what the model writes now."),
        now.example.item["tgt_text"]: N_("That describes the picture as it is now."),
        truth: N_("That would be right, but the model makes a mistake here."),
    }
    offered = {option for option in (answer, *wrong) if option}
    if len(offered) < 2 or not answer:
        return None
    return choice_question(
        N_("Swap the first two digits. What does the model write?"),
        answer,
        {option: why for option, why in wrong.items() if option},
        N_("The patches it reads for each word have changed places, too."),
    )


def about_patches(read: CaptionReading) -> Question:
    """Ask among how many patches a head divides its attention for each word."""
    side, across = read.maps.shape[-1], read.example.picture
    assert across is not None
    pixels = across.shape[-1]
    patch = pixels // side
    return number_question(
        N_(
            "Patches are {patch} × {patch} pixels, the picture {pixels} × {pixels}. "
            "How many keys does each word attend to?",
            patch=patch,
            pixels=pixels,
        ),
        side * side,
        N_("One key per patch: ({pixels} / {patch})².", pixels=pixels, patch=patch),
        wrong={
            pixels * pixels: N_("The encoder cut the pixels into patches first."),
            patch * patch: N_("That is the number of pixels in a patch."),
            side: N_("That is one row of patches."),
            len(read.words): N_("That is the number of words, and each word is a query."),
        },
        hint=N_("Count the patches of the picture."),
    )
