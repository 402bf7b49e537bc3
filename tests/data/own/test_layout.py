"""Which columns hold what, and whether the first row is a header, is guessed for usual files."""

from __future__ import annotations

import json

import pytest

from tfm_core.data.own.layout import ColumnLayout, guess
from tfm_core.data.own.records import read_records
from tfm_core.data.own.report import TextChoices
from tfm_core.data.own.texts import inspect_text, prepare

pytestmark = pytest.mark.quick

ENGLISH = [f"They saw {n} birds near the sea." for n in range(30)]
KOREAN = [f"그들은 바다 근처에서 새 {n}마리를 보았다." for n in range(30)]
GERMAN = [f"Sie sahen {n} Vögel am Meer." for n in range(30)]
LABELS = ["good" if n % 3 else "bad" for n in range(30)]
WORDS = ["cat", "dog", "tree", "house", "bird", "sea", "sky", "sun", "moon", "star"]
WORTE = ["Katze", "Hund", "Baum", "Haus", "Vogel", "Meer", "Himmel", "Sonne", "Mond", "Stern"]


def lines(*columns: list[str], head: str = "", sign: str = "\t") -> str:
    rows = [sign.join(row) for row in zip(*columns, strict=True)]
    return "\n".join([head, *rows] if head else rows)


def numbers(n: int = 30) -> list[str]:
    return [str(9_000 + 7 * at) for at in range(n)]


def ones(text: str) -> list[str]:
    return [text] * 30


ANKI = [f"CC-BY 2.0 (France) Attribution: example.org #{n} (a) & #{n + 1} (b)" for n in range(30)]
NUMBERED = list(zip(range(30), ENGLISH, KOREAN, strict=True))
BINARY = [str(n % 2) for n in range(30)]
PAIR_FILES = {
    "plain": (lines(ENGLISH, GERMAN), ColumnLayout(0, 1)),
    "Anki": (lines(ENGLISH, KOREAN, ANKI), ColumnLayout(0, 1)),
    "Tatoeba": (
        lines(numbers(), ones("eng"), ENGLISH, numbers(), ones("kor"), KOREAN),
        ColumnLayout(2, 5),
    ),
    "english,german": (
        lines(ENGLISH, GERMAN, head="english;german", sign=";"),
        ColumnLayout(0, 1, True),
    ),
    "Excel": (
        "sep=;\n" + lines(ENGLISH, GERMAN, head="english;german", sign=";"),
        ColumnLayout(0, 1, True),
    ),
    "Korean names": (lines(ENGLISH, KOREAN, head="원문\t번역문"), ColumnLayout(0, 1, True)),
    "unknown names": (lines(ENGLISH, KOREAN, head="Spalte A\tSpalte B"), ColumnLayout(0, 1, True)),
    "target first": (lines(GERMAN, ENGLISH, head="target\tsource"), ColumnLayout(1, 0, True)),
    "id between": (
        lines(ENGLISH, numbers(), GERMAN, head="en\tid\tde"),
        ColumnLayout(0, 2, True),
    ),
    "pandas index": (lines(numbers(), ENGLISH, GERMAN, head="\ten\tde"), ColumnLayout(1, 2, True)),
    "pandas index alone": (
        lines(numbers(), ENGLISH, GERMAN, head="\t0\t1"),
        ColumnLayout(1, 2, True),
    ),
    "short sentence first": ("Hi.\tHallo.\n" + lines(ENGLISH, GERMAN), ColumnLayout(0, 1)),
    "short words first": (
        "Tom\tTom\nGo on\tMach weiter\n" + lines(ENGLISH, GERMAN),
        ColumnLayout(0, 1),
    ),
    "same first row": ("OK\tOK\n" + lines(ENGLISH, KOREAN), ColumnLayout(0, 1)),
    "a dictionary": (lines(WORDS, WORTE), ColumnLayout(0, 1)),
    "languages": ("english\tenglisch\ngerman\tdeutsch\n" + lines(WORDS, WORTE), ColumnLayout(0, 1)),
    "a named dictionary": (lines(WORDS, WORTE, head="en\tde"), ColumnLayout(0, 1, True)),
    "arithmetic": (lines([f"{n} + {n}" for n in range(30)], numbers()), ColumnLayout(0, 1)),
    "spelled numbers": (lines(WORDS, [str(n) for n in range(10)]), ColumnLayout(0, 1)),
    "jsonl": (
        "\n".join(json.dumps({"id": n, "text": a, "ko": b}) for n, a, b in NUMBERED),
        ColumnLayout(1, 2),
    ),
    "Hugging Face": (
        json.dumps([{"id": str(n), "translation": {"en": a, "ko": b}} for n, a, b in NUMBERED]),
        ColumnLayout(1, 2),
    ),
}  # fmt: skip
LABEL_FILES = {
    "plain": (lines(ENGLISH, LABELS), ColumnLayout(0, 1)),
    "label first": (lines(LABELS, ENGLISH), ColumnLayout(1, 0)),
    "NSMC": (
        lines(numbers(), KOREAN, BINARY, head="id\tdocument\tlabel"),
        ColumnLayout(1, 2, True),
    ),
    "NSMC without names": (lines(numbers(), KOREAN, BINARY), ColumnLayout(1, 2)),
    ",text,label": (
        lines([str(n) for n in range(30)], ENGLISH, LABELS, head=",text,label", sign=","),
        ColumnLayout(1, 2, True),
    ),
    "review,sentiment": (
        lines(ENGLISH, LABELS, head="review,sentiment", sign=","),
        ColumnLayout(0, 1, True),
    ),
    "unknown names": (lines(ENGLISH, LABELS, head="ulasan\tperasaan"), ColumnLayout(0, 1, True)),
    "document, label": (lines(ENGLISH, LABELS, head="document\tlabel"), ColumnLayout(0, 1, True)),
    "label, text, split": (
        lines(LABELS, ENGLISH, ones("train"), head="sentiment\tsentence\tsplit"),
        ColumnLayout(1, 0, True),
    ),
    "a rare label first": ("perhaps it was\tmaybe\n" + lines(ENGLISH, LABELS), ColumnLayout(0, 1)),
    "a short text first": ("meh\tbad\n" + lines(ENGLISH, LABELS), ColumnLayout(0, 1)),
    "income": (
        lines(ENGLISH, ["<=50K" if n % 2 else ">50K" for n in range(30)]),
        ColumnLayout(0, 1),
    ),
    "json": (
        json.dumps([{"label": float(n % 2), "text": a} for n, a in enumerate(ENGLISH)], indent=1),
        ColumnLayout(1, 0),
    ),
}


