"""Actions on sweeps: start, stop, resume, change, delete.

Each checks the owner at that moment, and either succeeds or shows why not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import suppress

from pages.app import show, state
from pages.app.accounts import visitors
from pages.app.lessons import open_lesson
from pages.app.runs import runs_access
from pages.i18n import N_, _
from tfm_core import settings
from tfm_core.runs.auth import NotYours
from tfm_core.sentences import StudentError
from tfm_core.sweeps.driver import go_on, stop
from tfm_core.sweeps.plan import Plan, State, SweepDamaged
from tfm_core.sweeps.store import Sweep, SweepStore

STATES: dict[State, str] = {
    "active": N_("running"),
    "stopping": N_("stopping"),
    "stopped": N_("stopped"),
    "finished": N_("finished"),
}

MAX_OF_A_VISITOR = 24
"""Runs per sweep on a public server; each visitor may have one running sweep."""


def sweep_store() -> SweepStore:
    return SweepStore(runs_access.store().root)


def listed() -> list[Sweep]:
    """Return the visitor's sweeps, or all where that is allowed."""
    sweeps = sweep_store().list()
    return [sweep for sweep in sweeps if not settings.read().public or _is_own(sweep)]


def may_change(plan: Plan) -> bool:
    who = visitors.visitor()
    return who.may_change_all or (not who.only_watches and plan.owner == who.owner)


def start(plan: Plan) -> Sweep | None:
    """Start a sweep; show why and return None if refused."""
    who = visitors.visitor()
    plan = dataclasses.replace(plan, owner=who.owner, owner_name=who.name, device=state.device())
    try:
        who.check_acts()
        driver = runs_access.sweeps()
        plan.check()
        plan = dataclasses.replace(plan, lesson=lesson_of(plan))
        _check_visitor(plan)
        driver.queue.limits.check_session(runs_access.store().n_active(who.owner))
        sweep = driver.sweeps.create(plan)
    except (ValueError, OSError) as error:
        show.problem(error)
        return None
    driver.wake()
    return sweep


def lesson_of(plan: Plan) -> str | None:
    """Return the lesson that a new sweep belongs to. Raises StudentError for what it locks."""
    return open_lesson.check(plan.base, [dimension.path for dimension in plan.space])


def halt(sweep: Sweep) -> None:
    _change(sweep, stop)


def resume(sweep: Sweep) -> None:
    _change(sweep, go_on)


def change(sweep: Sweep, edit: Callable[[Plan], Plan]) -> None:
    """Change the plan of a sweep; a finished one goes on."""

    def edited(plan: Plan) -> Plan:
        changed = edit(plan)
        _check_visitor(changed)
        open_lesson.check_settings(changed.lesson, [dimension.path for dimension in changed.space])
        return go_on(changed) if plan.state == "finished" else changed

    _change(sweep, edited)


def _change(sweep: Sweep, edit: Callable[[Plan], Plan]) -> None:
    if _succeeds(sweep, lambda: sweep.change(edit)):
        runs_access.sweeps().wake()


def delete(sweep: Sweep) -> bool:
    """Move a sweep to the trash, but not its runs; return whether that succeeded."""
    return _succeeds(sweep, lambda: sweep_store().delete(sweep.id))


def deleted() -> list[Sweep]:
    who = visitors.visitor()
    return [sweep for sweep in sweep_store().deleted() if who.may_change_all or _is_own(sweep)]


def undelete(sweep: Sweep) -> bool:
    return _succeeds(sweep, lambda: sweep_store().undelete(sweep.id))


def _succeeds(sweep: Sweep, act: Callable[[], object]) -> bool:
    """Act as the owner of a sweep; return whether that succeeded, else show why not."""
    try:
        visitors.visitor().check_acts()
        try:
            is_allowed = may_change(sweep.plan())
        except SweepDamaged:
            if not visitors.visitor().may_change_all:
                raise
            is_allowed = True
        if not is_allowed:
            raise NotYours("This sweep belongs to another visitor.")
        act()
    except (ValueError, OSError) as error:
        state.notify(_(error))
        return False
    return True


def _check_visitor(plan: Plan) -> None:
    """Raise StudentError if a visitor's sweep is too large, or not the only one."""
    who = visitors.visitor()
    if who.may_change_all:
        return
    if plan.max_runs is None or plan.max_runs > MAX_OF_A_VISITOR:
        raise StudentError("At most {most} runs per sweep on this server.", most=MAX_OF_A_VISITOR)
    for other in sweep_store().list():
        with suppress(SweepDamaged):
            running = other.plan()
            is_active = running.state in ("active", "stopping")
            if is_active and _is_own(other) and running.created != plan.created:
                raise StudentError("You already have a running sweep. Stop it or wait.")


def _is_own(sweep: Sweep) -> bool:
    try:
        return sweep.plan().owner == visitors.visitor().owner
    except SweepDamaged:
        return visitors.visitor().may_change_all
