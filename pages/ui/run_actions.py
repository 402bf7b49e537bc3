"""What a person does with runs: start, open, go on, train further, rename, delete, bring back.

Each either leads on or says in a sentence why it cannot. What changes a run asks ``_owned`` for it,
at the moment when it happens: a button that is not shown may be pressed all the same.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO

import streamlit as st

from pages.i18n import _, ngettext
from pages.ui import page_table, publisher, runs_access, show, state, visitors, way_back
from pages.ui.typed import escape
from tfm_core.config import Experiment
from tfm_core.data.own import sets
from tfm_core.inspect.symptoms.symptom import Cure
from tfm_core.presets import PRESETS
from tfm_core.runs import own_sets, settings
from tfm_core.runs.auth import Visitor
from tfm_core.runs.process.requests import RequestKind
from tfm_core.runs.record.labels import MAX_NAME
from tfm_core.runs.run import Run

MAX_UNPACKED = 200_000_000
"""Bytes that a zip may unpack to which a visitor brings."""


@dataclass(frozen=True, slots=True)
class Start:
    """A run to begin: what it does, where, and how it is called; without a name, as its task.

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
    """Train a preset in a new run and go where it can be watched."""
    preset = PRESETS[name]
    run = begin(preset.experiment, name=preset.label, preset=name)
    if run is not None:
        watch(run)


def begin(
    experiment: Experiment, *, name: str | None = None, preset: str | None = None, threads: int = 1
) -> Run | None:
    """Create a run on the chosen device and queue it; None, said in a sentence, if refused."""
    try:
        return enter_line(Start(experiment, state.device(), name, preset, threads))
    except (ValueError, OSError) as error:
        show.problem(error)
        return None


def enter_line(start: Start, *, group: str | None = None) -> Run:
    """Create a run and let it wait for its turn. Raises ValueError and OSError; nothing is left."""
    who, store = actor(), runs_access.store()
    with _one_more():
        run = store.create(
            start.experiment,
            device=start.device,
            threads=start.threads,
            name=start.name,
            preset=start.preset,
            owner=who.owner,
            owner_name=who.name,
            group=group,
            cure_of=start.cure_of,
            is_suspect=start.is_suspect,
        )
        try:
            gone = runs_access.queue().submit(run)
        except ValueError:
            store.discard(run)
            raise
    _say_what_went(gone)
    return run


