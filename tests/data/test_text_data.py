"""Text as tensors, vocabularies, and the corpora that language models read."""

import math
import random
import re
from itertools import chain
from statistics import mean

import pytest
import torch

from tfm_core.choices.config import (
    CORPUS_TASKS,
    TEXT_TASKS,
    ConfigError,
    TextTaskConfig,
    task_config,
)
from tfm_core.choices.config.corpus_tasks import LONGEST_SENTENCE, CorpusTaskConfig
from tfm_core.choices.config.text_tasks import shares
from tfm_core.choices.presets import PRESETS
from tfm_core.data.tasks import corpus_task, load, text_task
from tfm_core.data.text import english_sentences as english
from tfm_core.data.text.hidden_words import SENTINELS, whole_sentence
from tfm_core.data.text.korean_words import ALL_NOUNS, NOUNS, TIMES, VERBS
from tfm_core.data.text_data import load_corpus, load_text, n_shared_sources
from tfm_core.data.user_data.tokens import learn_from_text
from tfm_core.data.vocabulary import BOS, EOS, MASK, PAD, SPECIALS, UNK, Vocabulary

SIZES = {"n_train": 211, "n_validation": 13, "n_test": 17}

SPLITS = ("train", "validation", "test")


@pytest.fixture(params=["english-korean", "addition", "sentiment", "masked-words"])
def config(request):
    return TextTaskConfig(name=request.param, size=TEXT_TASKS[request.param].default_size, **SIZES)


@pytest.fixture
def data(config):
    return load_text(config, seed=3)


def sources(split):
    """What no two pairs share: the sources, and where words are hidden, the sentences."""
    return {told_apart(pair) for pair in split.pairs}


def told_apart(pair):
    if SENTINELS[0] in pair.src:
        return whole_sentence(pair)
    return pair.tgt if MASK in pair.src else pair.src


def test_splits_share_no_source_have_their_sizes_and_decode_to_the_pairs(data):
    assert not sources(data.train) & sources(data.validation)
    assert not sources(data.train) & sources(data.test)
    assert not sources(data.validation) & sources(data.test)
    assert [len(getattr(data, split)) for split in SPLITS] == [211, 13, 17]
    assert all(len(sources(getattr(data, split))) == len(getattr(data, split)) for split in SPLITS)
    task = data.task
    for split in (data.train, data.validation, data.test):
        for src, tgt, pair in zip(split.src, split.tgt, split.pairs, strict=True):
            assert tuple(task.src_vocabulary.decode(src.tolist())) == pair.src
            assert tuple(task.tgt_vocabulary.decode(tgt.tolist())) == pair.tgt


def test_targets_begin_and_end_and_padding_comes_last(config, data):
    n_special = 1 + (config.facts.answer == "sequence")  # <eos> ends sequences alone
    everything = [pair for split in SPLITS for pair in getattr(data, split).pairs]
    for split in (data.train, data.validation, data.test):
        assert split.src.dtype == split.tgt.dtype == torch.int64
        assert split.src.shape == (len(split), max(len(pair.src) for pair in everything))
        assert split.tgt.shape == (
            len(split),
            max(len(pair.tgt) for pair in everything) + n_special,
        )
        lengths = torch.tensor([len(pair.tgt) for pair in split.pairs])
        assert (split.tgt[:, 0] == BOS).all()
        last = split.tgt.gather(1, lengths[:, None] + n_special - 1)
        assert ((last == EOS) == (config.facts.answer == "sequence")).all()
        assert torch.equal((split.tgt != PAD).sum(1), lengths + n_special)
        assert torch.equal(
            (split.src != PAD).sum(1), torch.tensor([len(pair.src) for pair in split.pairs])
        )


def test_every_split_gets_its_share_of_the_rare_short_sources():
    data = load_text(TextTaskConfig(name="copy", size=10, n_train=4000), seed=0)
    short = [
        sum(len(pair.src) == 1 for pair in getattr(data, split).pairs) / len(getattr(data, split))
        for split in SPLITS
    ]
    assert short[0] > 0
    assert max(short) < 0.02


@pytest.mark.parametrize(
    ("name", "size", "exist"), [("addition", 1, 100), ("numbers", 1, 10), ("sort", 2, 110)]
)
def test_a_small_task_is_shared_out(name, size, exist):
    data = load_text(TextTaskConfig(name=name, size=size), seed=0)
    parts = [sources(getattr(data, split)) for split in SPLITS]
    assert sum(map(len, parts)) == len(set().union(*parts)) == exist
    assert len(parts[0]) > 0.7 * exist
    assert min(map(len, parts)) >= 1


def test_dates_are_ten_characters_and_no_answer_is_longer():
    config = TextTaskConfig(name="dates")
    every = {len(pair.tgt) for pair in load_text(config, seed=0).train.pairs}
    assert every == {10} == {config.max_tgt_len}


def mirrored(src):
    plus = src.index("+")
    return (*src[plus + 1 :], "+", *src[:plus])


