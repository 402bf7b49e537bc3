"""What is pasted or uploaded: taken where it is good, and said where it is not, by line."""

import codecs
import json
import re

import pytest

from tests.data.user_data.files import packed, sentences
from tfm_core.data import build
from tfm_core.data.text.corpus import read_text
from tfm_core.data.user_data import records, text_files
from tfm_core.data.user_data.layout import guess
from tfm_core.data.user_data.records import read_records
from tfm_core.data.user_data.texts import inspect_text, prepare
from tfm_core.data.user_data.tokens import CUTS, Cutter, learn_from_sentences, pieces
from tfm_core.data.user_data.uploads import LIMITS, TEXT_ENCODINGS, BadData, ColumnLayout, ReadAs
from tfm_core.data.vocabulary import SPECIALS

pytestmark = pytest.mark.quick

PAIRS = "".join(f"word{n} and more\tWort{n} und mehr\n" for n in range(40))
LABELS = "".join(
    f"the food was {word} {n},{label}\n"
    for n in range(20)
    for word, label in (("good", "yes"), ("bad", "no"))
)
CSV = "".join(f'"one, {n}","eins, {n}"\n' for n in range(20))
JSONL = "".join(f'{{"source": "one {n}", "id": {n}, "target": "eins {n}"}}\n' for n in range(20))
HUGGING_FACE = "".join(
    f'{{"translation": {{"en": "one {n}", "de": "eins {n}"}}}}\n' for n in range(20)
)
LISTS = "".join(f'["one {n}", "eins {n}"]\n' for n in range(20))


def test_pairs_are_read_in_every_form():
    for raw, first in [
        (PAIRS, ("word0 and more", "Wort0 und mehr")),
        (f"source\ttarget\n{PAIRS}", ("word0 and more", "Wort0 und mehr")),
        (PAIRS.replace("\t", " ; "), ("word0 and more", "Wort0 und mehr")),
        (PAIRS.replace("\n", "\r\n").encode(), ("word0 and more", "Wort0 und mehr")),
        (codecs.BOM_UTF8 + PAIRS.encode(), ("word0 and more", "Wort0 und mehr")),
        (PAIRS.encode("utf-16"), ("word0 and more", "Wort0 und mehr")),
        ((("a.tsv", PAIRS.encode("utf-16-le")),), ("word0 and more", "Wort0 und mehr")),
        (packed({"a/pairs.tsv": PAIRS.encode()}), ("word0 and more", "Wort0 und mehr")),
        (CSV, ("one, 0", "eins, 0")),
        (JSONL, ("one 0", "eins 0")),
        (HUGGING_FACE, ("one 0", "eins 0")),
        (LISTS, ("one 0", "eins 0")),
    ]:
        report = inspect_text("pairs", raw)
        assert (report.refusal, report.skipped) == (None, ())
        assert report.preview[0] == first
        assert sum(report.counts.values()) == len(report.preview)


def test_a_bad_line_is_said_by_its_number_and_left_out():
    for bad, line, sentence in [
        ("only one text", 41, "Line 41: expected 2 columns, got 1."),
        ("one\ttwo\tthree", 41, "Line 41: expected 2 columns, got 3."),
        ("one\t ", 41, "Line 41 has an empty text."),
        (f"one\t{'a' * 5000}", 41, "Line 41 has a text of 5,000 characters"),
        (f"one\t{'a ' * 200}", 41, "Line 41 has 200 tokens; the limit is 128."),
    ]:
        report = inspect_text("pairs", f"{PAIRS}{bad}\n")
        assert [problem.line for problem in report.skipped] == [line]
        assert report.skipped[0].reason.startswith(sentence)
        assert sum(report.counts.values()) == 40


def test_a_bad_line_of_json_is_said_by_its_number():
    report = inspect_text("pairs", f'{LISTS}{{"source": "half\n["a", 1, 2]\n[["a"], "b"]\n')
    assert [problem.line for problem in report.skipped] == [21, 22, 23]


def labelled(labels):
    return "".join(f"text {n}\t{label}\n" for n, label in enumerate(labels))


