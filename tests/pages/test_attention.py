"""The attention page, through the frame, on runs made of drawn numbers."""

import shutil
import time

import numpy as np
import pytest

from pages.ui import look_controls
from tests.inspect.constructed import (
    STEPS,
    constructed_run,
    constructed_snapshot,
    items_of_text,
    text_experiment,
    vit_experiment,
    write_state,
)
from tests.pages.looking import grid, opened, said
from tfm_core.inspect.labels import axes, modules_by_kind
from tfm_core.runs.snapshots import snapshot_path, write


@pytest.mark.parametrize("family", ["encoder-decoder", "encoder-only", "decoder-only"])
def test_every_text_family_shows_all_heads_of_its_newest_snapshot(store, family):
    run = constructed_run(store, text_experiment(family))
    at = opened(run)
    assert not at.exception
    header, weights = grid(at)
    module = modules_by_kind(run.experiment)
    kind = "cross" if "cross" in module else next(iter(module))
    expected = run.snapshot(STEPS[-1]).attention[module[kind][0]][0]
    rows, columns = weights.shape[2:]
    assert np.array_equal(np.nan_to_num(weights[0]), expected[:, :rows, :columns])
    assert header["query"] == list(
        axes(run.experiment, run.probe().items[0], module[kind][0]).query
    )


def test_the_link_opens_kind_layer_head_example_and_step(store):
    run = constructed_run(store, text_experiment())
    at = opened(run, kind="decoder", layer="3", head="2", example="2", step="2")
    assert not at.warning
    header, weights = grid(at)
    assert header["chosen"] == [2, 1]
    assert header["query"] == ["<bos>", "e", "d", "c"]
    expected = run.snapshot(2).attention["decoder.layers.2.self_attention"][1][:, :4, :4]
    assert np.array_equal(np.nan_to_num(weights[2]), expected)
    assert np.isnan(weights[0, 0, 0, 1])  # the future is masked
    assert "Layer 3, head 2" in said(at)


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"kind": "sideways"}, "kind is “sideways” in the link, but must be one of cross, encoder"),
        ({"layer": "9"}, "layer is “9” in the link, but must be from 1 to 3; 3 is shown."),
        ({"head": "-4"}, "head is “-4” in the link, but must be from 1 to 3; 1 is shown."),
        ({"head": "x" * 99}, "head is “xxxxxxxxxxxxxxxxxxxx” in the link"),
        ({"example": "9" * 5000}, "must be from 1 to 3; 1 is shown."),
        ({"step": "8"}, "There is no snapshot of step 8; the nearest, step 11, is shown."),
        ({"step": "soon"}, "step is “soon” in the link, but must be a number"),
    ],
)
def test_what_a_link_asks_for_in_vain_is_said_and_the_nearest_is_shown(store, query, sentence):
    at = opened(constructed_run(store, text_experiment()), **query)
    assert not at.exception
    assert sentence in at.warning[0].value
    assert grid(at)[1].size


def test_moving_through_the_training_changes_maps_answer_and_link(store):
    run = constructed_run(store, text_experiment())
    at = opened(run)
    assert "Answer at step 11" in said(at)
    at.select_slider(key="attention-step").set_value(2).run()
    assert at.query_params["step"] == "2"
    assert "Answer at step 2" in said(at)
    assert "0 of 2 tokens right" in said(at)
    at.button(key="attention-previous").click().run()
    assert "Answer at step 0" in said(at)
    assert at.button(key="attention-previous").disabled
    assert np.array_equal(
        grid(at)[1][0], run.snapshot(0).attention["decoder.layers.0.cross_attention"][0][:, :3, :2]
    )


def test_another_example_has_its_own_tokens(store):
    at = opened(constructed_run(store, text_experiment()))
    at.selectbox(key="attention-example").set_value(1).run()
    assert grid(at)[0]["key"] == ["a", "b", "c", "d", "e"]
    assert at.query_params["example"] == "2"


def test_another_kind_keeps_the_layer_where_it_has_one(store):
    at = opened(constructed_run(store, text_experiment()), layer="3")
    at.button_group(key="attention-kind").set_value("encoder").run()
    assert not at.exception
    assert grid(at)[0]["chosen"] == [1, 0]  # the encoder has two layers
    assert "Every source token asks all source tokens" in said(at)


