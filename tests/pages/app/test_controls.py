"""The controls of the Train page: generated from the configs, kept in a draft, said in a link."""

import re

import pytest
from streamlit.testing.v1 import AppTest

from pages.app import state
from pages.app.address import parameters
from pages.app.runs import run_time
from pages.app.settings import controls, drafts
from pages.app.settings.controls import KEY
from pages.app.settings.drafts import Draft
from pages.app.settings.fields import settings_of
from tests.pages.looking import said
from tfm_core.choices.config import (
    FAMILIES,
    IMAGE_TASKS,
    MODEL_CONFIGS,
    TEXT_TASKS,
    TrainingConfig,
)
from tfm_core.choices.config.codec import default_sections
from tfm_core.choices.mistakes import MISTAKES
from tfm_core.choices.presets import PRESETS
from tfm_core.choices.variants.training import OPTIMISERS

FIRST_MODEL = PRESETS[state.FIRST_PRESET].experiment.model


@pytest.fixture
def train(open_page):
    """Open the Train page in a session of its own, with a link's query, and unfold all of it."""

    def opened(query: dict[str, str] | None = None) -> AppTest:
        app = open_page("train/page.py", **(query or {}))
        app.session_state["all-settings"] = True
        for section in ("model", "task", "training"):
            app.session_state[f"advanced-{section}"] = True
        app.run()
        return app

    return opened


def keys_of(app: AppTest) -> set[str]:
    kinds = ("number_input", "selectbox", "multiselect", "toggle", "button_group")
    found = {widget.key for kind in kinds for widget in app.get(kind) if widget.key}
    return {key.partition("@")[0] for key in found}


def key(app: AppTest, path: str) -> str:
    """Return the name of a setting's control in the edition that is on the screen."""
    return controls.key_of(path, app.session_state["draft"])


def preset_box(app: AppTest):
    (box,) = [one for one in app.selectbox if str(one.key).startswith("configure-preset")]
    return box


def start_button(app: AppTest):
    return app.button(key="start")


ALL_ACT = {"n_experts": 3, "position": "rotary", "rope_scaling": "llama3", "window": 3}
"""Values with which every setting acts that needs another."""


def test_every_field_has_a_control_unless_it_changes_nothing(train):
    for family in FAMILIES:
        own = MODEL_CONFIGS[family].model_fields
        needed = {
            f"model.{name}": value
            for name, value in ALL_ACT.items()
            if name in own and (name != "position" or "rope_theta" in own)
        }
        app = train({"model.family": family, **needed})
        fields = {f"model.{name}" for name in own}
        if family == "encoder-only":
            fields -= {"model.pooling"}  # only where the task asks for one label
        fields |= {f"training.{name}" for name in TrainingConfig.model_fields} | {
            "task.name",
            "seed",
        }
        assert {KEY + field for field in fields} <= keys_of(app)
    base, length = KEY + "model.rope_theta", KEY + "model.rope_original_len"
    assert not {base, length} & keys_of(train())
    rotary = {"model.position": "rotary"}
    assert {base, length} & keys_of(train(rotary)) == {base}
    assert {base, length} <= keys_of(train({**rotary, "model.rope_scaling": "llama3"}))
    assert "rope\\_theta is “3” in the link, but must be from 10" in said(
        train({"model.rope_theta": "3"})
    )


def test_every_field_of_a_task_has_a_control():
    for task in [*TEXT_TASKS, *IMAGE_TASKS]:
        family = "vit" if task in IMAGE_TASKS else "encoder-only"
        fields = {f"task.{name}" for name in default_sections(family, task)["task"]}
        shown = {setting.path for setting in settings_of(family, task)}
        calculates = task in IMAGE_TASKS or task == "modular-addition"
        without = set() if calculates else {"task.operation"}
        assert fields - shown == {"task.kind", "task.name"} | without


