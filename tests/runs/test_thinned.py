"""Curves of long runs are thinned, and kept beside the events; what is shown is still true."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from safetensors.numpy import load_file, save_file

from tests.runs.waiting import tiny
from tfm_core.runs.curves import STEP_COLUMNS, Curves, Series
from tfm_core.runs.record import thinned
from tfm_core.runs.record.thinned import FILE, MAX_STEPS, ThinnedReader, thin

SERIES = tuple(thinned._SERIES)


def line(**record) -> str:
    return json.dumps(record) + "\n"


def step_line(step: int) -> str:
    loss = float(np.sin(step * 1.7) + 1000 / (step + 100))
    return line(
        event="step", step=step, epoch=step / 63, loss=loss, accuracy=(step * 7 % 101) / 101,
        learning_rate=0.001, grad_norm=float(step % 997), seconds=step * 0.005,
    )  # fmt: skip


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
    (made.folder / "events.jsonl").write_text(BEGIN + STEPS + GRADIENTS)
    return made


def append(run, text: str) -> None:
    with (run.folder / "events.jsonl").open("a", encoding="utf-8") as file:
        file.write(text)


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
    (run.folder / "events.jsonl").write_text(BEGIN + step_line(1) + measured(1) + step_line(2))
    assert_equal(run.thinned_curves(), run.curves())
    assert not (run.folder / FILE).exists()


def test_a_long_run_keeps_its_ends_extremes_and_validations(run):
    assert_thinned(run.thinned_curves(), run.curves())
    assert (run.folder / FILE).is_file()


def test_what_was_kept_is_read_and_what_came_since_is_added(run, monkeypatch):
    first = run.thinned_curves()
    append(run, measured(N_STEPS + 2) + step_line(N_STEPS + 3))
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
        append(run, step_line(N_STEPS + 2 + number))
        assert_equal(follower.read(), run.thinned_curves())


def test_a_run_that_was_resumed_from_an_earlier_step_is_read_again(run):
    follower = ThinnedReader(run.folder)
    follower.read()
    back = N_STEPS // 2
    append(run, line(event="resumed", step=back) + step_line(back + 1) + measured(back + 1))
    assert_thinned(run.thinned_curves(), run.curves())
    assert_equal(follower.read(), run.thinned_curves())
    assert run.thinned_curves().resumed == (back,)


def test_of_other_events_nothing_is_taken(run):
    run.thinned_curves()
    (run.folder / "events.jsonl").write_text(BEGIN + step_line(1) + step_line(2))
    assert_equal(run.thinned_curves(), run.curves())
    (run.folder / "events.jsonl").unlink()
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
    (kept, curves) = thinned._kept(run.folder)
    assert kept.offset > 0
    assert len(curves.steps) == len(run.curves().steps)
    copy = store.fork(run.id, steps=11)
    assert (copy.folder / FILE).read_bytes() == (run.folder / FILE).read_bytes()
    assert_equal(copy.thinned_curves(), run.curves())
