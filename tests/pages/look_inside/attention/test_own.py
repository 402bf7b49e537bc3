"""Own examples on the attention page, on runs that learned for three steps."""

import io
import json

import numpy as np
import pytest
from PIL import Image

from pages.look_inside.attention.own import DRAWN, UPLOADED, last_given
from tests.inspect.constructed import small, text_experiment, vit_experiment
from tests.pages.looking import grid, opened, part_of, said, sent, shares
from tfm_core.data.tasks import text_task
from tfm_core.data.user_picture import from_text, to_text
from tfm_core.inspect.attention.example import look_at_picture, look_at_text, read_picture
from tfm_core.runs.process.execute import execute
from tfm_core.runs.store import RunStore


@pytest.fixture(scope="module")
def of_sentences(tmp_path_factory):
    return trained(tmp_path_factory, text_experiment())


@pytest.fixture(scope="module")
def of_pictures(tmp_path_factory):
    return trained(tmp_path_factory, vit_experiment())


@pytest.fixture
def reader(of_sentences, monkeypatch):
    """A run of sentences, in the store of the pages."""
    return in_sight(of_sentences, monkeypatch)


@pytest.fixture
def viewer(of_pictures, monkeypatch):
    """A run of pictures, in the store of the pages."""
    return in_sight(of_pictures, monkeypatch)


def in_sight(trained, monkeypatch):
    store, run = trained
    monkeypatch.setenv("TFM_RUNS_DIR", str(store.root))
    return run


def trained(tmp_path_factory, experiment):
    """Return the store and the run of an experiment that learned for three steps."""
    store = RunStore(tmp_path_factory.mktemp("runs"), recorded=None)
    run = store.create(small(experiment))
    assert execute(run).state == "finished"
    return store, run


def test_an_own_sentence_is_read_with_the_last_checkpoint(reader):
    at = opened(reader, example="own", text="forty two", kind="encoder")
    assert "Read with the last checkpoint, step 3." in said(at)
    header, weights = grid(at)
    assert header["key"] == ["forty", "two"]
    expected = look_at_text(reader, "forty two").attention["encoder.layers.1.self_attention"]
    assert np.array_equal(weights[1], expected)
    at.text_input(key="attention-text").set_value("sixty").run()
    assert at.query_params["text"] == "sixty"
    assert grid(at)[0]["key"] == ["sixty"]
    at.text_input(key="attention-text").set_value("sixty " * 300).run()
    assert "The text has 1,800 characters; the limit is 1,200" in said(at)
    assert at.text_input(key="attention-text").value == "sixty " * 300


def test_words_are_chips_and_a_sentence_that_cannot_be_read_is_mended(reader):
    at = opened(reader, example="own", text="forty")
    sent = json.loads(part_of(at, "word_chips").json)
    assert {"forty", "two", "hundred"} <= {
        word for _name, words in sent["groups"] for word in words
    }
    assert sent["field"] == "attention-text"
    at.button(key="attention-surprise").click().run()
    assert not at.warning
    text = at.text_input(key="attention-text").value
    assert text_task(reader.experiment.task).solve(text.split()) is not None
    at.button(key="attention-clear").click().run()
    assert "There is nothing to read" in at.warning[0].value
    at = opened(reader, example="own")
    at.text_input(key="attention-text").set_value("forty tow").run()
    assert "“tow” is not a word of this task" in at.warning[0].value
    assert not at.error
    assert "Shown below: “" in said(at)  # what was read last stays
    assert grid(at)[1].size
    at = opened(reader, example="own", text="fourty too")
    assert "fourty → forty" in said(at)
    at.button(key="attention-nearest").click().run()
    assert not at.warning
    assert at.query_params["text"] == "forty two"
    assert grid(at)[0]["key"] == ["forty", "two"]


def test_an_own_picture_is_read_with_the_last_checkpoint(viewer):
    at = opened(viewer, example="own")
    assert part_of(at, "drawing_board")
    drawn = np.zeros((64, 64), np.uint8)
    drawn[10:50, 28:34] = 255
    file = io.BytesIO()
    Image.fromarray(drawn).save(file, "PNG")
    at.file_uploader(key="attention-upload").set_value(("one.png", file.getvalue(), "image/png"))
    at.run()
    assert "centred, as in MNIST" in said(at)
    picture, _notes = read_picture(viewer, drawn)
    expected = look_at_picture(viewer, picture).probabilities
    assert shares(at) == pytest.approx(expected.astype(float))
    again = opened(viewer, example="own", own=at.query_params["own"])
    assert not again.warning
    assert shares(again) == pytest.approx(expected.astype(float))


