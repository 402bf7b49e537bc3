"""The summary of all goals: what is kept, what is met, and what a benchmark that breaks does."""

import re
import sys
import types
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import results, summary, timing
from benchmarks.accuracy import Reached, experiment_of, figure
from benchmarks.goals import FRESH_SEEDS, GOALS, REPORTED_SEEDS, TUNING_SEEDS
from benchmarks.report import Figure, Skipped, Table
from benchmarks.results import Result
from tfm_core.choices.presets import PRESETS

EARLIER = Result(Figure(98.7, 57.0), "Some CPU, 2 cores", "2026-01-02", "abc1234")
NOW = Result(Figure(99.21, 58.3), "Another CPU, 3 cores", "2026-02-03", "def5678")
OTHER = Result(Figure(-1.25), "Some CPU, 2 cores", "2026-01-02", "abc1234")


def test_every_goal_is_measured_by_a_benchmark_and_in_the_list():
    for goal in GOALS.values():
        assert goal.module in command.BENCHMARKS
        figure = Figure(1234.5, 67.8 if goal.training else None)
        result = Result(figure, "A CPU", "2026-01-02", "abc")
        assert results.parse(results.text({goal.name: result})) == {goal.name: result}
    """Names are spelled once more where they are measured; a wrong one would break a long run."""
    folder = Path(command.__file__).parent
    written = "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.py"))
    for name in re.findall(r"""\bsaid\("([^"]+)",|\{"([^"]+)": Figure\(""", written):
        assert (name[0] or name[1]) in GOALS


def test_a_run_replaces_its_own_rows_and_forgets_goals_that_are_gone(tmp_path: Path):
    path = tmp_path / "RESULTS.md"
    results.write({"vit-mnist": EARLIER, "engine: translate": OTHER}, path)
    results.write({"vit-mnist": NOW}, path)
    assert results.read(path) == {"vit-mnist": NOW, "engine: translate": OTHER}
    assert "98.7 %" not in path.read_text(encoding="utf-8")
    path.unlink()
    results.write({"vit-mnist": EARLIER}, path)
    path.write_text(path.read_text(encoding="utf-8").replace("| vit-mnist |", "| a goal of old |"))
    assert results.read(path) == {}


def test_what_is_kept_names_damaged_rows_and_broken_tables():
    n_rows = results.PATH.read_text(encoding="utf-8").count("\n| ") - 2
    assert len(results.read(results.PATH)) <= n_rows  # fewer where a goal is gone
    damaged = results.text({"vit-mnist": EARLIER}).replace("98.7 % in", "much in")
    with pytest.raises(
        ValueError, match=r"'much in 57.0 CPU-s' is not a figure of the goal 'vit-m"
    ):
        results.parse(damaged)
    module = types.ModuleType("stand_in")
    module.tables = lambda *, quick: [Table("T", [], [], reached={"speed": Figure(1)})]  # type: ignore[attr-defined]
    sys.modules["stand_in"] = module
    outcome = summary.Outcome()
    list(summary.run("engine", "stand_in", outcome, quick=True))
    del sys.modules["stand_in"]
    assert "no goal 'speed'" in outcome.broken["engine"]


def test_trainings_are_met_by_score_and_presets_say_measured_seconds():
    assert results.verdict("vit-mnist", Figure(99.2, 60.0)) == "met"
    assert results.verdict("vit-mnist", Figure(99.19, 60.0)) == "missed"
    assert results.verdict("vit-mnist", Figure(99.5, 60.2)) == "missed"
    assert results.verdict("engine: translate", Figure(-1.0)) == "met"
    assert results.verdict("engine: translate", Figure(5.1)) == "missed"
    reached = [Reached(96.0, 70.0), Reached(98.0, 75.0)]
    assert figure(GOALS["captions"], reached, (3, 4)) == Figure(96.0, 75.0, "3 to 4")
    assert figure(GOALS["copy"], reached, (3, 4)) == Figure(97.0, 72.5, "3 to 4")
    assert not set(TUNING_SEEDS) & set(REPORTED_SEEDS)
    assert not {*TUNING_SEEDS, *REPORTED_SEEDS} & set(FRESH_SEEDS)
    measured = results.read(results.PATH)
    assert set(PRESETS) & set(measured)
    for name, preset in PRESETS.items():
        goal = GOALS[name]
        assert goal.training is not None
        assert experiment_of(goal.training) == preset.experiment
        if name in measured:  # a new preset has a goal, but no row yet
            seconds = measured[name].figure.seconds
            assert preset.seconds == pytest.approx(seconds, rel=0.1), name


