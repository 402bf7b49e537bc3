"""Compare: how runs differ, and what the difference changes."""

from __future__ import annotations

import base64
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from pages.app import show, state
from pages.app.accounts import visitors
from pages.app.address import view
from pages.app.address.parameters import RunIds
from pages.app.model import answer
from pages.app.model.answer import example_name
from pages.app.runs import comparison, run_words, runs_access
from pages.app.typed import escape
from pages.compare import seeds
from pages.compare.seeds import SeedGroup, StyledRun
from pages.components.effects import moving
from pages.components.heads import GridStyle, OverPicture, head_grid
from pages.components.live_figure import live_figure
from pages.i18n import N_, _, language, ngettext
from tfm_core.inspect.attention.example import (
    Example,
    common_step,
    example_of,
    nearest,
    same_example,
)
from tfm_core.inspect.attention.maps import map_view
from tfm_core.inspect.curves import AXES, METRICS, AxisName, caveats, figures, track
from tfm_core.inspect.differences import differences, run_names
from tfm_core.plots.chart import LOOKS, SVG_DASHES
from tfm_core.plots.training import comparison as plots
from tfm_core.plots.training.comparison import CurvePanel, RunLine, slots
from tfm_core.probe.labels import CLS, KINDS, kinds_of, modules_by_kind
from tfm_core.probe.types import Probe
from tfm_core.runs.curves import Curves
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunNotFound

SCOPE = "compare"
MAX_RUNS, MAX_BESIDE, MAX_COLUMNS = 60, 4, 5
"""Runs at most; runs side by side; settings in the table (more get their own table)."""
RECORDED = ("recorded-additive", "recorded-many-heads")
"""The default: an RNN with attention and a Transformer, whose curves differ."""
_MAX_DEFAULT = 3
_MAX_OFFERED = 4
_MAX_GROUPS = 12
_MAX_PAIRS, _MAX_LISTED = 3, 3
_MAX_WRAPPED = 8  # more names scroll in one line
_HEIGHT, _PER_PANEL = 62, 126  # pixels: two panels fit the first screen
RUNS = RunIds(comparison.RUNS_QUERY, first=(), key="compare-runs", maximum=MAX_RUNS)


@dataclass(frozen=True)
class CurveSettings:
    """Which curves are drawn, and how."""

    metrics: tuple[str, ...] = view.choices(
        N_("Quantities"),
        {name: metric.label for name, metric in METRICS.items()},
        ("loss", "validation-accuracy"),
        maximum=3,
        look={"width": 440},
    )
    axis: str = view.choice(
        N_("X-axis"),
        {str(name): label for name, label in AXES.items()},
        is_list=True,
        look={"width": 140},
    )
    smooth: float = view.pick(
        N_("Training smoothing"),
        (1, 5, 10, 20, 50, 100, 200),
        10,
        look={"width": 200, "format_func": lambda n: _("off") if n == 1 else _("mean of {n}", n=n)},
    )
    log_x: bool = view.flag(N_("Log x"))
    log_y: bool = view.flag(N_("Log y"), help=N_("Not for percentages."))
    bands: bool = view.flag(
        N_("Average seeds"), default=True, help=N_("Mean ± one standard deviation.")
    )


def page() -> None:
    """Ask for runs; show their curves, results, seeds, and an example of each."""
    show.header("compare")
    runs = _chosen()
    if not runs:
        return
    comparison.follow(runs, partial(_draw, runs))


def _draw(runs: Sequence[Run], was_live: bool) -> None:
    shown = _styled(runs)
    grouped = seeds.groups(shown)
    if was_live:
        comparison.progress(runs)
    hidden = () if seeds.has_seeds(grouped) else ("bands",)
    with st.container(
        horizontal=True, vertical_alignment="bottom", gap="small", key="compare-controls"
    ):
        settings = view.ask(CurveSettings, SCOPE, hidden=hidden)
    if settings.bands and not hidden:  # runs of one configuration share a style
        slot_of = {entry.run.id: group.slot for group in grouped for entry in group.members}
        n = len(grouped)
        shown = [replace(entry, slot=slot_of.get(entry.run.id, n + entry.slot)) for entry in shown]
    _curves(replace(settings, bands=settings.bands and not hidden), shown, grouped)
    _results(shown)
    seeds.tests(grouped)
    _beside(seeds.one_of_each(grouped), n_runs=len(shown))


