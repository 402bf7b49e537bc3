"""Tours: stop by stop, by links, off the way, on a busy machine, with wrong answers."""

import json
import re
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from pages.app.navigation.page_table import FINDINGS, PAGES
from tests.limits import limited
from tests.pages.looking import said, sent
from tests.pages.made_runs import made_run
from tests.pages.opening import address_of, opened_at
from tfm_core.choices.presets import PRESETS
from tfm_core.lessons import attempts, catalogue
from tfm_core.lessons.lesson import Lesson
from tfm_core.lessons.stops import Stop
from tfm_core.runs.auth import hashed
from tfm_core.runs.run import Run
from tfm_core.runs.store import RECORDED, RunStore

TOURS = catalogue.catalogue().tours
TOKEN = "t" * 43


def stop_at(place: str) -> Stop:
    name, _dot, number = place.partition(".")
    stop = TOURS[name].tasks[int(number) - 1]
    assert isinstance(stop, Stop)
    return stop


class Walker:
    """Somebody on a tour: reads the bar and presses its buttons."""

    def __init__(self, place: str, *, page: str = "", **query: str) -> None:
        file = PAGES[page or stop_at(place).page].file
        self.app = opened_at(file, token=TOKEN, **({"lesson": place} if place else {}), **query)
        self.app._page_hash = ""  # else each press would begin on this page again

    @property
    def has_bar(self) -> bool:
        return bool(sent(self.app, "task_bar"))

    @property
    def bar(self) -> dict[str, Any]:
        """What the browser gets to outline."""
        ((shown,),) = sent(self.app, "task_bar")
        return shown

    @property
    def place(self) -> str:
        return address_of(self.app)["lesson"]

    @property
    def buttons(self) -> dict[str, bool]:
        """The buttons that lead on by name, and whether each can be pressed."""
        found = [one for one in self.app.button if str(one.key).startswith("task-go-")]
        return {str(one.key).removeprefix("task-go-"): not one.disabled for one in found}

    @property
    def options(self) -> list[Any]:
        task = stop_at(self.bar["place"])
        key = f"task-{self.bar['place'].partition('.')[0]}-{task.id}-"
        return [one for one in self.app.button if str(one.key).startswith(key)]

    @property
    def said(self) -> str:
        return said(self.app)

    @property
    def is_told(self) -> bool:
        """Whether the answer was compared with that of the run."""
        return bool(re.search(r"\] (Right|No)\. ", self.said))

    def press(self, name: str) -> None:
        self.app = self.app.button(key=f"task-go-{name}").click().run()

    def answer(self, index: int) -> None:
        self.app = self.options[index].click().run()


def left(place: str, run: str) -> None:
    """Leave a tour on a stop, as this browser would have done before."""
    tour, task = place.partition(".")[0], stop_at(place).id
    attempts.change(tour, hashed(TOKEN), lambda old: old.on_task(task, run))


@pytest.mark.parametrize(
    "place", [f"{t.id}.{n}" for t in TOURS.values() for n in range(1, 9) if n <= len(t.tasks)]
)
def test_a_stop_leaves_its_address_as_it_is(place, recorded):
    stop, over = stop_at(place), TOURS[place.partition(".")[0]].over
    query = stop.query(Run(RECORDED / over.recorded))
    walker = Walker(place, **query)
    # said, as the visitor may have chosen another before
    usual = {"method", "example", "show", "text", "patch"}
    kept = {name: text for name, text in query.items() if name not in usual}
    assert address_of(walker.app) == {**kept, "lesson": place}


def test_a_tour_leads_to_every_finding():
    stops = TOURS["discover"].tasks
    assert {stop.page for stop in stops} == {"findings"}
    assert tuple(stop.view["finding"] for stop in stops) == FINDINGS


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
def test_a_tour_leads_over_one_run_to_its_end(tour: Lesson, recorded):
    first = tour.tasks[0]
    on = {"run": tour.over.recorded} if tour.over and PAGES[first.page].shows_run else {}
    walker = Walker(f"{tour.id}.1", **first.view, **on)
    for number, stop in enumerate(tour.tasks, 1):
        bar, app = walker.bar, walker.app
        assert bar["place"] == walker.place == f"{tour.id}.{number}"
        assert f"{number} of {len(tour.tasks)}" in walker.said
        assert tour.words().tasks[stop.id].title in [one.value for one in app.header]
        assert bar["outlines"] == list(stop.outlines)
        assert all(is_there(outline, app) for outline in stop.outlines), stop.id
        assert not is_there(".st-key-nowhere", app)
        assert app.session_state["page"] == PAGES[stop.page].url_path
        if number > 1:
            assert address_of(app)["run"] == tour.over.recorded
        if stop.question:
            assert bar["veils"] == list(stop.veils)
            assert not walker.is_told
            walker.answer(0)
            assert walker.is_told
            assert walker.bar["veils"] == []
            assert sum("✓" in one.label for one in walker.options) == 1
            assert all(one.disabled for one in walker.options)
        walker.press("finish" if number == len(tour.tasks) else "next")
    assert not walker.has_bar
    assert "lesson" not in walker.app.query_params
    assert any("The tour ends here" in one.value for one in walker.app.info)