GERMAN_IN_CP1252 = "é\té\n".encode() * 9 + b"one\tgr\xfc\xdfe\n"
REFUSED = [
    ("pairs", "", "Paste some lines"),
    ("pairs", (), "Paste some lines"),
    ("pairs", "   \n \n", "Paste some lines"),
    ("pairs", GERMAN_IN_CP1252, "Line 10 is not UTF-8 (byte 0xFC"),
    ("pairs", codecs.BOM_UTF16_LE + b"a\0b", "is not UTF-16"),
    ("pairs", PAIRS.encode() + b"\0", "Line 41 has a zero byte"),
    ("pairs", "half a character \ud800\t", "invalid character"),
    ("pairs", "no table at all\n" * 50, "No line has two texts"),
    ("pairs", ",,\n" * 20, "No line has two texts"),
    ("pairs", "a\tb\n" * 50, "Different sources: 1; at least 2"),
    ("pairs", b"\x89PNG\r\n\x1a\n\0\0\0", "is not UTF-8"),
    ("pairs", '[{"a": "b", "c": "d"},\n {"a": "b", "c": "d"}\n {"a": "b"}]', "line 3"),
    ("pairs", '{"a": [["b", "c"]], "d": [["e", "f"]]}', "several lists: a, d"),
    ("pairs", '{"text": "alone"}\n' * 20, "Line 1: expected 2 columns, got 1"),
    ("pairs", '["\\ud800", "b"]\n["\\u0000", "b"]', "Different sources: 0"),
    ("labels", labelled(["yes"] * 30), "All 30 sentences have the label “yes”"),
    ("labels", labelled(f"label {n}" for n in range(10_000)), "There are 10,000 labels"),
    ("labels", labelled(["yes", "<pad>"] * 15), "label <pad>"),
    ("text", "", "0 characters"),
    ("text", "a " * 30, "repeats one token"),
    ("text", b"\xff\xfe\xff", "is not UTF-16"),
]
NO_TEXTS = {
    "a workbook": b"PK\x03\x04 [Content_Types].xml xl/workbook.xml",
    "a zip archive": b"PK\x03\x04 train.en train.ko",
    "a Parquet table": b"PAR1\x15\x04\x15",
    "formatted text (RTF)": b"{\\rtf1\\ansi Hallo}",
    "a web page": b"\n<!DOCTYPE html><html>a\tb</html>",
}


def test_what_cannot_be_taken_at_all_is_refused_in_a_sentence():
    for kind, raw, sentence in REFUSED:
        report = inspect_text(kind, raw)
        assert sentence in report.refusal
        with pytest.raises(ValueError, match=re.escape(sentence)):
            prepare(report)
    for name, content in NO_TEXTS.items():
        with pytest.raises(BadData, match=re.escape(f"This is {name}. Save")):
            text_files.decoded(content)
        if name != "a zip archive":
            assert f"This is {name}. " in inspect_text("labels", (("ours", content),)).refusal


LINES = {
    "train.en": "".join(f"They saw {n} birds.\n" for n in range(40)).encode(),
    "train.ko": "".join(f"그들은 새 {n}마리를 보았다.\n" for n in range(40)).encode(),
}
FIRST = ("They saw 0 birds.", "그들은 새 0마리를 보았다.")


