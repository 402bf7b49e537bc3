"""Logging in: what a page lets whom do where people log in."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from streamlit.testing.v1 import AppTest

from pages.app.accounts import visitors
from pages.app.runs import comparison, run_actions
from pages.app.runs.run_actions import Start
from pages.app.settings import controls
from pages.compare.sweeps import actions as sweeps
from tests.pages.looking import keys, said
from tests.pages.made_runs import made_run, with_checkpoint
from tests.pages.opening import opened_at
from tests.runs.waiting import tiny
from tfm_core.runs import auth
from tfm_core.runs.auth import OnlyWatches, hashed, new_token
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunStore
from tfm_core.sentences import StudentError
from tfm_core.sweeps.plan import example_plan

ISSUER = {"is_logged_in": True, "iss": "https://login.example.org"}
ANN = {**ISSUER, "sub": "1", "name": "Ann *Lee*", "email": "ann@example.org"}
BEN = {**ISSUER, "sub": "2", "name": "Ben", "email": "ben@example.org"}
RUNS, TRAIN = "runs/page.py", "train/page.py"
STEERING = {"run-pause", "run-resume", "run-step", "run-stop", "run-again"}
TOKEN = new_token()
PROVIDERS = visitors.providers  # which a fixture replaces


@pytest.fixture(autouse=True)
def _people_log_in(monkeypatch):
    monkeypatch.setattr(visitors, "providers", lambda: (visitors.DEFAULT_PROVIDER,))


def opened(user: dict[str, object], page: str = "home/page.py", **query: str) -> AppTest:
    return opened_at(page, user=user, token=TOKEN, **query)


def owned(run: Run, claims: dict[str, object]) -> Run:
    """Give a run to a person."""
    known = auth.person(claims)
    assert known is not None
    values = {name: getattr(run.meta, name) for name in run.meta.__slots__}
    run.write_meta(type(run.meta)(**values | {"owner": known.id, "owner_name": known.name}))
    return run


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
        "go on": lambda: run_actions.resume(run),
        "train further": lambda: run_actions.train_further(run, 100_000),
        "rename": lambda: run_actions.label([run.id], name="Ben’s"),
        "label": lambda: run_actions.join_group([run.id], "Ben’s"),
        "delete": lambda: run_actions.delete(run),
        "sweep": lambda: sweeps.start(example_plan()),
        "set": lambda: controls.keep_text("to be or not to be " * 50, "characters"),
    }


def test_who_is_not_logged_in_changes_nothing_whatever_is_sent(store, monkeypatch):
    for name in list(acts(None)):
        for state in ["running", "stopped"]:
            run = with_checkpoint(made_run(store, state=state))
            nobody = auth.visitor(None, browser=hashed(TOKEN))
            monkeypatch.setattr(visitors, "visitor", lambda who=nobody: who)
            before = told(store)
            with suppress(OnlyWatches):  # which whoever asks says in a sentence
                acts(run)[name]()
            assert told(store) == before


def test_a_run_is_its_owners_to_change(store, monkeypatch):
    for name in ["pause", "stop", "go on", "rename", "label", "delete"]:
        run = owned(
            made_run(store, state="paused" if name in ("pause", "stop") else "stopped"), ANN
        )
        before = told(store)
        ben = auth.visitor(auth.person(BEN), browser="")
        monkeypatch.setattr(visitors, "visitor", lambda who=ben: who)
        with suppress(ValueError):
            acts(run)[name]()
        assert told(store) == before


def test_who_is_not_logged_in_may_watch_and_is_told_what_keeps_them_from_more(store):
    run = owned(made_run(store, state="running"), ANN)
    app = opened({}, TRAIN, run=run.id)
    assert not keys(app) & STEERING
    assert "Log in to start runs" in said(app)
    assert "login-default" in keys(app)
    app = opened({}, RUNS)
    assert f"open-{run.id}" in keys(app)
    assert f"stop-{run.id}" not in keys(app)
    assert "Ann \\*Lee\\*" in said(app)
    app = opened({}, TRAIN)
    (start,) = [button for button in app.button if button.key == "start"]
    assert start.disabled
    assert "Log in to start runs" in start.help
    assert opened({}).button(key="begin").disabled


def test_a_run_that_is_begun_is_the_persons_on_every_machine(store, busy_queue):
    app = opened(ANN)
    app.button(key="begin").click().run()
    (run,) = [run for run in store.list() if run.meta.preset == "translate"]
    known = auth.person(ANN)
    assert known is not None
    assert (run.meta.owner, run.meta.owner_name) == (known.id, "Ann *Lee*")
    elsewhere = opened_at(TRAIN, user=ANN, token=new_token(), run=run.id)
    assert "run-stop" in keys(elsewhere)
    others = opened(BEN, TRAIN, run=run.id)
    assert not keys(others) & STEERING
    assert "This run belongs to Ann \\*Lee\\*" in said(others)


def test_runs_in_hand_are_counted_by_person(store, busy_queue):
    for _ in range(busy_queue.limits.max_per_session):
        owned(made_run(store, state="queued"), ANN)
    app = opened_at(user=ANN, token=new_token())
    app.button(key="begin").click().run()
    assert "limit of active runs" in app.error[0].value
    app = opened(BEN)
    app.button(key="begin").click().run()
    assert not app.error


def test_the_list_says_whose_a_run_is_and_shows_ones_own(store):
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


class Secrets:
    """Streamlit's secrets: a section ``[auth]``, or an error."""

    def __init__(self, auth: object) -> None:
        self.auth = auth

    def to_dict(self) -> dict[str, object]:
        if isinstance(self.auth, Exception):
            raise self.auth
        return {} if self.auth is None else {"auth": self.auth}


PROVIDER = {"client_id": "a", "client_secret": "b", "server_metadata_url": "https://a.example"}
SHARED = {"redirect_uri": "https://b.example/oauth2callback", "cookie_secret": "c" * 32}


@pytest.mark.parametrize(
    ("auth_section", "names"),
    [
        (None, ()),
        (SHARED | PROVIDER, ("default",)),
        (SHARED | {"google": PROVIDER, "work": PROVIDER}, ("google", "work")),
        (SHARED | PROVIDER | {"google": PROVIDER, "client_kwargs": {}}, ("google", "default")),
    ],
)
def test_the_secrets_name_the_providers(auth_section, names, monkeypatch):
    monkeypatch.setattr(visitors.st, "secrets", Secrets(auth_section))
    assert PROVIDERS.__wrapped__() == names


@pytest.mark.parametrize("auth_section", [OSError("no access"), "a text"])
def test_secrets_that_cannot_be_read_open_no_server(auth_section, monkeypatch):
    monkeypatch.setattr(visitors.st, "secrets", Secrets(auth_section))
    with pytest.raises(StudentError, match=r"secrets"):
        PROVIDERS.__wrapped__()