def test_the_first_answer_counts_and_comes_back(recorded):
    walker = Walker("translate.1")
    assert "back" not in walker.buttons
    walker.answer(len(walker.options) - 1)
    assert "No." in walker.said  # random weights are not nearly always right
    assert walker.options[-1].label.startswith(":orange[✗")
    again = Walker("translate.1")  # in another session
    assert again.options[-1].label.startswith(":orange[✗")
    again.options[0].proto.disabled = False  # as a forged message would
    again.answer(0)
    assert again.options[-1].label.startswith(":orange[✗")
    walker.press("next")
    walker.press("back")
    assert walker.place == "translate.1"
    assert walker.options[-1].label.startswith(":orange[✗")
    walker = Walker("translate.8", run="recorded-korean")
    walker.press("other")
    assert walker.place == "digit.1"
    assert address_of(walker.app)["run"] == "recorded-digits"


# ---- from Home


@pytest.mark.parametrize(
    ("tour", "page", "query"),
    [("translate", "home", {}), ("digit", "try", {"run": "recorded-digits", "view": "draw"})],
)
def test_a_page_begins_a_tour(tour, page, query, recorded):
    walker = Walker("", page=page, **query)
    assert not walker.has_bar
    walker.app = walker.app.button(key=f"tour-{tour}").click().run()
    assert walker.place == walker.bar["place"] == f"{tour}.1"


@pytest.mark.parametrize(
    ("place", "before", "run"),
    [
        ("translate.7", "recorded-korean", "recorded-korean"),
        ("digit.2", "gone-12345", "recorded-digits"),
        ("digit.2", "recorded-korean", "recorded-digits"),
    ],
)
def test_home_resumes_the_tour_that_a_visitor_left_last(place, before, run, recorded):
    left("discover.3", "recorded-korean")
    left(place, before)
    walker = Walker("", page="home")
    walker.app = walker.app.button(key="tour-resume").click().run()
    assert walker.place == place
    assert address_of(walker.app)["run"] == run
    assert walker.app.session_state["page"] == PAGES[stop_at(place).page].url_path


def test_home_resumes_nothing_that_was_finished_or_is_no_stop(recorded):
    left("digit.2", "recorded-digits")
    attempts.change("digit", hashed(TOKEN), lambda old: old.on_task(""))
    attempts.change("translate", hashed(TOKEN), lambda old: old.on_task("no-such-stop"))
    app = Walker("", page="home").app
    assert "tour-resume" not in {one.key for one in app.button}


# ---- links


@pytest.mark.parametrize("name", ["foo", "foo.1", "." * 99, "../x"])
def test_a_link_to_no_tour_is_a_sentence(name, recorded):
    app = opened_at(tour=name)
    assert not sent(app, "task_bar")
    assert "There is no lesson" in said(app)


@pytest.mark.parametrize(
    ("text", "nearest"),
    [("translate.99", "translate.8"), ("digit.0", "digit.1"), ("translate.x", "translate.1")],
)
def test_a_link_beyond_the_tour_opens_its_nearest_stop_and_says_so(text, nearest, recorded):
    app = opened_at(tour=text)
    assert address_of(app) == {
        "lesson": nearest,
        **({"run": address_of(app)["run"]} if "run" in app.query_params else {}),
    }
    assert any("The link asks" in one.value for one in app.warning)


def test_an_older_link_to_a_stop_opens_it(recorded):
    app = opened_at("look_inside/attention/page.py", tour="translate.5", run="recorded-korean")
    assert sent(app, "task_bar")[0][0]["place"] == "translate.5"
    assert address_of(app)["lesson"] == "translate.5"
    assert "tour" not in app.query_params


@pytest.mark.parametrize("run", ["nowhere", "recorded-digits", "../x"])
def test_a_link_with_a_run_that_does_not_fit_follows_the_recorded_one(run, recorded):
    walker = Walker("translate.1", run=run)
    walker.press("next")
    assert address_of(walker.app)["run"] == "recorded-korean"


# ---- off the way


