"""One training step in figures: losses, one answer, the graph, gradients, learning rates."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from html import escape

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from tfm_core.plots.chart import chart
from tfm_core.plots.palette import (
    BLUE,
    COLOURS,
    GREEN,
    GREY,
    INKS,
    LINES,
    VERMILION,
    ThemeName,
)
from tfm_core.probe.types import Floats
from tfm_core.sentences import N_, Say, counted
from tfm_core.trace.backward import LOSS, SINGLE, BackwardNode, Folded
from tfm_core.trace.learning import LOSSES, StepTaken

_MAX_BARS = 40
_ROUNDING = 1e-9
_FILLS = {
    "light": {"loss": "#f6d9c3", "group": "#cfe2f3", "single": "#fbfaf7", "parameter": "#ecd5e4"},
    "dark": {"loss": "#5a3216", "group": "#1d3d5a", "single": "#14171c", "parameter": "#4a2d40"},
}


def example_losses(losses: Floats, names: Sequence[str], mean: float) -> go.Figure:
    """Draw the loss (B,) of each example in nats, and the loss of the batch as a line."""
    return chart(
        LOSSES.table(
            {
                "example": np.arange(1, len(losses) + 1),
                "loss": losses,
                "input": [escape(textwrap.shorten(one, 60, placeholder=" …")) for one in names],
            }
        ),
        "bars",
        x="example",
        y="loss",
        hover=["input"],
        looks=[{"colour": BLUE}],
        up={"rangemode": "tozero"},
        reference={
            "y": mean,
            "colour": VERMILION,
            "words": N_("- - batch loss: {mean:.4g}", mean=mean),
        },
        height=280,
        top=32,
        bargap=0.15,
    )


def answer(table: pd.DataFrame, target: str) -> go.Figure:
    """Draw the probabilities of the classes shown; the right one is green and marked."""
    is_right = table["class"] == target
    top = float(table["chance"].max()) or 1.0
    ticks = {"tickvals": [0, 0.2, 0.4, 0.6, 0.8, 1]} if top > 0.5 else {}  # nothing is above 1
    table = LOSSES.table(
        {
            **table,
            "class": [escape(name) + " ✓" * (name == target) for name in table["class"]],
            "words": [f"{p:.4f}" if p > 0.001 else f"{p:.2g}" for p in table["chance"]],
        }
    )
    return chart(
        table,
        "bars",
        x="chance",
        y="class",
        orientation="h",
        text="words",
        hover=("logit", "nats"),
        looks=[{"colour": [GREEN if right else GREY for right in is_right]}],
        across=ticks,
    )


def gradient_norms(names: Sequence[str], norms: Floats, counts: Sequence[int]) -> go.Figure:
    """Draw the norm of each parameter's gradient, from the input (top) to the output (bottom).

    Of more than 40 the largest are drawn.
    """
    norms = np.asarray(norms, np.float32)
    kept = sorted(np.argsort(-norms)[:_MAX_BARS].tolist())
    rows = list(range(len(kept)))
    shown = [escape(names[i]) for i in kept]
    columns = {"norm": norms[kept], "name": shown, "size": [counts[i] for i in kept]}
    figure = chart(
        LOSSES.table({"row": rows, **columns}),
        "bars",
        x="norm",
        y="row",
        orientation="h",
        hover=("name", "size"),
        looks=[{"colour": COLOURS["gradient"], "opacity": 0.55}],
        up={
            "range": [len(kept) - 0.5, -0.5],
            "autorange": None,
            "showticklabels": False,
            "showgrid": False,
        },
        height=90 + 20 * len(kept),
        showlegend=False,
        bargap=0.12,
    )
    figure.add_scatter(  # names lie over their bars: beside them they would leave a phone no room
        x=[0] * len(kept),
        y=rows,
        mode="text",
        text=[f" {escape(names[i])}" for i in kept],
        textposition="middle right",
        textfont={"size": 11},
        hoverinfo="skip",
    )
    return figure


def singular_values(values: Floats) -> go.Figure:
    """Draw the singular values of a matrix, (iterations + 1, n), the largest first.

    Before the first iteration and after each; those that are no more than rounding are left out.
    """
    last = len(values) - 1
    names = [N_("N / ‖N‖"), *(N_("iteration {n}", n=n) for n in range(1, last + 1))]
    colours = [*[VERMILION][:last], *[GREY] * (last - 1), GREEN]
    shown = np.where(values > _ROUNDING * values.max(), values, np.nan)
    columns = {str(n): line for n, line in enumerate(shown)}
    return chart(
        LOSSES.table({"number": range(1, values.shape[1] + 1), **columns}),
        x="number",
        y=dict(zip(columns, names, strict=True)),
        looks=[
            {
                "colour": colour,
                "width": 1 if colour == GREY else 3,
                "symbol": "diamond" if i == last else "circle",
            }
            for i, colour in enumerate(colours)
        ],
        up={"title": N_("size"), "type": "log", "exponentformat": "power", "dtick": 1},
        height=300,
    )


def rates(
    tried: Sequence[float], losses: Sequence[float], before: float, chosen: float
) -> go.Figure:
    """Draw the loss after one step over its learning rate; what is no number is left out.

    The axis is drawn for what helps: losses that explode leave it at the top.
    """
    y = np.array([value if np.isfinite(value) else np.nan for value in losses], np.float32)
    lowest = float(np.nanmin(y)) if np.isfinite(y).any() else before
    room = max(before - lowest, 0.1 * before)
    powers = [10.0**power for power in range(-5, 2)]
    texts = [f"{power:g}" for power in powers]
    ends = [lowest - 0.3 * room, before + 1.2 * room]
    figure = chart(
        LOSSES.table({"rate": tried, "loss": y}),
        x="rate",
        y="loss",
        looks=[{"colour": BLUE}],
        across={"type": "log", "tickvals": powers, "ticktext": texts},
        up={"title": N_("loss of the same batch (nats)"), "range": ends},
        reference={
            "y": before,
            "colour": GREY,
            "words": N_("- - before the step: {before:.4g}", before=before),
        },
        height=330,
        top=32,
    )
    line = {"color": COLOURS["learning rate"], "dash": "dot", "width": 2}
    return figure.add_vline(x=chosen, line=line)


def graph(folded: Folded, theme: ThemeName, say: Say = str) -> str:
    """Return the graph in DOT: gradients flow down, from the loss to the parameters.

    say: translates.
    """
    ink, line, fills = INKS[theme], LINES[theme], _FILLS[theme]
    font = 'fontname="Helvetica"'
    lines = [
        "digraph backward {",
        f'rankdir=TB; bgcolor="transparent"; nodesep=0.25; ranksep=0.35; {font};',
        f'node [shape=box, style="rounded,filled", {font}, fontsize=12, fontcolor="{ink}", '
        f'color="{line}", margin="0.14,0.06"];',
        f'edge [{font}, fontsize=10, fontcolor="{ink}", color="{ink}", arrowsize=0.6];',
    ]
    groups, flows = folded
    for key, nodes in groups.items():
        is_single = key.startswith(SINGLE)
        kind = "loss" if key == LOSS else "single" if is_single else "group"
        fill = fills["parameter" if is_single and nodes[0].parameter else kind]
        names = Counter(node.name for node in nodes)
        tip = ", ".join(f"{n} x {name}" for name, n in sorted(names.items()))
        label = _label(key, nodes, say)
        lines.append(f'"{key}" [label="{label}", fillcolor="{fill}", tooltip="{tip}"];')
    for (tail, head), nodes in flows.items():
        words = say(N_("{n} gradients", n=len(nodes)))
        if len(nodes) == 1:
            norm, shape = nodes[0].norm, ", ".join(map(str, nodes[0].shape))
            words = "" if norm is None else f"{norm:.2g}  {f'({shape})' if shape else ''}"
        lines.append(f'"{tail}" -> "{head}" [label=" {words}"];')
    return "\n".join([*lines, "}"])


def _label(key: str, nodes: Sequence[BackwardNode], say: Say) -> str:
    norm = sum((node.norm or 0.0) ** 2 for node in nodes if node.parameter) ** 0.5
    if key.startswith(SINGLE):
        (node,) = nodes
        if node.parameter:
            short = ".".join(node.parameter.split(".")[-2:])
            return f"{short}\\n{say(N_('gradient {norm:.3g}', norm=norm))}"
        return node.name
    words = [key, say(counted("{n} tensor", "{n} tensors", len(nodes)))]
    if n_values := sum(node.n_values for node in nodes):
        facts = N_("{n:,} parameters, gradient {norm:.3g}", n=n_values, norm=norm)
        words.append(say(facts))
    return "\\n".join(words)


def history(taken: Sequence[StepTaken]) -> go.Figure:
    """Draw the losses of the batches of some steps, before and after each."""
    n = len(taken)
    columns = {
        "step": range(1, n + 1),
        "before": [one.loss_before for one in taken],
        "after": [one.loss_after for one in taken],
    }
    return chart(
        LOSSES.table(columns),
        x="step",
        y={"before": N_("before the step"), "after": N_("after the step, same batch")},
        across={"dtick": max(1, n // 10)},
        height=280,
    )
