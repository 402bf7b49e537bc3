"""Where it fails: what is counted stands on the page, and a link opens what was chosen."""

import json
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.learned_runs import learned_run
from tests.pages.looking import said, sent
from tests.pages.opening import links, opened_at
from tfm_core.inspect.answers import answers
from tfm_core.inspect.attention.trained import steps_of
from tfm_core.inspect.errors import calibration, confusion, corpus_scores, n_like_training
from tfm_core.runs.run import Run
from tfm_core.runs.store import RECORDED

FILE = "look_inside/mistakes.py"
DIGITS = Run(RECORDED / "recorded-digits", recorded=True)
KOREAN = Run(RECORDED / "recorded-korean", recorded=True)


def opened(**query: str) -> AppTest:
    """Open the page and wait until its answers are there."""
    return settled(opened_at(FILE, **query))


def settled(app: AppTest) -> AppTest:
    while app.get("progress"):
        app.run()
    return app


def figure(app: AppTest, name: str) -> dict[str, Any]:
    (found,) = [one["figure"] for one in sent(app, "live_figure") if name in one["name"]]
    return json.loads(found)


def cards(app: AppTest) -> list[str]:
    """Return the queries of the links to Attention."""
    return [
        one.proto.query_string for one in app.get("page_link") if "validation-" in str(one.proto)
    ]


def test_it_opens_cold_with_counts_scores_and_calibration_of_the_core(recorded):
    app = opened()
    found = answers(DIGITS, steps_of(DIGITS)[-1])
    wrong = len(found.truth) - found.n_right
    assert f"**{wrong} of 500** validation examples are wrong" in said(app)
    assert "The test set is not used" in said(app)
    texts = figure(app, "Predicted for each true class")["data"][0]["text"]
    counts = [[int(cell or 0) for cell in row] for row in texts]
    assert counts == confusion(found)[0].to_numpy().tolist()
    assert len(cards(app)) == min(wrong, 24)
    found = answers(KOREAN, 137)
    app = opened(step="137", show="scores", run=KOREAN.id)
    assert found.written is not None
    scored = corpus_scores(
        [" ".join(one.tokens) for one in found.written],
        [" ".join(item["tgt"]) for item in found.items],
    )
    assert scored.keys() == {"BLEU", "chrF"}
    assert [one.value for one in app.metric] == [f"{score:.1f}" for score, _ in scored.values()]
    assert scored["BLEU"][1] in said(app)
    app = opened(step="137", show="calibration", run=KOREAN.id)
    _bins, error = calibration(found.confidence, found.is_right)
    assert f"error: **{error * 100:.1f}%** over 4,611" in said(app)


def test_a_cell_of_the_link_lists_its_errors_and_other_steps_give_no_cell(recorded):
    app = opened(step="280", cell="8,5", run=DIGITS.id)
    count = confusion(answers(DIGITS, 280))[0].loc[8, 5]
    assert f"**8** taken for **5**: {count}" in said(app)
    assert len(cards(app)) == min(24, count)
    settled(app.button(key="mistakes-all").click().run())
    assert "taken for" not in said(app)
    assert "cell" not in links(app)[0]
    assert "step=280" in links(app)[0]
    later = steps_of(DIGITS)[-2]
    settled(app.select_slider(key="head-step").set_value(later).run())
    found = answers(DIGITS, later)
    assert f"**{len(found.truth) - found.n_right} of 500** validation examples are wrong" in said(
        app
    )
    assert f"step={later}" in links(app)[0]
    app = opened(run=DIGITS.id, step="500")
    assert any("; 519 is shown" in one.value for one in app.warning)
    assert "step=519" in links(app)[0]
    app = opened(step="280", cell="8,5", run=DIGITS.id)
    app.query_params["run"] = KOREAN.id
    settled(app.run())
    assert "taken for" not in said(app)
    assert "cell" not in links(app)[0]


@pytest.mark.parametrize(
    ("run_id", "view", "words"),
    [
        (DIGITS.id, {"step": "519", "show": "groups"}, "95% intervals"),
        (DIGITS.id, {"step": "519", "show": "calibration"}, "calibration error"),
        (DIGITS.id, {"order": "sure"}, "All 22 of them"),
        (KOREAN.id, {"step": "137", "show": "groups", "by": "pattern"}, "several patterns"),
        (KOREAN.id, {"step": "137", "show": "tokens"}, "given the true tokens before"),
        (KOREAN.id, {"step": "137", "show": "scores"}, "tokenize none"),
        (KOREAN.id, {"step": "78"}, "The worst 20 of 162"),
        (KOREAN.id, {}, "No mistakes; the"),
    ],
    ids=["groups", "calibration", "sure", "patterns", "tokens", "scores", "worst", "all-right"],
)
def test_the_link_of_a_view_opens_it(recorded, run_id, view, words):
    app = opened(**view, run=run_id)
    assert words in said(app)
    assert not [one for one in app.warning if one.icon == ":material/link_off:"]
    link = links(app)[0]
    for name, text in view.items():
        assert f"{name}={text}" in link
    again = opened(**view, run=run_id)
    assert said(again) == said(app)


@pytest.mark.wide
def test_texts_that_look_like_training_are_counted(recorded):
    run = Run(RECORDED / "recorded-masked-words")
    n = n_like_training(run, answers(run, steps_of(run)[-1]))
    assert n > 0
    assert f"{n} texts differ from a training text only in the hidden words" in said(
        opened(run=run.id)
    )


def test_a_run_without_weights_says_so_and_offers_a_recorded_one(store, recorded):
    run = learned_run(store, "translate")
    app = opened_at(FILE, run=run.id)
    assert any("ended without saving weights" in one.value for one in app.error)
    settled(app.button(key="head-open-recorded-digits").click().run())
    assert "validation examples are wrong" in said(app)


def test_without_any_run_it_says_how_to_get_one(store):
    app = opened_at(FILE)
    assert app.button(key="head-train-vit-digits")
