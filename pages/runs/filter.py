"""The list of runs: filter, order, paging, and what is picked from it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st

from pages.app.accounts import visitors
from pages.app.runs import comparison, run_list, run_words, runs_access
from pages.app.typed import escape
from pages.i18n import N_, _, ngettext
from tfm_core.inspect.differences import differences, matches_search, run_names
from tfm_core.runs.disk import quota
from tfm_core.runs.run import Run
from tfm_core.runs.status import STATES, Status

PER_PAGE = 12
_MINE = "mine"
_PICKED = "runs-picked"


@dataclass(frozen=True, slots=True)
class ListedRun:
    """What the filter needs of a run, read once."""

    run: Run
    status: Status
    problem: str | None
    damage: str | None

    @classmethod
    def of(cls, run: Run) -> ListedRun:
        problem = run.problem
        return cls(run, run.status, problem, problem or run.damage)


_KINDS: dict[str, tuple[str, Callable[[ListedRun], bool]]] = {
    "active": (N_("Active"), lambda row: row.status.is_active),
    "finished": (N_("Finished"), lambda row: row.status.state == "finished"),
    "early": (N_("Stopped or failed"), lambda row: row.status.can_resume and row.problem is None),
    "recorded": (N_("Recorded"), lambda row: row.run.meta.recorded),
    "damaged": (N_("Damaged"), lambda row: row.damage is not None),
}

_ORDERS: dict[str, tuple[str, Callable[[Run], float | str | None], bool]] = {
    # label, sort key (None comes last), whether the largest comes first
    "newest": (N_("Newest first"), lambda run: None, False),
    "name": (N_("Name"), lambda run: run.meta.name.casefold(), False),
    "group": (N_("Group"), lambda run: (run.labels.group or "").casefold() or None, False),
    "task": (N_("Task and model"), lambda run: run_words.learns(run).casefold(), False),
    "result": (N_("Best result"), run_words.success, True),
    "loss": (N_("Lowest loss"), run_words.loss, False),
    "time": (N_("Longest training time"), lambda run: run.status.seconds, True),
    "steps": (N_("Most steps"), lambda run: run.status.step, True),
    "state": (N_("State"), lambda run: STATES.index(run.status.state), False),
}


def choose(runs: list[Run]) -> tuple[list[Run], int, int]:
    """Ask which runs to show; return a page of them, the index of its first, and how many match."""
    rows = [ListedRun.of(run) for run in runs]
    kinds = {name: [row for row in rows if test(row)] for name, (_label, test) in _KINDS.items()}
    who = visitors.visitor()
    if who.name is not None:
        kinds = {_MINE: [row for row in rows if who.began(row.run)], **kinds}
    present = [name for name in kinds if kinds[name]]
    groups = sorted({run.labels.group for run in runs if run.labels.group}, key=str.casefold)
    words = st.text_input(
        _("Search"),
        key="runs-words",
        type="search",
        live=True,  # after a pause in typing; a duration in words would import pandas
        placeholder=_("name, #tag, note, group, setting"),
        help=_("All words must match."),
        persist_state="session",
        label_visibility="collapsed",
        width=260,
    )
    kind = st.pills(
        _("Kind"),
        present,
        format_func=lambda name: _("Mine") if name == _MINE else _(_KINDS[name][0]),
        key="runs-kind",
        label_visibility="collapsed",
    )
    order = st.selectbox(
        _("Order"),
        list(_ORDERS),
        format_func=lambda name: _(_ORDERS[name][0]),
        key="runs-order",
        persist_state="session",
        label_visibility="collapsed",
        width=170,
    )
    group = _group(groups) if groups else None
    chosen = [row.run for row in kinds.get(kind or "", rows)]
    matching = [
        run
        for run in chosen
        if (group is None or run.labels.group == group) and (not words or matches(run, words))
    ]
    matching = ordered(matching, order)
    n_pages = -(-len(matching) // PER_PAGE)
    if n_pages < 2:
        return matching, 0, len(matching)
    if not 1 <= (st.session_state.get("runs-page") or 1) <= n_pages:
        del st.session_state["runs-page"]  # fewer matches than before
    first = ((st.session_state.get("runs-page") or 1) - 1) * PER_PAGE
    return matching[first : first + PER_PAGE], first, len(matching)


def _group(groups: list[str]) -> str | None:
    if st.session_state.get("runs-group") not in groups:
        st.session_state["runs-group"] = None
    return st.selectbox(
        _("Group"),
        groups,
        index=None,
        key="runs-group",
        persist_state="session",
        placeholder=_("All groups"),
        label_visibility="collapsed",
        width=190,
    )


def preload(run: Run) -> None:
    """Read what the list shows of a run, so that its first visitor need not wait."""
    ListedRun.of(run)
    quota.folder_size(run.folder)


def page_buttons(shown: Sequence[Run], first: int, n: int) -> None:
    """Draw the choice of a page of runs. first: the index of the first one shown; n: of all."""
    if n <= len(shown):
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.pagination(-(-n // PER_PAGE), key="runs-page")
        words = _(
            "{first} to {last} of {n} runs",
            first=f"{first + 1:,}",
            last=f"{first + len(shown):,}",
            n=f"{n:,}",
        )
        st.caption(words, width="content")


def matches(run: Run, words: str) -> bool:
    """Return whether every word appears in the run's row or settings."""
    if runs_access.is_hidden(run):  # by name only: a matching setting would reveal the bug
        return all(word in run.meta.name.casefold() for word in words.casefold().split())
    return matches_search(run, words, also=run_words.learns(run))


