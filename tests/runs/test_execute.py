"""Training a run: what lies in its folder, how it ends, and what is written down of it."""

import json
import random
import resource
import signal
import subprocess
import sys

import pytest

from tests.limits import limited
from tests.nightly import only_nightly
from tests.runs.comparing import assert_same, facts, stopping_at
from tests.runs.waiting import tiny, wait_until
from tfm_core.facts.storage import attention_numbers
from tfm_core.runs import Run
from tfm_core.runs.disk.locks import RunLock, RunLocked
from tfm_core.runs.process import recorder
from tfm_core.runs.process.execute import execute
from tfm_core.runs.process.requests import Control, drop
from tfm_core.runs.status import write_status
from tfm_core.training.events import Step


@pytest.mark.quick
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


@pytest.mark.quick
def test_a_server_that_keeps_less_attention_keeps_it_of_fewer_examples(store, monkeypatch):
    per_example = attention_numbers(tiny())
    limited(monkeypatch, max_attention=3 * per_example)
    run = store.create(tiny())
    execute(run, *stopping_at(3, run))
    assert (len(run.probe().items), len(run.probe().attended)) == (6, 3)
    assert {len(maps) for maps in run.snapshot(0).attention.values()} == {3}
    assert len(run.snapshot(0).texts) == 6

    limited(monkeypatch, max_attention=2 * per_example)
    execute(run, *stopping_at(5, run))
    assert len(run.probe().attended) == 2

    monkeypatch.undo()  # snapshots from here on have what the others have
    execute(run)
    assert len(run.probe().attended) == 2
    assert {len(maps) for maps in run.snapshot(7).attention.values()} == {2}


@pytest.mark.quick
@pytest.mark.parametrize("stop_at", [1, 3, 5, 7])
def test_a_run_that_was_stopped_and_resumed_is_as_if_it_never_stopped(whole, store, stop_at):
    run = store.create(tiny())
    stopped = execute(run, *stopping_at(stop_at, run))
    assert (stopped.state, stopped.step, stopped.reason) == ("stopped", stop_at, "Enough.")

    assert execute(run).state == "finished"
    assert_same(whole, run)
    assert run.curves().resumed == (stop_at,)


@pytest.mark.quick
def test_each_step_says_how_long_it_had_trained_and_a_resumed_run_goes_on_counting(store):
    run = store.create(tiny())
    execute(run, *stopping_at(4, run))
    before = run.curves().steps
    execute(run)
    after = run.curves().steps
    for clock in ("seconds", "cpu_seconds"):
        times = after[clock]
        assert (times[1:] >= times[:-1]).all()
        assert times[4] >= before[clock][3] > 0


def stopped_and_broken(run):
    """Stop a run after step 2, go on and let it break down after step 5; return its status."""
    control = Control(run.folder)

    def stop_and_break(event):
        if isinstance(event, Step) and event.step == 2:
            control.stop_reason = "Enough."
        if isinstance(event, Step) and event.step == 5:
            raise RuntimeError("the roof fell in")

    execute(run, control, stop_and_break)
    return execute(run, None, stop_and_break)


def test_a_run_that_broke_down_between_checkpoints_goes_back_to_the_last(whole, store):
    run = store.create(tiny())
    failed = stopped_and_broken(run)
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
    assert reasons[0] == "It started again because there was no checkpoint."


def test_snapshots_from_beyond_the_checkpoint_are_taken_again(store):
    run = store.create(tiny())
    execute(run, *stopping_at(2, run))
    beyond = run.folder / "snapshots" / "00000005.safetensors"
    beyond.write_bytes((run.folder / "snapshots" / "00000000.safetensors").read_bytes())
    was_there = []
    execute(run, None, lambda event: was_there.append(beyond.exists()))
    assert not was_there[0]
    assert run.snapshot_steps()[-1] == 7


def test_a_fork_of_a_broken_run_goes_on_from_its_checkpoint(store):
    run = store.create(tiny())
    stopped_and_broken(run)
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


