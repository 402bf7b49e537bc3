"""The toy grammar: into Korean, judged, glossed, and the nearest sentence to what was typed."""

import random
import unicodedata
from collections import Counter
from itertools import pairwise

import pytest

from tfm_core.choices.config import OwnTextTaskConfig
from tfm_core.data.tasks import text_task
from tfm_core.data.text import drawn
from tfm_core.data.text.english_korean import SUFFIXES, EnglishKoreanTask, glosses
from tfm_core.data.text.english_sentences import is_possible
from tfm_core.data.text.korean_words import (
    AGREEING,
    ALL_NOUNS,
    ALL_PLACES,
    OBJECT,
    PREPOSITIONS,
    SUBJECT,
    TOPIC,
    VERBS,
    WITH,
    particle,
)
from tfm_core.data.text.nearest import WordChange, nearest_sentence
from tfm_core.data.text.sentiment import (
    ADJECTIVES,
    ALTHOUGH,
    AND,
    BUT,
    INTENSITIES,
    JOINS,
    LABELS,
    NEGATIONS,
    SentimentTask,
    judged,
)

ONE, TWO = (drawn("english-korean", size) for size in (1, 2))


@pytest.fixture(scope="module")
def translations():
    rng = random.Random(11)
    return [task.sample(rng) for task in (ONE, TWO) for _ in range(1000)]


def translate(task, text):
    return task.join_tgt(task.solve(task.tokenize(text)))


GOLDEN = [
    (ONE, "The teacher bought the red bag at the market.", "선생님은 시장에서 빨간 가방을 샀다."),
    (ONE, "A teacher buys an apple.", "선생님이 사과를 산다."),
    (ONE, "Yesterday the cat slept in the garden", "어제 고양이는 정원에서 잤다."),
    (ONE, "the cat slept in the garden yesterday.", "어제 고양이는 정원에서 잤다."),
    (ONE, "The dog and the bear eat a carrot daily.", "매일 개와 곰은 당근을 먹는다."),
    (ONE, "The bear and a dog found an egg.", "곰과 개가 달걀을 찾았다."),
    (ONE, "A child came to the school.", "아이가 학교에 왔다."),
    (ONE, "The student drew a hat and a flower.", "학생은 모자와 꽃을 그렸다."),
    (TWO, "The dog slept and a cat ate the cake.", "개는 잤고 고양이가 케이크를 먹었다."),
    (TWO, "A dog plays and the doctor eats an egg.", "개가 놀고 의사는 달걀을 먹는다."),
    (TWO, "the friend sees the dog and a bear", "친구는 개와 곰을 본다."),
]


def test_translates_and_has_no_answer_where_there_are_two_or_none():
    for task, english, korean in GOLDEN:
        assert translate(task, english) == korean
    text = "the dog saw the cat and the bear and the child slept"
    assert TWO.solve(TWO.tokenize(text)) is None
    for text in ["dog the slept", "the dog", "the dog ate", "slept", "the the"]:
        assert ONE.solve(ONE.tokenize(text)) is None
    assert ONE.solve(ONE.tokenize("the dog slept and the cat slept")) is None


def test_particles_words_and_articles_are_decided_by_what_they_come_from():
    for noun in sorted({*ALL_NOUNS.values(), *ALL_PLACES.values()}):
        letters = len(unicodedata.normalize("NFD", noun[-1]))
        for forms in AGREEING:
            assert particle(forms, noun) == forms[0 if letters == 3 else 1]
    for task in (ONE, TWO):
        words = [*ALL_NOUNS.values(), *ALL_PLACES.values()]
        assert not SUFFIXES & set(words)
        assert len(set(words)) == len(words)
        assert len(task.tgt_vocabulary.tokens) == len(set(task.tgt_vocabulary.tokens))
    assert translate(ONE, "the dog slept") == "개는 잤다."
    assert translate(ONE, "a dog slept") == "개가 잤다."
    assert {*TOPIC, *SUBJECT, *OBJECT, *WITH} < SUFFIXES
    pair = EnglishKoreanTask(1).sample(random.Random(0))
    while len(pair.tgt) < 10 or "and" not in pair.src or "에서" not in pair.tgt:
        pair = EnglishKoreanTask(1).sample(random.Random(" ".join(pair.src)))
    for token, positions in zip(pair.tgt, pair.alignment, strict=True):
        words = [pair.src[i] for i in positions]
        if token in {*TOPIC, *SUBJECT}:
            assert words[0] in {"the", "a", "an"}
            assert words[1] in ALL_NOUNS
        elif token in WITH:
            assert "and" in words
        elif token in PREPOSITIONS.values():
            assert words[0] in PREPOSITIONS
        else:
            assert len(words) == 1