def test_two_texts_that_match_line_by_line_are_pairs():
    opus = {
        "README": b"of OPUS",
        "set/en-ko.en": LINES["train.en"],
        "set/en-ko.ko": LINES["train.ko"],
    }
    for upload in (tuple(LINES.items()), packed(LINES), (("set.zip", packed(opus)),)):
        report = inspect_text("pairs", upload, test=upload)
        assert (report.refusal, report.names, report.skipped) == (None, ("en", "ko"), ())
        assert report.preview[0] == FIRST
        assert report.accounting.kept + report.test_accounting.kept == 80
        assert "Not read: README." in sentences(report) or "README" not in str(upload)
    report = inspect_text("pairs", tuple(LINES.items()), choices=ReadAs(layout=ColumnLayout(1, 0)))
    assert report.preview[0] == FIRST[::-1]
    named = {"tgt.txt": LINES["train.ko"], "src.txt": LINES["train.en"]}
    assert inspect_text("pairs", tuple(named.items())).preview[0] == FIRST
    gap = {"train.en": b"a\n\n\n" + LINES["train.en"], "train.ko": b"\nb\n\n" + LINES["train.ko"]}
    report = inspect_text("pairs", tuple(gap.items()))
    assert [problem.line for problem in report.skipped] == [1, 2]
    assert report.accounting.blank == 1


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        (
            LINES | {"train.ko": LINES["train.ko"][:-1] + b"\n\n"},
            "has 40 lines, but train.ko has 41",
        ),
        (LINES | {"train.de": b""}, "Found 3 files (train.en, train.ko, train.de)."),
        ({"train.csv": b"a,b", "test.csv": b"a,b"}, "Found 2 files (train.csv, test.csv). Choose"),
        ({}, "Found 0 files"),
        ({"a.zip": packed(LINES)}, "This is a zip archive"),
        ({"a.txt": b"a" * 10**8}, "unpacks to more than 33 MB"),
        ({f"{n}.txt": b"" for n in range(1_001)}, "more than 1,000 files"),
    ],
)
def test_files_that_are_no_pairs_are_refused_in_a_zip_and_without(files, sentence):
    assert sentence in inspect_text("pairs", packed(files)).refusal
    if 1 < len(files) < 9:
        assert sentence in inspect_text("pairs", tuple(files.items())).refusal
        assert "Found " in inspect_text("text", packed(files)).refusal
        assert "damaged" in inspect_text("pairs", packed(files)[:-9]).refusal


def test_each_answer_of_a_chat_is_a_pair_with_the_message_before_it():
    def chat(n, key="messages", role="role", text="content", users="user", bots="assistant"):
        said = [("system", "Be kind."), (users, f"hello {n}"), (bots, f"hi {n}")]
        said += [(users, f"how are you {n}"), (bots, f"fine {n}")]
        return {"id": n, key: [{role: who, text: what} for who, what in said]}

    gpt = {"key": "conversations", "role": "from", "text": "value", "users": "human", "bots": "gpt"}
    for made in ({}, gpt):
        every = [chat(n, **made) for n in range(20)]
        for raw in (json.dumps(every), "\n".join(map(json.dumps, every))):
            report = inspect_text("pairs", raw)
            assert set(report.preview[:2]) == {("hello 0", "hi 0"), ("how are you 0", "fine 0")}
            assert (report.accounting.total, report.accounting.kept) == (40, 40)
            assert "20 chats read" in sentences(report)[0]
            assert "system (20)" in sentences(report)[1]
    alone = [chat(0)["messages"][at] for at in (2, 1, 1, 2, 1)]
    raw = "\n".join(
        map(json.dumps, [*every, {"messages": alone}, {"messages": alone[:0]}, {"a": 1}])
    )
    report = inspect_text("pairs", raw)
    assert [problem.line for problem in report.skipped] == [21, 21, 21, 22, 23]
    assert (report.accounting.total, report.accounting.left_out) == (46, 5)
    assert records.read_records(json.dumps(chat(0))).records[0].content == ("hello 0", "hi 0")


def test_an_instruction_and_its_input_are_the_source_unless_asked_otherwise():
    rows = [
        {"instruction": "Say it.", "input": f"one {n}", "output": f"eins {n}"} for n in range(20)
    ]
    report = inspect_text("pairs", json.dumps([*rows, {"instruction": "Sing.", "output": "la"}]))
    assert report.preview[0] == ("Say it. one 0", "eins 0")
    assert "joins two" in sentences(report)[0]
    assert report.preview[20] == ("Sing.", "la")
    report = inspect_text("pairs", json.dumps(rows), choices=ReadAs(layout=ColumnLayout(2, 3)))
    assert report.preview[0] == ("one 0", "eins 0")


LANGUAGES = {
    "cp949": "나는 학교에 간다. 너는 집에서 책을 읽는다",
    "cp932": "私は学生です。猫が好きです",
    "gbk": "我喜欢学习。今天天气很好",
    "big5": "我喜歡學習。今天天氣很好",
    "cp1252": "Schöne Grüße – “à bientôt”, l’été",
    "cp1251": "Привет, я дома",
    "utf-16-le": "가나 is a word",
}


