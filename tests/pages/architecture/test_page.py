"""Build and Parameters through the frame, with drafts, runs and models to scale."""

import re
import shlex
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from pages.ui import show
from pages.ui.runs import run_time, runs_access
from pages.ui.settings.drafts import Draft
from pages.ui.typed import escape
from tests.pages.counted import SLOW, calls_of
from tests.pages.looking import figure_of, part_of, said
from tests.pages.made_runs import damaged_run, made_run
from tests.pages.opening import links
from tests.training.test_loop import experiment
from tfm_core.data.shape import data_shape
from tfm_core.data.text import text_task
from tfm_core.facts.architectures import ARCHITECTURES, FROM_TEXTS
from tfm_core.facts.compute import macs, unasked
from tfm_core.facts.memory import of_run
from tfm_core.facts.parameter_table import parameter_table
from tfm_core.presets import PRESETS
from tfm_core.runs.process.execute import execute
from tfm_core.runs.store import RECORDED, RunStore

PATHS = ["architecture/build.py", "architecture/parameters.py"]


@pytest.mark.parametrize(
    ("path", "name"),
    [*zip(PATHS * 2, ["gpt2-xl", "vit-h", "bert-base", "transformer-big"], strict=True)],
)
def test_models_to_scale_show_their_count(open_page, path, name):
    app = open_page(path)
    app.selectbox(key="model-choice").set_value(name).run()
    assert not app.exception
    known = ARCHITECTURES[name]
    if known.n_parameters:
        assert f"{known.n_parameters:,}" in said(app)
        assert "the published count" in said(app)


@pytest.mark.parametrize("path", [*PATHS, "walk/page.py"])
def test_a_link_to_a_damaged_run_says_what_is_wrong_with_it(open_page, store, path):
    run = damaged_run(store)
    app = open_page(path)
    app.query_params["show"] = "run"
    app.query_params["run"] = run.id
    app.run()
    assert not app.exception
    assert escape(run.problem) in said(app)
    assert "Showing the configuration being edited." in said(app)


FAMILIES = {preset.experiment.model.family: name for name, preset in PRESETS.items()}


@pytest.mark.parametrize("name", FAMILIES.values())
def test_a_preset_of_every_family_can_be_looked_at(open_page, name):
    app = open_page(PATHS[0])
    app.session_state["draft"] = Draft(PRESETS[name].experiment.model_dump())
    app.run()
    assert not app.exception
    app.switch_page(PATHS[1]).run()
    assert not app.exception


@pytest.mark.parametrize("path", PATHS)
def test_a_draft_that_does_not_fit_is_said_and_the_last_one_shown(open_page, path):
    app = open_page(path)
    app.run()
    values = {**app.session_state["draft"].values}
    values["model"] = {**values["model"], "n_heads": 7}
    app.session_state["draft"] = Draft(values)
    app.run()
    assert not app.exception
    assert "7 does not divide d" in said(app)
    assert "Showing the last valid configuration" in said(app)


@pytest.mark.parametrize("path", [PATHS[1], "walk/page.py", "training_step/page.py"])
def test_any_run_can_be_the_model_and_the_link_keeps_it(open_page, store, path):
    digits = made_run(store, name="Digits", experiment=PRESETS["vit-digits"].experiment)
    words = made_run(store, name="Words", experiment=PRESETS["translate"].experiment)
    app = open_page(path)
    picker = app.selectbox(key="model-choice")
    assert {"The run “Digits”", "The run “Words”"} < set(picker.options)
    picker.set_value(f"run:{digits.id}").run()
    assert not app.exception
    assert app.selectbox(key="model-choice").value == "run"
    assert app.query_params["show"] == "run"
    assert app.query_params["run"] == digits.id
    again = open_page(path, show="run", run=words.id)
    assert again.selectbox(key="model-choice").value == "run"
    assert "The run “Words”" in again.selectbox(key="model-choice").options
    assert f"run:{digits.id}" not in again.query_params["show"]