def test_a_run_that_trains_follows_the_newest_until_told_otherwise(store):
    run = constructed_run(store, text_experiment(), state="running")
    at = opened(run)
    assert at.toggle(key="attention-follow").value
    add_snapshot(run, 29)
    at.run()
    assert "Answer at step 29" in said(at)
    at.toggle(key="attention-follow").set_value(False).run()
    add_snapshot(run, 47)
    at.run()
    assert "Answer at step 29" in said(at)


def test_the_training_plays_from_its_first_snapshot_to_its_last(store, monkeypatch):
    at = opened(constructed_run(store, text_experiment()), step="2")
    monkeypatch.setattr(look_controls, "FRAME_SECONDS", 0.0)
    seen = []
    at.button(key="attention-play").click().run()
    for _tick in STEPS:
        seen.append(at.select_slider(key="attention-step").value)
        at.run()
    assert seen == sorted(seen)
    assert set(seen) <= set(STEPS)
    assert at.query_params["step"] == str(STEPS[-1])
    assert at.button(key="attention-play").label == "Play"


def test_a_run_without_snapshots_yet_says_so_and_waits(store):
    at = opened(constructed_run(store, text_experiment(), state="running", steps=()))
    assert "This run has no snapshot yet. The page shows the first one" in at.info[0].value


def test_a_run_that_ended_without_snapshots_says_so(store):
    at = opened(constructed_run(store, text_experiment(), steps=()))
    assert "This run has no snapshot yet." in at.error[0].value


def test_a_run_without_probe_yet_says_so(store):
    run = store.create(text_experiment())
    write_state(run, "starting")
    assert "no probe yet" in opened(run).info[0].value


def test_a_snapshot_that_fits_nothing_is_named_and_the_others_still_open(store):
    run = constructed_run(store, text_experiment())
    other = constructed_run(store, vit_experiment())
    shutil.copy(snapshot_path(other.folder, 2), snapshot_path(run.folder, 2))
    at = opened(run, step="2")
    assert not at.exception
    assert "The snapshot of step 2 does not fit the examples of this run." in at.error[0].value
    at.button(key="attention-next").click().run()
    assert not at.error
    assert grid(at)[1].size


def test_a_truncated_snapshot_is_not_offered(store):
    run = constructed_run(store, text_experiment())
    path = snapshot_path(run.folder, 2)
    path.write_bytes(path.read_bytes()[:-9])
    assert list(opened(run).select_slider(key="attention-step").options) == ["0", "11"]


def test_a_damaged_run_says_what_is_wrong(store):
    run = constructed_run(store, text_experiment())
    (run.folder / "experiment.json").write_text("{")
    at = opened(run)
    assert not at.exception
    assert "damaged" in at.error[0].value


def test_a_run_deleted_while_it_is_looked_at_leaves_a_page_that_helps(store):
    run = constructed_run(store, text_experiment())
    at = opened(run)
    store.delete(run.id)
    at.run()
    assert not at.exception
    assert "There is no run to look into" in said(at)


def test_without_a_run_the_page_offers_what_there_is(store):
    run = constructed_run(store, vit_experiment())
    at = opened()
    assert "There is no run to look into yet" in said(at)
    at.button(key=f"attention-open-{run.id}").click().run()
    assert grid(at)[1].shape == (2, 3, 16, 16)


@pytest.mark.parametrize(("pooling", "first"), [("mean", "mean"), ("cls", "CLS")])
def test_a_picture_shows_what_its_patches_look_at(store, pooling, first):
    at = opened(constructed_run(store, vit_experiment(pooling)))
    assert not at.exception
    assert at.selectbox(key="attention-patch").value == first
    at.selectbox(key="attention-patch").set_value("2,3").run()
    assert at.query_params["patch"] == "2,3"
    assert "Where the outlined patch looks" in said(at)
    assert ("The CLS token, outside the picture, gets" in said(at)) == (pooling == "cls")


def test_a_picture_says_its_truth_and_its_probabilities(store):
    run = constructed_run(store, vit_experiment())
    at = opened(run)
    shares = run.snapshot(STEPS[-1]).probabilities[0]
    assert list(at.dataframe[0].value["probability"]) == pytest.approx(shares.astype(float))
    assert "**4**" in said(at)


def test_the_page_answers_within_300_ms(store):
    run = constructed_run(store, text_experiment())
    at = opened(run)
    times = []
    for step in (0, 2, 11):
        at.select_slider(key="attention-step").set_value(step)
        start = time.perf_counter()
        at.run()
        times.append(time.perf_counter() - start)
    assert min(times) < 0.3


def add_snapshot(run, step):
    write(run.folder, constructed_snapshot(run.experiment, items_of_text(), step))
