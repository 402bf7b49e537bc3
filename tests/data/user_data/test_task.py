"""Tasks of one's own sentences behave as any task, and say what is missing."""

import random
import unicodedata

import pytest
import torch

from tests.data.user_data.files import sentences
from tests.data.user_data.test_texts import PAIRS
from tfm_core.choices.config import OwnTextTaskConfig, from_query, to_query
from tfm_core.choices.config.corpus_tasks import CorpusTaskConfig
from tfm_core.choices.config.text_tasks import OWN_TEXT_TASKS
from tfm_core.choices.presets import PRESETS
from tfm_core.data.build import examples
from tfm_core.data.tasks import data_shape, load, text_task
from tfm_core.data.user_data import kinds, sets
from tfm_core.data.user_data.kinds import SET_KINDS
from tfm_core.data.user_data.sets import SetMissing
from tfm_core.data.user_data.texts import inspect_text, prepare
from tfm_core.data.user_data.tokens import CUTS
from tfm_core.data.vocabulary import EOS, UNK
from tfm_core.runs.queue.limits import Limits
from tfm_core.training.events import Measured
from tfm_core.training.loop import build, train

TEXT = "the cat sat on the mat and the dog sat on the log. " * 40


@pytest.fixture(autouse=True)
def runs(tmp_path):
    with sets.below(tmp_path):
        yield tmp_path


def kept(kind, raw, **options):
    return sets.write(prepare(inspect_text(kind, raw, **options)))


@pytest.mark.parametrize("name", OWN_TEXT_TASKS)
def test_the_example_that_comes_along_is_what_the_configuration_says(name):
    config = OwnTextTaskConfig.named(name)
    task = text_task(config)
    assert (len(task.src_vocabulary), len(task.tgt_vocabulary)) == (config.n_src, config.n_tgt)
    data = load(config, seed=0)
    assert data.train.src.size(1) == config.src_len
    assert data.train.tgt.size(1) == config.n_answers + 1


@pytest.mark.parametrize("name", examples())
def test_the_examples_are_what_their_builder_makes(name):
    own = sets.find(name)
    assert {file: own.content(file) for file in own.files} == dict(examples()[name].files)


@pytest.mark.parametrize("unit", CUTS)
def test_pairs_are_learned_as_they_were_split(unit):
    own = kept("pairs", PAIRS, unit=unit)
    config = kinds.task_of(own)
    data = load(config, seed=5)
    assert {name: len(getattr(data, name)) for name in own.counts} == own.counts
    for pair, row in zip(data.train.pairs, data.train.tgt.tolist(), strict=True):
        assert data.task.tgt_vocabulary.decode(row) == list(pair.tgt)
        assert EOS in row
        assert UNK not in row
        assert pair.alignment == ((),) * len(pair.tgt)
        assert data.task.tokenize(data.task.join_src(pair.src)) == pair.src
        assert data.task.solve(pair.src) == pair.tgt
    assert torch.equal(load(config, seed=6).train.src, data.train.src)
    assert data.task.sample(random.Random(0)) in data.train.pairs
    assert data.task.every(10) is None
    assert len(data.task.every(40)) == own.counts["train"]


@pytest.mark.parametrize(
    ("unit", "read", "unknown"),
    [
        ("words", ("word1", "<unk>", "more"), ("쥐",)),
        ("spaces", ("word1", "<unk>", "more"), ("쥐",)),
        ("characters", (*"word1 ", "<unk>", *" more"), ("쥐",)),
        ("bpe", ("▁word1", "▁", "<unk>", "▁more"), ("쥐",)),
    ],
)
def test_what_training_never_showed_is_read_as_unknown(unit, read, unknown):
    raw = PAIRS + "".join(f"word1 and {n} and more\tviel\n" for n in range(9))
    task = text_task(kinds.task_of(kept("pairs", raw, unit=unit)))
    assert task.tokenize("word1 쥐 more") == read
    assert task.unknown("word1 쥐 more") == unknown
    assert task.src_vocabulary.encode(read).count(UNK) == read.count("<unk>")


def test_other_capitals_are_tried_before_a_word_is_unknown():
    raw = "".join(f"NATO in May {n}\tx\n" for n in range(20))
    task = text_task(kinds.task_of(kept("pairs", raw)))
    assert task.tokenize("nato In may") == ("NATO", "in", "May")
    assert task.unknown("nato In may") == ()


def test_what_is_typed_is_normalised_as_files_are():
    raw = "".join(f"나는 말 {n}\tI {n}\n" for n in range(40))
    composed = text_task(kinds.task_of(kept("pairs", raw)))
    decomposed = text_task(kinds.task_of(kept("pairs", unicodedata.normalize("NFD", raw))))
    assert decomposed.src_vocabulary == composed.src_vocabulary
    for typed in ("나는 말", unicodedata.normalize("NFD", "나는 말"), "\u202b나는\u200b 말\ufeff"):
        assert composed.tokenize(typed) == ("나는", "말")


