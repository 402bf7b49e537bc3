"""Training a run: what lies in its folder, and how it ends."""

import json
import resource
import signal

import pytest
from safetensors.numpy import load_file

from tests.runs.waiting import tiny, wait_until
from tfm_core.config import Experiment
from tfm_core.runs import claim, recorder
from tfm_core.runs.control import Control
from tfm_core.runs.execute import execute
from tfm_core.runs.recorder import FIRST_STEPS, LINES, Recorder, keeps
from tfm_core.runs.requests import drop
from tfm_core.runs.status import Status, write_status
from tfm_core.training.events import Step

TIMES = {"examples_per_second", "memory_bytes", "seconds"}


def facts(run) -> list[dict]:
    """Return what a run's events say once nothing more is to be forgotten, without timings."""
    kept: list[dict] = []
    for record in run.reader().read():
        if record["event"] == "resumed":
            kept = [old for old in kept if old["step"] <= record["step"]]
        elif record["event"] != "started":
            kept.append({key: value for key, value in record.items() if key not in TIMES})
    return kept


def weights(run):
    return load_file(run.folder / "checkpoints" / "last" / "checkpoint.safetensors")


def assert_same(run, other):
    assert facts(run) == facts(other)
    one, two = weights(run), weights(other)
    assert one.keys() == two.keys()
    assert all((one[name] == two[name]).all() for name in one)


def stopping_at(step, run):
    """Return a control and a listener that end a run's training after a step."""
    control = Control(run.folder)

    def stop(event):
        if isinstance(event, Step) and event.step == step:
            control.stop_reason = "Enough."

    return control, stop


@pytest.fixture
def whole(store):
    """A run of 7 steps that was never interrupted."""
    run = store.create(tiny())
    assert execute(run).state == "finished"
    return run


def test_a_finished_run_has_everything_in_its_folder(whole):
    status, curves = whole.status, whole.curves()

    assert (status.state, status.step, status.total_steps) == ("finished", 7, 7)
    assert status.reason is None
    assert status.seconds > 0
    assert curves.started["n_parameters"] > 0
    assert curves.steps["step"].tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert curves.validation["step"].tolist() == [0, 3, 6, 7]
    assert curves.test["step"].tolist() == [7]
    assert curves.finished["step"] == 7
    assert whole.snapshot_steps()[0] == 0
    assert whole.snapshot_steps()[-1] == 7
    snapshot = whole.snapshot(7)
    assert len(snapshot.texts) == len(whole.probe().items)
    assert "decoder.layers.0.cross_attention" in snapshot.attention
    best = json.loads((whole.folder / "best.json").read_text())
    assert best["loss"] == min(
        record["loss"]
        for record in facts(whole)
        if record["event"] == "measured" and record["split"] == "validation" and record["step"] > 0
    )
    assert (whole.folder / "checkpoints" / "best" / "checkpoint.safetensors").is_file()


def test_the_same_experiment_gives_the_same_run(whole, store):
    again = store.create(tiny())
    execute(again)
    assert_same(whole, again)


@pytest.mark.parametrize("stop_at", [1, 3, 5, 7])
def test_a_run_that_was_stopped_and_resumed_is_as_if_it_never_stopped(whole, store, stop_at):
    run = store.create(tiny())
    stopped = execute(run, *stopping_at(stop_at, run))
    assert (stopped.state, stopped.step, stopped.reason) == ("stopped", stop_at, "Enough.")

    assert execute(run).state == "finished"
    assert_same(whole, run)
    assert run.curves().resumed == (stop_at,)


def test_a_run_that_broke_down_between_checkpoints_goes_back_to_the_last(whole, store):
    run = store.create(tiny())
    control = Control(run.folder)

    def stop_and_break(event):
        if isinstance(event, Step) and event.step == 2:
            control.stop_reason = "Enough."
        if isinstance(event, Step) and event.step == 5:
            raise RuntimeError("the roof fell in")

    execute(run, control, stop_and_break)
    failed = execute(run, None, stop_and_break)
    assert failed.state == "failed"
    assert "the roof fell in" in failed.reason
    assert "the roof fell in" in "\n".join(run.log_tail())
    with (run.folder / "events.jsonl").open("a") as file:
        file.write('{"event": "step", "step": 6, "lo')  # as a killed worker leaves it

    assert execute(run).state == "finished"
    assert_same(whole, run)
    assert run.curves().resumed == (2, 2)


def test_a_run_that_broke_down_before_its_first_checkpoint_starts_again(whole, store):
    run = store.create(tiny())
    reasons = []

    def break_down(event):
        raise RuntimeError("at once")

    execute(run, None, break_down)
    assert not run.has_checkpoint

    execute(run, None, lambda event: reasons.append(run.status.reason))
    assert_same(whole, run)
    assert reasons[0] == "It had no checkpoint yet, so it started again from the beginning."


def test_snapshots_from_beyond_the_checkpoint_are_taken_again(store):
    run = store.create(tiny())
    execute(run, *stopping_at(2, run))
    beyond = run.folder / "snapshots" / "00000005.safetensors"
    beyond.write_bytes((run.folder / "snapshots" / "00000000.safetensors").read_bytes())
    was_there = []
    execute(run, None, lambda event: was_there.append(beyond.exists()))
    assert not was_there[0]
    assert run.snapshot_steps()[-1] == 7