def test_sentences_keep_particles_end_in_verbs_and_align(translations):
    for pair in translations:
        for noun, suffix in zip(pair.tgt, pair.tgt[1:], strict=False):
            forms = next((forms for forms in AGREEING if suffix in forms), None)
            if forms is not None:
                assert suffix == particle(forms, noun)
    stems = {form for verb in VERBS for form in (verb.korean_final, verb.korean_past)}
    for pair in translations:
        assert pair.tgt[-1] == "다"
        assert pair.tgt[-2] in stems
    assert all(all(pair.alignment) for pair in translations)


TASK = SentimentTask(3)

OPPOSITE = {"positive": "negative", "neutral": "neutral", "negative": "positive"}


@pytest.fixture(scope="module")
def pairs():
    rng = random.Random(5)
    return [TASK.sample(rng) for _ in range(600)]


def label(text):
    return judged(text.split()).label


def test_the_rule_reads_short_forms_and_no_sentence_has_no_label():
    for text, expected in [
        ("good", "positive"),
        ("the food was not good", "negative"),
        ("the food was never not good", "positive"),
        ("not bad but the service was slow", "negative"),
        ("not bad although the service was slow", "positive"),
        ("the room was clean and the staff was rude", "neutral"),
        ("the room was very clean and the staff was rude", "positive"),
        ("slightly clean and the staff was rude", "negative"),
        ("the room was average", "neutral"),
        ("not average and bad", "negative"),
        ("bad although good but nice although awful", "positive"),
        ("good but bad and slow although nice", "negative"),
    ]:
        assert label(text) == expected
    for text in ["good bad", "the food good", "and good", "good and", "not", "the"]:
        assert TASK.solve(text.split()) is None
    tokens = TASK.tokenize("The food wasn't bad, but the service was VERY slow!")
    assert " ".join(tokens) == "the food was not bad but the service was very slow"
    assert TASK.solve(tokens) == ("negative",)


def test_words_turn_the_label_or_not_and_labels_are_equally_frequent(pairs):
    for pair in pairs:
        turned = []
        for index, word in enumerate(pair.src):
            begins = word in INTENSITIES or word in ADJECTIVES
            if begins and (index == 0 or pair.src[index - 1] not in INTENSITIES):
                turned.append("not")
            turned.append(word)
        assert judged(turned).label == OPPOSITE[pair.tgt[0]]
    for one, two in pairwise(pairs):
        if not set(JOINS) & {*one.src, *two.src}:
            there, back = [*one.src, AND, *two.src], [*two.src, AND, *one.src]
            assert judged(there).label == judged(back).label
    for one, two in pairwise(pairs):
        if BUT not in two.src:
            assert judged([*one.src, BUT, *two.src]).label == two.tgt[0]
        if BUT not in two.src and not {BUT, ALTHOUGH} & {*one.src}:
            assert judged([*one.src, ALTHOUGH, *two.src]).label == one.tgt[0]
    things = {"food": "view", "service": "music"}
    for pair in pairs:
        (decides,) = pair.alignment
        assert decides
        for index in decides:
            word = pair.src[index]
            assert word in {*NEGATIONS, *ADJECTIVES, *INTENSITIES, BUT, ALTHOUGH}
        other = [things.get(word, word) for word in pair.src]
        assert judged(other).label == pair.tgt[0]
    for pair in pairs:
        (decides,) = pair.alignment
        for index, word in enumerate(pair.src):
            if index not in decides and ADJECTIVES.get(word):
                turned = "bad" if ADJECTIVES[word] > 0 else "good"
                changed = [*pair.src[:index], turned, *pair.src[index + 1 :]]
                assert judged(changed).label == pair.tgt[0]
    counts = Counter(pair.tgt[0] for pair in pairs)
    assert set(counts) == set(LABELS)
    assert all(abs(count / len(pairs) - 1 / 3) < 0.08 for count in counts.values())