def test_two_runs_are_compared_and_the_link_keeps_both(open_page, store):
    first = made_run(store, name="Digits", experiment=PRESETS["vit-digits"].experiment)
    second = made_run(store, name="Words", experiment=PRESETS["translate"].experiment)
    app = open_page("architecture/parameters.py", show="run", run=first.id)
    app.selectbox(key="model-compare").set_value(f"run:{second.id}").run()
    assert not app.exception
    link = {name: app.query_params[name] for name in ("show", "run", "versus")}
    again = open_page("architecture/parameters.py", **link)
    assert again.selectbox(key="model-compare").value == f"run:{second.id}"
    older = open_page("architecture/parameters.py", **(link | {"versus": "run"}))
    assert older.selectbox(key="model-compare").value == f"run:{first.id}"


@pytest.mark.parametrize("number", range(len(FROM_TEXTS)))
def test_every_model_of_the_study_texts_is_shown_with_its_note(open_page, number):
    known = ARCHITECTURES[FROM_TEXTS[number].name]
    path = [*PATHS, "walk/page.py"][number % 3]
    app = open_page(path, show=known.name)
    assert not app.exception
    assert not app.error
    assert known.label in app.selectbox(key="model-choice").options
    if path in PATHS:
        assert known.note in said(app)
        assert f"**{parameter_table(known.model, known.shape).total:,}** parameters" in said(app)
    else:
        is_small = parameter_table(known.model, known.shape).total < 1_000_000
        assert ("shapes only, no numbers" in said(app)) != is_small
        assert "published model" not in said(app)


def test_vocabularies_and_lengths_can_be_typed_and_the_link_keeps_them(open_page):
    app = open_page("architecture/build.py")
    app.session_state["draft"] = Draft(PRESETS["translate"].experiment.model_dump())
    app.session_state["build-editor"] = True
    app.run()
    assert "One example of 16 + 18 tokens" in said(app)
    app.number_input(key="setting:src_vocabulary").set_value(10_000)
    app.number_input(key="setting:tgt_vocabulary").set_value(8_000)
    app.number_input(key="setting:src_len").set_value(20)
    app.number_input(key="setting:tgt_len").set_value(25).run()
    assert not app.exception
    assert "One example of 20 + 25 tokens" in said(app)
    link = {name: app.query_params[name] for name in app.query_params}
    assert link["src_vocabulary"] == "10000"
    shown = said(app).partition("** parameters")[0]
    again = open_page("architecture/build.py", **link)
    assert said(again).partition("** parameters")[0] == shown
    app.switch_page("walk/page.py").run()
    assert not app.exception
    assert "shapes only, no numbers" in said(app)
    app.switch_page("speed/page.py").run()  # what trains has the sizes of its task
    assert not app.exception
    assert "has only shapes" not in said(app)
    app.switch_page("architecture/build.py").run()
    app.selectbox(key="model-choice").set_value("gpt2-small").run()
    assert "src_vocabulary" not in app.query_params


def test_lengths_that_a_learned_table_cannot_hold_are_said_beside_them(open_page):
    app = open_page("architecture/build.py")
    app.session_state["draft"] = Draft(PRESETS["gpt-grammar"].experiment.model_dump())
    app.session_state["build-editor"] = True
    app.run()
    app.number_input(key="setting:tgt_len").set_value(65).run()
    assert not app.exception
    assert "65 tokens need 65 rows" in said(app)
    app.number_input(key="setting:tgt_len").set_value(33).run()
    assert "tokens need" not in said(app)
    assert "One example of 33 tokens" in said(app)


def test_two_models_are_compared_in_words(open_page):
    app = open_page("architecture/parameters.py")
    app.selectbox(key="model-choice").set_value("gpt2-small").run()
    app.selectbox(key="model-compare").set_value("gpt2-medium").run()
    assert not app.exception
    assert "Layers: 24, not 12." in said(app)


def test_the_table_can_be_searched(open_page):
    app = open_page("architecture/parameters.py")
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


def test_a_recorded_run_shows_its_weights_before_and_after(open_page, store, monkeypatch, tmp_path):
    monkeypatch.setattr(runs_access.store(), "recorded", RunStore(tmp_path / "other").recorded)
    app = open_page("architecture/parameters.py", run="recorded-digits")
    app.session_state["parameters-tab"] = "Weights"
    app.run()
    assert not app.exception
    assert app.selectbox(key="model-choice").value == "run"
    assert app.selectbox(key="parameters-weights").options
    assert "Standard deviation:" in said(app)


