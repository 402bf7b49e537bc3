"""The attention page, through the frame, on runs made of drawn numbers."""

import numpy as np
import pytest

from pages.attention import animation as attention_animation
from pages.attention import controls
from tests.inspect.constructed import (
    STEPS,
    constructed_run,
    constructed_snapshot,
    items_of_text,
    text_experiment,
    vit_experiment,
)
from tests.pages.counted import SLOW, calls_of
from tests.pages.looking import animation, grid, opened, said
from tfm_core.probe.labels import axes, modules_by_kind
from tfm_core.runs import snapshots
from tfm_core.runs.snapshots import write, write_probe


@pytest.fixture
def too_long_to_animate(monkeypatch):
    """The page as it is where all snapshots together are too much to send."""
    monkeypatch.setattr(attention_animation, "MOST_VALUES", 0)


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
        ({"step": "8"}, "step is “8” in the link, but must be one of 0, 2, 11; 11 is shown."),
        ({"step": "soon"}, "step is “soon” in the link, but must be one of 0, 2, 11; the newest"),
        ({"cell": "x"}, "cell is “x” in the link, but must be made of positions from 1 to 4096"),
        ({"cell": "3"}, "cell is “3” in the link, but must be two positions, such as 3,5"),
        ({"pin": "z3"}, "pin is “z3” in the link, but must be q or k and a position, such as q3"),
    ],
)
def test_what_a_link_asks_for_in_vain_is_said_and_the_nearest_is_shown(store, query, sentence):
    at = opened(constructed_run(store, text_experiment()), **query)
    assert not at.exception
    assert sentence in at.warning[0].value
    assert grid(at)[1].size


def test_moving_through_the_training_changes_maps_answer_and_link(store, too_long_to_animate):
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
    assert "Every source token attends to all source tokens" in said(at)


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


def test_the_browser_gets_every_snapshot_to_play(store):
    run = constructed_run(store, text_experiment())
    at = opened(run, step="2", kind="encoder")
    steps, weights = animation(at)
    assert steps == list(STEPS)
    for step, maps in zip(steps, weights, strict=True):
        recorded = run.snapshot(step).attention["encoder.layers.1.self_attention"][0]
        assert np.array_equal(maps[1], recorded[:, :2, :2])
    frames = grid(at)[0]["frames"]
    assert [frame["right"] for frame in frames] == [False, False, True]
    assert all(len(frame["labels"]) == 2 * 3 for frame in frames)
    assert not at.select_slider


def test_new_snapshots_of_a_live_run_join_the_animation_without_losing_the_place(store):
    run = constructed_run(store, text_experiment(), state="running")
    at = opened(run, step="2")
    add_snapshot(run, 29)
    at.run()
    assert animation(at)[0] == [*STEPS, 29]
    header, _weights = grid(at)
    assert header["frames"][header["frame"]]["step"] == 2


def test_a_animation_too_long_to_send_is_played_by_the_server(
    store, monkeypatch, too_long_to_animate
):
    at = opened(constructed_run(store, text_experiment()), step="2")
    monkeypatch.setattr(controls, "FRAME_SECONDS", 0.0)
    seen = []
    at.button(key="attention-play").click().run()
    for _tick in STEPS:
        seen.append(at.select_slider(key="attention-step").value)
        at.run()
    assert seen == sorted(seen)
    assert set(seen) <= set(STEPS)
    assert at.query_params["step"] == str(STEPS[-1])
    assert at.button(key="attention-play").label == "Play"


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


def test_another_step_is_shown_from_its_snapshot_alone(store, too_long_to_animate):
    run = constructed_run(store, text_experiment())
    at = opened(run)
    for step in (0, 2, 11):
        with calls_of(*SLOW, snapshots.read) as calls:
            at.select_slider(key="attention-step").set_value(step).run()
        assert not at.exception
        assert set(calls) <= {"read"}
        assert calls["read"] <= len(run.snapshot_steps())


def add_snapshot(run, step):
    write(run.folder, constructed_snapshot(run.experiment, items_of_text(), step))


def test_the_table_of_heads_opens_and_fades_heads(store):
    run = constructed_run(store, text_experiment())
    at = opened(run, deeper="heads")
    table = next(frame.value for frame in at.dataframe if "label" in frame.value)
    assert len(table) == 3 * 3
    assert (table["padding"].dropna() == 0).all()
    at.toggle(key="attention-all-kinds").set_value(True).run()
    table = next(frame.value for frame in at.dataframe if "label" in frame.value)
    assert len(table) == (2 + 3 + 3) * 3
    assert not any(grid(at)[0]["dim"])
    at.selectbox(key="attention-filter").set_value("evenness").run()
    at.slider(key="attention-least").set_value(1.0).run()
    assert not at.exception
    assert all(grid(at)[0]["dim"])


def test_the_head_that_aligns_is_named_and_its_true_cells_are_outlined(store):
    run = aligned_run(store)
    at = opened(run, deeper="alignment")
    assert not at.exception
    assert "**Layer 2, head 3** learned to align: 100 %" in said(at)
    assert "It has done so from step 11 on." in said(at)
    assert "Outlined: the source words" in said(at)


def test_a_run_whose_alignment_is_not_known_is_not_asked_for_it(store):
    at = opened(constructed_run(store, text_experiment()))
    assert "Which head aligns" not in at.button_group(key="attention-deeper").options
    assert "Outlined" not in said(at)


@pytest.mark.parametrize("view", ["map", "lines"])
def test_one_head_is_shown_as_the_link_says(store, view):
    at = opened(constructed_run(store, text_experiment()), view=view, pin="q2", cell="2,1")
    assert not at.exception
    assert not at.warning
    drawn = [part.proto.component_name for part in at.get("bidi_component")]
    assert ("head_lines" in drawn) == (view == "lines")


@pytest.mark.parametrize("query", [{"view": "sideways"}, {"deeper": "down"}])
def test_a_view_that_is_not_there_is_said(store, query):
    at = opened(constructed_run(store, text_experiment()), **query)
    assert not at.exception
    assert "in the link, but must be one of" in at.warning[0].value


def aligned_run(store):
    """Return a run whose third head of the second decoder layer aligns at its last step."""
    run = constructed_run(store, text_experiment())
    items = [
        {**item, "alignment": [[index % len(item["src"])] for index in range(len(item["tgt"]))]}
        for item in items_of_text()
    ]
    write_probe(run.folder, {"kind": "text", "items": items})
    last = run.snapshot(STEPS[-1])
    maps = last.attention["decoder.layers.1.cross_attention"]
    maps[:, 2] = 0
    for index, item in enumerate(items):
        for row, sources in enumerate(item["alignment"]):
            maps[index, 2, row, sources] = 1
        maps[index, 2, len(item["tgt"]), 0] = 1
    write(run.folder, last)
    return run


def test_examples_without_maps_are_not_offered_and_the_page_says_why(store):
    run = constructed_run(store, text_experiment())
    write_probe(run.folder, {"kind": "text", "items": items_of_text(), "n_attended": 2})
    at = opened(run, example="3")
    (picker,) = [one for one in at.selectbox if one.label == "Example"]
    assert len(picker.options) == 2
    assert "Attention is kept of 2 of the 3 examples" in said(at)
    assert not at.exception