KOREAN = drawn("english-korean", 1)


@pytest.mark.parametrize("n_clauses", [1, 2])
def test_what_the_grammar_draws_is_known_as_such(n_clauses):
    task, rng = drawn("english-korean", n_clauses), random.Random(1)
    for _ in range(200):
        assert is_possible(list(task.sample(rng).src), n_clauses)


def test_what_is_no_sentence_becomes_the_nearest_one():
    for words in [
        "a dog like the cat",  # like, of one
        "a egg sees the cat",
        "a teacher eats a book",  # no food
        "the dog sleeps the cat",
        "a teacher bought a hat daily",  # no habit in the past
        "the teacher comes",  # to where?
        "a hungry book",
    ]:
        assert not is_possible(words.split(), 1)
    for name in ["dates", "copy", "addition", "masked-words"]:
        assert nearest_sentence(drawn(name, 4), "a dog sees a cat") is None
    task = text_task(OwnTextTaskConfig())
    assert nearest_sentence(task, "the cat looks for a dogs") is None
    found = nearest_sentence(KOREAN, "The kind teacher met a student in the park.")
    assert found.text == "The kind teacher met a student in the park."
    assert found.changes == ()
    for typed, text, change in [
        ("My dog likes the cat", "The dog likes the cat.", WordChange("my", "the")),
        ("A teachr bought a book", "A teacher bought a book.", WordChange("teachr", "teacher")),
        ("The dog loves an egg", "The dog likes an egg.", WordChange("loves", "likes")),
        ("The child ate a egg", "The child ate an egg.", WordChange("a", "an")),
    ]:
        found = nearest_sentence(KOREAN, typed)
        assert found.text == text
        assert change in found.changes


def test_whatever_is_typed_gets_a_sentence_that_the_grammar_draws():
    for typed, kept in [
        ("He goes to school every day", {"to", "school"}),
        ("I want to buy a red car tomorrow", {"red"}),
        ("Yesterday my little sister drew a beautiful flower", {"yesterday", "drew"}),
        ("The cat is sleeping in the garden", {"cat", "sleeps", "in", "garden"}),
        ("zzz qqq", set()),
    ]:
        found = nearest_sentence(KOREAN, typed)
        assert is_possible(list(found.tokens), 1)
        assert kept <= set(found.tokens)
        assert KOREAN.solve(found.tokens) is not None
        assert {change.typed for change in found.changes} <= {*typed.lower().split(), ""}


@pytest.mark.parametrize("name", ["numbers", "sentiment"])
def test_other_tasks_of_words_have_nearest_sentences_too(name):
    task = drawn(name, 3)
    typed = {"numbers": "fourty too", "sentiment": "the movie was really great"}[name]
    found = nearest_sentence(task, typed)
    assert task.solve(found.tokens) is not None
    assert found.text in {"forty two", "The film was really great."}


ENDINGS = {"을", "를", "다"}

"""What stands behind every object and every verb."""


@pytest.mark.parametrize("n_clauses", [1, 2])
def test_every_token_but_endings_has_a_word_it_was_aligned_with(n_clauses: int) -> None:
    task = drawn("english-korean", n_clauses)
    known = glosses(task)
    assert set(task.tgt_vocabulary.tokens) - ENDINGS == set(known)
    words = {"선생님": "teacher", "큰": "big", "과": "and", "는": "the", "샀": "bought"}
    assert {token: known[token] for token in words} == words
    rng = random.Random(7)
    hits: Counter[bool] = Counter()
    for pair in (task.sample(rng) for _ in range(97)):
        for token, positions in zip(pair.tgt, pair.alignment, strict=True):
            if token in known:
                hits[known[token] in {pair.src[position] for position in positions}] += 1
    assert hits[True] > 0.85 * hits.total()  # the rest: “sleep” where the gloss is “sleeps”
