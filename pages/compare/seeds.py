"""Runs that differ in their seed alone: their band, and what of a difference is the seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import streamlit as st

from pages.compare.link import BANDS
from pages.compare.names import Drawn
from pages.i18n import _
from pages.ui import comparison, runs_access, seed_button, starts, view_link
from pages.ui.typed import escape
from tfm_core.inspect.compare.curves import METRICS, AxisName, figures, track
from tfm_core.inspect.compare.names import names
from tfm_core.inspect.compare.seeds import configurations
from tfm_core.inspect.compare.spread import (
    Measure,
    band,
    corrected,
    paired,
    sentence,
    spread,
)
from tfm_core.plots.comparison import SpreadBand, slots
from tfm_core.plots.stage import smooth
from tfm_core.sentences import N_

WITH_BANDS: tuple[AxisName, ...] = ("step", "epoch", "examples")
"""Along time no two runs are measured at the same moment, so there is no mean to draw."""
_KINDS = (
    (Measure(N_("whole sequences right on the test set")), "test_sequences"),
    (Measure(N_("accuracy on the test set")), "test_accuracy"),
    (Measure(N_("whole sequences right in validation")), "sequences"),
    (Measure(N_("accuracy in validation")), "accuracy"),
)
_MAX_PAIRS = 3
_SLOTS = "compare-group-slots"


@dataclass(frozen=True, slots=True)
class Group:
    """One configuration with several seeds: its runs, and the place that its look follows."""

    name: str
    slot: int
    members: tuple[Drawn, ...]


def groups(shown: Sequence[Drawn]) -> list[Group]:
    """Return the configurations among the runs; one with a single seed is a group of one."""
    by_id = {one.run.id: one for one in shown}
    found = configurations([one.run for one in shown])
    called = names([each.experiment.replace(seed=0) for each in found])
    firsts = [next(iter(each.runs.values())).id for each in found]
    st.session_state[_SLOTS] = places = slots(firsts, st.session_state.get(_SLOTS, {}))
    made = []
    for each, name, first in zip(found, called, firsts, strict=True):
        members = tuple(by_id[run.id] for run in each.runs.values())
        is_alone = len(members) == 1
        made.append(Group(members[0].name if is_alone else _(name), places[first], members))
    return made


def looks(shown: Sequence[Drawn], found: Sequence[Group]) -> list[Drawn]:
    """Return the runs as they are drawn: with bands, all of a configuration look alike.

    A run that has another's seed, too, is drawn by itself.
    """
    view_link.receive(BANDS)
    if not has_bands(found):
        return list(shown)
    places = {one.run.id: group.slot for group in found for one in group.members}
    n = len(found)
    return [replace(one, slot=places.get(one.run.id, n + one.slot)) for one in shown]


def has_seeds(found: Sequence[Group]) -> bool:
    """Return whether there is anything to take a mean of."""
    return any(len(group.members) > 1 for group in found)


def has_bands(found: Sequence[Group]) -> bool:
    """Return whether there is something to take a mean of, and the visitor wants it drawn."""
    return has_seeds(found) and bool(st.session_state[BANDS.key])


def bands(found: Sequence[Group], metric: str, axis: AxisName, window: int) -> list[SpreadBand]:
    """Return the mean and the spread of each configuration with several seeds."""
    drawn = []
    for group in found:
        if len(group.members) < 2:
            continue
        tracks = []
        for one in group.members:
            kept = track(runs_access.curves(one.run), one.run.experiment, metric, axis)
            if kept is not None:
                is_noisy = METRICS[metric].series == "steps"
                values = smooth(kept.values, window) if is_noisy else kept.values
                tracks.append((kept.x, values))
        one_band = band(tracks)
        if len(one_band.steps):
            words = comparison.mean_words(group.name, one_band.n_curves, len(group.members))
            drawn.append(
                SpreadBand(
                    words, group.slot, one_band.steps, one_band.mean, one_band.low, one_band.high
                )
            )
    return drawn


def one_of_each(found: Sequence[Group]) -> list[Drawn]:
    """Return one run of each configuration, with a seed that all have where there is one.

    Another seed draws other data, so only runs of one seed have the same examples.
    """
    by_seed = [{one.run.experiment.seed: one for one in group.members} for group in found]
    shared = set.intersection(*map(set, by_seed)) if by_seed else set()
    return [one[min(shared)] if shared else next(iter(one.values())) for one in by_seed]


def part(found: Sequence[Group]) -> None:
    """Say each configuration's figure with its spread, and whether differences stand out."""
    _offer(found)
    if not has_seeds(found):
        return
    measure, values = _values(found)
    for group, by_seed in zip(found, values, strict=True):
        if len(group.members) > 1:
            said = _(spread(by_seed, measure).sentence)
            st.markdown(f"**{escape(group.name)}**, {_(measure.name)}: {escape(said)}")
    (first, *others), (seeds, *rest) = found, values
    tested = corrected([paired(seeds, by_seed) for by_seed in rest[:_MAX_PAIRS]])
    for other, result in zip(others, tested, strict=False):
        words = sentence(result, measure, first.name, other.name)
        st.markdown(f":material/balance: {escape(_(words))}")


def _offer(found: Sequence[Group]) -> None:
    """Say what the seeds say, or cannot, beside the press that trains what is missing of them."""
    words = _("A single seed proves little; with several, the difference can be tested.")
    if has_seeds(found):
        words = _(
            "What of a difference is the seed; all get the same ones, to be compared in pairs."
        )
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(words, width="content")
        seed_button.draw(
            lambda: [starts.of_run(group.members[0].run) for group in found], key="compare"
        )


def _values(found: Sequence[Group]) -> tuple[Measure, list[dict[int, float | None]]]:
    """Return the figure that tells most and that all runs have, by seed: tested, or validated."""
    kept = [
        {one.run.experiment.seed: figures(runs_access.curves(one.run)) for one in group.members}
        for group in found
    ]
    every = [each for group in kept for each in group.values()]
    measure, column = next(
        (kind for kind in _KINDS if all(getattr(each, kind[1]) is not None for each in every)),
        _KINDS[-1],
    )
    return measure, [
        {seed: getattr(each, column) for seed, each in group.items()} for group in kept
    ]
