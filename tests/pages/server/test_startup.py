"""What the server prepares at startup, and what ``/health`` answers."""

import json

from pages.app.model import stage_view
from pages.app.runs import runs_access
from pages.home import page
from pages.runs.filter import ListedRun
from pages.server.preload import preload_home, preload_pages
from pages.server.static_files import health_response
from tests.pages.made_runs import made_run
from tfm_core.runs import run, status
from tfm_core.runs.disk import atomic
from tfm_core.runs.queue.run_queue import Health


def test_the_first_visitor_finds_the_stage_read(monkeypatch):
    preload_home()
    recorded = runs_access.store().get(page.TRANSLATOR)

    def fail(*_given: object) -> None:
        raise AssertionError("the snapshots are read again")

    monkeypatch.setattr(stage_view.stages, "read_stage", fail)
    monkeypatch.setattr(stage_view.moments, "moments", fail)
    stage_view.prepare(recorded)


def test_the_first_who_lists_the_runs_finds_them_read(store, monkeypatch):
    made = made_run(store)
    monkeypatch.setattr(atomic, "_SETTLED_NS", -(10**12))
    preload_pages()

    def fail(_path: object) -> None:
        raise AssertionError("a run is read again")

    for kept in (run._EXPERIMENTS, run._METAS, status._STATUSES):
        monkeypatch.setattr(kept, "_read", fail)
    assert ListedRun.of(store.get(made.id)).problem is None


def test_what_cannot_be_prepared_stops_nothing(monkeypatch, caplog):
    def fail(_run: object) -> None:
        raise OSError

    monkeypatch.setattr(page, "prepare", fail)
    preload_home()
    assert "Home could not be prepared" in caplog.text


WELL = Health(None, running=1, max_running=2, waiting=3, max_waiting=5)


def told(health: Health) -> dict:
    answer = health_response(health)
    assert answer.status_code == (200 if health.reason is None else 503)
    return json.loads(answer.body)


def test_a_server_says_only_whether_it_works_and_answers_503_where_it_cannot_train():
    assert told(WELL) == {
        "ok": True,
        "reason": None,
        "queue": {"running": 1, "max_running": 2, "waiting": 3, "max_waiting": 5},
    }
    values = told(Health("The disk of the runs is full."))
    assert (values["ok"], values["reason"]) == (False, "The disk of the runs is full.")
