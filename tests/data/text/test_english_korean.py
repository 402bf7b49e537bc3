"""The toy grammar into Korean: agreement, order, and what is not said."""

import random
import unicodedata

import pytest

from tfm_core.data.text import drawn
from tfm_core.data.text.english_korean import SUFFIXES, EnglishKoreanTask
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

ONE, TWO = (drawn("english-korean", size) for size in (1, 2))


@pytest.fixture(scope="module")
def pairs():
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


def test_sentences_keep_particles_end_in_verbs_and_align(pairs):
    for pair in pairs:
        for noun, suffix in zip(pair.tgt, pair.tgt[1:], strict=False):
            forms = next((forms for forms in AGREEING if suffix in forms), None)
            if forms is not None:
                assert suffix == particle(forms, noun)
    stems = {form for verb in VERBS for form in (verb.korean_final, verb.korean_past)}
    for pair in pairs:
        assert pair.tgt[-1] == "다"
        assert pair.tgt[-2] in stems
    assert all(all(pair.alignment) for pair in pairs)
