"""Text that stays text: what people type makes no markup, and reads as they typed it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from pages.ui.markdown import ALPHABET, escape

READ = re.compile(r"\\([!-/:-@\[-`{-~])")  # what CommonMark makes of a backslash and a mark


@given(st.text(st.characters(codec="ascii", exclude_categories=("Cc",))))
def test_markdown_reads_back_what_was_typed(text: str) -> None:
    assert READ.sub(r"\1", escape(text)) == text.lstrip(" ")


@given(st.text(ALPHABET + "ab1 "))
def test_no_mark_stands_without_its_backslash(text: str) -> None:
    assert not set(READ.sub("", escape(text))) & set(ALPHABET)


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("*a* [b](c) $d$ :red[e]", r"\*a\* \[b\](c) \$d\$ \:red\[e\]"),
        ("1. one\n- two\n+ three\n===", "1\\. one\n\\- two\n\\+ three\n\\==="),
        ("    no code", "no code"),
        ("v1.2 is well-known (so far)!", "v1.2 is well-known (so far)!"),
    ],
)
def test_what_begins_a_line_is_escaped_there_only(text: str, escaped: str) -> None:
    assert escape(text) == escaped


def a_problem_with_marks() -> None:
    from pages.ui import show

    show.problem("“**b** $c$ :red[a]” is not a word.")


def test_a_problem_has_no_markup() -> None:
    (shown,) = AppTest.from_function(a_problem_with_marks).run().error
    assert READ.sub(r"\1", shown.value) == "“**b** $c$ :red[a]” is not a word."
    assert r"\*\*b\*\*" in shown.value
