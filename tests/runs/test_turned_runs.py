"""Runs that go on otherwise: turned, branched, cured, moved to another device."""

import dataclasses
import json
import os
import signal

import pytest

from tests.runs.comparing import assert_same, facts, stopping_at
from tests.runs.waiting import tiny, wait_until
from tfm_core.choices.config import Experiment
from tfm_core.choices.config.experiment import Turn
from tfm_core.cli import main
from tfm_core.runs.curves import turns_in
from tfm_core.runs.process.execute import execute
from tfm_core.runs.process.requests import Control, drop, is_request, turning
from tfm_core.runs.queue.run_queue import RunQueue
from tfm_core.runs.run import Run, RunDamaged
from tfm_core.runs.status import write_status
from tfm_core.runs.store import RunStore
from tfm_core.training import checkpoints
from tfm_core.training.events import Step
from tfm_core.training.loop import build

TURNS = {2: ("training.learning_rate", 0.02), 4: ("training.batch_size", 3)}


def train(run, turns=TURNS, breaks_at=None, listener=None):
    """Train a run to its end or until it breaks. turns: requests by the step after which."""
    control = Control(run.folder)

    def listen(event):
        if isinstance(event, Step) and event.step in turns and not run.curves().resumed:
            drop(run.folder, turning(*turns[event.step]))
            control._looked = 0.0
        if isinstance(event, Step) and event.step == breaks_at:
            raise RuntimeError("the roof fell in")
        if listener is not None:
            listener(event)

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
def test_a_turned_run_whose_worker_is_killed_ends_as_if_it_had_not_been(store, make_queue):
    run = store.create(tiny(steps=600))
    queue = make_queue(max_running=1)
    queue.start()
    queue.submit(run)
    wait_until(lambda: run.status.step > 5, "it trains")
    run.request(turning("training.learning_rate", 0.02))
    wait_until(lambda: run.curves().turns, "it was turned")
    os.kill(run.status.pid, signal.SIGKILL)
    wait_until(lambda: run.status.state == "interrupted", "its worker is gone")
    queue.resume(run)
    wait_until(lambda: run.status.state == "finished", "it ends")
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

    def branch_it(event):
        if isinstance(event, Step) and event.step == 4:
            branches.append(store.branch(run.id))

    train(run, turns={2: TURNS[2]}, listener=branch_it)
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


def calmer(experiment: Experiment, **training: object) -> Experiment:
    changed = experiment.training.replace(**training)
    return experiment.replace(training=changed.model_dump())


@pytest.fixture
def sick(store: RunStore) -> Run:
    """A run whose validation is best early: a wild rate spoils what it had."""
    run = store.create(tiny(steps=20, learning_rate=2.0, warmup=0.5, clip_norm=0.0))
    execute(run)
    best = run.step_of_checkpoint("best")
    assert best is not None
    assert best < 20
    return run


def test_it_goes_on_from_the_best_weights_with_other_settings(store, sick) -> None:
    best = sick.step_of_checkpoint("best")
    experiment = calmer(sick.experiment, learning_rate=0.004)
    cure = store.cure(sick.id, experiment, begins="best", name="Better")
    assert (cure.status.state, cure.status.step, cure.checkpoint_step) == ("stopped", best, best)
    assert (cure.meta.name, cure.meta.cure_of, cure.meta.cured_from) == ("Better", sick.id, best)
    assert (cure.meta.parent, cure.meta.preset) == (sick.id, None)

    assert execute(cure).state == "finished"
    curves, old = cure.curves(), sick.curves()
    assert curves.steps["step"].tolist() == list(range(1, 21))
    before = curves.steps.up_to(best)["loss"].tolist()
    assert before == old.steps.up_to(best)["loss"].tolist()
    assert curves.steps.last("loss") != old.steps.last("loss")
    assert curves.steps["learning_rate"][best:].max() <= 0.004


def test_a_run_that_still_trains_can_be_cured(store) -> None:
    run = store.create(tiny(steps=20))
    execute(run, *stopping_at(9, run))
    copied = []

    def cure_it(event: object) -> None:
        if not copied and getattr(event, "step", 0) > 10:
            copied.append(store.cure(run.id, calmer(run.experiment, warmup=0.5), begins="last"))

    execute(run, None, cure_it)
    (cure,) = copied
    assert execute(cure).state == "finished"
    assert cure.curves().steps["step"].tolist() == list(range(1, 21))


