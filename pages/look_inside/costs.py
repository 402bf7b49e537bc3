"""Compute and memory of a model, and how they grow: a part of Parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.app import show, state
from pages.app.address import view
from pages.app.runs import run_time
from pages.app.settings.model_choice import Chosen
from pages.i18n import N_, _, paragraph
from tfm_core.choices.config import TrainingConfig, built
from tfm_core.choices.config.shape import CaptionShape, ImageShape
from tfm_core.choices.variants.positions import POSITIONS
from tfm_core.choices.variants.training import OPTIMISERS, PRECISIONS
from tfm_core.facts.compute import grown, lengths, macs, unasked
from tfm_core.facts.memory import PROCESS_BYTES, Memory, memory
from tfm_core.facts.parameter_table import parameter_table
from tfm_core.inspect.tables import Column, Columns
from tfm_core.plots.chart import DASHES, chart
from tfm_core.plots.palette import COLOURS, OCHRE

SCOPE = "parameters"
MOST = 2**17  # of a batch, and of tokens
LABELS = {"batch": N_("Batch"), "src": N_("Source tokens"), "tgt": N_("Target tokens")}
COSTS = Columns(part=Column(), size=Column(form=",.4g"), value=Column(form=",.4g"))
FACTORS = (1, 2, 3, 4, 6, 8)
PARTS = {
    "embedding": (N_("embedding"), COLOURS["key"]),
    "recurrence": (N_("recurrence"), COLOURS["encoder"]),
    "projections": (N_("projections"), COLOURS["query"]),
    "scores": (N_("scores"), COLOURS["decoder"]),
    "cross-attention": (N_("cross-attention"), COLOURS["cross"]),
    "feed-forward": (N_("feed-forward"), COLOURS["value"]),
    "output": (N_("output"), OCHRE),
    "weights": (N_("weights"), COLOURS["query"]),
    "gradients": (N_("gradients"), COLOURS["gradient"]),
    "optimiser": (N_("optimiser"), OCHRE),
    "activations": (N_("activations"), COLOURS["value"]),
}
"""What the parts of arithmetic and memory are called, and their colours."""


@dataclass(frozen=True)
class Costs:
    """What is counted: examples of a batch and their tokens, and how the arithmetic grows."""

    batch: int = view.number(LABELS["batch"], 1, MOST, 1, is_typed=True)
    src: int = view.number(LABELS["src"], 1, MOST, 1, is_typed=True)
    tgt: int = view.number(LABELS["tgt"], 1, MOST, 1, is_typed=True)
    grows: str = view.choice(
        N_("How the arithmetic grows with"),
        {"length": N_("Length"), "width": N_("Width"), "depth": N_("Depth")},
    )


def compute_and_memory(chosen: Chosen) -> None:
    """Choose batch and length; show arithmetic, memory, time and growth."""
    sizes, body, growth = st.container(), st.container(), st.container()
    with sizes:
        asked = _asked(chosen, growth)
    with body:
        _costs(chosen, asked)
    with growth:
        _growth(chosen, asked)


def _costs(chosen: Chosen, asked: Costs) -> None:
    batch, src, tgt = asked.batch, asked.src, asked.tgt
    work = macs(chosen.model, chosen.shape, batch=batch, src_len=src, tgt_len=tgt)
    total = parameter_table(chosen.model, chosen.shape).total
    training = _training(chosen)
    memory_of_step = memory(
        chosen.model,
        chosen.shape,
        total,
        training,
        batch=batch,
        src_len=src,
        tgt_len=tgt,
    )
    left_out = batch * unasked(chosen.model, chosen.shape)
    _totals(chosen, sum(work.values()), memory_of_step, left_out)
    _time(chosen)
    left, right = st.columns(2)
    with left:
        unit, divisor = _unit(max(work.values()))
        scaled = {name: value / divisor for name, value in work.items()}
        show.figure(
            bars(scaled, _("{unit}, one forward pass", unit=unit)),
            paragraph("architecture/macs-recurrent")
            if not chosen.model.has_blocks
            else _("1 MAC is 2 FLOPs. Scores are QKᵀ and weights × V."),
            key="costs-macs",
        )
    parts = {
        "weights": memory_of_step.weights,
        "gradients": memory_of_step.gradients + memory_of_step.passing,
        "optimiser": memory_of_step.optimizer,
        "activations": memory_of_step.activations,
    }
    with right:
        show.figure(
            bars(
                {name: value / 2**20 for name, value in parts.items()},
                _(
                    "MiB, one training step in {precision}",
                    precision=PRECISIONS[training.precision].name,
                ),
            ),
            _("Only activations grow with the batch size."),
            key="costs-memory",
        )


def _asked(chosen: Chosen, growth: DeltaGenerator) -> Costs:
    """Ask for the batch and the lengths of source and target; 0 for one that the model lacks.

    growth: where the question is asked along which size it grows.
    """
    architecture, shape = chosen.architecture, chosen.shape
    sizes = {"batch": _training(chosen).batch_size if chosen.experiment else 1}
    labels, longest = LABELS, MOST
    if isinstance(shape, CaptionShape):
        sizes["tgt"] = architecture.tgt_len
        labels, longest = LABELS | {"tgt": N_("Words with <bos>")}, shape.tgt_len
    elif not isinstance(shape, ImageShape):
        if shape.has_source:
            sizes["src"] = architecture.src_len
        else:
            labels = LABELS | {"tgt": N_("Tokens")}
        sizes["tgt"] = architecture.tgt_len
    of = "-".join(map(str, (chosen.name, *sizes.values())))
    fields = {
        name: view.number(
            labels[name], 1, longest if name == "tgt" else MOST, size, of=of, is_typed=True
        )
        for name, size in sizes.items()
    }
    absent = LABELS.keys() - fields.keys()
    places = {"grows": growth}
    asked = view.ask(Costs, SCOPE, columns=3, places=places, hidden=absent, **fields)
    if "src" in absent:
        asked = replace(asked, src=0)
    if "tgt" in absent:
        asked = replace(asked, tgt=0)
    limit = getattr(chosen.model, "max_len", 8192)
    tokens = chosen.model.joined_len(asked.src, asked.tgt)
    is_of_text = not isinstance(shape, ImageShape | CaptionShape)
    if is_of_text and POSITIONS[built(chosen.model).position].has_table and tokens > limit:
        st.caption(paragraph("architecture/too-long", limit=limit, n=tokens))
    return asked


def _training(chosen: Chosen) -> TrainingConfig:
    """Return the training settings; the defaults for a model that is not trained here."""
    training = None if chosen.experiment is None else chosen.experiment.training
    return training or TrainingConfig()


def _totals(chosen: Chosen, work: int, memory_of_step: Memory, left_out: int) -> None:
    state_words = _(OPTIMISERS[_training(chosen).optimizer].memory_words)
    memory = [
        _("Weights, gradients, optimiser state ({state}) and activations.", state=state_words)
    ]
    if memory_of_step.watched > memory_of_step.activations:
        memory.append(paragraph("architecture/fused-memory", n=show.size(memory_of_step.watched)))
    elif chosen.model.has_blocks:
        memory.append(paragraph("architecture/unfused-memory"))
    memory.append(_("The process itself takes about {n} more.", n=show.size(PROCESS_BYTES)))
    passes, step = 3, [_("The backward pass costs about two forward passes.")]
    if _training(chosen).checkpointing:
        passes = 4
        step.append(_("With checkpointing, blocks run forward twice."))
    if left_out:
        step.append(
            paragraph(
                "architecture/cls-only", n=show.count(left_out), share=show.percent(left_out / work)
            )
        )
    with st.container(horizontal=True):
        st.metric(_("Forward"), f"{show.count(work)} MAC", border=True)
        st.metric(_("Forward, in FLOPs"), show.count(2 * work), border=True)
        st.metric(
            _("Training step, in FLOPs"),
            show.count(2 * passes * (work - left_out)),
            help=" ".join(step),
            border=True,
        )
        st.metric(
            _("Memory of a step"),
            show.size(memory_of_step.total),
            help=" ".join(memory),
            border=True,
        )


def _time(chosen: Chosen) -> None:
    if chosen.experiment is None:
        return
    device = state.device()
    run = chosen.run
    if run is not None and run.status.step and run.status.seconds:
        status = run.status
        st.markdown(
            _(
                "This run took **{ms} ms** a step on {device}.",
                ms=f"{1000 * status.seconds / status.step:.1f}",
                device=show.device(status.device),
            )
        )
    st.fragment(_estimate, run_every=None)(chosen, device)


def _estimate(chosen: Chosen, device: str) -> None:
    assert chosen.experiment is not None
    try:
        estimate = run_time.result(run_time.estimate(chosen.experiment, device))
    except ValueError as error:
        show.problem(error)
        return
    if estimate is None:
        st.button(_("Measure a step"), icon=":material/timer:", key="costs-measure")
        return
    message = {"ms": f"{1000 * estimate.seconds_per_step:.1f}", "device": show.device(device)}
    st.markdown(
        _("A training step takes about **{ms} ms** on {device} (measured).", **message)
        if estimate.measured
        else _("A training step takes about **{ms} ms** on {device} (estimated).", **message)
    )


def _growth(chosen: Chosen, asked: Costs) -> None:
    axis, src, tgt = asked.grows, asked.src, asked.tgt
    series: dict[str, list[float]] = {}
    xs: list[int] = []
    for factor in FACTORS:
        model, shape = grown(chosen.model, chosen.shape, axis, factor)
        long = factor if axis == "length" else 1
        sizes = lengths(model, shape, src * long, tgt * long)
        xs.append(max(sizes.encoder, sizes.decoder) if axis == "length" else factor)
        work = macs(model, shape, batch=asked.batch, src_len=src * long, tgt_len=tgt * long)
        for name, value in work.items():
            series.setdefault(name, []).append(value)
    unit, divisor = _unit(max(max(values) for values in series.values()))
    titles = {
        "length": _("tokens of one example"),
        "width": _("times d_model, heads and d_ff")
        if chosen.model.has_blocks
        else _("times d_model"),
        "depth": _("times the layers"),
    }
    kind = "growth" if chosen.model.has_blocks else "growth-recurrent"
    scaled = {name: [value / divisor for value in values] for name, values in series.items()}
    show.figure(
        growth_lines(xs, scaled, titles[axis], unit),
        paragraph(f"architecture/{kind}-{axis}"),
        key="costs-growth",
    )


def bars(values: Mapping[str, float], title: str) -> go.Figure:
    """Draw each part as a bar with its value."""
    names = [name for name, value in values.items() if value][::-1]
    sizes = [values[name] for name in names]
    columns = {
        "part": [_(PARTS[name][0]) for name in names],
        "size": sizes,
        "words": [f"{size:.3g}" for size in sizes],
    }
    look = {
        "colour": [PARTS[name][1] for name in names],
        "textposition": "auto",
        "textangle": 0,  # beside a bar too short for it, never on its side
    }
    return chart(
        COSTS.table(columns),
        "bars",
        x="size",
        y="part",
        orientation="h",
        text="words",
        looks=[look],
        labels={"size": title},
    )


def growth_lines(
    xs: Sequence[float], parts: Mapping[str, Sequence[float]], x_title: str, y_title: str
) -> go.Figure:
    """Draw how each part grows along one quantity; both axes are linear, so a square bends.

    Parts that lie on one line share it, with all their names.
    """
    lines: list[tuple[list[str], Sequence[float]]] = []
    for name, values in parts.items():
        same = next((names for names, others in lines if np.allclose(values, others)), None)
        if same is not None:
            same.append(name)
        elif any(values):
            lines.append(([name], values))
    looks = [
        {
            "colour": PARTS[names[-1]][1],
            "width": 3 if "scores" in names else 2,
            "dash": DASHES[i % len(DASHES)],
        }
        for i, (names, _values) in enumerate(lines)
    ]
    columns = {" = ".join(_(PARTS[name][0]) for name in names): line for names, line in lines}
    return chart(
        COSTS.table({"size": xs, **columns}),
        x="size",
        y=[*columns],
        looks=looks,
        labels={"size": x_title, "value": y_title},
        across={"rangemode": "tozero"},
        up={"rangemode": "tozero"},
    )


def _unit(most: float) -> tuple[str, float]:
    """Return the unit in which the largest of some MACs can be read, and its size."""
    for unit, divisor in (("TMAC", 1e12), ("GMAC", 1e9), ("MMAC", 1e6)):
        if most >= divisor:
            return unit, divisor
    return "kMAC", 1e3
