"""Tours: stop by stop, by links, off the way, on a busy machine, with wrong answers."""

import json
import re
from typing import Any

import pytest
from streamlit.components.v2.bidi_component import main
from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.testing.v1 import AppTest

from pages.app.navigation.page_table import PAGES
from pages.app.tour.bar import TOUR
from pages.app.tour.stops import TOURS, address
from pages.i18n import paragraph
from tests.limits import limited
from tests.pages.looking import part_of
from tests.pages.made_runs import made_run
from tests.pages.opening import opened_at
from tfm_core.choices.presets import PRESETS
from tfm_core.runs.run import Run
from tfm_core.runs.store import RECORDED, RunStore

FINDINGS = {page.name for page in PAGES.values() if page.place == "findings"}
STOPS = [(tour, stop) for tour in TOURS.values() for stop in tour.stops]


class Walker:
    """Somebody on a tour: reads the bar and presses its buttons."""

    def __init__(self, triggers: dict[str, str], place: str, **query: str) -> None:
        self._triggers = triggers
        stop = TOUR.follow(place, None)[0]  # a bad link opens Home
        page = PAGES["home" if stop is None else stop.stop.page]
        self.app = opened_at(page.file, **({"tour": place} if place else {}), **query)
        self.app._page_hash = ""  # else each press would begin on this page again

    @property
    def bar(self) -> dict[str, Any]:
        """What the browser gets of the bar."""
        shown: dict[str, Any] = json.loads(part_of(self.app, "tour").json)[0]
        return shown

    @property
    def has_bar(self) -> bool:
        return any(one.proto.component_name == "tour" for one in self.app.get("bidi_component"))

    @property
    def buttons(self) -> dict[str, bool]:
        """The buttons by name, and whether each can be pressed."""
        return {one["name"]: not one["is_off"] for one in self.bar["buttons"]}

    def send(self, event: str, value: object, *, part: str = "tour-bar") -> None:
        """Send what a browser would, or might."""
        (trigger,) = {id for name, id in self._triggers.items() if part in name}
        states = WidgetStates()
        told = json.dumps([{"event": event, "value": value}])
        states.widgets.add(id=trigger, json_trigger_value=told)
        self.app = self.app._run(states)

    def press(self, name: str) -> None:
        self.send("go", [self.bar["place"], name])

    def answer(self, index: int) -> None:
        self.send("answer", [self.bar["place"], index])


def address_of(app: AppTest) -> dict[str, str]:
    """Return the address as a browser shows it: AppTest has lists of what the page wrote."""
    query = dict(app.query_params)
    return {name: text if isinstance(text, str) else text[-1] for name, text in query.items()}


@pytest.fixture
def walk(recorded, monkeypatch):
    """Open a stop by its link."""
    triggers: dict[str, str] = {}
    known = main.make_bidi_component_presenter

    def spied(trigger: str, component: str, allowed: set[str] | None) -> Any:
        triggers[component] = trigger
        return known(trigger, component, allowed)

    monkeypatch.setattr(main, "make_bidi_component_presenter", spied)
    return lambda place, **query: Walker(triggers, place, **query)


@pytest.mark.parametrize(("tour", "stop"), STOPS)
def test_a_stop_says_little_outlines_something_and_leaves_the_address(tour, stop, walk):
    assert 10 <= len(paragraph(f"tour/{tour.name}-{stop.name}").split()) <= 50
    assert stop.outlines
    run = Run(RECORDED / tour.recorded)
    assert tour.fits(run.experiment)
    assert tour.fits(PRESETS[tour.preset].experiment)
    path, query = address(stop, run)
    assert path == PAGES[stop.page].path
    assert query["run"] == run.id
    run = Run(RECORDED / tour.recorded)
    _path, query = address(stop, run)
    place = f"{tour.name}.{tour.stops.index(stop) + 1}"
    walker = walk(place, **query)
    # said, as the visitor may have chosen another before
    usual = {"method", "example", "show", "text", "patch"}
    kept = {name: text for name, text in query.items() if name not in usual}
    assert address_of(walker.app) == {**kept, "tour": place}


