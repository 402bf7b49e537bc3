"""Runs that differ only in their seed: bands and tests of differences, a part of Compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from pages.app.runs import comparison, runs_access
from pages.app.typed import escape
from pages.i18n import N_, _
from tfm_core.inspect.conclusions import (
    Measure,
    holm_corrected,
    paired_sentence,
    paired_test,
    seed_spread,
)
from tfm_core.inspect.curves import METRICS, AxisName, figures, track
from tfm_core.inspect.differences import group_by_seed, run_names
from tfm_core.plots.training.comparison import RunLine, slots
from tfm_core.plots.training.curves import smooth
from tfm_core.runs.run import Run

WITH_BANDS: tuple[AxisName, ...] = ("step", "epoch", "examples")
"""Axes with common points; runs share no points in time, so there is no mean."""
_MEASURES = (
    (Measure(N_("whole sequences right on the test set")), "test_sequences"),
    (Measure(N_("accuracy on the test set")), "test_accuracy"),
    (Measure(N_("whole sequences right in validation")), "sequences"),
    (Measure(N_("accuracy in validation")), "accuracy"),
)
_MAX_PAIRS = 3


@dataclass(frozen=True, slots=True)
class StyledRun:
    """A run with its name on this page and its style slot."""

    run: Run
    name: str
    slot: int


@dataclass(frozen=True, slots=True)
class SeedGroup:
    """One configuration, its runs by seed, and its style slot."""

    name: str
    slot: int
    members: tuple[StyledRun, ...]


def groups(shown: Sequence[StyledRun]) -> list[SeedGroup]:
    """Return the configurations among the runs, each with its seeds."""
    by_id = {entry.run.id: entry for entry in shown}
    same_settings = group_by_seed([entry.run for entry in shown])
    first_runs = [next(iter(runs.values())) for runs in same_settings]
    labels = run_names([run.experiment.replace(seed=0) for run in first_runs])
    firsts = [run.id for run in first_runs]
    st.session_state["compare-group-slots"] = slot_of = slots(
        firsts, st.session_state.get("compare-group-slots", {})
    )
    groups = []
    for runs, name, first in zip(same_settings, labels, firsts, strict=True):
        members = tuple(by_id[run.id] for run in runs.values())
        is_alone = len(members) == 1
        groups.append(SeedGroup(members[0].name if is_alone else _(name), slot_of[first], members))
    return groups


def has_seeds(grouped: Sequence[SeedGroup]) -> bool:
    return any(len(group.members) > 1 for group in grouped)


def bands(grouped: Sequence[SeedGroup], metric: str, axis: AxisName, window: int) -> list[RunLine]:
    made: list[RunLine] = []
    for group in grouped:
        if len(group.members) < 2:
            continue
        tracks = []
        for entry in group.members:
            curve = track(runs_access.curves(entry.run), entry.run.experiment, metric, axis)
            if curve is not None:
                is_noisy = METRICS[metric].series == "steps"
                values = smooth(curve.values, window) if is_noisy else curve.values
                tracks.append((curve.x, values))
        made += comparison.mean_band(group.name, group.slot, tracks, len(group.members))
    return made


def one_of_each(grouped: Sequence[SeedGroup]) -> list[StyledRun]:
    """Return one run per configuration, with a common seed if there is one.

    Only runs with the same seed have the same examples.
    """
    by_seed = [{entry.run.experiment.seed: entry for entry in group.members} for group in grouped]
    shared = set.intersection(*map(set, by_seed)) if by_seed else set()
    return [runs[min(shared)] if shared else next(iter(runs.values())) for runs in by_seed]


def tests(grouped: Sequence[SeedGroup]) -> None:
    """Offer more seeds, and test the differences between configurations with several."""
    hint = _("One seed proves little; train more.")
    if has_seeds(grouped):
        hint = _("Runs are compared in pairs of equal seeds.")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(hint, width="content")
        comparison.seed_button(
            lambda: [comparison.start_like(group.members[0].run) for group in grouped],
            key="compare",
        )
    if not has_seeds(grouped):
        return
    measure, values = _values(grouped)
    for group, by_seed in zip(grouped, values, strict=True):
        if len(group.members) > 1:
            text = _(seed_spread(by_seed, measure).sentence)
            st.markdown(f"**{escape(group.name)}**, {_(measure.name)}: {escape(text)}")
    (first, *others), (seeds, *rest) = grouped, values
    tested = holm_corrected([paired_test(seeds, by_seed) for by_seed in rest[:_MAX_PAIRS]])
    if len(rest) > _MAX_PAIRS:
        untested = escape(", ".join(group.name for group in others[_MAX_PAIRS:]))
        st.caption(_("Not compared: {names}.", names=untested))
    for other, result in zip(others, tested, strict=False):
        result_text = paired_sentence(result, measure, first.name, other.name)
        st.markdown(f":material/balance: {escape(_(result_text))}")


def _values(grouped: Sequence[SeedGroup]) -> tuple[Measure, list[dict[int, float | None]]]:
    """Return the best measure of all runs, and its values by seed."""
    figures_by_seed = [
        {
            entry.run.experiment.seed: figures(runs_access.curves(entry.run))
            for entry in group.members
        }
        for group in grouped
    ]
    every = [results for group in figures_by_seed for results in group.values()]
    measure, column = next(
        (kind for kind in _MEASURES if all(results[kind[1]] is not None for results in every)),
        _MEASURES[-1],
    )
    return measure, [
        {seed: results[column] for seed, results in group.items()} for group in figures_by_seed
    ]
