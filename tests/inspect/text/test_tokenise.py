"""Cutting text: any script, nothing lost, what is unknown says so."""

import pytest

from tfm_core.data.vocabulary import UNK
from tfm_core.inspect.text import tokenise
from tfm_core.inspect.text.tokenise import clean, vocabulary, word_counts


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The dog, 개!", ["The", "dog", ",", "개", "!"]),
        ("나는 밥을 먹었다.", ["나는", "밥을", "먹었다", "."]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),  # vowel signs are no letters, yet part of the word
        ("don't", ["don", "'", "t"]),
    ],
)
def test_words_are_cut_at_spaces_and_punctuation_in_any_script(text, words):
    assert tokenise.words_of(text) == words


def test_hangul_is_composed_and_rare_words_are_unknown():
    jamo = "\u1112\u1161\u11ab"
    assert clean(jamo) == "한"
    assert [token.shown for token in tokenise.by_byte(clean(jamo))] == ["ED", "95", "9C"]
    assert clean("a\ue000b\ue001c\x00") == "abc"
    counts = word_counts("a a a b b c")
    assert vocabulary(counts, 2).tokens == ("a", "b")
    found = tokenise.by_word("a c b", vocabulary(counts, 2))
    assert [token.id for token in found] == [4, UNK, 5]
    assert [token.is_unknown for token in found] == [False, True, False]
    assert tokenise.unknown_share(found) == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("text", "why"),
    [("  \n ", "at least one character"), ("x" * 1001, "has 1,001 characters; the limit is 1,000")],
)
def test_what_cannot_be_cut_is_said(text, why):
    with pytest.raises(ValueError, match=why):
        clean(text)


@pytest.mark.parametrize("text", ["The dog 개 🙂", "日本"])
def test_bytes_write_every_text(text):
    ids = [token.id - tokenise.FIRST_BYTE for token in tokenise.by_byte(text)]
    assert bytes(ids).decode() == text
