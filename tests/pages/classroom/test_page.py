"""The class page: who may see it, how pupils come in, their runs and answers, and the reset."""

from __future__ import annotations

import html
import json
import socket
from collections.abc import Iterator

import pytest
from streamlit.testing.v1 import AppTest

from pages.classroom import progress, reached, reading, reset
from pages.classroom.reading import pupils
from pages.components import addresses
from pages.ui.accounts import arrivals, visitors
from pages.ui.accounts.arrivals import Arrivals
from pages.ui.lessons.pupils import Classes
from pages.ui.runs import runs_access
from tests.pages.made_runs import made_run
from tests.pages.opening import opened_at
from tfm_core.lessons import attempts, catalogue
from tfm_core.lessons.checks.task import Verdict
from tfm_core.runs.auth import Visitor, hashed
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunStore

LASTS = 4 * 3600.0  # seconds

PAGE, LESSONS = "classroom/page.py", "lessons/page.py"
KEY = "only the teacher knows it"
LESSON = "learning-rate"
ANN, BEN = "a" * 43, "b" * 43


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch, store: RunStore) -> Iterator[None]:
    monkeypatch.setenv("TFM_HOST_KEY", KEY)
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
    assert not app.exception
    return app


def stuck_run(store: RunStore, owner: str) -> Run:
    """A run that has guessed for 400 steps."""
    run = made_run(store, state="running", step=400, owner=owner)
    started = {"event": "started", "step": 0, "total_steps": 600, "start_loss": 3.0,
               "floor": 0.0, "chance": 0.05}  # fmt: skip
    lines = [started]
    lines += [{"event": "step", "step": k, "loss": 3.0, "accuracy": 0.05} for k in range(1, 401)]
    lines.append({"event": "measured", "step": 400, "split": "validation", "accuracy": 0.05,
                  "loss": 3.0})  # fmt: skip
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (run.folder / "events.jsonl").write_text(text, encoding="utf-8")
    return run


def at_lesson(token: str, run: Run) -> None:
    attempts.add_run(LESSON, hashed(token), run.id)


