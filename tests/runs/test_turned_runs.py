"""A run whose settings were turned: repeated by resume and forks, dropped by branches and cures."""

import json
import os
import signal

import pytest

from tests.runs.comparing import assert_same, facts
from tests.runs.waiting import tiny, wait_until
from tfm_core.choices.config.turns import Turn
from tfm_core.runs.curves import turns_in
from tfm_core.runs.process.execute import execute
from tfm_core.runs.process.requests import Control, drop, is_request, turning
from tfm_core.runs.queue.limits import Limits
from tfm_core.runs.queue.run_queue import RunQueue
from tfm_core.training.events import Step

TURNS = {2: ("training.learning_rate", 0.02), 4: ("training.batch_size", 3)}


def train(run, turns=TURNS, breaks_at=None):
    """Train a run to its end or until it breaks. turns: requests by the step after which."""
    control = Control(run.folder)

    def listen(event):
        if isinstance(event, Step) and event.step in turns and not run.curves().resumed:
            drop(run.folder, turning(*turns[event.step]))
            control._looked = 0.0
        if isinstance(event, Step) and event.step == breaks_at:
            raise RuntimeError("the roof fell in")

    return execute(run, control, listen)


@pytest.fixture
def turned(store):
    run = store.create(tiny())
    assert train(run).state == "finished"
    return run


def test_turns_are_events_and_change_the_training(turned, whole):
    assert [(turn.step, turn.setting, turn.value) for turn in turned.curves().turns] == [
        (3, "training.learning_rate", 0.02),
        (5, "training.batch_size", 3),
    ]
    assert turned.thinned_curves().turns == turned.curves().turns
    steps, old = turned.curves().steps, whole.curves().steps
    assert steps.up_to(2)["loss"].tolist() == old.up_to(2)["loss"].tolist()
    assert steps["learning_rate"][2] > old["learning_rate"][2]


@pytest.mark.parametrize("breaks_at", [3, 5, 6])
def test_a_turned_run_is_the_same_after_a_break(store, turned, breaks_at):
    run = store.create(tiny())
    train(run, breaks_at=breaks_at)
    assert execute(run).state == "finished"
    n_turned = 1 + (breaks_at > 4)
    assert run.curves().turns == turned.curves().turns[:n_turned]
    if n_turned == len(TURNS):
        assert_same(turned, run)


@pytest.mark.wide
def test_a_turned_run_whose_worker_is_killed_ends_as_if_it_had_not_been(store):
    run = store.create(tiny(steps=600))
    queue = RunQueue(store, max_running=1, warm=0, limits=Limits())
    queue.start()
    try:
        queue.submit(run)
        wait_until(lambda: run.status.step > 5, "it trains")
        run.request(turning("training.learning_rate", 0.02))
        wait_until(lambda: run.curves().turns, "it was turned")
        os.kill(run.status.pid, signal.SIGKILL)
        wait_until(lambda: run.status.state == "interrupted", "its worker is gone")
        queue.resume(run)
        wait_until(lambda: run.status.state == "finished", "it ends")
    finally:
        queue.close()
    (turn,) = run.curves().turns
    whole = store.create(run.experiment)
    train(whole, turns={turn.step - 1: (turn.setting, turn.value)})
    assert_same(run, whole)


def test_a_fork_follows_the_turns_of_its_parent(store):
    constant = {"schedule": "constant", "warmup": 0.0}
    short, long = (store.create(tiny(steps=steps, **constant)) for steps in (7, 11))
    train(short)
    train(long)
    fork = store.fork(short.id, steps=11)
    execute(fork)
    assert fork.curves().turns == long.curves().turns
    assert fork.curves().steps["loss"].tolist() == long.curves().steps["loss"].tolist()

    low = store.fork(short.id, steps=11, stays_low=True)
    execute(low)
    assert low.experiment.training.batch_size == 3
    assert low.curves().steps.last("learning_rate") == pytest.approx(
        low.experiment.training.learning_rate
    )


def test_a_branch_trains_without_the_last_turn_from_where_it_was_made(store, turned):
    first = dict(list(TURNS.items())[:1])
    expected = store.create(tiny())
    train(expected, turns=first)
    branch = store.branch(turned.id, name="old batch size")
    assert (branch.status.state, branch.status.step, branch.meta.parent) == (
        "stopped",
        4,
        turned.id,
    )
    assert execute(branch).state == "finished"
    assert_same(expected, branch)


def test_a_branch_keeps_the_other_turns_of_a_run_that_was_resumed(tmp_path):
    """Turned at step 12, killed, resumed from step 1, and turned at step 3: that one is dropped."""
    events = tmp_path / "events.jsonl"
    lines = [
        {"event": "turned", "step": 12, "setting": "model.dropout", "value": 0.3},
        {"event": "resumed", "step": 1},
        {"event": "turned", "step": 3, "setting": "training.learning_rate", "value": 0.002},
        {"event": "branched", "step": 2},
    ]
    events.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert turns_in(events) == (Turn(12, "model.dropout", 0.3),)


def test_a_running_run_can_be_branched_before_its_first_checkpoint(store, whole):
    run, branches = store.create(tiny()), []
    control = Control(run.folder)

    def listen(event):
        if isinstance(event, Step) and event.step == 2:
            drop(run.folder, turning(*TURNS[2]))
            control._looked = 0.0
        if isinstance(event, Step) and event.step == 4:
            branches.append(store.branch(run.id))

    execute(run, control, listen)
    (branch,) = branches
    execute(branch)
    assert_same(whole, branch)


def test_a_cure_has_its_own_settings(store, turned):
    training = turned.experiment.training.replace(learning_rate=0.001)
    cure = store.cure(
        turned.id, turned.experiment.replace(training=training.model_dump()), begins="last"
    )
    execute(cure)
    assert cure.experiment.training.learning_rate == 0.001
    further = store.fork(cure.id, steps=9)
    execute(further)
    assert further.curves().steps["learning_rate"].tolist()[7:] <= [0.001, 0.001]


def test_a_run_without_turns_has_no_branch(store, whole):
    with pytest.raises(ValueError, match="No setting of this run was changed"):
        store.branch(whole.id)


@pytest.mark.parametrize(
    ("setting", "value"),
    [("training.learning_rate", -1.0), ("training.steps", 3), ("model.n_heads", 1)],
)
def test_an_impossible_turn_changes_nothing(store, whole, setting, value):
    run = store.create(tiny())
    train(run, turns={2: (setting, value)})
    assert run.curves().turns == ()
    assert facts(run) == facts(whole)


def test_turns_of_a_damaged_file_are_left_out(store, turned):
    lines = (turned.folder / "events.jsonl").read_text()
    for value in ("-1", "1e30"):
        lines += f'{{"event": "turned", "step": 6, "setting": "model.dropout", "value": {value}}}\n'
    (turned.folder / "events.jsonl").write_text(lines)
    fork = store.fork(turned.id, steps=9)
    assert execute(fork).state == "finished"
    low = store.fork(turned.id, steps=9, stays_low=True)
    assert low.experiment.model.dropout == turned.experiment.model.dropout


@pytest.mark.parametrize(
    "text", ["turn", "turn.training.learning_rate=nan", "turn.seed=1", "turn.../x=1", "stop=1"]
)
def test_only_turns_and_known_kinds_are_requests(text):
    assert not is_request(text)
