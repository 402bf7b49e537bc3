"""Build and Parameters through the frame, with drafts, runs and models to scale."""

import shlex
from pathlib import Path

import pytest

from pages.app import show
from pages.app.runs import run_time
from pages.app.settings.drafts import Draft
from pages.app.typed import escape
from tests.pages.counted import SLOW, calls_of
from tests.pages.looking import said
from tests.pages.made_runs import damaged_run, made_run
from tests.training.test_loop import experiment
from tfm_core.choices.presets import PRESETS
from tfm_core.data.tasks import data_shape, text_task
from tfm_core.facts.architectures import ARCHITECTURES
from tfm_core.facts.memory import of_run
from tfm_core.facts.parameter_table import parameter_table
from tfm_core.runs.process.execute import execute

PATHS = ["look_inside/build.py", "look_inside/parameters.py"]


@pytest.mark.parametrize("path", [*PATHS, "look_inside/walk.py"])
def test_links_to_damaged_runs_and_given_sizes_say_what_is_shown(open_page, store, path):
    run = damaged_run(store)
    app = open_page(path)
    app.query_params["show"] = "run"
    app.query_params["run"] = run.id
    app.run()
    assert escape(run.problem) in said(app)
    assert "Showing your configuration." in said(app)
    app = open_page(path, show="notebook")
    app.text_area(key="notebook-text").set_value(GIVEN).run()
    assert "2 lines read." in said(app)
    assert "1 line was not understood" in [one.label for one in app.expander]
    again = open_page(path, show="notebook", notebook=app.query_params["notebook"])
    assert again.text_area(key="notebook-text").value == app.query_params["notebook"]


@pytest.mark.parametrize("path", PATHS)
def test_drafts_that_do_not_fit_keep_the_last_one_which_is_laid_out_once(open_page, path):
    app = open_page(path)
    app.run()
    values = {**app.session_state["draft"].values}
    values["model"] = {**values["model"], "n_heads": 7}
    app.session_state["draft"] = Draft(values)
    app.run()
    assert "7 does not divide d" in said(app)
    assert "Showing the last valid configuration" in said(app)
    parameter_table.cache_clear()
    app = open_page(path)
    with calls_of(*SLOW) as calls:
        for name in ("vit-b", "vit-s"):
            app.selectbox(key="model-choice").set_value(name).run()
    is_counted = path == "look_inside/parameters.py"  # from the anatomy, without the model
    assert set(calls) <= (set() if is_counted else {"build_model"})  # it may have been shown before
    with calls_of(*SLOW) as calls:
        for name in ("vit-b", "vit-s", "vit-b"):
            app.selectbox(key="model-choice").set_value(name).run()
    assert not calls


@pytest.mark.parametrize("path", [*PATHS, "learn/training_step.py"])
def test_any_run_can_be_the_model_and_the_link_keeps_it(open_page, store, path):
    digits = made_run(store, name="Digits", experiment=PRESETS["vit-digits"].experiment)
    words = made_run(store, name="Words", experiment=PRESETS["translate"].experiment)
    for run in (digits, words):
        app = open_page(path, show="run", run=run.id)
        picker = app.selectbox(key="model-choice")
        assert picker.value == "run"
        assert f"The run “{run.meta.name}”" in picker.options
        assert app.query_params["run"] == run.id


def test_two_runs_are_compared_and_the_link_keeps_both(open_page, store):
    first = made_run(store, name="Digits", experiment=PRESETS["vit-digits"].experiment)
    second = made_run(store, name="Words", experiment=PRESETS["translate"].experiment)
    app = open_page("look_inside/parameters.py", show="run", run=first.id)
    app.selectbox(key="model-compare").set_value(f"run:{second.id}").run()
    link = {name: app.query_params[name] for name in ("run", "versus")}
    again = open_page("look_inside/parameters.py", **link)
    assert again.selectbox(key="model-compare").value == f"run:{second.id}"
    older = open_page("look_inside/parameters.py", **(link | {"versus": "run"}))
    assert older.selectbox(key="model-compare").value == f"run:{first.id}"


def test_a_model_of_the_study_texts_is_shown_with_its_note(open_page):
    known = ARCHITECTURES["text-encoder"]
    assert known.note in said(open_page("look_inside/build.py", show=known.name))


