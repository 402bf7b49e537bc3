"""Runs that differ only in their seed: bands, and tests of differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import streamlit as st

from pages.compare.choice import StyledRun
from pages.compare.link import BANDS
from pages.i18n import _
from pages.ui.address import view_link
from pages.ui.runs import comparison, runs_access
from pages.ui.typed import escape
from tfm_core.inspect.compare.curves import METRICS, AxisName, figures, track
from tfm_core.inspect.compare.names import names
from tfm_core.inspect.compare.seeds import configurations
from tfm_core.inspect.compare.spread import Measure, band, corrected, paired, sentence, spread
from tfm_core.plots.training.comparison import SpreadBand, slots
from tfm_core.plots.training.stage import smooth
from tfm_core.sentences import N_

WITH_BANDS: tuple[AxisName, ...] = ("step", "epoch", "examples")
"""Axes with common points. Along time there are none, so no mean."""
_KINDS = (
    (Measure(N_("whole sequences right on the test set")), "test_sequences"),
    (Measure(N_("accuracy on the test set")), "test_accuracy"),
    (Measure(N_("whole sequences right in validation")), "sequences"),
    (Measure(N_("accuracy in validation")), "accuracy"),
)
_MAX_PAIRS = 3
_SLOTS = "compare-group-slots"


@dataclass(frozen=True, slots=True)
class SeedGroup:
    """One configuration, its runs by seed, and its style slot."""

    name: str
    slot: int
    members: tuple[StyledRun, ...]


def groups(shown: Sequence[StyledRun]) -> list[SeedGroup]:
    """Return the configurations among the runs, each with its seeds."""
    by_id = {entry.run.id: entry for entry in shown}
    same_settings = configurations([entry.run for entry in shown])
    first_runs = [next(iter(runs.values())) for runs in same_settings]
    labels = names([run.experiment.replace(seed=0) for run in first_runs])
    firsts = [run.id for run in first_runs]
    st.session_state[_SLOTS] = places = slots(firsts, st.session_state.get(_SLOTS, {}))
    made = []
    for runs, name, first in zip(same_settings, labels, firsts, strict=True):
        members = tuple(by_id[run.id] for run in runs.values())
        is_alone = len(members) == 1
        made.append(SeedGroup(members[0].name if is_alone else _(name), places[first], members))
    return made


def styled(shown: Sequence[StyledRun], grouped: Sequence[SeedGroup]) -> list[StyledRun]:
    """Return the runs as drawn: with bands, runs of one configuration share a style."""
    view_link.receive(BANDS)
    if not has_bands(grouped):
        return list(shown)
    places = {entry.run.id: group.slot for group in grouped for entry in group.members}
    n = len(grouped)
    return [replace(entry, slot=places.get(entry.run.id, n + entry.slot)) for entry in shown]


def has_seeds(grouped: Sequence[SeedGroup]) -> bool:
    return any(len(group.members) > 1 for group in grouped)


def has_bands(grouped: Sequence[SeedGroup]) -> bool:
    return has_seeds(grouped) and bool(st.session_state[BANDS.key])


def bands(
    grouped: Sequence[SeedGroup], metric: str, axis: AxisName, window: int
) -> list[SpreadBand]:
    made = []
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
        one_band = band(tracks)
        if len(one_band.steps):
            words = comparison.mean_label(group.name, one_band.n_curves, len(group.members))
            made.append(
                SpreadBand(
                    words, group.slot, one_band.steps, one_band.mean, one_band.low, one_band.high
                )
            )
    return made


def one_of_each(grouped: Sequence[SeedGroup]) -> list[StyledRun]:
    """Return one run per configuration, with a common seed if there is one.

    Only runs with the same seed have the same examples.
    """
    by_seed = [{entry.run.experiment.seed: entry for entry in group.members} for group in grouped]
    shared = set.intersection(*map(set, by_seed)) if by_seed else set()
    return [runs[min(shared)] if shared else next(iter(runs.values())) for runs in by_seed]


def tests(grouped: Sequence[SeedGroup]) -> None:
    _offer(grouped)
    if not has_seeds(grouped):
        return
    measure, values = _values(grouped)
    for group, by_seed in zip(grouped, values, strict=True):
        if len(group.members) > 1:
            text = _(spread(by_seed, measure).sentence)
            st.markdown(f"**{escape(group.name)}**, {_(measure.name)}: {escape(text)}")
    (first, *others), (seeds, *rest) = grouped, values
    tested = corrected([paired(seeds, by_seed) for by_seed in rest[:_MAX_PAIRS]])
    if len(rest) > _MAX_PAIRS:
        st.caption(
            _(
                "Not compared: {names}.",
                names=escape(", ".join(one.name for one in others[_MAX_PAIRS:])),
            )
        )
    for other, result in zip(others, tested, strict=False):
        words = sentence(result, measure, first.name, other.name)
        st.markdown(f":material/balance: {escape(_(words))}")


def _offer(grouped: Sequence[SeedGroup]) -> None:
    words = _("One seed proves little; train more.")
    if has_seeds(grouped):
        words = _("Runs are compared in pairs of equal seeds.")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(words, width="content")
        comparison.seed_button(
            lambda: [comparison.start_like(group.members[0].run) for group in grouped],
            key="compare",
        )


def _values(grouped: Sequence[SeedGroup]) -> tuple[Measure, list[dict[int, float | None]]]:
    """Return the best measure that all runs have, and its values by seed."""
    figures_by_seed = [
        {
            entry.run.experiment.seed: figures(runs_access.curves(entry.run))
            for entry in group.members
        }
        for group in grouped
    ]
    every = [each for group in figures_by_seed for each in group.values()]
    measure, column = next(
        (kind for kind in _KINDS if all(each[kind[1]] is not None for each in every)),
        _KINDS[-1],
    )
    return measure, [
        {seed: each[column] for seed, each in group.items()} for group in figures_by_seed
    ]