def test_a_recorded_run_shows_what_goes_into_its_activation(open_page, store, monkeypatch):
    monkeypatch.setattr(runs_access.store(), "recorded", RECORDED)
    app = open_page("architecture/parameters.py", run="recorded-digits")
    app.session_state["parameters-tab"] = "Activation"
    app.run()
    assert not app.exception
    assert "**GELU** keeps" in said(app)
    assert list(app.table[0].value.index) == ["encoder.layers.0", "encoder.layers.1"]


def test_a_model_without_a_feed_forward_layer_has_no_activation(open_page):
    app = open_page()
    app.session_state["draft"] = Draft(PRESETS["translate-additive"].experiment.model_dump())
    app.session_state["parameters-tab"] = "Activation"
    app.run().switch_page("architecture/parameters.py").run()
    assert not app.exception
    assert "no feed-forward layer" in said(app)


@pytest.mark.parametrize("path", PATHS)
def test_a_model_that_was_shown_is_not_laid_out_again(open_page, path):
    parameter_table.cache_clear()
    app = open_page(path)
    with calls_of(*SLOW) as calls:
        for name in ("vit-b", "vit-s"):
            app.selectbox(key="model-choice").set_value(name).run()
    is_counted = path == "architecture/parameters.py"  # from the anatomy, without the model
    assert set(calls) <= (set() if is_counted else {"build_model"})  # it may have been shown before
    with calls_of(*SLOW) as calls:
        for name in ("vit-b", "vit-s", "vit-b"):
            app.selectbox(key="model-choice").set_value(name).run()
    assert not app.exception
    assert not calls


def test_scores_grow_with_the_square_of_the_length(open_page):
    app = open_page("architecture/parameters.py", tab="compute")
    lines = figure_of(app, "costs-growth")["data"]
    (scores,) = [line for line in lines if line["name"] == "scores"]
    lengths, costs = scores["x"], scores["y"]
    assert costs[1] / costs[0] == pytest.approx((lengths[1] / lengths[0]) ** 2)


def test_the_first_blocks_of_a_deep_model_are_drawn_one_by_one(open_page):
    app = open_page("architecture/build.py", show="gpt2-xl")
    assert "Decoder blocks 1 to 48: self-attention" in part_of(app, "diagram").json
    app.toggle(key="build-unfolded").set_value(True).run()
    sent = part_of(app, "diagram").json
    assert "Decoder block 3: self-attention" in sent
    assert "Decoder blocks 4 to 48" in sent


def test_a_block_of_a_captioner_leads_to_where_its_words_look(open_page):
    app = open_page(
        "architecture/build.py", **{"model.family": "captioner", "task.name": "captions"}
    )
    app.selectbox(key="build-block-list").select("Decoder block 1: cross-attention").run()
    links = {one.proto.label: one.proto for one in app.get("page_link")}
    assert "step=cross-attention" in links["Step 19: Decoder: cross-attention"].query_string


def test_every_tab_is_drawn_when_it_is_open(open_page):
    for tab in ("Parameters", "Compute and memory", "Weights", "Activation"):
        app = open_page("architecture/parameters.py")
        app.session_state["parameters-tab"] = tab
        app.run()
        assert not app.exception
        assert len(app.metric) == (4 if tab == "Compute and memory" else 0)


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
    app.session_state["parameters-tab"] = "Compute and memory"
    app.run().switch_page("architecture/parameters.py").run()
    metrics = {one.label: one.value for one in app.metric}
    table = parameter_table(chosen.model, data_shape(chosen))
    expected = show.size(of_run(chosen, table.total).total)
    assert metrics["Memory of a step"] == expected
    app.switch_page("train/page.py").run()
    run_time.wait()
    app.run()
    assert not app.exception
    needs = next(one for one in app.markdown if "** disk" in one.value)
    assert expected in needs.help
    assert "** disk" in said(app)


