"""The diagram of the Build page, and the block that is picked in it, close up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import streamlit as st

from pages.components.diagram import diagram as component
from pages.i18n import _
from pages.ui import page_table
from pages.ui.model_choice import Chosen
from tfm_core.facts.compute import layers
from tfm_core.inspect.diagram import graph as drawing
from tfm_core.inspect.diagram.graph import DiagramColours
from tfm_core.inspect.equations.model import equations
from tfm_core.plots.palette import INKS, LINES
from tfm_core.variants.residuals import RESIDUALS

if TYPE_CHECKING:
    from tfm_core.inspect.diagram.drawing import DiagramNode

FILLS = {
    "light": {
        "data": "#fbfaf7", "embedding": "#f6e3c3", "attention": "#cfe2f3", "cross": "#ecd5e4",
        "feed-forward": "#cfe9e1", "norm": "#eceae3", "output": "#ece5c4", "sum": "#fbfaf7",
        "encoder": "#eef4f8", "decoder": "#f9efe8",
    },
    "dark": {
        "data": "#14171c", "embedding": "#4d3a17", "attention": "#1d3d5a", "cross": "#4a2d40",
        "feed-forward": "#17443a", "norm": "#2c323b", "output": "#453e1a", "sum": "#14171c",
        "encoder": "#182029", "decoder": "#241c18",
    },
}  # fmt: skip
MANY = 12
"""Blocks of a stack from which on those to draw are chosen: more are slow to lay out."""
MAX_ROWS = 8
_BLOCK, _LIST = "build-block", "build-block-list"
_UNFOLDED, _RANGE = "build-unfolded", "build-range"
_FIRST = ("attention", "encoder.layers.0.self_attention", "decoder.layers.0.self_attention")


def view(chosen: Chosen) -> None:
    """Draw the diagram, and beside it the block that is picked."""
    opened = _opened(chosen)
    # a fragment: a click on a block draws the block alone
    st.fragment(_view)(chosen, opened)


def _opened(chosen: Chosen) -> range:
    """Ask which blocks to draw one by one; none: equal blocks are drawn once."""
    n = max(layers(chosen.model))
    if n < 2:
        return range(0)
    with st.container(horizontal=True, vertical_alignment="center"):
        is_unfolded = st.toggle(
            _("Draw block by block"),
            key=_UNFOLDED,
            persist_state="session",
            help=_("Equal blocks are drawn once; or one by one."),
        )
        if not is_unfolded or n <= MANY:
            return range(n) if is_unfolded else range(0)
        first, last = st.slider(
            _("Blocks drawn one by one, of {n}", n=n),
            1,
            n,
            (1, 3),
            key=f"{_RANGE}-{n}",
            persist_state="session",
            help=_("The others share a box; drawing all of them takes a moment."),
        )
    return range(first - 1, last)


def _view(chosen: Chosen, opened: range) -> None:
    known = chosen.architecture
    looks: dict[str, dict[str, str]] = {
        theme: {**FILLS[theme], "ink": INKS[theme], "line": LINES[theme]} for theme in INKS
    }
    drawn = drawing.diagram(
        chosen.model,
        chosen.shape,
        DiagramColours(INKS["light"], LINES["light"], FILLS["light"]),
        src_len=known.src_len,
        tgt_len=known.tgt_len,
        opened=opened,
    )
    nodes = drawn.nodes
    left, right = st.columns([5, 4], gap="medium")
    with right:  # first: what is picked in the list is marked in the diagram
        name = _pick(nodes)
    with left:
        component(
            drawn.dot,
            {name: _(node.title) for name, node in nodes.items()},
            across=drawn.across,
            chosen=name,
            looks=looks,
            on_pick=_remember,
            key="build-diagram",
        )
        st.caption(_words(chosen).format(d=chosen.model.d_model))
    with right:
        _close_up(chosen, nodes[name])


def _words(chosen: Chosen) -> str:
    """Say what to look for in the diagram."""
    if not chosen.model.has_blocks:
        return _(
            "Click a block to look into it. B is the batch. Every step of the decoder needs the "
            "one before it; the encoder’s states, {d} wide, are read again at each."
        )
    residual = RESIDUALS[getattr(chosen.model, "residual", "normal")]
    if not residual.has_sum:
        return _(
            "Click a block to look into it. B is the batch. No dashed arrow leads past a layer: "
            "there are no residuals, a mistake worth seeing. Follow the width, {d}: it never "
            "changes inside the stack."
        )
    if residual.is_normed("self_attention"):
        return _(
            "Click a block to look into it. B is the batch. Dashed arrows are residuals: they "
            "begin behind each norm, a mistake worth seeing, so nothing passes a layer unchanged. "
            "Follow the width, {d}: it never changes inside the stack."
        )
    if residual.normed:
        return _(
            "Click a block to look into it. B is the batch. Dashed arrows are residuals. The one "
            "past the feed-forward layer begins after the norm, a common mistake: nothing passes "
            "that layer unchanged. Follow the width, {d}: it never changes inside the stack."
        )
    return _(
        "Click a block to look into it. B is the batch. Dashed arrows are residuals: they "
        "carry each token past a layer unchanged. Follow the width, {d}: it never changes "
        "inside the stack."
    )


def _remember(name: str) -> None:
    st.session_state[_BLOCK] = name


def _pick(nodes: Mapping[str, DiagramNode]) -> str:
    """Draw the list of blocks, which says the same as the marked one of the diagram."""
    name = st.session_state.get(_BLOCK)
    if name not in nodes:
        first = [name for name in _FIRST if name in nodes]
        name = first[0] if first else next(iter(nodes))
    st.session_state[_LIST] = name
    st.selectbox(
        _("One block close up"),
        list(nodes),
        format_func=lambda name: _(nodes[name].title),
        key=_LIST,
        on_change=lambda: _remember(st.session_state[_LIST]),
        help=_("The same as a click on a block of the diagram."),
    )
    return str(name)


def _close_up(chosen: Chosen, one: DiagramNode) -> None:
    """Show a block's equations, parameters and code, and lead to its steps of the walk."""
    from tfm_core.inspect.diagram.graph import code_of

    known = equations(chosen.model, chosen.shape)
    for name in one.equations:
        equation = known[name]
        st.markdown(f"**{_(equation.title)}** · {equation.source}")
        st.latex(equation.latex)
    _parameters(chosen, one)
    _steps(chosen, one)
    st.header(_("Its code, as in the whole file"), anchor=False)
    st.code(
        code_of(one, chosen.model, chosen.shape), language="python", height=420, wrap_lines=True
    )


