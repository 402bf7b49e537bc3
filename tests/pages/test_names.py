"""A run may be called anything: its name is shown as it was typed, on every page, and never read.

What Streamlit reads as Markdown is searched for the name as it stands; a mark before each sign that
means something keeps it from being one.
"""

import dataclasses
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Element, Node

from pages.app.address.parameters import Text
from pages.app.navigation.page_table import PAGES
from tests.pages import linked_views
from tests.pages.opening import opened_at
from tfm_core.runs.run import Run
from tfm_core.runs.store import RECORDED

NAME = "![i](http://x/y.png) <b> :red[x] $x$ [l](javascript:1) www.x.y a@x.y"
MARKS = ("http://x", "www.x", "a@x", "![i](", "<b> :", ":red[x]", " $x$ ", "[l](java")
MARKS_OF_HTML = ("<b> :",)  # the only one of them that HTML would read
PLAIN = {  # the parts of Streamlit's messages that it draws as they stand
    "selectbox": {"options", "raw_value"},
    "multiselect": {"options", "raw_values"},
    "text_input": {"default", "value", "placeholder"},
    "text_area": {"default", "value", "placeholder"},
    "code": {"code_text"},
    "bidi_component": {"json", "mixed", "json_data", "id", "js_content", "css_content"},
}
RUNS = (
    "recorded-korean",
    "recorded-many-heads",
    "recorded-digits",
    "recorded-spans",
    "recorded-grammar",
)
VIEWS: dict[str, tuple[dict[str, str], ...]] = {
    "parameters": ({"show": "run", "versus": "run:{id}"}, {"versus": "run:{id}"}),
    "positions": tuple({"view": view} for view in ("learned", "t5-bias", "race", "shuffle")),
    "attention": ({}, {"view": "compare", "versus": "1.1..recorded-one-head"}),
    "try": ({}, {"view": "blanks"}, {"view": "lens"}),
    "findings": ({"finding": "sinks"}, {"finding": "specialise"}),
}


@pytest.fixture
def badly_named(store):
    """The recorded runs as one's own, by the recorded one's id; each has the name."""
    runs = {}
    for folder in sorted(RECORDED.glob("recorded-*")):
        run = Run(shutil.copytree(folder, store.root / folder.name))
        run.write_meta(dataclasses.replace(run.meta, name=NAME, recorded=False))
        runs[folder.name] = run
    return runs


def elements(block: Any) -> Iterator[Element]:
    """Every element of a page, in the sidebar too."""
    for child in block.children.values():
        if isinstance(child, Element):
            yield child
        if isinstance(child, Node) and hasattr(child, "children"):
            if getattr(child, "proto", None) is not None:
                yield child  # a popover's or an expander's label
            yield from elements(child)


def texts(message: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every text of a message, and the name of the part in which it stands."""
    for part, value in message.ListFields():
        values = value if part.is_repeated else [value]
        for one in values:
            if _is_message(one):
                yield from texts(one, f"{path}.{part.name}")
            elif isinstance(one, str):
                yield part.name, one


def read_as_marks(app: AppTest) -> list[str]:
    """What would be read as Markdown of the name."""
    found = []
    for element in elements(app._tree):
        kind = getattr(element, "type", "")
        if not _is_message(element.proto):
            continue
        for part, text in texts(element.proto):
            marks = MARKS_OF_HTML if kind == "html" else MARKS
            if part not in PLAIN.get(kind, set()) and any(mark in text for mark in marks):
                found.append(f"{kind}.{part}: {text}")
    return found


def _is_message(value: Any) -> bool:
    return hasattr(value, "ListFields")


def test_what_would_be_read_is_found(store):
    script = "import streamlit as st\nst.caption('a $x$ b')\nst.button('[l](javascript:1)')"
    app = AppTest.from_string(script).run()
    assert [line.split(":")[0] for line in read_as_marks(app)] == ["caption.body", "button.label"]


@pytest.mark.core(4)
@pytest.mark.parametrize("page", PAGES.values(), ids=lambda page: page.name)
def test_no_page_reads_the_name_of_a_run(page, badly_named):
    for run_id in RUNS[::2] if page.name == "training-step" else RUNS:  # each takes a step
        for query in VIEWS.get(page.name, ({},)):
            said = {name: text.format(id=run_id) for name, text in query.items()}
            app = opened_at(page.file, run=run_id, **said)
            assert read_as_marks(app) == [], said


@pytest.mark.parametrize(
    "file", ["look_inside/attention/page.py", "learn/numbers/page.py", "look_inside/positions.py"]
)
def test_no_offer_of_a_run_reads_its_name(file, badly_named):
    app = opened_at(file, view="learned") if "positions" in file else opened_at(file)
    assert read_as_marks(app) == []


TYPED = {
    page.name: [
        parameter.query
        for parameter in linked_views.PARAMETERS[page.name].values()
        if isinstance(parameter, Text)
    ]
    for page in PAGES.values()
    if page.name in linked_views.PARAMETERS
}


@pytest.mark.parametrize("page", [name for name, queries in TYPED.items() if queries])
def test_no_page_reads_a_text_of_a_link(page, store):
    app = opened_at(PAGES[page].file, **dict.fromkeys(TYPED[page], NAME))
    assert read_as_marks(app) == []
