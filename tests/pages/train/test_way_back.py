"""A run that a lesson began leads back to it, from its link, live and finished."""

import dataclasses

from tests.pages.made_runs import made_run
from tfm_core.presets import PRESETS
from tfm_core.runs.status import write_status

TRAIN = "train/page.py"


def ways_back(app):
    return [link.proto for link in app.get("page_link") if "Back to" in link.proto.label]


def test_the_link_of_a_run_that_a_lesson_began_leads_back_to_it(open_page, store):
    run = made_run(store, state="running", experiment=PRESETS["gpt-grammar"].experiment)
    app = open_page(TRAIN, run=run.id, back="gpt?part=write")
    (link,) = ways_back(app)
    assert link.label == "Back to Writing: GPT"
    assert link.page == "gpt"
    assert link.query_string == f"part=write&run={run.id}"


def test_the_way_back_stays_with_its_run_in_the_session(open_page, store):
    lesson = made_run(store, name="Of a lesson", experiment=PRESETS["gpt-grammar"].experiment)
    other = made_run(store, name="Another")
    app = open_page(TRAIN, run=lesson.id, back="gpt")
    app.switch_page("runs/page.py").run()
    app.switch_page(TRAIN).run()
    assert len(ways_back(app)) == 1
    assert app.query_params["back"] == "gpt"
    assert not ways_back(open_page(TRAIN, run=other.id))
    app.button(key="run-new").click().run()
    assert "back" not in app.query_params


def test_a_press_in_a_lesson_brings_the_way_back(open_page, busy_queue):
    app = open_page("gpt/page.py", part="write")
    app.button(key="gpt-train-gpt-grammar").click().run()
    assert app.query_params["back"] == "gpt?part=write"
    (link,) = ways_back(app)
    assert link.label == "Back to Writing: GPT"


def test_a_run_from_home_and_a_page_that_is_not_here_lead_nowhere(open_page, store, busy_queue):
    app = open_page("home/page.py")
    app.button(key="start-copy").click().run()
    assert "back" not in app.query_params
    run = made_run(store, state="finished")
    write_status(run.folder, dataclasses.replace(run.status, state="finished"))
    assert not ways_back(open_page(TRAIN, run=run.id, back="no-such-page?x=1"))
