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
from tfm_core.config import Experiment
from tfm_core.plots import training_step as plots
from tfm_core.plots.training_step import Floats
from tfm_core.variants.optimisers import OPTIMISERS, Optimiser
from tfm_core.variants.optimisers.muon import RMS

if TYPE_CHECKING:
    from tfm_core.inspect.training_step.step import Taken
    from tfm_core.training.loop import Trainer

TRIED = (*tuple(float(f"{digit}e{power}") for power in range(-5, 1) for digit in (1, 3)), 10.0)


def one_weight(model_at: ModelAtStep, rate: float) -> None:
    from tfm_core.inspect.training_step.update import one_weight as lines_of
    from tfm_core.inspect.training_step.update import singular_values

    optimiser = OPTIMISERS[Experiment.model_validate_json(model_at.text).training.optimizer]
    taken = state.taken(state.after(model_at, rate))
    name, at = _weight(taken, optimiser, state.own_names_of(model_at))
    lines, by_hand, real = lines_of(taken, name, at, optimiser)
    mover = optimiser.mover(taken.options[name])
    label = _(mover.label)
    words = [_("**{optimizer}**, learning rate {rate:.3g}.", optimizer=label, rate=rate)]
    if mover is not optimiser:
        words.append(_("{other} moves hidden matrices only.", other=_(optimiser.label)))
    words.append(_("Norm of all gradients: {norm:.3g}.", norm=taken.norm))
    if taken.scale != 1:
        words.append(_("Clipping multiplies them by {scale:.3g}.", scale=taken.scale))
    st.markdown(" ".join(words))
    frame = pd.DataFrame(
        [(line.name, line.formula, f"{line.value + 0.0:.8g}") for line in lines],
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
    values = singular_values(taken, name, at, optimiser)
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
    taken: Taken, optimiser: Optimiser, own_name: Callable[[str], str]
) -> tuple[str, tuple[int, ...]]:
    """Choose a weight; first the one of the largest gradient that the optimiser itself moves."""
    names = list(taken.gradients)
    sizes = [
        float(one.abs().max()) if optimiser.mover(taken.options[name]) is optimiser else 0.0
        for name, one in taken.gradients.items()
    ]
    left, middle, right = st.columns([3, 1, 1], vertical_alignment="bottom")
    with left:
        name = st.selectbox(
            _("Parameter"),
            names,
            index=int(np.argmax(sizes)),
            format_func=own_name,
            key="training-step-weight",
        )
    shape = tuple(taken.gradients[name].shape)
    largest = int(taken.gradients[name].abs().argmax())
    first = tuple(int(i) for i in np.unravel_index(largest, shape))
    index = list(first)
    for number, (column, size) in enumerate(zip((middle, right), shape, strict=False)):
        with column:
            index[number] = (
                st.number_input(
                    _("Row") if number == 0 else _("Column"),
                    1,
                    size,
                    first[number] + 1,
                    key=f"training-step-{number}-{name.replace('.', '-')}",
                )
                - 1
            )
    return name, tuple(index)


def after(model_at: ModelAtStep, rate: float) -> None:
    """Show the loss of the same batch after the step, for this rate and for others."""
    taken = state.taken(state.after(model_at, rate))
    left, middle, right = st.columns(3)
    left.metric(_("Loss before (nats)"), f"{taken.loss_before:.4g}")
    change = taken.loss_after - taken.loss_before
    middle.metric(
        _("Loss after, same batch (nats)"),
        f"{taken.loss_after:.4g}",
        f"{change:+.2g}" if math.isfinite(change) else None,
        delta_color="inverse",
    )
    right.metric(_("Learning rate"), f"{rate:.3g}")
    losses = state.kept("rates", model_at, (), _losses)
    show.figure(
        plots.rates(TRIED, losses, taken.loss_before, rate),
        paragraph("training_step/line",
            rate=TRIED[-1], loss=losses[-1]
        ),
        key="training-step-rates"
    )  # fmt: skip
    if taken.loss_after > taken.loss_before:
        best = TRIED[int(np.argmin(losses))]
        st.warning(
            paragraph("training_step/overshoots", rate=rate, best=best),
            icon=":material/trending_up:"
        )  # fmt: skip


def _losses(trainer: Trainer) -> list[float]:
    from tfm_core.inspect.training_step.step import losses_at

    return losses_at(trainer, TRIED)
