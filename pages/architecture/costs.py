"""Compute and memory of the Parameters page, and how they grow."""

from __future__ import annotations

import streamlit as st

from pages.i18n import N_, _, paragraph
from pages.ui import show, state
from pages.ui.runs import run_time
from pages.ui.settings.model_choice import Chosen
from tfm_core.config import TrainingConfig, built
from tfm_core.config.shape import CaptionShape, ImageShape
from tfm_core.facts.compute import grown, lengths, macs, unasked
from tfm_core.facts.memory import PROCESS_BYTES, Memory, memory
from tfm_core.facts.parameter_table import parameter_table
from tfm_core.plots.model import architecture as plots
from tfm_core.variants.optimisers import OPTIMISERS
from tfm_core.variants.positions import POSITIONS
from tfm_core.variants.precisions import PRECISIONS

FACTORS = (1, 2, 3, 4, 6, 8)
PARTS = {
    "embedding": N_("embedding"),
    "recurrence": N_("recurrence"),
    "projections": N_("projections"),
    "scores": N_("scores"),
    "cross-attention": N_("cross-attention"),
    "feed-forward": N_("feed-forward"),
    "output": N_("output"),
    "weights": N_("weights"),
    "gradients": N_("gradients"),
    "optimiser": N_("optimiser"),
    "activations": N_("activations"),
}
"""What the parts of arithmetic and memory are called."""


def page(chosen: Chosen) -> None:
    """Choose batch and length; show arithmetic, memory, time and growth."""
    batch, src, tgt = _sizes(chosen)
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
            plots.bars(scaled, _("{unit}, one forward pass", unit=unit), _labels()),
            paragraph("architecture/macs-recurrent")
            if not chosen.model.has_blocks
            else _("1 MAC is 2 FLOPs. Scores: QKᵀ and weights × V."),
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
            plots.bars(
                {name: value / 2**20 for name, value in parts.items()},
                _(
                    "MiB, one training step in {precision}",
                    precision=PRECISIONS[training.precision].name,
                ),
                _labels(),
            ),
            _("Only activations grow with the batch size."),
            key="costs-memory",
        )
    _growth(chosen, batch, src, tgt)


def _sizes(chosen: Chosen) -> tuple[int, int, int]:
    """Ask for the batch and the lengths of source and target; 0 for one that the model lacks."""
    architecture, shape = chosen.architecture, chosen.shape
    columns = st.columns(3)

    def ask(column: int, label: str, first: int, key: str, most: int = 2**17) -> int:
        with columns[column]:
            return int(st.number_input(label, 1, most, first, key=f"costs-{chosen.name}-{key}"))

    first = chosen.experiment.training.batch_size if chosen.experiment else 1
    batch = ask(0, _("Batch"), first, f"batch-{first}")
    if isinstance(shape, ImageShape):
        return batch, 0, 0
    if isinstance(shape, CaptionShape):
        words = ask(1, _("Words with <bos>"), architecture.tgt_len, "words", shape.tgt_len)
        return batch, 0, words
    src, label = 0, _("Tokens")
    if shape.has_source:
        src = ask(1, _("Source tokens"), architecture.src_len, f"src-{architecture.src_len}")
        label = _("Target tokens")
    tgt = ask(2, label, architecture.tgt_len, f"tgt-{architecture.tgt_len}")
    limit = getattr(chosen.model, "max_len", 8192)
    longest = chosen.model.joined_len(src, tgt)
    if POSITIONS[built(chosen.model).position].has_table and longest > limit:
        st.caption(paragraph("architecture/too-long", limit=limit, n=longest))
    return batch, src, tgt


def _training(chosen: Chosen) -> TrainingConfig:
    """Return the training settings; the defaults for a published model."""
    return TrainingConfig() if chosen.experiment is None else chosen.experiment.training


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
    words = {"ms": f"{1000 * estimate.seconds_per_step:.1f}", "device": show.device(device)}
    st.markdown(
        _("A training step takes about **{ms} ms** on {device} (measured).", **words)
        if estimate.measured
        else _("A training step takes about **{ms} ms** on {device} (estimated).", **words)
    )


def _growth(chosen: Chosen, batch: int, src: int, tgt: int) -> None:
    names = {"length": _("Length"), "width": _("Width"), "depth": _("Depth")}
    axis = st.segmented_control(
        _("How the arithmetic grows with"),
        list(names),
        format_func=names.__getitem__,
        default="length",
        key="costs-axis",
        persist_state="session",
    )
    axis = axis or "length"
    series: dict[str, list[float]] = {}
    xs: list[int] = []
    for factor in FACTORS:
        model, shape = grown(chosen.model, chosen.shape, axis, factor)
        long = factor if axis == "length" else 1
        sizes = lengths(model, shape, src * long, tgt * long)
        xs.append(max(sizes.encoder, sizes.decoder) if axis == "length" else factor)
        work = macs(model, shape, batch=batch, src_len=src * long, tgt_len=tgt * long)
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
        plots.growth(xs, scaled, titles[axis], unit, _labels()),
        paragraph(f"architecture/{kind}-{axis}"),
        key="costs-growth",
    )


def _labels() -> dict[str, str]:
    return {name: _(label) for name, label in PARTS.items()}


def _unit(most: float) -> tuple[str, float]:
    """Return the unit in which the largest of some MACs can be read, and its size."""
    for unit, divisor in (("TMAC", 1e12), ("GMAC", 1e9), ("MMAC", 1e6)):
        if most >= divisor:
            return unit, divisor
    return "kMAC", 1e3