def _chosen() -> list[Run]:
    """Draw the choice and return its readable runs in order."""
    available = {run.id: run for run in visitors.available_runs()}
    is_cold = RUNS.key not in st.session_state
    problem = view.read_query(RUNS)
    ids: list[str] = st.session_state[RUNS.key]
    missing = {}
    for run_id in ids:
        if run_id not in available:
            try:
                available[run_id] = runs_access.open_run(run_id)
            except RunNotFound as error:
                missing[run_id] = _(error)
    if missing:
        st.session_state[RUNS.key] = ids = [run_id for run_id in ids if run_id not in missing]
    if is_cold and not ids:
        st.session_state[RUNS.key] = _default(list(available.values()))
    labels = run_words.unique_names(list(available.values()))
    with st.container(horizontal=True, vertical_alignment="top", gap="small"):
        picked = st.multiselect(
            _("Runs to compare"),
            list(available),
            format_func=lambda run_id: labels[run_id],
            key=RUNS.key,
            max_selections=MAX_RUNS,
            placeholder=_("Choose runs by name"),
            label_visibility="collapsed",
            persist_state="session",
            wrap=len(st.session_state[RUNS.key]) <= _MAX_WRAPPED,
        )
        _add_a_group(list(available.values()), picked)
    with st.container():
        for sentence in filter(None, (problem, *missing.values())):
            view.warn(sentence)
    view.write_query(RUNS, tuple(picked))
    runs = [available[run_id] for run_id in picked]
    for run in runs:
        if run.problem is not None:
            name, why = escape(run.meta.name), escape(_(run.problem))
            message = _("**{name}** cannot be compared. {why}", name=name, why=why)
            st.warning(message, icon=":material/broken_image:")
    readable = [run for run in runs if run.problem is None]
    _help(readable, list(available.values()))
    return readable


def _default(runs: Sequence[Run]) -> list[str]:
    """Return the visitor's newest runs of one task, or else the recorded pair."""
    own = [run for run in runs if not run.meta.recorded and run.problem is None]
    kinds = [(run.experiment.task.name, run.experiment.model.family) for run in own]
    alike = [run for run, kind in zip(own, kinds, strict=True) if kind == kinds[0]]
    if len(alike) > 1:
        return [run.id for run in alike[:_MAX_DEFAULT]]
    ids = {run.id for run in runs}
    return [run_id for run_id in RECORDED if run_id in ids]


def _add_a_group(runs: Sequence[Run], picked: Sequence[str]) -> None:
    groups: dict[str, list[str]] = defaultdict(list)
    for run in runs:
        if run.problem is None and run.labels.group:
            groups[run.labels.group].append(run.id)
    offered = {name: ids for name, ids in groups.items() if not set(ids) <= set(picked)}
    if not offered:
        return
    with st.popover(_("Add a group"), icon=":material/folder:", key="compare-groups"):
        for number, (name, ids) in enumerate(list(offered.items())[:_MAX_GROUPS]):
            n = len(ids)
            together = list(dict.fromkeys([*picked, *ids]))
            st.button(
                ngettext("Add {name}: {n} run", "Add {name}: {n} runs", n, name=escape(name), n=n),
                key=f"compare-group-{number}",
                icon=":material/add:",
                type="tertiary",
                disabled=len(together) > MAX_RUNS,
                help=_("At most {most} runs at once.", most=MAX_RUNS)
                if len(together) > MAX_RUNS
                else None,
                on_click=_choose,
                args=(together,),
            )
        if len(offered) > _MAX_GROUPS:
            st.caption(_("{n} more groups are on Runs.", n=len(offered) - _MAX_GROUPS))


def _help(runs: Sequence[Run], available: Sequence[Run]) -> None:
    if len(runs) > 1:
        return
    offered: Mapping[str, list[str]]
    if runs:
        hint = _("Add another run to compare.")
        ids = {run.id for run in runs}
        alike = [run for run in available if run.problem is None and run.id not in ids]
        alike = [run for run in alike if run.experiment.task.name == runs[0].experiment.task.name]
        offered = {run_words.name(run): [runs[0].id, run.id] for run in alike[:_MAX_OFFERED]}
    else:
        hint = _("Choose runs, or open two recorded ones.")
        available_ids = {run.id for run in available}
        recorded = [run_id for run_id in RECORDED if run_id in available_ids]
        offered = {_("Compare an RNN with a Transformer"): recorded} if recorded else {}
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(hint, width="content")
        for number, (name, ids_of) in enumerate(offered.items()):
            st.button(
                escape(name),
                key=f"compare-offer-{number}",
                icon=":material/add:",
                on_click=_choose,
                args=(ids_of,),
            )


def _choose(ids: Sequence[str]) -> None:
    st.session_state[RUNS.key] = list(ids)


