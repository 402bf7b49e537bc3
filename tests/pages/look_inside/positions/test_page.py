"""The positions page, through the frame."""

import dataclasses

import pytest

from pages.app.address import view as page_view
from pages.look_inside.positions import SCOPE, Positions
from tests.pages.counted import SLOW, calls_of
from tests.pages.learned_runs import learned_run
from tests.pages.looking import figure_of, said, viewed
from tests.pretrained.with_tokenizer import folder_with_tokenizer
from tests.training.test_loop import experiment as made_experiment
from tfm_core.choices.config.experiment import sequence_len
from tfm_core.choices.variants.positions import POSITIONS, POSITIONS_OF_WORDS
from tfm_core.export.opening import open_run
from tfm_core.inspect import position_tables
from tfm_core.runs.status import write_status
from tfm_core.runs.store import RECORDED, RunStore
from tfm_core.trace.shown import topic_text

PAGE = "look_inside/positions.py"
VIEWS = page_view.fields(Positions, SCOPE)["view"].parameter.names


def test_every_kind_that_words_can_have_has_a_view_and_words_of_its_own():
    assert set(POSITIONS_OF_WORDS) - {"none"} == set(VIEWS) - {"patches", "shuffle", "race"}
    for kind in POSITIONS.values():
        assert topic_text(f"position-{kind.name}")
        assert kind.inside is None or topic_text(f"inside-{kind.name}")


def test_the_equations_have_the_chosen_numbers(open_page):
    app = viewed(open_page(PAGE), "sinusoidal")
    assert "longest sequence of the edited configuration" in said(app)
    app.select_slider(key="positions-base").set_value(100.0).run()
    app.select_slider(key="positions-d_model").set_value(32).run()
    even, odd = app.latex
    assert r"PE_{(pos,\,2i)} = \sin\frac{pos}{100^{\,2i/32}}" in even.value
    assert r"PE_{(pos,\,2i+1)} = \cos\frac{pos}{100^{\,2i/32}}" in odd.value
    assert "i goes from 0 to 15" in said(app)


@pytest.mark.parametrize(
    ("view", "key", "values"),
    [
        ("sinusoidal", "positions-base", (10.0, 100.0, 2.0)),
        ("patches", "positions-d_model", (8, 128, 4)),
    ],
)
def test_a_change_builds_and_loads_no_model(open_page, view, key, values):
    app = viewed(open_page(PAGE), view)
    with calls_of(*SLOW) as calls:
        for value in values:
            app.select_slider(key=key).set_value(value).run()
    assert not calls


def test_learned_tables_and_shuffles_are_those_of_the_current_run(recorded, open_page):
    app = viewed(open_page(PAGE, run="recorded-digits"), "learned")
    steps = app.select_slider(key="head-step")
    assert "step 3,000" in said(app)
    steps.set_value(0).run()
    assert "The table at step 0" in said(app)
    app = viewed(open_page(PAGE, run="recorded-digits"), "learned")
    run = RunStore(RECORDED).get("recorded-digits")
    table = position_tables.learned_table(run.snapshot(run.snapshot_steps()[-1]), "positions.table")
    near = _beside, below, apart = position_tables.nearness(
        position_tables.cosines(table), round(len(table) ** 0.5)
    )
    assert f"{below:.2f} in a column, {apart:.2f} between other pairs" in said(app)
    assert position_tables.nearness_text(*near) in said(app)
    app = viewed(open_page(PAGE, run="recorded-korean"), "learned")
    (look,) = [button for button in app.button if button.label.startswith("Open “")]
    look.click().run()
    assert app.session_state["current_run"] == look.key.removeprefix("positions-open-")
    app = viewed(open_page(PAGE, run="recorded-korean"), "shuffle")
    assert "The current run answers" in said(app)
    before = said(app)
    app.button(key="shuffle").click().run()
    assert said(app) != before
    app.text_input(key="positions-recorded-korean-0-text").set_value("the xylophone").run()
    assert "is not a word of this task" in app.warning[0].value
    app = viewed(open_page(PAGE, run="recorded-digits"), "shuffle")
    assert "with averaged patches, they would be equal" in said(app)
    app.button(key="shuffle-patches").click().run()
    again = open_page(PAGE, run="recorded-digits", view="shuffle", picture="3")  # an older link
    assert again.query_params["example"] in ("3", ["3"])


def test_the_trained_length_is_that_of_the_run(recorded, open_page):
    for run_id in ("recorded-korean", "recorded-digits"):
        run = RunStore(RECORDED).get(run_id)
        app = open_page(PAGE, run=run_id)
        assert f"longest sequence of “{run.meta.name}”" in said(app)
        trained = f"trained length, {sequence_len(run.experiment)}"
        notes = figure_of(app, "positions-waves").layout.annotations
        assert trained in [note.text for note in notes]
    app.slider(key="positions-length").set_value(8).run()
    assert "Dotted" not in said(app)


def test_the_base_of_rotary_positions_begins_at_that_of_the_run(store, open_page):
    chosen = made_experiment(
        "decoder-only", "copy", model={"position": "rotary", "rope_theta": 500.0}
    )
    run = store.create(chosen, name="Rotary")
    app = open_page(PAGE, run=run.id, view="rotary")
    assert app.select_slider(key="positions-base").value == 500.0
    app = open_page(PAGE, view="rotary")
    assert app.select_slider(key="positions-base").value == 10000.0


def test_one_press_queues_a_run_of_each_kind_with_its_name(busy_queue, open_page):
    run = learned_run(busy_queue.store, "copy")
    app = viewed(open_page(PAGE, run=run.id), "race")
    app.slider(key="positions-copy-steps").set_value(200).run()
    app.button(key="positions-start").click().run()
    made = [run for run in busy_queue.store.list() if ", positions: " in run.meta.name]
    assert {run.experiment.model.position for run in made} == set(POSITIONS_OF_WORDS)
    assert len(made) == len(POSITIONS_OF_WORDS)
    assert {run.status.state for run in made} == {"queued"}
    assert {run.experiment.training.steps for run in made} == {200}
    n = len(POSITIONS_OF_WORDS)
    assert f"{n} runs are waiting" in said(app)
    assert not [info.value for info in app.info if "wait" in info.value]  # none above the page
    for run in made:
        write_status(run.folder, dataclasses.replace(run.status, state="finished"))
    app.run()
    assert "are waiting" not in said(app)
    assert f"All {n} runs have finished." in said(app)


def test_a_run_without_a_table_of_positions_says_why(store, open_page):
    run = learned_run(store, "translate-luong")
    app = viewed(open_page(PAGE, run=run.id), "learned")
    assert "is an RNN and has no positions to learn" in said(app)
    run = learned_run(store, "copy")
    app = viewed(open_page(PAGE, run=run.id), "learned")
    assert "learns nothing about positions" in said(app)


def test_a_captioner_is_left_out_when_words_are_shuffled(recorded, open_page):
    app = viewed(open_page(PAGE, run="recorded-captions"), "shuffle")
    assert "The current run is left out." in app.warning[0].value
    assert app.text_input[0].value == "dog bites man and man runs"


def test_a_model_that_was_opened_says_that_it_cannot_race(store, open_page, tmp_path):
    run = open_run(folder_with_tokenizer("gpt2", tmp_path / "gpt2"), store)
    app = viewed(open_page(PAGE, run=run.id), "race")
    assert not app.exception
    assert any("not trained" in one.value for one in app.info)
    assert "positions-start" not in {button.key for button in app.button}
