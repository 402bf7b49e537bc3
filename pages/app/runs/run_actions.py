"""Actions on runs: start, steer, resume, train further, label, delete.

Each succeeds or reports why it cannot. An action that changes a run checks its owner first: a
button that is not shown can still be pressed.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from urllib.parse import parse_qsl, urlencode

import streamlit as st

from pages.app import show, state
from pages.app.accounts import visitors
from pages.app.address import old_addresses, view_link
from pages.app.lessons import open_lesson
from pages.app.navigation import page_table
from pages.app.runs import runs_access
from pages.app.typed import escape
from pages.i18n import N_, _, ngettext
from tfm_core.choices.config import Experiment
from tfm_core.choices.presets import PRESETS
from tfm_core.runs.auth import Visitor
from tfm_core.runs.process.requests import RequestKind
from tfm_core.runs.record.labels import MAX_NAME
from tfm_core.runs.run import Run
from tfm_core.runs.status import State, Status
from tfm_core.studies.study import Arm, changed


@dataclass(frozen=True, slots=True)
class Start:
    """A run to start. Without a name it is called like its task.

    cure_of: the sick run that it cures. is_suspect: its settings are hidden (``suspects``).
    """

    experiment: Experiment
    device: str
    name: str | None = None
    preset: str | None = None
    threads: int = 1
    cure_of: str | None = None
    is_suspect: bool = False


def start_preset(name: str) -> None:
    """Train a preset in a new run, and open it."""
    preset = PRESETS[name]
    run = start(preset.experiment, name=_(preset.label), preset=name)
    if run is not None:
        watch(run)


def start(
    experiment: Experiment, *, name: str | None = None, preset: str | None = None, threads: int = 1
) -> Run | None:
    """Create and queue a run on the chosen device; show why and return None if refused."""
    with _refusals(show.problem):
        return enqueue(Start(experiment, state.device(), name, preset, threads))
    return None


def enqueue(start: Start, *, group: str | None = None) -> Run:
    """Create and queue a run. Raises ValueError and OSError, and then leaves nothing.

    What the open lesson locks is checked here, whatever the controls sent.
    """
    who, store = acting_visitor(), runs_access.store()
    lesson = open_lesson.check(start.experiment)
    with _counted_start():
        run = store.create(
            start.experiment,
            device=start.device,
            threads=start.threads,
            name=start.name or _(start.experiment.task.facts.label),
            preset=start.preset,
            owner=who.owner,
            owner_name=who.name,
            group=group,
            cure_of=start.cure_of,
            is_suspect=start.is_suspect,
            lesson=lesson,
        )
        try:
            open_lesson.note_run(run)
            gone = runs_access.queue().submit(run)
        except ValueError:
            store.discard(run)
            raise
    notify_deleted(gone)
    return run


def acting_visitor() -> Visitor:
    """Return the owner of a new run. Raises OnlyWatches if the visitor may start none."""
    who = visitors.visitor()
    who.check_acts()
    return who


def n_active_allowed() -> int:
    """Return how many active runs the visitor has, if one more is allowed.

    Raises OnlyWatches and LimitReached.
    """
    n = runs_access.store().n_active(acting_visitor().owner)
    runs_access.queue().limits.check_session(n)
    return n


@contextlib.contextmanager
def _refusals(report: Callable[[ValueError | OSError], None]) -> Iterator[None]:
    """Report why an action was refused, and go on behind the block."""
    try:
        yield
    except (ValueError, OSError) as error:
        report(error)


def _notify(error: ValueError | OSError) -> None:
    state.notify(_(error))


@contextlib.contextmanager
def _counted_start() -> Iterator[None]:
    """Count the visitor's runs and start one more, as one step.

    Raises OnlyWatches, and StudentError, such as LimitReached.
    """
    with runs_access.queue().one_at_a_time():
        n_active_allowed()
        yield


def _owned(run_id: str) -> Run:
    """Return a run to change. Raises NotYours and RunNotFound."""
    run = runs_access.store().get(run_id)
    visitors.visitor().check(run)
    return run


def watch(run: Run) -> None:
    """Open a run on Train, which links back to this page."""
    back = way_back()
    state.set_current_run(run.id)
    st.switch_page(page_table.path_of("train"), query_params={"run": run.id, **back})


def ask(run: Run, kind: str) -> bool:
    """Send a request (``Run.request``) to a run's worker; show why and return False if refused."""
    with _refusals(_toast):
        owned = _owned(run.id)
        open_lesson.check_request(owned, kind)
        owned.request(kind)
        return True
    return False