def test_an_impossible_combination_is_said_at_its_control_and_start_waits(train):
    app = train()
    assert not start_button(app).disabled
    app.number_input(key=key(app, "model.n_heads")).set_value(5).run()
    assert start_button(app).disabled
    assert f"n\\_heads 5 does not divide d\\_model {FIRST_MODEL.d_model}" in said(app)
    assert "Can't start yet\\: fix n\\_heads" in said(app)
    app.number_input(key=key(app, "model.n_heads")).set_value(FIRST_MODEL.n_heads).run()
    assert not start_button(app).disabled


def test_a_link_with_bad_values_says_each_and_keeps_the_good_ones(train):
    app = train(
        {
            "model.family": "vit",
            "model.d_model": "wide",
            "training.learning_rate": "99",
            "model.stem": "concrete",
            "model.sparkle": "1",
            "model.n_layers": "5",
            "training.steps": "99999999999",
        }
    )
    words = said(app)
    for sentence in (
        "model.d\\_model is “wide” in the link, but must be a whole number; 64 is shown.",
        "learning\\_rate is “99” in the link, but must be from 0 to 10; 0.004 is shown.",
        "steps is “99999999999” in the link, but must be from 1 to 1,000,000; ",
        "is “concrete” in the link, but must be one of patches, conv, conv-stack; patches is shown",
        "There is no setting model.sparkle.",
    ):
        assert sentence in words
    assert app.number_input(key=key(app, "model.n_layers")).value == 5


@pytest.mark.parametrize(
    ("query", "sentence", "family", "task"),
    [
        ({"model.family": "rnn"}, "vit is shown", "vit", "mnist-5000"),
        ({"task.name": "chess"}, "mnist-5000 is shown", "vit", "mnist-5000"),
        (
            {"model.family": "decoder-only", "task.name": "mnist"},
            "english-korean is shown",
            "decoder-only",
            "english-korean",
        ),
        ({"task.name": "sort"}, "", "encoder-decoder", "sort"),
    ],
)
def test_a_link_with_an_unknown_family_or_task_falls_back(query, sentence, family, task):
    values, sentences = drafts.draft_of_link(query)
    assert (drafts.family_of(values), drafts.task_of(values)) == (family, task)
    assert sentence in " ".join(sentences)
    assert bool(sentences) == bool(sentence)


def test_no_number_of_a_link_gets_out_of_its_range():
    for text in ["nan", "inf", "-1", "1e9", "", "x" * 500]:
        values, sentences = drafts.draft_of_link(
            {"training.learning_rate": text, "model.d_model": text}
        )
        assert len(sentences) == 2
        assert drafts.check(Draft(values)).experiment is not None


def test_a_changed_setting_is_marked_and_can_be_reset_alone_or_with_all(train):
    app = train()
    app.selectbox(key="configure-preset").set_value("reverse").run()
    assert not [one for one in app.button if str(one.key).startswith("reset:")]
    app.number_input(key=key(app, "model.d_model")).set_value(128).run()
    app.number_input(key=key(app, "training.steps")).set_value(90).run()
    assert app.button(key="reset:model.d_model").label == "Reset d\\_model to 64"
    assert "d\\_model 64 → 128" in said(app)
    app.button(key="reset:model.d_model").click().run()
    assert app.number_input(key=key(app, "model.d_model")).value == 64
    assert app.number_input(key=key(app, "training.steps")).value == 90
    app.button(key="configure-reset").click().run()
    assert app.number_input(key=key(app, "training.steps")).value == 700
    assert not [one for one in app.button if str(one.key).startswith("reset:")]