def _styled(runs: Sequence[Run]) -> list[StyledRun]:
    slot_of = slots([run.id for run in runs], st.session_state.get("compare-slots", {}))
    st.session_state["compare-slots"] = slot_of
    by_difference = run_names([run.experiment for run in runs])
    return [
        StyledRun(run, run.labels.name or _(name), slot_of[run.id])
        for run, name in zip(runs, by_difference, strict=True)
    ]


def _curves(
    settings: CurveSettings, shown: Sequence[StyledRun], grouped: Sequence[SeedGroup]
) -> None:
    """Draw the chosen quantities of all runs."""
    if not settings.metrics:
        st.info(_("Choose a quantity above."), icon=":material/info:")
        return
    for caveat in caveats([entry.run.experiment for entry in shown], settings.metrics):
        st.caption(f":material/warning: {_(caveat)}")
    curves = {entry.run.id: runs_access.curves(entry.run) for entry in shown}
    marks = tuple(_mark(entry, curves[entry.run.id]) for entry in shown)
    figure, notes = _figure(settings, marks, language(), list(shown), curves, grouped)
    if figure is None and notes:
        st.info(" ".join(notes), icon=":material/info:")
    elif all(entry.run.status.state == "opened" for entry in shown):
        st.info(
            _("These models were not trained here, so they have no curves."),
            icon=":material/folder_open:",
        )
    elif figure is None:
        st.info(_("Waiting for the first measurement."), icon=":material/hourglass_empty:")
    else:
        labels = ", ".join(_(METRICS[metric].label) for metric in settings.metrics)
        name = _("Curves of {n} runs: {drawn}", n=len(shown), drawn=labels)
        live_figure(figure, key="compare-curves", name=name)
        if notes:
            st.caption(" ".join(notes))


def _mark(entry: StyledRun, curves: Curves) -> tuple[object, ...]:
    """Return a cache key that changes exactly when the line of a run does."""
    sizes = [(len(series), series.last("step")) for series in (curves.steps, curves.validation)]
    states = bool(curves.started), bool(curves.finished)
    return entry.run.id, entry.name, entry.slot, *sizes, *states


@st.cache_resource(show_spinner=False, max_entries=32)
def _figure(
    settings: CurveSettings,
    marks: tuple[object, ...],
    spoken: str,
    _shown: Sequence[StyledRun],
    _curves: dict[str, Curves],
    _grouped: Sequence[SeedGroup],
) -> tuple[go.Figure | None, list[str]]:
    axis, window = cast(AxisName, settings.axis), int(settings.smooth)
    is_banded = settings.bands and axis in seeds.WITH_BANDS
    averaged = (
        {entry.run.id for group in _grouped if len(group.members) > 1 for entry in group.members}
        if is_banded
        else set()
    )
    panels, unrecorded, estimated, longest = [], dict[str, None](), dict[str, None](), 0
    for metric in settings.metrics:
        lines = []
        for entry in _shown:
            curve = track(_curves[entry.run.id], entry.run.experiment, metric, axis)
            if curve is None and len(_curves[entry.run.id].steps):
                unrecorded[entry.name] = None
            if curve is None or not len(curve.values):
                continue
            is_faint = entry.run.id in averaged
            lines.append(RunLine(entry.name, entry.slot, curve.x, curve.values, is_faint=is_faint))
            longest = max(longest, len(curve.values))
            if curve.is_reckoned:
                estimated[entry.name] = None
        facts = METRICS[metric]
        panels.append(
            CurvePanel(
                _(facts.label),
                [*lines, *(seeds.bands(_grouped, metric, axis, window) if is_banded else ())],
                is_share=facts.is_share,
                is_noisy=facts.series == "steps",
            )
        )
    most = plots.most_points(panels, window)
    notes = _notes(list(unrecorded), list(estimated), most if longest > most else None)
    if settings.bands and not is_banded:
        notes.append(_("No averages on this axis."))
    if not any(panel.lines for panel in panels):
        return None, notes
    figure = plots.comparison(
        panels,
        _(AXES[axis]),
        window=window,
        is_log_x=settings.log_x,
        is_log_y=settings.log_y,
        height=_HEIGHT + _PER_PANEL * len(panels),
    )
    drawn = f"{settings.metrics} {axis} {settings.log_x} {settings.log_y}"
    figure.update_layout(uirevision=drawn)
    return figure, notes


def _notes(unrecorded: list[str], estimated: list[str], thinned_to: int | None) -> list[str]:
    notes = []
    if thinned_to is not None:
        notes.append(_("Thinned to {most} points; every spike stays.", most=thinned_to))
    if estimated:
        notes.append(_("Time of {names}: estimated from the speed.", names=_listed(estimated)))
    if unrecorded:
        notes.append(_("Not recorded on this axis: {names}.", names=_listed(unrecorded)))
    return notes