def test_an_own_picture_comes_back_out_of_the_letters_of_a_link(viewer):
    facts = viewer.experiment.task.facts
    picture = np.random.default_rng(0).integers(0, 256, (1, 28, 28), np.uint8)
    text = to_text(picture)
    assert np.array_equal(from_text(text, facts), picture)
    for broken in (text[:-9], "no letters!", "", to_text(picture.repeat(2, 1))):
        with pytest.raises(ValueError, match="picture is incomplete"):
            from_text(broken, facts)


@pytest.mark.parametrize(
    ("own", "sentence"),
    [
        ("picture-eJw", "picture is incomplete"),
        ("validation-4000", "There is no validation example 4,000; the last"),
        ("nonsense", "own is “nonsense” in the link"),
    ],
)
def test_a_link_to_an_own_example_that_is_none_gets_a_sentence(viewer, own, sentence):
    at = opened(viewer, example="own", own=own)
    assert any(sentence in part.value for part in (*at.error, *at.warning))


def test_the_arithmetic_of_a_cell_ends_in_the_weight_of_the_map_and_says_its_step(reader):
    at = opened(reader, view="arithmetic", cell="2,1", kind="decoder", layer="1", head="3")
    assert not at.error
    assert at.selectbox(key="attention-cell-query").value == 1
    row = next(frame.value for frame in at.dataframe if "exponential" in frame.value)
    _header, weights = grid(at)
    assert row["weight"].to_numpy() == pytest.approx(
        np.nan_to_num(weights[0, 2, 1].astype(float)), abs=1e-3
    )
    assert row["weight"].sum() == pytest.approx(1, abs=1e-5)
    at.selectbox(key="attention-cell-key").set_value(2).run()
    assert at.query_params["cell"] == "2,3"
    assert "The mask forbids this key" in said(at)
    at = opened(reader, view="arithmetic", step="0")
    assert "the last checkpoint, step 3; the map shows step 0" in at.info[0].value


def test_what_heads_do_is_measured_over_the_validation_set_too(reader):
    at = opened(reader, deeper="heads")
    assert "Measured on the run’s 6 examples at step 3." in said(at)
    at.toggle(key="attention-validation").set_value(True).run()
    assert "8 of 8 validation examples at step 3." in said(at)


@pytest.mark.parametrize("kind", ["text", "image"])
def test_an_example_is_chosen_by_wrong_examples(request, kind):
    run = request.getfixturevalue("reader" if kind == "text" else "viewer")
    at = opened(run, example="own")
    at.button_group(key="attention-source").set_value("mistakes").run()
    assert not at.error
    assert "validation examples are wrong" in said(at)
    if kind == "image":
        pictures = sent(at, "thumbnails")[-1]  # those of the head come first
        assert pictures["chosen"] == 0
        assert "predicted" in pictures["pictures"][0]["name"]
        assert pictures["pictures"][0]["wrong"]
        assert "✗ wrong" in said(at)
        return
    first = at.selectbox(key="attention-mistake").value
    at.selectbox(key="attention-mistake").select_index(1).run()
    weights = grid(at)[1]
    assert weights.size
    again = opened(run, example="own", own=at.query_params["own"])
    picked = at.selectbox(key="attention-mistake").value
    assert picked != first
    assert again.selectbox(key="attention-mistake").value == picked
    assert np.array_equal(grid(again)[1], weights, equal_nan=True)


def test_the_last_thing_done_is_read():
    drawn, file = np.ones((5, 5), np.uint8), b"a file"
    assert last_given(drawn, file, UPLOADED) is file
    assert last_given(drawn, file, DRAWN) is drawn
    assert last_given(None, file, DRAWN) is None  # cleared, to draw another
    assert last_given(drawn, None, UPLOADED) is drawn
    assert last_given(None, file, None) is file
