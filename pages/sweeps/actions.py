"""What a person does with sweeps: begin, stop, go on, change, delete.

Each either leads on or says in a sentence why it cannot, and asks at that moment whose it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from pages.i18n import N_, _
from pages.ui import runs_access, show, state, visitors
from tfm_core.runs import settings
from tfm_core.runs.auth import NotYours
from tfm_core.sentences import StudentError
from tfm_core.sweeps import ready
from tfm_core.sweeps.driver import go_on, stop
from tfm_core.sweeps.foreign import Brought, clean
from tfm_core.sweeps.plan import Plan, State, SweepDamaged
from tfm_core.sweeps.store import Sweep, SweepStore

STATES: dict[State, str] = {
    "active": N_("going on"),
    "stopping": N_("stopping"),
    "stopped": N_("stopped"),
    "finished": N_("finished"),
}

MAX_BROUGHT = 10
"""Studies from elsewhere that one visitor may keep, where strangers reach the server."""

MAX_OF_A_VISITOR = 24
"""Runs of one sweep, where strangers reach the server; each visitor has one that goes on."""


def there() -> SweepStore:
    """Return the sweeps beside the runs."""
    return SweepStore(runs_access.store().root)


def listed() -> list[Sweep]:
    """Return the sweeps to choose from: one's own, and others' where the host lets."""
    found = there().list()
    sees_all = settings.read().open or visitors.visitor().is_host
    return [sweep for sweep in found if sees_all or _is_ones_own(sweep)]


def may_change(plan: Plan) -> bool:
    """Return whether this visitor may stop, change or delete a sweep."""
    who = visitors.visitor()
    return who.is_admin or (not who.only_watches and plan.owner == who.owner)


def begin(plan: Plan) -> Sweep | None:
    """Begin a sweep; None, said in a sentence, if refused."""
    who = visitors.visitor()
    plan = dataclasses.replace(plan, owner=who.owner, owner_name=who.name, device=state.device())
    try:
        who.check_acts()
        driver = runs_access.sweeps()
        plan.check()
        _check_visitor(plan)
        driver.queue.limits.check_session(runs_access.store().n_active(who.owner))
        sweep = driver.sweeps.create(plan)
    except (ValueError, OSError) as error:
        show.problem(error)
        return None
    driver.wake()
    return sweep


def halt(sweep: Sweep) -> None:
    """Stop a sweep, and the runs that it has in hand."""
    _change(sweep, stop)


def resume(sweep: Sweep) -> None:
    """Go on with a sweep where it stopped."""
    _change(sweep, go_on)


def change(sweep: Sweep, edit: Callable[[Plan], Plan]) -> bool:
    """Change the plan of a sweep, and go on with it; say whether that could be."""

    def edited(plan: Plan) -> Plan:
        changed = edit(plan)
        _check_visitor(changed)
        return go_on(changed) if plan.state == "finished" else changed

    return _change(sweep, edited)


def delete(sweep: Sweep) -> bool:
    """Put a sweep into the trash; its runs stay. Say whether that could be."""
    try:
        _check_owner(sweep)
        there().delete(sweep.id)
    except (ValueError, OSError) as error:
        state.notify(_(error))
        return False
    return True


def deleted() -> list[Sweep]:
    """Return the sweeps that this visitor may bring back, that first which went last."""
    who = visitors.visitor()
    return [one for one in there().deleted() if who.is_admin or _is_ones_own(one)]


def bring_back(sweep: Sweep) -> bool:
    """Take a sweep back out of the trash. Say whether that could be."""
    try:
        _check_owner(sweep)
        there().undelete(sweep.id)
    except (ValueError, OSError) as error:
        state.notify(_(error))
        return False
    return True


def _change(sweep: Sweep, edit: Callable[[Plan], Plan]) -> bool:
    try:
        _check_owner(sweep)
        sweep.change(edit)
    except (ValueError, OSError) as error:
        state.notify(_(error))
        return False
    runs_access.sweeps().wake()
    return True


def _check_owner(sweep: Sweep) -> None:
    """Raise NotYours where the sweep is another visitor's."""
    visitors.visitor().check_acts()
    if sweep.brought() is not None and may_delete(sweep):
        return
    try:
        plan = sweep.plan()
    except SweepDamaged:
        if visitors.visitor().is_admin:
            return
        raise
    if not may_change(plan):
        raise NotYours("This is a sweep of another visitor: begin one of your own to change it.")


def _check_visitor(plan: Plan) -> None:
    """Raise StudentError where a stranger would take the whole server for long."""
    who = visitors.visitor()
    if who.is_admin:
        return
    if plan.max_runs is None or plan.max_runs > MAX_OF_A_VISITOR:
        raise StudentError(
            "A sweep can have {most} runs on this server. Your own machine has no such limit.",
            most=MAX_OF_A_VISITOR,
        )
    for other in there().list():
        if _is_ones_own(other) and _goes_on(other) and other.plan().created != plan.created:
            raise StudentError("You already have a running sweep; stop it, or wait until it ends.")


def _goes_on(sweep: Sweep) -> bool:
    try:
        return sweep.plan().state in ("active", "stopping")
    except SweepDamaged:
        return False


def bring(content: bytes, name: str) -> Sweep:
    """Keep an Optuna study from elsewhere. Raises ValueError and OSError; nothing is left then."""
    who = visitors.visitor()
    who.check_acts()
    if settings.read().only_shows:
        raise StudentError("This server only shows runs; you cannot import here.")
    n_own = sum(one.brought() is not None and _is_ones_own(one) for one in there().list())
    if not who.is_admin and n_own >= MAX_BROUGHT:
        raise StudentError(
            "You have reached the limit of {n} imported studies; delete one first.",
            n=n_own,
        )
    return there().bring(content, Brought(clean(name), ready.now(), who.owner))


def may_delete(sweep: Sweep) -> bool:
    """Return whether this visitor may delete a sweep, or a study from elsewhere."""
    who = visitors.visitor()
    return who.is_admin or (not who.only_watches and _is_ones_own(sweep))


def _is_ones_own(sweep: Sweep) -> bool:
    brought = sweep.brought()
    if brought is not None:
        return brought.owner == visitors.visitor().owner
    try:
        return sweep.plan().owner == visitors.visitor().owner
    except SweepDamaged:
        return visitors.visitor().is_admin
