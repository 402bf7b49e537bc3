"""All heads as small maps, and one head as a large map and as lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import streamlit as st

from pages.attention import alignment, arithmetic, controls
from pages.attention import selection as chosen
from pages.attention.controls import MEAN
from pages.attention.selection_link import Offer, Selection
from pages.components import live_figure
from pages.components.effects import Tree, moving
from pages.components.heads import (
    GridStyle,
    OverPicture,
    SnapshotAnimation,
    head_grid,
    head_lines,
    single_frame,
)
from pages.i18n import _, paragraph
from pages.ui import state
from pages.ui.settings import glosses
from pages.ui.typed import escape
from tfm_core.inspect.attention.alignment import clearest_row
from tfm_core.inspect.attention.example import Example
from tfm_core.inspect.attention.explanations import rollout
from tfm_core.inspect.attention.head_labels import HeadLabels
from tfm_core.inspect.attention.map_view import MapView, map_view
from tfm_core.plots.heads import attention as plots
from tfm_core.plots.heads.attention import MANY_KEYS, outline_cells
from tfm_core.plots.palette import COLOURS, ORANGE
from tfm_core.probe.labels import CLS, KINDS, axes, kinds_of, modules_by_kind
from tfm_core.runs.run import Run

MAX_ROWS = 64
HIGHEST = 430  # pixels of a map: it fits the first screen


def in_words(run: Run, example: Example, selection: Selection) -> None:
    """Offer the map of the head as a list: each query and the key that it reads most."""
    view = one_head(run, example, selection)
    n = len(view.query_words)
    with st.expander(_("This map in words"), icon=":material/text_fields:"):
        rows = lines(view, range(min(n, MAX_ROWS)))
        st.markdown("\n".join(f"- {line}" for line in rows))
        if n > MAX_ROWS:
            st.caption(_("The first {n} of {all} rows; “Export” has them all.", n=MAX_ROWS, all=n))


def lines(view: MapView, rows: Iterable[int]) -> list[str]:
    """Return a sentence for each of some rows, safe in Markdown."""
    best = np.asarray(view.weights).argmax(-1)
    return [
        _(
            "{query}: reads “{key}” ({place}) most, {weight}",
            query=escape(view.query_words[i]),
            key=escape(view.key[best[i]]),
            place=best[i] + 1 + view.first[1],
            weight=f"{view.weights[i, best[i]]:.3f}",
        )
        for i in rows
    ]


def stretch_picker(run: Run, example: Example, selection: Selection) -> None:
    """Choose which tokens of a long text the maps show."""
    module = modules_by_kind(run.experiment)[selection.kind][selection.layer]
    n = max(axes(run.experiment, example.item, module).shape)
    if n < MANY_KEYS or selection.kind in ("patches", "picture"):
        return
    key = "attention-tokens"
    first, end = selection.tokens or (0, n)
    st.session_state[key] = (first + 1, min(end, n)) if first < n else (1, n)

    def picked() -> None:
        low, high = st.session_state[key]
        chosen.choose(run.id, tokens=None if (low, high) == (1, n) else (low - 1, high))

    st.slider(_("Tokens"), 1, n, key=key, on_change=picked, width=480)


def all_heads(run: Run, example: Example, selection: Selection) -> MapView:
    return map_view(
        run.experiment,
        example,
        kind=selection.kind,
        by=selection.row_names,
        say=_,
        glosses=glosses.shown(run.experiment),
    ).part(selection.stretch)


def one_head(run: Run, example: Example, selection: Selection) -> MapView:
    return map_view(
        run.experiment,
        example,
        kind=selection.kind,
        layer=selection.layer,
        head=selection.head,
        by=selection.row_names,
        say=_,
        glosses=glosses.shown(run.experiment),
    ).part(selection.stretch)


KIND_COLOURS = {
    "encoder": "encoder",
    "slots": "encoder",
    "patches": "encoder",
    "cross": "cross",
    "picture": "cross",
}


def heads(
    run: Run,
    example: Example,
    selection: Selection,
    offer: Offer,
    *,
    top: float | None,
    animation: SnapshotAnimation | None,
    labels: HeadLabels,
    dim: Sequence[bool] = (),
) -> None:
    """Show all heads of the chosen attention; a click picks one."""
    kind = kinds_of(run.experiment)[selection.kind]
    view = all_heads(run, example, selection)
    if animation is not None:
        animation = replace(animation, weights=view.cut(animation.weights))
    style = GridStyle(
        chosen=(selection.layer, selection.head),
        theme=state.theme(),
        top=top,
        dim=dim,
        animation=animation or single_frame(view.weights, example.step, labels.short),
        step=example.step,
        title=_("All heads: {kind}", kind=_(kind.label)),
        over=over_picture(run, example, selection),
    )
    head_grid(
        view,
        style,
        on_pick=lambda layer, head: chosen.choose(run.id, layer=layer, head=head),
        key="attention-heads",
        on_step=lambda step: controls.animation_left(run, selection, offer.steps, step),
    )
    st.caption(_("Click a head to see it large. {look_for}", look_for=_(kind.look_for)))
    if labels.n_examples > 1:
        st.caption(_("Labels: mean of {n} examples.", n=labels.n_examples))


def over_picture(run: Run, example: Example, selection: Selection) -> OverPicture | None:
    """Return the picture that the small maps are drawn over; None for matrices."""
    if selection.kind != "patches" or selection.small == "matrix" or example.picture is None:
        return None
    module = modules_by_kind(run.experiment)["patches"][0]
    names = axes(run.experiment, {}, module).query
    row, who = None, _("mean of all patches")
    if selection.patch not in ("", MEAN):
        row = names.index(selection.patch)
        who = _("read by patch {patch}", patch=selection.patch)
        if selection.patch == CLS:
            who = _("read by CLS")
    return OverPicture(example.picture, row, int(run.experiment.has_cls), who)


def title(
    selection: Selection,
    labels: Sequence[tuple[int, Sequence[str]]],
    step: int,
    n_heads: int,
    *,
    name: str,
) -> None:
    """Show the chosen head and its role, following the animation.

    labels: of all heads, at each step.
    """
    head = _("Layer {layer}, head {head}", layer=selection.layer + 1, head=selection.head + 1)
    number = selection.layer * n_heads + selection.head
    trees: dict[int, Tree] = {}
    for at, words in labels:
        what: Tree = ["span", "what", f": {words[number]}" if words else ""]
        trees[at] = ["h2", "", ["strong", "", head], what]
    moving(trees, step, animation=name, key="attention-title")


def one_map(run: Run, example: Example, selection: Selection, *, top: float | None) -> None:
    """Show the chosen head as a map; a click or Enter on a cell opens its arithmetic."""
    module = modules_by_kind(run.experiment)[selection.kind][selection.layer]
    view = one_head(run, example, selection)
    figure = plots.head_map(view, theme=state.theme(), top=top)
    truth = view.cut(alignment.true_cells(run.experiment, example, module))
    outline_cells(figure, truth, ORANGE)
    _explanation(view, truth, selection.kind)
    is_computed = not run.experiment.task.is_foreign
    if selection.view == "arithmetic" and is_computed:
        names = axes(run.experiment, example.item, module)
        cell = arithmetic.cell_at(example, selection, module, names)
        arithmetic.outline(figure, cell, names, view)
    figure.update_layout(
        uirevision=f"{selection.kind} {view.query} {view.key}",
        height=min(figure.layout.height, HIGHEST),
    )
    if not is_computed:
        live_figure.live_figure(
            figure, key="attention-map", follows=True, name=_("Map of the head")
        )
        return
    rows_before, keys_before = view.first

    def picked(query: int, key: int) -> None:
        cell = (query + rows_before, key + keys_before)
        chosen.choose(run.id, cell=cell, view="arithmetic")

    live_figure.live_figure(
        figure,
        key="attention-map",
        follows=True,
        on_pick=picked,
        name=_("Map of the head: arrow keys move, Enter computes a cell"),
    )
    st.caption(_("Click a cell to compute it."))


def can_roll_out(run: Run, selection: Selection) -> bool:
    """Return whether the maps of a kind go from tokens to the same tokens, in several layers."""
    return KINDS[selection.kind].query == KINDS[selection.kind].key and (
        len(modules_by_kind(run.experiment)[selection.kind]) > 1
    )


def rollout_over_layers(run: Run, example: Example, selection: Selection) -> None:
    """Show what of each input token reaches each position through all layers."""
    view = one_head(run, example, selection)
    maps = example.maps(modules_by_kind(run.experiment)[selection.kind])
    reached = rollout(list(maps)).astype(np.float32)
    figure = plots.head_map(replace(view, weights=view.cut(reached)), theme=state.theme(), top=None)
    figure.update_layout(height=min(figure.layout.height, HIGHEST))
    live_figure.live_figure(figure, key="attention-rollout", name=_("Rollout over all layers"))
    st.caption(paragraph("attention/rollout"))


def _explanation(view: MapView, truth: npt.NDArray[np.bool_], kind: str) -> None:
    """Say in words what the frames mean and what the clearest row of the map reads."""
    sentences = []
    if truth.any():
        sentences.append(
            _("Orange frames: the digit that the word names.")
            if kind == "picture"
            else _("Orange frames: the true source of each token.")
        )
    row = clearest_row(view.weights, view.allowed, truth)
    if row is not None:
        sentences.append(_example(view, row))
    if sentences:
        st.caption(" ".join(sentences))


def _example(view: MapView, row: int) -> str:
    """Return what a row of a map reads most; of two patches by their places."""
    best = int(view.weights[row].argmax())
    places = [name.split(",") for name in (view.query[row], view.key[best])]
    if all(len(place) == 2 and all(map(str.isdigit, place)) for place in places):
        return _(
            "The patch in row {row}, column {column} looks most at row {to_row}, column "
            "{to_column} ({weight}).",
            row=places[0][0],
            column=places[0][1],
            to_row=places[1][0],
            to_column=places[1][1],
            weight=f"{view.weights[row, best]:.2f}",
        )
    (line,) = lines(view, [row])
    return _("For example, row {reading}.", reading=line)


def patch_by_patch(run: Run, example: Example, selection: Selection, *, top: float | None) -> None:
    controls.segments(
        _("Patch by patch"),
        {"map": _("Map"), "lines": _("Lines")},
        "lines" if selection.view == "lines" else "map",
        "view",
        lambda view: chosen.choose(run.id, view=view),
        label_visibility="collapsed",
    )
    if selection.view == "lines":
        one_as_lines(run, example, selection)
    else:
        one_map(run, example, selection, top=top)


def one_as_lines(run: Run, example: Example, selection: Selection) -> None:
    """Show the chosen head as lines from keys to queries: the thicker, the more weight."""
    head_lines(
        one_head(run, example, selection),
        ink=COLOURS[KIND_COLOURS.get(selection.kind, "decoder")],
        pin=selection.pin,
        on_pin=lambda pin: chosen.choose(run.id, pin=pin),
        key="attention-lines",
    )
