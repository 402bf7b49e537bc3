"""When two runs are the same, and how one is stopped where it is wanted."""

from safetensors.numpy import load_file

from tfm_core.runs.process.recorder import keeps
from tfm_core.runs.process.requests import Control
from tfm_core.training.events import Step

TIMES = {"examples_per_second", "memory_bytes", "seconds", "cpu_seconds"}


def facts(run) -> list[dict]:
    """Return what a run's events say once nothing more is to be forgotten, without timings.

    The steps at which it was paused or saved are left out where others write none down.
    """
    kept: list[dict] = []
    for record in run.reader().read():
        if record["event"] == "resumed":
            kept = [old for old in kept if old["step"] <= record["step"]]
        elif record["event"] not in {"started", "branched"}:
            kept.append({key: value for key, value in record.items() if key not in TIMES})
    total, last = run.experiment.training.steps, kept[-1]["step"]
    return [
        record
        for record in kept
        if record["event"] != "step" or keeps(record["step"], total) or record["step"] == last
    ]


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
