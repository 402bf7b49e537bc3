"""What is seen: all heads at a glance, and one head as a map, as lines or as arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import streamlit as st

from pages.attention import alignment, arithmetic, controls
from pages.attention import selection as chosen
from pages.attention.selection_link import Offer, Selection
from pages.components import live_figure
from pages.components.animation import SnapshotAnimation, single_frame
from pages.components.head_grid import head_grid
from pages.components.head_lines import head_lines
from pages.i18n import _
from pages.ui import state
from pages.ui.typed import escape
from tfm_core.inspect.attention.example import Example
from tfm_core.plots import attention as plots
from tfm_core.plots.palette import COLOURS
from tfm_core.probe.labels import KINDS, Axes, axes, modules_by_kind
from tfm_core.runs.run import Run

MOST_ROWS = 64


def map_in_words(
    weights: npt.NDArray[Any], query_tokens: Sequence[str], key_tokens: Sequence[str]
) -> None:
    """Offer a map (Q, K) as a list: each query and the key that gets most of it."""
    with st.expander(_("This map in words"), icon=":material/text_fields:"):
        st.markdown("\n".join(f"- {line}" for line in lines(weights, query_tokens, key_tokens)))
        if len(query_tokens) > MOST_ROWS:
            st.caption(
                _("The first {n} of {all} rows; “Take it away” has every number.").format(
                    n=MOST_ROWS, all=len(query_tokens)
                )
            )


def lines(
    weights: npt.NDArray[Any], query_tokens: Sequence[str], key_tokens: Sequence[str]
) -> list[str]:
    """Return a sentence for each query, MOST_ROWS at most, safe in Markdown."""
    rule = _("{i}, “{query}”, reads “{key}” ({place}) most: {weight}")
    best = np.asarray(weights).argmax(-1)
    return [
        rule.format(
            i=i + 1,
            query=escape(query),
            key=escape(key_tokens[best[i]]),
            place=best[i] + 1,
            weight=f"{weights[i, best[i]]:.3f}",
        )
        for i, query in enumerate(query_tokens[:MOST_ROWS])
    ]


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
    labels: Sequence[str] = (),
    dim: Sequence[bool] = (),
) -> None:
    """Show all heads of the chosen attention; a click picks one."""
    st.markdown(_("**All heads**"))
    modules = modules_by_kind(run.experiment)[selection.kind]
    names = axes(run.experiment, example.item, modules[0])
    maps = example.maps(modules)
    head_grid(
        maps,
        names.query,
        names.key,
        chosen=(selection.layer, selection.head),
        on_pick=lambda layer, head: chosen.choose(run.id, layer=layer, head=head),
        theme=state.theme(),
        key="attention-heads",
        may_attend=names.may_attend,
        top=top,
        dim=dim,
        animation=single_frame(maps, example.step, labels) if animation is None else animation,
        step=example.step,
        on_step=lambda step: controls.animation_left(run, selection, offer.steps, step),
    )
    st.caption(
        _(
            "Every small map is one head: layers down, heads across. Look for heads that differ; "
            "point at a cell for its tokens and weight, click a map to see it large."
        )
    )


def one_head(
    run: Run,
    example: Example,
    selection: Selection,
    *,
    top: float | None,
    label: str = "",
) -> None:
    """Show the chosen head large, with its tokens, the way that is chosen."""
    module = modules_by_kind(run.experiment)[selection.kind][selection.layer]
    names = axes(run.experiment, example.item, module)
    title = _("**Layer {layer}, head {head}**")
    words = title.format(layer=selection.layer + 1, head=selection.head + 1)
    st.markdown(f"{words}: {label}" if label else words)
    controls.segments(
        _("Show this head as"),
        {"map": _("Map"), "lines": _("Lines"), "arithmetic": _("Arithmetic")},
        selection.view,
        "view",
        lambda view: chosen.choose(run.id, view=view),
        _("The same weights: as a map, as lines between tokens, or how one of them is computed."),
    )
    if selection.view == "lines":
        _lines(run, example, selection, module, names)
        return
    _map(run, example, selection, module, names, top=top)
    if selection.view == "arithmetic":
        arithmetic.arithmetic(run, example, selection, module, names)


def _map(
    run: Run,
    example: Example,
    selection: Selection,
    module: str,
    names: Axes,
    *,
    top: float | None,
) -> None:
    kind = KINDS[selection.kind]
    figure = plots.head_map(
        example.maps([module])[0, selection.head],
        names.query,
        names.key,
        theme=state.theme(),
        may_attend=names.may_attend,
        top=top,
        query_title=_(kind.query),
        key_title=_(kind.key),
    )
    is_known = alignment.outline(figure, run.experiment, example, module)
    if selection.view == "arithmetic":
        cell = arithmetic.cell_at(example, selection, module, names)
        arithmetic.outline(figure, cell, names)
    figure.update_layout(uirevision=f"{selection.kind} {names.query} {names.key}")
    live_figure.live_figure(
        figure,
        key="attention-map",
        follows=True,
        on_pick=lambda query, key: chosen.choose(run.id, cell=(query, key), view="arithmetic"),
    )
    words = _("{look_for} Click a cell for its arithmetic.").format(look_for=_(kind.look_for))
    if is_known:
        words += (
            _(" Outlined: the patches of the digit that the next word names.")
            if selection.kind == "picture"
            else _(" Outlined: the source words that a token truly comes from.")
        )
    st.caption(words)
    weights = example.maps([module])[0, selection.head]
    map_in_words(weights, names.query, names.key)


def _lines(run: Run, example: Example, selection: Selection, module: str, names: Axes) -> None:
    kind = KINDS[selection.kind]
    head_lines(
        example.maps([module])[0, selection.head],
        names.query,
        names.key,
        titles=(
            _("{token} (attends from)").format(token=_(kind.query)),
            _("{token} (is attended to)").format(token=_(kind.key)),
        ),
        ink=COLOURS[KIND_COLOURS.get(selection.kind, "decoder")],
        pin=selection.pin,
        on_pin=lambda pin: chosen.choose(run.id, pin=pin),
        key="attention-lines",
        may_attend=names.may_attend,
    )
    st.caption(
        _(
            "A thicker line is more weight; where the mask forbids, there is none. Look for tokens "
            "that many lines meet at, and for lines that all slant alike."
        )
    )