def test_without_the_key_nothing_is_shown_and_the_page_says_where_it_comes_from(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_lesson(ANN, made_run(store))
    app = opened_at(PAGE)
    assert "TFM_HOST_KEY" in texts(app)
    app.text_input(key="class-key").set_value("a guess").run()
    assert "Wrong key." in texts(app)
    assert "Pupil" not in texts(app)
    assert not app.selectbox
    monkeypatch.delenv("TFM_HOST_KEY")
    app = opened_at(PAGE)
    assert "TFM_HOST_KEY=" in texts(app)
    assert not app.text_input


def test_the_start_page_has_the_lessons_address_in_the_network_and_its_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(addresses, "hosts", lambda: ["localhost", "192.0.2.7"])
    said = texts(as_teacher(of=LESSON))
    assert f"http://192.0.2.7:8501/lessons?lesson={LESSON}" in said
    assert "data:image/svg+xml" in said


def test_a_pupil_is_in_and_the_teacher_sees_who(store: RunStore) -> None:
    assert "You are in" not in texts(opened_at(LESSONS, token=ANN, lesson=LESSON))
    app = as_teacher(of=LESSON, view="runs")
    assert "Nobody is in yet." in texts(app)
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


def test_everybodys_newest_run_is_shown_and_who_is_stuck(store: RunStore) -> None:
    for run in (made_run(store), stuck_run(store, hashed(ANN))):
        at_lesson(ANN, run)
    newest = made_run(store, owner=hashed(BEN))
    at_lesson(BEN, newest)
    one, other = sorted(pupils(LESSON), key=lambda pupil: pupil.n_runs)
    assert (one.n_runs, other.n_runs) == (1, 2)
    assert one.run is not None
    assert other.run is not None
    assert (one.run.id, one.run.trouble) == (newest.id, "")
    assert (other.run.trouble, other.run.words) == ("stuck at guessing", "5.0 % · 400 / 700 steps")
    said = texts(as_teacher(of=LESSON, view="runs"))
    assert f"May need help: Pupil {other.number} (stuck at guessing)" in said
    assert said.count("<img") == 2
    assert f"run={newest.id}" in said


def test_a_number_stays_with_its_pupil_and_begins_anew_after_a_reset() -> None:
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


def test_answers_are_counted_as_they_are_shown() -> None:
    given = [("b", False), ("a", True), ("b", False)]
    options = {"a": "An answer", "b": "Another", "c": "A third"}
    assert progress._counted(options, given) == [
        ("An answer", 1, True),
        ("Another", 2, False),
        ("A third", 0, False),
    ]
    assert progress._counted({}, [("7", False), ("12", True), ("7", False)]) == [
        ("7", 2, False),
        ("12", 1, True),
    ]


def test_the_answers_of_a_class_are_bars(store: RunStore) -> None:
    lesson = catalogue.lesson("words-to-numbers")
    task = next(one for one in lesson.tasks if one.check == "choice")
    words = lesson.words().tasks[task.id]
    right, wrong = words.right[0], next(one.text for one in words.options if not one.is_right)
    for token, answer in ((ANN, right), (BEN, wrong)):
        verdict = Verdict(answer == right, "")
        attempts.record(lesson.id, hashed(token), task.id, answer=answer, verdict=verdict)
    said = texts(as_teacher(of=lesson.id, view="answers"))
    assert "1 right, 1 wrong, 0 not yet" in said
    assert "0 right, 0 wrong, 2 not yet" in said
    assert f"{html.escape(right)} ✓</span>" in said
    reading.forget(lesson.id)


def test_a_reset_says_what_goes_and_leaves_all_other_runs(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [made_run(store, owner=hashed(token)) for token in (ANN, ANN, BEN)]
    other = made_run(store)
    for token, run in zip((ANN, ANN, BEN), runs, strict=True):
        at_lesson(token, run)
    app = as_teacher(of=LESSON, view="runs")
    (button,) = [one for one in app.button if one.key == "class-reset"]
    assert button.label == "Remove 2 pupils and 3 runs"

    monkeypatch.setattr(visitors, "visitor", lambda: Visitor(hashed(ANN), is_public=True))
    reset.reset()  # whoever has no key removes nothing
    assert len(attempts.attempts(LESSON)) == 2
    monkeypatch.undo()
    monkeypatch.setenv("TFM_HOST_KEY", KEY)
    monkeypatch.setenv("TFM_RUNS_DIR", str(store.root))

    button.click().run()
    assert not app.exception
    assert attempts.attempts(LESSON) == []
    assert {run.id for run in runs_access.store().kept()} == {other.id}
    assert all(store.restorable_until(run.id) for run in runs)
    assert "Nobody is in yet." in texts(app)


def test_a_firewall_is_told_from_a_wrong_address(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Arrivals()
    monkeypatch.setattr(reached, "arrivals", lambda: seen)
    reached._opens.clear()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        monkeypatch.setattr(
            addresses, "for_others", lambda _here: f"http://127.0.0.1:{port}/lessons"
        )
        assert reached.check("http://localhost/lessons").reach == "silent"
        seen.note("127.0.0.1", "a phone")
        seen.note("127.0.0.1", "a phone")
        assert reached.check("http://localhost/lessons") == reached.Checked(
            f"http://127.0.0.1:{port}/lessons", "reached", 1
        )
    seen = Arrivals()
    reached._opens.clear()
    assert reached.check("http://localhost/lessons").reach == "closed"
    monkeypatch.setattr(addresses, "for_others", lambda _here: None)
    assert reached.check("http://localhost/lessons").reach == "local"


def test_the_address_that_the_teacher_uses_is_not_called_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reached, "arrivals", Arrivals)
    assert reached.check("http://class.example/lessons").reach == "silent"


def test_few_hosts_and_browsers_are_remembered() -> None:
    seen = Arrivals()
    for n in range(arrivals.MAX_HOSTS + 5):
        seen.note(f"host-{n}", "browser")
    assert seen.count("host-0") == 0
    assert seen.count(f"host-{arrivals.MAX_HOSTS + 4}") == 1
    for n in range(arrivals.MAX_BROWSERS + 5):
        seen.note("host", str(n))
    assert seen.count("host") == arrivals.MAX_BROWSERS


def test_the_network_that_pupils_came_by_is_the_one_that_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = Arrivals()
    monkeypatch.setattr(reached, "arrivals", lambda: seen)
    monkeypatch.setattr(reached, "_opens", lambda *_what: True)
    monkeypatch.setattr(addresses, "hosts", lambda: ["localhost", "192.0.2.7"])
    own = frozenset({"127.0.0.1", "::1", "169.254.0.3", "192.0.2.7", "198.51.100.4"})
    monkeypatch.setattr(reached, "own_addresses", lambda: own)
    here = "http://localhost:8501/lessons"
    wifi = "http://198.51.100.4:8501/lessons"
    found = reached.check(here)
    assert (found.address, found.reach) == ("http://192.0.2.7:8501/lessons", "silent")
    assert found.others == (wifi,)
    seen.note("198.51.100.4", "a phone")
    assert reached.check(here) == reached.Checked(wifi, "reached", 1)


@pytest.mark.parametrize(
    ("host", "name"),
    [("192.0.2.7:8501", "192.0.2.7"), ("Class.Example", "class.example"), ("[::1]:80", "::1")],
)
def test_a_host_is_known_by_its_name(host: str, name: str) -> None:
    assert arrivals._host_name(host) == name