@pytest.mark.parametrize("encoding", LANGUAGES)
def test_a_text_that_is_not_utf_8_is_read_as_what_the_report_says(encoding):
    text = LANGUAGES[encoding]
    raw = "".join(f"word {n}\t{text}, {n}\n" for n in range(20))
    report = inspect_text("pairs", PAIRS, test=raw.encode(encoding))
    assert str(TEXT_ENCODINGS[encoding]) in sentences(report)[0]
    for kind in ("pairs", "text"):
        report = inspect_text(kind, raw.encode(encoding))
        assert report.read_as.encoding == encoding
        assert f"{text}, 0" in "".join(report.preview[0])
        assert str(TEXT_ENCODINGS[encoding]) in sentences(report)[0]


def test_an_encoding_is_asked_for_where_none_is_likely():
    raw = "".join(f"slovo {n}\tZażółć gęślą jaźń {n}\n" for n in range(20)).encode("cp1250")
    report = inspect_text("pairs", raw)
    assert (report.read_as.encoding, report.refusal[:16]) == ("", "Line 1 is not UT")
    report = inspect_text("pairs", raw, choices=ReadAs(encoding="cp1250"))
    assert report.preview[0] == ("slovo 0", "Zażółć gęślą jaźń 0")
    files = ("a.en", raw), ("a.pl", PAIRS.replace("W", "ö").encode("cp1252") * 2)
    assert inspect_text("pairs", files).refusal.startswith("a.en: Line 1 is not UTF-8 (byte 0xBF)")
    report = inspect_text("pairs", raw, choices=ReadAs(encoding="cp932"))
    assert "is not Japanese (cp932)" in report.refusal
    assert report.read_as.encoding == "cp932"
    for kind in ("pairs", "text"):
        report = inspect_text(kind, PAIRS * 2, test=raw)
        assert (report.read_as.encoding, report.refusal[:13]) == ("", "The test file")
    report = inspect_text("pairs", PAIRS, choices=ReadAs(encoding="cp932"))
    assert not any("UTF-8" in note for note in sentences(report))


def test_settings_of_anki_are_read_as_such():
    cards = "".join(f'id{n}\t"<b>to</b> eat {n}<br>now"\t먹다 &amp; {n}\tverb\n' for n in range(20))
    head = "#separator:tab\n#html:true\n#guid column:1\n#tags column:4\n"
    report = inspect_text("pairs", head + cards)
    assert report.preview[0] == ("to eat 0 now", "먹다 & 0")
    assert report.accounting.header == 4
    assert "separator: tab, html: true" in sentences(report)[0]
    assert inspect_text("pairs", "#columns:id\tBack\tFront\ttags\n" + cards).names[1] == "Back"
    plain = inspect_text("pairs", cards.replace("\t", ";").join(["#separator:Semicolon\n", ""]))
    assert plain.preview[0][1] == "<b>to</b> eat 0 now"


def test_long_texts_are_cut_where_asked_and_left_out_otherwise():
    long = "".join(f"{'very ' * n}good {n}<br />yes,{n % 2}\n" for n in range(60, 180, 3))
    left_out = inspect_text("labels", long)
    assert left_out.accounting.left_out == 18
    for unit in CUTS:
        choices = ReadAs(cut_at=20)
        report = inspect_text("labels", long, unit=unit, choices=choices)
        assert (report.accounting.kept, report.skipped) == (40, ())
        assert max(report.lengths["sentence"]) == 20 - (unit == "characters")  # no space at the end
        assert "Examples cut at 20 tokens: 40." in sentences(report)
    huge = "".join(f"{n} {'very ' * 5_000},{n % 2}\n" for n in range(20))
    assert inspect_text("labels", huge, choices=choices).counts["train"] == 16
    assert inspect_text("pairs", PAIRS, choices=ReadAs(cut_at=2)).preview[0] == (
        "word0 and",
        "Wort0 und",
    )
    assert sentences(inspect_text("labels", LABELS, choices=ReadAs(cut_at=128))) == ()


def test_what_is_huge_is_refused(monkeypatch):
    for limit, most, sentence in (
        ("rows", 20, "more than 20 rows"),
        ("bytes", 100, "the limit is 100"),
    ):
        monkeypatch.setitem(LIMITS, limit, LIMITS[limit]._replace(most=most))
        assert sentence in inspect_text("pairs", PAIRS).refusal


