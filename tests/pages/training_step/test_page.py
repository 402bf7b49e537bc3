"""One training step, through the frame: stages, steps and their undo, and a run left alone."""

import re

import pytest

from tests.inspect.constructed import small
from tests.inspect.training_step.test_step import FAMILIES, chosen
from tests.pages.looking import revealed, said
from tests.pages.opening import opened_at
from tests.training.test_loop import experiment
from tfm_core.inspect.training_step.step import scheduled_rate, start, take
from tfm_core.inspect.training_step.wrong_blocks import BLOCK_MISTAKES, MODEL_MISTAKES
from tfm_core.mistakes import MISTAKES, made_in
from tfm_core.runs.store import RECORDED
from tfm_core.training.checkpoints import FILE, save

PAGE = "training_step/page.py"
STAGES = ("batch", "loss", "backward", "update", "after", "ways", "mistakes")


def opened(experiment=None, **query):
    return opened_at(PAGE, draft=experiment or chosen(), **query)


def at_stage(at, stage):
    at.button_group(key="training-step-stage").set_value(stage)
    return at.run()


@pytest.mark.core(2)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_stage_of_every_family_is_drawn(store, family):
    at = opened(chosen(family))
    for stage in STAGES:
        at_stage(at, stage)
        assert not at.exception
        assert not at.error, at.error[0].value
        assert not at.warning, at.warning[0].value


@pytest.mark.parametrize("name", made_in("training"))
def test_every_stage_is_drawn_with_a_mistake_in_training(store, name):
    at = opened(chosen(training={"mistakes": name}))
    for stage in STAGES:
        at_stage(at, stage)
        assert not at.exception
        assert not at.error, at.error[0].value


def test_the_losses_shown_are_those_of_the_step(store):
    trainer = start(chosen())
    _after, taken = take(trainer, scheduled_rate(trainer))
    at = at_stage(opened(), "after")
    assert not at.metric  # what happens is asked first
    revealed(at)
    assert [metric.value for metric in at.metric[:2]] == [
        f"{taken.loss_before:.4g}",
        f"{taken.loss_after:.4g}",
    ]


def test_a_cold_page_takes_a_step_of_plain_sgd_on_a_text_model(store):
    at = opened_at(PAGE)
    assert at.selectbox(key="model-choice").value == "sgd-example"
    at_stage(at, "update")
    lines = [float(number) for number in at.dataframe[0].value.iloc[:, 2]]
    before, gradient, after = lines[0], lines[1], lines[-1]
    assert after == pytest.approx(before - 0.2 * gradient, rel=1e-5)
    assert "**SGD**" in said(at)


def test_a_page_opened_for_what_is_edited_or_for_a_run_does_not_show_the_example(store):
    assert opened().selectbox(key="model-choice").value == "draft"
    run = store.create(chosen())
    assert opened_at(PAGE, run=run.id).selectbox(key="model-choice").value == "run"


def test_after_a_step_the_loss_of_its_batch_is_said_before_and_after(store):
    trainer = start(chosen())
    _after, taken = take(trainer, scheduled_rate(trainer))
    at = opened()
    at.button(key="training-step-take").click().run()
    assert f"**{taken.loss_before:.4g} → {taken.loss_after:.4g}** nats" in said(at)
    assert "first weights" not in said(at)


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
    assert not at.exception


def test_a_part_of_the_graph_is_opened(store):
    at = at_stage(opened(), "backward")
    closed = at.get("graphviz_chart")[0].proto.spec
    assert "encoder.layers.0.self_attention" not in closed
    at.selectbox(key="training-step-open").set_value("encoder.layers.0").run()
    assert not at.exception
    assert "encoder.layers.0.self_attention" in at.get("graphviz_chart")[0].proto.spec


def test_a_huge_rate_overshoots_and_says_so(store):
    at = revealed(at_stage(opened(), "after"))
    at.toggle(key="training-step-follow").set_value(False).run()
    at.select_slider(key="training-step-rate").set_value(10.0).run()
    assert not at.exception
    assert "overshoots" in at.warning[0].value


