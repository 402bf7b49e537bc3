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
from pages.app.address import view
from pages.app.lessons import open_lesson
from pages.app.navigation import page_table
from pages.app.runs import runs_access
from pages.app.settings import drafts
from pages.app.typed import escape
from pages.i18n import _, ngettext
from tfm_core.choices.config import Experiment
from tfm_core.choices.presets import PRESETS
from tfm_core.runs.auth import Visitor
from tfm_core.runs.labels import MAX_NAME
from tfm_core.runs.process.requests import RequestKind
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunNotFound
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
    experiment: Experiment,
    *,
    name: str | None = None,
    preset: str | None = None,
    threads: int = 1,
    group: str | None = None,
) -> Run | None:
    """Create and queue a run on the chosen device; show why and return None if refused."""
    with _refusals(show.problem):
        return enqueue(Start(experiment, state.device(), name, preset, threads), group=group)
    return None


def enqueue(start: Start, *, group: str | None = None) -> Run:
    """Create and queue a run. Raises ValueError and OSError, and then leaves nothing.

    What the open lesson locks is checked here, whatever the controls sent.
    """
    lesson = open_lesson.check(start.experiment)
    create = partial(
        runs_access.store().create,
        start.experiment,
        device=start.device,
        threads=start.threads,
        name=start.name or _(start.experiment.task.facts.label),
        preset=start.preset,
        group=group,
        cure_of=start.cure_of,
        is_suspect=start.is_suspect,
        lesson=lesson,
    )

    def submit(run: Run) -> int:
        open_lesson.note_run(run)
        return runs_access.queue().submit(run)

    with _counted_start():
        return admitted(create, submit)


def admitted(
    make: Callable[..., Run],
    admit: Callable[[Run], int],
    discard: Callable[[Run], None] | None = None,
) -> Run:
    """Make a run of the visitor's, and take it back where the queue refuses it.

    admit: the queue's; returns how many runs it deleted to make room. Raises ValueError and
    OSError.
    """
    who = acting_visitor()
    run = make(owner=who.owner, owner_name=who.name)
    try:
        n_deleted = admit(run)
    except ValueError:
        (discard or runs_access.store().discard)(run)
        raise
    notify_deleted(n_deleted)
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
    acting_visitor()  # who only watches touches nothing, not even the lock
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
    if page_table.at(state.page()).name == "train":
        st.rerun()
    st.switch_page(page_table.path_of("train"), query_params={"run": run.id, **back})


_REPEATED = "repeated-run"


def configure(experiment: Experiment | None = None, *, beside: Run | None = None) -> None:
    """Open the settings of a new run on Train: those given, else the ones there.

    beside: a run with these settings, to be compared with the new one.
    """
    if experiment is not None:
        state.set_draft(experiment.model_dump())
    st.session_state[_REPEATED] = None if beside is None else beside.id
    state.set_current_run(None)
    if page_table.at(state.page()).name == "train":
        st.rerun()
    st.switch_page(page_table.path_of("train"))


def repeated() -> Run | None:
    """Return the run that the draft repeats with a change, as long as it began as that run."""
    run_id = st.session_state.get(_REPEATED)
    try:
        run = None if run_id is None else runs_access.store().get(run_id)
    except RunNotFound:
        return None
    if run is None or run.problem is not None:
        return None
    begun = state.current_draft().baseline
    return None if drafts.differences(run.experiment.model_dump(), begun) else run


def ask(run: Run, kind: str) -> bool:
    """Send a request (``Run.request``) to a run's worker; show why and return False if refused."""
    with _refusals(_toast):
        owned = _owned(run.id)
        open_lesson.check_request(owned, kind)
        owned.request(kind)
        return True
    return False


def resume(run: Run, device: str | None = None, *, opens: bool = False) -> None:
    """Resume a run, on its own device unless given. opens: on Train, too."""
    with _refusals(show.problem if opens else _toast):
        _resume(run, device)
        if opens:
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


def cure(run: Run, chosen: Arm) -> Run | None:
    """Start a fix of a run as a new run; say why and return None if refused.

    A sick run of this visitor that still trains is stopped, and keeps what it has.
    """
    meta = run.meta
    cured: Run | None = None
    experiment = changed(run.experiment, chosen.changes)
    name = _("{name}, fixed", name=meta.name)[:MAX_NAME]
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
    with _counted_start():
        return admitted(make, runs_access.queue().resume)


def label(
    run_ids: Iterable[str],
    *,
    name: str | None = None,
    tags: Sequence[str] | None = None,
    note: str | None = None,
    group: str | None = None,
    adds_tags: bool = False,
) -> None:
    """Set name, tags, note or group of runs; None keeps one. adds_tags: keep existing tags.

    Raises ValueError and OSError at the first run that is refused, and leaves the rest unchanged.
    """
    for run_id in run_ids:
        run = _owned(run_id)
        old_tags = run.labels.tags if adds_tags else ()
        new_tags = None if tags is None else [*old_tags, *tags]
        new_name = None if name == run.meta.name else name  # else it would be taken for its own
        runs_access.store().label(run.id, name=new_name, tags=new_tags, note=note, group=group)


def join_group(run_ids: Iterable[str], group: str) -> None:
    """Put runs into a group; show why where one is refused."""
    with _refusals(_notify):
        label(run_ids, group=group)


def delete(run: Run) -> None:
    """Move a run to the trash; the Runs page offers to restore it."""
    store = runs_access.store()
    with _refusals(_notify):
        store.delete(_owned(run.id).id, by=visitors.visitor().owner)
        if store.restorable_until(run.id) is None:
            state.notify(_("The disk is full, so the run was deleted for good."))
        else:
            state.remember_deleted(run.id)


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
        for name, text in view.query().items()
        if name not in (state.RUN_QUERY, BACK_QUERY)
    }
    return {BACK_QUERY: f"{facts.name}?{urlencode(own)}" if own else facts.name}


def forget_way_back() -> None:
    """Remove the way back from the address."""
    view.put_query({BACK_QUERY: None})


def link_back(run_id: str) -> None:
    """Draw a link back to the page that started a run, if one did."""
    origins: dict[str, str] = st.session_state.setdefault(_BACK, {})
    origin = view.query().get(BACK_QUERY)
    if origin is None and run_id in origins:  # the reader was on another page meanwhile
        origin = origins[run_id]
        view.put_query({BACK_QUERY: origin})
    name, _mark, text = (origin or "").partition("?")
    name, query = page_table.current_address(name, dict(parse_qsl(text)))
    if origin is None or name not in page_table.PAGES:
        return
    origins[run_id] = origin
    show.link(
        name,
        _("Back to {page}", page=_(page_table.PAGES[name].title)),
        {**query, state.RUN_QUERY: run_id},
        icon=":material/arrow_back:",
    )
