"""The backward pass: autograd's graph, folded, and the gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import streamlit as st

from pages.i18n import _, paragraph
from pages.training_step import state as training_step_state
from pages.training_step.state import ModelAtStep
from pages.ui import show, state
from tfm_core.plots.model.walk import tensor_map
from tfm_core.plots.palette import INKS, LINES
from tfm_core.plots.training import training_step as plots

if TYPE_CHECKING:
    from tfm_core.inspect.training_step.graph import Graph
    from tfm_core.training.loop import Trainer

FILLS = {
    "light": {"loss": "#f6d9c3", "group": "#cfe2f3", "single": "#fbfaf7", "parameter": "#ecd5e4"},
    "dark": {"loss": "#5a3216", "group": "#1d3d5a", "single": "#14171c", "parameter": "#4a2d40"},
}
_TALL = 12  # groups of a graph that gets a window of its own to scroll in
_WINDOW = 32  # rows and columns of the heatmap


def view(model_at: ModelAtStep) -> None:
    _graph(model_at)
    gradients = training_step_state.cached("gradients", model_at, (), _gradients)
    own_name = training_step_state.own_names_of(model_at)
    names = [own_name(name) for name in gradients]
    norms = np.array([np.linalg.norm(gradient) for gradient in gradients.values()], np.float32)
    show.figure(
        plots.gradient_norms(names, norms, [gradient.size for gradient in gradients.values()]),
        _("One bar per parameter, from input to output."),
        key="training-step-norms",
    )
    _heatmap(dict(zip(names, gradients.values(), strict=True)))


def _graph(model_at: ModelAtStep) -> None:
    from tfm_core.inspect.training_step.fold import fold, groups_of
    from tfm_core.inspect.training_step.graph import graph_of

    graph: Graph = training_step_state.cached("graph", model_at, (), graph_of)
    show.prose(paragraph("training_step/graph", n=len(graph[0])))
    opened = st.selectbox(
        _("Open"),
        groups_of(graph),
        index=None,
        placeholder=_("nothing: one box for each part"),
        key="training-step-open",
    )
    folded, theme = fold(graph, opened or ""), state.theme()
    dot = plots.graph(folded, ink=INKS[theme], line=LINES[theme], fills=FILLS[theme], say=_)
    n_groups = len(folded[0])
    height: int | Literal["content"] = 620 if n_groups > _TALL else "content"
    with st.container(border=True, height=height, horizontal_alignment="center"):
        st.graphviz_chart(dot, width="content" if n_groups <= 30 else "stretch")
    st.caption(_("Arrows: norm and shape of the gradient. Boxes: its norm at the parameters."))


def _heatmap(gradients: dict[str, np.ndarray]) -> None:
    name = st.selectbox(
        _("One gradient as a map"),
        [name for name, gradient in gradients.items() if gradient.ndim >= 1],
        key="training-step-parameter",
    )
    values = gradients[name]
    flat = values.reshape(len(values), -1) if values.ndim > 1 else values[None, :]
    row, column = np.unravel_index(np.abs(flat).argmax(), flat.shape)
    tops = [
        int(np.clip(at - _WINDOW // 2, 0, max(0, size - _WINDOW)))
        for at, size in zip((row, column), flat.shape, strict=True)
    ]
    part = flat[tops[0] : tops[0] + _WINDOW, tops[1] : tops[1] + _WINDOW]
    labels = [
        [f"{axis}: {first + i + 1}" for i in range(size)]
        for axis, first, size in zip((_("row"), _("column")), tops, part.shape, strict=True)
    ]
    figure = tensor_map(
        part, *labels, row_title=_("row"), column_title=_("column"), theme=state.theme()
    )
    show.figure(
        figure,
        paragraph(
            "training_step/window",
            rows=part.shape[0],
            columns=part.shape[1],
            shape=" x ".join(map(str, values.shape)),
            value=float(flat[row, column]),
            row=int(row) + 1,
            column=int(column) + 1,
        ),
        key="training-step-gradient",
    )


def _gradients(trainer: Trainer) -> dict[str, np.ndarray]:
    from tfm_core.inspect.training_step.step import gradients

    return {name: gradient.numpy() for name, gradient in gradients(trainer)[1].items()}