def _listed(names: Sequence[str]) -> str:
    listed = ", ".join(f"“{escape(name)}”" for name in names[:_MAX_LISTED])
    return listed + (", …" if len(names) > _MAX_LISTED else "")


def _results(shown: Sequence[StyledRun]) -> None:
    """Show a row per run: the settings that differ, and the results."""
    rows = differences([entry.run.experiment for entry in shown])
    table = pd.DataFrame(
        {"line": [_line(entry.slot) for entry in shown], _("Run"): [entry.name for entry in shown]}
    )
    is_wide = len(rows) > MAX_COLUMNS
    for row in () if is_wide else rows:
        is_number = all(isinstance(value, int | float | None) for value in row.values)
        table[_(row.label)] = row.values if is_number else [_(text) for text in row.texts]
    results = pd.DataFrame([figures(runs_access.curves(entry.run)) for entry in shown])
    for name, (label, _form) in _RESULTS.items():
        if results[name].notna().any():
            table[_(label)] = results[name].astype(float)
    table[_("Trained")] = [_trained(entry.run) for entry in shown]
    table["open"] = [state.address("train", {"run": entry.run.id}) for entry in shown]
    forms = {
        _(label): st.column_config.NumberColumn(format=form) for label, form in _RESULTS.values()
    }
    looks = {
        "line": st.column_config.ImageColumn(_("Colour"), width=60),
        "open": st.column_config.LinkColumn(
            _("Open"), display_text=":material/open_in_new:", width=40
        ),
    }
    st.dataframe(table, hide_index=True, column_config={**forms, **looks}, key="compare-results")
    if not rows and len(shown) > 1:
        st.caption(_("These runs have identical settings."))
    if is_wide:
        title = _("All {n} settings that differ", n=len(rows))
        with st.expander(title, icon=":material/difference:"):
            settings = {
                entry.name: [_(row.texts[n]) for row in rows] for n, entry in enumerate(shown)
            }
            index = pd.Index([_(row.label) for row in rows], name=_("Setting"))
            st.table(pd.DataFrame(settings, index))


def _line(slot: int) -> str:
    """Return a data address with a picture of a run's line."""
    look = LOOKS[slot % len(LOOKS)]
    line = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="46" height="10">'
        f'<line x1="1" x2="45" y1="5" y2="5" stroke="{look["colour"]}" stroke-width="3" '
        f'stroke-dasharray="{SVG_DASHES[look["dash"]]}"/></svg>'
    )
    return f"data:image/svg+xml;base64,{base64.b64encode(line.encode()).decode()}"


def _trained(run: Run) -> str:
    status = run.status
    parts = [str(_(run_words.state_words(status, run.outcome).label))]
    if status.state != "finished":
        parts.append(run_words.progress(status))
    if status.seconds:
        parts.append(show.duration(status.seconds))
    return ", ".join(parts)


_RESULTS = {
    "n_parameters": (N_("Parameters"), "localized"),
    "loss": (N_("Validation loss"), "%.4g"),
    "best_loss": (N_("Lowest"), "%.4g"),
    "best_loss_step": (N_("Lowest at step"), "localized"),
    "accuracy": (N_("Validation accuracy"), "percent"),
    "best_accuracy": (N_("Highest"), "percent"),
    "best_accuracy_step": (N_("Highest at step"), "localized"),
    "sequences": (N_("Whole sequences, validation"), "percent"),
    "test_accuracy": (N_("Test accuracy"), "percent"),
    "test_sequences": (N_("Whole sequences, test"), "percent"),
}
"""Column of ``figures`` -> its label and number format."""


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """A run, its examples, and the steps of its snapshots."""

    entry: StyledRun
    probe: Probe
    steps: list[int]


def _beside(shown: Sequence[StyledRun], n_runs: int) -> None:
    """Show one example in up to MAX_BESIDE runs, at the snapshots nearest to one step.

    shown: one run per configuration, of ``n_runs`` in total.
    """
    st.header(_("Same example, same step"), anchor=False)
    sides, lacking = _sides(shown[:MAX_BESIDE])
    if len(shown) < n_runs:
        st.caption(_("One run per configuration."))
    if len(shown) > MAX_BESIDE:
        st.caption(_("Showing the first {most} of {n} runs.", n=len(shown), most=MAX_BESIDE))
    if not sides:
        st.caption(_("No snapshots yet."))
        return
    index, kind, step = _chosen_example(sides)
    for column, entry in zip(
        st.columns(len(shown[:MAX_BESIDE]), gap="medium"), shown, strict=False
    ):
        with column:
            side = next((candidate for candidate in sides if candidate.entry is entry), None)
            st.markdown(f"**{escape(entry.name)}**")
            if side is None:
                st.caption(escape(lacking[entry.run.id]))
            else:
                _side(side, sides[0], index, kind, step)