def test_changes_are_taken_back_and_made_again_as_many_as_are_kept(train):
    app = train()
    undo, redo = "configure-undo", "configure-redo"
    assert not {undo, redo} & {button.key for button in app.button}
    begun = dict(app.session_state["draft"].values)
    app.number_input(key=key(app, "model.d_ff")).set_value(192).run()
    app.selectbox(key=key(app, "model.family")).set_value("decoder-only").run()
    app.selectbox(key="configure-preset").set_value("copy").run()
    for _n in range(2):
        app.button(key=undo).click().run()
    assert preset_box(app).value == state.FIRST_PRESET
    assert app.number_input(key=key(app, "model.d_ff")).value == 192
    app.button(key=undo).click().run()
    assert drafts.differences(app.session_state["draft"].values, begun) == []
    assert app.button(key=undo).disabled
    for _n in range(3):
        app.button(key=redo).click().run()
    assert app.button(key=redo).disabled
    assert preset_box(app).value == "copy"
    app.button(key=undo).click().run()
    app.number_input(key=key(app, "training.steps")).set_value(77).run()
    assert app.button(key=redo).disabled  # what was taken back is another story now
    app = train()
    app.number_input(key=key(app, "training.steps")).set_value(1).run()
    draft = app.session_state["draft"]
    found = drafts.History()
    for _n in range(3 * drafts.MAX_HISTORY):
        found = found.changed(draft)
    assert len(found.past) == drafts.MAX_HISTORY


def test_family_and_task_are_set_back_one_by_one_and_keep_what_was_changed():
    base = default_sections("encoder-decoder", "sort")
    values = drafts.put(base, "training.steps", 77)
    values = drafts.chosen(
        drafts.chosen(values, "model.family", "decoder-only"), "task.name", "copy"
    )
    checked = drafts.check(Draft(values, base=base))
    assert drafts.changed(checked) == ["model.family", "task.name", "training.steps"]
    back = drafts.with_reset(checked, "model.family")
    assert (drafts.family_of(back), drafts.task_of(back)) == ("encoder-decoder", "copy")
    back = drafts.with_reset(drafts.check(Draft(back, base=base)), "task.name")
    checked = drafts.check(Draft(back, base=base))
    assert drafts.changed(checked) == ["training.steps"]
    assert drafts.with_reset(checked, "training.steps") == base
    values = default_sections("encoder-decoder", "sort")
    values = drafts.put(values, "model.d_model", 96)
    values = drafts.put(values, "training.steps", 77)
    moved = drafts.chosen(values, "model.family", "decoder-only")
    assert moved["task"] == values["task"]
    assert (moved["model"]["d_model"], moved["training"]["steps"]) == (96, 77)
    moved = drafts.chosen(values, "model.family", "vit")
    assert drafts.task_of(moved) == "mnist-5000"  # which this family can learn
    assert moved["model"]["position"] == "learned"  # untouched, so the default of the new family
    assert drafts.check(Draft(moved)).experiment is not None


def test_what_a_browser_says_late_is_nobodys_value(train):
    app = train()
    app.number_input(key=key(app, "training.steps")).set_value(77).run()
    late = app._tree.get_widget_states()
    app.button(key="configure-undo").click().run()
    app._run(late)  # which still holds 77, in a control that is gone
    assert app.session_state["draft"].values["training"]["steps"] != 77
    """It pressed twice before the first answer came: its widgets are still the first preset's."""
    app = train()
    app.number_input(key=key(app, "training.steps")).set_value(77).run()
    late = app._tree.get_widget_states()
    for name in ("translate", "addition"):
        app.selectbox(key="configure-preset").set_value(name).run()
    for widget in late.widgets:  # the browser's next message, of the page as it was at first
        if widget.id == app.selectbox(key="configure-preset").id:
            widget.string_value = "Sort digits"
    app._run(late)
    chosen = app.session_state["draft"].values
    assert drafts.differences(chosen, PRESETS["sort"].experiment.model_dump()) == []


