"""Home: doors, a row for every preset and one press to start it, the last runs, the map."""

import pytest
from streamlit.testing.v1 import AppTest

from pages.app.navigation.page_table import PAGES, WAY
from pages.app.runs import shown_run
from pages.home.hero import DOORS
from pages.home.preset_list import ALL, START_HERE, TEACHES
from tests.pages.made_runs import made_run
from tfm_core.choices.presets import PRESETS
from tfm_core.runs.store import RunStore


def test_every_preset_is_listed_and_every_page_of_the_path_is_on_the_map(open_page):
    assert set(TEACHES) == {preset.experiment.model.family for preset in PRESETS.values()}
    app = open_page()
    app.button_group(key="home-teaches").set_value(ALL).run()
    listed = [button.key for button in app.button if button.key.startswith("start-")]
    assert listed == [f"start-{name}" for name in PRESETS]
    links = [link.proto for link in app.get("page_link")][-len(WAY) :]
    assert [link.page for link in links] == [page.url_path for page in WAY]
    for link, page in zip(links, WAY, strict=True):
        assert page.goal in link.label
        assert f"{page.minutes}\u00a0min" in link.label


@pytest.mark.parametrize("name", ["vit-digits", "translate-additive"])
def test_one_press_starts_a_preset_and_shows_it(name, store, busy_queue, open_page):
    app = open_page()
    if name not in START_HERE:
        family = PRESETS[name].experiment.model.family
        app.button_group(key="home-teaches").set_value(family).run()
    app.button(key=f"start-{name}").click().run()
    assert_starts(app, name, store)


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


def test_three_doors_lead_to_pages_that_show_what_they_promise(store, recorded, open_page):
    links = {link.proto.label: link.proto for link in open_page().get("page_link")}
    for door in DOORS:
        assert links[door.label].page == PAGES[door.page].url_path
        app = open_page(PAGES[door.page].file, **door.query)
        assert not app.error
        assert not app.warning


def test_home_lists_the_newest_runs_and_leads_to_all(store, open_page):
    for number in range(5):
        made_run(store, name=f"Run {number}")
    app = open_page()
    names = [button.label for button in app.button]
    assert "**Run 4**" in names
    assert "**Run 1**" not in names
    assert any("All 5 runs" in link.proto.label for link in app.get("page_link"))