def test_the_run_is_untouched_and_its_memory_is_there(store):
    experiment = small(chosen(model={"dropout": 0.0}))
    run = store.create(experiment)
    trained = start(experiment)
    trained, _taken = take(trained, 0.01)
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
    assert not at.exception
    assert (folder / FILE).read_bytes() == before


def test_a_published_model_is_refused_in_a_sentence(store):
    at = opened()
    at.selectbox(key="model-choice").set_value("gpt2-small").run()
    assert "only shapes" in at.info[0].value


def test_a_model_that_is_too_large_is_refused_in_a_sentence(store):
    at = opened(chosen("encoder-only", model={"d_model": 1024, "n_heads": 4, "n_layers": 4}))
    assert "at most 5,000,000 parameters" in at.error[0].value
    assert not at.exception


@pytest.mark.wide
def test_a_finished_run_opens_on_its_first_weights_where_a_mistake_shows(store, monkeypatch):
    monkeypatch.setattr(store, "recorded", RECORDED)
    at = at_stage(opened(run="recorded-korean"), "mistakes")
    shares = re.findall(r"([\d.]+)\s% of the answers are wrong", said(at))
    assert float(shares[0]) > 50
    norms = re.search(r"norm ([\d.]+) instead of (\d+\.\d+)", said(at))
    assert float(norms[1]) < float(norms[2]) / 2
    at.button_group(key="training-step-weights").set_value("last").run()
    assert at.query_params["weights"] == "last"
    assert float(re.findall(r"([\d.]+)\s% of the answers are wrong", said(at))[0]) < 5


def test_a_draft_has_no_choice_of_weights(store):
    at = opened()
    assert not [one for one in at.button_group if one.key == "training-step-weights"]


def test_the_mistakes_in_a_block_say_their_parameters_and_outputs(store):
    at = at_stage(opened(), "mistakes")
    headings = {heading.value for heading in at.subheader}
    names = {*BLOCK_MISTAKES, *MODEL_MISTAKES} - {"linear-score"}  # of recurrent models
    names |= {"argmax-before-loss", "softmax-before-loss"}
    assert {MISTAKES[name].label for name in names} <= headings
    assert {"padding-on-queries", "float-mask", "dropout-after-norm"} <= {*MODEL_MISTAKES}
    assert "RuntimeError: self must be a matrix" in [block.value for block in at.code]


def test_a_layer_stands_as_a_module_and_as_a_function(open_page):
    app = open_page(PAGE, stage="ways")
    assert not app.exception
    code = [one.value for one in app.code]
    assert any("linear = nn.Linear(4, 3)" in text for text in code)
    assert any("z = F.relu(F.linear(x, weight, bias))" in text for text in code)
    assert "weight (3, 4)\nbias (3,)\n[]" in "\n".join(code)
    assert not [text for text in code if "type: ignore" in text]


def test_a_language_model_has_its_own_names_here(store):
    at = at_stage(opened(experiment("decoder-only", "grammar")), "update")
    assert not at.exception
    options = at.selectbox(key="training-step-weight").options
    assert options[0] == "token_embedding.table.weight"
    assert not [name for name in options if "src" in name or "tgt" in name]


def test_what_stands_behind_a_number_of_muon_is_its_matrix_and_the_rest_is_adamws(store):
    at = at_stage(opened(experiment("decoder-only", training={"optimizer": "muon"})), "update")
    assert "**Muon**, learning rate" in said(at)  # it opens on a matrix that Muon moves
    for name in ("decoder.layers.0.feed_forward.up.weight", "output.weight"):
        (own,) = [one for one in at.selectbox(key="training-step-weight").options if name in one]
        at.selectbox(key="training-step-weight").select(own).run()
        assert not at.exception
        assert "by hand" in at.success[0].value
        is_hidden = name != "output.weight"
        assert ("**Muon**, learning rate" in said(at)) is is_hidden
        assert ("Muon moves hidden matrices only" in said(at)) is not is_hidden
        captions = " ".join(one.value for one in at.caption)
        assert ("5 Newton-Schulz iterations" in captions) is is_hidden
        rows = list(at.dataframe[0].value.iloc[:, 0])
        assert rows.count("X") == (6 if is_hidden else 0)
