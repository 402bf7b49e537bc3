"""Lessons in the app: opened by a link, answered, locked on the server, handed in, previewed."""

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from pages.app.lessons import open_lesson
from pages.app.runs import run_words, runs_access
from tests.lessons.made import SETTINGS, WORDS, add_run, finished_run, record
from tests.pages.looking import pressed, said, sent
from tests.pages.made_runs import made_run
from tests.pages.opening import address_of, opened_at
from tfm_core.lessons import attempts, catalogue, results
from tfm_core.lessons.task import Verdict
from tfm_core.runs.auth import hashed
from tfm_core.runs.queue.limits import Limits
from tfm_core.runs.queue.run_queue import RunQueue
from tfm_core.sentences import N_
from tfm_core.sweeps.driver import Driver
from tfm_core.training.progress import LOSS_DIVERGED

TOKEN = "t" * 43
OWNER = hashed(TOKEN)
PAGE = "learn/challenges/page.py"
WIDTH = "task-aligning-head-width"


def opened(file: str, **query: str) -> AppTest:
    return opened_at(file, token=TOKEN, **query)


def forged(widget: Any) -> Any:
    """Return a disabled widget that answers all the same, as a forged message would."""
    widget.proto.disabled = False
    return widget


def test_a_question_is_answered_wrong_then_right_and_both_are_kept(store):
    app = opened(PAGE, lesson="aligning-head")
    assert app.title[0].value == "The aligning head"
    app.number_input(key=WIDTH).set_value(48.0)
    pressed(app, "Check")
    assert "That is the query of all heads" in said(app)
    app.number_input(key=WIDTH).set_value(12.0)
    pressed(app, "Check")
    assert "The heads share the 48 numbers" in said(app)
    answer = attempts.attempt("aligning-head", OWNER).answers["width"]
    assert (answer.answer, answer.is_right, answer.tries) == ("12", True, 2)
    again = opened(PAGE, lesson="aligning-head")
    assert again.header[0].value == "Find the verb"  # the first that is open
    assert WIDTH not in [one.key for one in again.number_input]


def test_a_reason_is_in_the_language_of_the_lesson(store):
    lesson = catalogue.lesson("first-roles")
    wrong, right = lesson.words("ko").tasks["rule"].options[0:2]
    app = opened(PAGE, lesson="first-roles", lang="ko")
    for option in (wrong, right):
        next(one for one in app.button if option.text in one.label).click().run()
        assert option.why in said(app)


def test_no_answer_is_no_try_and_a_link_to_no_lesson_gets_a_sentence(store):
    app = opened(PAGE, lesson="aligning-head")
    pressed(app, "Check")
    assert "First enter a number" in said(app)
    assert attempts.attempt("aligning-head", OWNER).answers == {}
    app = opened(PAGE, lesson="../etc/passwd")
    assert "There is no lesson" in said(app)
    assert app.title[0].value == "Challenges"


def test_what_the_lesson_locks_cannot_change_on_train_or_by_forged_controls(store):
    app = opened("train/page.py", lesson="smallest-model")
    locked = [one for one in app.select_slider if one.disabled]
    assert len(locked) == len(app.select_slider) - 1
    assert "This lesson locks all settings but" in said(app)
    assert app.selectbox(key="configure-preset").disabled
    app = opened("train/page.py", lesson="causal-mask")
    (mistakes,) = [one for one in app.multiselect if one.label == "Mistakes"]
    assert not mistakes.disabled
    assert not [one for one in app.toggle if one.label == "All settings"]
    app = opened("train/page.py")
    assert [one for one in app.toggle if one.label == "All settings"]


def test_a_run_started_in_a_lesson_belongs_to_it(busy_queue):
    app = opened("train/page.py", lesson="smallest-model")
    app.button(key="start").click().run()
    (run,) = [one for one in busy_queue.store.kept() if one.meta.lesson is not None]
    assert run.meta.lesson == "smallest-model"
    assert run.meta.owner == OWNER
    assert attempts.attempt("smallest-model", OWNER).runs == (run.id,)


@pytest.mark.parametrize("query", [{"training.steps": "5"}, {"seed": "7"}, {"model.n_heads": "2"}])
def test_a_link_with_another_value_starts_nothing(busy_queue, query):
    app = opened("train/page.py", lesson="smallest-model", preset="copy", **query)
    assert app.button(key="start").disabled
    assert "locks this" in said(app)
    n = len(busy_queue.store.kept())
    forged(app.button(key="start")).click().run()
    assert "locks this" in said(app)
    assert len(busy_queue.store.kept()) == n


