"""Looking deeper on the attention page: explanations, positions, comparisons, files to take."""

import base64
import json
import re

import numpy as np
import pytest

from pages.attention import animation as attention_animation
from pages.attention import compare, figures, take
from pages.attention.compare import Versus
from pages.attention.controls import offer_of
from pages.attention.selection_link import Selection
from pages.components.heads import (
    Frame,
    GridStyle,
    SnapshotAnimation,
    pack_grid,
    pack_lines,
    standalone,
)
from tests.data.own.test_texts import PAIRS
from tests.inspect.constructed import constructed_run, text_experiment, vit_experiment
from tests.pages.attention.test_own import trained
from tests.pages.looking import grid, opened, part_of, said, unpacked
from tests.pages.made_runs import made_run
from tfm_core.data.own import kinds, place, sets
from tfm_core.data.own.texts import inspect_text, prepare
from tfm_core.inspect.attention.example import example_of
from tfm_core.inspect.attention.map_view import MapView


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    return trained(tmp_path_factory, vit_experiment("cls"))


def test_explanations_stand_side_by_side_with_what_the_model_does_without_them(
    pictures, monkeypatch
):
    store, run = pictures
    monkeypatch.setenv("TFM_RUNS_DIR", str(store.root))
    at = opened(run, deeper="explain")
    assert not at.error
    for words in ("Attention rollout", "Gradient-weighted relevance", "Attention is not explan"):
        assert words in said(at)
    at.selectbox(key="attention-explained-class").set_value(7).run()
    assert "What supports **7**" in said(at)


def test_heads_and_runs_that_keep_an_example_are_compared(store):
    run = constructed_run(store, text_experiment())
    at = opened(run, deeper="compare", versus="1.1..", layer="1", head="1")
    assert "**0%** of the attention moved; **100%**" in said(at)
    at.selectbox(key="attention-versus-step").set_value(0).run()
    assert at.query_params["versus"] == "1.1.0."
    assert "**0%** of the attention moved" not in said(at)
    assert "Layer 1, head 1, step 0" in said(at)
    run = constructed_run(store, text_experiment())
    other = constructed_run(store, text_experiment(n_encoder_layers=1, n_decoder_layers=1))
    at = opened(run, deeper="compare", versus=f"3.2..{other.id}")
    assert not at.error
    assert "Layer 1, head 2, step 11: Constructed" in said(at)


def test_comparisons_come_back_from_words_or_say_why_not(store):
    for versus in (Versus(0, 2), Versus(3, 0, 17), Versus(1, 1, None, "a-run_id")):
        assert compare.parse(versus.text) == versus
    for text in ("", "1.2", "0.1..", "1.x..", "a.b.c.d", "1.1.x.", "1.1.1.1.1"):
        assert compare.parse(text) is None, text
    run = constructed_run(store, text_experiment())
    other = constructed_run(store, vit_experiment())
    at = opened(run, deeper="compare", versus=f"1.1..{other.id}")
    assert "choose another run" in at.error[0].value
    at = opened(run, deeper="compare", versus="1.1..none-such-run")
    assert at.error


@pytest.mark.parametrize("kind", ["text", "image"])
def test_every_file_to_take_away_is_made(store, kind):
    experiment = text_experiment() if kind == "text" else vit_experiment()
    run = constructed_run(store, experiment)
    at = opened(run, deeper="take", layer="1", head="1")
    selection = Selection(next(iter(offer_of(run, run.probe()).kinds)), layer=1, head=2)
    probe = run.probe()
    film = attention_animation.film_of(run, probe, selection, (0, 2, 11), 11)
    example = example_of(experiment, probe, run.snapshot(11), 0)
    svg = take._map(run, example, selection, None).decode()
    assert svg.startswith("<svg")
    assert "Constructed: " in svg
    picture = json.loads(part_of(at, "svg_png").json)  # the browser makes the PNG of it
    assert "Constructed: " in picture["svg"]
    assert picture["name"].endswith("-layer-1-head-1")
    if kind == "text":
        assert ">&lt;eos&gt;</text>" in picture["svg"]
        assert b",writes," in take._one_numbers(run, example, selection)
    assert b"Plotly" in take._map_page(run, example, selection, None)
    assert take._figures(run, 11).count(b"\n") > 6
    shape = grid(at)[1].shape
    assert take._all_numbers(run, example, selection).count(b"\n") == 1 + np.prod(shape)
    assert take._one_numbers(run, example, selection).count(b"\n") == 1 + np.prod(shape[2:])
    page = take._page(run, example, selection, None, film.animation).decode()
    assert run.meta.name in page


def test_the_page_that_plays_carries_its_data_and_asks_for_nothing():
    weights = np.random.default_rng(0).random((3, 2, 3, 5, 7)).astype(np.float16)
    animation = SnapshotAnimation("x", [Frame(step) for step in (0, 5, 9)], weights)
    tokens = ["</script><b>"] * 5, ["k"] * 7
    view = MapView(weights[0], *tokens)
    look = GridStyle(chosen=(0, 0), theme="light", animation=animation, step=5, dim=[True] * 6)
    sent = pack_grid(view, look)
    lines = pack_lines(view.head(0, 0), ink="#2f7fc1", pin=None)
    page = standalone(sent, lines, title="<i>", words="", which="", theme="dark").decode()
    assert "<i>" not in page
    assert "</script><b>" not in page
    assert "src=" not in page
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)
    data = re.search('id="grid-data">([^<]+)<', page)[1]
    header, values = unpacked(base64.b64decode(data))
    assert header["frame"] == 1
    assert np.array_equal(values, weights[1])
    assert json.dumps(header["dim"]) == json.dumps([True] * 6)


def test_a_map_is_told_in_words_too(store):
    weights = np.array([[0.1, 0.9, 0.0], [0.625, 0.25, 0.125]], np.float32)
    rows = ["1: writes a, after <bos>", "2"]
    view = MapView(weights, ["a", "b"], ["a*", "b", "c"], query_words=rows)
    first, second = figures.lines(view, range(2))
    assert first == "1\\: writes a, after \\<bos\\>: reads “b” (2) most, 0.900"
    assert second == "2: reads “a\\*” (1) most, 0.625"
    assert "reads “" in said(opened(constructed_run(store, text_experiment())))


def test_runs_on_two_sets_of_ones_own_are_not_held_against_each_other(store):
    with place.below(store.root):
        sets_of = [
            sets.write(prepare(inspect_text("pairs", PAIRS), name=name)) for name in ("One", "Two")
        ]
        one, other, again = (
            made_run(store, experiment=kinds.proposal(own).experiment)
            for own in (*sets_of, sets_of[0])
        )
    assert set(compare._runs(one, one)) == {"", again.id}
    assert set(compare._runs(other, other)) == {""}
