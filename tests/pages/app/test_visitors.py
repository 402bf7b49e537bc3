"""Visitors: whose runs are listed, and who may do what, on a server that strangers reach."""

from contextlib import suppress

import pytest
from streamlit.testing.v1 import AppTest

from pages.app.accounts import visitors
from pages.app.runs import run_actions
from tests.pages.looking import keys
from tests.pages.made_runs import made_run, with_checkpoint
from tests.pages.opening import opened_at
from tfm_core.runs.auth import NotYours, Visitor, hashed, new_token
from tfm_core.runs.run import Run

ANN, BEN = new_token(), new_token()
RUNS, TRAIN = "runs/page.py", "train/page.py"
STEERING = {"run-pause", "run-resume", "run-step", "run-stop", "run-again"}
LINE = "This run belongs to another visitor."


@pytest.fixture(autouse=True)
def _public(monkeypatch):
    monkeypatch.setenv("TFM_PUBLIC", "1")


def owned(run: Run, token: str | None) -> Run:
    """Give a run to a browser."""
    values = {**{name: getattr(run.meta, name) for name in run.meta.__slots__}}
    run.write_meta(type(run.meta)(**values | {"owner": None if token is None else hashed(token)}))
    return run


def captions(app: AppTest) -> str:
    return "\n".join(caption.value for caption in app.caption)


def act(token: str, run: Run, action: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Do what a press does, whether there is a button for it or not."""
    monkeypatch.setattr(visitors, "visitor", lambda: Visitor(hashed(token), is_public=True))
    actions = {
        "pause": lambda: run_actions.ask(run, "pause"),
        "step": lambda: run_actions.ask(run, "step"),
        "stop": lambda: run_actions.ask(run, "stop"),
        "resume": lambda: run_actions.resume(run),
        "rename": lambda: rename(run, "Ben was here"),
        "delete": lambda: run_actions.delete(run),
    }
    actions[action]()


def rename(run: Run, name: str) -> None:
    with suppress(NotYours):  # which the dialog says in a sentence
        run_actions.label([run.id], name=name)


def told(run: Run) -> dict[str, bytes]:
    """Everything that a run's folder says."""
    return {str(path): path.read_bytes() for path in run.folder.rglob("*") if path.is_file()}


def test_whatever_is_pressed_another_visitors_run_stays_as_it_is(store, monkeypatch):
    for state in ["running", "paused", "stopped"]:
        for action in ["pause", "step", "stop", "resume", "rename", "delete"]:
            run = owned(made_run(store, state=state), ANN)
            before = told(run)
            act(BEN, run, action, monkeypatch)
            assert told(run) == before


def test_the_owner_stops_renames_and_deletes(store, monkeypatch):
    run = owned(made_run(store, state="running"), ANN)
    act(ANN, run, "stop", monkeypatch)
    assert any((run.folder / "requests").iterdir())
    run = owned(made_run(store), ANN)
    act(ANN, run, "rename", monkeypatch)
    assert store.get(run.id).meta.name == "Ben was here"
    act(ANN, run, "delete", monkeypatch)
    assert run.id not in [other.id for other in store.list()]


def test_a_run_of_another_visitor_is_not_listed_but_opens_by_its_link(store):
    run = owned(made_run(store, name="Of Ann"), ANN)
    assert f"open-{run.id}" in keys(opened_at(RUNS, token=ANN))
    assert f"open-{run.id}" not in keys(opened_at(RUNS, token=BEN))
    app = opened_at(TRAIN, token=BEN, run=run.id)
    assert app.title[0].value == "Of Ann"


@pytest.mark.parametrize("state", ["running", "paused", "queued", "stopped", "failed"])
def test_who_watches_sees_one_line_in_place_of_buttons(state, store):
    run = owned(made_run(store, state=state), ANN)
    app = opened_at(TRAIN, token=BEN, run=run.id)
    assert not keys(app) & STEERING
    assert captions(app).count(LINE) == 1
    assert "Resume" not in "\n".join(element.value for element in [*app.info, *app.error])
    app = opened_at(TRAIN, token=ANN, run=run.id)
    assert keys(app) & STEERING
    assert LINE not in captions(app)


def test_a_copy_of_another_visitors_run_is_ones_own(store, busy_queue):
    run = owned(with_checkpoint(made_run(store)), ANN)
    app = opened_at(TRAIN, token=BEN, run=run.id)
    app.button(key="run-further").click().run()
    (copy,) = [other for other in store.list() if other.meta.parent == run.id]
    assert copy.meta.owner == hashed(BEN)
    assert copy.status.state == "queued"
    assert "run-stop" in keys(app)


def test_runs_in_hand_are_the_browsers_not_the_sessions(store, busy_queue, monkeypatch):
    most = busy_queue.limits.max_per_session
    for _ in range(most):
        owned(made_run(store, state="queued"), ANN)
    app = opened_at(token=ANN)
    app.button(key="begin").click().run()
    assert "limit of active runs" in app.error[0].value
    app = opened_at(token=BEN)
    app.button(key="begin").click().run()
    assert not app.error


def test_what_is_resumed_counts_as_in_hand(store, busy_queue):
    for _ in range(busy_queue.limits.max_per_session - 1):
        owned(made_run(store, state="queued"), ANN)
    first, second = (owned(made_run(store, state="stopped", step=9), ANN) for _ in range(2))
    app = opened_at(RUNS, token=ANN)
    app.button(key=f"resume-{first.id}").click().run()
    assert first.status.state == "queued"
    app = opened_at(RUNS, token=ANN)  # another session of the same browser
    app.button(key=f"resume-{second.id}").click().run()
    assert "limit of active runs" in app.error[0].value
    assert second.status.state == "stopped"


def test_undo_is_for_every_tab_of_the_browser_that_deleted(store):
    run = owned(made_run(store, name="Gone"), ANN)
    opened_at(RUNS, token=ANN).button(key=f"delete-{run.id}").click().run()
    assert f"undo-{run.id}" not in keys(opened_at(RUNS, token=BEN))
    another_tab = opened_at(RUNS, token=ANN)
    another_tab.button(key=f"undo-{run.id}").click().run()
    assert [kept.id for kept in store.list()] == [run.id]
    assert f"undo-{run.id}" not in keys(another_tab)


def test_nobody_else_undoes(store, monkeypatch):
    run = owned(made_run(store), ANN)
    act(ANN, run, "delete", monkeypatch)
    monkeypatch.setattr(visitors, "visitor", lambda: Visitor(hashed(BEN), is_public=True))
    run_actions.undelete(run.id)
    assert store.list() == []


def test_on_ones_own_machine_everybody_does_everything(store, monkeypatch):
    monkeypatch.delenv("TFM_PUBLIC")
    runs = [owned(made_run(store, state="stopped"), token) for token in (None, ANN)]
    app = opened_at(RUNS, token=BEN)
    assert {f"{what}-{run.id}" for run in runs for what in ("resume", "delete")} <= keys(app)
    assert "Another visitor’s" not in "\n".join(element.value for element in app.markdown)
    assert "run-again" in keys(opened_at(TRAIN, token=BEN, run=runs[1].id))


def test_who_waits_is_told_of_others_but_not_their_names(store):
    owned(made_run(store, state="running", name="Secret plan"), ANN)
    run = owned(made_run(store, state="queued"), BEN)
    app = opened_at(TRAIN, token=BEN, run=run.id)
    assert "1 run of another visitor" in captions(app)
    assert "Secret plan" not in "\n".join(str(element) for element in app.main)