def test_a_forged_value_of_a_locked_control_changes_nothing(busy_queue):
    app = opened("train/page.py", lesson="smallest-model")
    before = app.session_state["draft"].values
    slider = next(one for one in app.select_slider if one.label == "Encoder layers")
    forged(slider).set_value(3).run()
    assert app.session_state["draft"].values == before


def test_a_preset_of_another_page_is_refused_while_a_lesson_is_open(busy_queue):
    app = opened("home/page.py", lesson="smallest-model")
    n = len(busy_queue.store.kept())
    app.button(key="begin").click().run()
    assert "locks this" in said(app)
    assert len(busy_queue.store.kept()) == n
    pressed(app, "Leave lesson")
    app.button(key="begin").click().run()
    assert len(busy_queue.store.kept()) == n + 1


@pytest.fixture
def driver(store, monkeypatch):
    """The driver of the pages, which looks only when a test does, with a queue that starts none."""
    made = Driver(RunQueue(store, warm=0, limits=Limits()))
    monkeypatch.setattr(runs_access, "sweeps", lambda: made)
    return made


def test_a_sweep_varies_what_the_lesson_leaves_open_and_its_runs_count(driver, store):
    app = opened("compare/sweeps/page.py", lesson="learning-rate")
    varied = next(one for one in app.multiselect if one.label == "What varies")
    assert varied.value == ["training.learning_rate"]
    app.button(key="sweeps-start").click().run()
    driver.step()
    (run,) = store.kept()
    assert run.meta.lesson == "learning-rate"
    assert attempts.attempt("learning-rate", OWNER).runs == (run.id,)
    (sweep,) = driver.sweeps.list()
    with pytest.raises(ValueError, match="locks Warm-up"):
        open_lesson.check_settings(sweep.plan().lesson, ["training.warmup"])


def test_a_sweep_of_what_the_lesson_locks_does_not_start(driver):
    app = opened("compare/sweeps/page.py", lesson="learning-rate")
    base = next(one for one in app.selectbox if one.label == "Experiment")
    base.select_index(1).run()
    assert app.button(key="sweeps-start").disabled
    assert "locks this" in said(app)
    forged(app.button(key="sweeps-start")).click().run()
    assert not driver.sweeps.list()


def test_an_experiment_of_another_page_is_refused_while_a_lesson_is_open(busy_queue):
    n = len(busy_queue.store.kept())
    app = opened(PAGE, lesson="learning-rate", experiment="heads")
    app.button(key="experiment-start").click().run()
    assert "locks" in said(app)
    assert len(busy_queue.store.kept()) == n


def test_a_locked_setting_cannot_change_while_the_run_trains(store):
    lesson = catalogue.lesson("smallest-model")
    assert lesson.experiment is not None
    run = finished_run(store, lesson.experiment, accuracy=0.5, lesson=lesson.id)
    with pytest.raises(ValueError, match="locks Learning rate"):
        open_lesson.check_request(run, "turn.training.learning_rate=0.1")
    open_lesson.check_request(run, "stop")
    free = finished_run(store, lesson.experiment, accuracy=0.5)
    open_lesson.check_request(free, "turn.training.learning_rate=0.1")


def test_own_runs_are_checked_and_those_of_others_are_not(store):
    lesson = catalogue.lesson("learning-rate")
    assert lesson.experiment is not None
    theirs = finished_run(store, lesson.experiment, accuracy=0.99, lesson=lesson.id, owner="b" * 64)
    add_run(lesson.id, "b" * 64, theirs.id)
    app = opened(PAGE, lesson=lesson.id)
    pressed(app, "Check my runs")
    assert "First train a run of this lesson" in said(app)
    mine = finished_run(store, lesson.experiment, accuracy=0.95, lesson=lesson.id, owner=OWNER)
    add_run(lesson.id, OWNER, mine.id)
    pressed(app, "Check my runs")
    assert attempts.attempt(lesson.id, OWNER).answers["reach"].run == mine.id


