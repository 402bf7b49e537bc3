"""The class page: who may see it, how pupils come in, their runs and answers, and the reset."""

import html
import json
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from pages.app.lessons.open_lesson import Classes
from pages.app.runs import runs_access
from pages.components import addresses
from pages.teach import classroom, reading
from pages.teach.reading import pupils
from tests.lessons.made import add_run, record
from tests.pages.made_runs import made_run
from tests.pages.opening import opened_at
from tfm_core.lessons import attempts, catalogue
from tfm_core.lessons.task import Verdict
from tfm_core.runs.auth import hashed
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunStore

LASTS = 4 * 3600.0  # seconds

PAGE, LESSONS = "teach/classroom.py", "learn/challenges/page.py"
KEY = "only the teacher knows it"
LESSON = "learning-rate"
ANN, BEN = "a" * 43, "b" * 43


@pytest.fixture(autouse=True)
def _key(monkeypatch, store):
    monkeypatch.setattr("pages.app.lessons.open_lesson.server_key", KEY.encode)
    reading.forget(LESSON)
    yield
    reading.forget(LESSON)


def texts(app: AppTest) -> str:
    every = [*app.markdown, *app.caption, *app.info, *app.error, *app.success]
    bodies = [one.proto.body for one in app.get("html")]
    return "\n".join([*(str(one.value) for one in every), *bodies])


def as_teacher(**query: str) -> AppTest:
    """Open the page and show the key."""
    app = opened_at(PAGE, **query)
    app.text_input(key="class-key").set_value(KEY).run()
    return app


def stuck_run(store: RunStore, owner: str) -> Run:
    """A run that has guessed for 400 steps."""
    run = made_run(store, state="running", step=400, owner=owner)
    started = {
        "event": "started",
        "step": 0,
        "total_steps": 600,
        "start_loss": 3.0,
        "floor": 0.0,
        "chance": 0.05,
    }
    lines = [started]
    lines += [{"event": "step", "step": k, "loss": 3.0, "accuracy": 0.05} for k in range(1, 401)]
    lines.append(
        {"event": "measured", "step": 400, "split": "validation", "accuracy": 0.05, "loss": 3.0}
    )
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (run.folder / "events.jsonl").write_text(text, encoding="utf-8")
    return run


def at_lesson(token: str, run: Run) -> None:
    add_run(LESSON, hashed(token), run.id)


def test_without_the_key_nothing_is_shown_and_the_page_says_where_it_comes_from(store):
    at_lesson(ANN, made_run(store))
    app = opened_at(PAGE)
    assert ".lessons/.key" in texts(app)
    app.text_input(key="class-key").set_value("a guess").run()
    assert "Wrong key." in texts(app)
    assert "Pupil" not in texts(app)
    assert not app.selectbox


def test_the_start_page_has_the_lessons_address_in_the_network_and_its_code(monkeypatch):
    monkeypatch.setattr(addresses, "hosts", lambda: ["localhost", "192.0.2.7"])
    said = texts(as_teacher(of=LESSON))
    assert f"http://192.0.2.7:8501/challenges?lesson={LESSON}" in said
    assert "data:image/svg+xml" in said


def test_a_pupil_is_in_and_the_teacher_sees_who(store):
    assert "You have joined" not in texts(opened_at(LESSONS, token=ANN, lesson=LESSON))
    app = as_teacher(of=LESSON, view="runs")
    assert "Pupils appear here" in texts(app)
    assert "**Pupil 1**" in texts(opened_at(LESSONS, token=ANN, lesson=LESSON))
    pupil = opened_at(LESSONS, token=BEN, lesson=LESSON)
    assert "**Pupil 2**" in texts(pupil)
    pupil.text_input(key="pupil-name").set_value("Ben <b>").run()
    reading._pupils.clear()
    app.run()
    assert "Ben &lt;b&gt;" in texts(app)
    assert "Pupil 1" in texts(app)
    app.toggle(key="class-names").set_value(False).run()
    assert "Ben" not in texts(app)
    assert "Pupil 2" in texts(app)


