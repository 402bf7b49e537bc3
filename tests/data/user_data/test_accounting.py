"""Every line of a file is in a row, is listed with a reason, or is counted: nothing is lost."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from itertools import cycle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.user_data.files import packed, sentences
from tfm_core.data.user_data.records import read_records
from tfm_core.data.user_data.text_files import Upload
from tfm_core.data.user_data.texts import inspect_text
from tfm_core.data.user_data.uploads import BadData, Report

pytestmark = pytest.mark.quick

N = 60
ROWS = [[f"w{n} one two", f"z{n} three"] for n in range(N)]


def tabs(rows: list[list[str]]) -> str:
    return "".join("\t".join(row) + "\n" for row in rows)


def delimited(delimiter: str) -> Callable[[list[list[str]]], str]:
    def write(rows: list[list[str]]) -> str:
        file = io.StringIO()
        csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows(rows)
        return file.getvalue()

    return write


def json_lines(rows: list[list[str]]) -> str:
    return "".join(json.dumps(dict(enumerate(row))) + "\n" for row in rows)


def json_list(rows: list[list[str]]) -> str:
    return json.dumps([dict(enumerate(row)) for row in rows])


def json_list_indented(rows: list[list[str]]) -> str:
    return json.dumps(rows, indent=2)


def chats(rows: list[list[str]]) -> str:
    every = [
        [{"role": "user", "content": row[0]}]
        + [{"role": "assistant", "content": one} for one in row[1:2]]
        for row in rows
    ]
    return "".join(json.dumps({"messages": messages}) + "\n" for messages in every)


def anki(rows: list[list[str]]) -> str:
    return "#separator:semicolon\n#html:false\n" + delimited(";")(rows)


def aligned(rows: list[list[str]]) -> tuple[tuple[str, bytes], ...]:
    columns = zip(*([*row, ""][:2] for row in rows), strict=True)
    texts = ["".join(" ".join(one.split("\n")) + "\n" for one in column) for column in columns]
    return ("train.en", texts[0].encode()), ("train.ko", texts[1].encode())


def zipped(rows: list[list[str]]) -> bytes:
    return packed(dict(aligned(rows)))


def in_korean(rows: list[list[str]]) -> bytes:
    return tabs([*rows, ["한국어", "한국말"]]).encode("cp949", "xmlcharrefreplace")


FORMATS: dict[str, Callable[[list[list[str]]], Upload]] = {
    "tsv": tabs,
    "csv": delimited(","),
    "semicolons": delimited(";"),
    "json lines": json_lines,
    "json list": json_list,
    "indented json list": json_list_indented,
    "chats": chats,
    "Anki": anki,
    "two files": aligned,
    "zip": zipped,
    "cp949": in_korean,
}
CASES: dict[str, list[list[str]]] = {
    "leading quote": [['"Stop, she said', "z"], ['he said "go', "z"]],
    "balanced quotes": [['"Stop," she said', "z"], ['"all of it"', '"z"']],
    "doubled quotes": [['""', "z"], ['a "" b', 'z "']],
    "empty texts": [["", "z"], ["a", "  "]],
    "one column": [["alone"], ["alone too"]],
    "three columns": [["a", "b", "c"], ["a", "b", ""]],
    "blank": [[""], ["   "]],
    "long": [["a" * 5_000, "z"], ["b " * 300, "z"]],
    "repeated": [ROWS[3], ROWS[4], ROWS[4]],
    "other delimiters": [["a, b; c | d", "e, f; g | h"], ["a,", ";"]],
    "signs alone": [["…", "z"], ["!", "?"]],
    "unusual spaces": [["a\u2028b\x0bc\x85d", "z"], ["\u200b", "z"]],
}


def assert_all_is_accounted_for(report: Report, total: int) -> None:
    found = report.accounting
    assert report.refusal is None
    assert found.total == total
    parts = (found.kept, found.left_out, found.repeated, found.blank, found.header)
    assert sum(parts) == total
    assert found.left_out == sum(problem.n_lines for problem in report.skipped)
    assert sum(report.counts.values()) == len(
        [row for part in report.rows.values() for row in part]
    )
    lines = [row.line for part in report.rows.values() for row in part]
    lines += [problem.line or 0 for problem in report.skipped]
    assert len(lines) == len(set(lines)), "no line is in two places"


def n_in(form: str, raw: Any, n_rows: int) -> int:
    if form == "cp949":
        return raw.count(b"\n")
    return raw.count("\n") if form in {"tsv", "csv", "semicolons", "Anki"} else n_rows


@pytest.mark.parametrize("case", CASES)
def test_every_line_is_kept_or_listed_in_every_format(case: str) -> None:
    for form, at in zip(FORMATS, cycle((0, 7, N)), strict=False):
        rows = ROWS[:at] + CASES[case] + ROWS[at:]
        raw = FORMATS[form](rows)
        report = inspect_text("pairs", raw)
        assert_all_is_accounted_for(report, n_in(form, raw, len(rows)))
        kept = {row.content for part in report.rows.values() for row in part}
        assert {row[0] for row in ROWS} <= kept


@pytest.mark.parametrize(
    "line",
    [
        '"never closed{sign}z',
        'w{sign}"never closed',
        '"closed, but" not at the end{sign}z',
        '"two" and "three{sign}z',
        '"""{sign}z',
        '"',
    ],
)
def test_a_quote_that_is_not_closed_costs_its_own_line_at_most(line: str) -> None:
    for sign, quote, at in ((",", "", 1), (";", '"', 30), (",", '"', N), (";", "", 1)):
        good = [sign.join(f"{quote}{cell}{quote}" for cell in row) for row in ROWS]
        raw = "\n".join([*good[:at], line.format(sign=sign), *good[at:]])
        report = inspect_text("pairs", raw)
        assert_all_is_accounted_for(report, N + 1)
        kept = {row.content for part in report.rows.values() for row in part}
        assert {row[0] for row in ROWS} <= kept