def test_without_a_checkpoint_it_is_refused_in_a_sentence(store) -> None:
    run = store.create(tiny())
    with pytest.raises(ValueError, match="no checkpoint"):
        store.cure(run.id, run.experiment, begins="best")


GPUS = ("cuda:0", "cuda:1", "mps")


def left_on(device: str, store, experiment=None) -> Run:
    """Return a run of 7 steps that stopped after 4 on a device that is not here."""
    run = store.create(experiment or tiny())
    assert execute(run, *stopping_at(4, run)).state == "stopped"
    run.write_meta(dataclasses.replace(run.meta, device=device))
    write_status(run.folder, dataclasses.replace(run.status, device=device))
    return Run(run.folder)


@pytest.fixture
def no_gpu(monkeypatch):
    """Find no GPU: a run that says it was on one differs from those here in that word alone."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: False)


@pytest.mark.usefixtures("no_gpu")
@pytest.mark.parametrize("device", GPUS)
def test_a_run_of_a_gpu_goes_on_on_the_cpu(device, whole, store):
    run = left_on(device, store)
    assert f"{device} is not available: " in execute(run).reason
    assert run.status.reason.endswith("Use cpu.")

    RunQueue(store).resume(run, "cpu")
    assert (run.status.state, run.status.device, run.meta.device) == ("queued", "cpu", "cpu")
    assert execute(Run(run.folder)).state == "finished"
    assert_same(whole, run)
    assert run.meta.begun_on == device


@pytest.mark.usefixtures("no_gpu")
def test_a_run_goes_there_and_back_and_keeps_all_else_that_is_known_of_it(store):
    run = left_on("cuda:0", store)
    store.rename(run.id, "Called otherwise")
    before = json.loads((run.folder / "meta.json").read_text())
    for device in ("cpu", "mps", "cuda:0"):
        Run(run.folder).move_to(device)
    assert json.loads((run.folder / "meta.json").read_text()) == before | {"begun_on": "cuda:0"}
    assert Run(run.folder).meta.name == "Called otherwise"


@pytest.mark.usefixtures("no_gpu")
def test_the_scale_of_an_fp16_loss_goes_on_on_the_cpu(store):
    run = left_on("cuda:0", store, tiny(precision="fp16"))
    folder, trainers = run.folder / "checkpoints" / "last", [build(run.experiment) for _ in "ab"]
    checkpoints.load(trainers[0], folder)
    trainers[0].scaler.load_state_dict(trainers[0].scaler.state_dict() | {"scale": 512.0})
    checkpoints.save(trainers[0], folder)
    checkpoints.load(trainers[1], folder)
    assert trainers[1].scaler.get_scale() == 512.0
    run.move_to("cpu")
    assert execute(run).state == "finished"


@pytest.mark.usefixtures("no_gpu")
def test_a_run_whose_device_cannot_be_noted_stays_where_it_is(store):
    run = left_on("cuda:0", store)
    (run.folder / "meta.json").write_text("{")
    with pytest.raises(RunDamaged, match=r"meta\.json"):
        Run(run.folder).move_to("mps")


@pytest.mark.usefixtures("no_gpu")
def test_the_command_line_goes_on_elsewhere_and_says_what_changes(store, monkeypatch, capsys):
    monkeypatch.setenv("TFM_RUNS_DIR", str(store.root))
    run = left_on("cuda:0", store, tiny(precision="bf16"))
    assert main(["resume", run.id]) == 2
    assert capsys.readouterr().err.endswith("Use cpu.\n")
    assert run.status.state == "stopped", "what cannot go on is as it was"

    assert main(["further", run.id, "--steps", "6", "--device", "cpu", "--quiet"]) == 0
    (copy,) = (other for other in store.kept() if other.id != run.id)
    assert (copy.meta.parent, copy.status.step, copy.meta.device) == (run.id, 6, "cpu")

    assert main(["resume", run.id, "--device", "cpu"]) == 0
    said = capsys.readouterr().err
    assert "continues as on cuda:0" in said
    assert "Dropout draws different values." in said
    assert "Still bf16" in said
    assert Run(run.folder).status.state == "finished"
