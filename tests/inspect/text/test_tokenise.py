"""Text cut into tokens, byte-pair encoding, and padded batches."""

import random
from collections import Counter

import pytest
import torch

from tfm_core.data.vocabulary import BOS, EOS, PAD, UNK
from tfm_core.inspect.text import tokenise
from tfm_core.inspect.text.tokenise import (
    END,
    batch,
    clean,
    grammar_corpus,
    learn_bpe,
    longest,
    sentences_of,
    vocabulary,
    word_counts,
    words_of,
)
from tfm_core.layers.masks import padding_mask

PAPER = ["low"] * 5 + ["lower"] * 2 + ["newest"] * 6 + ["widest"] * 3
KOREAN = words_of("개가 공을 본다. 개가 고양이를 본다. 고양이가 개를 봤다.")


def by_counting(words, most):
    """Algorithm 1 written out: all pairs counted anew for every merge; ties by number."""
    counts = Counter(words)
    split = {word: [*word, END] for word in counts}
    numbers = {token: index for index, token in enumerate(sorted({*"".join(words), END}))}
    merges = []
    while len(merges) < most:
        pairs = tokenise.pair_counts(split, counts)
        if not pairs or max(pairs.values()) < 2:
            break
        left, right = min(pairs, key=lambda p: (-pairs[p], numbers[p[0]], numbers[p[1]]))
        merges.append((left, right, pairs[left, right]))
        numbers.setdefault(left + right, len(numbers))
        split = {word: tokenise.apply(pieces, left, right) for word, pieces in split.items()}
    return tuple(merges)


def random_words(seed):
    rng = random.Random(seed)
    return ["".join(rng.choices("abcde", k=rng.randint(1, 7))) for _ in range(61)]


@pytest.mark.parametrize(
    "words",
    [PAPER, KOREAN, *(random_words(seed) for seed in range(2)), words_of(grammar_corpus("korean"))],
    ids=["paper", "korean", *(f"random {n}" for n in range(2)), "grammar"],
)
def test_merges_are_those_of_direct_counting(words):
    assert learn_bpe(words, 60).merges == by_counting(words, 60)


def test_the_papers_example_begins_as_there_and_cuts_in_order():
    merged = [
        tokenise.shown_token(left + right) for left, right, _count in learn_bpe(PAPER, 9).merges
    ]
    assert merged[0] == "es"
    assert {"est</w>", "lo", "low"} <= set(merged)
    assert learn_bpe(["abcdefg"]).merges == ()
    for k in [0, 1, 5, 17, 60]:
        words = words_of(grammar_corpus("english"))
        learned = learn_bpe(words, 60)
        expected = []
        for word in words[:50]:
            pieces = [*word, END]
            for left, right, _count in learned.merges[:k]:
                pieces = tokenise.apply(pieces, left, right)
            expected += pieces
        found = tokenise.bpe_tokens(learned, words[:50], k)
        assert [token.shown for token in found] == [
            tokenise.shown_token(piece) for piece in expected
        ]
        known = learned.vocabulary(k)
        assert [token.id for token in found] == [known[piece] for piece in expected]
    learned = learn_bpe(PAPER)
    found = tokenise.text_lengths(learned, [*PAPER, "wit"])
    sizes, totals = found["size"], found["length"]
    for k in range(len(learned.merges) + 1):
        assert totals[k] == len(tokenise.bpe_tokens(learned, [*PAPER, "wit"], k))
        assert sizes[k] == 4 + len(learned.vocabulary(k))
    assert list(totals) == sorted(totals, reverse=True)
    found = tokenise.bpe_tokens(learned, ["lxw"], 5)
    assert [(token.shown, token.is_unknown) for token in found] == [
        ("l", False),
        ("<unk>", True),
        ("w", False),
        ("</w>", False),
    ]
    assert tokenise.text_lengths(learned, ["lxw"])["length"][5] == len(found)


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


SENTENCES = [["a", "b", "c", "d", "e"], ["b"], ["e", "a", "b"]]


@pytest.mark.parametrize(("bos", "eos"), [(True, True), (True, False), (False, False)])
def test_every_sentence_can_be_read_back_under_its_mask(bos, eos):
    made = batch(SENTENCES, length=13, has_bos=bos, has_eos=eos)
    assert made.ids.shape == (3, longest(SENTENCES, has_bos=bos, has_eos=eos))
    for row, mask, words in zip(made.ids, made.mask, SENTENCES, strict=True):
        kept = row[mask].tolist()
        assert made.known.decode(kept) == words
        assert (kept[0] == BOS, kept[-1] == EOS) == (bos, eos)
        assert set(row[~mask].tolist()) <= {PAD}
    assert made.cut == ((), (), ())


def test_what_does_not_fit_is_cut_from_the_end_and_eos_stays_under_the_models_mask():
    made = batch(SENTENCES, length=13)
    theirs = padding_mask(torch.from_numpy(made.ids), PAD)[:, 0, 0]
    assert theirs.numpy().tolist() == made.mask.tolist()
    made = batch(SENTENCES, length=5)
    assert made.ids.shape == (3, 5)
    assert made.tokens[0] == ("<bos>", "a", "b", "c", "<eos>")
    assert made.cut == (("d", "e"), (), ())
    with pytest.raises(ValueError, match="A length of 2 leaves no room"):
        batch(SENTENCES, length=2)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("\n \n", "at least one sentence"),
        ("a\n" * 9, "9 sentences; the limit is 8"),
        ("short\n" + "w " * 33, "Sentence 2 has 33 words; the limit is 32"),
    ],
)
def test_what_is_no_batch_is_said(text, why):
    with pytest.raises(ValueError, match=why):
        sentences_of(text)
