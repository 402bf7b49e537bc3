"""Answers and attention for the same example and step, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import streamlit as st

from pages.compare.choice import StyledRun
from pages.compare.link import AT, EXAMPLE, KIND, LAST
from pages.components.effects import moving
from pages.components.heads import GridStyle, OverPicture, head_grid
from pages.i18n import _
from pages.ui import show, state
from pages.ui.address import view_link
from pages.ui.model import answer
from pages.ui.model.task_panels import example_name
from pages.ui.navigation import page_table
from pages.ui.settings import glosses
from pages.ui.typed import escape
from tfm_core.inspect.attention.comparison import common_step, nearest, same_example
from tfm_core.inspect.attention.example import Example, example_of
from tfm_core.inspect.attention.map_view import map_view
from tfm_core.probe.labels import CLS, KINDS, kinds_of, modules_by_kind
from tfm_core.probe.types import Probe

MAX = 4
"""Runs shown side by side."""
_HEADS = "compare-heads"


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """A run, its examples, and the steps of its snapshots."""

    entry: StyledRun
    probe: Probe
    steps: list[int]


def same_example_view(shown: Sequence[StyledRun], n_runs: int) -> None:
    """Show one example in up to MAX runs, at the snapshots nearest to one step.

    shown: one run per configuration, of ``n_runs`` in total.
    """
    st.header(_("Same example, same step"), anchor=False)
    sides, lacking = _sides(shown[:MAX])
    if len(shown) < n_runs:
        st.caption(_("One run per configuration."))
    if len(shown) > MAX:
        st.caption(_("Showing the first {most} of {n} runs.", n=len(shown), most=MAX))
    if not sides:
        st.caption(_("No snapshots yet."))
        return
    index, kind, step = _controls(sides)
    for column, entry in zip(st.columns(len(shown[:MAX]), gap="medium"), shown, strict=False):
        with column:
            side = next((each for each in sides if each.entry is entry), None)
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


def _controls(sides: Sequence[Side]) -> tuple[int, str, int]:
    first = sides[0]
    experiment, items = first.entry.run.experiment, first.probe.items
    kinds = tuple(
        dict.fromkeys(
            kind
            for side in sides
            for kind in sorted(
                modules_by_kind(side.entry.run.experiment),
                key=lambda kind: kind not in ("cross", "picture"),
            )
        )
    )
    steps = sorted({step for side in sides for step in side.steps})
    last = common_step([side.steps for side in sides]) or steps[0]
    example = replace(EXAMPLE, high=max(0, len(items) - 1))
    of_kind = replace(KIND, names=kinds, first=kinds[0])
    problems = [view_link.receive(parameter) for parameter in (example, of_kind, AT)]
    requested = st.session_state[AT.key]
    st.session_state[_STEP] = last if requested == LAST else nearest(requested, steps)
    with st.container(
        horizontal=True, vertical_alignment="bottom", gap="medium", key="compare-beside"
    ):
        index = st.selectbox(
            _("Example"),
            range(len(items)),
            format_func=lambda number: example_name(experiment, items[number], number + 1),
            key=EXAMPLE.key,
            persist_state="session",
            width=280,
        )
        if len(steps) > 1:
            st.select_slider(
                _("Step"),
                steps,
                key=_STEP,
                format_func=lambda step: f"{step:,}",
                on_change=_to_step,
                args=(last,),
                width=200,
            )
        kind = st.segmented_control(
            _("Attention"),
            kinds,
            format_func=lambda name: _(KINDS[name].label),
            key=KIND.key,
            required=True,
            persist_state="session",
        )
    for sentence in problems:
        view_link.warn(sentence)
    chosen = kind if kind in kinds else kinds[0]
    view_link.say(example, index or 0)
    view_link.say(of_kind, chosen)
    view_link.say(AT, st.session_state[AT.key])
    return index or 0, chosen, int(st.session_state[_STEP])


_STEP = "compare-step"


def _to_step(last: int) -> None:
    """Store the chosen step; at the last common one the page follows the training."""
    step = int(st.session_state[_STEP])
    st.session_state[AT.key] = LAST if step == last else step


def _side(side: Side, first: Side, index: int, kind: str, step: int) -> None:
    run = side.entry.run
    at = nearest(step, side.steps)
    if at != step:
        words = _("No snapshot at step {step}: showing {at}.", step=f"{step:,}", at=f"{at:,}")
        st.caption(words)
    try:
        own = same_example(first.probe, side.probe, index)
        example = example_of(run.experiment, side.probe, run.snapshot(at), own)
    except ValueError as error:
        st.caption(escape(_(error)))
        return
    tree = answer.line(run.experiment, example)
    moving({at: tree}, at, animation="", key=f"compare-answer-{side.entry.slot}")
    modules = modules_by_kind(run.experiment).get(kind)
    if modules is None:
        st.caption(_("This model has no such attention."))
        return
    if own >= len(side.probe.attended):
        st.caption(_("No attention was saved for this example."))
        return
    try:
        _heads(side.entry, example, kind)
    except ValueError as error:
        show.problem(error)


def _heads(entry: StyledRun, example: Example, kind: str) -> None:
    experiment = entry.run.experiment
    view = map_view(experiment, example, kind=kind, say=_, glosses=glosses.shown(experiment))
    chosen_heads = st.session_state.setdefault(_HEADS, {})
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
    st.page_link(
        page_table.path_of("attention"),
        label=_("Open layer {layer}, head {head}", layer=chosen[0] + 1, head=chosen[1] + 1),
        icon=page_table.PAGES["attention"].icon,
        query_params={
            "run": entry.run.id,
            "kind": kind,
            "layer": str(chosen[0] + 1),
            "head": str(chosen[1] + 1),
            "step": str(example.step),
        },
    )
