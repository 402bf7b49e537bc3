"""Home: a film, and next steps; without recorded runs, one can still train."""

from streamlit.testing.v1 import AppTest

from pages.app.navigation.page_table import PAGES
from pages.app.runs import shown_run
from pages.home.page import DIGITS
from tfm_core.choices.presets import PRESETS
from tfm_core.runs.store import RunStore


def test_the_one_button_trains_what_moves_beside_it(store, busy_queue, open_page):
    app = open_page()
    (primary,) = [button for button in app.button if button.proto.type == "primary"]
    assert primary.label == f"Train it yourself ({shown_run.preset_time('translate')})"
    primary.click().run()
    assert_starts(app, "translate", store)


def assert_starts(app: AppTest, name: str, store: RunStore) -> None:
    (run,) = [run for run in store.list() if run.meta.preset == name]
    assert run.experiment == PRESETS[name].experiment
    assert run.status.state == "queued"
    assert run.status.queue_position == 1
    assert app.session_state["current_run"] == run.id
    assert app.query_params["run"] == run.id


def test_a_digit_is_drawn_where_its_door_leads(store, recorded, open_page):
    (door,) = [link.proto for link in open_page().get("page_link") if "digit" in link.proto.label]
    assert door.page == PAGES["try"].url_path
    app = open_page(PAGES["try"].file, run=DIGITS, view="draw")
    assert any(part.proto.component_name == "digit_lab" for part in app.get("bidi_component"))
    assert not app.error
    assert not app.warning


def test_a_home_without_recorded_runs_has_neither_film_nor_board(store, open_page):
    app = open_page()
    drawn = {part.proto.component_name for part in app.get("bidi_component")}
    assert "stage" not in drawn
    assert not [link for link in app.get("page_link") if "digit" in link.proto.label]
    assert app.button(key="begin")
