"""Tensors by sight, through the frame: every operation, every famous error, bad input."""

import json

import pytest

from tests.pages.looking import said
from tests.pages.opening import FRAME
from tfm_core.inspect.tensors.errors import UNKNOWN
from tfm_core.inspect.tensors.mistakes import MISTAKES
from tfm_core.inspect.tensors.operations import OPERATIONS

ROOT = FRAME.parents[1]
PAGE = "tensors/page.py"


def boards(app):
    found = {}
    for part in app.get("bidi_component"):
        if part.proto.component_name == "number_sheet":
            for line in json.loads(part.proto.json)["lines"]:
                found |= {board["title"]: board for board in line["boards"]}
    return found


def test_every_operation_is_drawn(open_page):
    app = open_page(PAGE)
    for name, operation in OPERATIONS.items():
        app.selectbox(key="op").set_value(name).run()
        assert not app.exception, name
        assert not app.error, name
        assert operation.help in said(app)
        assert "y = " in app.code[0].value
        assert "y" in boards(app)


def test_every_famous_error_is_one_press(open_page):
    app = open_page(PAGE)
    for name in MISTAKES:
        app.button(key=f"mistake-all-{name}").click().run()
        assert not app.exception, name
        assert app.error[0].value not in ("", UNKNOWN), name
        assert any("Error: " in block.value for block in app.code), name


def test_an_operation_that_works_takes_the_error_of_another_away(open_page):
    app = open_page(PAGE)
    app.button(key="mistake-all-view-transposed").click().run()
    assert "is not contiguous" in app.error[0].value
    app.selectbox(key="op").set_value("reshape").run()
    assert not app.error
    assert "shape (2, 6)" in boards(app)["y"]["facts"]


def test_a_link_opens_an_operation_with_its_settings(open_page):
    app = open_page(PAGE, **{"op": "view", "view-shape": "3, 4", "view-sizes": "2, -1"})
    assert "shape (2, 6)" in boards(app)["y"]["facts"]
    assert "shares memory with x" in boards(app)["y"]["facts"]


@pytest.mark.parametrize(
    ("field", "typed", "sentence"),
    [
        ("view-shape", "9, 9", "81 elements are too many"),
        ("view-shape", "two", "is not a whole number"),
        ("view-sizes", "a, b", "is not a whole number"),
        ("view-sizes", "999", "too large"),
    ],
)
def test_bad_input_gets_its_sentence_and_stays(open_page, field, typed, sentence):
    app = open_page(PAGE)
    app.text_input(key=field).set_value(typed).run()
    assert not app.exception
    assert sentence in app.error[0].value
    assert app.text_input(key=field).value == typed


def test_own_numbers_are_followed_with_their_places(open_page):
    app = open_page(PAGE, op="transpose")
    app.button_group(key="transpose-content").set_value("own").run()
    app.text_input(key="transpose-numbers").set_value("5 5 7, 0.5, -1, 2").run()
    assert not app.error
    cells = boards(app)["y"]["panels"][0]["cells"]
    assert [[cell[0] for cell in row] for row in cells] == [
        ["5.00", "0.50"], ["5.00", "−1.00"], ["7.00", "2.00"]
    ]  # fmt: skip
    assert cells[0][1][3] == "#3"
    app.text_input(key="transpose-numbers").set_value("5, 5").run()
    assert "needs 6 numbers, not 2" in app.error[0].value


def test_einsum_says_what_is_summed_and_shows_loops(open_page):
    app = open_page(PAGE, op="einsum")
    assert "Summed over: **d**" in said(app)
    assert "for d in range(3):" in app.code[1].value
    assert "largest difference is **0**" in said(app)


def test_an_element_says_what_it_is_made_of(open_page):
    for op, words in (
        ("mean", "y[0] = (2 + 7 + 1) / 3 = 3.33333"),
        ("argmax", "y[0] = 1: the largest of 2, 7, 1 is at 1"),
        ("broadcast", "y[0][0] = 0 + 0 = 0"),
        ("mm", "y[0][0] = "),
    ):
        app = open_page(PAGE, op=op)
        arithmetic = [
            text
            for part in app.get("bidi_component")
            if part.proto.component_name == "number_sheet"
            for line in json.loads(part.proto.json)["lines"]
            for text in line["arithmetic"]
        ]
        assert any(words in line for line in arithmetic), op


def test_code_in_an_equation_is_never_run(open_page):
    app = open_page(PAGE, op="einsum")
    app.text_input(key="einsum-equation").set_value("__import__('os')->a").run()
    assert "is not an equation" in app.error[0].value


def test_softmax_shows_its_sums(open_page):
    app = open_page(PAGE, op="softmax")
    assert "1.0000 · 1.0000 · 1.0000" in said(app)


def test_an_empty_result_is_drawn(open_page):
    app = open_page(PAGE, **{"op": "arange", "arange-end": "0"})
    assert not app.exception
    assert "shape (0,)" in boards(app)["y"]["facts"]


def test_the_link_to_the_walk_opens_its_example_at_that_step(open_page):
    app = open_page("walk/page.py", step=OPERATIONS["softmax"].step, source="book")
    assert not app.exception
    assert app.header[0].value == "10 · Softmax"
    assert "One pair's numbers" in said(app)
    assert "source" not in app.query_params
