"""Findings: the gallery, each finding cold and with runs that hold little, and older addresses."""

import re

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.app import show
from pages.app.navigation import page_table
from pages.app.navigation.frame import _entries
from pages.app.navigation.page_table import OLD_ADDRESSES, current_address
from pages.findings import recipe
from tests.pages.learn.challenges.test_predict import guessed, labels
from tests.pages.looking import said, sent
from tests.pages.made_runs import made_run
from tests.pages.opening import address_of, opened_at
from tfm_core.recorded import build
from tfm_core.studies import superposition
from tfm_core.studies.induction import INDUCTION
from tfm_core.studies.phenomena import FINDINGS, PHENOMENA

ALL = pytest.mark.parametrize("name", FINDINGS)


def page(name: str = "", **query: str) -> AppTest:
    return opened_at("findings/page.py", **({"finding": name} if name else {}), **query)


def test_the_gallery_has_a_card_for_each_whose_picture_is_of_its_run(recorded):
    app = page()
    assert tuple(FINDINGS) == tuple(page_table.FINDINGS)
    opens = [one.key for one in app.button if "open-" in str(one.key)]
    assert opens == [f"open-{name}" for name in FINDINGS]
    pictures = dict(zip(FINDINGS, sent(app, "moving_picture"), strict=True))
    x, y, _colour = pictures["grokking"]["lines"][0]
    run = recorded.get("recorded-grokking-decay")
    measured = run.curves().validation
    assert (x, y) == (measured["step"].tolist(), pytest.approx(measured["accuracy"].tolist()))
    vectors, _biases, _best = superposition.recorded()
    tips = [[x[-1], y[-1]] for x, y, _colour in pictures["superposition"]["lines"]]
    assert tips == vectors[0, -1, -1].tolist()
    assert len(pictures["specialise"]["rows"]) == 4
    assert max(pictures["induction"]["weights"][-1]) > 0.8  # the stripe


def test_a_card_opens_its_finding_which_leads_back(recorded):
    app = page()
    app._page_hash = ""  # else each press would begin on this page again
    app = app.button(key="open-sinks").click().run()
    assert app.title[0].value == "Attention sinks"
    assert address_of(app)["finding"] == "sinks"
    app = app.button(key="open-all").click().run()
    assert app.title[0].value == "Findings"
    assert "finding" not in address_of(app)
    assert "finding is “nothing-like-it”" in said(page("nothing-like-it"))


@ALL
def test_a_finding_hides_nothing_and_its_question_is_asked_besides(name, recorded):
    app = page(name)
    assert not app.error
    assert "**Why:**" in said(app)
    assert [one.label for one in app.expander if one.label == "Guess first"]
    assert "of 1 right on the first try" in said(guessed(app))


@pytest.mark.parametrize("name", PHENOMENA)
def test_a_run_that_has_just_begun_is_no_error(store, name):
    one = PHENOMENA[name]
    made_run(store, experiment=one.experiment(one.arms[0]), state="running")
    assert any(label.startswith("Train ") for label in labels(page(name)))


def test_a_run_that_was_stopped_is_named_and_the_rest_may_be_trained(store):
    made_run(store, experiment=INDUCTION.experiment(INDUCTION.arms[0]), state="stopped")
    app = page("induction")
    assert "Stopped" in said(app)
    assert any(label.startswith(f"Train {len(INDUCTION.arms)} runs") for label in labels(app))


@pytest.mark.parametrize("name", build.FINDINGS)
def test_the_first_recorded_run_of_a_finding_is_looked_into(recorded, name):
    links = [link.proto for link in page(name).get("page_link")]
    (look_inside,) = [link for link in links if link.label == "Look inside"]
    assert look_inside.page == "attention"
    run = f"run=recorded-{name}-{PHENOMENA[name].arms[0].name}"
    assert run in look_inside.query_string


@pytest.mark.parametrize("events", ["{\n", ""])
def test_damaged_events_of_a_run_are_no_error(store, events):
    run = made_run(store, experiment=INDUCTION.experiment(INDUCTION.arms[0]))
    (run.folder / "events.jsonl").write_text(events, encoding="utf-8")
    assert not page("induction").exception


def test_more_seeds_and_a_line_in_context_are_trained_from_the_page(store):
    page("chains").button(key="chains-train-line").click().run()
    (run,) = store.list()
    assert run.experiment.task.name == "lines"
    page("induction").button(key="experiment-seeds").click().run()
    assert len(store.list()) > len(INDUCTION.arms)


def test_induction_heads_are_mapped_the_one_that_does_most_first(recorded):
    words = said(page("induction"))
    found = re.findall(r"(layer \d, head \d); ([\d.]+)% right without it", words)
    assert [head for head, _right in found] == ["layer 2, head 2", "layer 2, head 1"]
    assert float(found[0][1]) < float(found[1][1])


def test_the_table_of_sums_is_that_of_the_chosen_step(recorded):
    assert "**Step 1,300:** 100% of the trained sums are right, 100% of the others" in said(
        page("grokking")
    )
    app = page("grokking", step="300")
    (_all, trained, new) = re.findall(r"Step (\d+):\*\* ([\d.]+)% .*, ([\d.]+)% of", said(app))[0]
    assert float(trained) > 95 > 60 > float(new)


def test_a_line_named_like_the_even_spread_has_the_look_of_its_place(monkeypatch):
    drawn = []
    monkeypatch.setattr(recipe, "live_figure", lambda figure, **_more: drawn.append(figure))
    line = np.array([0.0, 1.0]), np.array([0.5, 0.5])
    recipe.draw({"": {"even spread": line}}, key="named", name="")
    recipe.draw({"": {"head": line}}, key="even", name="", even=[line])
    (named,), (head, even) = ([trace.line for trace in figure.data] for figure in drawn)
    assert (named.color, named.dash) == (head.color, head.dash)
    assert (even.color, even.dash) != (head.color, head.dash)


def test_a_feature_that_is_switched_on_changes_the_error(recorded):
    def error(app: AppTest) -> float:
        return float(re.findall(r"Trained on dense features:\*\* error ([\d.]+)", said(app))[0])

    app = page("superposition")
    before = error(app)
    (field,) = [one for one in app.get("button_group") if one.key == "superposition-there"]
    field.set_value([1, 2, 3]).run()
    assert error(app) != before


# ---- addresses


@ALL
def test_an_older_address_leads_to_the_finding(name, recorded):
    query = {"run": "recorded-korean", "lesson": "discover.6"} if name == "specialise" else {}
    assert OLD_ADDRESSES[name].page == "findings"
    there, today = current_address(name, query)
    assert (there, today) == ("findings", {"finding": name, **query})
    app = opened_at(page_table.PAGES[there].file, **today)
    assert app.title[0].value == show.words(name).title
    assert address_of(app)["finding"] == name


@ALL
def test_the_search_finds_each_finding(name):
    found = [one for one in _entries("en", "") if f"finding={name}" in one.href]
    assert [one.name for one in found] == [show.words(name).title]
