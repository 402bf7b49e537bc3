"""The frame: every page with every kind of store, links that lead nowhere, sessions apart."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from streamlit.testing.v1 import AppTest

from pages.i18n import PAGES_DIR
from pages.ui import state
from pages.ui.address import url_config
from pages.ui.navigation import page_table
from pages.ui.navigation.terms import TERMS
from pages.ui.settings import drafts
from tests.pages.looking import unmarked
from tests.pages.made_runs import damaged_run, made_run
from tests.pages.opening import links
from tfm_core.lessons.catalogue import catalogue
from tfm_core.presets import PRESETS
from tfm_core.runs.run import Run
from tfm_core.runs.status import STATES
from tfm_core.runs.store import RECORDED, RunStore

Open = Callable[..., AppTest]
PAGES = [page.file for page in page_table.PAGES.values()]
STATEFUL = "train/page.py", "runs/page.py", "home/page.py"
"""Pages that show the state of a run; the others only ask whether it has anything yet."""
OTHER_STATES = ("queued", "running", "failed")
PAGES_AND_STATES = [
    *((path, state) for path in STATEFUL for state in STATES),
    *((path, OTHER_STATES[n % 3]) for n, path in enumerate(PAGES) if path not in STATEFUL),
]


def texts(app: AppTest) -> str:
    elements = [*app.markdown, *app.caption, *app.warning, *app.info, *app.error, *app.title]
    return unmarked("\n".join(str(element.value) for element in elements))


@pytest.mark.parametrize("path", PAGES)
def test_every_page_draws_without_a_run_and_with_an_unknown_or_damaged_one(
    path: str, store: RunStore, open_page: Open
) -> None:
    app = open_page(path, run="nowhere-to-be-found")
    assert not app.exception
    assert app.title
    assert "is not here or was deleted" in texts(app)
    assert not open_page(path, run=damaged_run(store).id).exception


@pytest.mark.core(16)
@pytest.mark.parametrize(("path", "state_name"), PAGES_AND_STATES)
def test_every_page_draws_a_run_in_every_state(
    path: str, state_name: str, store: RunStore, open_page: Open
) -> None:
    run = made_run(store, state=state_name, reason="The loss became infinite at step 97.")
    assert not open_page(path, run=run.id).exception


@pytest.mark.parametrize("run_id", ["../../etc", "", "한국어"])
def test_a_link_to_an_unknown_run_is_a_sentence(run_id: str, open_page: Open) -> None:
    app = open_page(PAGES[0], run=run_id)
    assert not app.exception
    assert "is not here or was deleted" in texts(app)


def test_the_current_run_stands_in_the_strip(store: RunStore, open_page: Open) -> None:
    run = made_run(store, name="Backwards *again*")
    app = open_page("runs/page.py", run=run.id)
    words = "\n".join(element.value for element in app.markdown)
    assert r"Backwards \*again\*" in words
    assert "Finished" in words


def test_a_page_of_the_path_says_its_goal_and_leads_on_with_the_run(
    store: RunStore, open_page: Open
) -> None:
    run = made_run(store)
    for name in ("masks", "positions", "find-the-bug"):
        page, after = page_table.PAGES[name], page_table.after(name)
        app = open_page(page.file, run=run.id)
        assert page.goal in texts(app)
        nexts = [link.proto for link in app.get("page_link") if "Next" in link.proto.label]
        if after is None:
            assert not nexts
        else:
            (link,) = nexts
            assert link.page == after.url_path
            assert link.query_string == (f"run={run.id}" if after.shows_run else "")


def test_the_chapter_on_the_whole_model_goes_on_with_the_run_in_sight(
    store: RunStore, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "recorded", RECORDED)
    app = open_page("attention/page.py")  # on a run that nobody chose
    for name in ("build", "parameters", "walk"):
        (link,) = [one.proto for one in app.get("page_link") if "Next" in one.proto.label]
        query = {key: values[0] for key, values in parse_qs(link.query_string).items()}
        assert (link.page, query["show"]) == (page_table.PAGES[name].url_path, "run")
        app = open_page(page_table.PAGES[name].file, **query)
        assert app.session_state["current_run"] == query["run"]


def test_a_link_to_the_configuration_reproduces_it(open_page: Open) -> None:
    app = open_page("home/page.py")
    link = urlsplit(links(app)[-1])
    assert link.path == "/train"
    query = {name: values[0] for name, values in parse_qs(link.query).items()}
    assert query["preset"].startswith(state.FIRST_PRESET)
    values, sentences = url_config.read(query)
    assert not sentences
    assert drafts.differences(values, PRESETS[state.FIRST_PRESET].experiment.model_dump()) == []


def test_a_runs_page_links_the_configuration_of_that_run(store: RunStore, open_page: Open) -> None:
    experiment = PRESETS["copy"].experiment.replace(seed=7)
    run = store.create(experiment, state="finished")
    app = open_page("train/page.py", run=run.id)
    (link,) = [link for link in links(app) if "made=" in link]
    query = {name: values[0] for name, values in parse_qs(urlsplit(link).query).items()}
    values, sentences = url_config.read(query)
    assert not sentences
    assert drafts.differences(values, experiment.model_dump()) == []


def test_a_link_to_the_current_run_names_it(store: RunStore, open_page: Open) -> None:
    run = made_run(store)
    for file in ("runs/page.py", "attention/page.py"):
        app = open_page(file, run=run.id)
        assert f"run={run.id}" in {urlsplit(link).query for link in links(app)}


@pytest.mark.parametrize(
    ("file", "paths"),
    [
        ("home/page.py", ["/", "/train", "/train"]),
        ("runs/page.py", ["/runs", "/train", "/train"]),
        ("masks/page.py", ["/masks", "/train", "/train"]),
        ("train/page.py", ["/train", "/train"]),
        ("attention/page.py", ["/attention", "/train"]),
    ],
)
def test_one_press_copies_a_link_to_what_is_in_sight(
    file: str, paths: list[str], store: RunStore, open_page: Open
) -> None:
    app = open_page(file, run=made_run(store).id)
    assert [urlsplit(link).path for link in links(app)] == paths


def test_the_train_page_without_a_run_offers_its_configuration_alone(open_page: Open) -> None:
    (link,) = links(open_page("train/page.py"))
    assert "preset=" in link


def test_the_search_leads_to_pages_and_terms(open_page: Open) -> None:
    app = open_page("home/page.py")
    (field,) = [one for one in app.get("bidi_component") if one.proto.component_name == "search"]
    found = {entry["name"]: entry for entry in json.loads(field.proto.json)[0]["entries"]}
    assert urlsplit(found["Masks"]["href"]).path == "/masks"
    causal = found["Causal mask"]
    assert urlsplit(causal["href"])[2:4] == ("/masks", "mask=causal")
    assert causal["about"].startswith("Attend only to earlier tokens")
    lesson = catalogue().lessons["aligning-head"].words()
    aligning = found[lesson.title]
    assert urlsplit(aligning["href"])[2:4] == ("/lessons", "lesson=aligning-head")
    assert lesson.goal in aligning["about"]
    assert len(found) == len(PAGES) + len(TERMS) + len(catalogue().lessons)


def test_the_chosen_run_stays_with_a_session_and_goes_to_no_other(
    store: RunStore, open_page: Open
) -> None:
    run = made_run(store)
    one, other = open_page("runs/page.py", run=run.id), open_page("runs/page.py")
    one.query_params.clear()
    one.switch_page("home/page.py").run()
    assert one.session_state["current_run"] == run.id
    assert "current_run" not in other.session_state


def test_a_run_deleted_elsewhere_is_no_longer_current(store: RunStore, open_page: Open) -> None:
    run: Run = made_run(store)
    app = open_page("runs/page.py", run=run.id)
    app.query_params.clear()
    store.delete(run.id)
    app.run()
    assert not app.exception
    assert app.session_state["current_run"] is None


def notices_and_two_ends() -> None:
    import streamlit as st

    from pages.ui import state
    from pages.ui.navigation import frame

    frame.notices()
    st.text_input("A field below")
    if st.button("Press"):
        state.notify("It waits for its turn.")
        st.rerun()
    if st.button("A run ends"):
        state.draw_anew()


def test_a_notice_leaves_with_the_next_press_not_with_the_end_of_a_run(store: RunStore) -> None:
    app = AppTest.from_function(notices_and_two_ends).run()
    press, end = app.button
    press.click().run()
    assert [info.value for info in app.info] == ["It waits for its turn."]
    for _time in range(2):
        end.click().run()
        assert [info.value for info in app.info] == ["It waits for its turn."]
    app.text_input[0].set_value("forty").run()
    assert not app.info


def test_what_the_frame_says_moves_nothing_below_it(store: RunStore, open_page: Open) -> None:
    app = AppTest.from_function(notices_and_two_ends).run()
    index = {child.type: index for index, child in app.main.children.items()}["text_input"]
    app.button[0].click().run()
    assert app.info
    assert app.main.children[index].type == "text_input"


def test_home_is_drawn_without_torch(tmp_path: Path) -> None:
    script = (
        "import sys; from streamlit.testing.v1 import AppTest;"
        f"app = AppTest.from_file({str(PAGES_DIR / 'frame.py')!r}, default_timeout=60).run();"
        "assert not app.exception; assert app.title; assert 'torch' not in sys.modules"
    )
    result = subprocess.run(
        [sys.executable, "-c", script],
        cwd=PAGES_DIR.parent,
        env={**os.environ, "TFM_RUNS_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_what_is_true_for_now_only_goes_when_the_page_draws_itself_anew() -> None:
    def script() -> None:
        import streamlit as st

        from pages.ui import state
        from pages.ui.navigation import frame

        if st.button("Anew", key="anew"):  # as in a part of the page: what is above stays drawn
            state.draw_anew()
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