def test_vocabularies_and_lengths_are_kept_and_what_does_not_fit_is_said(open_page):
    app = open_page("look_inside/build.py")
    app.session_state["draft"] = Draft(PRESETS["translate"].experiment.model_dump())
    app.session_state["build-editor"] = True
    app.run()
    assert "One example of 16 + 18 tokens" in said(app)
    app.number_input(key="setting:src_vocabulary").set_value(10_000)
    app.number_input(key="setting:tgt_vocabulary").set_value(8_000)
    app.number_input(key="setting:src_len").set_value(20)
    app.number_input(key="setting:tgt_len").set_value(25).run()
    assert "One example of 20 + 25 tokens" in said(app)
    link = {name: app.query_params[name] for name in app.query_params}
    assert link["src_vocabulary"] == "10000"
    shown = said(app).partition("** parameters")[0].rpartition("**")[2]
    again = open_page("look_inside/build.py", **link)
    assert said(again).partition("** parameters")[0].endswith(f"**{shown}")
    app.switch_page("look_inside/walk.py").run()
    assert "shapes only, no numbers" in said(app)
    app.switch_page("learn/practice/page.py").run()  # what trains has the sizes of its task
    assert "has only shapes" not in said(app)
    app.switch_page("look_inside/build.py").run()
    app.selectbox(key="model-choice").set_value("gpt2-small").run()
    assert "src_vocabulary" not in app.query_params
    app = open_page("look_inside/build.py")
    app.session_state["draft"] = Draft(PRESETS["gpt-grammar"].experiment.model_dump())
    app.session_state["build-editor"] = True
    app.run()
    app.number_input(key="setting:tgt_len").set_value(65).run()
    assert "65 tokens need 65 position rows" in said(app)
    app.number_input(key="setting:tgt_len").set_value(33).run()
    assert "tokens need" not in said(app)
    assert "One example of 33 tokens" in said(app)
    app = open_page(PATHS[0], show="notebook", notebook="d_model = 10, n_heads = 3")
    assert escape("n_heads 3 does not divide d_model 10") in said(app)
    assert "Showing the last valid model." in said(app)
    app = open_page(PATHS[0], show="notebook")
    app.text_area(key="notebook-text").set_value(GIVEN).run()
    next(one for one in app.button if one.label == "Train a model like this").click().run()
    model = app.session_state["draft"].values["model"]
    assert (model["family"], model["d_model"], model["d_ff"]) == ("encoder-only", 16, 2)


def test_tables_can_be_searched_and_hold_the_names_of_the_link(open_page):
    app = open_page("look_inside/parameters.py")
    app.selectbox(key="model-choice").set_value("gpt2-small").run()
    app.text_input(key="parameters-search").set_value("feed_forward.up").run()
    assert list(app.dataframe[0].value["formula"]) == ["12 x (768 x 3072 + 3072)"]
    found = 12 * (768 * 3072 + 3072)
    assert f"Shown: **{found:,}** of 124,439,808 parameters" in said(app)
    app.toggle(key="parameters-fold").set_value(False).run()
    table = app.dataframe[0].value
    assert (len(table), table["parameters"].sum()) == (12, found)
    app.text_input(key="parameters-search").set_value("nothing like it").run()
    assert "No module has “nothing like it” in its name." in said(app)
    app = open_page(PATHS[0], show="text-encoder", names="notebook")
    app.session_state["build-printed"] = app.session_state["build-code"] = True
    app.run()
    text = "".join(shown_code(app))
    assert "self.attn = MultiHeadAttention()" in text
    assert "(W_Q): Linear(in_features=16, out_features=16, bias=True)" in text


def test_what_goes_into_an_activation_is_shown_where_there_is_one(open_page, store, recorded):
    app = open_page("look_inside/parameters.py", run="recorded-digits")
    app.session_state["parameters-tab"] = "activation"
    app.run()
    assert "Without **GELU**" in said(app)
    assert list(app.table[0].value.index) == ["encoder.layers.0", "encoder.layers.1"]
    additive = PRESETS["translate-additive"].experiment
    app = open_page("look_inside/parameters.py", draft=additive, show="draft")
    app.session_state["parameters-tab"] = "activation"
    app.run()
    assert "no feed-forward layer" in said(app)


