"""The frame: every page with every kind of store, links that lead nowhere, sessions apart."""

import dataclasses
from urllib.parse import parse_qs, urlsplit

import pytest
from streamlit.testing.v1 import AppTest

from pages.app import show
from pages.app.navigation import frame, page_table
from pages.app.navigation.terms import TERMS
from pages.app.runs import film
from pages.app.settings import drafts
from pages.i18n import content
from tests.pages.looking import said, sent
from tests.pages.made_runs import damaged_run, made_run
from tests.pages.opening import links
from tfm_core.choices.presets import PRESETS
from tfm_core.lessons.catalogue import catalogue
from tfm_core.runs.run import Run
from tfm_core.runs.status import STATES, write_status

PAGES = [page.file for page in page_table.PAGES.values()]
STATEFUL = "train/page.py", "runs/page.py", "home/page.py"
"""Pages that show the state of a run; the others only ask whether it has anything yet."""
OTHER_STATES = ("queued", "running", "failed")
PAGES_AND_STATES = [
    *((path, state) for path in STATEFUL for state in STATES),
    *((path, OTHER_STATES[n % 3]) for n, path in enumerate(PAGES) if path not in STATEFUL),
]


@pytest.mark.parametrize("path", PAGES)
def test_every_page_draws_without_a_run_and_with_an_unknown_or_damaged_one(path, store, open_page):
    app = open_page(path, run="nowhere-to-be-found")
    assert app.title
    assert "is not here or was deleted" in said(app)
    open_page(path, run=damaged_run(store).id)


def test_a_killed_run_has_done_the_steps_of_its_curves(store):
    run = made_run(store, state="interrupted", step=97)
    write_status(run.folder, dataclasses.replace(run.status, step=90, total_steps=700))
    assert film.about(run).split(" · ")[2] == "97 / 700 steps"


@pytest.mark.core(16)
@pytest.mark.parametrize(("path", "state_name"), PAGES_AND_STATES)
def test_every_page_draws_a_run_in_every_state(path, state_name, store, open_page):
    run = made_run(store, state=state_name, reason="The loss became infinite at step 97.")
    open_page(path, run=run.id)


def test_a_page_of_the_path_says_its_goal_and_leads_on_with_the_run(store, open_page):
    run = made_run(store)
    for name in ("masks", "positions", "challenges"):
        page, after = page_table.PAGES[name], page_table.after(name)
        app = open_page(page.file, run=run.id)
        assert page.goal in app.title[0].help
        nexts = [link.proto for link in app.get("page_link") if "Next" in link.proto.label]
        if after is None:
            assert not nexts
        else:
            (link,) = nexts
            assert link.page == after.url_path
            assert link.query_string == (f"run={run.id}" if after.shows_run else "")


def test_the_chapter_on_the_whole_model_goes_on_with_the_run_in_sight(store, open_page, recorded):
    app = open_page("look_inside/attention/page.py")  # on a run that nobody chose
    for name in ("model", "build", "parameters", "walk"):
        (link,) = [one.proto for one in app.get("page_link") if "Next" in one.proto.label]
        query = {key: values[0] for key, values in parse_qs(link.query_string).items()}
        shown = None if name == "model" else "run"  # the article shows the run in any case
        assert (link.page, query.get("show")) == (page_table.PAGES[name].url_path, shown)
        app = open_page(page_table.PAGES[name].file, **query)
        assert app.session_state["current_run"] == query["run"]


def test_a_runs_page_links_the_configuration_of_that_run(store, open_page):
    experiment = PRESETS["copy"].experiment.replace(seed=7)
    run = store.create(experiment, state="finished")
    app = open_page("train/page.py", run=run.id)
    (link,) = [link for link in links(app) if "made=" in link]
    query = {name: values[0] for name, values in parse_qs(urlsplit(link).query).items()}
    values, sentences = drafts.draft_of_link(query)
    assert not sentences
    assert drafts.differences(values, experiment.model_dump()) == []


