"""A run that diverged or never learned says so, with its numbers; a run that learned does not."""

import json

import pytest

from tests.runs.waiting import tiny
from tfm_core.runs.status import Status, write_status
from tfm_core.runs.store import RECORDED, RunStore
from tfm_core.training.progress import LOSS_DIVERGED, TrainingDiverged

pytestmark = pytest.mark.quick

GUESSING = 3.0


@pytest.fixture
def ended(store):
    """Return a finished run whose loss, at steps 1, 2, ... and in validation, was as given."""

    def make(*losses, validation=None, averaged=None, floor=0.0, state="finished"):
        run = store.create(tiny())
        events = [{"event": "started", "start_loss": GUESSING, "floor": floor, "chance": 0.05}]
        events += [{"event": "step", "step": n, "loss": x} for n, x in enumerate(losses, 1)]
        measured = {"event": "measured", "split": "validation", "step": len(losses)}
        for weights, loss in (("last", validation), ("average", averaged)):
            if loss is not None:
                events.append({**measured, "weights": weights, "loss": loss, "accuracy": 0.1})
        lines = "".join(json.dumps(event) + "\n" for event in events)
        (run.folder / "events.jsonl").write_text(lines)
        write_status(run.folder, Status(state, step=len(losses), total_steps=len(losses)))
        return run

    return make


def test_runs_are_judged_by_spikes_guessing_last_steps_and_floors(ended):
    assert ended(3.1, 1.0, 0.2, validation=0.3).outcome is None
    assert ended(3.1, 50.0, 1.0, validation=0.1).outcome is None
    assert ended(3.1, 1.0, 0.2, validation=4.5).outcome.kind == "by-heart"
    assert ended(3.1, 1.0, 0.2, validation=0.3, averaged=4.5).outcome is None
    found = ended(3.1, 40.0, 88.25, validation=91.0).outcome
    assert (found.kind, found.repeats) == ("diverged", False)
    assert "loss 91.0, chance 3.00" in found.sentence
    found = ended(3.1, 1575.4, 40.0, 2.9, validation=2.81).outcome
    assert found.kind == "diverged"
    assert "rose to 1,575 at step 2 and ended at 2.81" in found.sentence
    found = ended(3.2, 3.1, 3.05, validation=2.95).outcome
    assert found.kind == "never-learned"
    assert "loss 2.95, chance 3.00" in found.sentence
    assert ended(3.2, 3.1, 3.05).outcome.kind == "never-learned"
    assert ended(*[3.0] * 5, *[0.5] * 30).outcome is None
    assert ended(3.1, 2.8, validation=2.75).outcome.kind == "never-learned"
    assert ended(3.1, 2.8, validation=2.75, floor=2.7).outcome is None


@pytest.mark.parametrize("state", ["stopped", "queued"])
def test_only_an_ended_run_is_judged(ended, state):
    assert ended(3.1, 3.1, validation=3.1, state=state).outcome is None


@pytest.mark.parametrize(("device", "repeats"), [("cpu", True), ("cuda:0", False)])
def test_a_loss_that_is_no_number_comes_again_on_the_cpu(store, device, repeats):
    run = store.create(tiny())
    values = {"loss": float("nan"), "step": 15, "learning_rate": 10.0, "lower": 1.0}
    reason = TrainingDiverged(LOSS_DIVERGED, **values).sentence
    write_status(run.folder, Status("failed", reason=reason, device=device))
    found = run.outcome
    assert (found.kind, found.sentence, found.repeats) == ("diverged", reason, repeats)


def test_another_failure_speaks_for_itself_and_recorded_runs_have_learned(store):
    run = store.create(tiny())
    write_status(run.folder, Status("failed", reason="The disk is full."))
    assert run.outcome is None
    recorded = [RunStore(store.root).get(one.name) for one in RECORDED.glob("recorded-*")]
    assert recorded
    assert [run.id for run in recorded if run.outcome] == []