def test_the_columns_and_the_header_of_pairs_are_guessed() -> None:
    for name in PAIR_FILES:
        raw, expected = PAIR_FILES[name]
        assert guess("pairs", read_records(raw)) == expected


def test_the_columns_and_the_header_of_labels_are_guessed() -> None:
    for name in LABEL_FILES:
        raw, expected = LABEL_FILES[name]
        assert guess("labels", read_records(raw)) == expected
        report = inspect_text("labels", raw)
        assert report.refusal is None
        assert report.accounting.header == expected.has_header
        assert len(report.balance) == 2 + (name == "a rare label first")
        assert name != "income" or set(report.balance) == {"<=50K", ">50K"}


def test_labels_of_a_sorted_file_are_found() -> None:
    texts = [f"number {n} is read" for n in range(9_000)]
    raw = lines(texts, sorted(str(n % 2) for n in range(9_000)), ["x"] * 9_000)
    assert guess("labels", read_records(raw)) == ColumnLayout(0, 1)


def test_a_header_switched_on_or_off_is_followed_by_the_test_file() -> None:
    raw, test = PAIR_FILES["english,german"][0], "english;german\na b c;d e f\n"
    off = ColumnLayout(0, 1)
    assert inspect_text("pairs", raw, test=test).counts["test"] == 1
    assert inspect_text("pairs", raw, test=test, layout=off).counts["test"] == 2
    assert inspect_text("pairs", raw, layout=off).accounting.kept == 31


def test_a_test_file_with_other_columns_is_read_by_its_own_names() -> None:
    raw = LABEL_FILES["NSMC"][0]
    report = inspect_text("labels", raw, test="label\ttext\n1\t또 다른 문장\n0\t마지막 문장\n")
    assert [row.second for row in report.rows["test"]] == ["1", "0"]
    raw = LABEL_FILES["json"][0]
    report = inspect_text("labels", raw, test=json.dumps([{"text": "one more", "label": 1}]))
    assert [(row.first, row.second) for row in report.rows["test"]] == [("one more", "1")]


def test_whole_numbers_are_one_label_however_they_are_written() -> None:
    rows = [{"text": one, "label": [1, 1.0, "1.0", 0, 0.0][n % 5]} for n, one in enumerate(ENGLISH)]
    assert set(inspect_text("labels", json.dumps(rows)).balance) == {"1", "0"}
    assert set(inspect_text("labels", lines(ENGLISH, ["1.0", "0.5", "2"] * 10)).balance) == {
        "1", "0.5", "2",
    }  # fmt: skip


def test_labels_that_differ_in_capitals_are_one_unless_asked_otherwise() -> None:
    labels = ["Positive", "positive", " positive ", "negative", "positive"] * 6
    raw = lines(ENGLISH, labels)
    report = inspect_text("labels", raw, test="one more\tPOSITIVE\n")
    assert report.spellings == (("positive", "Positive", "POSITIVE"),)
    assert report.balance == {"positive": 25, "negative": 6}
    assert prepare(report).details["read"]["merged"] == [["positive", "Positive", "POSITIVE"]]
    apart = inspect_text("labels", raw, choices=TextChoices(merges_labels=False))
    assert apart.balance == {"positive": 18, "Positive": 6, "negative": 6}
    assert "read" not in prepare(apart).details


def test_what_was_chosen_is_kept_with_the_set() -> None:
    details = prepare(inspect_text("labels", LABEL_FILES["NSMC"][0])).details
    assert details["read"] == {"columns": [1, 2], "header": True, "names": ["document", "label"]}
    assert "read" not in prepare(inspect_text("pairs", PAIR_FILES["plain"][0])).details


def test_json_that_holds_no_rows_is_refused_with_its_reason() -> None:
    for raw, sentence in [
        ('[{"a": "b", "c": "d"},\n {"a": "b", "c": "d"}\n {"a": "b"}]', "line 3"),
        ('{"a": [["b", "c"]], "d": [["e", "f"]]}', "several lists: a, d"),
        ('{"text": "alone"}\n' * 20, "Line 1: expected 2 columns, got 1"),
        (",,\n" * 20, "No line has two texts"),
        ('["\\ud800", "b"]\n["\\u0000", "b"]', "Different sources: 0"),
    ]:
        assert sentence in str(inspect_text("pairs", raw).refusal)


def test_records_inside_an_object_are_rows() -> None:
    rows = [{"source": a, "target": b} for a, b in zip(ENGLISH, GERMAN, strict=True)]
    report = inspect_text("pairs", json.dumps({"version": 1, "data": rows}))
    assert (report.accounting.total, report.accounting.kept) == (30, 30)
