"""Actions on runs: start, open, steer, resume, train further, label, delete.

Each succeeds or reports why it cannot. An action that changes a run checks its owner first: a
button that is not shown can still be pressed.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO
from urllib.parse import parse_qsl, urlencode

import streamlit as st

from pages.i18n import N_, _, ngettext
from pages.ui import show, state
from pages.ui.accounts import visitors
from pages.ui.address import view_link
from pages.ui.lessons import open_lesson
from pages.ui.navigation import page_table
from pages.ui.runs import runs_access
from pages.ui.typed import escape
from tfm_core import settings
from tfm_core.config import Experiment
from tfm_core.data.own import sets
from tfm_core.inspect.symptoms.cures import Cure
from tfm_core.presets import PRESETS
from tfm_core.runs import own_sets
from tfm_core.runs.auth import Visitor
from tfm_core.runs.process.requests import RequestKind
from tfm_core.runs.record.labels import MAX_NAME
from tfm_core.runs.run import Run
from tfm_core.runs.status import State, Status

MAX_UNPACKED = 200_000_000
"""Bytes that a zip may unpack to which a visitor brings."""


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
    try:
        return enqueue(Start(experiment, state.device(), name, preset, threads))
    except (ValueError, OSError) as error:
        show.problem(error)
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
    _notify_deleted(gone)
    return run


def import_run(file: BinaryIO, progress: Callable[[float, str], None]) -> Run:
    """Import a run from a zip, as the visitor's own.

    progress: hears the share that is done and what is being done. Raises ValueError and OSError;
    nothing is left then.
    """
    from tfm_core.export.importer import import_run

    visitor, queue, store = acting_visitor(), runs_access.queue(), runs_access.store()
    existing = {own.id for own in own_sets.listed(store, visitor)}
    run = import_run(
        file,
        store,
        owner=visitor.owner,
        owner_name=visitor.name,
        limits=queue.limits,
        most=MAX_UNPACKED,
        progress=progress,
        keep=partial(own_sets.keep, store=store, visitor=visitor, settings=settings.read()),
    )
    try:
        _notify_deleted(queue.admit(run))
    except ValueError:
        if (set_id := sets.set_of(run.experiment.task)) not in existing:
            own_sets.discard(set_id, store=store, visitor=visitor)
        store.discard(run)
        raise
    return run


def open_folder(path: Path, progress: Callable[[float, str], None]) -> Run:
    """Open a Hugging Face folder as the visitor's own run; say what is opened of it.

    progress: see ``import_run``. Raises ValueError and OSError; nothing is left then.
    """
    from tfm_core.export.opening import open_run, size_of

    words = size_of(path)
    run = _admitted(lambda store, **who: open_run(path, store, progress=progress, **who))
    st.toast(escape(_(words)), icon=":material/info:", duration="long")
    return run


def open_look(name: str, content: memoryview) -> Run:
    """Open a look file as the visitor's own run; raises and leaves as ``open_folder``."""
    from tfm_core.looking.file import load
    from tfm_core.looking.opening import check_room, open_look
    from tfm_core.looking.seen import Seen

    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "look.safetensors"
        path.write_bytes(content)
        look = load(path, Seen, called=name, check=check_room)
    stem = Path(name).stem[:MAX_NAME]
    return _admitted(lambda store, **who: open_look(look, store, name=stem, **who))


def _admitted(open_in: Callable[..., Run]) -> Run:
    """Make a run of the visitor's; take it back where there is no room for it."""
    visitor, queue, store = acting_visitor(), runs_access.queue(), runs_access.store()
    run = open_in(store, owner=visitor.owner, owner_name=visitor.name)
    try:
        _notify_deleted(queue.admit(run))
    except ValueError:
        store.discard(run)
        raise
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
    try:
        owned = _owned(run.id)
        open_lesson.check_request(owned, kind)
        owned.request(kind)
    except (ValueError, OSError) as error:
        _toast(error)
        return False
    return True


def resume_here(run: Run, device: str | None = None) -> None:
    """Resume a run without leaving the page, on its own device unless given."""
    try:
        _resume(run, device)
    except (ValueError, OSError) as error:
        _toast(error)


def resume(run: Run) -> None:
    """Resume a run and open it."""
    try:
        _resume(run)
    except (ValueError, OSError) as error:
        show.problem(error)
        return
    watch(run)


