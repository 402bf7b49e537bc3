"""Sweeps: a search for the best settings, and the form of a new one with its cost."""

from __future__ import annotations

import dataclasses

import streamlit as st

from pages.app import show
from pages.app.accounts import visitors
from pages.app.lessons import open_lesson
from pages.app.runs import run_time
from pages.app.typed import escape
from pages.compare.sweeps import actions, form, running
from pages.i18n import _, ngettext
from tfm_core.plots.training import sweeps as plots
from tfm_core.runs.labels import MAX_NAME
from tfm_core.sweeps import space
from tfm_core.sweeps.plan import OBJECTIVES, SEARCHES, Plan, now
from tfm_core.sweeps.space import Dimension, Range

_SAMPLED = 6  # combinations whose time is estimated


def page() -> None:
    show.header("sweeps")
    sweep = running.shown()
    if sweep is None:
        running.undo()
        _new_sweep()
    else:
        running.sweep_view(sweep)


def _new_sweep() -> None:
    left, right = st.columns([9, 11], gap="medium")
    with right, st.container(gap="small"):
        facts, choices = show.fact_line("sweeps")
        base = form.chosen_base(choices)
        if base is None:
            return
        key, first = base
        problem: Exception | None = None
        plan = first
        try:
            plan = form.plan(first, key, choices, is_locked=open_lesson.lock)
            plan.check()
            actions.lesson_of(plan)
        except ValueError as error:
            problem = error
        facts.caption(_summary(plan))
        open_lesson.draw_locks()
    with left, st.container(gap="small"):
        _start_bar(plan, problem, key)
        if problem is None:
            _figure(plan)


def _summary(plan: Plan) -> str:
    """Return the sampler, the limits and the objective of a plan."""
    runs = (
        ""
        if plan.max_runs is None
        else ngettext("at most {n} run", "at most {n} runs", plan.max_runs, n=plan.max_runs)
    )
    minutes = ""
    if plan.max_minutes is not None:
        minutes = _("at most {minutes:g} min", minutes=plan.max_minutes)
    return show.joined(
        f"**{_(SEARCHES[plan.search].label)}**",
        _("{n} steps per run", n=f"{plan.base.trained.steps:,}"),
        runs,
        minutes,
        _(OBJECTIVES[plan.objective].label),
    )


def _start_bar(plan: Plan, problem: Exception | None, key: str) -> None:
    why_not = visitors.why_not()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        name = st.text_input(_("Sweep name"), plan.name, max_chars=MAX_NAME, key=f"{key}-name")
        pressed = st.button(
            _("Start sweep"),
            type="primary",
            icon=":material/play_arrow:",
            disabled=problem is not None or bool(why_not),
            key="sweeps-start",
            help=escape(why_not) or None,
        )
    if why_not:
        st.caption(f":material/lock: {escape(why_not)}")
    if problem is not None:
        st.markdown(f":red[:material/error: **{escape(_(problem))}**]")
        return
    st.markdown(_cost(plan))
    possible = space.share(plan.base, plan.space)
    if possible.n < possible.drawn:
        note = _(
            "About {share} of combinations are valid. An invalid one: {why}",
            share=show.percent(possible.n / possible.drawn),
            why=_(possible.why),
        )
        st.caption(f":material/info: {escape(note)}")
    if pressed:
        plan = dataclasses.replace(plan, name=" ".join(name.split()), created=now())
        sweep = actions.start(plan)
        if sweep is not None:
            running.open_sweep(sweep.id)
            st.rerun()


def _cost(plan: Plan) -> str:
    n = plan.max_runs
    if plan.search == "grid":
        n = min(space.n_points(plan.space), plan.most_runs)
    if n is None:
        return _("**{minutes:g} min** of training in total.", minutes=plan.max_minutes)
    some = space.some(plan.base, plan.space, _SAMPLED)
    forecast = run_time.in_sequence(some, threads=plan.threads)
    forecast = forecast.times(1 / len(some)) if forecast else None  # of a mean run
    cost = ngettext(
        "**{n} run** of {steps} steps: **{time}**.",
        "**{n} runs** of {steps} steps, one after another: **{time}**.",
        n,
        n=n,
        steps=f"{plan.base.trained.steps:,}",
        time=run_time.with_load(forecast.times(n) if forecast else None),
    )
    if plan.max_minutes is None:
        return cost
    return f"{cost} {_('No run starts after {minutes:g} min.', minutes=plan.max_minutes)}"


def _figure(plan: Plan) -> None:
    if plan.search == "grid":
        show.figure(plots.points(plan), _("Each ring is a run."), key="sweeps-points")
        return
    rows = [
        [_(space.label_of(plan.base, dimension.path)), _range_words(dimension)]
        for dimension in plan.space
    ]
    show.facts(rows, [_("Varies"), _("Range or values")])
    st.caption(_(SEARCHES[plan.search].help))


def _range_words(dimension: Dimension) -> str:
    """Return the values of a setting: from and to, or a list."""
    if not isinstance(dimension, Range):
        return ", ".join(_(space.shown(value)) for value in dimension.values)
    ends = {"low": space.shown(dimension.low), "high": space.shown(dimension.high)}
    return _("{low} … {high} (log)", **ends) if dimension.is_log else _("{low} … {high}", **ends)


if __name__ == "__main__":
    page()