def test_what_a_step_costs_follows_checkpointing_patience_and_the_cls_token(open_page):
    chosen = PRESETS["vit-digits"].experiment
    chosen = chosen.replace(
        model={**chosen.model.model_dump(), "pooling": "cls"},
        training={**chosen.training.model_dump(), "checkpointing": True, "patience": 3},
    )
    app = open_page()
    app.session_state["draft"] = Draft(chosen.model_dump())
    app.session_state["parameters-tab"] = "Compute and memory"
    app.run().switch_page("architecture/parameters.py").run()
    assert not app.exception
    metrics = {one.label: one for one in app.metric}
    table = parameter_table(chosen.model, data_shape(chosen))
    assert metrics["Memory of a step"].value == show.size(of_run(chosen, table.total).total)
    step, shape = metrics["Training step, in FLOPs"], data_shape(chosen)
    done = sum(macs(chosen.model, shape).values()) - unasked(chosen.model, shape)
    assert step.value == show.count(4 * 2 * chosen.training.batch_size * done)
    assert "With checkpointing, blocks run forward twice." in step.help
    assert "only CLS is read" in step.help


@pytest.mark.parametrize("path", PATHS)
def test_a_link_opens_the_model_it_names(open_page, path):
    app = open_page(path, show="gpt2-medium")
    assert app.selectbox(key="model-choice").value == "gpt2-medium"
    app.selectbox(key="model-choice").set_value("vit-b").run()
    assert app.query_params["show"] == "vit-b"
    app.selectbox(key="model-choice").set_value("draft").run()
    assert "show" not in app.query_params
    assert app.query_params["preset"].startswith("vit-digits")


def test_a_link_with_settings_opens_them_and_says_which_cannot_be(open_page):
    query = {"model.family": "decoder-only", "task.name": "copy", "model.d_model": "96"}
    app = open_page(PATHS[1], **query, **{"model.n_heads": "many"})
    assert not app.exception
    assert app.session_state["draft"].values["model"]["d_model"] == 96
    assert "must be a whole number" in said(app)


@pytest.mark.parametrize("path", PATHS)
def test_a_link_to_a_run_shows_it_and_another_choice_leaves_it_out(
    open_page, store, monkeypatch, tmp_path, path
):
    monkeypatch.setattr(runs_access.store(), "recorded", RunStore(tmp_path / "other").recorded)
    app = open_page(path, run="recorded-digits")
    assert app.selectbox(key="model-choice").value == "run"
    assert app.query_params["show"] == "run"
    app.selectbox(key="model-choice").set_value("gpt2-small").run()
    assert "run" not in app.query_params
    app.run()
    assert app.selectbox(key="model-choice").value == "gpt2-small"


def test_a_link_to_an_unknown_model_is_a_sentence(open_page):
    app = open_page(PATHS[0], show="gpt9")
    assert not app.exception
    assert "show is “gpt9” in the link" in app.warning[0].value