def _stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put three benchmarks in the place of all: one that measures, one that breaks, one without."""

    def engine(*, quick: bool) -> Iterator[Table | Skipped]:
        yield Table("Engine", ["a"], [["b"]], reached={"engine: translate": Figure(3.25)})

    def page_speed(*, quick: bool) -> Iterator[Table | Skipped]:
        yield Table("Pages", ["a"], [["b"]], reached={"cold start": Figure(0.75)})
        raise TimeoutError("Waited for a button.\nCall log: …")

    def in_sight(*, quick: bool) -> Iterator[Table | Skipped]:
        yield Skipped("In sight", "it needs a browser.")

    stand_ins = (page_speed, engine, in_sight)
    for tables in stand_ins:
        module = types.ModuleType(f"stand_in_{tables.__name__}")
        module.tables = tables  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, module.__name__, module)
    names = {tables.__name__: (f"stand_in_{tables.__name__}", "…") for tables in stand_ins}
    monkeypatch.setattr(command, "BENCHMARKS", names)
    monkeypatch.setattr(timing, "prepare", lambda: None)


def test_a_benchmark_that_breaks_stops_no_other_and_is_said(monkeypatch, tmp_path, capsys):
    _stand_in(monkeypatch)
    path = tmp_path / "RESULTS.md"
    results.write({"engine: translate": OTHER}, path)
    assert command.main(["--results", str(path)]) == 1
    printed = capsys.readouterr().out
    said = printed.partition("### Summary")[2]
    assert "| engine: translate | 3.25 % | ≤ 5 % | met | was -1.25 %, now 3.25 % |" in said
    assert "| restart | not measured |" in said
    assert "page_speed broke down: TimeoutError: Waited for a button" in said
    assert "Left out: In sight, for it needs a browser." in said
    assert "Traceback" not in printed
    written = results.read(path)
    assert written["engine: translate"].figure == Figure(3.25)
    assert written["cold start"].figure == Figure(0.75)  # from before it broke down


def test_a_quick_run_keeps_nothing(monkeypatch, tmp_path, capsys):
    _stand_in(monkeypatch)
    path = tmp_path / "RESULTS.md"
    assert command.main(["engine", "--quick", "--results", str(path)]) == 0
    said = capsys.readouterr().out.partition("### Summary")[2]
    assert "| engine: translate | 3.25 % | ≤ 5 % | met, roughly |" in said
    assert not path.exists()


def test_goals_that_are_asked_for_by_name_are_measured_in_one_go(monkeypatch, tmp_path, capsys):
    _stand_in(monkeypatch)
    asked = []

    def tables(*, quick: bool, only: Sequence[str] = ()) -> list[Table]:
        asked.append(list(only))
        return [Table("Trained", [], [], reached={"copy": Figure(99.5, 5.0)})]

    monkeypatch.setattr(sys.modules["stand_in_engine"], "tables", tables)
    monkeypatch.setitem(command.BENCHMARKS, "accuracy", ("stand_in_engine", "…"))
    assert command.main(["copy", "vit-mnist, soon", "--results", str(tmp_path / "R.md")]) == 0
    assert asked == [["copy", "vit-mnist, soon"]]
    said = capsys.readouterr().out.partition("### Summary")[2]
    assert "| copy | 99.5 % in 5.0 CPU-s |" in said
    assert "not measured" not in said
