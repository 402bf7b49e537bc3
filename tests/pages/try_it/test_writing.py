"""The page on which a model writes, through the frame, on the recorded runs."""

import numpy as np
import pytest

from tests.pages.looking import header_of, part_of, said
from tests.pages.opening import opened_at

PAGE = "try_it/page.py"
TEXT = "A teacher bought a big egg and a book."


pytestmark = pytest.mark.usefixtures("recorded")


def desk(app):
    return unpacked(part_of(app, "writing_desk").bytes)


def unpacked(sent):
    length = int.from_bytes(sent[:4], "little")
    return header_of(sent), np.frombuffer(sent[4 + length :], "<f4")


def opened(run="recorded-korean", **query):
    return opened_at(PAGE, run=run, **{"view": "write", **query})


def test_cold_it_writes_with_the_last_weights_and_a_link_with_its_own():
    app = opened_at(PAGE)
    header, weights = desk(app)
    assert [step["token"] for step in header["steps"]][-1] == "<eos>"
    assert header["keys"] == TEXT.lower().rstrip(".").split()
    assert weights.size == len(header["steps"]) * len(header["keys"])
    assert min(step["best"][0][2] for step in header["steps"]) > 0.9
    assert "right" in said(app)
    app = opened(text=TEXT, step="60")
    assert app.query_params["step"] == "63"
    assert "60" in app.warning[0].value
    assert min(step["best"][0][2] for step in desk(app)[0]["steps"]) < 0.5
    app.select_slider(key="head-step").set_value(-1).run()
    assert "step" not in app.query_params


def test_forced_tokens_stand_and_unknown_words_are_mended():
    free, _weights = desk(opened(text=TEXT))
    other = free["steps"][1]["best"][2]
    header, _weights = desk(opened(text=TEXT, forced=f"2-{other[0]}"))
    assert header["steps"][1]["token"] == other[1]
    assert header["steps"][1]["forced"]
    assert header["forced"] == [other[1]]
    assert header["own"] == [step["token"] for step in free["steps"]]
    app = opened(text=TEXT, forced="2-20", at="3")
    assert desk(app)[0]["at"] == 3
    app.text_input(key="write-text").set_value("The cat sees a dog.").run()
    assert desk(app)[0]["forced"] == []
    assert "forced" not in app.query_params
    assert "at" not in app.query_params
    app = opened(text="The techer saw a cat")
    assert "Try teacher" in app.warning[0].value
    assert app.text_input(key="write-text").value == "The techer saw a cat"
    app.button(key="write-nearest").click().run()
    assert not app.warning
    assert "teacher" in desk(app)[0]["keys"]


def test_samples_are_drawn_by_seed_and_beams_are_a_tree():
    link = {"method": "sample", "temperature": "2.0", "top-k": "5", "text": TEXT}
    header, _weights = desk(opened(seed="1", **link))
    assert header["is_drawn"]
    assert {step["n_left"] for step in header["steps"]} == {5}
    app = opened(seed="1", **link)
    assert desk(app)[0]["steps"] == header["steps"]
    app.button(key="write-draw").click().run()
    assert app.query_params["seed"] == "2"
    app = opened(method="beam", width="2", text=TEXT)
    assert "found no likelier text" in said(app) or "times as likely" in said(app)
    ranking, others = (frame.value for frame in app.dataframe)
    scores = list(ranking["Score (ln p)"])
    assert len(scores) == 2
    assert scores == sorted(scores, reverse=True)
    assert set(others["Found by"]) >= {"Beam, width 64", "Greedy", "Sample"}


def test_the_truth_stands_beside_and_another_run_is_shown_for_what_writes_nothing():
    app = opened(method="beside", text=TEXT)
    assert "They never diverge" in said(app)
    app = opened(method="beside", text="book book book")
    assert "The task has no answer for this sentence" in app.info[0].value
    app.button(key="write-known-0").click().run()
    assert "with teacher forcing" in said(app)
    app = opened("recorded-digits")
    assert "This page needs a model that writes" in said(app)
    assert desk(app)[0]["steps"]


def test_a_model_that_writes_all_positions_at_once_has_no_methods():
    app = opened("recorded-masked-words")
    assert desk(app)[0]["n_read"] == 6
    assert not [one for one in app.button_group if one.key == "write-method"]
    assert "writes all positions at once" in said(app)
