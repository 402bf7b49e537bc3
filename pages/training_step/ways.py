"""The same step with modules and with functions, and common mistakes in numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

from pages.i18n import _, paragraph
from pages.training_step import state
from pages.training_step.state import ModelAtStep
from pages.ui import show
from tfm_core.config import Experiment
from tfm_core.inspect.syntax import source
from tfm_core.mistakes import MISTAKES, Mistake
from tfm_core.variants.optimisers import OPTIMISERS

if TYPE_CHECKING:
    from tfm_core.inspect.training_step.wrong_blocks import WrongBlock
    from tfm_core.training.loop import Trainer

T = TypeVar("T")
_HARDLY = 0.02
"""The share of a loss below which its change is no sign of a mistake."""


def one_layer() -> None:
    from tfm_core.inspect.training_step import plain

    st.header(_("One layer, in plain PyTorch"), anchor=False)
    for column, (title, code, printed) in zip(st.columns(2), plain.both(), strict=True):
        with column:
            st.markdown(_(title))
            st.code(code, "python", wrap_lines=True)
            st.markdown(_("It prints:"))
            st.code(printed, None, wrap_lines=True)
    show.prose(paragraph("training_step/modules-or-functions"))


def two_ways(model_at: ModelAtStep, rate: float) -> None:
    from tfm_core.inspect.training_step import functional as code

    one_layer()
    st.header(_("A whole step of your model"), anchor=False)

    chosen = Experiment.model_validate_json(model_at.text).training.optimizer
    rules = OPTIMISERS[chosen].arithmetic
    result = state.last_step(state.after(model_at, rate))
    both = state.cached("ways", model_at, (rate,), lambda trainer: code.two_ways(trainer, result))
    is_same = both["gradient"] < 1e-4 and both["weight"] < 1e-2 * max(rate, 1e-3)
    show_it = st.success if is_same else st.warning
    show_it(paragraph("training_step/both-run", **both), icon=":material/balance:")
    left, right = st.columns(2)
    with left:
        st.markdown(_("**`nn.Module`**: the optimiser changes the weights in place."))
        st.code(_source(code.with_modules), "python", wrap_lines=True)
    with right:
        st.markdown(_("**Functions**: weights in, gradients out; nothing changes."))
        st.code(_source(code.with_functions), "python", wrap_lines=True)
        st.code("\n\n".join(map(_source, rules)), "python", wrap_lines=True)


def _source(function: Callable[..., object]) -> str:
    """Return the code of a function, without comments for the type checker."""
    return re.sub(r"  # type: ignore.*", "", source(function))


def mistakes(model_at: ModelAtStep) -> None:
    """Show mistakes of the loop and of the model's code, made on a copy just now."""
    from tfm_core.inspect.training_step import mistakes as made
    from tfm_core.inspect.training_step.wrong_blocks import (
        BLOCK_MISTAKES,
        MODEL_MISTAKES,
        in_model,
        mm_on_four_axes,
    )

    st.header(_("In the training loop"), anchor=False)

    _mistake(model_at, 0, made.argmax_before_loss, _argmax)
    _mistake(model_at, 1, made.argmax_made_to_require_grad, _silent_argmax)
    _mistake(model_at, 2, made.forgotten_zero_grad, _zero_grad)
    _mistake(model_at, 3, made.softmax_before_loss, _softmax)
    _mistake(model_at, 4, made.forgotten_eval, _eval)
    st.header(_("In the code of a block"), anchor=False)
    st.caption(_("The first block on the next batch, with and without the mistake; no dropout."))
    _mistake(model_at, 5, mm_on_four_axes, _four_axes)
    for number, (name, work) in enumerate(BLOCK_MISTAKES.items(), 6):
        _mistake(model_at, number, work, partial(_block, MISTAKES[name]))
    st.header(_("In the code of the model"), anchor=False)
    st.caption(_("The model on the next batch, with and without the mistake."))
    for number, name in enumerate(MODEL_MISTAKES, 6 + len(BLOCK_MISTAKES)):
        _mistake(
            model_at,
            number,
            partial(in_model, name=name),
            partial(_model, model_at, MISTAKES[name]),
        )


def _mistake(
    model_at: ModelAtStep, number: int, work: Callable[[Trainer], T], draw: Callable[[T], None]
) -> None:
    with st.container(border=True):
        try:
            draw(state.cached(f"mistake {number}", model_at, (), work))
        except ValueError as error:
            st.info(_(error), icon=":material/info:")