def test_no_source_of_a_seeded_split_is_in_two_parts_and_another_seed_splits_otherwise():
    raw = PAIRS + "".join(f"word{n} and more\tanother answer {n}\n" for n in range(0, 40, 3))
    parts = []
    for seed in (0, 0, 1):
        report = inspect_text("pairs", raw, seed=seed)
        sources = [{row.content for row in report.rows[split]} for split in report.rows]
        assert sum(map(len, sources)) == len(set().union(*sources)) == 40
        assert report.n_across == 0
        parts.append(sources)
    assert parts[0] == parts[1] != parts[2]
    assert any("several answers" in note for note in sentences(report))


def test_a_test_file_of_ones_own_is_the_test_and_what_training_holds_of_it_is_counted():
    test = "word1 and more\tWort1 und mehr\nquite another one\tein ganz anderes\nbad\n"
    report = inspect_text("pairs", PAIRS, test=test)
    assert report.split == {"by": "file"}
    assert report.counts["test"] == 2
    held_out = {row.content for row in report.rows["validation"]}
    assert report.n_across == (0 if "word1 and more" in held_out else 1)
    assert report.skipped[0].reason.startswith("Line 3 of the test file: expected 2 columns")
    assert any(note.startswith("Unseen tokens that are not") for note in sentences(report))
    assert "test file" in inspect_text("pairs", PAIRS, test=b"\xff").refusal


def test_nothing_but_the_training_part_makes_the_vocabulary():
    for unit in CUTS:
        report = inspect_text("pairs", PAIRS, unit=unit)
        for side, column in enumerate(("content", "label")):
            cutter = report.cutters[side]
            train = {t for row in report.rows["train"] for t in cutter.cut(getattr(row, column))}
            assert set(report.words[side]) == train


def test_the_chosen_columns_are_read_whatever_a_guess_would_be():
    report = inspect_text("pairs", PAIRS, choices=ReadAs(layout=ColumnLayout(1, 0)))
    assert report.preview[0] == ("Wort0 und mehr", "word0 and more")
    assert prepare(report).details["read"]["columns"] == [1, 0]


def test_labels_are_found_in_either_column_and_balanced():
    for raw in [LABELS, "\n".join(",".join(line.split(",")[::-1]) for line in LABELS.splitlines())]:
        report = inspect_text("labels", raw)
        assert {label: sum(n) for label, n in report.balance.items()} == {"no": 20, "yes": 20}
        assert report.words[1] == ("no", "yes")
        assert report.lengths["label"] == (1,) * 40


def test_every_label_is_in_training_and_rare_or_common_ones_are_said():
    for seed in range(5):
        report = inspect_text("labels", LABELS + "perhaps it was,maybe\n", seed=seed)
        assert "maybe" in {row.label for row in report.rows["train"]}
        assert any("fewer than 3 sentences: 1" in note for note in sentences(report))
    raw = labelled("no" if n % 10 == 0 else "yes" for n in range(100))
    assert any("90% of the sentences" in note for note in sentences(inspect_text("labels", raw)))


def test_a_label_that_training_does_not_have_is_left_out_of_the_test():
    report = inspect_text(
        "labels", LABELS, test="what is this,never\nthe food was good again,yes\n"
    )
    assert report.counts["test"] == 1
    assert "Line 1 of the test file has the label “never”" in report.skipped[0].reason


def test_five_pairs_are_in_every_part_with_a_warning_and_five_labels_are_refused():
    five = "".join(f"{n} {n + 1}\t{n * n} {n}\n" for n in range(5))
    report = inspect_text("pairs", five)
    assert report.refusal is None
    assert report.counts == {"train": 5, "validation": 5, "test": 5}
    assert (report.accounting.total, report.accounting.kept) == (5, 5)
    assert len(report.preview) == len(report.lengths["source"]) == 5
    assert ["has memorised" in note for note in sentences(report)] == [True]
    prepare(report)
    assert "Different sentences: 5; at least 10" in inspect_text("labels", five).refusal


@pytest.mark.parametrize("unit", CUTS)
def test_what_is_cut_is_cut_the_same_when_it_was_joined(unit):
    for text in ("Don’t ask: “why?” (now)", "하나 둘 셋", "a-b c_d 3.5", "naïve — so"):
        cutter = learn_from_sentences(unit, [text, text, "Don’t don’t ask ask"])
        tokens = cutter.cut(text)
        assert cutter.cut(cutter.join(tokens)) == tokens
        assert Cutter.from_json(cutter.to_json()) == cutter
        if unit != "words":
            assert cutter.join(tokens) == text


