"""The attention page, through the frame, on runs made of drawn numbers."""

import base64
import io
import json
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from pages.components.digit_pad import SIDE, decode
from pages.components.head_grid import MAX_VALUES, pack, valid_place
from tests.inspect.constructed import (
    STEPS,
    constructed_run,
    constructed_snapshot,
    items_of_text,
    small,
    text_experiment,
    vit_experiment,
    write_state,
)
from tfm_core.inspect.labels import axes, modules_by_kind
from tfm_core.inspect.own_example import look_at_picture, look_at_text, read_picture
from tfm_core.runs.execute import execute
from tfm_core.runs.snapshots import snapshot_path, write
from tfm_core.runs.store import RunStore

FRAME = Path(__file__).resolve().parents[2] / "pages" / "frame.py"


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("TFM_RUNS_DIR", str(tmp_path))
    return RunStore(tmp_path, recorded=None)


def opened(run=None, **query):
    at = AppTest.from_file(FRAME, default_timeout=30).run().switch_page("look/attention.py")
    if run is not None:
        at.query_params["run"] = run.id
    for name, value in query.items():
        at.query_params[name] = value
    return at.run()


def said(at):
    parts = [*at.markdown, *at.caption, *at.warning, *at.error, *at.info]
    return " ".join(part.value for part in parts)


def grid(at):
    """Return header and weights of the head grid, as the browser gets them."""
    return unpacked(part_of(at, "head_grid").bytes)


def part_of(at, name):
    (found,) = [
        part.proto for part in at.get("bidi_component") if part.proto.component_name == name
    ]
    return found


def unpacked(sent):
    length = int.from_bytes(sent[:4], "little")
    header = json.loads(sent[4 : 4 + length])
    values = np.frombuffer(sent[4 + length :], header["kind"])
    return header, values.reshape(header["shape"])


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


def test_the_grid_of_48_heads_is_built_within_20_ms():
    weights = np.random.default_rng(0).random((6, 8, 64, 64)).astype(np.float16)
    tokens = [f"token {i}" for i in range(64)]
    times = []
    for _ in range(3):
        start = time.perf_counter()
        sent = pack(weights, tokens, tokens, chosen=(0, 0), theme="light")
        times.append(time.perf_counter() - start)
    assert min(times) < 0.02
    header, values = unpacked(sent)
    assert np.array_equal(values, weights)
    assert header["block"] == 1


def test_too_many_weights_are_sent_as_the_largest_of_each_block():
    weights = np.random.default_rng(0).random((2, 3, 501, 499)).astype(np.float32)
    header, values = unpacked(pack(weights, ["q"] * 501, ["k"] * 499, chosen=(0, 0), theme="dark"))
    assert values.size <= MAX_VALUES
    assert header["block"] == 2
    assert values[1, 2, 3, 4] == weights[1, 2, 6:8, 8:10].max()
    assert values[1, 2, -1, -1] == weights[1, 2, 500, 498]


@pytest.mark.parametrize("value", [None, [0], [0, 3], [-1, 0], [True, 0], ["0", 0], [2, 0], {}])
def test_what_is_no_head_is_not_picked(value):
    assert valid_place(value, 2, 3) is None
    assert valid_place([1, 2], 2, 3) == (1, 2)


@pytest.mark.parametrize("value", [None, 7, "", "AAAA", "é" * 16728, "*" * 16728, "A" * 16728])
def test_what_is_no_drawing_is_none(value):
    assert decode(value) is None


def test_a_drawing_arrives_as_grey_values():
    drawn = np.random.default_rng(0).integers(0, 256, (SIDE, SIDE), dtype=np.uint8)
    assert np.array_equal(decode(base64.b64encode(drawn.tobytes()).decode()), drawn)


def add_snapshot(run, step):
    write(run.folder, constructed_snapshot(run.experiment, items_of_text(), step))


@pytest.fixture(scope="module")
def sentences(tmp_path_factory):
    return trained(tmp_path_factory, text_experiment())


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    return trained(tmp_path_factory, vit_experiment())


def trained(tmp_path_factory, experiment):
    """Return the store and the run of an experiment that learned for three steps."""
    store = RunStore(tmp_path_factory.mktemp("runs"), recorded=None)
    run = store.create(small(experiment))
    assert execute(run).state == "finished"
    return store, run


def test_a_run_that_was_trained_can_be_looked_into(sentences, monkeypatch):
    store, run = sentences
    monkeypatch.setenv("TFM_RUNS_DIR", str(store.root))
    at = opened(run, kind="decoder", example="2", step="0")
    assert not at.exception
    assert not at.warning
    header, weights = grid(at)
    tokens = ["<bos>", *run.probe().items[1]["tgt"]]
    assert header["query"] == header["key"] == tokens
    assert np.nansum(weights.astype(np.float32), -1) == pytest.approx(1, abs=2e-3)


def test_an_own_sentence_is_read_with_the_last_checkpoint(sentences, monkeypatch):
    store, run = sentences
    monkeypatch.setenv("TFM_RUNS_DIR", str(store.root))
    at = opened(run, example="own", text="forty two", kind="encoder")
    assert not at.exception
    assert "Read with the last checkpoint of the run, at step 3." in said(at)
    header, weights = grid(at)
    assert header["key"] == ["forty", "two"]
    expected = look_at_text(run, "forty two").attention["encoder.layers.1.self_attention"]
    assert np.array_equal(weights[1], expected)
    at.text_input(key="attention-text").set_value("sixty").run()
    assert at.query_params["text"] == "sixty"
    assert grid(at)[0]["key"] == ["sixty"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("forty tow", "“tow” is not a word of this task; near ones are two"),
        ("", "There is nothing to read"),
        ("one " * 50, "make it shorter"),
    ],
)
def test_an_own_sentence_that_cannot_be_read_says_why(sentences, monkeypatch, text, sentence):
    store, run = sentences
    monkeypatch.setenv("TFM_RUNS_DIR", str(store.root))
    at = opened(run, example="own")
    at.text_input(key="attention-text").set_value(text).run()
    assert not at.exception
    assert sentence in at.error[0].value


def test_an_own_picture_is_read_with_the_last_checkpoint(pictures, monkeypatch):
    store, run = pictures
    monkeypatch.setenv("TFM_RUNS_DIR", str(store.root))
    at = opened(run, example="own")
    assert part_of(at, "digit_pad")
    drawn = np.zeros((64, 64), np.uint8)
    drawn[10:50, 28:34] = 255
    file = io.BytesIO()
    Image.fromarray(drawn).save(file, "PNG")
    at.file_uploader(key="attention-upload").set_value(("one.png", file.getvalue(), "image/png"))
    at.run()
    assert not at.exception
    assert "centred, as in MNIST" in said(at)
    picture, _notes = read_picture(run, drawn)
    shares = look_at_picture(run, picture).probabilities
    assert list(at.dataframe[0].value["probability"]) == pytest.approx(shares.astype(float))


def test_a_file_that_is_no_picture_says_so(pictures, monkeypatch):
    store, run = pictures
    monkeypatch.setenv("TFM_RUNS_DIR", str(store.root))
    at = opened(run, example="own")
    at.file_uploader(key="attention-upload").set_value(("one.png", b"no picture", "image/png"))
    at.run()
    assert not at.exception
    assert "cannot be read as a picture" in at.error[0].value


def test_a_run_without_checkpoint_cannot_read_anything_new(store):
    at = opened(constructed_run(store, text_experiment()), example="own")
    assert not at.exception
    assert "This run has no checkpoint" in at.error[0].value
