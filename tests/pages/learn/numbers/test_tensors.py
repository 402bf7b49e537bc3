"""The figures of tensors, through the frame: every operation, every famous error, bad input."""

import json

import pytest

from tests.pages.looking import said, sent
from tfm_core.inspect.tensors.operations import OPERATIONS
from tfm_core.inspect.tensors.shapes import MISTAKES, UNKNOWN

PAGE = "learn/numbers/page.py"


def boards(app):
    lines = [line for sheet in sent(app, "number_sheet") for line in sheet["lines"]]
    return {board["title"]: board for line in lines for board in line["boards"]}


def test_operations_are_drawn_with_errors_own_numbers_and_equations(open_page):
    app = open_page(PAGE)
    for name, operation in OPERATIONS.items():
        app.selectbox(key="tensors-op").set_value(name).run()
        assert not app.error, name
        assert operation.help in said(app)
        assert any("y = " in block.value for block in app.code)
        assert "y" in boards(app)
        keys = {
            widget.key
            for kind in ("text_input", "selectbox", "button_group")
            for widget in app.get(kind)
        }
        assert {f"{name}-{part.name}".lower() for part in operation.parameters} <= keys
    app = open_page(PAGE, figure="errors")
    for name in MISTAKES:
        app.button(key=f"mistake-all-{name}").click().run()
        assert app.error[0].value not in ("", UNKNOWN), name
        assert any("Error: " in block.value for block in app.code), name
    app = open_page(PAGE, figure="errors")
    app.button(key="mistake-all-view-transposed").click().run()
    assert "is not contiguous" in app.error[0].value
    app.selectbox(key="tensors-op").set_value("reshape").run()
    assert not app.error
    assert "shape (2, 6)" in boards(app)["y"]["facts"]
    app = open_page(PAGE, **{"op": "transpose", "transpose-content": "own"})
    app.text_input(key="transpose-numbers").set_value("5, 5").run()
    assert "needs 6 numbers, not 2" in app.error[0].value
    app = open_page(PAGE, op="einsum")
    app.text_input(key="einsum-equation").set_value("__import__('os')->a").run()
    assert "is not an equation" in app.error[0].value
    app = open_page(PAGE, **{"op": "arange", "arange-end": "0"})
    assert "shape (0,)" in boards(app)["y"]["facts"]


ARITHMETIC = {
    "numel": "y = 2 × 3 = 6",
    "ToTensor": "y[0][0][0] = 255 / 255 = 1",
    "Sequential": "y[0][0] = (W₂ relu(W₁ [0, 1, 2] + b₁) + b₂)[0] = ",
}


def test_the_operations_of_the_notebooks_show_their_arithmetic_and_stop_as_they_do(open_page):
    app = open_page(PAGE)
    for name, line in ARITHMETIC.items():
        app.selectbox(key="tensors-op").set_value(name).run()
        assert line in json.dumps(sent(app, "number_sheet"), ensure_ascii=False)
    app.selectbox(key="tensors-op").set_value("assert").run()
    app.text_input(key="assert-sizes").set_value("3, 2").run()
    assert "**The program stops.** x is (2, 3), not (3, 2)" in app.error[0].value
    assert any("AssertionError: x is (2, 3)" in block.value for block in app.code)


@pytest.mark.parametrize(
    ("field", "typed", "sentence"),
    [
        ("view-shape", "9, 9", "81 elements are too many"),
        ("view-sizes", "999", "too large"),
    ],
)
def test_bad_input_gets_its_sentence_and_stays(open_page, field, typed, sentence):
    app = open_page(PAGE)
    app.text_input(key=field).set_value(typed).run()
    assert sentence in app.error[0].value
    assert app.text_input(key=field).value == typed