def resume_here(run: Run, device: str | None = None) -> None:
    """Resume a run without leaving the page, on its own device unless given."""
    with _refusals(_toast):
        _resume(run, device)


def resume(run: Run) -> None:
    """Resume a run and open it."""
    with _refusals(show.problem):
        _resume(run)
        watch(run)


def train_further(
    run: Run, steps: int, *, device: str | None = None, stays_low: bool = False
) -> Run | None:
    """Train a copy of a run up to ``steps``; show why and return None if refused.

    device: the run's by default. stays_low: the learning rate does not rise again.
    """
    fork = partial(runs_access.store().fork, run.id, steps=steps, device=device)
    with _refusals(show.problem):
        return _resumed_copy(partial(fork, stays_low=stays_low))
    return None


def name_and_label(run_id: str, *, name: str, group: str, tags: str, note: str) -> None:
    """Set a run's name and labels. Raises ValueError and OSError, and then changes nothing.

    name: as it is shown; one that stays is not taken for the run's own.
    """
    run = _owned(run_id)
    given = None if name == run.meta.name else name
    runs_access.store().label(run.id, name=given, tags=[tags], note=note, group=group)


def cure(run: Run, chosen: Arm) -> Run | None:
    """Start a fix of a run as a new run; say why and return None if refused.

    A sick run of this visitor that still trains is stopped, and keeps what it has.
    """
    meta = run.meta
    cured: Run | None = None
    experiment = changed(run.experiment, chosen.changes)
    name = _("{name}, cured", name=meta.name)[:MAX_NAME]
    with _refusals(_notify):
        if chosen.begins == "beginning":
            device = state.device() if meta.recorded else meta.device
            fresh = Start(experiment, device, name, None, meta.threads, cure_of=run.id)
            cured = enqueue(fresh, group=run.labels.group)
        else:
            copy = partial(runs_access.store().cure, run.id, experiment, name=name)
            cured = _resumed_copy(partial(copy, begins=chosen.begins))
    if cured is not None and run.status.is_active and not visitors.watches(run):
        ask(run, "stop")
    return cured


def branch(run: Run, name: str) -> Run | None:
    """Train a copy of a run without its last turn; say why and return None if refused."""
    with _refusals(_notify):
        return _resumed_copy(partial(runs_access.store().branch, run.id, name=name[:MAX_NAME]))
    return None


def _resumed_copy(make: Callable[..., Run]) -> Run:
    """Make a copy of a run for the visitor, and resume it. Raises ValueError and OSError."""
    who = acting_visitor()
    with _counted_start():
        copy = make(owner=who.owner, owner_name=who.name)
        try:
            gone = runs_access.queue().resume(copy)
        except ValueError:
            runs_access.store().discard(copy)
            raise
    notify_deleted(gone)
    return copy


def label(
    run_ids: Iterable[str],
    *,
    tags: Sequence[str] | None = None,
    note: str | None = None,
    group: str | None = None,
    adds_tags: bool = False,
) -> None:
    """Set tags, note or group of runs; None keeps one. adds_tags: keep existing tags.

    If one is refused, show why and leave the rest unchanged.
    """
    with _refusals(_notify):
        for run_id in run_ids:
            run = _owned(run_id)
            old_tags = run.labels.tags if adds_tags else ()
            new_tags = None if tags is None else [*old_tags, *tags]
            runs_access.store().label(run.id, tags=new_tags, note=note, group=group)


def delete(run: Run) -> None:
    """Move a run to the trash; the Runs page offers to restore it."""
    store = runs_access.store()
    with _refusals(_notify):
        store.delete(_owned(run.id).id, by=visitors.visitor().owner)
        if store.restorable_until(run.id) is None:
            state.notify(_("The disk is full: the run was deleted for good."))
        else:
            state.note_gone(run.id)


