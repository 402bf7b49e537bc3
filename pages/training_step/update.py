"""The update: one weight's arithmetic, the loss after it, and what other rates would have done."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from pages.i18n import _, paragraph
from pages.training_step import state
from pages.training_step.state import ModelAtStep
from pages.ui import show
from pages.ui.model import question
from tfm_core.config import Experiment
from tfm_core.plots.training import training_step as plots
from tfm_core.probe.types import Floats
from tfm_core.variants.optimisers import OPTIMISERS, RMS, Optimiser

if TYPE_CHECKING:
    from tfm_core.inspect.training_step.step import StepTaken
    from tfm_core.training.loop import Trainer

TRIED = (*tuple(float(f"{digit}e{power}") for power in range(-5, 1) for digit in (1, 3)), 10.0)


def one_weight(model_at: ModelAtStep, rate: float) -> None:
    from tfm_core.inspect.training_step.update import one_weight as lines_of
    from tfm_core.inspect.training_step.update import singular_values

    optimiser = OPTIMISERS[Experiment.model_validate_json(model_at.text).training.optimizer]
    result = state.last_step(state.after(model_at, rate))
    name, at = _weight(result, optimiser, state.own_names_of(model_at))
    lines, by_hand, real = lines_of(result, name, at, optimiser)
    mover = optimiser.mover(result.options[name])
    label = _(mover.label)
    words = [_("**{optimizer}**, learning rate {rate:.3g}.", optimizer=label, rate=rate)]
    if mover is not optimiser:
        words.append(_("{other} moves hidden matrices only.", other=_(optimiser.label)))
    words.append(_("Norm of all gradients: {norm:.3g}.", norm=result.norm))
    if result.scale != 1:
        words.append(_("Clipping multiplies them by {scale:.3g}.", scale=result.scale))
    st.markdown(" ".join(words))
    frame = pd.DataFrame(
        [(line.name, _(line.formula), f"{line.value + 0.0:.8g}") for line in lines],
        columns=[_("what"), _("how"), _("number")],
    )
    st.dataframe(frame, hide_index=True, height=38 + 35 * len(frame))
    difference = abs(by_hand - real)
    is_same = difference <= 1e-6 + 1e-4 * abs(real)
    show_it = st.success if is_same else st.warning
    show_it(
        paragraph("training_step/by-hand", real=real, hand=by_hand, d=difference),
        icon=":material/check:" if is_same else ":material/error:",
    )
    values = singular_values(result, name, at, optimiser)
    if values is not None:
        _orthogonal(values.numpy())


def _orthogonal(values: Floats) -> None:
    first, last = values[0], values[-1]
    show.figure(
        plots.singular_values(values),
        paragraph(
            "training_step/orthogonal",
            n=len(first),
            share=first[0] ** 2 / (first**2).sum() if first.any() else 0.0,
            after=last[0] ** 2 / (last**2).sum() if last.any() else 0.0,
            k=len(values) - 1,
            near=int(((last > 0.5) & (last < 1.3)).sum()),
            rms=RMS * math.sqrt((last**2).sum() / len(last)),
        ),
        key="training-step-singular",
    )


def _weight(
    result: StepTaken, optimiser: Optimiser, own_name: Callable[[str], str]
) -> tuple[str, tuple[int, ...]]:
    """Choose a weight; the default has the largest gradient that the optimiser itself applies."""
    names = list(result.gradients)
    sizes = [
        float(gradient.abs().max()) if optimiser.mover(result.options[name]) is optimiser else 0.0
        for name, gradient in result.gradients.items()
    ]
    left, middle, right = st.columns([3, 1, 1], vertical_alignment="bottom")
    name = left.selectbox(
        _("Parameter"),
        names,
        index=int(np.argmax(sizes)),
        format_func=own_name,
        key="training-step-weight",
    )
    shape = tuple(result.gradients[name].shape)
    largest = int(result.gradients[name].abs().argmax())
    first = tuple(int(i) for i in np.unravel_index(largest, shape))
    index = list(first)
    labels, key = (_("Row"), _("Column")), name.replace(".", "-")
    for axis, (column, size) in enumerate(zip((middle, right), shape, strict=False)):
        index[axis] = -1 + column.number_input(
            labels[axis], 1, size, first[axis] + 1, key=f"training-step-{axis}-{key}"
        )
    return name, tuple(index)


def after(model_at: ModelAtStep, rate: float) -> None:
    """Show the loss of the same batch after the step, at this rate and at others."""
    from tfm_core.inspect.training_step.questions import about_step

    result = state.last_step(state.after(model_at, rate))
    if not question.guess(about_step(result), "step", of=model_at.subject):
        return
    left, middle, right = st.columns(3)
    left.metric(_("Loss before (nats)"), f"{result.loss_before:.4g}")
    change = result.loss_after - result.loss_before
    middle.metric(
        _("Loss after, same batch (nats)"),
        f"{result.loss_after:.4g}",
        f"{change:+.2g}" if math.isfinite(change) else None,
        delta_color="inverse",
    )
    right.metric(_("Learning rate"), f"{rate:.3g}")
    losses = state.cached("rates", model_at, (), _losses)
    show.figure(
        plots.rates(TRIED, losses, result.loss_before, rate),
        paragraph("training_step/line", rate=TRIED[-1], loss=losses[-1]),
        key="training-step-rates",
    )
    if result.loss_after > result.loss_before:
        best = TRIED[int(np.argmin(losses))]
        st.warning(
            paragraph("training_step/overshoots", rate=rate, best=best),
            icon=":material/trending_up:",
        )


def _losses(trainer: Trainer) -> list[float]:
    from tfm_core.inspect.training_step.step import losses_at

    return losses_at(trainer, TRIED)
