"""A run on stage: its snapshots, curves and events, read once for all sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

from pages.app import show
from pages.app.model import answer
from pages.app.runs import run_words, runs_access
from pages.components import stage as component
from pages.i18n import _, language
from tfm_core import byte_cache
from tfm_core.choices.config.text_tasks import OwnTextTaskFacts, TextTaskFacts
from tfm_core.inspect import moments
from tfm_core.inspect import stage as stages
from tfm_core.inspect.moments import better_validation
from tfm_core.inspect.stage import Stage
from tfm_core.plots.training.curves import WINDOW, curve_lines
from tfm_core.runs.curves import Curves
from tfm_core.runs.run import Run

Level = dict[str, Any]
_ROOM = 0.1  # of a chart's height, for a line of words


def stage(
    run: Run,
    *,
    key: str,
    plays: bool = False,
) -> None:
    """Show a run on stage. Raises ValueError if its probe is damaged.

    key: one a place on a page. plays: a small one, which plays again and again. A run
    without a snapshot shows its curves alone.
    """
    chosen = f"{key}-chosen {run.id}"
    kind, example = st.session_state.get(chosen, (None, None))
    steps = tuple(run.snapshot_steps())
    name, shown = _name(run, kind, example), None
    kinds: tuple[str, ...] = ()
    n_examples = 0
    if steps:
        data, shown = _read(run, steps, kind, example)
        kinds, n_examples = data.kinds, len(data.examples)

    def choose(number: int, index: int) -> None:
        if number < max(1, len(kinds)) and index < n_examples:
            st.session_state[chosen] = (kinds[number] if kinds else None, index)

    component.stage(
        shown,
        moving(run, steps, name=name),
        key=key,
        plays=plays,
        is_glossed=answer.glosses_are_on(run.experiment),
        on_choose=choose,
        on_gloss=answer.switch_glosses,
    )


def prepare(run: Run) -> None:
    """Read what a run shows on stage ahead of time."""
    steps = tuple(run.snapshot_steps())
    if steps:
        _read(run, steps, None, None)
        moving(run, steps, name="")


def _read(
    run: Run, steps: tuple[int, ...], kind: str | None, example: int | None
) -> tuple[Stage, bytes]:
    name = _name(run, kind, example)
    return _packed(run.folder, _mark(run), steps, kind, example, name, language())


def _name(run: Run, kind: str | None, example: int | None) -> str:
    return f"{run.id} {kind} {example}"


def _mark(run: Run) -> int:
    """Return the modification time of a run's probe."""
    try:
        return (run.folder / "probe.json").stat().st_mtime_ns
    except OSError:
        return 0


@byte_cache.cached  # concurrent callers wait for one computation
def _packed(
    folder: Path,
    mark: int,
    steps: tuple[int, ...],
    kind: str | None,
    example: int | None,
    name: str,
    spoken: str,
) -> tuple[Stage, bytes]:
    stage_data = stages.read_stage(Run(folder), kind, example)
    return stage_data, component.pack(stage_data, name)


@byte_cache.cached
def _moments(folder: Path, mark: int, steps: tuple[int, ...], state: str) -> dict[int, str]:
    """Return what happened so far, read again with each snapshot and at the end."""
    return moments.moments(Run(folder), steps)


def moving(run: Run, steps: tuple[int, ...], *, name: str) -> dict[str, Any]:
    """Return what a stage shows beside its snapshots. name: of these."""
    curves, status, experiment = runs_access.curves(run), run.status, run.experiment
    scores_sequences = experiment.task.facts.answer in ("sequence", "blanks")
    better = better_validation(experiment, curves, WINDOW)
    training = experiment.training
    is_patient = training is not None and training.keeps_best
    happened = _moments(run.folder, _mark(run), steps, status.state) if steps else {}
    return component.told(
        curve_lines(curves, scores_sequences=scores_sequences, is_patient=is_patient),
        scores_sequences=scores_sequences,
        are_unseen=training is not None,
        name=name,
        marks=[
            {"quantity": quantity, "value": level["y"], "words": level["words"]}
            for quantity, levels in zip(("loss", "accuracy"), marks(run, curves), strict=True)
            for level in levels
        ],
        begins=run_words.symptom_marks(run),
        turns=run_words.turn_marks(run),
        better=None if better is None else (*better[:2], _(better[2])),
        now=int(curves.steps.last("step") or 0),
        total=int(curves.started.get("total_steps") or status.total_steps or 1),
        live=status.is_active,
        paused=status.state == "paused",
        ended=run_words.ended(run),
        moments=[(step, _(sentence)) for step, sentence in happened.items()],
    )


def marks(run: Run, curves: Curves) -> tuple[list[Level], list[Level]]:
    """Return the reference levels of loss and of accuracy, for ``reference_line``."""
    started = curves.started
    start, floor = started.get("start_loss"), started.get("floor")
    losses: list[Level] = []
    if isinstance(start, float):
        losses.append({"y": start, "words": _("guessing: {x}", x=f"{start:.2f}")})
    if isinstance(floor, int | float) and floor > 0:
        x = f"{floor:.2f}"
        words = _("lowest possible: {x}", x=x)
        # validation and test are not smoothed, and go lower
        facts, training = run.experiment.task.facts, run.experiment.training
        is_smoothed = training is not None and training.label_smoothing > 0
        if isinstance(facts, TextTaskFacts | OwnTextTaskFacts) and is_smoothed and not facts.hides:
            words = _("lowest possible with label smoothing: {x}", x=x)  # a perfect reader's is not
        # close above 0 there is no room for words below the line
        has_room = not isinstance(start, float) or floor > start * _ROOM
        losses.append({"y": float(floor), "words": words, "is_below": has_room})
    shares: list[Level] = []
    chance, ceiling = started.get("chance"), started.get("ceiling")
    if isinstance(chance, float):
        shares.append({"y": chance, "words": _("guessing: {x}", x=show.percent(chance))})
    if isinstance(ceiling, float):
        words = _("perfect reading: {x}", x=show.percent(ceiling))
        shares.append({"y": ceiling, "words": words})
    return losses, shares