def test_a_written_mark_of_a_space_is_a_space():
    cutter = learn_from_sentences("bpe", ["one two", "one two"])
    assert cutter.cut("one▁two") == cutter.cut("one two") == ("▁one", "▁two")


def test_merges_are_made_as_the_library_makes_them():
    from tokenizers import Tokenizer, models

    raw = [line.split("\t")[0] for line in build.english_german().splitlines()]
    cutter = learn_from_sentences("bpe", raw, n_merges=60)
    assert len(cutter.merges) == 60
    signs = sorted(
        {sign for one in raw for sign in f"{one}▁"} | {"".join(m) for m in cutter.merges}
    )
    known = Tokenizer(
        models.BPE(vocab={sign: n for n, sign in enumerate(signs)}, merges=[*cutter.merges])
    )
    for text in (*raw[:50], "unknown words too"):
        expected = [t for piece in pieces(text) for t in known.encode(piece).tokens]
        assert [t for t in cutter.cut(text) if t in signs] == expected
    assert len(cutter.cut(raw[0])) < len(raw[0]) / 2


def test_no_token_is_a_special_one():
    raw = PAIRS + "".join(f"<pad> <unk> {n}\t<bos> <eos>\n" for n in range(30))
    for unit in CUTS:
        words = inspect_text("pairs", raw, unit=unit).words
        assert not {*words[0], *words[1]} & {*SPECIALS}


def test_a_text_is_counted_and_kept_as_it_is():
    raw = "It was a dark and stormy night.\r\n" * 30
    report = inspect_text("text", raw, unit="characters", name="night.txt")
    assert (report.name, report.refusal) == ("night", None)
    assert sum(report.counts.values()) == len(report.text)
    prepared = prepare(report)
    assert set(prepared.files) == {"text.txt", "tokens.json"}
    assert prepared.files["text.txt"] == report.text.encode()
    assert "\r" not in report.text