def test_a_quoted_text_may_span_lines_and_accounts_for_all_of_them() -> None:
    poem = "Roses are red\n\nviolets are blue, they say\nsugar is sweet"
    rows = [*ROWS[:5], [poem, "a poem"], *ROWS[5:], ["\n" * 200 + "far", ""]]
    raw = delimited(",")(rows)
    report = inspect_text("pairs", raw)
    assert_all_is_accounted_for(report, n_in("csv", raw, 0))
    assert report.accounting.kept == N + 4
    assert [(one.line, one.n_lines) for one in report.skipped] == [(N + 5, 201)]
    texts = {row.label: row.content for part in report.rows.values() for row in part}
    assert texts["a poem"] == " ".join(poem.split())


def test_tab_separated_text_is_literal() -> None:
    odd = ['"Stop', '"Go," she said.', 'He said: ""', '"', '""', "'", 'a "b" c']
    rows = [*ROWS, *([one, f"{one} too"] for one in odd)]
    report = inspect_text("pairs", tabs(rows))
    found = {(row.content, row.label) for part in report.rows.values() for row in part}
    assert found == {(first, second) for first, second in rows}
    assert_all_is_accounted_for(report, len(rows))


def test_lines_of_a_test_file_are_accounted_for_apart() -> None:
    test = "source\ttarget\nw1 one two\tz1 three\n\nonly one\na\tb\na\tb\n"
    report = inspect_text("pairs", tabs(ROWS), test=test)
    assert_all_is_accounted_for(inspect_text("pairs", tabs(ROWS)), report.accounting.total)
    found = report.test_accounting
    assert (found.total, found.kept, found.left_out) == (6, 2, 1)
    assert (found.repeated, found.blank, found.header) == (1, 1, 1)


def test_labels_without_an_example_in_training_are_listed() -> None:
    rows = [[f"text {n}", "yes" if n % 2 else "no"] for n in range(N)]
    rows += [["word " * 200 + str(n), "rare"] for n in range(3)] + [["short", "rare"]]
    for seed in range(4):
        report = inspect_text("labels", tabs(rows), seed=seed)
        assert_all_is_accounted_for(report, N + 4)


def test_a_line_of_few_pairs_is_skipped_once_though_they_are_in_every_part() -> None:
    report = inspect_text("pairs", f"a b\tc\nd e\tf\n{'x ' * 200}\tg\n")
    found = report.accounting
    assert (found.total, found.kept, found.left_out) == (3, 2, 1)
    assert [problem.line for problem in report.skipped] == [3]


def test_lines_of_a_text_are_accounted_for() -> None:
    report = inspect_text("text", "\n\nonce upon a time there was\n\na text\n\n" * 20)
    found = report.accounting
    assert found.total == 120
    assert found.kept + found.blank == 120
    assert found.blank == 3


def test_much_that_is_left_out_is_told_from_little() -> None:
    few, many = tabs([*ROWS, ["alone"]]), tabs([*ROWS, *([f"alone {n}"] for n in range(9))])
    assert not any("skipped" in one for one in sentences(inspect_text("pairs", few)))
    assert "13% of the file was skipped" in sentences(inspect_text("pairs", many), "warning")[0]
    found = inspect_text("pairs", few, test=many)
    assert "of the file was skipped" in sentences(found, "warning")[0]


CELL = st.text(alphabet="ab \",;|\n'é", max_size=12)


@pytest.mark.parametrize("form", FORMATS)
@given(rows=st.lists(st.lists(CELL, min_size=1, max_size=4), max_size=9))
def test_every_line_of_any_upload_is_kept_or_listed(form: str, rows: list[list[str]]) -> None:
    raw = FORMATS[form](ROWS[:20] + rows)
    assert_all_is_accounted_for(inspect_text("pairs", raw), n_in(form, raw, 20 + len(rows)))


@given(st.lists(st.lists(CELL, min_size=1, max_size=4), min_size=1, max_size=12))
def test_no_line_of_any_text_is_lost(rows: list[list[str]]) -> None:
    for write in (tabs, delimited(","), delimited(";")):
        raw = write(rows)
        for text in (raw, raw.replace('""', '"'), raw[: len(raw) // 2]):
            try:
                found = read_records(text)
            except BadData:
                continue
            read = (*found.records, *found.problems)
            lines = [(one.line or 0) + n for one in read for n in range(one.n_lines)]
            assert len(lines) == len(set(lines))
            assert found.accounting.total == len(text.removesuffix("\n").split("\n"))
            assert len(lines) + found.accounting.blank == found.accounting.total


@given(st.lists(st.tuples(*[CELL.map(lambda cell: f"x{cell}".replace("\n", " "))] * 3), min_size=4))
def test_what_a_library_writes_is_read_as_it_was(rows: list[tuple[str, str, str]]) -> None:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    found = read_records(file.getvalue())
    assert (found.problems, found.notes) == ((), ())
    assert [record.content for record in found.records] == rows
