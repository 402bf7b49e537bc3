"""Home: doors, a row for every preset and one press to start it, the last runs, the map."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from pages.home.doors import DOORS
from pages.home.preset_list import ALL, START_HERE, TEACHES
from pages.home.samples import caption_sample, text_sample
from pages.ui.navigation.page_table import PAGES, WAY
from pages.ui.runs import shown_run
from tests.pages.looking import unmarked
from tests.pages.made_runs import made_run
from tfm_core.presets import PRESETS
from tfm_core.runs.queue.run_queue import RunQueue
from tfm_core.runs.store import RECORDED, RunStore

Open = Callable[..., AppTest]


def said(app: AppTest) -> str:
    return unmarked("\n".join(element.value for element in [*app.markdown, *app.caption]))


def listed(app: AppTest) -> list[str]:
    """Return the presets that the list shows, by name."""
    return [b.key.removeprefix("start-") for b in app.button if b.key.startswith("start-")]


def test_the_list_begins_with_a_few_and_a_filter_shows_what_teaches_one_thing(
    open_page: Open,
) -> None:
    app = open_page()
    assert listed(app) == list(START_HERE)
    assert set(TEACHES) == {preset.experiment.model.family for preset in PRESETS.values()}
    for family in TEACHES:
        app.button_group(key="home-teaches").set_value(family).run()
        assert listed(app) == [
            name for name, preset in PRESETS.items() if preset.experiment.model.family == family
        ]
    app.button_group(key="home-teaches").set_value(ALL).run()
    assert listed(app) == list(PRESETS)


def test_every_preset_says_what_it_learns_how_long_that_takes_and_what_it_reaches(
    open_page: Open,
) -> None:
    app = open_page()
    app.button_group(key="home-teaches").set_value(ALL).run()
    words = said(app)
    for name, preset in PRESETS.items():
        assert app.button(key=f"start-{name}").label == f"Train: {preset.label}"
        assert preset.learns in words
        assert preset.reaches in words
        assert shown_run.preset_time(name) in words


@pytest.mark.parametrize("name", ["vit-digits", "translate-additive"])
def test_one_press_starts_a_preset_and_shows_it(
    name: str, store: RunStore, busy_queue: RunQueue, open_page: Open
) -> None:
    app = open_page()
    if name not in START_HERE:
        family = PRESETS[name].experiment.model.family
        app.button_group(key="home-teaches").set_value(family).run()
    app.button(key=f"start-{name}").click().run()
    assert_starts(app, name, store, busy_queue)


def test_the_one_button_trains_what_moves_beside_it(
    store: RunStore, busy_queue: RunQueue, open_page: Open
) -> None:
    app = open_page()
    (primary,) = [button for button in app.button if button.proto.type == "primary"]
    assert primary.label == f"Train it yourself ({shown_run.preset_time('translate')})"
    primary.click().run()
    assert_starts(app, "translate", store, busy_queue)


def assert_starts(app: AppTest, name: str, store: RunStore, queue: RunQueue) -> None:
    assert not app.exception
    (run,) = [run for run in store.list() if run.meta.preset == name]
    assert run.experiment == PRESETS[name].experiment
    assert run.status.state == "queued"
    assert queue.position(run.id) == 1
    assert app.session_state["current_run"] == run.id
    assert app.query_params["run"] == run.id


def test_three_doors_lead_to_pages_that_show_what_they_promise(
    store: RunStore, monkeypatch: pytest.MonkeyPatch, open_page: Open
) -> None:
    monkeypatch.setattr(store, "recorded", RECORDED)
    links = {link.proto.label: link.proto for link in open_page().get("page_link")}
    for door in DOORS:
        assert links[door.label].page == PAGES[door.page].url_path
        app = open_page(PAGES[door.page].file, **door.query)
        assert not app.exception
        assert not app.error
        assert not app.warning


def test_every_page_of_the_path_stands_on_the_map_in_order_with_its_goal(open_page: Open) -> None:
    app = open_page()
    links = [link.proto for link in app.get("page_link")][-len(WAY) :]
    assert [link.page for link in links] == [page.url_path for page in WAY]
    for link, page in zip(links, WAY, strict=True):
        assert page.goal in link.label
        assert f"{page.minutes}\u00a0min" in link.label


def test_a_preset_beyond_the_limits_is_refused_in_a_sentence_and_leaves_nothing(
    store: RunStore, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setenv("TFM_MAX_STEPS", "7")
    request.getfixturevalue("busy_queue")
    app = request.getfixturevalue("open_page")()
    app.button(key="start-copy").click().run()
    assert "the limit here is 7" in app.error[0].value
    assert [run.meta.name for run in store.list()] == ["The one that trains"]


def test_one_visitor_may_have_only_so_many_runs_in_hand(
    store: RunStore, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setenv("TFM_MAX_PER_SESSION", "1")
    request.getfixturevalue("busy_queue")
    app, other = (request.getfixturevalue("open_page")() for _ in range(2))
    app.button(key="start-copy").click().run()
    app.switch_page("home/page.py").run()
    app.button(key="start-addition").click().run()
    assert "already have 1 run" in app.error[0].value
    other.button(key="start-addition").click().run()
    assert not other.error
    assert sum(run.status.state == "queued" for run in store.list()) == 2


def test_home_lists_the_newest_runs_and_leads_to_all(store: RunStore, open_page: Open) -> None:
    for number in range(5):
        made_run(store, name=f"Run {number}")
    app = open_page()
    names = [button.label for button in app.button]
    assert "**Run 4**" in names
    assert "**Run 1**" not in names
    assert any("All 5 runs" in link.proto.label for link in app.get("page_link"))


def test_every_text_task_has_an_example() -> None:
    for preset in PRESETS.values():
        if preset.experiment.task.kind in {"image", "caption"}:
            with pytest.raises(ValueError, match="this needs SequenceTaskConfig"):
                text_sample(preset.experiment)
        else:
            assert all(text_sample(preset.experiment)), preset.name


def test_the_example_of_the_caption_task_is_true() -> None:
    assert caption_sample(PRESETS["captions"].experiment) == "a three below a seven"
    assert caption_sample(PRESETS["captions-korean"].experiment) == "삼은 칠 아래에 있다"
    with pytest.raises(ValueError, match="this needs CaptionTaskConfig"):
        caption_sample(PRESETS["copy"].experiment)