def test_a_change_says_what_it_does_to_the_size_and_the_time(train):
    app = train()
    app.number_input(key=key(app, "model.n_layers")).set_value(4).run()
    run_time.wait()
    app.run()
    head = f"**Layers {FIRST_MODEL.n_layers} → 4**"
    (line,) = [one for one in said(app).splitlines() if one.startswith(head)]
    assert re.search(r"parameters [\d,]+ → \*\*[\d,]+\*\* \(\+\d+%\)", line)
    assert "memory per step" in line
    assert re.search(r"time about \+\d+%$", line)  # times are rounded more than this
    app.number_input(key=key(app, "seed")).set_value(5).run()
    run_time.wait()
    app.run()
    assert "**Seed 0 → 5**: parameters, memory per step, time unchanged" in said(app)
    assert re.search(r"\*\*All 2 changes\*\*: parameters \+\d+% · memory", said(app))


def test_weight_decay_follows_the_optimiser_until_it_is_typed(train):
    app = train()
    decay, optimiser = key(app, "training.weight_decay"), key(app, "training.optimizer")
    app.number_input(key=decay).set_value(OPTIMISERS["muon"].decay).run()
    app.selectbox(key=optimiser).set_value("adam").run()
    assert app.number_input(key=decay).value == 0
    assert "Adam sets weight decay to 0." in said(app)
    app.number_input(key=decay).set_value(0.02)
    app.session_state["advanced-training"] = False
    app.run()
    assert "Weight decay is 0.02; 0 is safe with Adam." in said(app)
    assert app.session_state["advanced-training"]
    app.selectbox(key=optimiser).set_value("sgd").run()
    assert app.number_input(key=decay).value == 0.02
    app.number_input(key=decay).set_value(0).run()
    app.selectbox(key=optimiser).set_value("adamw").run()
    assert app.number_input(key=decay).value == 0.05
    assert "eight decay is" not in said(app)


def test_what_is_folded_is_not_drawn_and_keeps_what_was_typed(open_page):
    app = open_page("train/page.py")
    app.toggle(key="all-settings").set_value(True).run()
    assert f"{KEY}training.beta1" not in keys_of(app)
    app.session_state["advanced-training"] = True
    app.run()
    app.number_input(key=key(app, "training.beta1")).set_value(0.8).run()
    app.session_state["advanced-training"] = False
    app.run()
    assert f"{KEY}training.beta1" not in keys_of(app)
    assert app.session_state["draft"].values["training"]["beta1"] == 0.8
    app.session_state["advanced-training"] = True
    app.run()
    assert app.number_input(key=key(app, "training.beta1")).value == 0.8


def test_another_family_or_task_has_its_own_variants_and_size():
    values = drafts.put(default_sections("vit", "mnist"), "model.position", "sinusoidal-2d")
    moved = drafts.chosen(values, "model.family", "encoder-only")
    assert moved["model"]["position"] == "sinusoidal"
    moved = drafts.chosen(default_sections("encoder-only", "copy"), "task.name", "english-korean")
    assert moved["task"]["size"] == 1
    assert drafts.check(Draft(moved)).experiment is not None


def test_what_is_set_survives_a_change_of_page_and_an_emptied_field_shows_it_again(train):
    app = train()
    app.number_input(key=key(app, "model.d_ff")).set_value(192).run()
    app.switch_page("home/page.py").run()
    app.switch_page("train/page.py").run()
    assert app.number_input(key=key(app, "model.d_ff")).value == 192
    app.number_input(key=key(app, "model.d_ff")).set_value(None).run()
    assert app.number_input(key=key(app, "model.d_ff")).value == 192


def test_an_experiment_can_be_uploaded_and_a_bad_one_is_refused_in_sentences(train):
    app = train()
    experiment = PRESETS["addition"].experiment.replace(training={"steps": 1511})
    good = experiment.model_dump_json().encode()
    app.file_uploader(key="transfer-file").set_value(("e.json", good, "application/json")).run()
    assert app.number_input(key=key(app, "training.steps")).value == 1511
    bad = b'{"training": {"steps": "many"}}'
    app.file_uploader(key="transfer-file").set_value(("b.json", bad, "application/json")).run()
    assert "steps is 'many'; it must be a whole number." in said(app)
    assert app.number_input(key=key(app, "training.steps")).value == 1511


