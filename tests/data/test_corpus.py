"""Corpora: what language models read, and the lowest loss that the grammar allows."""

import math
import random
from itertools import chain
from statistics import mean

import pytest
import torch

from tfm_core.choices.config import ConfigError
from tfm_core.choices.config.corpus_tasks import LONGEST_SENTENCE, CorpusTaskConfig
from tfm_core.data.corpus import grammar
from tfm_core.data.corpus.load import load_corpus
from tfm_core.data.own.tokens import learned_from_text
from tfm_core.data.tasks import corpus_task
from tfm_core.data.text import english_sentences as english
from tfm_core.data.text.korean_words import ALL_NOUNS, NOUNS, TIMES, VERBS
from tfm_core.data.vocabulary import BOS, EOS, PAD

TEXT = "The cat sat on the mat.\r\nThe dog sat on the log, too!\n" * 7
UNITS = ("words", "characters", "bpe")
OF_GRAMMAR = UNITS[:2]


def probability(words):
    """Of drawing a sentence, counted from its parts and not from the entropies of the choices."""
    (clause,) = [found[0] for found in english.parses(list(words), 1)]
    (verb,) = [v for v in VERBS if words[clause.verb_at] in (v.singular, v.plural, v.past)]
    past = words[clause.verb_at] == verb.past
    chance = 0.5 / len(VERBS)
    times = [word for word, (_, when) in TIMES.items() if when in (past, None)]
    chance *= 0.6 if clause.time_at is None else 0.4 * 0.5 / len(times)
    is_plural = len(clause.subject.nouns) > 1
    joins_object = clause.object is not None and len(clause.object.nouns) > 1
    if is_plural or joins_object:
        chance *= 0.15
    else:
        chance *= 0.7 if verb.objects else 0.85
    named = {words[at] for _, _, at in clause.subject.nouns}
    for phrase, groups, without in (
        (clause.subject, verb.subjects, set()),
        (clause.object, verb.objects, named),
    ):
        if phrase is None:
            continue
        left = [n for group in groups for n in NOUNS[group] if n.english not in without]
        for article_at, adjective_at, noun_at in phrase.nouns:
            (noun,) = [n for n in left if n.english == words[noun_at]]
            chance *= 0.5 / len(left)
            chance *= 0.65 if adjective_at is None else 0.35 / len(noun.adjectives)
            left.remove(noun)
            assert words[article_at] in english.ARTICLES
    if verb.place == "in":
        chance *= 0.65 if clause.place is None else 0.35
    if clause.place is not None:
        chance *= (0.8 if clause.place[1] is None else 0.2 / 2) / 5
    return chance


@pytest.mark.parametrize("unit", OF_GRAMMAR)
def test_the_entropy_and_the_longest_sentence_are_those_of_the_draws(unit):
    rng = random.Random(3)
    task = corpus_task(CorpusTaskConfig(name="grammar", unit=unit))
    drawn = [grammar.sentence(rng) for _ in range(20_000)]
    entropy = mean(-math.log(probability(words)) for words in drawn)
    tokens = mean(1 + len(task.tokenize(_written(words, unit))) for words in drawn)
    assert grammar.entropy_per_token(unit) == pytest.approx(entropy / tokens, rel=0.004)
    data = load_corpus(corpus_task(CorpusTaskConfig(name="grammar", unit=unit)), seed=0)
    longest = max(len(pair.tgt) for pair in data.train.pairs)
    assert 0.6 * LONGEST_SENTENCE[unit] < longest <= LONGEST_SENTENCE[unit]


def _written(words, unit):
    text = " ".join(words)
    return text if unit == "words" else f"{text.capitalize()}."


def test_a_sentence_has_its_ends_and_a_window_one_token_less():
    data = load_corpus(corpus_task(CorpusTaskConfig(name="grammar", n_train=31)), seed=1)
    assert data.windows is None
    assert data.train.src.shape == (31, 0)
    for row, pair in zip(data.train.tgt.tolist(), data.train.pairs, strict=True):
        n = len(pair.tgt)
        assert (row[0], row[n + 1]) == (BOS, EOS)
        assert data.task.tgt_vocabulary.decode(row) == list(pair.tgt)
        assert set(row[n + 2 :]) <= {PAD}
    assert set(ALL_NOUNS) & {word for pair in data.train.pairs for word in pair.tgt}
    data = load_corpus(
        corpus_task(CorpusTaskConfig(text=TEXT, unit="characters", context=7)), seed=0
    )
    full = data.validation.pairs[0]
    assert len(full.tgt) == 6
    assert data.validation.tgt[0].tolist()[1:7] == data.task.tgt_vocabulary.encode(full.tgt)
    task = corpus_task(CorpusTaskConfig(unit="characters"))
    assert task.text.startswith("Down the Rabbit-Hole\n\nAlice was beginning to get very tired")
    assert 11_000 < len(task.tokens) < 12_000


@pytest.mark.parametrize("unit", UNITS)
def test_windows_and_splits_follow_each_other_and_join_to_their_text(unit):
    config = CorpusTaskConfig(text=TEXT, unit=unit, context=11)
    data = load_corpus(corpus_task(config), seed=0)
    tokens = learned_from_text(unit, TEXT).cut_text(TEXT)
    train = tokens[: len(tokens) - 2 * (len(tokens) // 10)]
    assert len(data.windows) == len(train) - 11 + 1
    starts = torch.tensor([0, 3, len(data.windows) - 1])
    for start, row in zip(starts.tolist(), data.windows.rows(starts).tolist(), strict=True):
        assert row[0] == BOS
        assert data.task.tgt_vocabulary.decode(row) == train[start : start + 11]
    data = load_corpus(corpus_task(CorpusTaskConfig(text=TEXT, unit=unit, context=7)), seed=0)
    decode = data.task.tgt_vocabulary.decode
    parts = [
        [token for row in split.tgt.tolist() for token in decode(row)]
        for split in (data.train, data.validation, data.test)
    ]
    assert list(chain.from_iterable(parts)) == learned_from_text(unit, TEXT).cut_text(TEXT)
    assert all(parts)
    task = corpus_task(CorpusTaskConfig(unit=unit))
    said = task.join_tgt(task.tokens)
    if unit != "words":
        assert said == task.text
    else:
        assert learned_from_text("words", said).cut_text(said) == task.tokens


def test_texts_that_cannot_be_learned_and_tokens_they_lack_are_named():
    for text, unit, sentence in [
        ("too short", "characters", "has 9 characters; it must have 20"),
        ("x" * 200_001, "characters", "has 200,001 characters; it must have 20 to 200,000"),
        ("a" * 50, "characters", "repeats one token: 'a'"),
        (" " * 50, "characters", "repeats one token"),
        ("incomprehensibilities abound", "words", "has 2 words; it needs 20"),
        ("no " * 30, "words", "repeats one token: 'no'"),
    ]:
        with pytest.raises(ConfigError, match=sentence) as caught:
            CorpusTaskConfig.parse({"text": text, "unit": unit})
        assert [problem.field for problem in caught.value.problems] == ["text"]
    task = corpus_task(CorpusTaskConfig(unit="words"))
    assert task.tokenize("Sister") == ("sister",)
    with pytest.raises(ValueError, match=r"“sistar”.*sister"):
        task.tokenize("sistar")
    with pytest.raises(ValueError, match="nothing to read"):
        task.tokenize("  ")
