"""Articles: what their words name is there, and an address leads to each figure."""

import re

import pytest

from pages.app import article, show
from pages.app.navigation import page_table
from pages.app.navigation.page_table import PAGES
from pages.i18n import languages, speaking
from tests.pages.linked_views import ARTICLES
from tests.pages.looking import said
from tests.pages.opening import address_of, opened_at

MOST = 1300
"""Words of an article: one reads it to the end."""


def pieces(name: str) -> list[article.Passage]:
    return [piece for part in article.parts(show.words(name).more) for piece in part]


@pytest.mark.parametrize("name", ARTICLES)
def test_every_figure_and_question_stands_once_in_each_language(name):
    page = ARTICLES[name]
    figures, questions = page.FIGURES, getattr(page, "QUESTIONS", ())
    assert len(questions) + len(getattr(page, "GUESSES", ())) >= PAGES[name].questions
    drawn: set[tuple[tuple[str, str], ...]] = set()
    for code in languages():
        with speaking(code):
            found = pieces(name)
            text = " ".join(piece.text for piece in found if piece.kind == "text")
            assert not re.search("^::", text, re.MULTILINE)
            assert len(text.split()) <= MOST
        named = [
            (one.kind, one.text) for one in found if one.kind not in ("text", "heading", "more")
        ]
        drawn.add(tuple(named))
        assert {one.name for one in found if one.kind == "figure"} == {*figures}
        assert sorted(one.name for one in found if one.kind == "question") == sorted(questions)
        kinds = "".join(one.kind[0] for one in found if one.kind in ("more", "end"))
        assert re.fullmatch("(me)*", kinds), "each line that opens ends"
    assert len(drawn) == 1


def test_an_article_is_read_in_pieces():
    text = "One.\n\n::figure a of=7 by=x\n## Two\n::more Three four\n::question b\n::end\nFive."
    first, second = article.parts(text)
    assert [(one.kind, one.name) for one in first] == [("text", "One."), ("figure", "a")]
    assert first[1].parameters == {"of": "7", "by": "x"}
    assert [one.kind for one in second] == ["heading", "more", "question", "end", "text"]
    assert second[1].text == "Three four"


def test_what_stands_behind_a_line_is_drawn_once_it_is_open(recorded):
    file = PAGES["numbers"].file
    closed, opened = opened_at(file), opened_at(file, figure="numpy")
    assert len(opened.table) == len(closed.table) + 1
    unknown = opened_at(file, figure="no-such-figure")
    assert [one for one in unknown.warning if "figure is “no-such-figure”" in one.value]


@pytest.mark.parametrize(
    ("old", "query", "figure"),
    [
        ("words", {}, None),
        ("words", {"view": "batch"}, "batch"),
        ("words", {"view": "moving", "run": "recorded-korean", "table": "tgt_embedding"}, "moving"),
        ("tensors", {"op": "matmul", "matmul-shape": "4, 3"}, "operation"),
        ("speed", {"show": "gpt2-small", "compare": "batch"}, "speed"),
    ],
)
def test_an_older_address_leads_to_the_same_on_the_page_of_today(recorded, old, query, figure):
    page, there = page_table.current_address(old, query)
    app = opened_at(PAGES[page].file, **there)
    assert app.title[0].value == show.words(page).title
    kept = {name: text for name, text in query.items() if name != "view"}
    if figure is not None:
        kept["figure"] = figure
    shown = address_of(app)
    assert shown == shown | kept
    assert "view" not in shown
    assert not [one for one in app.warning if one.icon == ":material/link_off:"], said(app)
