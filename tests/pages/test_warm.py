"""What is prepared while the server starts."""

import subprocess
import sys

from pages.home import hero
from pages.i18n import PAGES_DIR
from pages.runs.filter import ListedRun
from pages.ui import runs_access, stage_view
from pages.warm import warm, warm_rest
from tests.pages.made_runs import made_run
from tfm_core.runs import remembered, run, status
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
    monkeypatch.setattr(remembered, "_SETTLED_NS", -(10**12))
    warm_rest()

    def fail(_path: object) -> None:
        raise AssertionError("a run is read again")

    for kept in (run._EXPERIMENTS, run._METAS, status._STATUSES):
        monkeypatch.setattr(kept, "_read", fail)
    assert ListedRun.of(store.get(made.id)).problem is None


def test_home_does_not_wait_for_pandas() -> None:
    code = (
        "import sys; from importlib import import_module; from pages import warm; import app;"
        "[import_module(name) for name in warm.MODULES];"
        "from streamlit.testing.v1 import AppTest;"
        f"AppTest.from_file({str(FRAME)!r}, default_timeout=60).run();"
        "sys.exit('pandas' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_cannot_be_prepared_stops_nothing(monkeypatch, caplog) -> None:
    def fail(_run: object) -> None:
        raise OSError

    monkeypatch.setattr(hero, "prepare", fail)
    warm()
    assert "Home could not be prepared" in caplog.text
