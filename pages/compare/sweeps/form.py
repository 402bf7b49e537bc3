"""The form of a sweep: its experiment, the settings that vary, the sampler and the limits."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.app import show, state
from pages.app.accounts import visitors
from pages.app.lessons import open_lesson
from pages.app.settings.fields import Setting, settings_of
from pages.i18n import _
from tfm_core.choices.config import ConfigError, Experiment
from tfm_core.choices.config.base import plain
from tfm_core.choices.presets import PRESETS
from tfm_core.sentences import StudentError
from tfm_core.sweeps import space
from tfm_core.sweeps.plan import (
    EXAMPLE_PRESET,
    MAX_AT_ONCE,
    MAX_RUNS,
    OBJECTIVES,
    SEARCHES,
    Plan,
    example_plan,
    objectives_of,
    proposed_plan,
)
from tfm_core.sweeps.space import MAX_SETTINGS, Choices, Dimension, Range, Value

RANGE, VALUES = "range", "values"
_BASE, _DRAFT = "sweeps-base", "draft"
_MAX_RUNS = 40  # to choose from


def chosen_base(choices: DeltaGenerator) -> tuple[str, Plan] | None:
    """Ask for the base experiment; return a key for the widgets and the proposed plan.

    choices: the container of the number of steps.
    """
    runs = [run for run in visitors.available_runs() if run.problem is None][:_MAX_RUNS]
    names = {
        **{f"preset:{name}": _(preset.label) for name, preset in PRESETS.items()},
        _DRAFT: _("Configuration on Train"),
        **{f"run:{run.id}": _("Run: {name}", name=run.meta.name) for run in runs},
    }
    default = _DRAFT if open_lesson.few_open() is not None else f"preset:{EXAMPLE_PRESET}"
    options = sorted(names, key=lambda name: name != default)
    if st.session_state.get(_BASE) not in names:
        st.session_state[_BASE] = options[0]
    chosen = st.selectbox(
        _("Experiment"), options, format_func=names.__getitem__, key=_BASE, persist_state="session"
    )
    try:
        first = _proposed(chosen, names[chosen])
    except ConfigError as error:
        show.problem(_("Invalid configuration: {why}", why=_(error)))
        return None
    steps = choices.number_input(
        _("Steps per run"),
        1,
        1_000_000,
        first.base.trained.steps,
        step=100,
        key=f"{chosen}-steps",
        width=140,
    )
    training = first.base.trained.replace(steps=int(steps))
    base = first.base.replace(training=training.model_dump())
    return f"new-{chosen}", dataclasses.replace(first, base=base)


def _proposed(chosen: str, name: str) -> Plan:
    """Return the default plan for an experiment. Raises ConfigError."""
    kind, _colon, which = chosen.partition(":")
    if which == EXAMPLE_PRESET:
        return dataclasses.replace(example_plan(), name=_("Rate and warm-up"))
    if kind == "preset":
        base = PRESETS[which].experiment
    elif kind == _DRAFT:
        base = Experiment.parse(state.draft())
    else:
        base = next(run for run in visitors.available_runs() if run.id == which).experiment
    return proposed_plan(base, name.partition(": ")[2] if kind == "run" else name)


def plan(
    first: Plan,
    key: str,
    search: DeltaGenerator | None = None,
    *,
    is_locked: Callable[[str], object] = lambda _path: False,
) -> Plan:
    """Draw the form for a plan and return the edited plan. Raises ValueError.

    key: prefix of all widget keys; a new one resets the form. search: the container of sampler and
    limits, by default below the settings. is_locked: whether a setting is not offered.
    """
    dimensions = _space(first, key, is_locked)
    with search or st.container():
        limits = _search(first, key)
    return dataclasses.replace(first, space=dimensions, **limits)


def _space(first: Plan, key: str, is_locked: Callable[[str], object]) -> tuple[Dimension, ...]:
    """Ask which settings vary and how. Raises ValueError."""
    current = {setting.path: setting for setting in first.space}
    is_grid = st.session_state.get(f"{key}-search", first.search) == "grid"
    offered = varied(first.base)
    settings = {setting.path: setting for setting in offered if not is_locked(setting.path)}
    chosen = st.multiselect(
        _("What varies"),
        list(settings),
        default=[path for path in current if path in settings],
        format_func=lambda path: _(settings[path].label),
        key=f"{key}-paths",
        max_selections=MAX_SETTINGS,
        placeholder=_("Choose settings"),
        help=_("Invalid combinations are skipped."),
    )
    problem: ValueError | None = None
    dimensions: list[Dimension] = []
    for path in chosen:
        try:
            setting = settings[path]
            before, field_key = current.get(path), f"{key}-{path}"
            if setting.kind == "bool":
                dimension: Dimension = Choices(path, (False, True))
            elif setting.kind in ("choice", "several"):
                dimension = _variants(setting, first.base, before, field_key)
            else:
                dimension = _numbers(setting, first.base, before, field_key, is_grid=is_grid)
            dimensions.append(dimension)
        except ValueError as error:
            st.caption(f":red[:material/error: {_(error)}]")
            problem = problem or error
    if problem is not None:
        raise problem
    return tuple(dimensions)


def varied(base: Experiment) -> list[Setting]:
    settings = settings_of(base.model.family, base.task.name)
    return [setting for setting in settings if setting.path not in space.FIXED]


def _variants(setting: Setting, base: Experiment, current: Dimension | None, key: str) -> Dimension:
    choices = setting.choices or {}
    now = space.value_of(base, setting.path)
    names = ["", *choices] if setting.kind == "several" else list(choices)  # one at a time, or none
    others = [name for name in names[:3] if name != now]
    default = current.values if isinstance(current, Choices) else (now, *others)
    picked = st.multiselect(
        _(setting.label),
        names,
        default=[name for name in default if name in names],
        format_func=lambda name: _(choices[name].label) if name else _("none"),
        key=key,
        help=_(setting.help),
    )
    return Choices(setting.path, tuple(picked))


def _numbers(
    setting: Setting, base: Experiment, current: Dimension | None, key: str, *, is_grid: bool
) -> Dimension:
    now = space.value_of(base, setting.path)
    if current is not None:
        default = current
    elif setting.kind != "int" or setting.path == "seed" or not isinstance(now, int):
        default = _usual_range(setting, base)
    else:
        lowest, highest = setting.lowest or 0, setting.highest or 10**9
        doubled = {now // 2, now, now * 2} if now > 1 else {now, now + 1, now + 2}
        fitting = sorted(n for n in doubled if lowest <= n <= highest)
        default = Choices(setting.path, tuple(fitting))
    label = _(setting.label)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        mode = st.segmented_control(
            label,
            [RANGE, VALUES],
            default=RANGE if isinstance(default, Range) else VALUES,
            format_func=lambda mode: _("range") if mode == RANGE else _("values"),
            required=True,
            key=f"{key}-mode",
            help=_(setting.help),
        )
        if mode == VALUES:
            values = ", ".join(_typed(value) for value in default.grid())
            text = st.text_input(_("{setting}: values", setting=label), values, key=f"{key}-values")
            parts = [part for part in text.replace(";", ",").split(",") if part.strip()]
            return Choices(setting.path, tuple(_read(part, setting) for part in parts))
        likely = default if isinstance(default, Range) else _usual_range(setting, base)
        low, high, is_log, points = _range(label, likely, key, is_grid=is_grid)
    is_whole = setting.kind == "int"
    return Range(
        setting.path,
        float(_read(low, setting)),
        float(_read(high, setting)),
        is_log,
        is_whole,
        likely.step,
        int(points),
    )


def _range(label: str, likely: Range, key: str, *, is_grid: bool) -> tuple[str, str, bool, int]:
    """Ask for the ends and scale of a range, and its points for a grid.

    The visible labels are short; the hidden ones name the setting for screen readers.
    """
    with _together():
        low = st.text_input(
            _("{setting}: from", setting=label),
            _typed(likely.low),
            key=f"{key}-low",
            width=80,
            label_visibility="collapsed",
        )
        st.markdown(_("to"), width="content")
        high = st.text_input(
            _("{setting}: to", setting=label),
            _typed(likely.high),
            key=f"{key}-high",
            width=80,
            label_visibility="collapsed",
        )
    with _together():
        is_log = st.toggle(
            _("{setting}: log", setting=label),
            likely.is_log,
            key=f"{key}-log",
            label_visibility="collapsed",
        )
        st.markdown(_("log"), width="content", help=_("Each power of ten gets an equal share."))
    if not is_grid:
        return low, high, is_log, likely.points
    with _together():
        points = st.number_input(
            _("{setting}: grid points", setting=label),
            2,
            space.MAX_VALUES,
            likely.points,
            key=f"{key}-points",
            width=80,
            label_visibility="collapsed",
        )
        st.markdown(_("points"), width="content")
    return low, high, is_log, int(points)


def _together() -> DeltaGenerator:
    return st.container(horizontal=True, vertical_alignment="center", gap="xsmall", width="content")


def _usual_range(setting: Setting, base: Experiment) -> Range:
    now = float(space.value_of(base, setting.path) or 0)
    low, high = setting.lowest, setting.highest
    is_whole = setting.kind == "int"
    if setting.path == "seed":
        return Range(setting.path, 0, 9, is_whole=True, points=10)
    if setting.path == "training.learning_rate":
        return Range(setting.path, now / 10, min(now * 10, 10), is_log=True)
    first = max(low or 0.0, now / 2)
    last = min(high if high is not None else now * 2, max(now * 2, first + 0.2))
    if is_whole:
        return Range(setting.path, int(first), max(int(last), int(first) + 1), is_whole=True)
    return Range(setting.path, float(f"{first:.3g}"), float(f"{last:.3g}"))


def _read(text: str, setting: Setting) -> Value:
    """Parse a number. Raises StudentError."""
    try:
        return int(text) if setting.kind == "int" else float(text)
    except ValueError:
        values = {"label": _(setting.label), "value": text.strip()[:20]}
        if setting.kind == "int":
            raise StudentError("{label} must be a whole number, not “{value}”.", **values) from None
        raise StudentError("{label} must be a number, not “{value}”.", **values) from None


def _typed(value: Value) -> str:
    return plain(value).replace(",", "") if isinstance(value, int | float) else value


def _search(first: Plan, key: str) -> dict[str, Any]:
    with st.container(horizontal=True, gap="medium"):
        about = [f"**{_(sampler.label)}**: {_(sampler.help)}" for sampler in SEARCHES.values()]
        search = st.segmented_control(
            _("Sampler"),
            list(SEARCHES),
            default=first.search,
            required=True,
            key=f"{key}-search",
            format_func=lambda name: _(SEARCHES[name].label),
            help="\n\n".join(about),
        )
        objective = first.objective
        if not key.startswith("change"):
            options = [option.name for option in objectives_of(first.base)]
            objective = st.selectbox(
                _("Optimise"),
                options,
                options.index(first.objective),
                format_func=lambda name: _(OBJECTIVES[name].label),
                key=f"{key}-objective",
                width=180,
                help=_("Measured with the final weights, or with patience the best."),
            )
        max_runs = st.number_input(
            _("Max. runs"),
            0,
            MAX_RUNS,
            first.max_runs or 0,
            key=f"{key}-runs",
            width=125,
            help=_("0: only the minutes limit it."),
        )
        max_minutes = st.number_input(
            _("Max. minutes"),
            0.0,
            None,
            float(first.max_minutes or 0),
            step=1.0,
            format="%g",
            key=f"{key}-minutes",
            width=125,
            help=_("Training time in total; 0: no limit."),
        )
        at_once = st.number_input(
            _("Runs at once"),
            1,
            MAX_AT_ONCE,
            first.at_once,
            key=f"{key}-at-once",
            width=125,
            help=_("Parallel runs share the CPU, and the sampler knows fewer results."),
        )
    return {
        "search": search,
        "objective": objective,
        "max_runs": int(max_runs) or None,
        "max_minutes": float(max_minutes) or None,
        "at_once": int(at_once),
    }