def test_a_tour_leads_to_every_finding_and_leaves_out_models_without_its_stops():
    assert {stop.page for stop in TOURS["discover"].stops} == FINDINGS
    seen = PRESETS["translate"].experiment
    blind = seen.replace(model=seen.model.replace(mistakes=("no-causal-mask",)).model_dump())
    placed = PRESETS["vit-digits"].experiment
    adrift = placed.replace(model=placed.model.replace(position="none").model_dump())
    assert not TOURS["translate"].fits(blind)
    assert not TOURS["digit"].fits(adrift)


def keys_of(block: Any) -> set[str]:
    """Return the keys of all containers and elements, by which stops find them."""
    own = getattr(getattr(block, "proto", None), "id", "")
    keys = {own.split("-", 2)[-1]} if own else set()
    return keys.union(*map(keys_of, getattr(block, "children", {}).values()))


def is_there(outline: str, app: AppTest) -> bool:
    """Return whether one of the places that an outline names is on the page."""
    if ".stForm" in outline and any(button.proto.is_form_submitter for button in app.button):
        return True
    keys = keys_of(app._tree)
    return any(
        name in keys or (name.endswith("-") and any(key.startswith(name) for key in keys))
        for name in re.findall(r"st-key-([a-z-]+)", outline)
    )


@pytest.mark.parametrize("tour", TOURS.values(), ids=TOURS)
def test_a_tour_leads_over_one_run_to_its_end(tour, walk):
    walker = walk(f"{tour.name}.1")
    for number, stop in enumerate(tour.stops, 1):
        bar, app = walker.bar, walker.app
        assert bar["place"] == f"{tour.name}.{number}"
        assert bar["count"] == f"{number} of {len(tour.stops)}"
        assert bar["outlines"] == list(stop.outlines)
        assert all(is_there(outline, app) for outline in stop.outlines), stop.name
        assert not is_there(".st-key-nowhere", app)
        assert app.session_state["page"] == PAGES[stop.page].url_path
        assert address_of(app)["tour"] == bar["place"]
        assert bar["run"] == tour.recorded
        if number > 1:
            assert address_of(app)["run"] == tour.recorded
        if stop.asks is not None:
            assert bar["question"]["right"] is None
            assert bar["question"]["verdict"] == ""
            walker.answer(0)
            asked = walker.bar["question"]
            assert asked["chosen"] == 0
            assert asked["right"] in range(len(asked["options"]))
            assert asked["verdict"].startswith("Right." if asked["right"] == 0 else "No.")
            assert walker.bar["veils"] == []
        walker.press("finish" if number == len(tour.stops) else "next")
    assert not walker.has_bar
    assert "tour" not in walker.app.query_params
    assert any("That was the tour" in one.value for one in walker.app.info)


def test_the_first_answer_counts_and_comes_back(walk):
    walker = walk("translate.1")
    options = len(walker.bar["question"]["options"])
    walker.answer(options - 1)
    walker.answer(0)
    asked = walker.bar["question"]
    assert asked["chosen"] == options - 1
    assert asked["right"] != options - 1  # random weights are not nearly always right
    assert asked["verdict"].startswith("No.")
    walker = walk("translate.5", run="recorded-korean")
    assert walker.bar["veils"] == [".st-key-attention-one", ".st-key-attention-lines"]
    walker.answer(1)
    assert walker.bar["veils"] == []
    walker = walk("translate.1")
    assert "back" not in walker.buttons
    walker.answer(0)
    walker.press("next")
    walker.press("back")
    assert walker.bar["place"] == "translate.1"
    assert walker.bar["question"]["chosen"] == 0
    walker = walk("translate.8", run="recorded-korean")
    walker.press("other")
    assert walker.bar["place"] == "digit.1"
    assert walker.bar["run"] == "recorded-digits"
    walker = walk("translate.1")
    for value in (None, 7, "next", ["translate.2", "next"], ["translate.1", "finish"], [[], {}]):
        walker.send("go", value)
        assert walker.bar["place"] == "translate.1"
    for value in (None, 0, ["translate.1", True], ["translate.1", 7], ["translate.1", "0"]):
        walker.send("answer", value)
        assert walker.bar["question"]["chosen"] is None


