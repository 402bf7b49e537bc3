"""Data sets of visitors: their owners, size, removal and undo.

A set lies in a folder among the runs (``data.user_data.sets``). A visitor who adds an existing set
becomes one more owner; the set goes into the trash with its last owner.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from tfm_core.data.user_data import sets
from tfm_core.data.user_data.sets import ID, Prepared, SetMissing, UserSet
from tfm_core.runs.auth import NotYours, Visitor
from tfm_core.runs.disk import quota, trash
from tfm_core.runs.disk.failures import os_errors_as_sentences
from tfm_core.runs.disk.locks import limit_lock
from tfm_core.runs.disk.quota import Bounds
from tfm_core.runs.queue.limits import LimitReached
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunStore
from tfm_core.sentences import StudentError, in_bytes
from tfm_core.settings import Settings

MAX_PER_VISITOR = 20
"""Sets that one visitor of a public server may keep."""


@os_errors_as_sentences()
def keep(
    prepared: Prepared,
    *,
    store: RunStore,
    visitor: Visitor | None,
    settings: Settings,
    on_evicted: Callable[[int], None] | None = None,
) -> UserSet:
    """Write a set for a visitor, None on the command line. Raises ValueError, in a sentence.

    on_evicted: called with how many old runs were deleted to stay within the host's limit.
    """
    root = store.root / sets.FOLDER
    if visitor is not None:
        visitor.check_acts()
    owner, gone = None if visitor is None else visitor.owner, 0
    with limit_lock(store.root, "sets"):
        if visitor is not None and not (root / sets.id_of(prepared)).is_dir():
            _check_room(root, prepared.n_bytes, visitor, settings)
            bounds = Bounds(disk=settings.max_disk)
            gone = quota.evict(store.root, store.kept(), bounds, keeps="", more=prepared.n_bytes)
        own = sets.write(prepared, owner=owner, parent=root)
    if gone and on_evicted is not None:
        on_evicted(gone)
    return own


@os_errors_as_sentences()
def remove(set_id: str, *, store: RunStore, visitor: Visitor) -> None:
    """Move a set to the trash, or leave it to its other owners. Raises ValueError.

    ``undo`` restores it for a day. Runs that learned from it keep its vocabulary, so they still
    open, read and write. On a public server only active runs of its owners prevent the removal; a
    waiting copy of another visitor reports that its set is gone.
    """
    root = store.root / sets.FOLDER
    own = _existing(root, set_id)
    _check_owner(own, visitor)
    if not visitor.may_change_all and sets.give_up(own, visitor.owner):
        return
    active = [
        run
        for run in runs_by_set(store).get(set_id, [])
        if run.status.is_active
        and (not visitor.is_public or visitor.began(run) or run.meta.owner in own.owners)
    ]
    if active:
        raise StudentError(
            "The run “{run}” uses “{name}”. Stop it first.", run=active[0].meta.name, name=own.name
        )
    trash.put(root, set_id)


def keep_vocabulary(run: Run) -> None:
    """Keep the vocabulary of the set that a run learns from in the run's folder. Never raises."""
    if run.problem is not None or not (set_id := sets.added_of(run.experiment.task)):
        return
    with contextlib.suppress(StudentError, OSError), sets.below(run.folder.parent):
        sets.write_vocabulary(run.folder, set_id, sets.vocabulary_of(sets.find(set_id)))


def discard(set_id: str, *, store: RunStore, visitor: Visitor) -> None:
    """Take back at once what ``keep`` did a moment before; nothing is left. Raises OSError."""
    folder = store.root / sets.FOLDER / set_id
    if not ID.fullmatch(set_id) or not folder.is_dir():
        return
    own = sets.opened(folder)
    if visitor.owner in own.owners and not sets.give_up(own, visitor.owner):
        trash.remove(folder)


def runs_by_set(store: RunStore, visitor: Visitor | None = None) -> dict[str, list[Run]]:
    """Return the runs that learn or learned from each set, newest first, by its id. Never raises.

    visitor: who may change the runs; without one they are those of all.
    """
    found: dict[str, list[Run]] = defaultdict(list)
    for run in sorted(store.kept(), key=lambda run: run.meta.created, reverse=True):
        if run.problem is None and (visitor is None or visitor.may_change(run)):
            found[sets.set_of(run.experiment.task)].append(run)
    return found


@os_errors_as_sentences()
def undo(set_id: str, *, store: RunStore, visitor: Visitor) -> UserSet:
    """Restore a set from the trash. Raises ValueError, in a sentence."""
    root = store.root / sets.FOLDER
    _check_owner(_existing(root / trash.FOLDER, set_id), visitor)
    if not trash.restore(root, set_id):
        raise SetMissing("There is no removed data set {set_id} to restore.", set_id=set_id)
    return sets.opened(root / set_id)


def listed(store: RunStore, visitor: Visitor) -> list[UserSet]:
    """Return the sets that a visitor may see, newest first: on a public server, their own."""
    return [own for own in sets.listed(store.root / sets.FOLDER) if _may_use(own, visitor)]


def removed(store: RunStore, visitor: Visitor) -> list[UserSet]:
    """Return the sets that a visitor may restore, the last removed first."""
    found = trash.deleted(store.root / sets.FOLDER)[::-1]
    return [
        own for deleted_set in found if _may_use(own := sets.opened(deleted_set.folder), visitor)
    ]


def _check_room(root: Path, n_bytes: int, visitor: Visitor, settings: Settings) -> None:
    every = sets.listed(root)
    if settings.only_shows:
        raise LimitReached("This server accepts no data of your own.")
    most = settings.limits.max_own_data
    taken = sum(own.n_bytes for own in every)
    if most is not None and taken + n_bytes > most:
        raise LimitReached(
            "This data set needs {n_bytes}; {taken} of {most} are in use. Remove some first.",
            most=in_bytes(most),
            taken=in_bytes(taken),
            n_bytes=in_bytes(n_bytes),
        )
    n_mine = sum(visitor.owner in own.owners for own in every)
    if not visitor.may_change_all and n_mine >= MAX_PER_VISITOR:
        raise LimitReached(
            "You have reached the limit of {n} data sets. Remove one first.", n=n_mine
        )


def _existing(root: Path, set_id: str) -> UserSet:
    if not ID.fullmatch(set_id) or not (root / set_id).is_dir():
        raise SetMissing("There is no data set {set_id}.", set_id=set_id[:40])
    return sets.opened(root / set_id)


def _check_owner(own: UserSet, visitor: Visitor) -> None:
    visitor.check_acts()
    if not _may_use(own, visitor):
        raise NotYours("This data set belongs to another visitor.")


def _may_use(own: UserSet, visitor: Visitor) -> bool:
    return visitor.may_change_all or visitor.owner in own.owners
