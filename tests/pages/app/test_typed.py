"""Texts that people type: a long one is kept and answered, and none of them makes markup."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from pages.app.typed import ALPHABET, escape
from tests.pages.looking import said

FIELDS = [
    ("learn/by_hand.py", {}, "hand-words"),
    ("look_inside/masks.py", {}, "masks-own-one-text"),
    ("look_inside/masks.py", {"mask": "cross"}, "masks-own-target"),
    ("look_inside/positions.py", {"view": "shuffle"}, "positions-own-text"),
]


@pytest.mark.parametrize(("page", "query", "key"), FIELDS)
def test_a_long_paste_is_kept_and_answered(open_page, page, query, key):
    app = open_page(page, **query)
    app.text_input(key=key).set_value("word " * 500).run()
    assert "The text has 2,500 characters; the limit is" in said(app)
    assert app.text_input(key=key).value == "word " * 500
    assert app.text_input(key=key).proto.max_chars == 0  # a limit would refuse the paste
    app.text_input(key=key).set_value("word word").run()
    assert "2,500 characters" not in said(app)


LARGE = [
    ("try_it/page.py", {"view": "train"}, "text_area", "train-own-text"),
    ("learn/numbers/page.py", {}, "text_area", "words-text"),
    ("look_inside/masks.py", {}, "text_input", "masks-own-one-text"),
]


@pytest.mark.parametrize(("page", "query", "kind", "key"), LARGE)
def test_a_text_that_nothing_reads_is_not_kept_and_the_page_says_so(
    open_page, page, query, kind, key
):
    app = open_page(page, **query)
    getattr(app, kind)(key=key).set_value("word " * 60_000).run()
    assert "it has 300,000 characters" in said(app)
    assert getattr(app, kind)(key=key).value == ""
    assert len(repr(app.session_state)) < 100_000
    app.run()
    assert "300,000" not in said(app)


READ = re.compile(r"\\([!-/:-@\[-`{-~])")  # what CommonMark makes of a backslash and a mark


JOINER = "\u2060"


def read(text: str) -> str:
    """What CommonMark reads of a text as it is handed over."""
    return READ.sub(r"\1", escape(text))


def shown(text: str) -> str:
    """What is seen of it."""
    return read(text).replace(JOINER, "")


@given(st.text("".join(map(chr, range(32, 127)))))
def test_markdown_reads_back_what_was_typed(text):
    assert shown(text) == text.lstrip(" ")


@given(st.text(ALPHABET + "ab1 "))
def test_no_mark_stands_without_its_backslash(text):
    assert not set(READ.sub("", escape(text))) & set(ALPHABET)


LINKS = [  # where mdast-util-gfm-autolink-literal, which Streamlit uses, finds an address
    re.compile(r"(https?://|www(?=\.))([-.\w]+)([^ \t\r\n]*)", re.IGNORECASE),
    re.compile(r"([-.\w+]+)@([-\w]+(?:\.[-\w]+)+)"),
]
PIECES = ["http://", "https://", "HTTP://", "www.", "WWW.", "@", "a", ".", "-", "_", " ", ":", "/"]
ADDRESSES = ["http://a.example/x?y=(z)", "https://a", "www.a.example", "see a.b+c@d-e.example."]


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_no_bare_address_becomes_a_link(text):
    assert not any(link.search(read(text)) for link in LINKS)


def test_an_address_is_shown_as_it_is_and_a_problem_has_no_markup():
    for text in ADDRESSES:
        assert any(link.search(text) for link in LINKS)
        assert not any(link.search(read(text)) for link in LINKS)
        assert shown(text) == text
    for text, escaped in [
        ("*a* [b](c) $d$ :red[e]", r"\*a\* \[b\](c) \$d\$ \:red\[e\]"),
        ("1. one\n- two\n+ three\n===", "1\\. one\n\\- two\n\\+ three\n\\==="),
        ("    no code", "no code"),
        ("v1.2 is well-known (so far)!", "v1.2 is well-known (so far)!"),
    ]:
        assert escape(text) == escaped
    (problem,) = AppTest.from_function(a_problem_with_marks).run().error
    assert READ.sub(r"\1", problem.value) == "“**b** $c$ :red[a]” is not a word."
    assert r"\*\*b\*\*" in problem.value


def a_problem_with_marks() -> None:
    from pages.app import show

    show.problem("“**b** $c$ :red[a]” is not a word.")