# ---- from Home


@pytest.mark.parametrize("tour", ["translate", "digit"])
def test_home_begins_a_tour(tour, walk):
    walker = walk("")
    assert not walker.has_bar
    walker.app = walker.app.button(key=f"tour-{tour}").click().run()
    assert walker.bar["place"] == f"{tour}.1"
    assert address_of(walker.app)["tour"] == f"{tour}.1"


@pytest.mark.parametrize(
    ("left", "place", "run"),
    [
        (["translate.7", "recorded-korean"], "translate.7", "recorded-korean"),
        (["digit.2", "nowhere"], "digit.2", "recorded-digits"),
        (["digit.2", "recorded-korean"], "digit.2", "recorded-digits"),
    ],
)
def test_home_resumes_the_tour_that_a_browser_has_left(left, place, run, walk):
    walker = walk("")
    walker.send("resume", left, part="tour-resume")
    assert walker.bar["place"] == place
    assert walker.bar["run"] == run
    assert walker.app.session_state["page"] == PAGES[TOUR.follow(place, None)[0].stop.page].url_path


@pytest.mark.parametrize(
    "left", [None, "digit.2", ["digit.2"], ["digit.7", "x"], ["x" * 999, "x"], [2, 3]]
)
def test_home_resumes_nothing_else(left, walk):
    walker = walk("")
    walker.send("resume", left, part="tour-resume")
    assert not walker.has_bar


# ---- links


@pytest.mark.parametrize("text", ["foo", "foo.1", "translate", "translate.x", "digit.", "." * 99])
def test_a_link_to_no_stop_is_a_sentence(text, walk):
    walker = walk(text)
    assert not walker.has_bar
    (said,) = [one.value for one in walker.app.info if "in the link" in one.value]
    assert "translate, digit" in said
    assert "tour" not in walker.app.query_params


@pytest.mark.parametrize(
    ("text", "nearest"), [("translate.99", "translate.8"), ("digit.0", "digit.1")]
)
def test_a_link_beyond_the_tour_opens_its_nearest_stop_and_says_so(text, nearest, walk):
    walker = walk(text)
    assert walker.bar["place"] == nearest
    assert any("in the link" in one.value for one in walker.app.info)


@pytest.mark.parametrize("run", ["nowhere", "recorded-digits", "../x"])
def test_a_link_with_a_run_that_does_not_fit_follows_the_recorded_one(run, walk):
    walker = walk("translate.1", run=run)
    assert walker.bar["run"] == "recorded-korean"


# ---- off the way


def test_who_wanders_off_to_a_page_or_a_run_keeps_the_bar_and_finds_back(walk):
    walker = walk("translate.5", run="recorded-korean")
    walker.app.query_params.clear()
    walker.app = walker.app.switch_page("runs/page.py").run()
    assert walker.app.session_state["page"] == "runs"
    assert walker.bar["place"] == "translate.5"
    assert walker.bar["outlines"] == walker.bar["veils"] == []
    assert walker.bar["question"] is None
    assert "Attention" in walker.bar["text"]
    assert address_of(walker.app)["tour"] == "translate.5"
    walker.press("return")
    assert walker.app.session_state["page"] == "attention"
    assert address_of(walker.app)["run"] == "recorded-korean"
    assert walker.bar["outlines"]
    walker = walk("translate.4", run="recorded-korean")
    walker.app.query_params["run"] = "recorded-digits"
    walker.app.run()
    assert walker.bar["outlines"] == []
    assert "another run" in walker.bar["text"]


