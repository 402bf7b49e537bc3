"""The batch, the loss of each example, and one answer from its logits to its loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from pages.i18n import _, paragraph
from pages.training_step import state
from pages.training_step.state import ModelAtStep
from pages.ui import show
from pages.ui.model import question
from tfm_core.plots.examples.pictures import picture_url
from tfm_core.plots.training import training_step as plots

if TYPE_CHECKING:
    from tfm_core.inspect.training_step.batch import BatchAnswer, BatchRows, Floats
    from tfm_core.training.loop import Trainer

_SHOWN = 64  # rows of the table


def batch(model_at: ModelAtStep) -> None:
    rows, losses, loss = state.cached("batch", model_at, (), _batch)
    n = len(rows.indices)
    st.markdown(_("**{n} examples** of the shuffled training set.", n=n))
    if losses is None:
        st.info(_("This loss is a single number, not a cross-entropy."))
    else:
        names = _names(rows)
        show.figure(
            plots.example_losses(losses, names, loss),
            _("Tall bars: large gradients. Line: their mean, the loss."),
            key="training-step-losses",
        )
    _table(rows, losses)


def _names(rows: BatchRows) -> list[str]:
    """Return input and target of each example; a text to continue has only a target."""
    pairs = zip(rows.inputs, rows.targets, strict=True)
    return [
        _("{source} → {target}", source=source, target=other) if source else other
        for source, other in pairs
    ]


def _table(rows: BatchRows, losses: Floats | None) -> None:
    columns: dict[str, Sequence[object] | Floats] = {_("number"): rows.indices[:_SHOWN]}
    config = {_("number"): st.column_config.NumberColumn(width="small")}
    if losses is not None:  # before the sentences, which may be wider than the page
        columns[_("loss (nats)")] = losses[:_SHOWN]
        config[_("loss (nats)")] = st.column_config.NumberColumn(format="%.4g", width="small")
    if rows.pictures is not None:
        columns[_("picture")] = [picture_url(picture) for picture in rows.pictures[:_SHOWN]]
        config[_("picture")] = st.column_config.ImageColumn()
    else:
        columns[_("input")] = rows.inputs[:_SHOWN]
    columns[_("target")] = rows.targets[:_SHOWN]
    st.dataframe(pd.DataFrame(columns), hide_index=True, column_config=config, height=320)
    if len(rows.indices) > _SHOWN:
        st.caption(_("The first {n} of {total}.", n=_SHOWN, total=len(rows.indices)))


def loss(model_at: ModelAtStep) -> None:
    """Show one answer: logits, log-softmax, loss."""
    from tfm_core.inspect.training_step.questions import about_guessing

    counted = state.cached("counted", model_at, (), _counted)
    if counted is None:
        st.info(_("This loss is not a cross-entropy: no classes to show."))
        return
    rows, answers = counted
    names = _names(rows)
    left, right = st.columns(2)
    with left:
        example = st.selectbox(
            _("Example"),
            range(len(names)),
            format_func=lambda i: f"{i + 1}: {names[i]}",
            key="training-step-example",
        )
    with right:
        there = answers[example or 0]
        at = st.selectbox(
            _("Answer"),
            range(len(there)),
            format_func=lambda i: _("answer {n}", n=i + 1),
            key=f"training-step-answer-{len(there)}",
            disabled=len(there) == 1,
        )
    if not there:
        st.caption(_("No answer of this example counts: choose another."))
        return
    number = there[at or 0]
    answer = state.cached("answer", model_at, (number,), lambda trainer: _answer(trainer, number))
    if rows.pictures is not None:
        named = rows.targets[example]
        st.image(picture_url(rows.pictures[example]), width=84, caption=named, alt=named)
    show.figure(
        plots.answer(answer),
        _("The likeliest of {n} classes; the ticked one is right.", n=f"{answer.n_classes:,}"),
        key="training-step-answer",
    )
    _arithmetic(answer)
    asked = about_guessing(answer)
    question.check({"guessing": asked}, of=f"{answer.n_classes}")


def _arithmetic(answer: BatchAnswer) -> None:
    index = answer.names.index(answer.target)
    logit = float(answer.logits[index])
    if answer.is_changed:
        st.markdown(_("A mistake changes the logits before the loss."))
    show.prose(
        paragraph(
            "training_step/cross-entropy",
            target=answer.target.replace("`", ""),
            logit=logit,
            log_sum=answer.log_sum,
            log_p=-answer.loss,
            p=float(answer.probabilities[index]),
            loss=answer.loss,
        )
    )
    frame = pd.DataFrame(
        {
            _("class"): answer.names,
            _("logit"): answer.logits,
            _("log p"): answer.log_probabilities,
            _("p"): answer.probabilities,
        }
    )
    form = st.column_config.NumberColumn(format="%.4f")
    forms = {name: form for name in frame.columns[1:-1]}
    forms[_("p")] = st.column_config.NumberColumn(format="%.4g")  # small ones are not 0
    st.dataframe(frame, hide_index=True, column_config=forms)
    if answer.smoothing:
        st.caption(paragraph("training_step/smoothing", share=answer.smoothing))


def _batch(trainer: Trainer) -> tuple[BatchRows, Floats | None, float]:
    from tfm_core.inspect.training_step.batch import answers, batch_rows, example_losses

    rows, scored = batch_rows(trainer), answers(trainer)
    if scored is None:
        return rows, None, 0.0
    return rows, example_losses(scored, len(rows.indices)), scored.loss


def _counted(trainer: Trainer) -> tuple[BatchRows, list[list[int]]] | None:
    from tfm_core.inspect.training_step.batch import answers, batch_rows

    rows, scored = batch_rows(trainer), answers(trainer)
    if scored is None:
        return None
    return rows, [scored.of(example) for example in range(len(rows.indices))]


def _answer(trainer: Trainer, number: int) -> BatchAnswer:
    from tfm_core.inspect.training_step.batch import answers, one_answer

    scored = answers(trainer)
    assert scored is not None
    return one_answer(trainer, scored, number)