def test_the_step_at_which_a_long_run_stops_is_in_its_curve(store):
    run = store.create(tiny(steps=1200))  # beyond step 100 the curve has every other one
    execute(run, *stopping_at(103, run))
    assert run.status.step == 103
    assert run.curves().steps["step"].tolist() == [*range(1, 101), 102, 103]


def test_a_run_that_diverges_fails_with_advice_and_keeps_its_checkpoint(store):
    run = store.create(tiny(steps=400, learning_rate=10, optimizer="sgd", clip_norm=0, warmup=0))
    execute(run, *stopping_at(1, run))
    status = execute(run)
    assert status.state == "failed"
    assert "learning rate 10 is probably too high; try 0.1." in status.reason
    assert run.has_checkpoint


def test_a_missing_device_and_a_damaged_experiment_or_checkpoint_are_said(store, whole):
    run = store.create(tiny(), device="cuda:99")
    status = execute(run)
    assert status.state == "failed"
    assert status.reason.startswith("cuda:99 is not available:")
    run = store.create(tiny())
    (run.folder / "experiment.json").write_text("{")
    status = execute(run)
    assert (status.state, status.reason) == ("failed", run.problem)
    fork = store.fork(whole.id, steps=11)
    (fork.folder / "checkpoints" / "last" / "checkpoint.safetensors").write_bytes(b"torn")
    status = execute(fork)
    assert status.state == "failed"
    assert "checkpoint last is damaged" in status.reason


def test_a_run_that_is_held_is_left_alone(store):
    run = store.create(tiny())
    with RunLock(run.folder), pytest.raises(RunLocked, match="Another process is training"):
        execute(run)
    assert run.status.state == "queued"


def test_who_reads_that_a_run_has_ended_may_go_on_with_it_at_once(store, monkeypatch):
    run, is_free = store.create(tiny()), []

    def written(folder, status, *, lasting):
        write_status(folder, status, lasting=lasting)
        if not status.is_active:
            RunLock(folder, patience=0.0).release()
            is_free.append(True)

    monkeypatch.setattr(recorder, "write_status", written)
    execute(run, *stopping_at(3, run))
    assert run.status.state == "stopped"
    assert is_free == [True]


def test_a_file_that_may_not_grow_is_said(store):
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
    assert "(File too large)" in status.reason
    assert run.status.state == "failed"
    assert execute(run).state == "finished"


N_KILLS = 12

WORKER = """
import os, signal, sys
from pathlib import Path
from tfm_core.runs import Run
from tfm_core.runs.process import execute

folder, last = sys.argv[1], int(sys.argv[2])
execute.CHECKPOINT_SECONDS, execute.CHECKPOINT_SHARE = 0.0, 0  # a checkpoint a step
n_changes = 0

def watch(event, values):
    global n_changes
    opens = event == "open" and values[2] & (os.O_WRONLY | os.O_RDWR)
    changes = event in {"os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir"}
    if (opens or changes) and str(values[0]).startswith(folder):
        n_changes += 1
        if n_changes == last:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(watch)
execute.execute(Run(Path(folder)))
print(n_changes)
"""


def train_until(run: Run, change: int) -> subprocess.CompletedProcess[str]:
    """Train a run in a process of its own until its nth change of a file; 0 is never."""
    command = [sys.executable, "-c", WORKER, str(run.folder), str(change)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.wide
@only_nightly
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_run_that_is_killed_at_any_change_of_a_file_ends_bit_for_bit_the_same(store, whole):
    n_changes = int(train_until(store.create(tiny()), 0).stdout)
    most = 9 * n_changes // 10  # how often its state is written depends on the machine
    for change in random.Random(11).sample(range(1, most), N_KILLS):
        run = store.create(tiny())
        killed = train_until(run, change)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert run.problem is None
        assert execute(Run(run.folder)).state == "finished"
        assert_same(run, whole)
        names = [path.name for path in run.folder.rglob("*")]
        assert not [name for name in names if name.startswith(".") or name.endswith(".new")]
