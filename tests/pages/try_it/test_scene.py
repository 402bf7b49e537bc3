"""Pictures to words: the page itself, and every other page on a run that describes pictures."""

import dataclasses
import json

from tests.pages.looking import figure_of, header_of, part_of, said
from tests.training.test_loop import experiment
from tfm_core.plots.palette import VERMILION
from tfm_core.probe.snapshot import probe_of, take
from tfm_core.runs.snapshots import write_probe, write_snapshot
from tfm_core.runs.status import write_status
from tfm_core.training.checkpoints import save
from tfm_core.training.loop import build

PAGE = "try_it/page.py"


def described(store, **task):
    """A finished run of a small untrained model that describes pictures."""
    chosen = experiment("captioner", "captions", model={"n_decoder_layers": 2}, task=task)
    run = store.create(chosen, name="A run of captions", state="finished")
    trainer = build(chosen)
    write_probe(run.folder, probe_of(trainer))
    for step in (0, 3):
        trainer.step = step
        write_snapshot(run.folder, take(trainer))
    save(trainer, run.folder / "checkpoints" / "last")
    write_status(
        run.folder, dataclasses.replace(run.status, state="finished", step=3, total_steps=6)
    )
    return run


def desk(app):
    return header_of(part_of(app, "writing_desk").bytes)


def test_without_a_run_there_is_a_button_for_each_language(open_page, busy_queue, store):
    app = open_page(PAGE, view="scene")
    assert "This page needs a model that describes pictures" in said(app)
    labels = {button.key: button.label for button in app.button}
    assert "Describe pictures" in labels["head-train-captions"]
    app.button(key="head-train-captions-korean").click().run()
    run = store.list()[0]
    assert run.meta.preset == "captions-korean"
    assert run.experiment.task.language == "korean"


def test_a_composed_picture_is_described_and_scored(open_page, store):
    run = described(store)
    app = open_page(PAGE, run=run.id)
    assert len(desk(app)["steps"]) > 1  # word by word, with its candidates
    assert {len(step["best"]) for step in desk(app)["steps"]} == {8}
    assert "a three left of a seven" in said(app)  # plain at a glance, and the first to be seen
    assert "Truth" in said(app)
    app.selectbox(key="scene-number-1").set_value("4")
    app.selectbox(key="scene-number-2").set_value("9")
    app.slider(key="scene-left-1").set_value(0)
    app.slider(key="scene-top-1").set_value(0)
    app.slider(key="scene-left-2").set_value(28)
    app.slider(key="scene-top-2").set_value(7).run()
    assert "a four left of a nine" in said(app)
    app.button(key="scene-swap").click().run()
    assert "a four right of a nine" in said(app)
    assert "heatmap" in [trace["type"] for trace in figure_of(app, "scene-strip")["data"]]


def test_digits_that_overlap_are_told_and_free_sliders_move_by_pixels(open_page, store):
    app = open_page(PAGE, run=described(store).id)
    for i in (1, 2):
        app.slider(key=f"scene-left-{i}").set_value(7)
        app.slider(key=f"scene-top-{i}").set_value(14)
    app.run()
    assert any("Digits 1 and 2 overlap" in error.value for error in app.error)
    # it is shown all the same, in red: one sees what to move
    scene = json.loads(json.loads(part_of(app, "live_figure").json)["figure"])
    assert [shape["line"]["color"] for shape in scene["layout"]["shapes"]] == [VERMILION] * 2
    app.slider(key="scene-top-2").set_value(0)
    app.slider(key="scene-left-2").set_value(28).run()
    assert not app.error
    assert app.slider(key="scene-top-1").value == 14
    app = open_page(PAGE, run=described(store).id)
    assert app.slider(key="scene-left-1").step == 7
    app.toggle(key="scene-free").set_value(True).run()
    assert app.slider(key="scene-left-1").step == 1
    app.slider(key="scene-left-1").set_value(3)
    app.slider(key="scene-left-2").set_value(25).run()
    app.toggle(key="scene-free").set_value(False).run()
    assert app.slider(key="scene-left-1").value == 0
    assert app.slider(key="scene-left-2").value == 21


def test_a_digit_to_be_drawn_is_asked_for_and_the_scene_stays(open_page, store):
    app = open_page(PAGE, run=described(store).id)
    keys = [f"scene-{side}-{i}" for side in ("left", "top") for i in (1, 2)]
    before = [app.slider(key=key).value for key in keys]
    for i in (2, 1):
        app.toggle(key=f"scene-drawn-{i}").set_value(True).run()
        assert f"Draw digit {i} on its pad" in said(app)
        assert not app.error
        assert "scene-figure" in part_of(app, "live_figure").id
    for i in (1, 2):
        app.toggle(key=f"scene-drawn-{i}").set_value(False).run()
    assert [app.slider(key=key).value for key in keys] == before
    assert "a three left of a seven" in said(app)
    app.switch_page("home/page.py").run()
    app.switch_page(PAGE).run()
    assert [app.slider(key=key).value for key in keys] == before
    assert "a three left of a seven" in said(app)


def test_the_attention_page_scores_and_compares_its_heads(open_page, store):
    run = described(store)
    for question in ("heads", "alignment", "compare", "take"):
        open_page("look_inside/attention/page.py", run=run.id, deeper=question)


def test_the_walk_shows_where_the_words_look_and_what_the_model_writes(open_page, store):
    run = described(store)
    app = open_page(
        "look_inside/walk.py", run=run.id, show="run", part="cross-attention", block="2"
    )
    assert app.header[0].value == "19 · Decoder: cross-attention"
    assert "Inside `decoder.layers.1`" in said(app)
    app.button[-1].click().run()  # Show the answer: the map was hidden with it
    assert "Head 1 over the picture" in said(app)
    app.selectbox(key="walk-H-2").set_value(1).run()
    assert "Head 2 over the picture" in said(app)
    app = open_page("look_inside/walk.py", run=run.id, show="run", part="whole")
    app.button[-1].click().run()  # Show the answer
    item = run.probe().items[0]
    assert f"**{item['tgt_text']}**" in said(app)
