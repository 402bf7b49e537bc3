"""A round of the page: nothing gives the mistake away, and a wrong guess gets a hint."""

import pytest
from streamlit.testing.v1 import AppTest

from pages.app.navigation.page_table import PAGES
from pages.app.runs import runs_access
from tests.limits import limited
from tests.pages.looking import pressed, said
from tests.pages.opening import links
from tfm_core.runs.store import RECORDED
from tfm_core.studies.bugs import BUGS, basis, bug_of
from tfm_core.studies.study import changed

FILE = "learn/challenges/page.py"
TWIN = "recorded-one-head"
GUESS = f"bug-guess-{TWIN}"


def probed(app: AppTest, name: str) -> AppTest:
    app.selectbox(key="bug-probe").select(name)
    app.button(key="bug-probe-run").click().run()
    return app


def guessed(app: AppTest, name: str) -> AppTest:
    app.selectbox(key=GUESS).select(name)
    return pressed(app, "Submit")


def test_a_round_is_played_or_given_up_and_its_link_opens_the_pair(recorded, open_page):
    app = open_page(FILE, bug="2")
    assert "pair" not in app.query_params
    assert "Probes: 0 of 5 · wrong guesses: 0" in said(app)
    assert "head" not in said(app).lower()
    probed(app, "attention")
    (table,) = app.table
    row = table.value.loc["maps per layer"]
    assert list(row) == ["4", "**1** ≠"]
    guessed(app, "no-positions")
    assert "Not “No positions”. Ask “Does swapping two tokens change the answer?”" in said(app)
    assert "Probes: 1 of 5 · wrong guesses: 1" in said(app)
    guessed(app, "one-head")
    (won,) = app.success
    assert "One head instead of several" in won.value
    assert "Probes: 1 of 5 · wrong guesses: 1 · Found in this session: 1" in won.value
    (code,) = app.code
    assert any(line.startswith("-N_HEADS = 4") for line in code.value.splitlines())
    assert any(line.startswith("+N_HEADS = 1") for line in code.value.splitlines())
    app = pressed(open_page(FILE, bug="2"), "Submit")
    assert "Choose a mistake from the list first." in said(app)
    assert "wrong guesses: 0" in said(app)
    app = pressed(open_page(FILE, bug="2"), "Show the answer")
    assert not app.success
    assert any("One head instead of several" in one.value for one in app.info)
    healthy = recorded.create(basis())
    twin = recorded.create(changed(basis(), BUGS["no-scale"].changes))
    app = open_page(FILE, bug="2", pair=f"{healthy.id}.{twin.id}")
    assert not app.warning
    assert app.query_params["pair"] == f"{healthy.id}.{twin.id}"
    assert "trained here" in said(app)


def test_a_probe_that_was_overtaken_by_the_next_press_is_still_asked(recorded, open_page):
    app = open_page(FILE, bug="2")
    app.session_state["bug-rounds"][TWIN].queued.append("rate")
    probed(app, "numbers")
    assert len(app.table) == 2
    assert "Probes: 2 of 5" in said(app)


@pytest.fixture
def waiting(recorded, busy_queue, monkeypatch):
    """Runs wait for their turn."""
    monkeypatch.setattr(recorded, "recorded", RECORDED)
    return recorded


def test_one_press_queues_a_pair_and_nothing_says_what_is_wrong(waiting, open_page):
    app = open_page(FILE, bug="2")
    app.button(key="bug-train").click().run()
    healthy, twin = (waiting.get(one) for one in app.query_params["pair"].split("."))
    assert healthy.experiment == basis()
    bug = bug_of(healthy.experiment, twin.experiment)
    assert bug is not None
    assert bug.level == 2
    assert bug.label not in said(app)
    names = [bug.name, *bug.changes, *map(str, bug.changes.values())]
    shown = f"{twin.meta.name} {twin.labels.group} {app.query_params}"
    assert not any(name in shown for name in names if len(name) > 2)
    assert "current_run" not in app.session_state
    assert app.button(key="bug-probe-run").disabled
    assert len([run for run in waiting.list() if not run.meta.recorded]) == 3  # one trains
    app.button(key="bug-train").click().run()  # the healthy run is there: a twin alone joins it
    again = app.query_params["pair"].split(".")
    assert again[0] == healthy.id
    assert again[1] != twin.id


