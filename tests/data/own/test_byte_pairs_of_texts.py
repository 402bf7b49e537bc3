"""A running text in byte pairs: nothing of it is lost, and the held-out part teaches no merge."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.export.test_asking import answers, with_node
from tfm_core.choices.config import ConfigError, CorpusTaskConfig, Experiment, from_query, to_query
from tfm_core.choices.config.codec import default_sections
from tfm_core.choices.config.corpus_tasks import MIN_TOKENS
from tfm_core.choices.variants.units import normalised
from tfm_core.data.corpus.load import load_corpus
from tfm_core.data.corpus.task import CorpusTask, read_text
from tfm_core.data.own import kinds, place, sets
from tfm_core.data.own.kinds import report_of
from tfm_core.data.own.texts import inspect_text, prepare
from tfm_core.data.own.tokens import SPACE, Cutter, learned_from_text
from tfm_core.data.tasks import corpus_task
from tfm_core.data.vocabulary import SPECIALS, UNK

pytestmark = pytest.mark.quick

CODE = "def f(x):\n    if x:\n\n        return  x\t# ▁ and ▁▁\n" * 12
SIGNS = st.text(
    st.one_of(
        st.sampled_from(" \n\t▁abtheé'<>—0👩\u200d🚀\u0301한हि"),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=60,
)


@pytest.fixture(autouse=True)
def _below(tmp_path):
    with place.below(tmp_path):
        yield


@pytest.fixture(scope="module")
def cutter():
    return learned_from_text("bpe", CODE + read_text())


@given(text=SIGNS)
def test_pieces_written_one_after_the_other_are_the_text(cutter, text):
    text = normalised(text).replace("\r\n", "\n").replace("\r", "\n")
    assert "".join(cutter.cut_text(text)) == text


@given(text=st.text(st.sampled_from("ab \n▁é"), min_size=20, max_size=200))
def test_a_text_of_few_signs_still_has_enough_pieces(text):
    report = inspect_text("text", text, unit="bpe")
    if report.refusal is None:
        task = corpus_task(kinds.task_of(sets.write(prepare(report))))
        assert "".join(task.tokens) == task.text == report.text
        assert len(task.tokens) >= MIN_TOKENS
        assert UNK not in task.tgt_vocabulary.encode(task.tokens)


def test_a_text_without_a_single_space_is_cut_into_pieces_too():
    rng = random.Random(0)
    text = "".join(rng.choice("ACGT") for _ in range(5_000))
    tokens = learned_from_text("bpe", text).cut_text(text)
    assert "".join(tokens) == text
    assert 2 < len(text) / len(tokens) < 10


def test_frequent_words_are_whole_with_the_space_before_them(cutter):
    tokens = cutter.cut_text("Then the Rabbit\n\n    said so")
    assert {" the", " Rabbit"} <= {*tokens}
    assert tokens[tokens.index("\n") :][:3] == ["\n", "\n", "   "]


@pytest.mark.parametrize("test", [None, "zq zq zq zq and a test of its own. " * 9])
def test_merges_are_learned_from_the_training_part_only(test):
    train = "".join(f"the cat saw {n} dogs and sat down. " for n in range(80))
    rest = "zq zq zq xk xk xk wv wv wv zqxk zqxk. " * (20 if test is None else 10)
    report = inspect_text("text", train + rest, unit="bpe", test=test)
    (cutter,) = report.cutters
    made = {"".join(pair).replace(SPACE, " ") for pair in cutter.merges}
    assert {" cat", " dogs"} <= made
    task = corpus_task(kinds.task_of(sets.write(prepare(report))))
    data = load_corpus(task, seed=0)
    learned_part = "".join(
        token for row in data.train.tgt.tolist() for token in task.tgt_vocabulary.decode(row)
    )
    assert not [token for token in made if token not in learned_part]
    assert report.counts["train"] == len(task.tokens) - sum(
        report.counts[part] for part in ("validation", "test") if part == "validation" or not test
    )


@pytest.mark.parametrize("n_repeats", [3, 30])
def test_a_held_out_part_that_merges_well_teaches_nothing(n_repeats):
    rng = random.Random(1)
    mixed = "".join(rng.choice("abcdefghij klmnop\n") for _ in range(600))
    text = mixed + "the cat sat on the mat. " * n_repeats
    cutter = learned_from_text("bpe", text)
    tokens = cutter.cut_text(text)
    train = "".join(tokens[: len(tokens) - 2 * (len(tokens) // 10)])
    assert all("".join(pair).replace(SPACE, " ") in train for pair in cutter.merges)


def test_a_set_keeps_its_merges_and_shows_the_size_of_its_vocabulary():
    report = inspect_text("text", read_text(), unit="bpe")
    own = sets.write(prepare(report))
    task = corpus_task(kinds.task_of(own))
    (side,) = json.loads(own.content(sets.TOKENS))
    assert task.cutter == report.cutters[0] == Cutter.from_json(side["cut"])
    assert task.tgt_vocabulary.tokens == report.words[0] == report_of(own).words[0]
    assert sum(report.counts.values()) == len(task.tokens)
    assert len(read_text()) / 5 < len(task.tokens) < len(read_text()) / 2


def test_a_character_that_the_text_lacks_is_unknown():
    task = corpus_task(kinds.task_of(sets.write(prepare(inspect_text("text", CODE, unit="bpe")))))
    tokens = task.tokenize("if 쥐")
    assert tokens[-1] == SPECIALS[UNK]
    assert SPECIALS[UNK] not in tokens[:-1]
    assert task.unknown("if 쥐") == ("쥐",)


def test_without_a_set_merges_are_learned_from_the_text_of_the_configuration():
    chosen = CorpusTaskConfig(text=CODE, unit="bpe")
    one, other = CorpusTask(chosen), CorpusTask(chosen)
    learned_from_text.cache_clear()
    assert one.tokens == other.tokens
    assert len(one.tokens) < len(CODE)


def test_another_unit_than_that_of_the_set_has_a_vocabulary_of_its_own():
    own = sets.write(prepare(inspect_text("text", CODE, unit="bpe")))
    task = corpus_task(CorpusTaskConfig(data=own.id, unit="words"))
    assert UNK not in task.tgt_vocabulary.encode(task.tokens)


def test_a_link_carries_the_unit_and_the_grammar_has_none_of_it():
    values = default_sections("decoder-only", "own-text")
    values["task"]["unit"] = "bpe"
    experiment = Experiment.parse(values)
    assert from_query(to_query(experiment)) == experiment
    values = default_sections("decoder-only", "grammar")
    values["task"]["unit"] = "bpe"
    with pytest.raises(ConfigError) as caught:
        Experiment.parse(values)
    assert [problem.field for problem in caught.value.problems] == ["task.unit"]


TYPED = [
    "the  cat\n\n sat",
    "a▁b ▁ c",
    "   x",
    "x   ",
    "ab" * 150,
    "हि" * 90,
    "쥐 한국 हिन्दी é 👩\u200d🚀!",
    CODE,
]


@with_node
def test_a_page_cuts_alike():
    cutter = learned_from_text("bpe", read_text())
    cut = [cutter.cut_text(normalised(text)) for text in TYPED]
    known = {token for tokens in cut for token in tokens}
    told = {"cut": "parts", "join": "plain", "merges": [" ".join(pair) for pair in cutter.merges],
            "src": [*SPECIALS, *sorted(known)], "most_read": 9, "how": "continue"}  # fmt: skip
    (found,) = answers([{"told": told, "typed": TYPED, "tokens": cut}])
    assert found["cut"] == cut
    assert found["joined"] == [normalised(text) for text in TYPED]
