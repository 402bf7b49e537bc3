"""Logging in: what a page lets whom do where people log in, and the way back from there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from streamlit.testing.v1 import AppTest

from pages.sweeps import actions as sweeps
from pages.ui.accounts import login, login_setup, visitors
from pages.ui.runs import comparison, run_actions
from pages.ui.runs.run_actions import Start
from pages.ui.settings import own_choice
from pages.ui.typed import escape
from tests.pages.made_runs import made_run, with_checkpoint
from tests.pages.opening import opened_at
from tests.runs.waiting import tiny
from tfm_core.runs import auth
from tfm_core.runs.auth import OnlyWatches, hashed, new_token
from tfm_core.runs.queue.run_queue import RunQueue
from tfm_core.runs.run import Run
from tfm_core.runs.settings import Settings
from tfm_core.runs.store import RunStore
from tfm_core.sweeps import ready

ISSUER = {"is_logged_in": True, "iss": "https://login.example.org"}
ANN = {**ISSUER, "sub": "1", "name": "Ann *Lee*", "email": "ann@example.org"}
BEN = {**ISSUER, "sub": "2", "name": "Ben", "email": "ben@example.org"}
CEM = {**ISSUER, "sub": "3", "name": "Cem", "email": "cem@example.com"}
RUNS, TRAIN = "runs/page.py", "train/page.py"
STEERING = {"run-pause", "run-resume", "run-step", "run-stop", "run-again", "run-publish"}
TOKEN = new_token()


@pytest.fixture(autouse=True)
def _people_log_in(monkeypatch: pytest.MonkeyPatch) -> None:
    setup = login_setup.Setup({login_setup.DEFAULT: "https://login.example.org/metadata"})
    monkeypatch.setattr(login_setup, "read", lambda: setup)


@pytest.fixture(autouse=True)
def _nobody_is_away() -> Iterator[None]:
    yield
    login._ways.clear()


def opened(user: dict[str, object], page: str = "home/page.py", **query: str) -> AppTest:
    return opened_at(page, user=user, token=TOKEN, **query)


def owned(run: Run, claims: dict[str, object]) -> Run:
    """Give a run to a person."""
    known = auth.person(claims)
    assert known is not None
    values = {name: getattr(run.meta, name) for name in run.meta.__slots__}
    run.write_meta(type(run.meta)(**values | {"owner": known.id, "owner_name": known.name}))
    return run


def keys(app: AppTest) -> set[str]:
    return {button.key for button in app.button}


def said(app: AppTest) -> str:
    return "\n".join(one.value for one in [*app.caption, *app.markdown, *app.info, *app.error])


def told(store: RunStore) -> dict[str, bytes]:
    """Everything that the folder of runs says."""
    return {str(path): path.read_bytes() for path in store.root.rglob("*") if path.is_file()}


def acts(run: Run) -> dict[str, Callable[[], object]]:
    """What a press does, whether there is a button for it or not."""
    start = Start(tiny(), "cpu")
    return {
        "start": lambda: run_actions.start(tiny()),
        "enter the line": lambda: run_actions.enqueue(start),
        "seeds": lambda: comparison.start_all([start]),
        "pause": lambda: run_actions.ask(run, "pause"),
        "stop": lambda: run_actions.ask(run, "stop"),
        "go on": lambda: run_actions.resume_here(run),
        "train further": lambda: run_actions.train_further(run, 100_000),
        "rename": lambda: run_actions.name_and_label(
            run.id, name="Ben was here", group="", tags="", note=""
        ),
        "label": lambda: run_actions.label([run.id], note="Ben was here"),
        "delete": lambda: run_actions.delete(run),
        "publish": lambda: run_actions.publish(run),
        "sweep": lambda: sweeps.start(ready.plan()),
        "study": lambda: sweeps.import_study(b"", "journal.log"),
        "set": lambda: own_choice.keep_text("to be or not to be " * 50, "characters"),
    }


def test_who_is_not_logged_in_changes_nothing_whatever_is_sent(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(acts(None)):
        for state in ["running", "stopped"]:
            run = with_checkpoint(made_run(store, state=state))
            nobody = auth.visitor(None, Settings(), browser=hashed(TOKEN), is_host=False)
            monkeypatch.setattr(visitors, "visitor", lambda who=nobody: who)
            before = told(store)
            with suppress(OnlyWatches):  # which whoever asks says in a sentence
                acts(run)[name]()
            assert told(store) == before


def test_a_run_is_its_owners_and_an_admins_to_change(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ["pause", "stop", "go on", "rename", "label", "delete", "publish"]:
        run = owned(
            made_run(store, state="paused" if name in ("pause", "stop") else "stopped"), ANN
        )
        before = told(store)
        ben = auth.visitor(auth.person(BEN), Settings(), browser="", is_host=False)
        monkeypatch.setattr(visitors, "visitor", lambda who=ben: who)
        with suppress(ValueError):
            acts(run)[name]()
        assert told(store) == before


def test_who_is_not_logged_in_may_watch_and_is_told_what_keeps_them_from_more(
    store: RunStore,
) -> None:
    run = owned(made_run(store, state="running"), ANN)
    app = opened({}, TRAIN, run=run.id)
    assert not app.exception
    assert not keys(app) & STEERING
    assert "You can only watch" in said(app)
    assert "login-strip-default" in keys(app)
    app = opened({}, RUNS)
    assert f"open-{run.id}" in keys(app)
    assert f"stop-{run.id}" not in keys(app)
    assert "Ann \\*Lee\\*" in said(app)
    app = opened({}, TRAIN)
    (start,) = [button for button in app.button if button.key == "start"]
    assert start.disabled
    assert "You can only watch" in start.help
    assert all(button.disabled for button in opened({}).button if button.key == "start-copy")


def test_a_run_that_is_begun_is_the_persons_on_every_machine(
    store: RunStore, busy_queue: RunQueue
) -> None:
    app = opened(ANN)
    app.button(key="start-copy").click().run()
    assert not app.exception
    (run,) = [run for run in store.list() if run.meta.preset == "copy"]
    known = auth.person(ANN)
    assert known is not None
    assert (run.meta.owner, run.meta.owner_name) == (known.id, "Ann *Lee*")
    elsewhere = opened_at(TRAIN, user=ANN, token=new_token(), run=run.id)
    assert "run-stop" in keys(elsewhere)
    others = opened(BEN, TRAIN, run=run.id)
    assert not keys(others) & STEERING
    assert "This run belongs to Ann \\*Lee\\*" in said(others)


def test_runs_in_hand_are_counted_by_person(store: RunStore, busy_queue: RunQueue) -> None:
    for _ in range(busy_queue.limits.max_per_session):
        owned(made_run(store, state="queued"), ANN)
    app = opened_at(user=ANN, token=new_token())
    app.button(key="start-copy").click().run()
    assert "already have" in app.error[0].value
    app = opened(BEN)
    app.button(key="start-copy").click().run()
    assert not app.error


def test_the_list_says_whose_a_run_is_and_shows_ones_own(store: RunStore) -> None:
    mine, hers = owned(made_run(store), BEN), owned(made_run(store), ANN)
    nobodys = made_run(store)
    app = opened(BEN, RUNS)
    assert "Ben (you)" in said(app)
    assert "Ann \\*Lee\\*" in said(app)
    assert {f"open-{run.id}" for run in (mine, hers, nobodys)} <= keys(app)
    assert f"delete-{mine.id}" in keys(app)
    assert not {f"delete-{hers.id}", f"delete-{nobodys.id}"} & keys(app)
    app.button_group(key="runs-kind").set_value("mine").run()
    opens = {key for key in keys(app) if key.startswith("open-")}
    assert opens == {f"open-{mine.id}"}


def test_an_admin_changes_everybodys_runs(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFM_ADMINS", "cem@example.com")
    run, older = owned(made_run(store), ANN), made_run(store)
    app = opened(CEM, RUNS)
    assert {f"delete-{run.id}", f"delete-{older.id}"} <= keys(app)
    app.button(key=f"delete-{run.id}").click().run()
    assert run.id not in [other.id for other in store.list()]
    assert "You are an admin" in said(app)


def test_who_is_on_no_list_is_told_so(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFM_MAY_START", "@example.org")
    (start,) = [button for button in opened(CEM, TRAIN).button if button.key == "start"]
    assert start.disabled
    assert escape("cem@example.com") in start.help
    (start,) = [button for button in opened(BEN, TRAIN).button if button.key == "start"]
    assert not start.disabled


@pytest.mark.parametrize("page", [RUNS, TRAIN, "attention/page.py", "home/page.py"])
def test_where_one_logs_in_to_watch_nothing_is_seen_before(
    page: str, store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFM_LOGIN_TO_WATCH", "1")
    run = owned(made_run(store, name="A secret plan"), ANN)
    app = opened({}, page, run=run.id)
    assert [title.value for title in app.title] == ["Log in to watch"]
    assert keys(app) == {"login-door-default"}
    assert app.button(key="login-door-default").label == "Log in"  # there is no other way
    assert "A secret plan" not in said(app)
    assert f"open-{run.id}" in keys(opened(BEN, RUNS))


def test_who_comes_back_is_where_they_were_with_what_they_edited(store: RunStore) -> None:
    experiment = tiny().replace(seed=1234)
    login._ways()[hashed(TOKEN)] = login._Left(
        login.time.monotonic(), "masks", {"mask": "causal"}, experiment.model_dump()
    )
    app = opened(BEN)
    assert not app.exception
    assert app.title[0].value == "Masks"
    assert app.session_state["draft"].values["seed"] == 1234
    assert "cancelled" not in said(app)
    assert not login._ways()


def test_a_login_that_was_not_finished_is_said(store: RunStore) -> None:
    login._ways()[hashed(TOKEN)] = login._Left(
        login.time.monotonic(), "masks", {}, tiny().model_dump()
    )
    app = opened({})
    assert app.title[0].value == "Masks"
    assert "Login was cancelled" in said(app)


def test_a_provider_that_is_away_is_one_sentence(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("authlib")
    setup = login_setup.Setup({login_setup.DEFAULT: "http://127.0.0.1:9/metadata"})
    monkeypatch.setattr(login_setup, "read", lambda: setup)
    app = opened({})
    app.button(key="login-strip-default").click().run()
    assert not app.exception
    assert "The login provider 127.0.0.1 does not respond" in app.info[0].value.replace("\\", "")