def test_the_search_leads_to_pages_and_terms(open_page):
    app = open_page("home/page.py")
    ((field, *_rest),) = sent(app, "search")
    entries = field["entries"]
    found = {entry["name"]: entry for entry in entries}
    assert urlsplit(found["Masks"]["href"]).path == "/masks"
    causal = found["Causal mask"]
    assert urlsplit(causal["href"])[2:4] == ("/masks", "mask=causal")
    assert causal["about"].startswith("Lets a token attend only to itself")
    lesson = catalogue().lessons["aligning-head"].words()
    aligning = found[lesson.title]
    assert urlsplit(aligning["href"])[2:4] == ("/challenges", "lesson=aligning-head")
    assert lesson.goal in aligning["about"]
    assert "onnx" in found["Runs"]["also"]
    field = found["Tokenise by"]  # declared by the view of a page
    assert (urlsplit(field["href"]).path, field["also"]) == ("/numbers", "토큰화 단위")
    assert "마스크" in found["Masks"]["also"]  # who reads Korean finds it in English, too
    assert len(entries) == len(PAGES) + len(frame._fields()) + len(TERMS) + len(
        page_table.FINDINGS
    ) + len(catalogue().lessons)


def test_a_missing_text_costs_its_own_page_alone(open_page, monkeypatch):
    def without_masks(name, *spoken):
        if name == "masks":
            raise FileNotFoundError(name)
        return content(name, *spoken)

    monkeypatch.setattr(show, "content", without_masks)
    frame._entries.cache_clear()
    try:
        assert open_page("home/page.py").title
    finally:
        frame._entries.cache_clear()


def test_the_chosen_run_stays_with_its_session_until_it_is_deleted(store, open_page):
    run = made_run(store)
    one, other = open_page("runs/page.py", run=run.id), open_page("runs/page.py")
    one.query_params.clear()
    one.switch_page("home/page.py").run()
    assert one.session_state["current_run"] == run.id
    assert "current_run" not in other.session_state
    run: Run = made_run(store)
    app = open_page("runs/page.py", run=run.id)
    app.query_params.clear()
    store.delete(run.id)
    app.run()
    assert app.session_state["current_run"] is None


def notices_and_two_ends() -> None:
    import streamlit as st

    from pages.app import state
    from pages.app.navigation import frame

    frame.notices()
    st.text_input("A field below")
    if st.button("Press"):
        state.notify("It waits for its turn.")
        st.rerun()
    if st.button("A run ends"):
        state.rerun()


def test_a_notice_leaves_with_the_next_press_and_moves_nothing_below_it(store, open_page):
    app = AppTest.from_function(notices_and_two_ends).run()
    press, end = app.button
    press.click().run()
    assert [info.value for info in app.info] == ["It waits for its turn."]
    for _time in range(2):
        end.click().run()
        assert [info.value for info in app.info] == ["It waits for its turn."]
    app.text_input[0].set_value("forty").run()
    assert not app.info
    index = {child.type: index for index, child in app.main.children.items()}["text_input"]
    app.button[0].click().run()
    assert app.info
    assert app.main.children[index].type == "text_input"


def test_what_is_true_for_now_only_goes_when_the_page_draws_itself_anew():
    def script() -> None:
        import streamlit as st

        from pages.app import state
        from pages.app.navigation import frame

        if st.button("Anew", key="anew"):  # as in a part of the page: what is above stays drawn
            state.rerun()
        frame.notices()
        if st.button("Say", key="say"):
            state.notify("It stays.")
            state.notify("It goes.", passes=True)
            st.rerun()

    app = AppTest.from_function(script).run()
    app.button(key="say").click().run()
    assert [one.value for one in app.info] == ["It stays.", "It goes."]
    app.button(key="anew").click().run()
    assert [one.value for one in app.info] == ["It stays."]