@pytest.mark.parametrize(
    ("name", "precision"),
    [("vit-digits", "bf16"), ("captions", "fp32"), ("translate-additive", "bf16")],
)
def test_the_memory_of_a_step_is_the_one_that_the_train_page_says(open_page, name, precision):
    chosen = PRESETS[name].experiment
    chosen = chosen.replace(
        training={**chosen.training.model_dump(), "precision": precision, "optimizer": "sgd"}
    )
    app = open_page()
    app.session_state["draft"] = Draft(chosen.model_dump())
    app.session_state["parameters-tab"] = "compute"
    app.run().switch_page("look_inside/parameters.py").run()
    metrics = {one.label: one.value for one in app.metric}
    table = parameter_table(chosen.model, data_shape(chosen))
    expected = show.size(of_run(chosen, table.total).total)
    assert metrics["Memory of a step"] == expected
    app.switch_page("train/page.py").run()
    run_time.wait()
    app.run()
    needs = next(one for one in app.markdown if "** disk" in one.value)
    assert expected in needs.help
    assert "** disk" in said(app)


def shown_code(app):
    """Every block of code on the page."""
    return [one.value for one in app.code]


@pytest.mark.usefixtures("recorded")
def test_the_file_of_a_run_comes_with_the_command_that_uses_its_weights(open_page):
    app = open_page("look_inside/build.py", show="run", run="recorded-korean")
    app.session_state["build-code"] = True
    app.run()
    (command,) = [text for text in shown_code(app) if text.startswith("python model.py")]
    _python, file, flag, path, sentence = shlex.split(command)
    assert (file, flag) == ("model.py", "--checkpoint")
    assert Path(path).is_file()
    whole = next(text for text in shown_code(app) if text.startswith('"""Encoder-decoder'))
    assert "def translate(self, sentence):" in whole
    assert '"고양이"' in whole
    assert "weights = scores.softmax(-1)" in whole
    assert text_task(PRESETS["translate"].experiment.task).tokenize(sentence)
    app.session_state["build-code"] = True
    app.button_group(key="build-form").set_value("fused").run()
    whole = next(text for text in shown_code(app) if text.startswith('"""Encoder-decoder'))
    assert "F.scaled_dot_product_attention(" in whole
    assert "softmax(-1)" not in whole


@pytest.mark.usefixtures("recorded")
def test_build_follows_the_current_run_and_what_is_edited_is_the_other_choice(open_page):
    app = open_page("look_inside/build.py")
    assert app.selectbox(key="model-choice").value == "run"
    app.selectbox(key="model-choice").set_value("draft").run()
    assert app.query_params["show"] == "draft"
    app.session_state["current_run"] = "recorded-digits"
    app.query_params.clear()
    app.switch_page("look_inside/build.py").run()
    assert app.selectbox(key="model-choice").value == "run"


GIVEN = "d_model = 16, n_heads = 4\nn_layers = 1, d_ff = 2\nand a line of no use"


@pytest.mark.parametrize("path", ["learn/practice/page.py", "learn/training_step.py"])
def test_a_pasted_model_is_no_experiment(open_page, path):
    figure = {"figure": "speed"} if "practice" in path else {}
    app = open_page(path, show="notebook", **figure)
    assert app.selectbox(key="model-choice").value == "notebook"


def test_a_run_with_experts_shows_where_its_tokens_go(open_page, store):
    chosen = experiment("encoder-decoder", "copy", model={"n_experts": 5})
    run = store.create(chosen, name="Experts")
    execute(run)
    app = open_page("look_inside/parameters.py", run=run.id)
    app.session_state["parameters-tab"] = "experts"
    app.run()
    assert len(app.selectbox(key="parameters-layer").options) == 2
    assert "active per token" in said(app)
    assert "gets some of the" in said(app) or "Dead at this step" in said(app)
    app.selectbox(key="parameters-layer").set_value("decoder.layers.0.feed_forward").run()
    app.select_slider(key="head-step").set_value(0).run()
    assert "The share of each expert in each token at step 0" in said(app)


def test_a_link_opens_a_tab_and_says_where_a_model_lacks_it(open_page):
    app = open_page("look_inside/parameters.py", show="mixtral-8x7b", tab="experts")
    assert "Choose a run to see where its tokens go." in said(app)
    app.session_state["parameters-tab"] = "compute"
    app.run()
    assert "compute" in app.query_params["tab"]
    app = open_page("look_inside/parameters.py", show="gpt2-small", tab="experts")
    assert any("tab is “experts” in the link" in each.value for each in app.warning)
