"""Events are read while they are written, and what cannot be read is left out."""

import json
import math

import numpy as np
import pytest

from tfm_core.runs.curves import Curves, EventReader, record_of


def line(**record) -> str:
    return json.dumps(record) + "\n"


def step(number, loss=1.0, **more) -> str:
    return line(event="step", step=number, loss=loss, **more)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "events.jsonl"


def append(path, text):
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def curves_of(path):
    curves = Curves()
    curves.extend(EventReader(path).read())
    return curves


TWO_IN_ONE = ", ".join([step(8).strip(), step(9)])


@pytest.mark.parametrize(
    "garbage",
    [
        "\n",
        "{torn\n",
        "[]\n",
        '{"step": 2}\n',
        '{"event": "", "step": 2}\n',
        "\x00\x01\n",
        "3\n",
        TWO_IN_ONE,
        "[" * 9000 + "\n",
    ],
)
def test_a_garbled_line_is_left_out(path, garbage):
    append(path, step(1) + garbage + step(3))
    assert [record["step"] for record in EventReader(path).read()] == [1, 3]


def test_a_file_that_became_shorter_is_read_anew(path):
    append(path, step(1) + step(2) + step(3))
    reader, curves = EventReader(path), Curves()
    curves.extend(reader.read())
    path.write_text(step(1, loss=7.0))
    curves.extend(reader.read())
    assert curves.steps["loss"].tolist() == [7.0]


def test_curves_are_float32_columns_with_nan_for_what_is_not_known(path):
    append(path, line(event="started", step=0, floor=None, n_parameters=5))
    append(path, step(1, 0.5, accuracy=0.25) + step(2, 0.25))
    append(path, line(event="measured", split="validation", step=2, loss=0.75, accuracy=0.5))
    append(path, line(event="measured", split="test", step=2, loss=0.5, sequence_accuracy=None))
    append(path, line(event="finished", step=2, seconds=3.5))

    curves = curves_of(path)

    assert curves.steps["loss"].dtype == np.float32
    assert curves.steps["loss"].tolist() == [0.5, 0.25]
    assert curves.steps["accuracy"][0] == 0.25
    assert math.isnan(curves.steps["accuracy"][1])
    assert curves.validation["loss"].tolist() == [0.75]
    assert curves.test.last("loss") == 0.5
    assert curves.test.last("sequence_accuracy") is None
    assert curves.started["n_parameters"] == 5
    assert curves.finished["seconds"] == 3.5
    with pytest.raises(KeyError):
        curves.steps["colour"]


def test_going_on_from_a_checkpoint_forgets_what_came_after_it(path):
    append(path, step(1) + step(2) + step(3))
    append(path, line(event="measured", split="validation", step=3, loss=9.0))
    append(path, line(event="finished", step=3, seconds=1.0))
    append(path, line(event="resumed", step=2) + step(3, loss=5.0) + step(4, loss=6.0))

    curves = curves_of(path)

    assert curves.steps["step"].tolist() == [1, 2, 3, 4]
    assert curves.steps["loss"].tolist() == [1, 1, 5, 6]
    assert len(curves.validation) == 0
    assert curves.finished == {}
    assert curves.resumed == (2,)


def test_reading_bit_by_bit_gives_the_same_curves(path):
    text = step(1) + step(2) + line(event="resumed", step=1) + step(2, loss=4.0) + step(2, loss=8.0)
    reader, slow = EventReader(path), Curves()
    for character in text:
        append(path, character)
        slow.extend(reader.read())
    assert slow.steps["loss"].tolist() == curves_of(path).steps["loss"].tolist() == [1.0, 8.0]


@pytest.mark.parametrize("number", ["three", None, True, float("nan")])
def test_a_row_without_a_step_is_left_out(number):
    curves = Curves()
    curves.extend([{"event": "step", "step": number, "loss": 1.0}])
    assert len(curves.steps) == 0


def test_the_gradient_of_each_layer_is_read_and_forgotten_with_its_step():
    curves = Curves()
    curves.extend(
        [
            {"event": "step", "step": 1, "loss": 1.0, "gradients": {"output": 0.5}},
            {"event": "step", "step": 2, "loss": 1.0},
            {"event": "step", "step": 3, "loss": 1.0, "gradients": {"output": None}},
        ]
    )
    assert [(one.step, one.norms) for one in curves.gradients] == [
        (1, {"output": 0.5}),
        (3, {"output": math.inf}),
    ]
    curves.extend([{"event": "resumed", "step": 2}])
    assert [one.step for one in curves.gradients] == [1]
    curves.extend([{"event": "resumed", "step": -1}])
    assert curves.gradients == ()


@pytest.mark.parametrize("garbled", [[1, 2], {"output": -1.0}, {"output": "long"}, {"": 1.0}])
def test_gradients_that_cannot_be_are_left_out(garbled):
    line = json.dumps({"event": "step", "step": 1, "gradients": garbled}).encode()
    assert record_of(line) == {"event": "step", "step": 1}