def test_a_set_that_is_gone_leaves_what_a_configuration_says():
    own = kept("pairs", PAIRS)
    experiment = kinds.proposal(own).experiment
    there = data_shape(experiment)
    with sets.below(sets.root() / "elsewhere"):
        assert from_query(to_query(experiment)) == experiment
        assert data_shape(experiment) == there
        assert "not here" in sets.missing(experiment.task)
        with pytest.raises(SetMissing, match="runs still open"):
            build(experiment)
    assert sets.missing(experiment.task) is None


def test_a_configuration_that_speaks_of_another_set_is_refused():
    config = kinds.task_of(kept("pairs", PAIRS))
    for changes in ({"n_src": config.n_src + 1}, {"name": "own-labels"}, {"src_len": 7}):
        with pytest.raises(ValueError, match=r"“My pairs”.* does not fit"):
            text_task(config.replace(**changes))
    with pytest.raises(ValueError, match="not plain text"):
        load(CorpusTaskConfig(data=config.data), seed=0)


def test_a_name_that_no_set_has_is_refused():
    for data in ["../../etc", "x", 7, "F" * 20]:
        with pytest.raises(ValueError, match=r"data is .* must be"):
            OwnTextTaskConfig.parse({**OwnTextTaskConfig().model_dump(), "data": data})


def test_every_kind_proposes_experiments_that_this_server_would_take():
    for own in sets.examples():
        for one in kinds.proposals(own):
            Limits(max_steps=20_000, max_parameters=5_000_000).check(one.experiment, n_queued=0)
    assert set(SET_KINDS) == {"pairs", "labels", "text", "pictures"}


def test_proposals_follow_from_the_size_of_a_set():
    for n in [12, 100, 4_000]:
        for length in [2, 100]:
            raw = "".join(f"{'a ' * length}{i}\tb {i}\n" for i in range(n))
            own = kept("pairs", raw)
            chosen = kinds.proposal(own).experiment
            assert chosen.training.batch_size * (length + 3) <= 2 * 2048
            read = chosen.training.steps * chosen.training.batch_size / own.counts["train"]
            assert read >= 20
            assert own.n_bytes > 0


def test_five_random_pairs_are_learned_by_heart():
    experiment = PRESETS["by-heart"].experiment
    config = kinds.task_of(sets.find("example-random"))
    assert experiment.task == config
    short = experiment.replace(training=experiment.training.replace(steps=100).model_dump())
    *_, tested = (event for event in train(build(short)) if isinstance(event, Measured))
    assert (tested.sequence_accuracy, tested.split) == (1.0, "test")
    assert tested.loss < 0.05


def learned_from(own) -> float:
    """Return the accuracy on the test part after the usual training."""
    experiment = kinds.proposal(own).experiment
    events = [event for event in train(build(experiment)) if isinstance(event, Measured)]
    (tested,) = (event for event in events if event.split == "test")
    return tested.accuracy


def test_the_pairs_that_come_along_are_learned():
    assert learned_from(sets.find("example-pairs")) > 0.9


def test_a_text_has_a_test_file_of_its_own():
    other = "a bird sat on the log and the cat sat on a bird. " * 3
    own = kept("text", TEXT, unit="words", test=other)
    config = kinds.task_of(own)
    task, data = text_task(config), load(config, seed=0)
    n = len(task.tokens)
    assert own.split == {"by": "file"}
    assert own.counts == {
        "train": n - n // 10,
        "validation": n // 10,
        "test": len(task.test_tokens),
    }
    said = [token for pair in data.test.pairs for token in pair.tgt]
    assert set(said) <= set(task.test_tokens)
    assert "bird" in task.src_vocabulary.tokens
    learned = {
        token for row in data.train.tgt.tolist() for token in task.tgt_vocabulary.decode(row)
    }
    assert "bird" not in learned
    by_place = load(kinds.task_of(kept("text", TEXT, unit="words")), seed=0)
    assert sum(len(pair.tgt) for pair in by_place.train.pairs) < sum(
        len(pair.tgt) for pair in data.train.pairs
    )


def test_what_is_wrong_with_the_test_file_of_a_text_is_said():
    report = inspect_text("text", TEXT, test="too short")
    assert report.refusal.startswith("The test file: The text has 9 characters")
    assert inspect_text("text", TEXT, test="é ".encode() * 30 + b"\xc3(").refusal.startswith(
        "The test file"
    )
    report = inspect_text("text", TEXT, test="a bird flew over the mat, a bird with a hat. " * 9)
    assert "of 117. The model never learns them" in sentences(report)[0]
    report = inspect_text("text", TEXT, test=TEXT[:400])
    assert "memory" in sentences(report)[0]