def train_further(
    run: Run, steps: int, *, device: str | None = None, stays_low: bool = False
) -> Run | None:
    """Train a copy of a run up to ``steps``; show why and return None if refused.

    device: the run's by default. stays_low: the learning rate does not rise again.
    """
    try:
        who = acting_visitor()
        with _counted_start():
            copy = runs_access.store().fork(
                run.id,
                steps=steps,
                device=device,
                stays_low=stays_low,
                owner=who.owner,
                owner_name=who.name,
            )
            gone = _resume_copy(copy)
        _notify_deleted(gone)
    except (ValueError, OSError) as error:
        show.problem(error)
        return None
    return copy


def name_and_label(run_id: str, *, name: str, group: str, tags: str, note: str) -> None:
    """Set a run's name and labels. Raises ValueError and OSError, and then changes nothing.

    name: as it is shown; one that stays is not taken for the run's own.
    """
    run = _owned(run_id)
    given = None if name == run.meta.name else name
    runs_access.store().label(run.id, name=given, tags=[tags], note=note, group=group)


def cure(run: Run, chosen: Cure) -> Run | None:
    """Start a fix of a run as a new run; show why and return None if refused.

    A sick run of this visitor that still trains is stopped, and keeps what it has.
    """
    try:
        cured = _start_cure(run, chosen)
    except (ValueError, OSError) as error:
        state.notify(_(error))
        return None
    if run.status.is_active and not visitors.watches(run):
        ask(run, "stop")
    return cured


def _start_cure(run: Run, chosen: Cure) -> Run:
    who, meta, store = acting_visitor(), run.meta, runs_access.store()
    name = _("{name}, cured", name=meta.name)[:MAX_NAME]
    if chosen.begins == "beginning":
        device = state.device() if meta.recorded else meta.device
        fresh = Start(chosen.experiment, device, name, None, meta.threads, cure_of=run.id)
        return enqueue(fresh, group=run.labels.group)
    with _counted_start():
        copy = store.cure(
            run.id,
            chosen.experiment,
            begins=chosen.begins,
            name=name,
            owner=who.owner,
            owner_name=who.name,
        )
        gone = _resume_copy(copy)
    _notify_deleted(gone)
    return copy


def branch(run: Run, name: str) -> Run | None:
    """Train a copy of a run without its last turn; show why and return None if refused."""
    try:
        who = acting_visitor()
        with _counted_start():
            copy = runs_access.store().branch(
                run.id, name=name[:MAX_NAME], owner=who.owner, owner_name=who.name
            )
            gone = _resume_copy(copy)
        _notify_deleted(gone)
    except (ValueError, OSError) as error:
        state.notify(_(error))
        return None
    return copy


def _resume_copy(copy: Run) -> int:
    """Resume a copy; return how many runs were deleted for it. Raises ValueError."""
    try:
        return runs_access.queue().resume(copy)
    except ValueError:
        runs_access.store().discard(copy)
        raise


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
    try:
        for run_id in run_ids:
            run = _owned(run_id)
            old_tags = run.labels.tags if adds_tags else ()
            new_tags = None if tags is None else [*old_tags, *tags]
            runs_access.store().label(run.id, tags=new_tags, note=note, group=group)
    except (ValueError, OSError) as error:
        state.notify(_(error))


def delete(run: Run) -> None:
    """Move a run to the trash; the Runs page offers to restore it."""
    try:
        runs_access.store().delete(_owned(run.id).id, by=visitors.visitor().owner)
    except (ValueError, OSError) as error:
        state.notify(_(error))
        return
    if runs_access.store().restorable_until(run.id) is None:
        state.notify(_("The disk is full: the run was deleted for good."))
    else:
        state.note_gone(run.id)


def undelete(run_id: str) -> None:
    """Restore a deleted run; queue it again if it was queued."""
    store = runs_access.store()
    waited = store.waited(run_id)
    try:
        run = store.undelete(run_id, by=acting_visitor().owner)
        if waited:
            _resume(run)
    except (ValueError, OSError) as error:
        state.notify(_(error))


def empty_trash() -> None:
    """Delete the trash for good; on a public server only the host may."""
    if visitors.visitor().may_change_all:
        runs_access.store().empty_trash()


def _resume(run: Run, device: str | None = None) -> None:
    owned = _owned(run.id)
    with _counted_start():
        gone = runs_access.queue().resume(owned, device)
    _notify_deleted(gone)


def _notify_deleted(n: int) -> None:
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
    name, _mark, query = (origin or "").partition("?")
    if origin is None or name not in page_table.PAGES:
        return
    origins[run_id] = origin
    facts = page_table.PAGES[name]
    st.page_link(
        facts.path,
        label=_("Back to {page}", page=_(facts.title)),
        icon=":material/arrow_back:",
        query_params={**dict(parse_qsl(query)), state.RUN_QUERY: run_id},
        width="content",
    )
