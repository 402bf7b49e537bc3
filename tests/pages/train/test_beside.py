"""Beside a run: seeds of it, a twin that differs, others, and the lesson that began it."""

import dataclasses

from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import NumberInput

from tests.limits import limited
from tests.pages.looking import said
from tests.pages.made_runs import made_run
from tests.runs.waiting import tiny
from tfm_core.choices.presets import PRESETS
from tfm_core.runs.run import Run
from tfm_core.runs.status import write_status
from tfm_core.runs.store import RunStore

TRAIN = "train/page.py"


def waiting(store: RunStore) -> list[Run]:
    """Runs that wait, the first one begun first."""
    return [run for run in reversed(store.list()) if run.status.state == "queued"]


def repeating(app: AppTest) -> AppTest:
    """Open the settings of a run to repeat it with a change."""
    app.button(key="run-twin").click().run()
    return app.toggle(key="all-settings").set_value(True).run()


def setting(app: AppTest, path: str) -> NumberInput:
    (field,) = (one for one in app.number_input if str(one.key).startswith(f"setting:{path}"))
    return field


def test_a_configuration_is_trained_with_five_seeds_by_one_press(
    store, busy_queue, open_page, compared
):
    app = open_page(TRAIN, draft=tiny())
    assert app.button(key="start-seeds").label == "5 seeds"
    app.button(key="start-seeds").click().run()
    assert len(waiting(store)) == 5
    assert compared == [run.id for run in waiting(store)]


def test_a_configuration_that_cannot_be_has_no_seeds_and_no_twin(store, busy_queue, open_page):
    app = open_page(TRAIN, draft=tiny())
    app.toggle(key="all-settings").set_value(True).run()
    app.number_input(key="setting:model.n_heads").set_value(3).run()
    assert app.button(key="start-seeds").disabled
    run = made_run(store, experiment=tiny())
    app = repeating(open_page(TRAIN, run=run.id))
    setting(app, "model.n_heads").set_value(3).run()
    assert "does not divide" in said(app) or "must divide" in said(app)
    assert app.button(key="start").disabled
    assert waiting(store) == []


def test_a_twin_differs_in_what_was_changed_and_is_compared(store, busy_queue, open_page, compared):
    run = made_run(store, name="Mine", experiment=tiny())
    store.label(run.id, group="Heads")
    app = repeating(open_page(TRAIN, run=run.id))
    assert app.button(key="start").disabled
    assert "Nothing differs yet" in said(app)
    setting(app, "model.n_heads").set_value(4).run()
    assert "Train a copy with **4 heads**" in said(app)
    app.button(key="start").click().run()
    (made,) = waiting(store)
    model = {**tiny().model.model_dump(), "n_heads": 4}
    assert made.experiment == tiny().replace(model=model)
    assert (made.meta.name, made.labels.group) == ("Mine", "Heads")
    assert compared == [run.id, made.id]
    assert store.get(run.id).experiment == tiny()


def test_a_twin_that_is_refused_says_why_and_leaves_nothing(
    store, open_page, monkeypatch, request, compared
):
    limited(monkeypatch, max_steps=5)
    request.getfixturevalue("busy_queue")
    run = made_run(store, experiment=tiny())
    app = repeating(open_page(TRAIN, run=run.id))
    setting(app, "seed").set_value(7).run()
    app.button(key="start").click().run()
    assert "the limit is 5" in said(app)
    assert waiting(store) == []
    assert compared == []


def test_a_preset_or_a_new_run_ends_the_comparison_with_the_run(store, open_page):
    run = made_run(store, experiment=tiny())
    app = repeating(open_page(TRAIN, run=run.id))
    app.selectbox(key="configure-preset").set_value("gpt-grammar").run()
    assert app.button(key="start").label == "Start"
    app = open_page(TRAIN, run=run.id)
    app.button(key="run-new").click().run()
    assert app.button(key="start").label == "Start"


def test_a_run_is_compared_with_others(store, open_page, compared):
    run = made_run(store, experiment=tiny())
    open_page(TRAIN, run=run.id).button(key="run-compare").click().run()
    assert compared == [run.id]


def ways_back(app):
    return [link.proto for link in app.get("page_link") if "Back to" in link.proto.label]


def test_the_link_of_a_run_that_a_lesson_began_leads_back_to_it(open_page, store):
    run = made_run(store, state="running", experiment=PRESETS["gpt-grammar"].experiment)
    app = open_page(TRAIN, run=run.id, back="gpt?part=write")
    (link,) = ways_back(app)
    assert link.label == "Back to Try it"
    assert link.page == "try"
    assert link.query_string == f"view=continue&run={run.id}"


def test_the_way_back_stays_with_its_run_in_the_session(open_page, store):
    lesson = made_run(store, name="Of a lesson", experiment=PRESETS["gpt-grammar"].experiment)
    other = made_run(store, name="Another")
    app = open_page(TRAIN, run=lesson.id, back="try")
    app.switch_page("runs/page.py").run()
    app.switch_page(TRAIN).run()
    assert len(ways_back(app)) == 1
    assert app.query_params["back"] == "try"
    assert not ways_back(open_page(TRAIN, run=other.id))
    app.button(key="run-new").click().run()
    assert "back" not in app.query_params


def test_a_press_in_a_lesson_brings_the_way_back(open_page, busy_queue):
    app = open_page("try_it/page.py", view="continue")
    app.button(key="head-train-gpt-grammar").click().run()
    assert app.query_params["back"] == "try?view=continue"
    (link,) = ways_back(app)
    assert link.label == "Back to Try it"


def test_a_run_from_home_and_a_page_that_is_not_here_lead_nowhere(open_page, store, busy_queue):
    app = open_page("home/page.py")
    app.button(key="begin").click().run()
    assert "back" not in app.query_params
    run = made_run(store, state="finished")
    write_status(run.folder, dataclasses.replace(run.status, state="finished"))
    assert not ways_back(open_page(TRAIN, run=run.id, back="no-such-page?x=1"))