def _argmax(result: dict[str, Any]) -> None:
    st.subheader(_("argmax before the loss"), anchor=False)
    st.code("wrong = (logits.argmax(-1) != targets).float().mean()\nwrong.backward()", "python")
    show.prose(paragraph("training_step/argmax", share=result["share"], grad_fn=result["grad_fn"]))
    st.code(f"RuntimeError: {result['error']}", None, wrap_lines=True)


def _silent_argmax(result: dict[str, Any]) -> None:
    _lines(MISTAKES["argmax-before-loss"])
    loss, answers = f"{result['loss']:,.0f}", f"{result['answers']:,}"
    show.prose(paragraph("training_step/new-leaf", **{**result, "loss": loss, "answers": answers}))


def _zero_grad(result: dict[str, float]) -> None:
    st.subheader(_("Forgetting `zero_grad`"), anchor=False)
    st.code("loss.backward()\nloss_again.backward()  # no optimizer.zero_grad() between", "python")
    show.prose(paragraph("training_step/zero-grad", **result))


def _softmax(result: dict[str, Any]) -> None:
    _lines(MISTAKES["softmax-before-loss"])
    show.prose(paragraph("training_step/loss-input", **{**result, "n": f"{result['n']:,}"}))


def _four_axes(result: tuple[dict[str, tuple[int, ...]], str]) -> None:
    shapes, error = result
    st.subheader(_("`mm` on tensors of four axes"), anchor=False)
    st.code("scores = torch.mm(q, k.transpose(-2, -1))", "python")
    show.prose(paragraph("training_step/mm", **shapes))
    st.code(f"RuntimeError: {error}", None, wrap_lines=True)


def _lines(mistake: Mistake) -> None:
    """Show the name of a mistake, the right code and the wrong code."""
    st.subheader(_(mistake.label), anchor=False)
    st.code(f"{mistake.right}  # right\n\n{mistake.wrong}", "python", wrap_lines=True)


def _model(model_at: ModelAtStep, mistake: Mistake, result: dict[str, float] | str) -> None:
    _lines(mistake)
    st.markdown(_(mistake.help))
    if isinstance(result, str):
        st.code(f"RuntimeError: {result}", None, wrap_lines=True)
        st.caption(_("No training goes past this error."))
        return
    show.prose(paragraph("training_step/model", **result))
    _trained(model_at, mistake)


def _trained(model_at: ModelAtStep, mistake: Mistake) -> None:
    """Train the model with and without the mistake, where that is asked for."""
    from tfm_core.inspect.training_step.wrong_blocks import N_STEPS, trained_apart

    label = _("Train both for {n} steps", n=N_STEPS)
    if not st.toggle(label, key=f"training-step-apart-{mistake.name}"):
        return
    with st.spinner(_("Training …"), show_time=True):
        right, wrong = state.cached(
            f"trained {mistake.name}",
            model_at,
            (),
            partial(trained_apart, name=mistake.name),
        )
    words = paragraph("training_step/trained-apart", n=N_STEPS, right=right, wrong=wrong)
    if abs(wrong - right) < _HARDLY * right:
        words = words + " " + _("This loss does not give the mistake away.")
    st.markdown(words)


def _block(mistake: Mistake, result: WrongBlock) -> None:
    _lines(mistake)
    table, difference, spread, fact = result
    rows = zip((_("right"), _("with the mistake")), table["n"], table["numbers"], strict=True)
    show.facts(
        [
            (name, f"{n:,}", f"`{' '.join(f'{value:+.3f}' for value in values)}`")
            for name, n, values in rows
        ],
        ["", _("parameters of the block"), _("out, first token")],
    )
    show.prose(
        paragraph(
            "training_step/outputs-differ", difference=difference, spread=spread, fact=_(fact)
        )
    )


def _eval(result: tuple[dict[str, float], bool]) -> None:
    figures, is_borrowed = result
    st.subheader(_("Forgetting `model.eval()`"), anchor=False)
    st.code("first, second = model(batch), model(batch)  # still in model.train()", "python")
    words = paragraph("training_step/eval", **figures)
    if is_borrowed:
        words = words + " " + _("This model has no dropout; its copy was given some.")
    st.markdown(words)