def undelete(run_id: str) -> None:
    """Restore a deleted run; queue it again if it was queued."""
    store = runs_access.store()
    waited = store.waited(run_id)
    with _refusals(_notify):
        run = store.undelete(run_id, by=acting_visitor().owner)
        if waited:
            _resume(run)


def empty_trash() -> None:
    """Delete the trash for good; on a public server only the host may."""
    if visitors.visitor().may_change_all:
        runs_access.store().empty_trash()


def _resume(run: Run, device: str | None = None) -> None:
    owned = _owned(run.id)
    with _counted_start():
        gone = runs_access.queue().resume(owned, device)
    notify_deleted(gone)


def notify_deleted(n: int) -> None:
    """Notify of runs that were deleted to stay within the disk quota."""
    if n:
        message = ngettext(
            "The oldest finished run was deleted to make room.",
            "The {n} oldest finished runs were deleted to make room.",
            n,
            n=n,
        )
        state.notify(message)


def _toast(error: Exception) -> None:
    st.toast(escape(_(error)), icon=":material/error:")


ANSWER_WITHIN = 0.3
"""Seconds that a press waits for the worker's answer before the page is drawn again."""


@dataclass(frozen=True, slots=True)
class RequestButton:
    """A request to a worker as a button, and the states in which it makes sense."""

    kind: RequestKind
    label: str
    icon: str
    help: str
    states: frozenset[State]


REQUEST_BUTTONS = (
    RequestButton(
        "pause", N_("Pause"), ":material/pause:", N_("Nothing is lost."), frozenset({"running"})
    ),
    RequestButton(
        "resume",
        N_("Resume"),
        ":material/play_arrow:",
        N_("Continues the training."),
        frozenset({"paused"}),
    ),
    RequestButton(
        "stop",
        N_("Stop"),
        ":material/stop:",
        N_("You can resume it later."),
        frozenset({"starting", "running", "paused"}),
    ),
    RequestButton(
        "stop",
        N_("Cancel"),
        ":material/close:",
        N_("Leaves the queue. You can resume later."),
        frozenset({"queued"}),
    ),
)


def possible_requests(status: Status) -> list[RequestButton]:
    return [button for button in REQUEST_BUTTONS if status.state in button.states]


def ask_and_wait(run: Run, kind: RequestKind, times: int = 1) -> None:
    """Send a request, and wait for the answer about as long as a step takes.

    So the next rerun shows it; a slower answer is shown by a later look.
    """
    before = run.status
    if not all(ask(run, kind) for _press in range(times)):
        return
    end = time.monotonic() + ANSWER_WITHIN
    while time.monotonic() < end:
        now = run.status
        if now.state != before.state or (before.state == "paused" and now.step != before.step):
            return
        time.sleep(0.02)


BACK_QUERY = "back"
"""What the Train page's address calls the page to go back to, with that page's own address."""

_BACK = "way-back"
_NO_WAY_BACK = {"home", "train", "runs"}  # pages that usually lead to Train


def way_back() -> dict[str, str]:
    """Return the part of Train's address that names this page."""
    facts = page_table.at(state.page())
    if facts.name in _NO_WAY_BACK:
        return {}
    own = {
        name: text
        for name, text in view_link.query().items()
        if name not in (state.RUN_QUERY, BACK_QUERY)
    }
    return {BACK_QUERY: f"{facts.name}?{urlencode(own)}" if own else facts.name}


def forget_way_back() -> None:
    """Remove the way back from the address."""
    view_link.put({BACK_QUERY: None})


def link_back(run_id: str) -> None:
    """Draw a link back to the page that started a run, if one did."""
    origins: dict[str, str] = st.session_state.setdefault(_BACK, {})
    origin = view_link.query().get(BACK_QUERY)
    if origin is None and run_id in origins:  # the reader was on another page meanwhile
        origin = origins[run_id]
        view_link.put({BACK_QUERY: origin})
    name, _mark, text = (origin or "").partition("?")
    name, query = old_addresses.current(name, dict(parse_qsl(text)))
    if origin is None or name not in page_table.PAGES:
        return
    origins[run_id] = origin
    facts = page_table.PAGES[name]
    st.page_link(
        facts.path,
        label=_("Back to {page}", page=_(facts.title)),
        icon=":material/arrow_back:",
        query_params={**query, state.RUN_QUERY: run_id},
        width="content",
    )
