"""The page of knock-outs, through the frame."""

import dataclasses
import shutil

import numpy as np
import pytest

from tests.inspect.constructed import constructed_run, text_experiment
from tests.pages.looking import said, sent
from tfm_core.inspect.knockouts.measure import example_without, most_moved
from tfm_core.inspect.knockouts.parts import parts_of
from tfm_core.runs.run import Run
from tfm_core.runs.store import RECORDED

PAGE = "look_inside/knockouts/page.py"


def board(app):
    """Return the cells of the board, by code."""
    return {cell["code"]: cell for cell in sent(app, "knock_board")[0]["cells"]}


def figures(app):
    return {metric.label: (metric.value, metric.delta) for metric in app.metric}


def test_a_chip_switches_on_again_and_a_mean_loses_something_else(recorded, open_page):
    app = open_page(PAGE, run="recorded-many-heads", off="decoder.1.cross.2,decoder.1.cross.3")
    with_both = figures(app)
    app.button(key="knockouts-on-decoder.1.cross.2").click().run()
    assert app.query_params["off"] == "decoder.1.cross.3"
    with_one = figures(app)
    assert with_one != with_both
    app.button(key="knockouts-clear").click().run()
    assert app.query_params["off"] == "none"
    assert "Everything is on" in said(app)
    assert figures(app)["Tokens right"][0] == "100%"
    app.button(key="knockouts-undo").click().run()
    assert figures(app) == with_one
    app.button(key="knockouts-undo").click().run()
    assert figures(app) == with_both
    assert app.button(key="knockouts-undo").disabled
    app = open_page(PAGE, run="recorded-digits", off="encoder.1.self")
    zero = figures(app)
    app.button_group(key="knockouts-how").set_value("mean").run()
    assert figures(app) != zero
    assert "replaced by its mean over these 200 examples" in said(app)
    app.toggle(key="knockouts-all").set_value(True).run()
    assert "500 of 500 validation examples" in said(app)


def test_parts_and_heads_that_the_model_lacks_are_said(recorded, open_page):
    app = open_page(PAGE, run="recorded-digits", off="decoder.1.cross.2,encoder.2")
    assert "“decoder.1.cross.2,en” in the link, but must be parts of this model" in said(app)
    assert app.query_params["off"] == "encoder.2"
    app = open_page(PAGE, run="recorded-digits", step="x")
    assert "step is “x” in the link" in app.warning[0].value
    app = open_page(PAGE, run="recorded-korean", view="pattern", head="decoder.9.self.1")
    assert any("“decoder.9.self.1” in the link" in warning.value for warning in app.warning)
    assert app.selectbox(key="knockouts-head").value == "decoder.3.cross.1"  # what is off
    app = open_page(PAGE, run="recorded-korean", view="pattern", off="none")
    assert app.selectbox(key="knockouts-head").value == "encoder.1.self.1"
    app = open_page(PAGE, run="recorded-additive")
    for view in ("heads", "pruning"):
        app.button_group(key="knockouts-view").set_value(view).run()
        assert "no heads" in said(app)
    app = open_page(PAGE, view="causes", run="recorded-additive")
    assert "This needs a Transformer" in said(app)


def test_heads_stand_in_a_table_lead_to_attention_and_are_taken_away(recorded, open_page):
    app = open_page(PAGE, run="recorded-digits", view="heads", off="none")
    (table,) = app.dataframe
    assert len(table.value) == 6
    assert table.value["rise"].is_monotonic_decreasing
    assert (table.value["gradient"] > 0).all()
    app.button(key="knockouts-switch").click().run()
    off = app.query_params["off"]
    best = table.value.iloc[0]
    assert off == f"encoder.{best['layer']}.self.{best['head']}"
    app = open_page(PAGE, run="recorded-digits", view="pruning")
    app.button(key="knockouts-prune").click().run()
    assert "of 6 heads go" in said(app)
    assert "in 5 random orders" in said(app)
    app = open_page(PAGE, run="recorded-korean", view="pattern", head="decoder.3.cross.4")
    app.button_group(key="knockouts-pattern").set_value("own").run()
    assert "**0 of" in said(app)


@pytest.mark.wide
def test_of_a_run_of_ones_own_heads_are_measured_by_a_press_alone(store, open_page):
    run = Run(shutil.copytree(RECORDED / "recorded-digits", store.root / "recorded-digits"))
    run.write_meta(dataclasses.replace(run.meta, recorded=False))
    app = open_page(PAGE, run=run.id)
    assert not any(cell["worth"] for cell in board(app).values())
    app.button(key="knockouts-measure").click().run()
    measured = [cell for cell in board(app).values() if cell["worth"]]
    assert len(measured) == 6
    assert {cell["heat"] is not None for cell in measured} == {True}


def test_a_run_without_weights_says_so_and_leads_to_one_that_has_some(recorded, store, open_page):
    own = constructed_run(store, text_experiment())
    app = open_page(PAGE, run=own.id)
    assert "ended without saving weights" in said(app)
    app.button(key="head-open-recorded-korean").click().run()
    assert app.query_params["run"] == "recorded-korean"
    assert board(app)


def test_without_any_run_it_leads_to_where_one_is_trained(open_page):
    app = open_page(PAGE)
    assert app.button(key="head-train-translate")


@pytest.mark.parametrize("off", ["decoder.1.cross", "encoder.1.self"])
def test_attention_before_and_after_opens_where_most_changed(recorded, open_page, off):
    run = recorded.get("recorded-korean")
    part = next(one for one in parts_of(run.experiment) if one.code == off)
    before, after = (example_without(run, 0, removed, "zero", 200) for removed in ((), (part,)))
    moves = {
        module: np.abs(after.attention[module].mean(0) - maps.mean(0)).sum(-1).mean()
        for module, maps in before.attention.items()
    }
    assert most_moved(before, after) == max(moves, key=moves.get)
    app = open_page(PAGE, run=run.id, off=off)
    assert "0.0% of the attention moved" not in said(app)
    assert "of the attention moved to other keys" in said(app)


def test_the_map_before_and_after_is_chosen_and_holds_for_what_is_off(recorded, open_page):
    link = {"run": "recorded-korean", "off": "encoder.1.self"}
    app = open_page(PAGE, **link, **{"map-kind": "decoder", "map-layer": "2", "map-head": "3"})
    assert app.selectbox(key="knockouts-map_kind").value == "decoder"
    assert app.button_group(key="knockouts-map_layer").value == "2"
    assert app.button_group(key="knockouts-map_head").value == "3"
    app.selectbox(key="knockouts-map_kind").set_value("encoder").run()
    assert "map-layer" not in app.query_params  # the encoder has one layer
    app.button(key="knockouts-clear").click().run()
    assert app.button_group(key="knockouts-map_head").value == "mean"
    assert "map-kind" not in app.query_params


def test_what_decides_starts_with_one_changed_token_and_follows_what_is_typed(recorded, open_page):
    app = open_page(PAGE, view="causes", run="recorded-korean")
    (field,) = [field for field in app.text_input if field.label == "Changed input"]
    example = Run(RECORDED / "recorded-korean").probe().items[0]["src_text"]
    first, changed = example.split(), field.value.split()
    assert sum(one != other for one, other in zip(first, changed, strict=True)) == 1
    assert "with the change" in said(app)
    field.set_value(example).run()
    assert app.query_params["changed"] == example
    assert "gives both inputs the same answer" in said(app)
    field.set_value("A rabbit").run()
    assert "it needs 9" in said(app)
