"""The same step with modules and with functions; and the famous mistakes, in numbers."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import streamlit as st

from pages.i18n import _
from pages.training_step import state
from pages.training_step.state import Place
from tfm_core.config import Experiment
from tfm_core.variants.optimisers import OPTIMISERS

if TYPE_CHECKING:
    from tfm_core.inspect.training_step.functional import TwoWays
    from tfm_core.inspect.training_step.mistakes import Argmax, Noisy, Piled, Softmaxed
    from tfm_core.training.loop import Trainer

T = TypeVar("T")


def two_ways(place: Place, rate: float) -> None:
    """Show both codes, and that both make the same numbers."""
    from tfm_core.inspect.training_step import functional as code

    chosen = Experiment.model_validate_json(place.text).training.optimizer
    rules = OPTIMISERS[chosen].arithmetic
    taken = state.taken(state.after(place, rate))
    found: TwoWays = state.kept(
        "ways", place, (rate,), lambda trainer: code.two_ways(trainer, taken)
    )
    words = _(
        "Both were run just now: losses {one:.6f} and {other:.6f}; gradients differ by at most "
        "{gradient:.2g}, the new weights by at most {weight:.2g}."
    ).format(
        one=found.module_loss,
        other=found.functional_loss,
        gradient=found.gradient_difference,
        weight=found.weight_difference,
    )
    is_same = found.gradient_difference < 1e-4 and found.weight_difference < 1e-2 * max(rate, 1e-3)
    (st.success if is_same else st.warning)(words, icon=":material/balance:")
    left, right = st.columns(2)
    with left:
        st.markdown(
            _("**`nn.Module`**: weights live in objects; the optimiser changes them in place.")
        )
        st.code(inspect.getsource(code.with_modules), "python", wrap_lines=True)
    with right:
        st.markdown(
            _("**Functions**: weights are handed in, gradients handed out; nothing is changed.")
        )
        st.code(inspect.getsource(code.with_functions), "python", wrap_lines=True)
        st.code("\n\n".join(map(inspect.getsource, rules)), "python", wrap_lines=True)


def mistakes(place: Place) -> None:
    """Show four mistakes, made on a copy just now."""
    from tfm_core.inspect.training_step import mistakes as made

    _mistake(place, 0, made.argmax_before_loss, _argmax)
    _mistake(place, 1, made.forgotten_zero_grad, _zero_grad)
    _mistake(place, 2, made.softmax_before_loss, _softmax)
    _mistake(place, 3, made.forgotten_eval, _eval)


def _mistake(
    place: Place, number: int, work: Callable[[Trainer], T], draw: Callable[[T], None]
) -> None:
    with st.container(border=True):
        try:
            draw(state.kept(f"mistake {number}", place, (), work))
        except ValueError as error:
            st.info(_(error), icon=":material/info:")


def _argmax(found: Argmax) -> None:
    st.markdown(_("**argmax before the loss**"))
    st.code("wrong = (logits.argmax(-1) != targets).float().mean()\nwrong.backward()", "python")
    st.markdown(
        _("{share:.1%} of the answers are wrong, and that is all one learns: `grad_fn` is "
          "**{grad_fn}**, as a count does not change when a weight changes a little. "
          "`backward()` says:").format(share=found.wrong_share, grad_fn=found.grad_fn)
    )  # fmt: skip
    st.code(f"RuntimeError: {found.error}", None, wrap_lines=True)


def _zero_grad(found: Piled) -> None:
    st.markdown(_("**forgetting `zero_grad`**"))
    st.code("loss.backward()\nloss_again.backward()  # no optimizer.zero_grad() between", "python")
    st.markdown(
        _("The norm of the gradient is {once:.4f} after one pass and **{twice:.4f}** after two: "
          "gradients add up, here to twice the same within {d:.2g}. Every step would also follow "
          "all the batches before it.").format(
            once=found.once, twice=found.twice, d=found.difference_from_double
        )
    )  # fmt: skip


def _softmax(found: Softmaxed) -> None:
    st.markdown(_("**softmax before `cross_entropy`**"))
    st.code("F.cross_entropy(logits.softmax(-1), targets)  # it takes logits", "python")
    st.markdown(
        _("The loss says {wrong:.4f} instead of {right:.4f}, and can never fall below "
          "**{floor:.4f}** with {n} classes, however sure the model. The gradient's norm is "
          "{wrong_norm:.4f} instead of {right_norm:.4f}.").format(
            wrong=found.wrong_loss, right=found.right_loss, floor=found.floor,
            n=f"{found.n_classes:,}", wrong_norm=found.wrong_norm, right_norm=found.right_norm,
        )
    )  # fmt: skip


def _eval(found: Noisy) -> None:
    st.markdown(_("**forgetting `model.eval()`**"))
    st.code("first, second = model(batch), model(batch)  # still in model.train()", "python")
    words = _(
        "With dropout {share:g} two predictions for the same batch differ by up to **{noisy:.4f}** "
        "in a logit; after `model.eval()` by {quiet:g}."
    ).format(share=found.dropout, noisy=found.in_training, quiet=found.in_eval)
    if found.is_borrowed:
        words += " " + _("This model has no dropout; its copy got some, so that there is something "
                         "to see.")  # fmt: skip
    st.markdown(words)
