"""Looking deeper on the attention page: explanations, positions, comparisons, files to take."""

import base64
import json
import re

import numpy as np
import pytest

from pages.components.heads import (
    Frame,
    GridStyle,
    SnapshotAnimation,
    pack_grid,
    pack_lines,
    standalone,
)
from pages.look_inside.attention import deeper, maps, page
from pages.look_inside.attention.maps import Chosen, Shown
from tests.data.user_data.test_texts import PAIRS
from tests.inspect.constructed import constructed_run, text_experiment, vit_experiment
from tests.pages.look_inside.attention.test_own import trained
from tests.pages.looking import grid, opened, part_of, said, unpacked
from tests.pages.made_runs import made_run
from tfm_core.data.user_data import kinds, sets
from tfm_core.data.user_data.texts import inspect_text, prepare
from tfm_core.inspect.attention.example import example_of
from tfm_core.inspect.attention.maps import MapView


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
    assert "**0%** of the attention differs; **100%**" in said(at)
    at.selectbox(key="attention-versus-step").set_value(0).run()
    assert at.query_params["versus"] == "1.1.0."
    assert "**0%** of the attention differs" not in said(at)
    assert "Layer 1, head 1, step 0" in said(at)
    run = constructed_run(store, text_experiment())
    other = constructed_run(store, text_experiment(n_encoder_layers=1, n_decoder_layers=1))
    at = opened(run, deeper="compare", versus=f"3.2..{other.id}")
    assert not at.error
    assert "Layer 1, head 2, step 11: Constructed" in said(at)


def test_a_comparison_that_cannot_be_says_why(store):
    run = constructed_run(store, text_experiment())
    other = constructed_run(store, vit_experiment())
    at = opened(run, deeper="compare", versus=f"1.1..{other.id}")
    assert "choose another run" in at.error[0].value
    at = opened(run, deeper="compare", versus="1.1..none-such-run")
    assert at.error
    at = opened(run, deeper="compare", versus="1.x..")
    assert "versus is “1.x..” in the link, but must be" in at.warning[0].value


@pytest.mark.parametrize("kind", ["text", "image"])
def test_every_file_to_take_away_is_made(store, kind):
    experiment = text_experiment() if kind == "text" else vit_experiment()
    run = constructed_run(store, experiment)
    at = opened(run, deeper="take", layer="1", head="1")
    probe, of = run.probe(), next(iter(maps.modules_of(run)))
    film = maps.film_of(run, probe, of, 0, 11)
    example = example_of(experiment, probe, run.snapshot(11), 0)
    chosen = Chosen(kind=of, layer=1, head=2, rows="read", patch="mean")
    shown = Shown(run, probe, 0, example, chosen, None, film)
    files = {name: make(shown) for name, make in page.FILES.items()}
    svg = files["map"].decode()
    assert svg.startswith("<svg")
    assert "Constructed: " in svg
    picture = json.loads(part_of(at, "svg_png").json)  # the browser makes the PNG of it
    assert "Constructed: " in picture["svg"]
    assert picture["name"].endswith("-layer-1-head-1")
    if kind == "text":
        assert ">&lt;eos&gt;</text>" in picture["svg"]
        assert b",writes," in files["map-numbers"]
    assert b"Plotly" in files["map-page"]
    assert files["heads"].count(b"\n") > 6
    shape = grid(at)[1].shape
    assert files["numbers"].count(b"\n") == 1 + np.prod(shape)
    assert files["map-numbers"].count(b"\n") == 1 + np.prod(shape[2:])
    assert run.meta.name in files["page"].decode()


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
    first, second = maps.in_words(view, range(2))
    assert first == "1\\: writes a, after \\<bos\\>; reads “b” (2) most, 0.900"
    assert second == "2; reads “a\\*” (1) most, 0.625"
    assert "reads “" in said(opened(constructed_run(store, text_experiment())))


def test_runs_on_two_sets_of_ones_own_are_not_held_against_each_other(store):
    with sets.below(store.root):
        sets_of = [
            sets.write(prepare(inspect_text("pairs", PAIRS), name=name)) for name in ("One", "Two")
        ]
        one, other, again = (
            made_run(store, experiment=kinds.proposal(own).experiment)
            for own in (*sets_of, sets_of[0])
        )
    assert set(deeper.same_task(one, one)) == {"", again.id}
    assert set(deeper.same_task(other, other)) == {""}