def _parameters(chosen: Chosen, one: DiagramNode) -> None:
    from tfm_core.inspect.diagram.graph import parameters_of

    rows = parameters_of(one, chosen.model, chosen.shape)
    if not rows:
        st.markdown(_("**No parameters** of its own."))
        return
    total = sum(row.n_parameters for row in rows)
    lines = [_("**{n} parameters**", n=f"{total:,}")]
    if one.n_blocks > 1:
        each = sum(row.n_parameters for row in rows if "–" in row.module) // one.n_blocks
        lines = [
            _(
                "**{n} parameters** in all {blocks} blocks, {each} in each",
                n=f"{total:,}",
                blocks=one.n_blocks,
                each=f"{each:,}",
            )
        ]
    for row in rows[:MAX_ROWS]:
        tied = _(", tied to `{name}`", name=row.tied_to) if row.tied_to else ""
        lines.append(f"- `{row.module or 'cls'}`: {row.formula} = **{row.n_parameters:,}**{tied}")
    if len(rows) > MAX_ROWS:
        lines.append(_("- and {n} more; the Parameters page has them all",
            n=len(rows) - MAX_ROWS))  # fmt: skip
    st.markdown("\n".join([lines[0], "", *lines[1:]]))


def _steps(chosen: Chosen, one: DiagramNode) -> None:
    """Link to the steps of the walk that go through this block."""
    from tfm_core.inspect.walk.subject import walk_index

    try:
        index = walk_index(chosen.model, chosen.shape)
    except ValueError as error:
        st.caption(_(error))
        return
    entries = [entry for entry in index if entry.name in one.steps]
    if not entries:
        return
    link = {"show": chosen.name, "walk-source": "mine"} | (
        {"run": chosen.run.id} if chosen.run else {}
    )
    if one.layer is not None:
        link["block"] = str(one.layer + 1)
    if chosen.experiment is None:  # a published model has no numbers here
        st.markdown(_("**Walk through this**, by its shapes"))
    else:
        st.markdown(_("**Walk through this**, with the numbers"))
    with st.container(horizontal=True, gap="xsmall"):
        for entry in entries:
            st.page_link(
                page_table.path_of("walk"),
                label=_("Step {n}: {title}", n=entry.number, title=_(entry.title)),
                icon=":material/footprint:",
                query_params={**link, "step": entry.name},
                width="content",
            )