@pytest.mark.core(4)
@pytest.mark.parametrize("name", [*TEXT_TASKS, "grammar"])
def test_what_is_said_of_unseen_examples_is_true(name):
    """The share that the task's words name, at the settings that a task begins with."""
    facts = (TEXT_TASKS | CORPUS_TASKS)[name]
    data = load(task_config(name).named(name), seed=0)
    train, test = data.train.pairs, data.test.pairs
    sources, targets = {pair.src for pair in train}, {pair.tgt for pair in train}
    in_training = sum(pair.tgt in targets for pair in test) / len(test)
    if name == "masked-words":
        assert in_training == 0
        in_training = sum(pair.src in sources for pair in test) / len(test)
    elif name == "span-corruption":
        assert not set(map(whole_sentence, train)) & set(map(whole_sentence, test))
        in_training = sum(pair.src in sources for pair in test) / len(test)
    elif name != "grammar":
        assert not sources & {pair.src for pair in test}
    if name == "addition":
        assert sum(mirrored(pair.src) in sources for pair in test) > 0.9 * len(test)
        in_training = len(train) / 100**2
    if facts.answer == "label":
        return  # a few labels, all of them known
    said = re.search(r"(\d+)%", facts.unseen)
    assert in_training == pytest.approx(int(said[1]) / 100 if said else 0, abs=0.02)


@pytest.mark.wide
@pytest.mark.parametrize(
    ("name", "low", "high"), [("masked-words", 1 / 16, 1 / 14), ("span-corruption", 1 / 5, 1 / 4)]
)
def test_what_presets_say_of_sentences_that_look_like_training_is_true(name, low, high):
    preset = PRESETS[name]
    data = load(preset.experiment.task, seed=preset.experiment.seed)
    share = n_shared_sources(data, data.test.pairs) / len(data.test)
    assert low < share < high
    said = re.search(r"1 in (\d+)", preset.reaches)
    assert int(said[1]) == pytest.approx(1 / (share if low < 0.1 else low), abs=0.5)
    facts = TEXT_TASKS[name].unseen
    _default, at_preset = re.findall(r"(\d+)%", facts)
    assert share == pytest.approx(int(at_preset) / 100, abs=0.02)
    assert f"{len(data.train):,}" in facts
    written = {(pair.src, pair.tgt) for pair in data.train.pairs}
    assert not [pair for pair in data.test.pairs if (pair.src, pair.tgt) in written]


ANIMALS = Vocabulary(("dog", "cat", "bear"))


def test_special_tokens_come_first_and_what_a_task_has_in_all_is_known():
    assert [ANIMALS.token(id) for id in range(4)] == list(SPECIALS)
    assert (PAD, BOS, EOS, UNK) == (0, 1, 2, 3)
    assert len(ANIMALS) == 7
    assert ANIMALS.decode([BOS, 4, PAD, 5, EOS, 6]) == ["dog", "cat"]
    assert ANIMALS.id_of("zebra") == UNK
    assert "zebra" not in ANIMALS
    assert "dog" in ANIMALS
    with pytest.raises(ValueError, match="only once in a vocabulary: dog"):
        Vocabulary(("dog", "dog"))
    for name in [n for n, facts in TEXT_TASKS.items() if facts.n_pairs]:
        facts = TEXT_TASKS[name]
        for size in facts.sizes[:2]:
            every = text_task(TextTaskConfig(name=name, size=size)).every(100_000)
            assert len(every) == facts.n_pairs(size)
    for name in [n for n, facts in TEXT_TASKS.items() if not facts.n_pairs]:
        for size in TEXT_TASKS[name].sizes:
            assert text_task(TextTaskConfig(name=name, size=size)).every(6_252) is None
    assert shares((10, 20, 70), 1000) == (10, 20, 70)
    assert shares((10, 20, 70), 50) == (5, 10, 35)
    assert shares((1, 1, 998), 10) == (1, 1, 8)


@pytest.mark.parametrize("id", [-1, 7])
def test_a_number_outside_the_vocabulary_has_no_token(id):
    with pytest.raises(ValueError, match="is not from 0 to 6"):
        ANIMALS.token(id)


TEXT = "The cat sat on the mat.\r\nThe dog sat on the log, too!\n" * 7

UNITS_OF_CORPORA = ("words", "characters", "bpe")

OF_GRAMMAR = UNITS_OF_CORPORA[:2]


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
    drawn = [english.one_clause(rng) for _ in range(20_000)]
    entropy = mean(-math.log(probability(words)) for words in drawn)
    tokens = mean(1 + len(task.tokenize(_written(words, unit))) for words in drawn)
    assert english.entropy_per_token(unit) == pytest.approx(entropy / tokens, rel=0.004)
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


@pytest.mark.parametrize("unit", UNITS_OF_CORPORA)
def test_windows_and_splits_follow_each_other_and_join_to_their_text(unit):
    config = CorpusTaskConfig(text=TEXT, unit=unit, context=11)
    data = load_corpus(corpus_task(config), seed=0)
    tokens = learn_from_text(unit, TEXT).cut_text(TEXT)
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
    assert list(chain.from_iterable(parts)) == learn_from_text(unit, TEXT).cut_text(TEXT)
    assert all(parts)
    task = corpus_task(CorpusTaskConfig(unit=unit))
    said = task.join_tgt(task.tokens)
    if unit != "words":
        assert said == task.text
    else:
        assert learn_from_text("words", said).cut_text(said) == task.tokens


def test_texts_that_cannot_be_learned_and_tokens_they_lack_are_named():
    for text, unit, sentence in [
        ("too short", "characters", "has 9 characters; it needs 20"),
        ("x" * 200_001, "characters", "has 200,001 characters; it needs 20 to 200,000"),
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