def bring(file: BinaryIO, progress: Callable[[float, str], None]) -> Run:
    """Make a run of a zip that was taken along; it is the visitor's, and waits for nothing.

    progress: hears the share that is done and what is being done. Raises ValueError and OSError;
    nothing is left then.
    """
    from tfm_core.export.take_in import take_in

    visitor, queue, store = actor(), runs_access.queue(), runs_access.store()
    known = {own.id for own in own_sets.listed(store, visitor)}
    run = take_in(
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
        _say_what_went(queue.admit(run))
    except ValueError:
        if (set_id := sets.set_of(run.experiment.task)) not in known:
            own_sets.discard(set_id, store=store, visitor=visitor)
        store.discard(run)
        raise
    return run


def actor() -> Visitor:
    """Return whose a new run will be. Raises OnlyWatches for who may start none."""
    who = visitors.visitor()
    who.check_acts()
    return who


def check_in_hand() -> int:
    """Return how many runs the visitor has in hand, who may have one more.

    Raises OnlyWatches and LimitReached.
    """
    n = runs_access.store().n_active(actor().owner)
    runs_access.queue().limits.check_session(n)
    return n


@contextlib.contextmanager
def _one_more() -> Iterator[None]:
    """Have the visitor's runs counted and one more begun as one step; it may be refused.

    Raises OnlyWatches, and StudentError, such as LimitReached.
    """
    with runs_access.queue().one_at_a_time():
        check_in_hand()
        yield


def _owned(run_id: str) -> Run:
    """Return a run to change. Raises NotYours for another visitor's, RunNotFound for none."""
    run = runs_access.store().get(run_id)
    visitors.visitor().check(run)
    return run


def watch(run: Run) -> None:
    """Look at a run on the Train page, which leads back to this one."""
    back = way_back.from_here()
    state.set_current_run(run.id)
    st.switch_page(page_table.path_of("train"), query_params={"run": run.id, **back})


def ask(run: Run, kind: RequestKind) -> bool:
    """Ask the worker of a run for something; False, said in a sentence, if that cannot be."""
    try:
        _owned(run.id).request(kind)
    except (ValueError, OSError) as error:
        _say_briefly(error)
        return False
    return True


def go_on(run: Run, device: str | None = None) -> None:
    """Go on with a run that ended early, on the page where one is; on its device unless told."""
    try:
        _resume(run, device)
    except (ValueError, OSError) as error:
        _say_briefly(error)


def resume(run: Run) -> None:
    """Go on with a run that ended early, and watch it."""
    try:
        _resume(run)
    except (ValueError, OSError) as error:
        show.problem(error)
        return
    watch(run)


def train_further(
    run: Run, steps: int, *, device: str | None = None, stays_low: bool = False
) -> Run | None:
    """Train a copy of anybody's run up to ``steps`` steps; None, said in a sentence, if refused.

    device: the run's unless told. stays_low: the learning rate does not rise again.
    """
    try:
        who = actor()
        with _one_more():
            copy = runs_access.store().fork(
                run.id,
                steps=steps,
                device=device,
                stays_low=stays_low,
                owner=who.owner,
                owner_name=who.name,
            )
            gone = _resumed(copy)
        _say_what_went(gone)
    except (ValueError, OSError) as error:
        show.problem(error)
        return None
    return copy


def name_and_label(run_id: str, *, name: str, group: str, tags: str, note: str) -> None:
    """Give a run its name and all its labels. Raises ValueError and OSError; then it has the old.

    name: as it is shown; one that stays is not taken for the run's own.
    """
    run = _owned(run_id)
    given = None if name == run.meta.name else name
    runs_access.store().label(run.id, name=given, tags=[tags], note=note, group=group)


def cure(run: Run, chosen: Cure) -> Run | None:
    """Begin what would help a run, as a run of its own; None, said in a sentence, if refused.

    A sick run of this visitor that still trains is stopped, and keeps what it has.
    """
    try:
        cured = _cured(run, chosen)
    except (ValueError, OSError) as error:
        state.notify(_(error))
        return None
    if run.status.is_active and not visitors.watches(run):
        ask(run, "stop")
    return cured


def _cured(run: Run, chosen: Cure) -> Run:
    who, meta, store = actor(), run.meta, runs_access.store()
    name = _("{name}, cured", name=meta.name)[:MAX_NAME]
    if chosen.begins == "beginning":
        device = state.device() if meta.recorded else meta.device
        start = Start(chosen.experiment, device, name, None, meta.threads, cure_of=run.id)
        return enter_line(start, group=run.labels.group)
    with _one_more():
        copy = store.cure(
            run.id,
            chosen.experiment,
            begins=chosen.begins,
            name=name,
            owner=who.owner,
            owner_name=who.name,
        )
        gone = _resumed(copy)
    _say_what_went(gone)
    return copy


def _resumed(copy: Run) -> int:
    """Let a copy go on; return how many runs went for it. Raises ValueError; it is gone then."""
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
    """Give runs tags, a note or a group; None leaves one as it is. adds_tags: to those they have.

    Where one is refused, it is said, and those behind it are left as they are.
    """
    try:
        for run_id in run_ids:
            run = _owned(run_id)
            known = run.labels.tags if adds_tags else ()
            given = None if tags is None else [*known, *tags]
            runs_access.store().label(run.id, tags=given, note=note, group=group)
    except (ValueError, OSError) as error:
        state.notify(_(error))


def delete(run: Run) -> None:
    """Put a run into the trash; the Runs page then offers to bring it back."""
    try:
        runs_access.store().delete(_owned(run.id).id, by=visitors.visitor().owner)
    except (ValueError, OSError) as error:
        state.notify(_(error))
        return
    if runs_access.store().kept_until(run.id) is None:
        state.notify(_("The disk is full, so the run was deleted permanently."))
    else:
        state.note_gone(run.id)


def undelete(run_id: str) -> None:
    """Bring back a run that this visitor has deleted; one that waited then waits again."""
    store = runs_access.store()
    waited = store.waited(run_id)
    try:
        run = store.undelete(run_id, by=actor().owner)
        if waited:
            _resume(run)
    except (ValueError, OSError) as error:
        state.notify(_(error))


def publish(run: Run) -> None:
    """Give a run an address at which anybody may watch it. Raises ValueError and OSError."""
    publisher.publish(_owned(run.id).id)


def unpublish(run: Run) -> None:
    """Take that address away, with all that lies there. Raises ValueError."""
    publisher.unpublish(_owned(run.id).id)


def empty_trash() -> None:
    """Remove all deleted runs for good; on a public server the host alone may."""
    if visitors.visitor().is_admin:
        runs_access.store().empty_trash()


def _resume(run: Run, device: str | None = None) -> None:
    owned = _owned(run.id)
    with _one_more():
        gone = runs_access.queue().resume(owned, device)
    _say_what_went(gone)


def _say_what_went(n: int) -> None:
    """Say how many runs were deleted to keep within what the host lets the runs take."""
    if n:
        words = ngettext(
            "The oldest finished run was deleted to make room for this one.",
            "To make room for this run, the {n} oldest ones that were over were deleted.",
            n,
        )
        state.notify(words.format(n=n))


def _say_briefly(error: Exception) -> None:
    st.toast(escape(_(error)), icon=":material/error:")
