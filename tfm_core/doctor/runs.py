"""Check the runs: damaged ones, the queue, and what killed processes left behind.

Repairs are those that any server makes sooner or later. Active and claimed runs are left alone.
"""

from __future__ import annotations

from tfm_core.doctor.checks import Finding, count, some
from tfm_core.runs.disk import cleanup, ownership
from tfm_core.runs.queue import claim, tickets
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunStore

_MEND = "Do: python -m tfm_core doctor --mend"


def check_runs(store: RunStore) -> Finding:
    """Name the runs that cannot be shown, and count those that can be resumed."""
    runs = _own(store)
    damaged = [run.id for run in runs if run.problem is not None]
    ended = sum(run.status.state == "interrupted" for run in runs if run.id not in damaged)
    if damaged:
        words = f"{count(len(damaged), 'damaged run')}: {some(damaged)}."
        return Finding("runs", "warning", words, "See the page Runs.")
    words = f"{count(len(runs), 'run')}, none damaged, {ended:,} interrupted."
    return Finding("runs", "ok", words)


def check_line(store: RunStore, *, mends: bool = False) -> Finding:
    """Compare the tickets of the queue with the waiting runs."""
    waiting = tickets.waiting(store.root)
    queued = {run.id: run for run in _own(store) if run.status.state == "queued"}
    lost = [run_id for run_id in waiting if run_id not in queued and not _is_alive(store, run_id)]
    forgotten = [run_id for run_id in reversed(queued) if run_id not in waiting]  # oldest first
    if not lost and not forgotten:
        return Finding("line", "ok", f"{count(len(waiting), 'run')} in it.")
    if mends:
        return Finding("line", "ok", "Repaired.", mended=_mend_line(store, lost, forgotten))
    words = []
    if lost:
        words.append(f"{count(len(lost), 'ticket')} of runs that do not wait: {some(lost)}.")
    if forgotten:
        words.append(f"{count(len(forgotten), 'run')} without a ticket: {some(forgotten)}.")
    return Finding("line", "problem" if forgotten else "warning", " ".join(words), _MEND)


def check_claims(store: RunStore, *, mends: bool = False) -> Finding:
    """Look for claims of processes that are gone."""
    stale = [run for run in _own(store) if not run.status.is_active and claim.is_stale(run.folder)]
    if not stale:
        return Finding("claims", "ok", "None stale.")
    if mends:
        done = tuple(f"released {run.id}." for run in stale if _is_released(run))
        return Finding("claims", "ok", "None stale any more.", mended=done)
    words = f"{count(len(stale), 'run')} with a stale claim: "
    words += f"{some(run.id for run in stale)}. The next worker takes over."
    return Finding("claims", "warning", words, f"Or: {_MEND.removeprefix('Do: ')}")


def check_leftovers(store: RunStore, *, mends: bool = False) -> Finding:
    """Look for unfinished folders and files that nothing uses any more."""
    left = list(cleanup.leftovers(store.root))
    if not left:
        return Finding("leftovers", "ok", "None.")
    if mends:
        n_swept = cleanup.clean_up(store.root)
        done = (
            f"removed {count(n_swept, 'half-made file or folder', 'half-made files and folders')}"
        )
        return Finding("leftovers", "ok", "None any more.", mended=(f"{done}.",))
    names = [str(path.relative_to(store.root)) for path in left]
    words = f"{count(len(left), 'leftover')} of killed processes: {some(names)}."
    return Finding("leftovers", "warning", words, _MEND)


def _own(store: RunStore) -> list[Run]:
    """Return this server's own runs."""
    runs = [run for run in store.list() if not run.meta.recorded]
    return [run for run in runs if not ownership.is_theirs(run.folder)]


def _is_alive(store: RunStore, run_id: str) -> bool:
    """Return whether a worker has just started a run whose ticket is about to be removed."""
    return Run(store.root / run_id).status.is_alive


def _is_released(run: Run) -> bool:
    """Release a dead process's claim on a run; return whether no other process was quicker."""
    try:
        with claim.moment(run.folder):
            cleanup.clean_run(run.folder)
    except claim.RunHeld:
        return False
    return True


def _mend_line(store: RunStore, lost: list[str], forgotten: list[str]) -> tuple[str, ...]:
    done = []
    for run_id in lost:
        tickets.remove(store.root, run_id)
        if Run(store.root / run_id).status.state == "queued":  # it came back this very moment
            tickets.add(store.root, run_id)
        else:
            done.append(f"removed the ticket of {run_id}.")
    for run_id in forgotten:
        if Run(store.root / run_id).status.state == "queued":
            tickets.add(store.root, run_id)
            done.append(f"gave {run_id} a ticket.")
    return tuple(done)