@pytest.mark.parametrize("name", [*ARCHITECTURES][::3])
def test_blocks_of_published_models_can_be_picked(open_page, name):
    app = open_page("architecture/build.py", show=name)
    parts = app.selectbox(key="build-block-list")
    for title in parts.options[:: max(1, len(parts.options) // 6)]:
        app.selectbox(key="build-block-list").select(title).run()
        assert not app.exception
        assert app.code


def test_the_link_to_copy_opens_the_page_as_it_is(open_page):
    app = open_page("architecture/parameters.py", show="gpt2-small", versus="vit-b")
    query = parse_qs(urlsplit(links(app)[0]).query)
    assert query == {"show": ["gpt2-small"], "versus": ["vit-b"]}


def shown_code(app):
    """Every block of code on the page."""
    return [one.value for one in app.code]


@pytest.mark.parametrize("name", ["gpt2-small", "vit-b"])
def test_the_structure_is_printed_beside_the_diagram(open_page, name):
    app = open_page("architecture/build.py", show=name)
    app.session_state["build-printed"] = True
    app.run()
    assert not app.exception
    (text,) = [text for text in shown_code(app) if text.startswith("Model(")]
    assert f"({'decoder' if name == 'gpt2-small' else 'encoder'}): Stack(" in text
    assert "(0-11): 12 x Block(" in text
    assert not re.search("src|tgt|source|target", text)


@pytest.fixture
def recorded(store, monkeypatch, tmp_path):
    """The runs that come with the app, in the store of the pages."""
    monkeypatch.setattr(runs_access.store(), "recorded", RunStore(tmp_path / "other").recorded)


@pytest.mark.usefixtures("recorded")
def test_the_file_of_a_run_comes_with_the_command_that_uses_its_weights(open_page):
    app = open_page("architecture/build.py", show="run", run="recorded-korean")
    app.session_state["build-code"] = True
    app.run()
    assert not app.exception
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
    app.button_group(key="build-attention-form").set_value("fused").run()
    whole = next(text for text in shown_code(app) if text.startswith('"""Encoder-decoder'))
    assert "F.scaled_dot_product_attention(" in whole
    assert "softmax(-1)" not in whole


@pytest.mark.usefixtures("recorded")
def test_a_run_of_pictures_offers_its_mean_and_a_picture(open_page):
    app = open_page("architecture/build.py", show="run", run="recorded-digits")
    app.session_state["build-code"] = True
    app.run()
    assert not app.exception
    assert "pixel statistics" in said(app)
    assert any("MEAN, STD = [0.13" in text for text in shown_code(app))
    labels = [one.proto.label for one in app.get("download_button")]
    assert "A picture to try" in labels
    assert any(label.startswith("Weights (") for label in labels)


def test_gpt2_has_its_own_names_in_the_table(open_page):
    app = open_page("architecture/parameters.py", show="gpt2-small")
    modules = list(app.dataframe[0].value["module"])
    assert modules[0] == "token_embedding.table"
    assert not [name for name in modules if "src" in name or "tgt" in name]
    tied = dict(zip(modules, app.dataframe[0].value["tied to"], strict=True))
    assert tied["output"] == "token_embedding.table.weight"


@pytest.mark.usefixtures("recorded")
def test_build_follows_the_current_run_and_what_is_edited_is_the_other_choice(open_page):
    app = open_page("architecture/build.py")
    assert app.selectbox(key="model-choice").value == "draft"
    app.session_state["current_run"] = "recorded-korean"
    app.query_params.clear()
    app.switch_page("architecture/build.py").run()
    assert app.selectbox(key="model-choice").value == "run"
    app.selectbox(key="model-choice").set_value("draft").run()
    assert app.selectbox(key="model-choice").value == "draft"
    assert not app.exception


def test_what_one_block_has_stands_beside_what_all_of_them_have(open_page):
    app = open_page("architecture/build.py", show="transformer-base")
    model = ARCHITECTURES["transformer-base"].model
    each = 4 * (model.d_model**2 + model.d_model)
    assert f"**{6 * each:,} parameters** in all 6 blocks, {each:,} in each" in said(app)
    (drawn,) = [
        part.proto.json
        for part in app.get("bidi_component")
        if f"{each:,} parameters per block" in part.proto.json
    ]
    assert f"{6 * each:,} parameters" not in drawn


def test_the_title_comes_before_everything_that_can_be_chosen(open_page):
    app = open_page("architecture/build.py")
    kinds = [element.type for element in app.main]
    assert kinds.index("title") < kinds.index("selectbox")


def test_the_table_has_the_names_of_the_link_and_of_the_switch(open_page):
    app = open_page(PATHS[1], show="text-encoder", names="notebook")
    assert app.query_params["names"] == "notebook"
    assert "encoder.layers.0–2.attn.W_Q" in list(app.dataframe[0].value["module"])
    app.button_group(key="names-scheme").set_value("transformer-lens").run()
    assert not app.exception
    assert app.query_params["names"] == "transformer-lens"
    assert "blocks.0–2.attn.W_Q" in list(app.dataframe[0].value["module"])


@pytest.mark.parametrize("path", [*PATHS, "walk/page.py"])
def test_a_link_with_unknown_names_is_said(open_page, path):
    app = open_page(path, show="text-encoder", names="mine")
    assert not app.exception
    assert "names is “mine” in the link" in " ".join(one.value for one in app.warning)


def test_the_file_and_the_print_are_in_the_names_that_are_chosen(open_page):
    app = open_page(PATHS[0], show="text-encoder", names="notebook")
    app.session_state["build-printed"] = app.session_state["build-code"] = True
    app.run()
    text = "".join(shown_code(app))
    assert "self.attn = MultiHeadAttention()" in text
    assert "(W_Q): Linear(in_features=16, out_features=16, bias=True)" in text


PASTED = """
EncoderBlock(
  (attn): MultiHeadAttention(
    (W_Q): Linear(in_features=16, out_features=16, bias=True)
    (W_K): Linear(in_features=16, out_features=16, bias=True)
    (W_V): Linear(in_features=16, out_features=16, bias=True)
    (W_O): Linear(in_features=16, out_features=16, bias=True)
  )
  (addnorm1): AddNorm(
    (norm): LayerNorm((16,), eps=1e-05, elementwise_affine=True)
  )
  (fc1): Linear(in_features=16, out_features=2, bias=True)
  (fc2): Linear(in_features=2, out_features=16, bias=True)
  (addnorm2): AddNorm(
    (norm): LayerNorm((16,), eps=1e-05, elementwise_affine=True)
  )
)
n_heads = 4
and a line of no use
"""


@pytest.mark.parametrize("path", [*PATHS, "walk/page.py"])
def test_a_pasted_print_is_shown_counted_and_its_differences_said(open_page, path):
    app = open_page(path, show="notebook")
    app.text_area(key="notebook-text").set_value(PASTED).run()
    assert not app.exception
    assert "**1,234** parameters: 1,600 more here" in said(app)
    labels = [one.label for one in app.expander]
    assert {"3 differences", "1 line was not understood"} <= set(labels)
    assert "here an embedding of 100 words (1,600 parameters) is added" in said(app)
    again = open_page(path, show="notebook", notebook=app.query_params["notebook"])
    assert not again.exception
    assert again.text_area(key="notebook-text").value == app.query_params["notebook"]


def test_a_pasted_text_that_says_no_model_keeps_the_last_one(open_page):
    app = open_page(PATHS[0], show="notebook", notebook="d_model = 10, n_heads = 3")
    assert not app.exception
    assert escape("n_heads 3 does not divide d_model 10") in said(app)
    assert "Showing the last one that could be read." in said(app)
    assert "**5,302** parameters" in said(app)


def test_a_pasted_model_is_trained_like_any_other(open_page):
    app = open_page(PATHS[0], show="notebook")
    app.text_area(key="notebook-text").set_value(PASTED).run()
    next(one for one in app.button if one.label == "Train one like it").click().run()
    assert not app.exception
    model = app.session_state["draft"].values["model"]
    assert (model["family"], model["d_model"], model["d_ff"]) == ("encoder-only", 16, 2)


@pytest.mark.parametrize("path", ["speed/page.py", "training_step/page.py"])
def test_a_pasted_model_is_no_experiment(open_page, path):
    app = open_page(path, show="notebook")
    assert not app.exception
    assert app.selectbox(key="model-choice").value == "notebook"


def test_a_run_with_experts_shows_where_its_tokens_go(open_page, store):
    chosen = experiment("encoder-decoder", "copy", model={"n_experts": 5})
    run = store.create(chosen, name="Experts")
    execute(run)
    app = open_page("architecture/parameters.py", run=run.id)
    app.session_state["parameters-tab"] = "Experts"
    app.run()
    assert not app.exception
    assert len(app.selectbox(key="experts-layer").options) == 2
    assert "active per token" in said(app)
    assert "gets some of the" in said(app) or "Dead at this step" in said(app)
    app.selectbox(key="experts-layer").set_value("decoder.layers.0.feed_forward").run()
    app.select_slider(key="experts-step").set_value(0).run()
    assert not app.exception
    assert "Step 0: the share of each expert" in said(app)


def test_a_link_opens_a_tab_and_says_where_a_model_lacks_it(open_page):
    app = open_page("architecture/parameters.py", show="mixtral-8x7b", tab="experts")
    assert "Choose a run to see where its tokens go." in said(app)
    app.session_state["parameters-tab"] = "Compute and memory"
    app.run()
    assert "compute" in app.query_params["tab"]
    app = open_page("architecture/parameters.py", show="gpt2-small", tab="experts")
    assert not app.exception
    assert any("tab is “experts” in the link" in each.value for each in app.warning)


def test_a_model_with_experts_and_no_run_asks_for_one(open_page):
    app = open_page("architecture/parameters.py")
    app.selectbox(key="model-choice").set_value("mixtral-8x7b").run()
    assert "12,879,925,248 active per token" in said(app)
    app.session_state["parameters-tab"] = "Experts"
    app.run()
    assert "Choose a run to see where its tokens go." in said(app)
