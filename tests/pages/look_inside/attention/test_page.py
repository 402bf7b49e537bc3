"""The attention page, through the frame: on runs of drawn numbers, and where there is nothing."""

import base64
import itertools
import shutil

import numpy as np
import pytest

from pages.look_inside.attention import maps
from tests.inspect.constructed import (
    STEPS,
    constructed_run,
    constructed_snapshot,
    items_of_text,
    text_experiment,
    vit_experiment,
    write_state,
)
from tests.pages.counted import SLOW, calls_of
from tests.pages.looking import (
    animation,
    figure_of,
    grid,
    opened,
    said,
    sent,
    shares,
    text_of,
)
from tfm_core.inspect import stage
from tfm_core.inspect.attention import alignment, heads
from tfm_core.inspect.attention.maps import aligning_head, first_heads
from tfm_core.probe.labels import modules_by_kind
from tfm_core.probe.labels import rows as rows_of
from tfm_core.runs import snapshots
from tfm_core.runs.snapshots import snapshot_path, write_probe, write_snapshot


@pytest.fixture
def too_long_to_animate(monkeypatch):
    """The page as it is where all snapshots together are too much to send."""
    monkeypatch.setattr(maps, "MAX_VALUES", 0)


@pytest.mark.parametrize("family", ["encoder-decoder", "encoder-only", "decoder-only"])
def test_every_text_family_shows_all_heads_of_its_newest_snapshot(store, family):
    run = constructed_run(store, text_experiment(family))
    at = opened(run)
    header, weights = grid(at)
    module = modules_by_kind(run.experiment)
    kind = "cross" if "cross" in module else next(iter(module))
    expected = run.snapshot(STEPS[-1]).attention[module[kind][0]][0]
    rows, columns = weights.shape[2:]
    assert np.array_equal(np.nan_to_num(weights[0]), expected[:, :rows, :columns])
    assert header["query"] == list(
        rows_of(run.experiment, run.probe().items[0], module[kind][0]).names
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
        ({"head": "x" * 99}, "head is “xxxxxxxxxxxxxxxxxxxx” in the link"),
        ({"example": "9" * 5000}, "must be one of 1, 2, 3, own; 1 is shown."),
        ({"step": "8"}, "step is “8” in the link, but must be one of 0, 2, 11; the newest is"),
        ({"cell": "x"}, "cell is “x” in the link, but must be two positions, such as 3,5"),
        ({"deeper": "sideways"}, "in the link, but must be one of"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_a_link_asks_for_in_vain_is_said_and_the_nearest_is_shown(store, query, sentence):
    at = opened(constructed_run(store, text_experiment()), **query)
    assert sentence in at.warning[0].value
    assert grid(at)[1].size


def step_of(at):
    """Return the step whose maps are shown."""
    header, _weights = grid(at)
    return header["frames"][header["frame"]]["step"]


def test_moving_through_the_training_changes_maps_answer_and_link(store, too_long_to_animate):
    run = constructed_run(store, text_experiment())
    at, other = opened(run), opened(run)
    assert step_of(at) == 11
    at.select_slider(key="head-step").set_value(2).run()
    assert step_of(other.run()) == 11
    assert at.query_params["step"] == "2"
    assert step_of(at) == 2
    assert "0 of 2 tokens right" in said(at)
    assert np.array_equal(
        grid(at)[1][0], run.snapshot(2).attention["decoder.layers.0.cross_attention"][0][:, :3, :2]
    )


def test_a_run_that_trains_follows_the_newest_until_told_otherwise(store):
    run = constructed_run(store, text_experiment(), state="running")
    at = opened(run)
    add_snapshot(run, 29)
    at.run()
    assert step_of(at) == 29
    at.select_slider(key="head-step").set_value(11).run()
    add_snapshot(run, 47)
    at.run()
    assert step_of(at) == 11


def test_the_browser_gets_every_snapshot_to_play(store):
    run = constructed_run(store, text_experiment())
    at = opened(run, step="2", kind="encoder")
    steps, weights = animation(at)
    assert steps == list(STEPS)
    for step, sent_maps in zip(steps, weights, strict=True):
        recorded = run.snapshot(step).attention["encoder.layers.1.self_attention"][0]
        assert np.array_equal(sent_maps[1], recorded[:, :2, :2])
    frames = grid(at)[0]["frames"]
    assert [frame["is_right"] for frame in frames] == [False, False, True]
    assert all(len(frame["labels"]) == 2 * 3 for frame in frames)


def test_new_snapshots_of_a_live_run_join_the_animation_without_losing_the_place(store):
    run = constructed_run(store, text_experiment(), state="running")
    at = opened(run, step="2")
    add_snapshot(run, 29)
    at.run()
    assert animation(at)[0] == [*STEPS, 29]
    header, _weights = grid(at)
    assert header["frames"][header["frame"]]["step"] == 2


@pytest.mark.parametrize(("pooling", "first"), [("mean", "mean"), ("cls", "CLS")])
def test_a_picture_shows_what_its_patches_look_at(store, pooling, first):
    at = opened(constructed_run(store, vit_experiment(pooling)))
    assert at.selectbox(key="attention-patch").value == first
    at.selectbox(key="attention-patch").set_value("1,1").run()
    assert figure_of(at, "attention-patches").layout.shapes  # the first has an outline, too
    at.selectbox(key="attention-patch").set_value("2,3").run()
    assert at.query_params["patch"] == "2,3"
    assert "Does the outlined patch look" in said(at)
    assert ("CLS, outside the picture, gets" in said(at)) == (pooling == "cls")


def test_a_picture_says_its_truth_and_its_maps_are_drawn_over_it(store):
    run = constructed_run(store, vit_experiment())
    at = opened(run)
    expected = run.snapshot(STEPS[-1]).probabilities[0]
    assert shares(at) == pytest.approx(expected.astype(float))
    assert "Truth 4" in said(at)
    run = constructed_run(store, vit_experiment("cls"))
    at = opened(run)
    over = grid(at)[0]["over"]
    assert (over["side"], over["first"], over["row"], over["who"]) == (4, 1, 0, "read by CLS")
    assert base64.b64decode(over["pixels"]) == run.probe().images[0].tobytes()
    at.button_group(key="attention-small").set_value("matrix").run()
    assert at.query_params["small"] == "matrix"
    assert grid(at)[0]["over"] is None


def test_another_step_is_shown_from_its_snapshot_alone(store, too_long_to_animate):
    run = constructed_run(store, text_experiment())
    at = opened(run)
    for step in (0, 2, 11):
        with calls_of(*SLOW, snapshots.read_snapshot) as calls:
            at.select_slider(key="head-step").set_value(-1 if step == 11 else step).run()
        assert set(calls) <= {"read_snapshot"}
        assert calls["read_snapshot"] <= len(run.snapshot_steps())


def add_snapshot(run, step):
    write_snapshot(run.folder, constructed_snapshot(run.experiment, items_of_text(), step))


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
    assert all(grid(at)[0]["dim"])


def test_it_opens_on_the_head_that_aligns_best_and_another_kind_on_its_own(store):
    run = aligned_run(store)
    assert grid(opened(run))[0]["chosen"] == [1, 2]
    assert grid(opened(run, kind="cross"))[0]["chosen"] == [1, 2]
    assert grid(opened(run, layer="3"))[0]["chosen"] == [2, 0]
    assert grid(opened(run, head="2"))[0]["chosen"] == [0, 1]
    run = constructed_run(store, text_experiment())
    at = opened(run, layer="3")
    at.button_group(key="attention-kind").set_value("encoder").run()
    assert grid(at)[0]["chosen"] == list(first_heads(run)["encoder"])
    assert "All heads: Encoder self-attention" in grid(at)[0]["title"]
    at = opened(constructed_run(store, text_experiment()))
    assert "Which head aligns" not in at.button_group(key="attention-deeper").options
    assert "Orange frames" not in said(at)


def test_a_head_has_one_alignment_share_and_one_rank_in_every_view(store):
    """The grid, the large map, both tables, the live stage and the export say the same of it."""
    run = aligned_run(store)
    step = STEPS[-1]
    scores = alignment.score(run.experiment, run.probe(), run.snapshot(step))
    shares = scores["share"].tolist()
    scored = alignment.score_over_training(run)
    scored = scored[(scored["step"] == step) & (scored["kind"] == "cross")]
    assert scored.sort_values(["layer", "head"])["share"].tolist() == shares
    table = heads.table_of_step(run, step)
    table = table[table["kind"] == "cross"].sort_values(["layer", "head"])
    assert table["aligned"].tolist() == shares
    staged = stage.read_stage(run, "cross").frames[-1]["labels"]
    for example in ("1", "2"):
        frames = grid(opened(run, example=example))[0]["frames"]
        assert tuple(frames[-1]["labels"]) == staged
    for label, share in zip(staged, shares, strict=True):
        assert label.startswith("aligns") <= (share >= 0.5)
        if label.startswith("aligns"):
            assert label == f"aligns, {share:.0%}"
    assert any(label.startswith("aligns") for label in staged)
    best = int(np.argmax(shares))
    assert table.iloc[best]["label"] == f"true source words, {shares[best]:.0%}"
    assert first_heads(run)["cross"] == divmod(best, run.experiment.model.n_heads)
    assert aligning_head(run) == first_heads(run)["cross"]


def test_all_that_stands_beside_the_maps_has_words_for_every_step_of_the_film(store):
    at = opened(constructed_run(store, text_experiment()))
    moving = sent(at, "moving")
    assert len(moving) == 2  # the answer, and the heading of the large map
    name = grid(at)[0]["animation"]
    for data in moving:
        assert list(data["trees"]) == [str(step) for step in STEPS]
        assert data["animation"] == name
    verdicts = moving[0]["trees"]
    assert "✓ right" in text_of(verdicts["11"])
    assert "0 of 2 tokens right" in text_of(verdicts["0"])
    titles = [text_of(tree) for tree in moving[1]["trees"].values()]
    assert len(set(titles)) > 1


def aligned_run(store, layers=(1,), heads=(2,)):
    """Return a run whose heads of these decoder layers align at its last step, others by chance."""
    run = constructed_run(store, text_experiment())
    items = [
        {**item, "alignment": [[index % len(item["src"])] for index in range(len(item["tgt"]))]}
        for item in items_of_text()
    ]
    write_probe(run.folder, {"kind": "text", "items": items})
    last = run.snapshot(STEPS[-1])
    for layer, head in itertools.product(layers, heads):
        maps = last.attention[f"decoder.layers.{layer}.cross_attention"]
        maps[:, head] = 0
        for index, item in enumerate(items):
            for row, sources in enumerate(item["alignment"]):
                maps[index, head, row, sources] = 1
            maps[index, head, len(item["tgt"]), 0] = 1
    write_snapshot(run.folder, last)
    return run


def test_examples_without_maps_are_not_offered_and_the_page_says_why(store):
    run = constructed_run(store, text_experiment())
    write_probe(run.folder, {"kind": "text", "items": items_of_text(), "n_attended": 2})
    at = opened(run, example="3")
    assert len(at.selectbox(key="head-example").options) == 2 + 1
    assert "Only 2 of 3 examples have saved maps" in said(at)


def test_a_run_without_probe_or_snapshots_says_whether_they_come(store):
    run = store.create(text_experiment())
    write_state(run, "starting")
    assert "has not saved weights yet" in opened(run).info[0].value
    at = opened(constructed_run(store, text_experiment(), state="running", steps=()))
    assert "has not saved weights yet" in at.info[0].value
    at = opened(constructed_run(store, text_experiment(), steps=()))
    assert "ended without saving weights" in at.error[0].value


def test_a_snapshot_that_fits_nothing_is_named_and_a_truncated_one_not_offered(store):
    run = constructed_run(store, text_experiment())
    other = constructed_run(store, vit_experiment())
    shutil.copy(snapshot_path(other.folder, 2), snapshot_path(run.folder, 2))
    at = opened(run, step="2")
    assert "The snapshot 00000002.safetensors is damaged" in at.error[0].value
    at.select_slider(key="head-step").set_value(-1).run()
    assert not at.error
    assert grid(at)[1].size
    run = constructed_run(store, text_experiment())
    path = snapshot_path(run.folder, 2)
    path.write_bytes(path.read_bytes()[:-9])
    assert animation(opened(run))[0] == [0, 11]


def test_a_run_deleted_while_it_is_looked_at_leaves_a_page_that_helps(store):
    run = constructed_run(store, text_experiment())
    at = opened(run)
    store.delete(run.id)
    at.run()
    assert "This page needs a model with attention maps" in said(at)


def test_without_a_chosen_run_the_newest_with_snapshots_is_opened_at_once(store):
    constructed_run(store, text_experiment())
    run = constructed_run(store, vit_experiment())
    constructed_run(store, text_experiment(), steps=())
    at = opened()
    assert grid(at)[1].shape == (2, 3, 16, 16)
    assert "The newest run that fits this page" in said(at)
    at.button_group(key="attention-small").set_value("matrix").run()
    assert at.query_params["run"] == run.id
    assert "The newest run" in said(at)  # what stands below it does not move
