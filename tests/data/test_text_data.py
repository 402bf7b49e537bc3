"""Text as tensors, and vocabularies."""

import re

import pytest
import torch

from tfm_core.choices.config import CORPUS_TASKS, TEXT_TASKS, TextTaskConfig, task_config
from tfm_core.choices.config.text_tasks import shares
from tfm_core.choices.presets import PRESETS
from tfm_core.data.tasks import load, text_task
from tfm_core.data.text.span_corruption import SENTINELS, whole
from tfm_core.data.text_data import load_text, n_shared_sources
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
        return whole(pair)
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
        assert not {whole(pair) for pair in train} & {whole(pair) for pair in test}
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