def test_who_wanders_off_to_a_page_or_a_run_keeps_the_bar_and_finds_back(recorded):
    walker = Walker("translate.5", run="recorded-korean")
    walker.app.query_params.clear()
    walker.app = walker.app.switch_page("runs/page.py").run()
    assert walker.app.session_state["page"] == "runs"
    assert walker.bar["place"] == walker.place == "translate.5"
    assert walker.bar["outlines"] == walker.bar["veils"] == []
    assert not walker.options
    assert "This stop is on the page Attention" in walker.said
    walker.press("open")
    assert walker.app.session_state["page"] == "attention"
    assert address_of(walker.app)["run"] == "recorded-korean"
    assert walker.bar["outlines"]
    walker = Walker("translate.4", run="recorded-korean")
    walker.app.query_params["run"] = "recorded-digits"
    walker.app.run()
    assert walker.bar["outlines"] == []
    assert "another run" in walker.said


# ---- one's own run


def test_training_from_the_bar_leads_on_over_the_new_run(recorded):
    walker = Walker("translate.2")
    assert set(walker.buttons) == {"back", "next", "train"}
    walker.press("train")
    (run,) = [run for run in recorded.list() if not run.meta.recorded]
    assert run.meta.preset == "translate"
    assert run.meta.lesson is None
    assert walker.place == "translate.3"
    assert address_of(walker.app)["run"] == run.id
    assert walker.app.session_state["page"] == "train"


def test_a_busy_machine_follows_the_recorded_run(recorded, busy_queue):
    walker = Walker("translate.2")
    assert "The tour shows the recorded run instead" in walker.said
    assert "train" not in walker.buttons
    walker.press("next")
    assert walker.place == "translate.3"
    assert address_of(walker.app)["run"] == "recorded-korean"


def test_a_start_that_is_refused_says_why_and_leaves_the_recorded_run(recorded, monkeypatch):
    limited(monkeypatch, max_steps=10)
    walker = Walker("translate.2")
    walker.press("train")
    assert walker.place == "translate.2"
    assert "limit is 10" in walker.said
    walker.press("next")
    assert walker.place == "translate.3"
    assert "the limit is" not in walker.said


def own(store: RunStore, *, state: str, step: int = 1) -> Run:
    """A run of the tour's preset that has done a step and guesses."""
    return made_run(
        store, state=state, step=step, experiment=PRESETS["translate"].experiment, name="Mine"
    )


def test_a_stop_waits_for_what_it_speaks_of(recorded):
    run = own(recorded, state="running")
    walker = Walker("translate.3", run=run.id)
    assert "Waiting …" in walker.said
    assert walker.buttons == {"back": True, "recorded": True, "next": False}
    walker.answer(2)
    assert not walker.is_told  # the run has not said yet
    assert "see what the run shows" in walker.said
    walker.press("recorded")
    assert walker.place == "translate.3"
    assert address_of(walker.app)["run"] == "recorded-korean"
    assert walker.buttons == {"back": True, "next": True}
    assert not walker.options[0].disabled  # of another run, nothing is answered


def test_a_stop_goes_on_once_the_curve_has_left_guessing(recorded):
    run = own(recorded, state="running", step=97)
    lines = (run.folder / "events.jsonl").read_text().splitlines()
    first = {**json.loads(lines[0]), "start_loss": 4.2, "chance": 0.01, "total_steps": 630}
    (run.folder / "events.jsonl").write_text("\n".join([json.dumps(first), *lines[1:]]) + "\n")
    walker = Walker("translate.3", run=run.id)
    assert walker.buttons["next"]
    assert "fell below guessing" not in walker.said  # it would answer the question
    walker.answer(0)
    assert re.search(r"fell below guessing at step \d", walker.said)
    assert walker.is_told


def test_a_run_that_ended_too_early_or_is_deleted_gives_way_to_the_recorded_one(recorded):
    run = own(recorded, state="stopped")
    walker = Walker("translate.4", run=run.id)
    assert "ended too early" in walker.said
    assert not walker.buttons["next"]
    walker.press("recorded")
    assert address_of(walker.app)["run"] == "recorded-korean"
    assert walker.buttons["next"]
    walker = Walker("translate.3", run=run.id)
    recorded.delete(run.id)
    walker.app = walker.app.run()
    walker.press("open")
    assert address_of(walker.app)["run"] == "recorded-korean"
    assert walker.buttons["next"]


def test_without_any_run_the_tour_says_so(store):
    app = opened_at(lesson="translate.1")
    assert "lesson" not in app.query_params
    assert any("The run of this tour is not on this server" in one.value for one in app.info)
