"""Several runs begun by one press: the seeds of a configuration, and whatever is to be compared.

They go through the same line as every other run, as many as the limits let through, in one group;
one sentence says what came of it, and the way leads on to where they are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import streamlit as st

from pages.i18n import _, ngettext
from pages.ui import comparison, page_table, run_actions, runs_access, state, visitors
from pages.ui.run_actions import Start
from tfm_core.inspect.compare import seeds
from tfm_core.runs.queue import resources, tickets
from tfm_core.runs.record.labels import MAX_GROUP
from tfm_core.runs.run import Run

SEEDS = "seeds-number"
"""Where the session keeps how many seeds one press asks for."""


def of_run(run: Run) -> Start:
    """Return how a run was begun, to begin another like it; a recorded one, on one's own device."""
    meta = run.meta
    device = state.device() if meta.recorded else meta.device
    return Start(run.experiment, device, meta.name, meta.preset, meta.threads)


def begin(starts: Sequence[Start], *, group: str | None = None) -> list[Run]:
    """Let runs wait for their turn, as many as may, in the order given; return those that do.

    A notice says how many wait. Raises ValueError and OSError where none may; then none began.
    """
    begun: list[Run] = []
    most = _room()
    for start in starts:
        runs_access.queue().limits.check(start.experiment, n_queued=0)
        resources.check(start.experiment, start.device)
    for start in starts[:most]:
        try:
            begun.append(run_actions.enter_line(start, group=group))
        except (ValueError, OSError) as error:
            if not begun:
                raise
            state.notify(f"{_n_of(len(begun), len(starts))} {_(error)}")
            return begun
    state.notify(_said(len(begun), len(starts)), passes=len(begun) == len(starts))
    return begun


def _room() -> int:
    """Return how many runs this visitor may let wait now, at least 1.

    Raises OnlyWatches and LimitReached.
    """
    in_hand = run_actions.check_in_hand()
    limits = runs_access.queue().limits
    n_waiting = len(tickets.waiting(runs_access.store().root))
    # where the line is full, the first one is refused with the sentence for that
    return max(1, min(limits.max_per_session - in_hand, limits.max_queued - n_waiting))


def _said(n_begun: int, n: int) -> str:
    if n_begun == n:
        return ngettext(
            "{n} run was queued and starts when a place is free.",
            "{n} runs were queued and start when places are free.",
            n,
            n=n,
        )
    return _(
        "{some} You have reached the limit of runs here. Press again when some have finished.",
        some=_n_of(n_begun, n),
    )


def _n_of(n_begun: int, n: int) -> str:
    return _("{begun} of {n} runs were queued.", begun=n_begun, n=n)


def n_seeds() -> int:
    """Return how many seeds one press asks for."""
    return min(max(int(st.session_state.get(SEEDS) or seeds.USUAL), seeds.MIN), seeds.MAX)


def train_seeds(starts: Sequence[Start]) -> None:
    """Train what is missing of the chosen number of seeds of each start, and go on to compare all.

    Runs that are there already join their group, where they are this visitor's and have none.
    Raises ValueError and OSError, where nothing could be begun.
    """
    listed = visitors.listed()
    n = n_seeds()
    plans = seeds.plans([start.experiment for start in starts], listed, n)
    there = [run for plan in plans for run in plan.there.values()]
    missing = [
        Start(experiment, start.device, start.name, start.preset, start.threads)
        for start, plan in zip(starts, plans, strict=True)
        for experiment in plan.missing
    ]
    begun: list[Run] = []
    if missing:
        group = next((run.labels.group for run in there if run.labels.group), None)
        group = group or _new_group(starts, n, listed)
        begun = begin(missing, group=group)
        _join(there, group)
    else:
        state.notify(_("All {n} seeds exist already.", n=n))
    compare([run.id for run in (*there, *begun)])


def _new_group(starts: Sequence[Start], n: int, listed: Iterable[Run]) -> str:
    """Return a name for a group that no run is in yet."""
    first = starts[0]
    name = first.name or _(first.experiment.task.facts.label)
    ending = _(": {n} seeds", n=n)
    if len(starts) > 1:
        ending = _(" and {m} more: {n} seeds", m=len(starts) - 1, n=n)
    known = {run.labels.group for run in listed}
    number, more = 1, ""
    while True:
        made = f"{name[: MAX_GROUP - len(ending) - len(more)]}{ending}{more}"
        if made not in known:
            return made
        number += 1
        more = f" ({number})"


def _join(runs: Iterable[Run], group: str) -> None:
    own = [
        run.id
        for run in runs
        if not run.meta.recorded and not visitors.watches(run) and run.labels.group is None
    ]
    run_actions.label(own, group=group)


def compare(run_ids: Sequence[str]) -> None:
    """Go on to where runs are compared."""
    st.switch_page(
        page_table.path_of("compare"), query_params={comparison.RUNS_QUERY: ",".join(run_ids)}
    )