def ordered(runs: list[Run], order: str) -> list[Run]:
    """Return runs in an order; those without a value come last, unsorted."""
    if order == "newest":
        return list(runs)
    _label, sort_key, is_descending = _ORDERS[order]
    keyed = [
        (None if order not in ("name", "group") and run.problem else sort_key(run), run)
        for run in runs
    ]
    with_key = [(key, run) for key, run in keyed if key is not None and key == key]
    without_key = [run for key, run in keyed if key is None or key != key]
    with_key.sort(key=lambda pair: pair[0], reverse=is_descending)
    return [*(run for _key, run in with_key), *without_key]


def distinguishing_names(runs: Sequence[Run]) -> dict[str, str]:
    """Return what distinguishes runs of the same name, by id."""
    alike = defaultdict[str, list[Run]](list)
    for run in runs:
        if run.problem is None and not runs_access.is_hidden(run):
            alike[run.meta.name].append(run)
    endings: dict[str, str] = {}
    for group in alike.values():
        experiments = [run.experiment for run in group]
        if differences(experiments):
            endings |= {
                run.id: str(_(name))
                for run, name in zip(group, run_names(experiments), strict=True)
            }
    return endings


def tick_box(run: Run) -> None:
    """Draw the box that picks a run."""
    key = f"pick-{run.id}"
    st.session_state[key] = run.id in _picked()
    st.checkbox(
        _("Choose {name}", name=escape(run.meta.name)),
        key=key,
        label_visibility="collapsed",
        on_change=_take_tick,
        args=(key, run.id),
        width="content",
    )


def picked_bar(runs: Sequence[Run]) -> None:
    """Draw the buttons that compare, label or forget the picked runs."""
    picked = [run for run in runs if run.id in _picked()]
    n = len(picked)
    words = ngettext("Compare {n} run", "Compare {n} runs", n, n=n) if n else _("Compare")
    if st.button(
        words,
        key="runs-compare",
        type="primary" if n > 1 else "secondary",
        disabled=not n,
        help=None if n else _("Tick runs in the list first."),
    ):
        comparison.open_comparison([run.id for run in picked])
    if n:
        with st.container(horizontal=True, gap="small", width="content", key="run-picked"):
            st.button(
                _("Label"),
                icon=":material/sell:",
                key="runs-label",
                on_click=run_list.open_labels,
                args=([run.id for run in picked],),
            )
            st.button(
                f":gray[{_('Clear selection')}]",  # for screen readers: there is no more room
                key="picked-none",
                icon=":material/remove_done:",
                help=_("Clear selection"),
                on_click=_picked().clear,
            )


def _picked() -> dict[str, None]:
    picked: dict[str, None] = st.session_state.setdefault(_PICKED, {})
    return picked


def _take_tick(key: str, run_id: str) -> None:
    if st.session_state.get(key):
        _picked()[run_id] = None
    else:
        _picked().pop(run_id, None)
