"""The doctor: silent where a training learns, and of ill ones and heads it speaks and cures."""

import numpy as np
import pytest

from tests.studies.recorded_curves import FOLDER, Recorded, recorded
from tfm_core.choices.config import Experiment
from tfm_core.choices.presets import PRESETS
from tfm_core.inspect.attention.heads import alikeness, dead_modules, is_dead
from tfm_core.probe import masks
from tfm_core.runs.outcome import outcome_of
from tfm_core.runs.run import Run
from tfm_core.runs.status import Status
from tfm_core.runs.store import RECORDED
from tfm_core.studies.study import changed
from tfm_core.studies.symptoms import Symptom, cures, of_run, symptoms, waits_until

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
        dead = dead_modules(run, taken)
        seen = symptoms(experiment, RUNNING, replayed.until(step), NOTHING_KEPT, dead)
        assert seen == (), f"at step {step}"
    assert of_run(run, curves, run.snapshot_steps()) == ()


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
    assert found.kind == "overfits"
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
    assert "The largest is that of decoder layer 2, 88" in symptom.sentence
    """Of a translator whose Adam decayed all weights: its loss alone looks merely mediocre."""
    run = Run(FOLDER / "dead-heads")
    found = masks.recorded(run.experiment, run.probe().items, run.snapshot(400))
    alike = [alikeness(weights, allowed) for *_module, weights, allowed in found]
    assert all(map(is_dead, alike))
    assert max(even.max() for even, _constant in alike) < 0.005
    run = recorded("healthy")[0]
    curves = run.until(100)
    curves.started = {}
    assert symptoms(run.experiment, RUNNING, curves, NOTHING_KEPT) is None


EXAMPLES, HEADS, QUERIES, KEYS = 2, 3, 5, 7


@pytest.fixture
def allowed() -> np.ndarray:
    may_attend = np.ones((EXAMPLES, QUERIES, KEYS), bool)
    may_attend[0, :, 5:] = False  # padding
    return may_attend


def softmax(scores: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    weights = np.exp(scores) * allowed[:, None]
    return weights / weights.sum(-1, keepdims=True)


def test_even_or_fixed_heads_do_nothing_and_modules_of_them_are_dead(allowed) -> None:
    scores = np.random.default_rng(1).normal(size=(EXAMPLES, HEADS, QUERIES, KEYS)) * 3
    scores[:, 0] = 0.0  # even
    scores[:, 1] = [9.0, 0, 0, 0, 0, 0, 0]  # always the first key
    even, constant = alikeness(softmax(scores, allowed), allowed)
    assert even[0] < 1e-6 < even[1]
    assert constant[1] < 0.01
    assert min(even[2], constant[2]) > 0.2
    assert not is_dead((even, constant))
    scores = np.zeros((EXAMPLES, HEADS, QUERIES, KEYS))
    assert is_dead(alikeness(softmax(scores, allowed), allowed))
    only_one = np.zeros_like(allowed)
    only_one[..., 0] = True
    scores = np.zeros((EXAMPLES, HEADS, QUERIES, KEYS))
    assert not is_dead(alikeness(softmax(scores, only_one), only_one))


TRANSLATE = PRESETS["translate"].experiment
KEPT = {"best": 300, "last": 700}


def _middle(experiment: Experiment) -> tuple[int, dict[str, int]]:
    """Return a step in the middle of a run, and what it has kept."""
    steps = experiment.training.steps
    return steps // 2, {"best": 3 * steps // 10, "last": 7 * steps // 10}


def sick(model: dict | None = None, task: dict | None = None, **training: object) -> Experiment:
    return TRANSLATE.replace(
        model=TRANSLATE.model.replace(**(model or {})).model_dump(),
        task=TRANSLATE.task.replace(**(task or {})).model_dump(),
        training=TRANSLATE.training.replace(**training).model_dump(),
    )


def test_each_sickness_has_its_cure() -> None:
    ill = sick(learning_rate=10.0)
    cure, *_others = cures("diverged", ill, 400, KEPT)
    assert (cure.begins, cure.step) == ("best", 300)
    assert changed(ill, cure.changes) == TRANSLATE
    assert cure.label == "Continue from step 300: learning rate 0.006"
    (cure,) = cures("slow", sick(learning_rate=1e-5), 150, KEPT)
    assert (cure.begins, cure.step) == ("last", 700)
    steps = 700 + TRANSLATE.training.steps
    assert cure.changes == {"training.learning_rate": 0.006, "training.steps": steps}
    cure, *_others = cures("exploding", sick(clip_norm=0.0), 400, KEPT)
    assert cure.changes == {"training.clip_norm": 1.0}
    cure, *_others = cures("dead-heads", sick(optimizer="adam", weight_decay=0.1), 300, KEPT)
    assert (cure.begins, cure.changes) == ("beginning", {"training.weight_decay": 0.0})
    more, dropout, early = cures("overfits", sick(task={"n_train": 60}), 300, KEPT)
    assert (more.begins, more.changes) == ("beginning", {"task.n_train": 600})
    assert (dropout.begins, dropout.step, dropout.changes) == ("best", 300, {"model.dropout": 0.2})
    assert early.changes == {"training.patience": 3}


@pytest.mark.parametrize("kept", [KEPT, {"best": None, "last": None}])
def test_weights_that_are_spoilt_are_not_taken_along(kept) -> None:
    cure, *_others = cures("diverged", sick(learning_rate=10.0), 2, kept)
    assert (cure.begins, cure.step) == ("beginning", 0)
    assert cure.label == "Start again: learning rate 0.006"


@pytest.mark.parametrize(
    "kind",
    ["diverged", "at-chance", "slow", "stuck", "exploding", "vanishing", "dead-heads", "overfits"],
)
def test_every_cure_of_every_preset_changes_something_and_keeps_the_weights_shape(kind) -> None:
    found = [
        (preset.experiment, cure)
        for preset in PRESETS.values()
        for cure in cures(kind, preset.experiment, *_middle(preset.experiment))
    ]
    for experiment, cure in found:
        fixed = changed(experiment, cure.changes)
        assert fixed != experiment
        if cure.begins != "beginning":
            kept = {"dropout": experiment.model.dropout}
            assert fixed.model.replace(**kept) == experiment.model
            assert fixed.training.steps > cure.step