def test_no_page_names_the_rate_that_the_lesson_asks_for(store):
    reason = N_(LOSS_DIVERGED, loss="nan", step=7, learning_rate=0.9, lower=0.01)
    run = made_run(store, state="failed", step=7, reason=reason, owner=OWNER)
    for page in ("runs", "train"):
        assert "try 0.01" in said(opened(f"{page}/page.py", run=run.id))
        text = said(opened(f"{page}/page.py", run=run.id, lesson="learning-rate"))
        assert "The loss became infinite or NaN." in text
        assert "0.01" not in text
    assert "0.01" in run_words.ended(run)


def test_the_bar_of_other_pages_leads_back_and_checks_the_task(store, recorded):
    app = opened("look_inside/attention/page.py", run="recorded-korean", lesson="aligning-head")
    app.number_input(key=WIDTH).set_value(12.0)
    pressed(app, "Check")
    assert attempts.attempt("aligning-head", OWNER).is_solved("width")
    app._page_hash = ""  # else each press would begin on this page again
    pressed(app, "Next")
    assert app.header[0].value == "Find the verb"
    assert address_of(app)["lesson"] == "aligning-head.2"
    pressed(app, "Next")
    assert app.session_state["page"] == "knockouts"
    assert opened(PAGE, lesson="aligning-head").header[0].value == "Does it matter?"
    pressed(app, "Back")
    assert app.session_state["page"] == "attention"
    pressed(app, "Leave lesson")
    assert "lesson" not in app.query_params
    assert WIDTH not in [one.key for one in app.number_input]


def test_a_result_is_handed_in_with_a_name_and_is_good(store):
    record("aligning-head", OWNER, "width", answer="12", verdict=Verdict(True, ""))
    app = opened(PAGE, lesson="aligning-head")
    app.text_input(key="lesson-name").set_value("Ann").run()
    (line,) = [one.value for one in app.code if one.value.startswith("tfm1.")]
    (checked,) = results.check([("", line)], results.server_key())
    assert checked.standing == "good"
    assert checked.values["name"] == "Ann"
    assert checked.n_solved == 1


def test_a_preview_is_open_and_not_kept_and_a_bad_file_says_why(store):
    app = opened(PAGE)
    files = [
        ("width.toml", SETTINGS.encode(), "application/toml"),
        ("width.md", WORDS.encode(), "text/markdown"),
    ]
    app.file_uploader(key="lessons-preview-files").set_value(files).run()
    assert app.title[0].value == "Width"
    pressed(app, "this")
    assert "It is." in said(app)
    assert not list((store.root / attempts.FOLDER).rglob("*.json"))
    app = opened(PAGE)
    files = [
        ("width.toml", SETTINGS.replace("minutes = 7", "minutes = 0").encode(), "application/toml"),
        ("width.md", WORDS.encode(), "text/markdown"),
    ]
    app.file_uploader(key="lessons-preview-files").set_value(files).run()
    assert app.title[0].value == "Challenges"
    assert "width.toml, minutes" in said(app)


def test_a_pair_of_find_the_bug_belongs_to_the_lesson_and_its_bug_is_named_once_hidden(busy_queue):
    app = opened(PAGE, bug="1", lesson="name-the-bug")
    app.button(key="bug-train").click().run()
    runs = [busy_queue.store.get(name) for name in attempts.attempt("name-the-bug", OWNER).runs]
    assert [run.meta.lesson for run in runs] == ["name-the-bug"] * 2
    assert sum(run.meta.is_suspect for run in runs) == 1


@pytest.mark.parametrize(
    ("frame", "is_sent"),
    [
        ("https://moodle.example.org", True),
        ("https://evil.example.com", False),
        ("javascript:alert(1)", False),
        ("*", False),
    ],
)
def test_a_score_is_sent_only_to_a_site_that_may_frame_the_app(store, monkeypatch, frame, is_sent):
    monkeypatch.setenv("TFM_FRAME_ANCESTORS", "'self' https://moodle.example.org")

    app = opened(PAGE, lesson="aligning-head", frame=frame)
    scores = sent(app, "lesson_score")
    assert ("isn't allowed to receive its score" in said(app)) != is_sent
    assert [score["origin"] for score in scores] == [frame] * is_sent
    if is_sent:
        message = {"type": "tfm-lesson", "lesson": "aligning-head", "solved": 0, "tasks": 3}
        assert scores[0]["message"] == message