def test_a_test_part_that_repeats_passages_of_training_is_said():
    book = read_text()
    assert not any("memory" in note for note in sentences(inspect_text("text", book)))
    again = inspect_text("text", book + book[: len(book) // 8])
    assert any("memory" in note for note in sentences(again))
    parts = inspect_text("text", book[5_000:], test=book[:4_000] + book[6_000:8_000])
    assert any("33% of the test" in note for note in sentences(parts))


def test_a_text_may_be_long_but_not_endless(monkeypatch):
    raw = "once upon a time there was a text. " * 20_000
    assert inspect_text("text", raw).refusal is None
    monkeypatch.setattr(text_files, "MAX_TEXT", 1000)
    assert "to 1,000" in inspect_text("text", raw).refusal


def test_a_set_is_named_after_its_file():
    for name, expected in [
        ("german.csv", "german"),
        ("C:\\files\\My data.tsv", "My data"),
        ("Dr. No", "Dr. No"),
        ("", "My pairs"),
        ("a\nb\0c", "a b c"),
        ("x" * 500, "x" * 60),
    ]:
        assert inspect_text("pairs", PAIRS, name=name).name == expected


ENGLISH = [f"They saw {n} birds near the sea." for n in range(30)]
KOREAN = [f"그들은 바다 근처에서 새 {n}마리를 보았다." for n in range(30)]
GERMAN = [f"Sie sahen {n} Vögel am Meer." for n in range(30)]
GOOD_OR_BAD = ["good" if n % 3 else "bad" for n in range(30)]
WORDS = ["cat", "dog", "tree", "house", "bird", "sea", "sky", "sun", "moon", "star"]
WORTE = ["Katze", "Hund", "Baum", "Haus", "Vogel", "Meer", "Himmel", "Sonne", "Mond", "Stern"]


def lines(*columns, head="", sign="\t"):
    rows = [sign.join(row) for row in zip(*columns, strict=True)]
    return "\n".join([head, *rows] if head else rows)


def numbers(n=30):
    return [str(9_000 + 7 * at) for at in range(n)]


def ones(text):
    return [text] * 30


ANKI = [f"CC-BY 2.0 (France) Attribution: example.org #{n} (a) & #{n + 1} (b)" for n in range(30)]
NUMBERED = list(zip(range(30), ENGLISH, KOREAN, strict=True))
BINARY = [str(n % 2) for n in range(30)]
PAIR_FILES = {
    "plain": (lines(ENGLISH, GERMAN), (0, 1)),
    "Anki": (lines(ENGLISH, KOREAN, ANKI), (0, 1)),
    "Tatoeba": (lines(numbers(), ones("eng"), ENGLISH, numbers(), ones("kor"), KOREAN), (2, 5)),
    "english,german": (lines(ENGLISH, GERMAN, head="english;german", sign=";"), (0, 1, True)),
    "Excel": ("sep=;\n" + lines(ENGLISH, GERMAN, head="english;german", sign=";"), (0, 1, True)),
    "Korean names": (lines(ENGLISH, KOREAN, head="원문\t번역문"), (0, 1, True)),
    "unknown names": (lines(ENGLISH, KOREAN, head="Spalte A\tSpalte B"), (0, 1, True)),
    "target first": (lines(GERMAN, ENGLISH, head="target\tsource"), (1, 0, True)),
    "id between": (lines(ENGLISH, numbers(), GERMAN, head="en\tid\tde"), (0, 2, True)),
    "pandas index": (lines(numbers(), ENGLISH, GERMAN, head="\ten\tde"), (1, 2, True)),
    "pandas index alone": (lines(numbers(), ENGLISH, GERMAN, head="\t0\t1"), (1, 2, True)),
    "short sentence first": ("Hi.\tHallo.\n" + lines(ENGLISH, GERMAN), (0, 1)),
    "short words first": ("Tom\tTom\nGo on\tMach weiter\n" + lines(ENGLISH, GERMAN), (0, 1)),
    "same first row": ("OK\tOK\n" + lines(ENGLISH, KOREAN), (0, 1)),
    "a dictionary": (lines(WORDS, WORTE), (0, 1)),
    "languages": ("english\tenglisch\ngerman\tdeutsch\n" + lines(WORDS, WORTE), (0, 1)),
    "a named dictionary": (lines(WORDS, WORTE, head="en\tde"), (0, 1, True)),
    "arithmetic": (lines([f"{n} + {n}" for n in range(30)], numbers()), (0, 1)),
    "spelled numbers": (lines(WORDS, [str(n) for n in range(10)]), (0, 1)),
    "jsonl": ("\n".join(json.dumps({"id": n, "text": a, "ko": b}) for n, a, b in NUMBERED), (1, 2)),
    "Hugging Face": (
        json.dumps([{"id": str(n), "translation": {"en": a, "ko": b}} for n, a, b in NUMBERED]),
        (1, 2),
    ),
}
LABEL_FILES = {
    "plain": (lines(ENGLISH, GOOD_OR_BAD), (0, 1)),
    "label first": (lines(GOOD_OR_BAD, ENGLISH), (1, 0)),
    "NSMC": (lines(numbers(), KOREAN, BINARY, head="id\tdocument\tlabel"), (1, 2, True)),
    "NSMC without names": (lines(numbers(), KOREAN, BINARY), (1, 2)),
    ",text,label": (
        lines([str(n) for n in range(30)], ENGLISH, GOOD_OR_BAD, head=",text,label", sign=","),
        (1, 2, True),
    ),
    "review,sentiment": (
        lines(ENGLISH, GOOD_OR_BAD, head="review,sentiment", sign=","),
        (0, 1, True),
    ),
    "unknown names": (lines(ENGLISH, GOOD_OR_BAD, head="ulasan\tperasaan"), (0, 1, True)),
    "document, label": (lines(ENGLISH, GOOD_OR_BAD, head="document\tlabel"), (0, 1, True)),
    "label, text, split": (
        lines(GOOD_OR_BAD, ENGLISH, ones("train"), head="sentiment\tsentence\tsplit"),
        (1, 0, True),
    ),
    "a rare label first": ("perhaps it was\tmaybe\n" + lines(ENGLISH, GOOD_OR_BAD), (0, 1)),
    "a short text first": ("meh\tbad\n" + lines(ENGLISH, GOOD_OR_BAD), (0, 1)),
    "income": (lines(ENGLISH, ["<=50K" if n % 2 else ">50K" for n in range(30)]), (0, 1)),
    "json": (
        json.dumps([{"label": float(n % 2), "text": a} for n, a in enumerate(ENGLISH)], indent=1),
        (1, 0),
    ),
}


def test_the_columns_and_the_header_of_pairs_are_guessed():
    for raw, expected in PAIR_FILES.values():
        assert guess("pairs", read_records(raw)) == ColumnLayout(*expected)


def test_the_columns_and_the_header_of_labels_are_guessed():
    for name, (raw, expected) in LABEL_FILES.items():
        assert guess("labels", read_records(raw)) == ColumnLayout(*expected)
        report = inspect_text("labels", raw)
        assert report.refusal is None
        assert report.accounting.header == len(expected) - 2
        assert len(report.balance) == 2 + (name == "a rare label first")
        assert name != "income" or set(report.balance) == {"<=50K", ">50K"}


def test_labels_of_a_sorted_file_are_found():
    texts = [f"number {n} is read" for n in range(9_000)]
    raw = lines(texts, sorted(str(n % 2) for n in range(9_000)), ["x"] * 9_000)
    assert guess("labels", read_records(raw)) == ColumnLayout(0, 1)


def test_a_header_switched_on_or_off_is_followed_by_the_test_file():
    raw, test = PAIR_FILES["english,german"][0], "english;german\na b c;d e f\n"
    off = ColumnLayout(0, 1)
    assert inspect_text("pairs", raw, test=test).counts["test"] == 1
    assert inspect_text("pairs", raw, test=test, choices=ReadAs(layout=off)).counts["test"] == 2
    assert inspect_text("pairs", raw, choices=ReadAs(layout=off)).accounting.kept == 31


def test_a_test_file_with_other_columns_is_read_by_its_own_names():
    raw = LABEL_FILES["NSMC"][0]
    report = inspect_text("labels", raw, test="label\ttext\n1\t또 다른 문장\n0\t마지막 문장\n")
    assert [row.label for row in report.rows["test"]] == ["1", "0"]
    raw = LABEL_FILES["json"][0]
    report = inspect_text("labels", raw, test=json.dumps([{"text": "one more", "label": 1}]))
    assert [(row.content, row.label) for row in report.rows["test"]] == [("one more", "1")]


def test_whole_numbers_are_one_label_however_they_are_written():
    rows = [{"text": one, "label": [1, 1.0, "1.0", 0, 0.0][n % 5]} for n, one in enumerate(ENGLISH)]
    assert set(inspect_text("labels", json.dumps(rows)).balance) == {"1", "0"}
    assert set(inspect_text("labels", lines(ENGLISH, ["1.0", "0.5", "2"] * 10)).balance) == {
        "1",
        "0.5",
        "2",
    }


def test_labels_that_differ_in_capitals_are_one_unless_asked_otherwise():
    labels = ["Positive", "positive", " positive ", "negative", "positive"] * 6
    raw = lines(ENGLISH, labels)
    report = inspect_text("labels", raw, test="one more\tPOSITIVE\n")
    assert report.spellings == (("positive", "Positive", "POSITIVE"),)
    assert {label: sum(n) for label, n in report.balance.items()} == {"positive": 25, "negative": 6}
    assert prepare(report).details["read"]["merged"] == [["positive", "Positive", "POSITIVE"]]
    apart = inspect_text("labels", raw, choices=ReadAs(merges_labels=False))
    assert {label: sum(n) for label, n in apart.balance.items()} == {
        "positive": 18,
        "Positive": 6,
        "negative": 6,
    }
    assert "read" not in prepare(apart).details


def test_what_was_chosen_is_kept_with_the_set():
    details = prepare(inspect_text("labels", LABEL_FILES["NSMC"][0])).details
    assert details["read"] == {"columns": [1, 2], "header": True, "names": ["document", "label"]}
    assert "read" not in prepare(inspect_text("pairs", PAIR_FILES["plain"][0])).details


def test_records_inside_an_object_are_rows():
    rows = [{"source": a, "target": b} for a, b in zip(ENGLISH, GERMAN, strict=True)]
    report = inspect_text("pairs", json.dumps({"version": 1, "data": rows}))
    assert (report.accounting.total, report.accounting.kept) == (30, 30)
