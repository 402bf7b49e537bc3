"""A cure goes on from a checkpoint that is well, and nothing of what came behind it stays."""

import pytest

from tests.runs.comparing import stopping_at
from tests.runs.waiting import tiny
from tfm_core.choices.config import Experiment
from tfm_core.runs.process.execute import execute
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunStore


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