def test_what_the_host_does_not_let_is_refused_in_a_sentence(recorded, monkeypatch, request):
    limited(monkeypatch, max_steps=7)
    request.getfixturevalue("busy_queue")
    monkeypatch.setattr(recorded, "recorded", RECORDED)
    app = request.getfixturevalue("open_page")(FILE, bug="2")
    app.button(key="bug-train").click().run()
    assert len(app.error) == 1
    assert "pair" not in app.query_params


@pytest.mark.parametrize("pair", ["gone1234.gone5678", "recorded-digits.recorded-korean", "x"])
def test_a_pair_that_is_none_is_said_and_the_ready_one_shown(recorded, open_page, pair):
    app = open_page(FILE, bug="2", pair=pair)
    assert len(app.warning) == 1
    assert "this pair comes with the app" in said(app)


def test_each_level_has_pairs_of_its_own(recorded, open_page):
    for level in ("1", "2"):
        app = open_page(FILE, bug=level)
        assert "this pair comes with the app" in said(app)
        app = pressed(app, "Show the answer")
        assert [bug.level for bug in BUGS.values() if f"**{bug.label}**." in said(app)] == [
            int(level)
        ]
    app = open_page(FILE, bug="3")
    assert "There is no pair yet" in said(app)


def test_without_any_pair_one_press_trains_it(store, open_page):
    app = open_page(FILE, bug="2")
    assert "There is no pair yet" in said(app)
    assert app.button(key="bug-train")


HIDDEN = BUGS["sliced-heads"]


@pytest.fixture
def suspect(recorded):
    """A suspect whose bug nobody has found, beside its healthy twin."""
    recorded.create(basis(), state="finished")
    twin = changed(basis(), HIDDEN.changes)
    return recorded.create(twin, name="Suspect 7f3a", state="finished", is_suspect=True)


OF_RUNS = ["train", "attention", "build", "compare"]


@pytest.mark.parametrize("name", OF_RUNS)
def test_no_page_opens_a_suspect(suspect, open_page, name):
    app = open_page(PAGES[name].file, run=suspect.id)
    assert app.session_state["page"] == "challenges"
    assert f"Find the bug in “{suspect.meta.name}”" in said(app)
    assert HIDDEN.label not in said(app)
    assert f"run={suspect.id}" not in str(links(app))


def test_a_suspect_cannot_be_compared_or_found_by_a_setting(suspect, open_page):
    app = open_page("compare/compare.py", runs=f"recorded-korean,{suspect.id}")
    assert any("stays hidden" in one.value for one in app.warning)
    assert not any(suspect.meta.name in name for name in app.multiselect[0].options)
    ((path, value),) = HIDDEN.changes.items()
    app = open_page("runs/page.py")
    assert any(suspect.meta.name in button.label for button in app.button)
    keys = {button.key for button in app.button}
    assert f"delete-{suspect.id}" in keys
    assert not {f"{what}-{suspect.id}" for what in ("seeds", "twin", "labels")} & keys
    app.text_input(key="runs-words").set_value(f"{path.split('.')[1]}={value}").run()
    assert not any(suspect.meta.name in button.label for button in app.button)


def test_a_suspect_is_a_run_like_others_once_its_bug_is_known(suspect, recorded, open_page):
    (healthy,) = [
        run for run in recorded.list() if run.experiment == basis() and not run.meta.recorded
    ]
    app = open_page(FILE, bug="2", pair=f"{healthy.id}.{suspect.id}")
    pressed(app, "Show the answer")
    assert runs_access.is_hidden(suspect) is False
    app.query_params["run"] = suspect.id
    assert app.run().session_state["page"] == "challenges"
    assert f"Find the bug in “{suspect.meta.name}”" not in said(app)
