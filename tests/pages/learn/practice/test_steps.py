"""The steps of good practice, through the frame."""

import json

import pytest

from tests.pages.guided_runs import guided_run
from tests.pages.looking import answered, figure_of, said
from tests.pages.made_runs import with_worker
from tfm_core.studies.practice import STUDY
from tfm_core.studies.study import runs_of

PAGE = "learn/practice/page.py"


def test_the_split_is_counted_and_a_right_answer_does_the_step(open_page):
    app = open_page(PAGE)
    assert "Pictures in two splits: 0" in said(app)
    answered(app, "Test")
    assert "0 of 7 done" in said(app)
    assert "no longer test" in app.warning[0].value
    answered(app, "Validation")
    assert "1 of 7 done" in said(app)
    app.select_slider(key="practice-n").set_value(20).run()
    assert "69.9%" in said(app)  # Wilson, 18 of 20


@pytest.mark.parametrize(
    ("key", "kinds"),
    [("plain", ["plain"]), ("early", ["early"]), ("augmented", ["plain", "augmented"])],
)
def test_a_press_queues_what_is_missing(busy_queue, open_page, key, kinds):
    app = open_page(PAGE)
    app.button(key=f"practice-{key}-start").click().run()
    found = runs_of(STUDY, busy_queue.store.list()).shown
    assert list(found) == kinds
    assert {run.status.state for run in found.values()} == {"queued"}
    assert not [button for button in app.button if button.key == f"practice-{key}-start"]


def test_a_finished_run_fills_every_step(store, open_page):
    guided_run(store, "plain")
    app = open_page(PAGE)
    assert "Overfitting begins at step **150**" in said(app)
    assert "2 of 7 done" in said(app)

    assert "Validation chooses **No augmentation**, step **300**" in said(app)
    assert "of 500 wrong" in said(app)
    *_others, last = [button for button in app.button if button.label == "Show the answer"]
    last.click().run()
    assert "3 of 7 done" in said(app)

    app.button(key="practice-save").click().run()
    assert "**exactly** the same" in app.success[0].value
    assert "4 of 7 done" in said(app)

    assert "in the test (" not in said(app)
    app.button(key="practice-open").click().run()
    assert "in the test (" in said(app)
    assert "5 of 7 done" in said(app)
    app.select_slider(key="practice-tries").set_value(1).run()
    assert "+0.0 points of luck" in said(app)


def test_the_curves_of_a_run_that_trains_grow_on_the_page(store, open_page):
    run = with_worker(guided_run(store, "plain"), "running")
    app = open_page(PAGE)
    for figure in ("practice-plain-loss", "practice-plain-accuracy"):
        assert max(figure_of(app, figure).data[0].x) == 300
    with (run.folder / "events.jsonl").open("a") as file:
        record = {"event": "step", "step": 301, "loss": 0.5, "accuracy": 0.75}
        file.write(json.dumps(record) + "\n")
    app.run()
    assert max(figure_of(app, "practice-plain-loss").data[0].x) == 301


def test_runs_that_stopped_early_or_were_augmented_stand_beside(store, open_page):
    guided_run(store, "plain")
    early = guided_run(store, "early")
    guided_run(store, "augmented", lower=0.5)
    app = open_page(PAGE)
    assert "stopped at step **300**" in said(app)
    saved = 1 - 300 / early.status.total_steps
    assert f"{100 * saved:.0f}" in said(app).partition("stopped at step **300**")[2][:120]
    assert said(app).count("ahead of validation") == 2
    assert "Validation chooses **With augmentation**" in said(app)
