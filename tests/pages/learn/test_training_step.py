"""One training step, through the frame: stages, steps and their undo, and a run left alone."""

import re

import pytest

from tests.inspect.constructed import small
from tests.pages.looking import revealed, said
from tests.pages.opening import opened_at
from tests.pages.shown import shown
from tests.trace.test_learning import chosen
from tests.training.test_loop import experiment as learns
from tfm_core.choices.mistakes import made_in
from tfm_core.trace.learning import scheduled_rate, start, take_step
from tfm_core.training.checkpoints import FILE, save

PAGE = "learn/training_step.py"
STAGES = ("batch", "loss", "backward", "update", "after", "ways", "mistakes")


def opened(experiment=None, **query):
    return opened_at(PAGE, draft=experiment or chosen(), **query)


def at_stage(at, stage):
    at.button_group(key="training-step-stage").set_value(stage)
    return at.run()


@pytest.mark.parametrize("name", made_in("training"))
def test_every_stage_is_drawn_with_a_mistake_in_training(store, name):
    at = opened(chosen(training={"mistakes": name}))
    for stage in STAGES:
        at_stage(at, stage)
        assert not at.error, at.error[0].value


def test_a_cold_page_takes_a_step_and_one_of_an_edit_shows_no_example(store):
    at = opened_at(PAGE)
    assert at.selectbox(key="model-choice").value == "sgd-example"
    at_stage(at, "update")
    lines = [float(number) for number in at.dataframe[0].value.iloc[:, 2]]
    before, gradient, after = lines[0], lines[1], lines[-1]
    assert after == pytest.approx(before - 0.2 * gradient, rel=1e-5)
    assert "**SGD**" in said(at)
    assert opened().selectbox(key="model-choice").value == "draft"
    run = store.create(chosen())
    assert opened_at(PAGE, run=run.id).selectbox(key="model-choice").value == "run"
    trainer = start(chosen())
    taken = take_step(trainer, scheduled_rate(trainer))
    at = at_stage(opened(), "after")
    assert not at.metric  # what happens is asked first
    revealed(at)
    assert [metric.value for metric in at.metric[:2]] == [
        f"{taken.loss_before:.4g}",
        f"{taken.loss_after:.4g}",
    ]


@pytest.mark.parametrize("stage", ["batch", "update"])
def test_a_step_is_taken_and_undone(store, stage):
    at = at_stage(opened(), stage)
    assert "**step 1**" in said(at)
    assert at.button(key="training-step-undo").disabled
    at.button(key="training-step-take").click().run()
    assert "**step 2**" in said(at)
    at.button(key="training-step-take").click().run()
    assert "Steps taken here: 2" in said(at)
    at.button(key="training-step-undo").click().run()
    assert "**step 2**" in said(at)
    at.button(key="training-step-take").click().run()
    at.button(key="training-step-clear").click().run()
    assert "**step 1**" in said(at)


def test_parts_are_opened_and_what_is_too_large_is_refused(store):
    at = at_stage(opened(), "backward")
    closed = at.get("graphviz_chart")[0].proto.spec
    assert "encoder.layers.0.self_attention" not in closed
    at.selectbox(key="training-step-open").set_value("encoder.layers.0").run()
    assert "encoder.layers.0.self_attention" in at.get("graphviz_chart")[0].proto.spec
    at = revealed(at_stage(opened(), "after"))
    at.toggle(key="training-step-follow").set_value(False).run()
    at.select_slider(key="training-step-rate").set_value(10.0).run()
    assert "overshoots" in at.warning[0].value
    at = opened()
    at.selectbox(key="model-choice").set_value("gpt2-small").run()
    assert "only shapes" in at.info[0].value
    at = opened(chosen("encoder-only", model={"d_model": 1024, "n_heads": 4, "n_layers": 4}))
    assert "at most 5,000,000 parameters" in at.error[0].value


def test_the_run_is_untouched_and_its_memory_is_there(store):
    experiment = small(chosen(model={"dropout": 0.0}))
    run = store.create(experiment)
    trained = start(experiment)
    trained = take_step(trained, 0.01).after
    folder = run.folder / "checkpoints" / "last"
    save(trained, folder)
    before = (folder / FILE).read_bytes()
    at = opened(run=run.id)
    assert "The run's first, random weights" in said(at)
    assert "**step 1**" in said(at)
    at.button_group(key="training-step-weights").set_value("last").run()
    assert "**step 2**" in said(at)
    at.button(key="training-step-take").click().run()
    assert "**step 3**" in said(at)
    at_stage(at, "update")
    numbers = list(at.dataframe[0].value.iloc[:, 2])
    assert float(numbers[2]) != 0  # m before: the optimiser of the run had a memory
    assert (folder / FILE).read_bytes() == before


def test_a_mistake_of_the_model_is_trained_beside_it_on_request(store):
    at = at_stage(opened(learns("encoder-decoder", "dates")), "mistakes")
    assert "After 30 steps each" not in said(at)
    assert "Training stops at this error." in said(at)  # keys at the length of the queries
    at.toggle(key="training-step-apart-sample-deviation").set_value(True).run()
    assert "After 30 steps each" in said(at)
    assert "does not give the mistake away" in said(at)


@pytest.mark.wide
def test_a_finished_run_opens_on_its_first_weights_where_a_mistake_shows(store, recorded):
    at = at_stage(opened(run="recorded-korean"), "mistakes")
    shares = re.findall(r"([\d.]+)% of the answers are wrong", said(at))
    assert float(shares[0]) > 50
    norms = re.search(r"norm ([\d.]+) instead of (\d+\.\d+)", said(at))
    assert float(norms[1]) < float(norms[2]) / 2
    at.button_group(key="training-step-weights").set_value("last").run()
    assert at.query_params["weights"] == "last"
    assert float(re.findall(r"([\d.]+)% of the answers are wrong", said(at))[0]) < 5


def test_each_answer_of_an_example_has_its_own_figure(store, recorded):
    at = opened_at(PAGE, run="recorded-korean", show="run", stage="loss")
    (answers,) = [one for one in at.selectbox if one.label == "Answer"]
    first = shown(at)
    answers.set_value(2).run()
    assert shown(at) != first
