"""One training step in figures: losses, one answer, the graph, gradients, learning rates."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from html import escape

import numpy as np
import plotly.graph_objects as go

from tfm_core.inspect.training_step.batch import BatchAnswer
from tfm_core.inspect.training_step.fold import SINGLE, Folded
from tfm_core.inspect.training_step.graph import LOSS, BackwardNode
from tfm_core.plots.chart import chart, wide
from tfm_core.plots.kinds import bars, lay_out, rule_above
from tfm_core.plots.palette import BLUE, COLOURS, GREEN, GREY, VERMILION
from tfm_core.probe.types import Floats
from tfm_core.sentences import N_, Say, counted

_MAX_BARS = 40
_ROUNDING = 1e-9


def example_losses(losses: Floats, names: Sequence[str], mean: float) -> go.Figure:
    """Draw the loss (B,) of each example in nats, and the loss of the batch as a line."""
    figure = go.Figure(
        go.Bar(
            x=np.arange(1, len(losses) + 1),
            y=np.asarray(losses, np.float32),
            marker={"color": BLUE},
            hovertext=[
                N_(
                    "example {n}<br>{text}<br><b>{loss:.4f} nats</b>",
                    n=i,
                    text=escape(textwrap.shorten(name, 60, placeholder=" …")),
                    loss=loss,
                )
                for i, (name, loss) in enumerate(zip(names, losses.tolist(), strict=True), 1)
            ],
            hoverinfo="text",
        )
    )
    words = N_("- - batch loss: {mean:.4g}", mean=mean)
    rule_above(figure, y=mean, colour=VERMILION, words=words)
    y = {"title": N_("loss (nats)"), "rangemode": "tozero", "exponentformat": "e"}
    x = {"title": N_("example of the batch")}
    return lay_out(figure, height=280, top=32, right=12, x=x, y=y, bargap=0.15)


def answer(one: BatchAnswer) -> go.Figure:
    """Draw the probabilities of the classes shown; the right one is green and marked."""
    is_right = [name == one.target for name in one.names]
    figure = go.Figure(
        bars(
            [
                f"{escape(name)} ✓" if right else escape(name)
                for name, right in zip(one.names, is_right, strict=True)
            ],
            one.probabilities,
            [GREEN if right else GREY for right in is_right],
            texts=[f"{p:.4f}" if p > 0.001 else f"{p:.2g}" for p in one.probabilities.tolist()],
            hovertext=[
                N_(
                    "{name}<br>logit {logit:.4f}<br>probability {p:.6f}<br>-log p {nats:.4f}",
                    name=escape(n),
                    logit=logit,
                    p=p,
                    nats=-lp,
                )
                for n, logit, p, lp in zip(
                    one.names,
                    one.logits.tolist(),
                    one.probabilities.tolist(),
                    one.log_probabilities.tolist(),
                    strict=True,
                )
            ],
            hoverinfo="text",
        )
    )
    top = float(one.probabilities.max()) or 1.0
    ticks = {"tickvals": [0, 0.2, 0.4, 0.6, 0.8, 1]} if top > 0.5 else {}  # nothing is above 1
    return lay_out(
        figure,
        height=90 + 30 * len(one.names),
        right=12,
        x={"title": N_("probability (softmax of logits)"), "range": [0, 1.25 * top], **ticks},
        y={"title": N_("class"), "autorange": "reversed", "type": "category"},
    )


def gradient_norms(names: Sequence[str], norms: Floats, counts: Sequence[int]) -> go.Figure:
    """Draw the norm of each parameter's gradient, from the input (top) to the output (bottom).

    Of more than 40 the largest are drawn.
    """
    norms = np.asarray(norms, np.float32)
    kept = sorted(np.argsort(-norms)[:_MAX_BARS].tolist())
    rows = list(range(len(kept)))
    figure = go.Figure(
        bars(
            rows,
            norms[kept],
            COLOURS["gradient"],
            marker={"opacity": 0.55},
            hovertext=[
                N_(
                    "{name}<br>{n:,} numbers<br><b>norm {norm:.4g}</b>",
                    name=escape(names[i]),
                    n=counts[i],
                    norm=float(norms[i]),
                )
                for i in kept
            ],
            hoverinfo="text",
        )
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
    return lay_out(
        figure,
        height=90 + 20 * len(kept),
        right=12,
        x={"title": N_("gradient norm"), "rangemode": "tozero", "nticks": 5, "exponentformat": "e"},
        y={
            "title": N_("parameter, input to output"),
            "range": [len(kept) - 0.5, -0.5],
            "showticklabels": False,
            "showgrid": False,
        },
        showlegend=False,
        bargap=0.12,
    )


def singular_values(values: Floats) -> go.Figure:
    """Draw the singular values of a matrix, (iterations + 1, n), the largest first.

    Before the first iteration and after each; those that are no more than rounding are left out.
    """
    last = len(values) - 1
    names = [N_("N / ‖N‖"), *(N_("iteration {n}", n=n) for n in range(1, last + 1))]
    colours = [*[VERMILION][:last], *[GREY] * (last - 1), GREEN]
    shown = np.where(values > _ROUNDING * values.max(), values, np.nan)
    return chart(
        wide(range(1, values.shape[1] + 1), dict(zip(names, shown, strict=True))),
        marked=_MAX_BARS,
        looks=[
            {
                "line": {"color": colour, "width": 1 if colour == GREY else 3},
                "marker": {"symbol": "diamond" if i == last else "circle"},
            }
            for i, colour in enumerate(colours)
        ],
        hover=lambda name: (
            N_("singular value %{{x}}, {name}<br><b>%{{y:.4g}}</b>", name=name) + "<extra></extra>"
        ),
        height=300,
        top=48,
        right=12,
        x={"title": N_("singular values, largest first")},
        y={"title": N_("size"), "type": "log", "exponentformat": "power", "dtick": 1},
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
        {N_("after one step"): (tried, y)},
        looks=[{"line": {"color": BLUE}}],
        hover=N_("learning rate %{x:.2g}<br><b>loss %{y:.4f}</b><extra></extra>"),
        height=330,
        top=32,
        right=12,
        x={"title": N_("learning rate"), "type": "log", "tickvals": powers, "ticktext": texts},
        y={"title": N_("loss of the same batch (nats)"), "range": ends, "exponentformat": "e"},
        showlegend=False,
    )
    words = N_("- - before the step: {before:.4g}", before=before)
    rule_above(figure, y=before, colour=GREY, words=words)
    line = {"color": COLOURS["learning rate"], "dash": "dot", "width": 2}
    return figure.add_vline(x=chosen, line=line)


def history(before: Sequence[float], after: Sequence[float]) -> go.Figure:
    """Draw the loss of each step's batch before and after the step."""
    looks = (GREY, "dot", "circle"), (BLUE, "solid", "diamond")
    lines = {N_("before the step"): before, N_("after it, same batch"): after}
    return chart(
        wide(range(1, len(before) + 1), lines),
        looks=[
            {"line": {"color": colour, "dash": dash}, "marker": {"symbol": symbol, "size": 8}}
            for colour, dash, symbol in looks
        ],
        hover=lambda name: N_(
            "step %{{x}}, {name}<br><b>%{{y:.4f}} nats</b><extra></extra>", name=name
        ),
        height=280,
        top=48,
        right=12,
        x={"title": N_("steps"), "dtick": max(1, len(before) // 10)},
        y={"title": N_("loss (nats)"), "exponentformat": "e"},
    )


def graph(folded: Folded, *, ink: str, line: str, fills: dict[str, str], say: Say = str) -> str:
    """Return the graph in DOT: gradients flow down, from the loss to the parameters.

    fills: for ``loss``, ``group``, ``single`` and ``parameter``. say: translates.
    """
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
    words = [key, say(counted("{n} operation", "{n} operations", len(nodes)))]
    if n_values := sum(node.n_values for node in nodes):
        facts = N_("{n:,} parameters, gradient {norm:.3g}", n=n_values, norm=norm)
        words.append(say(facts))
    return "\\n".join(words)
