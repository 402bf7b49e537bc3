"""The update: one weight's arithmetic, the loss after it, and what other rates would have done."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from pages.i18n import _
from pages.training_step import state
from pages.training_step.state import ModelAtStep
from pages.ui import show
from tfm_core.config import Experiment
from tfm_core.plots import training_step as plots
from tfm_core.plots.training_step import Floats
from tfm_core.variants.optimisers import OPTIMISERS, Optimiser
from tfm_core.variants.optimisers.muon import RMS

if TYPE_CHECKING:
    from tfm_core.inspect.training_step.step import StepTaken
    from tfm_core.training.loop import Trainer

TRIED = (*tuple(float(f"{digit}e{power}") for power in range(-5, 1) for digit in (1, 3)), 10.0)


def one_weight(model_at: ModelAtStep, rate: float) -> None:
    """Show the optimiser's lines for one weight, and its real result beside them."""
    from tfm_core.inspect.training_step.update import one_weight as lines_of
    from tfm_core.inspect.training_step.update import singular_values

    optimiser = OPTIMISERS[Experiment.model_validate_json(model_at.text).training.optimizer]
    taken = state.taken(state.after(model_at, rate))
    name, at = _weight(taken, optimiser, state.own_names_of(model_at))
    lines, by_hand, real = lines_of(taken, name, at, optimiser)
    mover = optimiser.mover(taken.options[name])
    st.markdown(
        _("**{optimizer}**{why}, learning rate {rate:.3g}. All gradients together have the norm "
          "{norm:.3g}{clipped}.",
            optimizer=_(mover.label), rate=rate, norm=taken.norm,
            why="" if mover is optimiser
            else _(", as {optimizer} moves hidden matrices alone",
                optimizer=_(optimiser.label)
            ),
            clipped=_(", so clipping multiplies them by {s:.3g}", s=taken.scale)
            if taken.scale != 1 else "",
        )
    )  # fmt: skip
    frame = pd.DataFrame(
        [(line.name, line.formula, f"{line.value + 0.0:.8g}") for line in lines],
        columns=[_("what"), _("how"), _("number")],
    )
    st.dataframe(frame, hide_index=True, height=38 + 35 * len(frame))
    difference = abs(by_hand - real)
    words = _("The optimiser gives **{real:.8g}**; by hand it is {hand:.8g}: {d:.2g} apart.")
    is_same = difference <= 1e-6 + 1e-4 * abs(real)
    show_it = st.success if is_same else st.warning
    show_it(
        words.format(real=real, hand=by_hand, d=difference),
        icon=":material/check:" if is_same else ":material/error:",
    )
    values = singular_values(taken, name, at, optimiser)
    if values is not None:
        _orthogonal(values.numpy())


def _orthogonal(values: Floats) -> None:
    """Show what the iterations do to the whole matrix behind one weight's line."""
    first, last = values[0], values[-1]
    words = _(
        "**One number needs its whole matrix.** The momentum of this one moves along {n} "
        "directions, as far as its singular values say: {share:.0%} of its squared length lies "
        "along the first alone (red). {k} iterations of Newton-Schulz multiply the small ones most "
        "(green): {near} of {n} are then between 0.5 and 1.3, and the first has {after:.0%}. The "
        "update's root mean square is {rms:.2g} times the learning rate; it would be 0.2, within "
        "what is usual for AdamW, if all were 1."
    )
    show.figure(
        plots.singular_values(values),
        words.format(
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
    taken: StepTaken, optimiser: Optimiser, own_name: Callable[[str], str]
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
        _("The same gradient, followed further and further: a short step gains little, a "
          "long one overshoots. With a rate of {rate:g} the loss is {loss:.3g}. The "
          "dotted line is your rate; the best single step is rarely the best rate for a "
          "training.",
            rate=TRIED[-1], loss=losses[-1]
        ),
        key="training-step-rates",
    )  # fmt: skip
    if taken.loss_after > taken.loss_before:
        best = TRIED[int(np.argmin(losses))]
        st.warning(
            _("With {rate:.3g} the step **overshoots**: the loss of this very batch rises. Of the "
              "rates tried {best:g} would have been best.", rate=rate, best=best),
            icon=":material/trending_up:",
        )  # fmt: skip


def _losses(trainer: Trainer) -> list[float]:
    from tfm_core.inspect.training_step.step import losses_at

    return losses_at(trainer, TRIED)