def test_everybodys_newest_run_is_shown_and_who_is_stuck(store):
    for run in (made_run(store), stuck_run(store, hashed(ANN))):
        at_lesson(ANN, run)
    newest = made_run(store, owner=hashed(BEN))
    at_lesson(BEN, newest)
    one, other = sorted(pupils(LESSON), key=lambda pupil: pupil.n_runs)
    assert (one.n_runs, other.n_runs) == (1, 2)
    assert one.run is not None
    assert other.run is not None
    assert (one.run.id, one.run.trouble) == (newest.id, "")
    assert (other.run.trouble, other.run.words) == ("stuck at guessing", "5.0% · 400 / 700 steps")
    said = texts(as_teacher(of=LESSON, view="runs"))
    assert f"May need help: Pupil {other.number} (stuck at guessing)" in said
    assert said.count("<img") == 2
    assert f"run={newest.id}" in said


def test_a_number_stays_with_its_pupil_and_begins_anew_after_a_reset():
    now = [0.0]
    seen = Classes(lambda: now[0])
    assert seen.admit("one", ["a", "b"]) == {"a": 1, "b": 2}
    assert seen.admit("one", ["c", "a"]) == {"a": 1, "b": 2, "c": 3}
    assert seen.admit("two", ["c"]) == {"c": 1}
    seen.forget("one")
    assert seen.admit("one", ["b"]) == {"b": 1}
    assert not seen.is_on("one")
    seen.look("one")
    now[0] = LASTS - 1
    assert seen.is_on("one")
    now[0] = LASTS
    assert not seen.is_on("one")


def test_answers_are_counted_as_they_are_shown():
    given = [("b", False), ("a", True), ("b", False)]
    options = {"a": "An answer", "b": "Another", "c": "A third"}
    assert classroom._counted(options, given) == [
        ("An answer", 1, True),
        ("Another", 2, False),
        ("A third", 0, False),
    ]
    assert classroom._counted({}, [("7", False), ("12", True), ("7", False)]) == [
        ("7", 2, False),
        ("12", 1, True),
    ]


def test_answers_without_a_bar_of_their_own_are_counted():
    """201 pupils, 30 numbers: 8 bars of 7 pupils, and 22 other answers of 145."""
    given = [(str(n % 30), False) for n in range(201)]
    task = next(one for one in catalogue.lesson("words-to-numbers").tasks if one.check == "choice")
    words = catalogue.lesson("words-to-numbers").words().tasks[task.id]
    free = SimpleNamespace(id=task.id, options=lambda _words: {})
    drawn = classroom._bars(free, words, given, n_pupils=201)
    assert drawn.count("class-bar") == 9
    assert "<span>22 other answers</span>" in drawn
    assert drawn.endswith("<b>145</b></div></section>")


def test_the_answers_of_a_class_are_bars(store):
    lesson = catalogue.lesson("words-to-numbers")
    task = next(one for one in lesson.tasks if one.check == "choice")
    words = lesson.words().tasks[task.id]
    right, wrong = words.right[0], next(one.text for one in words.options if not one.is_right)
    for token, answer in ((ANN, right), (BEN, wrong)):
        verdict = Verdict(answer == right, "")
        record(lesson.id, hashed(token), task.id, answer=answer, verdict=verdict)
    said = texts(as_teacher(of=lesson.id, view="answers"))
    assert "1 right, 1 wrong, 0 unanswered" in said
    assert "0 right, 0 wrong, 2 unanswered" in said
    assert f"{html.escape(right)} ✓</span>" in said
    reading.forget(lesson.id)


def test_a_reset_says_what_goes_and_leaves_all_other_runs(store, monkeypatch):
    runs = [made_run(store, owner=hashed(token)) for token in (ANN, ANN, BEN)]
    other = made_run(store)
    for token, run in zip((ANN, ANN, BEN), runs, strict=True):
        at_lesson(token, run)
    app = as_teacher(of=LESSON, view="runs")
    (button,) = [one for one in app.button if one.key == "class-reset"]
    assert button.label == "Remove 2 pupils and 3 runs"

    classroom.reset()  # without the key this removes nothing
    assert len(attempts.attempts(LESSON)) == 2

    button.click().run()
    assert attempts.attempts(LESSON) == []
    assert {run.id for run in runs_access.store().kept()} == {other.id}
    assert all(store.restorable_until(run.id) for run in runs)
    assert "Pupils appear here" in texts(app)
