"""Text of any script, cut into tokens: marks stay in their words, and nothing is lost."""

import json
import random
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.user_data.files import sentences
from tests.export.test_asking import answers, with_node
from tfm_core.choices.config import ConfigError, CorpusTaskConfig, Experiment, from_query, to_query
from tfm_core.choices.config.codec import default_sections
from tfm_core.choices.config.corpus_tasks import MIN_TOKENS
from tfm_core.choices.variants.tasks import UNITS, joined_words, normalised
from tfm_core.data.tasks import corpus_task, text_task
from tfm_core.data.text.corpus import CorpusTask, read_text
from tfm_core.data.text_data import load_corpus
from tfm_core.data.user_data import kinds, sets
from tfm_core.data.user_data.kinds import report_of
from tfm_core.data.user_data.texts import inspect_text, prepare
from tfm_core.data.user_data.tokens import (
    CUTS,
    SPACE,
    Cutter,
    learn_from_sentences,
    learn_from_text,
    pieces,
)
from tfm_core.data.vocabulary import SPECIALS, UNK
from tfm_core.trace.source.carried import spelling_of
from tfm_core.trace.source.file import text_functions

pytestmark = pytest.mark.quick


SENTENCES = {
    "hindi": "हिन्दी भाषा सुन्दर है।",
    "thai": "แมว กิน ปลา และ ผู้หญิง วิ่ง",
    "tamil": "தமிழ் மொழி அழகு.",
    "arabic": "كِتَابٌ جَدِيدٌ، نَعَمْ؟",
    "persian": "می‌خواهم بروم",
    "hebrew": "שָׁלוֹם עוֹלָם!",
    "khmer": "ភាសា ខ្មែរ",
    "bengali": "বাংলা ভাষা",
    "decomposed": unicodedata.normalize("NFD", "Ünïcödé 나는 Việt"),
    "emoji": "👩‍🚀 ok ❤️ 👍🏽!",
    "quotes": 'Er sagte "hallo" und ging. Sie: „Ja, gern.“ Dann “no” (x) don’t e-mail',
}

MIXED = " ".join([*SENTENCES.values(), "a\u0301b \u0301 ▁ <pad> <unk>x \u200d # 3.5 snake_case"])


def test_a_word_keeps_its_marks_and_is_written_again_as_it_was():
    for name in SENTENCES:
        text = SENTENCES[name]
        tokens = UNITS["words"].cut(text)
        assert joined_words(tokens) == text
        n_words = len(re.sub(r"[.,!?،؟।:()\"“”„]", " ", text).split())
        assert sum(token[0].isalnum() or len(token) > 1 for token in tokens) == n_words


@pytest.mark.parametrize("unit", CUTS)
def test_no_token_but_a_character_begins_with_a_mark(unit):
    for sentence in SENTENCES.values():
        cutter = learn_from_sentences(unit, [sentence] * 3)
        tokens = cutter.cut(sentence)
        if unit != "characters":
            assert not [t for t in tokens if unicodedata.category(t[0])[0] == "M"]
        assert cutter.join(tokens) == sentence


def test_byte_pairs_merge_a_letter_with_its_marks():
    assert pieces("हिन्दी है") == ["▁हिन्दी", "▁है"]
    assert learn_from_sentences("bpe", ["हिन्दी है"] * 3).cut("हिन्दी है") == ("▁हिन्दी", "▁है")


def test_spaces_alone_cut_chords_moves_and_molecules():
    for text in ("C#m7/G F♯ (Am) |", "e4 e5 Nf3+ O-O", "CC(=O)O c1ccccc1", "a <pad> b"):
        cutter = Cutter("spaces")
        if "<" not in text:
            assert cutter.cut(text) == tuple(text.split())
            assert cutter.join(cutter.cut(text)) == text
        else:
            assert "<pad>" not in cutter.cut(text)


def test_normalising_removes_what_is_hidden_and_keeps_what_spells():
    assert normalised("a\u200bb\u202e\u2066\ufeff\u00ad\u200f") == "ab"
    assert normalised("می\u200cخواهم 👩\u200d🚀") == "می\u200cخواهم 👩\u200d🚀"
    assert normalised("e\u0301") == "é"


def a_task(unit):
    """A task whose training holds every sentence above."""
    raw = "".join(f"{n} {text}\t{text} {n}\n" for n in range(4) for text in SENTENCES.values())
    return kinds.task_of(sets.write(prepare(inspect_text("pairs", raw, unit=unit))))


@pytest.mark.parametrize("unit", CUTS)
def test_a_generated_file_cuts_and_joins_every_script_as_the_app_does(unit):
    task, spelling = text_task(config := a_task(unit)), spelling_of(a_task(unit))
    names = {"re": re, "unicodedata": unicodedata}
    exec(text_functions(spelling), names)
    assert tuple(names["cut"](MIXED)) == task.cutters[0].cut(normalised(MIXED))
    for text in SENTENCES.values():
        tokens = list(task.cutters[1].cut(text))
        assert names["joined"](tokens) == task.join_tgt(tokens)
    assert config.data


@pytest.mark.parametrize("unit", UNITS)
def test_a_generated_file_cuts_a_text_of_every_script_as_the_app_does(unit):
    config = CorpusTaskConfig(text=normalised(MIXED), unit=unit)
    task, spelling = text_task(config), spelling_of(config)
    names = {"re": re, "unicodedata": unicodedata}
    exec(text_functions(spelling), names)
    assert tuple(names["cut"](MIXED)) == task.tokenize(MIXED)
    assert names["joined"](list(task.tokens)) == task.join_tgt(task.tokens)


