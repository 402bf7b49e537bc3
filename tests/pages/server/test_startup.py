"""What the server prepares at startup, and what ``/health`` answers."""

from __future__ import annotations

import json

from starlette.requests import Request

from pages.home import hero
from pages.i18n import PAGES_DIR
from pages.runs.filter import ListedRun
from pages.server.health import response
from pages.server.warm import warm, warm_rest
from pages.ui.model import stage_view
from pages.ui.runs import runs_access
from tests.pages.made_runs import made_run
from tfm_core.runs import run, status
from tfm_core.runs.disk import atomic
from tfm_core.runs.queue.health import Health
from tfm_core.runs.settings import Settings
from tfm_core.runs.store import RunStore

FRAME = PAGES_DIR / "frame.py"


def test_the_first_visitor_finds_the_stage_read(monkeypatch) -> None:
    warm()
    recorded = runs_access.store().get(hero.TRANSLATOR)

    def fail(*_given: object) -> None:
        raise AssertionError("the snapshots are read again")

    monkeypatch.setattr(stage_view.stages, "read", fail)
    monkeypatch.setattr(stage_view.moments, "moments", fail)
    stage_view.prepare(recorded)


def test_the_first_who_lists_the_runs_finds_them_read(store: RunStore, monkeypatch) -> None:
    made = made_run(store)
    monkeypatch.setattr(atomic, "_SETTLED_NS", -(10**12))
    warm_rest()

    def fail(_path: object) -> None:
        raise AssertionError("a run is read again")

    for kept in (run._EXPERIMENTS, run._METAS, status._STATUSES):
        monkeypatch.setattr(kept, "_read", fail)
    assert ListedRun.of(store.get(made.id)).problem is None


def test_what_cannot_be_prepared_stops_nothing(monkeypatch, caplog) -> None:
    def fail(_run: object) -> None:
        raise OSError

    monkeypatch.setattr(hero, "prepare", fail)
    warm()
    assert "Home could not be prepared" in caplog.text


KEY = "a key of the host's own"
WELL = Health(None, running=1, max_running=2, waiting=3, max_waiting=5, warm=1, free=7, used=11)
PUBLIC = Settings(public=True, host_key=KEY)


def told(said: Settings, health: Health = WELL, **headers: str) -> dict:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    answer = response(health, Request({"type": "http", "headers": raw}), said)
    assert answer.status_code == (200 if health.reason is None else 503)
    return json.loads(answer.body)


def test_on_ones_own_machine_all_is_told():
    assert told(Settings()) == {
        "ok": True,
        "reason": None,
        "queue": {"running": 1, "max_running": 2, "waiting": 3, "max_waiting": 5},
        "backend": "local",
        "workers": {"warm": 1, "alive": 2},
        "disk": {"free": 7, "used": 11, "writable": False},
        "version": "0.2.0",
    }


def test_a_server_that_cannot_train_answers_503_and_says_why():
    values = told(Settings(), Health("The disk of the runs is full."))
    assert (values["ok"], values["reason"]) == (False, "The disk of the runs is full.")


def test_strangers_of_a_public_server_read_only_whether_it_works():
    for said in ["", "Bearer ", "Bearer another", f"Basic {KEY}", KEY]:
        assert told(PUBLIC, authorization=said).keys() == {"ok", "reason", "queue"}


def test_the_host_of_a_public_server_reads_all_with_the_key():
    assert "disk" in told(PUBLIC, authorization=f"Bearer {KEY}")


def test_without_a_key_nobody_is_the_host():
    values = told(Settings(public=True), authorization="Bearer None")
    assert "disk" not in values