def _sides(shown: Sequence[StyledRun]) -> tuple[list[Side], dict[str, str]]:
    sides, lacking = [], {}
    for entry in shown:
        try:
            steps = entry.run.snapshot_steps()
            if steps:
                sides.append(Side(entry, entry.run.probe(), steps))
            else:
                lacking[entry.run.id] = _("No snapshot yet.")
        except ValueError as error:
            lacking[entry.run.id] = _(error)
    return sides, lacking


def _chosen_example(sides: Sequence[Side]) -> tuple[int, str, int]:
    """Ask for an example, a kind of attention, and a step, at first the last common one."""
    first = sides[0]
    experiment, items = first.entry.run.experiment, first.probe.items
    kinds = {
        kind: KINDS[kind].label
        for side in sides
        for kind in sorted(
            modules_by_kind(side.entry.run.experiment),
            key=lambda kind: kind not in ("cross", "picture"),
        )
    }
    steps = sorted({step for side in sides for step in side.steps})
    last = common_step([side.steps for side in sides]) or steps[0]

    with st.container(
        horizontal=True, vertical_alignment="bottom", gap="medium", key="compare-beside"
    ):
        look = {
            "width": 280,
            "format_func": lambda n: str(example_name(experiment, items[n], n + 1)),
        }
        most = max(0, len(items) - 1)
        index = view.one(
            view.number(N_("Example"), 0, most, 0, offset=1, look=look), "example", SCOPE
        )
        of_last = view.pick(N_("Step"), steps, last, of=str(last), look={"width": 200})
        step = view.one(of_last, "at", SCOPE) if len(steps) > 1 else last
        kind = view.one(view.choice(N_("Attention"), kinds), "kind", SCOPE)
    return int(index), str(kind), int(step)


def _side(side: Side, first: Side, index: int, kind: str, step: int) -> None:
    run = side.entry.run
    at = nearest(step, side.steps)
    if at != step:
        st.caption(_("No snapshot at step {step}: showing {at}.", step=f"{step:,}", at=f"{at:,}"))
    try:
        number = same_example(first.probe, side.probe, index)
        example = example_of(run.experiment, side.probe, run.snapshot(at), number)
    except ValueError as error:
        st.caption(escape(_(error)))
        return
    tree = answer.line(run.experiment, example)
    moving({at: tree}, at, animation="", key=f"compare-answer-{side.entry.slot}")
    modules = modules_by_kind(run.experiment).get(kind)
    if modules is None:
        st.caption(_("This model has no such attention."))
        return
    if number >= len(side.probe.attended):
        st.caption(_("No attention was saved for this example."))
        return
    try:
        _heads(side.entry, example, kind)
    except ValueError as error:
        show.problem(error)


def _heads(entry: StyledRun, example: Example, kind: str) -> None:
    experiment = entry.run.experiment
    view = map_view(
        experiment, example, kind=kind, say=_, glosses=answer.glosses_of_run(experiment)
    )
    chosen_heads = st.session_state.setdefault("compare-heads", {})
    layer, head = chosen_heads.get(entry.run.id, (0, 0))
    chosen = (min(layer, view.weights.shape[0] - 1), min(head, view.weights.shape[1] - 1))
    over = None
    if kind == "patches" and example.picture is not None:
        over = OverPicture(example.picture, None, int(CLS in view.key), _("mean of all patches"))

    def pick(layer: int, head: int) -> None:
        chosen_heads[entry.run.id] = (layer, head)

    style = GridStyle(
        chosen=chosen,
        theme=state.theme(),
        top=None if kind in {"patches", "picture"} else 1.0,
        title=_(kinds_of(experiment)[kind].label),
        over=over,
    )
    head_grid(view, style, on_pick=pick, key=f"compare-heads-{entry.slot}")
    show.link(
        "attention",
        _("Open layer {layer}, head {head}", layer=chosen[0] + 1, head=chosen[1] + 1),
        {
            "run": entry.run.id,
            "kind": kind,
            "layer": str(chosen[0] + 1),
            "head": str(chosen[1] + 1),
            "step": str(example.step),
        },
    )


if __name__ == "__main__":
    page()
