"""Evidence from both runs: curves, gradients, maps with masks, probes."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from pages.components.heads import GridStyle, head_grid
from pages.find_the_bug.pair import Round
from pages.i18n import N_, _
from pages.ui import show, state
from pages.ui.runs import runs_access
from tfm_core.inspect.attention.example import example_of
from tfm_core.inspect.attention.map_view import map_view
from tfm_core.inspect.bugs.probes import PROBES
from tfm_core.inspect.bugs.round import Twins
from tfm_core.plots.training import comparison as plots
from tfm_core.plots.training.comparison import CurvePanel, RunLine
from tfm_core.probe.labels import KINDS, modules_by_kind
from tfm_core.runs.run import Run

VIEW = "find-the-bug-view"
CURVES, MAPS, ANSWERS = "curves", "maps", "answers"
_LABELS = {CURVES: N_("Curves"), MAPS: N_("Attention and masks"), ANSWERS: N_("Probes’ answers")}
_KIND = "find-the-bug-kind"
_WINDOW = 15  # steps that a thick line averages


def names() -> tuple[str, str]:
    return _("Healthy"), _("Suspect")


def evidence(pair: Twins, played: Round) -> None:
    st.session_state.setdefault(VIEW, CURVES)
    view = st.segmented_control(
        _("Evidence"),
        list(_LABELS),
        format_func=lambda name: _(_LABELS[name]),
        required=True,
        key=VIEW,
        wrap=True,
        label_visibility="collapsed",
    )
    if view == MAPS:
        _maps(pair)
    elif view == ANSWERS:
        _answers(played)
    else:
        _curves(pair)


def _curves(pair: Twins) -> None:
    panels: dict[str, list[RunLine]] = {"right": [], "loss": [], "gradient": []}
    for slot, (run, name) in enumerate(zip((pair.healthy, pair.twin), names(), strict=True)):
        curves = runs_access.curves(run)
        measured, steps = curves.validation, curves.steps
        if len(measured):
            right = measured["sequence_accuracy"]
            panels["right"].append(RunLine(name, slot, measured["step"], right))
        if len(steps):
            panels["loss"].append(RunLine(name, slot, steps["step"], steps["loss"]))
            panels["gradient"].append(RunLine(name, slot, steps["step"], steps["grad_norm"]))
    if not panels["loss"]:
        st.info(_("Waiting for the first measurement."), icon=":material/hourglass_empty:")
        return
    shown = [
        CurvePanel(_("right, unseen"), panels["right"], is_share=True),
        CurvePanel(_("loss"), panels["loss"], is_noisy=True),
        CurvePanel(_("gradient"), panels["gradient"], is_noisy=True),
    ]
    figure = plots.comparison(
        [panel for panel in shown if panel.lines], _("step"), window=_WINDOW, height=380
    )
    show.live_figure(
        figure, _("Sequences right (teacher forcing), loss, gradient norm."), key="bug-curves"
    )


def _maps(pair: Twins) -> None:
    kinds = modules_by_kind(pair.healthy.experiment)
    kind = st.segmented_control(
        _("Attention"),
        list(kinds),
        format_func=lambda name: _(KINDS[name].label),
        default=next(iter(kinds)),
        required=True,
        wrap=True,
        key=_KIND,
    )
    for column, run, name in zip(st.columns(2), (pair.healthy, pair.twin), names(), strict=True):
        with column:
            _grid(run, name, str(kind))


def _grid(run: Run, name: str, kind: str) -> None:
    """Show all heads of a run, on its first example at its last snapshot."""
    steps = run.snapshot_steps()
    if not steps:
        st.info(_("No snapshot yet."), icon=":material/hourglass_empty:")
        return
    experiment = run.experiment
    try:
        example = example_of(experiment, run.probe(), run.snapshot(steps[-1]), 0)
        view = replace(map_view(experiment, example, kind=kind), query_words=())
    except ValueError as error:
        show.problem(error)
        return
    title = _("{name}, step {step}", name=name, step=f"{steps[-1]:,}")
    style = GridStyle(chosen=(0, 0), theme=state.theme(), title=title)
    head_grid(view, style, on_pick=_nothing, key=f"bug-heads-{name}-{kind}")


def _answers(played: Round) -> None:
    if not played.answers:
        st.info(_("Run a probe first."), icon=":material/science:")
        return
    healthy, suspect = names()
    with st.container(height=400, border=False, key="bug-answers"):
        for name, answer in reversed(played.answers.items()):
            probe = PROBES[name]
            st.markdown(f"**{_(probe.question)}**")
            table = [
                (_(label), right, f"**{wrong}** ≠" if is_apart else wrong)
                for label, right, wrong, is_apart in answer
            ]
            show.facts(table, [_("measured"), healthy, suspect])
            st.caption(_(probe.healthy))


def _nothing(_layer: int, _head: int) -> None:
    """Do nothing: a head has nothing more to show here."""