# ---- one's own run


def test_training_from_the_bar_leads_on_over_the_new_run(walk, recorded):
    walker = walk("translate.2")
    assert set(walker.buttons) == {"back", "next", "train"}
    walker.press("train")
    (run,) = [run for run in recorded.list() if not run.meta.recorded]
    assert run.meta.preset == "translate"
    assert walker.bar["place"] == "translate.3"
    assert walker.bar["run"] == run.id
    assert walker.app.session_state["page"] == "train"


def test_a_busy_machine_follows_the_recorded_run(walk, busy_queue):
    walker = walk("translate.2")
    assert "recorded run" in walker.bar["wait"]
    assert "train" not in walker.buttons
    walker.press("next")
    assert walker.bar["place"] == "translate.3"
    assert walker.bar["run"] == "recorded-korean"


def test_a_start_that_is_refused_says_why_and_leaves_the_recorded_run(walk, monkeypatch):
    limited(monkeypatch, max_steps=10)
    walker = walk("translate.2")
    walker.press("train")
    assert walker.bar["place"] == "translate.2"
    assert "limit here is 10" in walker.bar["wait"]
    walker.press("next")
    assert walker.bar["place"] == "translate.3"
    assert "limit" not in walker.bar["wait"]


def own(store: RunStore, *, state: str, step: int = 1) -> Run:
    """A run of the tour's preset that has done a step and guesses."""
    return made_run(
        store, state=state, step=step, experiment=PRESETS["translate"].experiment, name="Mine"
    )


def test_a_stop_waits_for_what_it_speaks_of(walk, recorded):
    run = own(recorded, state="running")
    walker = walk("translate.3", run=run.id)
    assert walker.bar["run"] == run.id
    assert walker.bar["wait"].startswith("Waiting")
    assert walker.buttons == {"back": True, "recorded": True, "next": False}
    walker.press("next")
    assert walker.bar["place"] == "translate.3"
    walker.answer(2)
    assert walker.bar["question"]["right"] is None  # the run has not said yet
    walker.press("recorded")
    assert walker.bar["place"] == "translate.3"
    assert walker.bar["run"] == "recorded-korean"
    assert walker.buttons == {"back": True, "next": True}


def test_a_stop_goes_on_once_the_curve_has_left_guessing(walk, recorded):
    run = own(recorded, state="running", step=97)
    lines = (run.folder / "events.jsonl").read_text().splitlines()
    first = {**json.loads(lines[0]), "start_loss": 4.2, "chance": 0.01, "total_steps": 630}
    (run.folder / "events.jsonl").write_text("\n".join([json.dumps(first), *lines[1:]]) + "\n")
    walker = walk("translate.3", run=run.id)
    assert walker.buttons["next"]
    assert walker.bar["wait"] == ""  # it would answer the question
    walker.answer(0)
    assert re.search(r"left guessing at step \d", walker.bar["wait"])
    assert walker.bar["question"]["right"] is not None


def test_a_run_that_ended_too_early_or_is_deleted_gives_way_to_the_recorded_one(walk, recorded):
    run = own(recorded, state="stopped")
    walker = walk("translate.4", run=run.id)
    assert "ended before that" in walker.bar["wait"]
    assert not walker.buttons["next"]
    walker.press("recorded")
    assert walker.bar["run"] == "recorded-korean"
    assert walker.buttons["next"]
    walker = walk("translate.3", run=run.id)
    recorded.delete(run.id)
    walker.app = walker.app.run()
    assert walker.bar["run"] == "recorded-korean"


def test_without_any_run_the_tour_says_so(store):
    app = opened_at(tour="translate.1")
    assert "tour" not in app.query_params
    assert any("tour needs a run" in one.value for one in app.info)