BAD = {
    "model.n_layers": (0, "n\\_layers is 0; it must be at least 1."),
    "model.dropout": (2.0, "dropout is 2; it must be less than 1."),
    "training.steps": (10**9, "steps is 1,000,000,000; it must be at most 1,000,000."),
    "training.batch_size": (100_000, "batch\\_size is 100,000; it must be at most 8,192."),
    "training.learning_rate": (1e9, "learning\\_rate is 1,000,000,000; it must be at most 10."),
    "seed": (10**12, "seed is 1,000,000,000,000; it must be at most 2,147,483,647."),
}


def test_bad_numbers_are_all_said_survive_and_are_healed_by_reset(train):
    app = train()
    for path, (value, _sentence) in BAD.items():
        app.number_input(key=key(app, path)).set_value(value)
    app.run()
    assert start_button(app).disabled
    words = said(app)
    for _value, sentence in BAD.values():
        assert sentence in words
    for label in ("Layers", "Dropout", "Steps", "Batch size", "Learning rate", "Seed"):
        assert label in next(line for line in words.splitlines() if "Can't start yet" in line)
    app.button(key="configure-reset").click().run()
    assert not start_button(app).disabled
    values = PRESETS["vit-digits"].experiment.model_dump()
    for path in BAD:
        assert app.number_input(key=key(app, path)).value == drafts.get(values, path)
    app = train()
    app.number_input(key=key(app, "training.beta1")).set_value(7.0).run()
    app.selectbox(key=key(app, "training.optimizer")).set_value("sgd").run()
    app.selectbox(key=key(app, "model.family")).set_value("decoder-only").run()
    assert app.number_input(key=key(app, "training.beta1")).value == 7
    assert "beta1 is 7; it must be less than 1." in said(app)


@pytest.mark.parametrize("name", ["copy", "vit-digits", "gpt-grammar"])
def test_a_browser_that_missed_the_first_drawing_is_told_every_value_by_the_second(train, name):
    """Where a second drawing overtakes the first, the browser takes what it says as the default."""
    app = train()
    app.selectbox(key="configure-preset").set_value(name).run()
    app.run()
    draft = app.session_state["draft"]
    family, task = drafts.family_of(draft.values), drafts.task_of(draft.values)
    seen = set()
    for setting in settings_of(family, task):
        value = drafts.get(draft.values, setting.path)
        for widget in app.main:
            if getattr(widget, "key", None) != controls.key_of(setting.path, draft):
                continue
            seen.add(setting.kind)
            default = widget.proto.default
            if setting.kind == "choice":
                default = list(setting.choices)[
                    default[0] if widget.type != "selectbox" else default
                ]
            if setting.kind == "several":
                default = tuple(list(setting.choices)[number] for number in default)
            assert default == pytest.approx(value) if setting.kind == "float" else default == value
    assert seen == {"int", "float", "bool", "choice", "several"}


def test_mistakes_are_chosen_together_and_each_says_what_it_does(train):
    app = train({"model.family": "encoder-decoder"})
    field = key(app, "model.mistakes")
    app.multiselect(key=field).select("no-scale").select("no-residuals").run()
    values = app.session_state["draft"].values
    assert values["model"]["mistakes"] == ("no-residuals", "no-scale")
    assert drafts.differences(values, app.session_state["draft"].baseline) == ["model.mistakes"]
    assert all(MISTAKES[name].help in said(app) for name in ("no-scale", "no-residuals"))
    assert app.query_params["model.mistakes"] == "no-residuals,no-scale"
    app.multiselect(key=field).select("scaled-by-d-model").run()
    assert "exclude each other" in said(app)


def test_a_link_says_the_only_value_that_there_is_as_it_is():
    assert parameters.one_of([3]) == "3"
    assert parameters.one_of([3, 30]) == "one of 3, 30"