def test_a_run_on_pictures_is_resumed_bit_for_bit(store):
    experiment = Experiment.parse(
        {
            "model": {"family": "vit", "d_model": 8, "n_heads": 2, "d_ff": 11, "patch_size": 14},
            "task": {"kind": "image", "name": "mnist-5000", "n_validation": 20, "rotation": 7},
            "training": {"steps": 5, "batch_size": 3},
        }
    )
    whole, run = store.create(experiment), store.create(experiment)
    execute(whole)
    execute(run, *stopping_at(3, run))
    execute(run)
    assert_same(whole, run)
    assert run.probe().images.dtype == "uint8"
    assert len(run.snapshot(5).probabilities) == len(run.probe().items)


def test_a_fork_of_a_broken_run_goes_on_from_its_checkpoint(store):
    run = store.create(tiny())
    control = Control(run.folder)

    def stop_and_break(event):
        if isinstance(event, Step) and event.step == 2:
            control.stop_reason = "Enough."
        if isinstance(event, Step) and event.step == 5:
            raise RuntimeError("the roof fell in")

    execute(run, control, stop_and_break)
    execute(run, None, stop_and_break)
    assert run.status.step == 5

    fork = store.fork(run.id, steps=7)
    assert (fork.status.step, fork.checkpoint_step) == (2, 2)
    assert execute(fork).state == "finished"
    whole = store.create(tiny())
    execute(whole)
    assert_same(whole, fork)


def test_a_run_can_be_stopped_while_its_data_is_being_fetched(store):
    run = store.create(tiny())
    control = Control(run.folder)
    assert not control.is_stop_asked()
    drop(run.folder, "pause")
    drop(run.folder, "stop")
    wait_until(control.is_stop_asked, "the request is seen")
    assert control.stop_reason == "Stopped by hand."


def test_a_fork_trains_on_up_to_its_own_last_step(whole, store):
    fork = store.fork(whole.id, steps=11)
    status = execute(fork)
    assert (status.state, status.step) == ("finished", 11)
    assert fork.curves().steps["step"].tolist() == list(range(1, 12))
    assert fork.curves().finished["step"] == 11
    assert whole.status.step == 7


def test_a_run_that_diverges_fails_with_advice_and_keeps_its_checkpoint(store):
    run = store.create(tiny(steps=400, learning_rate=10, optimizer="sgd", clip_norm=0, warmup=0))
    execute(run, *stopping_at(1, run))
    status = execute(run)
    assert status.state == "failed"
    assert "learning rate 10 is probably too high; try 1" in status.reason
    assert run.has_checkpoint


def test_a_device_that_is_not_there_is_said(store):
    run = store.create(tiny(), device="cuda:99")
    status = execute(run)
    assert status.state == "failed"
    assert status.reason.startswith("cuda:99 is not there:")


def test_a_damaged_experiment_is_said(store):
    run = store.create(tiny())
    (run.folder / "experiment.json").write_text("{")
    status = execute(run)
    assert (status.state, status.reason) == ("failed", run.problem)


def test_a_damaged_checkpoint_is_said(whole, store):
    fork = store.fork(whole.id, steps=11)
    (fork.folder / "checkpoints" / "last" / "checkpoint.safetensors").write_bytes(b"torn")
    status = execute(fork)
    assert status.state == "failed"
    assert "checkpoint last is damaged" in status.reason


def test_a_run_that_another_process_holds_is_left_alone(store, neighbour):
    run = store.create(tiny())
    claim.take(run.folder, neighbour)
    with pytest.raises(claim.RunHeld, match="being trained by another process"):
        execute(run)
    assert run.status.state == "queued"


def test_who_reads_that_a_run_has_ended_may_go_on_with_it_at_once(store, neighbour, monkeypatch):
    run, is_free = store.create(tiny()), []

    def written(folder, status):
        write_status(folder, status)
        if not status.is_active:
            is_free.append(claim.take(folder, neighbour))

    monkeypatch.setattr(recorder, "write_status", written)
    execute(run, *stopping_at(3, run))
    assert run.status.state == "stopped"
    assert is_free == [True]


def test_a_full_disk_is_said(store):
    run = store.create(tiny())
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (8_000, before[1]))
        status = execute(run)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert status.state == "failed"
    assert status.reason.startswith("The disk is full")
    assert run.status.state == "failed"
    assert execute(run).state == "finished"


def test_a_run_that_takes_too_long_is_stopped(store):
    run = store.create(tiny(steps=100_000))
    status = execute(run, Control(run.folder, max_seconds=0.2))
    assert status.state == "stopped"
    assert "the longest that a run may take here" in status.reason
    assert run.has_checkpoint


@pytest.mark.parametrize("total", [7, 600, 5000, 1_000_003])
def test_about_six_hundred_steps_beyond_the_first_hundred_are_written_down(total):
    kept = [step for step in range(1, min(total, 20_000) + 1) if keeps(step, total)]
    assert kept[:FIRST_STEPS] == list(range(1, min(total, FIRST_STEPS) + 1))
    assert len(kept) <= FIRST_STEPS + 2 * LINES
    assert keeps(total, total)


def test_the_heart_beats_while_nothing_happens(tmp_path):
    with Recorder(tmp_path, Status("running")) as writer:
        writer.change("running")
        first = json.loads((tmp_path / "status.json").read_text())["heartbeat"]

        def beat():
            return json.loads((tmp_path / "status.json").read_text())["heartbeat"]

        wait_until(lambda: beat() > first, "the heart beats")
