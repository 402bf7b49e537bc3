"""What is prepared while the server starts."""

from pages.home import hero
from pages.ui import runs_access, stage_view
from pages.warm import warm


def test_the_first_visitor_finds_the_stage_read(monkeypatch) -> None:
    warm()
    run = runs_access.store().get(hero.TRANSLATOR)

    def fail(*_given: object) -> None:
        raise AssertionError("the snapshots are read again")

    monkeypatch.setattr(stage_view.stages, "read", fail)
    monkeypatch.setattr(stage_view.moments, "moments", fail)
    stage_view.prepare(run)


def test_what_cannot_be_prepared_stops_nothing(monkeypatch, caplog) -> None:
    def fail(_run: object) -> None:
        raise OSError

    monkeypatch.setattr(hero, "prepare", fail)
    warm()
    assert "Home could not be prepared" in caplog.text
