"""Fine-tune on the page of an opened model: what it takes, one run or two, and what cannot be."""

import pytest

from pages.app.accounts import visitors
from tests.pages.looking import said
from tests.runs.test_fine_tuning import short
from tfm_core.choices.config import TunedLabelsConfig, TunedTextConfig
from tfm_core.data.user_data import sets
from tfm_core.data.user_data.texts import inspect_text, prepare
from tfm_core.runs import own_sets
from tfm_core.runs.fine_tuning import Part, tuned
from tfm_core.runs.process.execute import execute
from tfm_core.settings import read


def started(store):
    found = [run for run in store.list() if isinstance(run.experiment.task, TunedLabelsConfig)]
    return sorted(found, key=lambda run: run.meta.created)


def test_an_opened_encoder_is_fine_tuned_beside_random_weights(
    opened, store, watch, compared, busy_queue
):
    run = opened("bert")
    app = watch(run.id)
    app.button_group(key="fine-tune-trains").set_value("lora").run()
    app.number_input(key="fine-tune-rank").set_value(3).run()
    assert "LoRA: trains" in said(app)
    app.button(key="fine-tune-both").click().run()
    tuned_run, scratch = started(store)
    task = tuned_run.experiment.task
    assert (task.trains, task.rank, bool(task.base)) == ("lora", 3, True)
    other = scratch.experiment.task
    assert (other.trains, other.base, other.data) == ("all", "", task.data)
    assert scratch.experiment.model == tuned_run.experiment.model
    assert compared == [tuned_run.id, scratch.id]


def test_an_opened_language_model_learns_the_apps_text_where_none_is_chosen(
    opened, store, watch, busy_queue
):
    run = opened("gpt2")
    app = watch(run.id)
    app.button_group(key="fine-tune-trains").set_value("last").run()
    app.number_input(key="fine-tune-layers").set_value(1).run()
    app.button(key="fine-tune-start").click().run()
    (found,) = [one for one in store.list() if isinstance(one.experiment.task, TunedTextConfig)]
    assert (found.experiment.task.trains, found.experiment.task.n_last) == ("last", 1)
    assert app.session_state["current_run"] == found.id


def test_sentences_that_are_too_long_are_told_and_start_nothing(opened, store, watch):
    rows = [f"the cat {number}\t{'good' if number % 2 else 'bad'}" for number in range(40)]
    report = inspect_text("labels", "\n".join([*rows, "the " * 40 + "\tgood"]))
    own_sets.keep(prepare(report), store=store, visitor=visitors.visitor(), settings=read())
    app = watch(opened("bert").id)
    assert "the longest has 42 tokens, but this model reads 17" in said(app)
    assert app.button(key="fine-tune-start").disabled
    assert app.button(key="fine-tune-both").disabled


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_a_fine_tuned_run_says_what_it_trained_and_goes_on_from_there(name, opened, store, watch):
    own = sets.find("example-labels") if name == "bert" else None
    run = store.create(short(tuned(opened(name), own, Part("lora", rank=2)), 4))
    assert execute(run).state == "finished"
    app = watch(run.id)
    assert "LoRA: trains" in said(app)
    assert app.button(key="fine-tune-start")
    assert not [one for one in app.button if one.key == "run-twin"]


def test_steps_rate_and_alpha_begin_with_what_suits_and_go_into_the_run(
    opened, store, watch, busy_queue
):
    run = opened("gpt2")
    usual = tuned(run, None, Part("lora", rank=3))
    app = watch(run.id)
    app.button_group(key="fine-tune-trains").set_value("lora").run()
    app.number_input(key="fine-tune-rank").set_value(3).run()
    steps = app.number_input(key=f"fine-tune-steps-lora-{usual.training.steps}")
    rate, alpha = (app.number_input(key=f"fine-tune-{key}") for key in ("rate-lora", "alpha-3"))
    assert (rate.value, alpha.value) == (usual.training.learning_rate, usual.task.alpha)
    steps.set_value(7).run()
    rate.set_value(0.0125).run()
    app.number_input(key="fine-tune-alpha-3").set_value(5.0).run()
    app.button(key="fine-tune-start").click().run()
    (found,) = [one for one in store.list() if isinstance(one.experiment.task, TunedTextConfig)]
    training, task = found.experiment.training, found.experiment.task
    assert (training.steps, training.learning_rate) == (7, 0.0125)
    assert (task.rank, task.alpha) == (3, 5.0)
