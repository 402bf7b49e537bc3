"""Two maps side by side, on the same example: another head, layer, snapshot or run."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import streamlit as st

from pages.attention import selection as chosen
from pages.attention.figures import one_head
from pages.attention.selection_link import Offer, Selection, nearest_step
from pages.i18n import _, paragraph
from pages.ui import show, state
from pages.ui.accounts import visitors
from pages.ui.runs import run_words, runs_access
from pages.ui.typed import escape
from tfm_core.data.own.sets import set_of
from tfm_core.inspect.attention.comparison import check_same_tokens, compare, same_example
from tfm_core.inspect.attention.example import Example, example_of
from tfm_core.plots.heads.attention import difference_map, head_map
from tfm_core.probe.labels import axes, modules_by_kind
from tfm_core.probe.types import Probe
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunNotFound
from tfm_core.sentences import StudentError


@dataclass(frozen=True, slots=True)
class Versus:
    """The other head. layer and head from 0; step None: the same; run None: the same."""

    layer: int
    head: int
    step: int | None = None
    run: str | None = None

    @property
    def text(self) -> str:
        step = "" if self.step is None else str(self.step)
        return f"{self.layer + 1}.{self.head + 1}.{step}.{self.run or ''}"


def parse(text: str) -> Versus | None:
    """Return the comparison of the link; None where it cannot be parsed."""
    parts = text.split(".")
    if len(parts) != 4:
        return None
    layer, head, step = (_number(part) for part in parts[:3])
    if not layer or not head or (parts[2] and step is None):
        return None
    return Versus(layer - 1, head - 1, step, parts[3] or None)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None


_SAME_RUN, _SAME_STEP = "", -1  # a select box shows None as nothing chosen


def side_by_side(
    run: Run, probe: Probe, example: Example, selection: Selection, offer: Offer
) -> None:
    """Choose what to compare the shown head with; show both maps and their difference."""
    versus = parse(selection.versus) or _first(selection, offer)
    try:
        other = run if versus.run is None else runs_access.open_run(versus.run)
        versus = _fitted(other, versus, selection)
        _pickers(run, other, versus, selection)
        theirs = _their_example(run, probe, other, example, versus, selection)
        _maps(run, other, example, theirs, versus, selection)
    except (ValueError, RunNotFound) as error:
        show.problem(error)


def _first(selection: Selection, offer: Offer) -> Versus:
    """Return the default comparison: the next head, or the first snapshot."""
    if offer.n_heads > 1:
        return Versus(selection.layer, (selection.head + 1) % offer.n_heads)
    return Versus(selection.layer, selection.head, offer.steps[0] if offer.steps else None)


def _fitted(other: Run, versus: Versus, selection: Selection) -> Versus:
    """Return the nearest head that the other run has. Raises ValueError where it has none."""
    if other.problem:
        raise StudentError(other.problem)
    modules = modules_by_kind(other.experiment).get(selection.kind)
    if modules is None:
        raise ValueError(
            _("The run “{name}” has no such attention; choose another run.", name=other.meta.name)
        )
    layer = min(versus.layer, len(modules) - 1)
    head = min(versus.head, other.experiment.model.n_heads - 1)
    return dataclasses.replace(versus, layer=layer, head=head)


def _pickers(run: Run, other: Run, versus: Versus, selection: Selection) -> None:
    def from_one(i: int) -> str:
        return str(i + 1)

    def change(name: str, value: Any) -> None:
        value = None if value in (_SAME_RUN, _SAME_STEP) else value
        chosen.choose(run.id, versus=dataclasses.replace(versus, **{name: value}).text)

    columns = st.columns([3, 1, 1, 2], vertical_alignment="bottom")
    is_own = selection.example is None
    runs = {_SAME_RUN: _("This run")} if is_own else _runs(run, other)
    n_layers = len(modules_by_kind(other.experiment)[selection.kind])
    steps = [] if is_own else other.snapshot_steps()
    same = _("The same step") if other.id == run.id else _("The nearest step")
    wanted: list[tuple[str, str, list[Any], Any, Any]] = [
        (_("Compare with"), "run", list(runs), versus.run or _SAME_RUN, runs.get),
        (_("Layer"), "layer", list(range(n_layers)), versus.layer, from_one),
        (_("Head"), "head", list(range(other.experiment.model.n_heads)), versus.head, from_one),
        (
            _("Step"),
            "step",
            [_SAME_STEP, *steps],
            versus.step if versus.step in steps else _SAME_STEP,
            lambda step: same if step == _SAME_STEP else f"{step:,}",
        ),
    ]
    for column, (label, name, options, value, words) in zip(columns, wanted, strict=True):
        key = f"attention-versus-{name}"
        st.session_state[key] = value
        column.selectbox(
            label,
            options,
            format_func=words,
            key=key,
            on_change=lambda name=name, key=key: change(name, st.session_state[key]),
        )


def _runs(run: Run, chosen: Run) -> dict[str, str]:
    """Return the runs of the same task and data: id -> name, this one first."""
    names = {_SAME_RUN: _("This run")}
    for other in [*visitors.at_hand(), chosen]:
        if other.problem or other.id == run.id:
            continue
        task, own = other.experiment.task, run.experiment.task
        if (task.kind, task.name, set_of(task)) == (own.kind, own.name, set_of(own)):
            names[other.id] = run_words.name(other)
    return names


def _their_example(
    run: Run,
    probe: Probe,
    other: Run,
    example: Example,
    versus: Versus,
    selection: Selection,
) -> Example:
    """Return the same example as the other run saw it. Raises ValueError where it did not."""
    if other.id == run.id and versus.step is None:
        return example
    steps = tuple(other.snapshot_steps())
    if selection.example is None or not steps:
        raise ValueError(_("Your own example can be compared only within this run."))
    theirs = probe if other.id == run.id else other.probe()
    index = same_example(probe, theirs, selection.example)
    step = nearest_step(example.step if versus.step is None else versus.step, steps)
    snapshot = other.snapshot(step)
    return example_of(other.experiment, theirs, snapshot, index)


def _maps(
    run: Run,
    other: Run,
    example: Example,
    theirs: Example,
    versus: Versus,
    selection: Selection,
) -> None:
    module = modules_by_kind(run.experiment)[selection.kind][selection.layer]
    their_module = modules_by_kind(other.experiment)[selection.kind][versus.layer]
    names = axes(run.experiment, example.item, module)
    their_names = axes(other.experiment, theirs.item, their_module)
    check_same_tokens((names.query, names.key), (their_names.query, their_names.key))
    left = one_head(run, example, dataclasses.replace(selection, tokens=None))
    right = dataclasses.replace(
        left,
        weights=theirs.maps([their_module])[0, versus.head],
        may_attend=theirs.masks[their_module],
    )
    both = compare(left.weights, right.weights, left.allowed | right.allowed)
    titles = (
        _title(selection.layer, selection.head, example.step, None),
        _title(versus.layer, versus.head, theirs.step, None if other.id == run.id else other),
    )
    left, right = left.part(selection.stretch), right.part(selection.stretch)
    top = None if selection.kind in {"patches", "picture"} else 1.0
    figures = (
        head_map(left, theme=state.theme(), top=top),
        head_map(right, theme=state.theme(), top=top),
        difference_map(left, right, state.theme(), names=(_("first"), _("second"))),
    )
    figures[2].data[0].colorbar.title.text = ""  # no room; the caption says it
    captions = (*titles, _("Second minus first"))
    for i, (column, figure) in enumerate(zip(st.columns(3), figures, strict=True)):
        with column:
            st.markdown(f"**{captions[i]}**")
            figure.update_layout(height=min(400, figure.layout.height))
            show.live_figure(figure, "", key=f"attention-compare-{i}")
    show.prose(
        paragraph(
            "attention/two-heads",
            moved=show.percent(both.moved),
            agreeing=show.percent(both.agreeing),
        )
    )


def _title(layer: int, head: int, step: int, run: Run | None) -> str:
    words = _(
        "Layer {layer}, head {head}, step {step}", layer=layer + 1, head=head + 1, step=f"{step:,}"
    )
    return words if run is None else f"{words}: {escape(run.meta.name)}"
