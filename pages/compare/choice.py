"""Which runs are compared and their names; by default two recorded ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from pages.compare.link import MAX_RUNS, RUNS
from pages.i18n import _, ngettext
from pages.ui.accounts import visitors
from pages.ui.address import view_link
from pages.ui.runs import run_words, runs_access
from pages.ui.typed import escape
from tfm_core.inspect.compare.names import change, names
from tfm_core.plots.training.comparison import slots
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunNotFound

RECORDED = ("recorded-one-head", "recorded-many-heads")
"""The default: they differ only in their number of heads."""
_FIRST_OWN = 3
_OFFERED = 4
_MAX_GROUPS = 12
_WRAPPED = 8  # more names scroll in one line
_SHORT = 5  # letters of an id
_SLOTS = "compare-slots"


def chosen() -> list[Run]:
    """Draw the choice and return its readable runs in order."""
    there = {run.id: run for run in visitors.at_hand()}
    is_cold = RUNS.key not in st.session_state
    problem = view_link.receive(RUNS)
    ids: list[str] = st.session_state[RUNS.key]
    missing = _missing(ids, there)
    if missing:
        st.session_state[RUNS.key] = ids = [run_id for run_id in ids if run_id not in missing]
    if is_cold and not ids:
        st.session_state[RUNS.key] = _first(list(there.values()))
    labels = _unique_names(list(there.values()))
    with st.container(horizontal=True, vertical_alignment="top", gap="small"):
        picked = st.multiselect(
            _("Runs to compare"),
            list(there),
            format_func=lambda run_id: labels[run_id],
            key=RUNS.key,
            max_selections=MAX_RUNS,
            placeholder=_("Choose runs by name"),
            label_visibility="collapsed",
            persist_state="session",
            wrap=len(st.session_state[RUNS.key]) <= _WRAPPED,
        )
        _groups(list(there.values()), picked)
    with st.container():
        for sentence in (problem, *missing.values()):
            if sentence:
                st.warning(escape(sentence), icon=":material/link_off:")
    view_link.say(RUNS, tuple(picked))
    runs = [there[run_id] for run_id in picked]
    for run in runs:
        if run.problem is not None:
            name, why = escape(run.meta.name), escape(_(run.problem))
            words = _("**{name}** cannot be compared. {why}", name=name, why=why)
            st.warning(words, icon=":material/broken_image:")
    whole = [run for run in runs if run.problem is None]
    _help(whole, list(there.values()))
    return whole


def _missing(ids: Sequence[str], there: dict[str, Run]) -> dict[str, str]:
    """Return an error per missing run; runs opened by the link are added to ``there``."""
    missing = {}
    for run_id in ids:
        if run_id in there:
            continue
        try:
            there[run_id] = runs_access.open_run(run_id)
        except RunNotFound as error:
            missing[run_id] = _(error)
    return missing


def _first(runs: Sequence[Run]) -> list[str]:
    """Return the newest own runs of one task, or else the recorded pair."""
    own = [run for run in runs if not run.meta.recorded and run.problem is None]
    alike = [run for run in own if _learns(run) == _learns(own[0])][:_FIRST_OWN]
    ids = {run.id for run in runs}
    if len(alike) > 1:
        return [run.id for run in alike]
    return [run_id for run_id in RECORDED if run_id in ids]


def _learns(run: Run) -> tuple[str, str]:
    return run.experiment.task.name, run.experiment.model.family


def _unique_names(runs: Sequence[Run]) -> dict[str, str]:
    """Return a unique name per run: the browser identifies options by it.

    Names are stable: the oldest run of a name has name and seed, later ones also their difference.
    """
    names: dict[str, str] = {}
    oldest: dict[str, Run] = {}
    for run in sorted(runs, key=lambda run: run.meta.created):
        name = run_words.name(run)
        if not run.meta.recorded and run.problem is None:
            first = oldest.setdefault(name, run).experiment
            what = change(first, run.experiment.replace(seed=first.seed))
            name = _(
                "{name} · seed {seed}",
                name=f"{name} · {_(what)}" if what else name,
                seed=run.experiment.seed,
            )
        names[run.id] = f"{name} · {run.id[:_SHORT]}" if name in names.values() else name
    return names


def _groups(runs: Sequence[Run], picked: Sequence[str]) -> None:
    groups: dict[str, list[str]] = defaultdict(list)
    for run in runs:
        if run.problem is None and run.labels.group:
            groups[run.labels.group].append(run.id)
    offered = {name: ids for name, ids in groups.items() if not set(ids) <= set(picked)}
    if not offered:
        return
    with st.popover(_("Add a group"), icon=":material/folder:", key="compare-groups"):
        for number, (name, ids) in enumerate(list(offered.items())[:_MAX_GROUPS]):
            n = len(ids)
            together = list(dict.fromkeys([*picked, *ids]))
            st.button(
                ngettext("Add {name}: {n} run", "Add {name}: {n} runs", n, name=escape(name), n=n),
                key=f"compare-group-{number}",
                icon=":material/add:",
                type="tertiary",
                disabled=len(together) > MAX_RUNS,
                help=_("At most {most} runs at once.", most=MAX_RUNS)
                if len(together) > MAX_RUNS
                else None,
                on_click=_choose,
                args=(together,),
            )
        if len(offered) > _MAX_GROUPS:
            st.caption(_("{n} more groups are on Runs.", n=len(offered) - _MAX_GROUPS))


def _help(runs: Sequence[Run], there: Sequence[Run]) -> None:
    if len(runs) > 1:
        return
    offered: Mapping[str, list[str]]
    if runs:
        words = _("Add another run to compare.")
        ids = {run.id for run in runs}
        alike = [run for run in there if run.problem is None and run.id not in ids]
        alike = [run for run in alike if run.experiment.task.name == runs[0].experiment.task.name]
        offered = {run_words.name(run): [runs[0].id, run.id] for run in alike[:_OFFERED]}
    else:
        words = _("Choose runs, or open two recorded ones.")
        there_ids = {run.id for run in there}
        ready = [run_id for run_id in RECORDED if run_id in there_ids]
        offered = {_("Compare one head with four"): ready} if ready else {}
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(words, width="content")
        for number, (name, ids_of) in enumerate(offered.items()):
            st.button(
                escape(name),
                key=f"compare-offer-{number}",
                icon=":material/add:",
                on_click=_choose,
                args=(ids_of,),
            )


def _choose(ids: Sequence[str]) -> None:
    st.session_state[RUNS.key] = list(ids)


@dataclass(frozen=True, slots=True)
class StyledRun:
    """A run with its name on this page and its style slot."""

    run: Run
    name: str
    slot: int


def styled(runs: Sequence[Run]) -> list[StyledRun]:
    places = slots([run.id for run in runs], st.session_state.get(_SLOTS, {}))
    st.session_state[_SLOTS] = places
    by_difference = names([run.experiment for run in runs])
    return [
        StyledRun(run, run.labels.name or _(name), places[run.id])
        for run, name in zip(runs, by_difference, strict=True)
    ]
