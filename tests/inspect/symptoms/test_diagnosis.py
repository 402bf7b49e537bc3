"""The doctor is silent at every step of trainings that learn, and speaks of those that are ill."""

import pytest

from tests.inspect.symptoms.recorded_curves import FOLDER, Recorded, recorded
from tfm_core.inspect.symptoms import diagnosis, in_heads
from tfm_core.inspect.symptoms.cures import Symptom
from tfm_core.inspect.symptoms.diagnosis import symptoms, waits_until
from tfm_core.runs.record.outcome import outcome_of
from tfm_core.runs.run import Run
from tfm_core.runs.status import Status
from tfm_core.runs.store import RECORDED

NOTHING_KEPT = {"best": None, "last": None}
RUNNING = Status("running")

SOON = {
    "diverged": 5,  # steps of the training until the doctor speaks
    "at-chance": 150,
    "slow": 150,
    "vanishing": 100,
    "overfits": 350,
}


def _ids(kind: str) -> list[str]:
    return [one.name for one in recorded(kind)]


def at(run: Recorded, step: int) -> tuple[Symptom, ...]:
    found = symptoms(run.experiment, RUNNING, run.until(step), NOTHING_KEPT)
    assert found is not None
    return found


@pytest.mark.core(4)
@pytest.mark.parametrize("run", recorded("healthy"), ids=_ids("healthy"))
def test_no_alarm_at_any_step_of_a_training_that_learns(run: Recorded) -> None:
    looks = [step for step in run.steps if step <= 300 or step % 5 == 0]
    alarms = [(step, one.kind) for step in looks for one in at(run, step)]
    assert alarms == []
    assert symptoms(run.experiment, run.end, run.whole, NOTHING_KEPT) == ()


RUNS = [Run(folder, recorded=True) for folder in sorted(RECORDED.glob("recorded-*"))]


@pytest.mark.core(4)
@pytest.mark.parametrize("run", RUNS, ids=[run.id for run in RUNS])
def test_no_alarm_at_any_step_of_a_recorded_run(run: Run) -> None:
    curves, experiment = run.curves(), run.experiment
    replayed = Recorded(run.id, experiment, curves, failed=False)
    for step in replayed.steps:
        taken = [s for s in run.snapshot_steps() if waits_until(experiment) <= s <= step]
        dead = in_heads.dead_modules(run, taken)
        seen = symptoms(experiment, RUNNING, replayed.until(step), NOTHING_KEPT, dead)
        assert seen == (), f"at step {step}"
    assert diagnosis.of_run(run, curves, run.snapshot_steps()) == ()


@pytest.mark.parametrize("run", recorded("sick"), ids=_ids("sick"))
def test_a_sick_training_is_told_soon_and_at_its_end(run: Recorded) -> None:
    kind = run.name.partition(":")[0]
    ends = symptoms(run.experiment, run.end, run.whole, NOTHING_KEPT) or ()
    assert kind in [one.kind for one in ends]
    assert all(one.cures for one in ends)
    if run.end.state == "failed" and run.last < SOON["diverged"]:
        return  # it broke down before the doctor could speak
    alarm = next(step for step in run.steps if any(one.kind == kind for one in at(run, step)))
    assert alarm <= SOON[kind]


@pytest.mark.parametrize("kind", ["healthy", "sick"])
def test_what_does_not_end_as_finished_has_a_word_of_the_doctor(kind: str) -> None:
    for run in recorded(kind):
        outcome = outcome_of(run.end, run.whole)
        seen = symptoms(run.experiment, run.end, run.whole, NOTHING_KEPT)
        assert outcome is None or seen, run.name
        assert outcome is None or kind == "sick", run.name


def test_overfitting_and_frights_are_no_divergence() -> None:
    """The loss on unseen examples ends far above guessing, and yet nothing diverged."""
    run = next(one for one in recorded("sick") if one.name == "overfits: sentiment 1")
    found = outcome_of(run.end, run.whole)
    assert found is not None
    assert found.kind == "by-heart"
    assert "memorised" in found.sentence
    run = next(one for one in recorded("sick") if one.name == "overfits: sort 1")
    best = run.whole.best_validation()
    assert best is not None
    (symptom,) = symptoms(run.experiment, run.end, run.whole, NOTHING_KEPT) or ()
    assert symptom.step == run.whole.validation["step"][best]
    run = next(one for one in recorded("healthy") if one.name == "translate")
    curves = run.until(400)
    spike = {"event": "step", "step": 401, "loss": 900.0, "grad_norm": 3.0}
    curves.extend([spike])
    assert symptoms(run.experiment, RUNNING, curves, NOTHING_KEPT) == ()
    curves = run.until(400)
    for step in range(401, 412):
        curves.extend([{"event": "step", "step": step, "loss": 4.2, "grad_norm": 3.0}])
    (symptom,) = symptoms(run.experiment, RUNNING, curves, NOTHING_KEPT) or ()
    assert (symptom.kind, symptom.step) == ("diverged", 401)


def test_gradients_that_explode_and_idle_heads_are_told_of_what_says_enough() -> None:
    run = next(one for one in recorded("healthy") if one.name == "translate")
    curves = run.until(400)
    for step in range(401, 415):
        event = {"event": "step", "step": step, "loss": 0.1, "grad_norm": 90.0}
        norms = {"decoder.layers.1": 88.0, "output": 12.0}
        curves.extend([event | ({"gradients": norms} if step == 410 else {})])
    (symptom,) = symptoms(run.experiment, RUNNING, curves, NOTHING_KEPT) or ()
    assert symptom.kind == "exploding"
    assert "decoder layer 2 has the largest, 88" in symptom.sentence
    """Of a translator whose Adam decayed all weights: its loss alone looks merely mediocre."""
    run = Run(FOLDER / "dead-heads")
    found = in_heads.of_snapshot(run.experiment, run.probe(), run.snapshot(400))
    assert all(one.is_dead for one in found.values())
    assert max(float(one.even.max()) for one in found.values()) < 0.005
    run = recorded("healthy")[0]
    curves = run.until(100)
    curves.started = {}
    assert symptoms(run.experiment, RUNNING, curves, NOTHING_KEPT) is None