@with_node
def test_a_page_cuts_and_joins_every_script_as_the_app_does():
    tasks = [text_task(a_task(unit)) for unit in CUTS]
    cases = []
    for task in tasks:
        spelled = spelling_of(task.config)
        told = {
            "cut": spelled.cut,
            "join": spelled.join,
            "merges": spelled.merges,
            "how": "write",
            "most_read": 10**6,
            "src": ["", "", "", "", *task.cutters[0].cut(normalised(MIXED))],
        }
        tokens = [task.cutters[1].cut(text) for text in SENTENCES.values()]
        cases.append({"told": told, "typed": [MIXED], "tokens": tokens})
    for task, case, answer in zip(tasks, cases, answers(cases), strict=True):
        assert tuple(answer["cut"][0]) == task.cutters[0].cut(normalised(MIXED))
        assert answer["joined"] == [task.join_tgt(tokens) for tokens in case["tokens"]]


def test_files_are_normalised_and_the_notes_say_which_lines():
    rows = [f"나는 말 {n}\tI {n}" for n in range(30)]
    rows[3:8] = [unicodedata.normalize("NFD", row) for row in rows[3:8]]
    rows[10] = "\u202b나는\u200b 말 10\u200b\tI 10"
    rows[11] = "나는 말 11\tI\u200b 11"
    report = inspect_text("pairs", "\n".join(rows))
    assert sum(report.counts.values()) == 30
    kept = [row.content for part in report.rows.values() for row in part]
    assert sorted(kept) == sorted(f"나는 말 {n}" for n in range(30))
    composed, zero, embedding = sentences(report)[:3]
    assert "5 lines" in composed
    assert "NFC" in composed
    assert "U+200B (zero width space)" in zero
    assert "lines 11, 12" in zero
    assert "U+202B (right-to-left embedding)" in embedding
    assert not sentences(inspect_text("pairs", "\n".join(f"나는 {n}\tI {n}" for n in range(30))))[
        1:
    ]


def test_a_line_of_hidden_characters_alone_is_listed():
    raw = "".join(f"one {n}\ttwo {n}\n" for n in range(20)) + "\u200b\u200f\tx\n"
    report = inspect_text("pairs", raw)
    assert [problem.line for problem in report.skipped] == [21]
    assert sum(report.counts.values()) == 20


def test_a_text_and_its_test_file_are_normalised_too():
    text = unicodedata.normalize("NFD", "é è à ô\n" * 30)
    report = inspect_text("text", text, test=text + "\u200b")
    assert report.text == "é è à ô\n" * 29 + "é è à ô"
    assert any("30 lines" in note for note in sentences(report))
    assert any(
        note.startswith("The test file: ") and "U+200B" in note for note in sentences(report)
    )


@pytest.mark.parametrize("unit", CUTS)
@pytest.mark.parametrize(("kind", "seed"), [("pairs", 0), ("labels", 1)])
def test_no_unseen_input_reads_like_one_of_training(kind, unit, seed):
    spellings = ("Hello friend {n} .", "Hello friend {n}.", "Hello  friend\u00a0{n}\u200b.")
    spellings = (*spellings, "Ami\u0301 {n}", "Am\u00ed {n}")
    raw = "".join(
        f"{text.format(n=n)}\t{'yes' if n % 2 else 'no'}\n" for n in range(40) for text in spellings
    )
    report = inspect_text(kind, raw, unit=unit, seed=seed)
    assert report.refusal is None
    cut = report.cutters[0].cut
    read = {split: {cut(row.content) for row in rows} for split, rows in report.rows.items()}
    assert not read["train"] & (read["validation"] | read["test"])
    assert not read["validation"] & read["test"]
    assert report.n_across == 0
    every = [(cut(row.content), row.label) for rows in report.rows.values() for row in rows]
    assert len(every) == len(set(every))


def test_a_test_file_is_compared_by_tokens():
    raw = "".join(f"Hello friend {n} .\tx{n}\n" for n in range(40))
    report = inspect_text("pairs", raw, test=raw.replace(" .", "."))
    n_held = report.counts["validation"]
    assert report.n_across == 40 - n_held


@pytest.mark.parametrize("unit", UNITS)
def test_a_text_that_repeats_itself_says_so(unit):
    verse = "the cat sat on the mat and the dog on the log. "
    (note,) = sentences(inspect_text("text", verse * 40, unit=unit))
    assert "of the test" in note
    words = [f"w{n * n % 977}" for n in range(900)]
    assert sentences(inspect_text("text", " ".join(words), unit=unit)) == ()


@pytest.mark.parametrize("kind", ["pairs", "labels", "text"])
def test_the_vocabulary_of_a_kept_set_is_that_of_its_report(kind):
    raw = "".join(f"one {n}\t{'ab'[n % 2]}\n" for n in range(40))
    report = inspect_text(kind, raw)
    assert report_of(sets.write(prepare(report))).words == report.words


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
    with sets.below(tmp_path):
        yield


@pytest.fixture(scope="module")
def cutter():
    return learn_from_text("bpe", CODE + read_text())


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
    tokens = learn_from_text("bpe", text).cut_text(text)
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
    cutter = learn_from_text("bpe", text)
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
    learn_from_text.cache_clear()
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
    cutter = learn_from_text("bpe", read_text())
    cut = [cutter.cut_text(normalised(text)) for text in TYPED]
    known = {token for tokens in cut for token in tokens}
    told = {
        "cut": "parts",
        "join": "plain",
        "merges": [" ".join(pair) for pair in cutter.merges],
        "src": [*SPECIALS, *sorted(known)],
        "most_read": 9,
        "how": "continue",
    }
    (found,) = answers([{"told": told, "typed": TYPED, "tokens": cut}])
    assert found["cut"] == cut
    assert found["joined"] == [normalised(text) for text in TYPED]
