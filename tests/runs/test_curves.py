"""Events are read while they are written; of long runs what is shown is thinned and still true."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from safetensors.numpy import load_file, save_file

from tests.runs.waiting import tiny
from tfm_core.runs import figures, thinned
from tfm_core.runs.curves import STEP_COLUMNS, Curves, EventReader, Series, record_of
from tfm_core.runs.figures import last_measured
from tfm_core.runs.thinned import FILE, MAX_STEPS, ThinnedReader, thin

EVENTS = "events.jsonl"


def line(**record) -> str:
    return json.dumps(record) + "\n"


def step(number, loss=1.0, **more) -> str:
    return line(event="step", step=number, loss=loss, **more)


@pytest.fixture
def path(tmp_path):
    return tmp_path / EVENTS


def append(path, text: str) -> None:
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


SERIES = tuple(thinned._SERIES)


def step_line(step: int) -> str:
    loss = float(np.sin(step * 1.7) + 1000 / (step + 100))
    return line(
        event="step",
        step=step,
        epoch=step / 63,
        loss=loss,
        accuracy=(step * 7 % 101) / 101,
        learning_rate=0.001,
        grad_norm=float(step % 997),
        seconds=step * 0.005,
    )


def measured(step: int, split: str = "validation") -> str:
    return line(event="measured", split=split, step=step, loss=1 / (step + 1), accuracy=0.5)


N_STEPS = 4 * MAX_STEPS + 1

BEGIN = line(event="started", step=0, total_steps=2 * N_STEPS, n_parameters=71, device="cpu")

STEPS = "".join(
    step_line(step) + (measured(step) if step % 7 == 0 else "") for step in range(1, N_STEPS + 1)
)

GRADIENTS = line(event="step", step=N_STEPS + 1, loss=2.5, gradients={"a": 0.5, "b": None})


@pytest.fixture
def run(store):
    made = store.create(tiny())
    (made.folder / EVENTS).write_text(BEGIN + STEPS + GRADIENTS)
    return made


def assert_equal(one: Curves, other: Curves) -> None:
    for name in SERIES:
        np.testing.assert_array_equal(getattr(one, name).rows, getattr(other, name).rows)
    for name in ("started", "compiled", "finished", "resumed", "gradients"):
        assert getattr(one, name) == getattr(other, name)


def assert_thinned(few: Curves, whole: Curves) -> None:
    """A part of the rows that has the first, the last and all extremes; the rest is equal."""
    rows = {row.tobytes() for row in whole.steps.rows}
    assert {row.tobytes() for row in few.steps.rows} <= rows
    assert len(few.steps) <= MAX_STEPS
    for name in SERIES[1:]:
        np.testing.assert_array_equal(getattr(few, name).rows, getattr(whole, name).rows)
    np.testing.assert_array_equal(few.steps.rows[[0, -1]], whole.steps.rows[[0, -1]])
    for column in STEP_COLUMNS:
        for extreme in (np.nanmin, np.nanmax):
            if not np.isnan(whole.steps[column]).all():
                assert extreme(few.steps[column]) == extreme(whole.steps[column])
    assert few.gradients == whole.gradients
    assert few.started == whole.started


floats = st.floats(-1e30, 1e30) | st.just(np.nan)


@given(
    arrays.arrays(np.float64, st.tuples(st.integers(1, 300), st.just(3)), elements=floats),
    st.lists(st.integers(1, 1000), min_size=300, max_size=300),
    st.integers(1, 40),
)
def test_the_first_the_last_the_lowest_and_the_highest_stay(values, gaps, most):
    rows = np.column_stack([np.cumsum(gaps[: len(values)]), values])
    series = Series(("step", "loss", "memory_bytes", "grad_norm"), rows.astype(np.float64))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thinned, "MAX_STEPS", most)
        patch.setattr(thinned, "_FIRST", 1)
        patch.setattr(thinned, "_INTERVALS", 7)
        patch.setattr(thinned, "_WIDE_INTERVALS", 3)
        few = thin(series)
    assert len(few) <= max(most, 7 + 1 + 1 + 2 * (2 * 4) + 2)
    assert set(map(tuple, np.nan_to_num(few.rows))) <= set(map(tuple, np.nan_to_num(rows)))
    assert (np.diff(few.rows[:, 0]) > 0).all()
    np.testing.assert_array_equal(few.rows[[0, -1]], rows[[0, -1]])
    for column in range(4):
        known = rows[:, column][~np.isnan(rows[:, column])]
        if len(known):
            assert np.nanmin(few.rows[:, column]) == known.min()
            assert np.nanmax(few.rows[:, column]) == known.max()


def test_a_short_run_is_whole_and_keeps_no_file(store):
    run = store.create(tiny())
    (run.folder / EVENTS).write_text(BEGIN + step_line(1) + measured(1) + step_line(2))
    assert_equal(run.thinned_curves(), run.curves())
    assert not (run.folder / FILE).exists()


def test_a_long_run_keeps_its_ends_extremes_and_validations(run):
    assert_thinned(run.thinned_curves(), run.curves())
    assert (run.folder / FILE).is_file()


def test_what_was_kept_is_read_and_what_came_since_is_added(run, monkeypatch):
    first = run.thinned_curves()
    append(run.folder / EVENTS, measured(N_STEPS + 2) + step_line(N_STEPS + 3))
    read = []
    known = thinned.EventReader.read
    monkeypatch.setattr(
        thinned.EventReader,
        "read",
        lambda self, most=-1: read.extend(found := known(self, most)) or found,
    )
    second = ThinnedReader(run.folder).read()
    assert [record["step"] for record in read] == [N_STEPS + 2, N_STEPS + 3]
    assert len(second.steps) == len(first.steps) + 1
    assert_thinned(second, run.curves())


def test_one_that_follows_sees_what_a_new_reader_sees(run):
    follower = ThinnedReader(run.folder)
    follower.read()
    for number in range(5):
        append(run.folder / EVENTS, step_line(N_STEPS + 2 + number))
        assert_equal(follower.read(), run.thinned_curves())


def test_a_run_that_was_resumed_from_an_earlier_step_is_read_again(run):
    follower = ThinnedReader(run.folder)
    follower.read()
    back = N_STEPS // 2
    append(
        run.folder / EVENTS,
        line(event="resumed", step=back) + step_line(back + 1) + measured(back + 1),
    )
    assert_thinned(run.thinned_curves(), run.curves())
    assert_equal(follower.read(), run.thinned_curves())
    assert run.thinned_curves().resumed == (back,)


def test_of_other_events_nothing_is_taken(run):
    run.thinned_curves()
    (run.folder / EVENTS).write_text(BEGIN + step_line(1) + step_line(2))
    assert_equal(run.thinned_curves(), run.curves())
    (run.folder / EVENTS).unlink()
    assert len(run.thinned_curves().steps) == 0


DAMAGES = {
    "empty": lambda path: path.write_bytes(b""),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "no tensors": lambda path: path.write_text("{}"),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a link": lambda path: (path.rename(path.with_name("x")), path.symlink_to("x")),
    "without facts": lambda path: save_file(load_file(path), path),
    "a column less": lambda path: _changed(path, lambda rows: rows[:, :-1]),
    "steps that fall": lambda path: _changed(path, lambda rows: rows[::-1]),
    "steps that are none": lambda path: _changed(path, lambda rows: rows * np.nan),
    "a step too high": lambda path: _changed(path, lambda rows: rows * 1e12),
    "float32": lambda path: _changed(path, lambda rows: rows.astype(np.float32)),
}


def _changed(path, change) -> None:
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        said = file.metadata()
    tensors = load_file(path)
    tensors["steps"] = np.ascontiguousarray(change(tensors["steps"]))
    save_file(tensors, path, said)


@pytest.mark.core(4)
@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_file_is_not_used(name, run):
    right = run.thinned_curves()
    DAMAGES[name](run.folder / FILE)
    assert_equal(run.thinned_curves(), right)


@pytest.mark.core(2)
@pytest.mark.parametrize("told", ["[]", "{}", '{"started": 1}', "[" * 5000, "null"])
def test_facts_that_cannot_be_are_not_used(told, run):
    from safetensors import safe_open

    right = run.thinned_curves()
    with safe_open(run.folder / FILE, framework="numpy") as file:
        facts = file.metadata()["facts"]
    for said in ({"facts": facts, "told": told}, {"facts": told, "told": "{}"}):
        save_file(load_file(run.folder / FILE), run.folder / FILE, said)
        assert_equal(run.thinned_curves(), right)


def test_where_nothing_can_be_written_the_curves_are_read_all_the_same(run, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise OSError

    monkeypatch.setattr(thinned, "write_bytes", full)
    assert_thinned(run.thinned_curves(), run.curves())
    assert not (run.folder / FILE).exists()


def test_the_worker_keeps_them_as_it_goes_and_a_copy_has_them(store, monkeypatch):
    from tfm_core.runs.process.execute import execute

    monkeypatch.setattr(thinned, "LONG_FILE", 1)
    run = store.create(tiny())
    execute(run)
    (kept, curves) = thinned._stored(run.folder)
    assert kept.offset > 0
    assert len(curves.steps) == len(run.curves().steps)
    copy = store.fork(run.id, steps=11)
    assert (copy.folder / FILE).read_bytes() == (run.folder / FILE).read_bytes()
    assert_equal(copy.thinned_curves(), run.curves())


def share(step, accuracy, split="validation"):
    return line(event="measured", step=step, split=split, accuracy=accuracy, loss=1.0)


STEPS_BEHIND = "".join(step(k) for k in range(29))


@pytest.mark.quick
@pytest.mark.parametrize("tail", [200, 2**16])
@pytest.mark.parametrize(
    ("text", "accuracy", "split"),
    [
        (share(3, 0.25) + STEPS_BEHIND + share(5, 0.75), 0.75, "validation"),
        (share(3, 0.25) + STEPS_BEHIND, 0.25, "validation"),
        (share(3, 0.25) + share(7, 0.5, "test") + share(5, 0.75), 0.5, "test"),
        (
            share(3, 0.25) + share(7, 0.5, "test") + line(event="resumed", step=3),
            0.25,
            "validation",
        ),
        (share(3, 0.25) + "{torn", 0.25, "validation"),
        (share(3, 0.25) + '{"event": "measured", "split": 3}\n', 0.25, "validation"),
        (share(3, 0.25) + "measured\n", 0.25, "validation"),
    ],
)
def test_the_last_measurement_is_of_the_test_else_of_the_validation(
    store, monkeypatch, tail, text, accuracy, split
):
    monkeypatch.setattr(figures, "_TAIL", tail)
    run = store.create(tiny())
    append(run.folder / EVENTS, text)
    found = last_measured(run)
    assert (found["accuracy"], found["split"]) == (accuracy, split)


@pytest.mark.quick
def test_a_run_that_measured_nothing_has_no_last_measurement(store):
    run = store.create(tiny())
    assert last_measured(run) is None
    append(run.folder / EVENTS, STEPS_BEHIND)
    assert last_measured(run) is None
    (run.folder / EVENTS).unlink()
    (run.folder / EVENTS).mkdir()
    assert last_measured(run) is None
