"""The page on which a model writes, through the frame, on the recorded runs."""

import numpy as np
import pytest

from pages.components.writing_desk import DeskView, pack_desk
from tests.pages.looking import header_of, part_of, said
from tests.pages.opening import opened_at
from tfm_core.decoding import SamplingConfig
from tfm_core.inspect.writing import steps
from tfm_core.inspect.writing.source import source_of
from tfm_core.runs.store import RECORDED

PAGE = "translate/page.py"
TEXT = "A teacher bought a big egg and a book."


@pytest.fixture(autouse=True)
def recorded(store, monkeypatch):
    monkeypatch.setattr(store, "recorded", RECORDED)
    return store


def desk(app):
    return unpacked(part_of(app, "writing_desk").bytes)


def unpacked(sent):
    length = int.from_bytes(sent[:4], "little")
    return header_of(sent), np.frombuffer(sent[4 + length :], "<f4")


def opened(run="recorded-korean", **query):
    app = opened_at(PAGE, run=run, **query)
    assert not app.exception
    return app


def test_cold_a_recorded_translator_writes_at_once():
    app = opened_at(PAGE)
    assert not app.exception
    header, weights = desk(app)
    assert [step["token"] for step in header["steps"]][-1] == "<eos>"
    assert header["keys"] == TEXT.lower().rstrip(".").split()
    assert weights.size == len(header["steps"]) * len(header["keys"])


def test_it_opens_half_trained_and_ends_at_the_last_weights():
    app = opened()
    slider = app.select_slider(key="translate-weights")
    assert slider.value == 63
    assert "half-trained" in said(app)
    assert app.query_params["weights"] == "63"
    chances = [step["best"][0][2] for step in desk(app)[0]["steps"]]
    assert min(chances) < 0.5
    slider.set_value(1000).run()
    assert "half-trained" not in said(app)
    assert "weights" not in app.query_params
    assert min(step["best"][0][2] for step in desk(app)[0]["steps"]) > 0.9
    assert "right" in said(app)


def test_a_link_with_a_text_and_no_step_is_of_the_last_weights():
    assert opened(text=TEXT).select_slider(key="translate-weights").value == 1000
    app = opened(text=TEXT, weights="60")
    assert app.select_slider(key="translate-weights").value == 63
    assert "60" in app.warning[0].value
    assert opened(weights="x").select_slider(key="translate-weights").value == 1000
    assert opened(method="beam").select_slider(key="translate-weights").value == 63


@pytest.mark.parametrize(
    ("run", "n_read"),
    [
        ("recorded-additive", 9),
        ("recorded-grammar", 3),
        ("recorded-masked-words", 6),
        ("recorded-captions", 49),
    ],
)
def test_every_family_that_writes_does_so_here(run, n_read):
    app = opened(run)
    header, _weights = desk(app)
    assert header["n_read"] == n_read
    assert header["steps"]
    assert (header["picture"] is not None) == (run == "recorded-captions")
    has_methods = run != "recorded-masked-words"
    assert has_methods == any(one.key == "translate-method" for one in app.button_group)
    if not has_methods:
        assert "writes all positions at once" in said(app)


def test_a_forced_token_of_the_link_stands_there_and_what_would_be_is_said():
    free, _weights = desk(opened(text=TEXT))
    other = free["steps"][1]["best"][2]
    header, _weights = desk(opened(text=TEXT, forced=f"2-{other[0]}"))
    assert header["steps"][1]["token"] == other[1]
    assert header["steps"][1]["forced"]
    assert header["forced"] == [other[1]]
    assert header["own"] == [step["token"] for step in free["steps"]]


def test_another_text_lets_forced_tokens_go():
    app = opened(text=TEXT, forced="2-20", at="3")
    assert desk(app)[0]["at"] == 3
    app.text_input(key="translate-text").set_value("The cat sees a dog.").run()
    assert not app.exception
    assert desk(app)[0]["forced"] == []
    assert "forced" not in app.query_params
    assert "at" not in app.query_params


def test_an_unknown_word_is_named_with_near_ones_and_mended_by_a_press():
    app = opened(text="The techer saw a cat")
    assert "Try teacher" in app.warning[0].value
    assert app.text_input(key="translate-text").value == "The techer saw a cat"
    app.button(key="translate-nearest").click().run()
    assert not app.warning
    assert "teacher" in desk(app)[0]["keys"]


def test_sampling_draws_by_its_seed_and_shows_what_it_draws_from():
    link = {"method": "sample", "temperature": "2.0", "top-k": "5", "text": TEXT}
    header, _weights = desk(opened(seed="1", **link))
    assert header["is_drawn"]
    assert {step["n_left"] for step in header["steps"]} == {5}
    app = opened(seed="1", **link)
    assert desk(app)[0]["steps"] == header["steps"]
    app.button(key="translate-draw").click().run()
    assert app.query_params["seed"] == "2"


def test_a_beam_is_a_tree_with_a_ranking_and_says_whether_more_was_found():
    app = opened(method="beam", width="2", text=TEXT)
    assert "likelier text found" in said(app) or "times as likely" in said(app)
    ranking, others = (frame.value for frame in app.dataframe)
    scores = list(ranking["Score (ln p)"])
    assert len(scores) == 2
    assert scores == sorted(scores, reverse=True)
    assert set(others["Found by"]) >= {"Beam, width 64", "Greedy", "Sample"}


def test_the_truth_stands_beside_or_it_is_said_that_nobody_knows_it():
    app = opened(method="beside", text=TEXT)
    assert "They never diverge" in said(app)
    app = opened(method="beside", text="book book book")
    assert "The task has no answer for this sentence" in app.info[0].value
    app.button(key="translate-known-0").click().run()
    assert "with teacher forcing" in said(app)


def test_a_run_that_writes_nothing_offers_one_that_does():
    app = opened("recorded-digits")
    assert "writes no text" in said(app)
    app.button(key="translate-open-recorded-korean").click().run()
    assert not app.exception
    assert desk(app)[0]["steps"]


def test_the_desk_gets_every_step_with_what_was_weighed(recorded):
    source = source_of(recorded.get("recorded-korean"), TEXT)
    writing = steps.write(source, SamplingConfig(temperature=0))
    sent = pack_desk(writing, writing.looked(0), DeskView(at=99, mark="m"))
    header, weights = unpacked(sent)
    assert header["at"] == len(writing.tokens)
    for step, token in zip(header["steps"], writing.tokens, strict=True):
        assert step["best"][0][:2] == [token.best[0].id, token.best[0].token]
    assert weights.size == writing.looked(0).size
