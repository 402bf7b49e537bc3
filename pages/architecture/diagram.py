"""The diagram of the Build page, and a close-up of one block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import streamlit as st

from pages.components.diagram import FILLS, looks
from pages.components.diagram import diagram as component
from pages.i18n import _, paragraph
from pages.ui.navigation import page_table
from pages.ui.settings import names_choice
from pages.ui.settings.model_choice import Chosen
from tfm_core.anatomy.names import Scheme
from tfm_core.config import built
from tfm_core.facts.compute import layers
from tfm_core.inspect.diagram import graph as drawing
from tfm_core.inspect.diagram.graph import Diagram, DiagramColours
from tfm_core.inspect.equations.model import equations
from tfm_core.plots.palette import INKS, LINES
from tfm_core.variants.forms import RESIDUALS

if TYPE_CHECKING:
    from tfm_core.inspect.diagram.drawing import DiagramNode

MANY = 12
"""Blocks of a stack from which on those to draw are chosen: more are slow to lay out."""
MAX_ROWS = 8
_BLOCK, _LIST = "build-block", "build-block-list"
_UNFOLDED, _RANGE = "build-unfolded", "build-range"
_FIRST = ("attention", "encoder.layers.0.self_attention", "decoder.layers.0.self_attention")


def view(chosen: Chosen, scheme: Scheme) -> None:
    opened = _opened(chosen)
    # a fragment: a click on a block draws the block alone
    st.fragment(_view)(chosen, opened, scheme)


def _opened(chosen: Chosen) -> range:
    """Ask which blocks to draw one by one; none: equal blocks are drawn once."""
    n = max(layers(chosen.model))
    if n < 2:
        return range(0)
    with st.container(horizontal=True, vertical_alignment="center"):
        is_unfolded = st.toggle(
            _("Draw every block"),
            key=_UNFOLDED,
            persist_state="session",
            help=_("Off: equal blocks are drawn once."),
        )
        if not is_unfolded or n <= MANY:
            return range(n) if is_unfolded else range(0)
        first, last = st.slider(
            _("Blocks to draw, of {n}", n=n),
            1,
            n,
            (1, 3),
            key=f"{_RANGE}-{n}",
            persist_state="session",
        )
    return range(first - 1, last)


def _view(chosen: Chosen, opened: range, scheme: Scheme) -> None:
    architecture = chosen.architecture
    diagram = drawing.diagram(
        chosen.model,
        chosen.shape,
        DiagramColours(INKS["light"], LINES["light"], FILLS["light"]),
        src_len=architecture.src_len,
        tgt_len=architecture.tgt_len,
        opened=opened,
        say=_,
    )
    nodes = diagram.nodes
    left, right = st.columns([5, 4], gap="medium")
    with right:  # first: the diagram marks the block that the list picks
        name = _pick(nodes)
    with left:
        component(
            diagram.dot,
            {name: _(node.title) for name, node in nodes.items()},
            across=diagram.across,
            chosen=name,
            looks=looks(),
            table=_table(diagram),
            on_pick=_remember,
            key="build-diagram",
        )
        st.caption(_words(chosen))
    with right:
        _close_up(chosen, nodes[name], scheme)


def _table(diagram: Diagram) -> list[list[str]]:
    """Return each block with its numbers and the blocks it reads from, below a head."""

    def read(name: str, words: str) -> str:
        title = _(diagram.nodes[name].title)
        return f"{title}: {_(words)}" if words else title

    return [
        [_("Block"), _("Numbers"), _("Reads from")],
        *(
            [
                _(node.title),
                ", ".join(map(_, node.count)),
                ", ".join(read(*one) for one in diagram.reads[name]),
            ]
            for name, node in diagram.nodes.items()
        ),
    ]


def _words(chosen: Chosen) -> str:
    if not chosen.model.has_blocks:
        return paragraph("architecture/diagram-recurrent", d=built(chosen.model).d_model)
    residual = RESIDUALS[getattr(chosen.model, "residual", "normal")]
    if not residual.has_sum:
        kind = "no-residuals"
    elif residual.is_normed("self_attention"):
        kind = "residuals-behind-norms"
    else:
        kind = "residual-behind-norm" if residual.normed else "residuals"
    width = _("B is the batch; the width {d} never changes.", d=built(chosen.model).d_model)
    return f"{width} {paragraph(f'architecture/diagram-{kind}')}"


def _remember(name: str) -> None:
    st.session_state[_BLOCK] = name


def _pick(nodes: Mapping[str, DiagramNode]) -> str:
    """Draw the list of blocks; it and the diagram mark the same block."""
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
    )
    return str(name)


def _close_up(chosen: Chosen, node: DiagramNode, scheme: Scheme) -> None:
    """Show a block's equations, parameters and code, and lead to its steps of the walk."""
    from tfm_core.inspect.diagram.graph import code_of

    by_module = equations(chosen.model, chosen.shape)
    for name in node.equations:
        equation = by_module[name]
        st.markdown(f"**{_(equation.title)}** · {_(equation.source)}")
        st.latex(_(equation.latex))
    _parameters(chosen, node, scheme)
    _steps(chosen, node)
    st.header(_("Its code"), anchor=False)
    st.code(
        code_of(node, chosen.model, chosen.shape), language="python", height=420, wrap_lines=True
    )


def _parameters(chosen: Chosen, node: DiagramNode, scheme: Scheme) -> None:
    from tfm_core.inspect.diagram.graph import parameters_of

    rows = parameters_of(node, chosen.model, chosen.shape, scheme)
    if not rows:
        st.markdown(_("**No parameters** of its own."))
        return
    total = sum(row.n_parameters for row in rows)
    lines = [_("**{n} parameters**", n=f"{total:,}")]
    if node.n_blocks > 1:
        each = sum(row.n_parameters for row in rows if row.repeats > 1) // node.n_blocks
        lines = [
            _(
                "**{n} parameters** in all {blocks} blocks, {each} in each",
                n=f"{total:,}",
                blocks=node.n_blocks,
                each=f"{each:,}",
            )
        ]
    for row in rows[:MAX_ROWS]:
        name = f"`{row.module}`" if row.module else f"`{row.here}` ({_(names_choice.NO_NAME)})"
        line = f"- {name}: {row.formula} = **{row.n_parameters:,}**"
        tied = _(" (tied to `{name}`)", name=row.tied_to) if row.tied_to else ""
        lines.append(line + tied)
    if len(rows) > MAX_ROWS:
        lines.append(_("- and {n} more, on the Parameters page", n=len(rows) - MAX_ROWS))
    st.markdown("\n".join([lines[0], "", *lines[1:]]))


def _steps(chosen: Chosen, node: DiagramNode) -> None:
    from tfm_core.inspect.walk.subject import walk_index

    try:
        index = walk_index(chosen.model, chosen.shape)
    except ValueError as error:
        st.caption(_(error))
        return
    entries = [entry for entry in index if entry.name in node.steps]
    if not entries:
        return
    link = {"show": chosen.name, "walk-source": "mine"} | (
        {"run": chosen.run.id} if chosen.run else {}
    )
    if node.layer is not None:
        link["block"] = str(node.layer + 1)
    if chosen.experiment is None:  # a published model has no numbers here
        st.markdown(_("**Walk through its shapes**"))
    else:
        st.markdown(_("**Walk through its numbers**"))
    with st.container(horizontal=True, gap="xsmall"):
        for entry in entries:
            st.page_link(
                page_table.path_of("walk"),
                label=_("Step {n}: {title}", n=entry.number, title=_(entry.title)),
                icon=":material/footprint:",
                query_params={**link, "step": entry.name},
                width="content",
            )
