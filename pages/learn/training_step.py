"""One training step: the article on batch, loss, gradients and update, and what goes wrong.

A session keeps only the learning rates of its steps; the trainers follow from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import pandas as pd
import streamlit as st

from pages.app import article, show, state
from pages.app.address import view
from pages.app.article import Figures, Made
from pages.app.runs import shown_run
from pages.app.settings import model_choice
from pages.app.settings.model_choice import Chosen
from pages.app.typed import escape
from pages.i18n import N_, _, paragraph
from tfm_core.choices.config import to_json
from tfm_core.choices.mistakes import MISTAKES, Mistake
from tfm_core.inspect.attention import trained
from tfm_core.plots.model.walk import tensor_map
from tfm_core.plots.png import picture_url
from tfm_core.plots.training import training_step as plots
from tfm_core.probe.types import Floats
from tfm_core.trace import learning, mistakes, update
from tfm_core.trace.backward import fold, graph_of, groups_of
from tfm_core.trace.learning import ModelAtStep, StepTaken

if TYPE_CHECKING:
    from tfm_core.training.loop import Trainer

SCOPE = "training-step"
LAST = "last"
STAGES = {
    "batch": N_("Batch and forward"),
    "loss": N_("Loss"),
    "backward": N_("Backward"),
    "update": N_("Update"),
    "after": N_("After the step"),
    "ways": N_("Module or function"),
    "mistakes": N_("Famous mistakes"),
}
MAX_STEPS = 30
RATES = (*tuple(float(f"{digit}e{power}") for power in range(-5, 1) for digit in (1, 2, 5)), 10.0)
TRIED = (*tuple(float(f"{digit}e{power}") for power in range(-5, 1) for digit in (1, 3)), 10.0)
_TAKEN = "training-step-path"
_SHOWN = 64  # rows of the table
T = TypeVar("T")


@dataclass(frozen=True)
class TrainingStep:
    """The weights from which steps are taken, and the stage of the next one that is shown."""

    weights: str = view.choice(
        N_("Weights"),
        {"first": N_("First weights"), LAST: N_("Last checkpoint")},
        help=N_("Losses and gradients of a finished run are close to 0."),
    )
    stage: str = view.choice(N_("Stage"), STAGES)


def step(_made: Made) -> None:
    """Choose a model and a rate; show one stage of its next step."""
    chosen = _pick()
    if chosen is None:
        return
    weights, status, stage = st.container(), st.container(), st.container()
    has_checkpoint = chosen.run is not None and chosen.run.has_checkpoint
    settings = view.ask(
        TrainingStep,
        SCOPE,
        places={"weights": weights, "stage": stage},
        hidden=() if has_checkpoint else ("weights",),
    )
    model_at = _model_at(chosen, is_last=has_checkpoint and settings.weights == LAST)
    try:
        with status:
            with st.spinner(_("The step …"), show_time=False):
                _status(chosen, model_at)
            rate = _rate(model_at)
        _DRAWN[settings.stage](model_at, rate)
        _history(model_at)
    except ValueError as error:
        show.problem(error)


def _pick() -> Chosen | None:
    """Choose the model; return None, with a message, if it cannot be trained."""
    title = N_("A small translator, plain SGD")
    small = model_choice.Example("sgd-example", title, learning.example())
    chosen, facts, _choices = model_choice.line(
        SCOPE, shown_run.current_run(), is_trained=True, example=small
    )
    facts.markdown(f"**{escape(chosen.label)}**")
    if chosen.experiment is not None and chosen.experiment.training is None:
        st.info(paragraph("training_step/opened"), icon=":material/folder_open:")
        return None
    if chosen.experiment is None:
        st.info(
            _("A published model has only shapes. Choose another model."),
            icon=":material/straighten:",
        )
        return None
    return chosen


def _model_at(chosen: Chosen, *, is_last: bool) -> ModelAtStep:
    """Return a model with the session's steps.

    is_last: from the run's last checkpoint instead of its first weights.
    """
    assert chosen.experiment is not None
    model_at = ModelAtStep(to_json(chosen.experiment))
    if is_last and chosen.run is not None:
        checkpoint = str(chosen.run.folder / "checkpoints" / "last")
        mark = trained.checkpoint_mark(chosen.run)
        model_at = replace(model_at, checkpoint=checkpoint, mark=mark)
    return model_at.after(*st.session_state.get(_TAKEN, {}).get(model_at.subject, ()))


def _status(chosen: Chosen, model_at: ModelAtStep) -> None:
    """Show which weights these are, and the next step. Raises ValueError."""
    step = model_at.use(lambda trainer: trainer.step)
    upcoming = f"{step + 1:,}"
    if model_at.rates:
        last = model_at.last_step
        words = paragraph(
            "training_step/steps-taken",
            n=len(model_at.rates),
            next=upcoming,
            step=f"{step:,}",
            before=last.loss_before,
            after=last.loss_after,
        )
    elif model_at.checkpoint:
        words = _("A copy of the last checkpoint; next: **step {next}**.", next=upcoming)
    elif chosen.run is not None:
        words = _("The run's first, random weights; next: **step {next}**.", next=upcoming)
    else:
        words = _("The configuration's first weights; next: **step {next}**.", next=upcoming)
    st.markdown(words)


def _rate(model_at: ModelAtStep) -> float:
    """Draw the learning rate and the buttons; return the rate of the next step."""
    left, right = st.columns(2, vertical_alignment="bottom")

    def read(trainer: Trainer) -> tuple[float, bool]:
        return learning.scheduled_rate(trainer), trainer.step >= trainer.experiment.trained.steps

    rate, is_over = model_at.use(read)
    follows = left.toggle(
        _("The schedule's learning rate: {rate}", rate=f"{rate:.3g}"),
        value=True,
        key="training-step-follow",
        help=_("The schedule has ended; this is its peak.")
        if is_over
        else _("Training would use this rate."),
    )
    if not follows:
        rate = right.select_slider(
            _("Learning rate"),
            RATES,
            value=min(RATES, key=lambda shown: abs(math.log(shown / max(rate, 1e-9)))),
            format_func=lambda shown_rate: f"{shown_rate:g}",
            key="training-step-rate",
            persist_state="session",
        )
    n = len(model_at.rates)
    most = _("{n} steps at most.", n=MAX_STEPS) if n >= MAX_STEPS else None
    start, further = replace(model_at, rates=()), model_at.after(rate)
    with st.container(horizontal=True):
        _button("take", _("Take this step"), "skip_next", further, n < MAX_STEPS, most)
        _button("undo", _("Undo"), "undo", model_at.earlier, n > 0)
        _button("clear", _("Start over"), "first_page", start, n > 1)
    return rate


def _button(
    name: str, label: str, icon: str, to: ModelAtStep, is_on: bool, help: str | None = None
) -> None:
    """Draw a button that lets the session's steps be those of another model."""

    def go_to() -> None:
        st.session_state.setdefault(_TAKEN, {})[to.subject] = to.rates

    st.button(
        label,
        type="primary" if name == "take" else "secondary",
        icon=f":material/{icon}:",
        key=f"training-step-{name}",
        on_click=go_to,
        disabled=not is_on,
        help=help,
    )


def _history(model_at: ModelAtStep) -> None:
    n = len(model_at.rates)
    if n:
        taken = [replace(model_at, rates=model_at.rates[: i + 1]).last_step for i in range(n)]
        caption = _("Each step has its own batch.")
        show.figure(plots.history(taken), caption, key="training-step-history")


def _batch(model_at: ModelAtStep, _rate: float) -> None:
    rows, loss = model_at.cached("batch", learning.batch)
    st.markdown(_("**{n} examples** of the shuffled training set.", n=len(rows)))
    if loss is None:
        st.info(_("This loss is one number, not a cross-entropy."))
    else:
        show.figure(
            plots.example_losses(rows["loss"].to_numpy(), _names(rows), loss),
            _("Tall bars have large gradients. The line is their mean, the loss."),
            key="training-step-losses",
        )
    some = rows[:_SHOWN]
    columns: dict[str, object] = {_("number"): some["number"]}
    config = {_("number"): st.column_config.NumberColumn(width="small")}
    if loss is not None:  # before the sentences, which may be wider than the page
        columns[_("loss (nats)")] = some["loss"]
        config[_("loss (nats)")] = st.column_config.NumberColumn(format="%.4g", width="small")
    if "picture" in rows:
        columns[_("picture")] = some["picture"].map(picture_url)
        config[_("picture")] = st.column_config.ImageColumn()
    else:
        columns[_("input")] = some["input"]
    columns[_("target")] = some["target"]
    st.dataframe(pd.DataFrame(columns), hide_index=True, column_config=config, height=320)
    if len(rows) > _SHOWN:
        st.caption(_("The first {n} of {total}.", n=_SHOWN, total=len(rows)))


def _names(rows: pd.DataFrame) -> list[str]:
    """Return input and target of each example; a text to continue has only a target."""
    pairs = zip(rows["input"], rows["target"], strict=True)
    return [
        _("{source} → {target}", source=source, target=other) if source else other
        for source, other in pairs
    ]


def _loss(model_at: ModelAtStep, _rate: float) -> None:
    """Show one answer: logits, log-softmax, loss."""
    rows, loss = model_at.cached("batch", learning.batch)
    if loss is None:
        st.info(_("This loss is not a cross-entropy, so it has no classes to show."))
        return
    names = _names(rows)
    left, right = st.columns(2)
    example = left.selectbox(
        _("Example"),
        range(len(names)),
        format_func=lambda i: f"{i + 1}: {names[i]}",
        key="training-step-example",
    )
    there = rows["answers"][example or 0]
    at = right.selectbox(
        _("Answer"),
        range(len(there)),
        format_func=lambda i: _("answer {n}", n=i + 1),
        key=f"training-step-answer-{len(there)}",
        disabled=len(there) == 1,
    )
    if not there:
        st.caption(_("No answer of this example counts. Choose another."))
        return
    number = there[at or 0]
    work = partial(learning.one_answer, number=number)
    table, right_one = model_at.cached(f"answer {number}", work)
    if "picture" in rows:
        named = rows["target"][example]
        st.image(picture_url(rows["picture"][example]), width=84, caption=named, alt=named)
    n = right_one["n_classes"]
    show.figure(
        plots.answer(table, right_one["target"]),
        _("The likeliest of {n} classes; the ticked one is right.", n=f"{n:,}"),
        key="training-step-answer",
    )
    _arithmetic(table, right_one)
    article.check({"guessing": learning.guessing_question(n)}, of=f"{n}")


def _arithmetic(table: pd.DataFrame, right_one: dict[str, Any]) -> None:
    if right_one["is_changed"]:
        st.markdown(_("A mistake changes the logits before the loss."))
    target = right_one["target"].replace("`", "")
    show.prose(paragraph("training_step/cross-entropy", **{**right_one, "target": target}))
    columns = {_("logit"): table["logit"], _("log p"): -table["nats"], _("p"): table["chance"]}
    form = st.column_config.NumberColumn(format="%.4f")
    small = st.column_config.NumberColumn(format="%.4g")  # small ones are not 0
    st.dataframe(
        pd.DataFrame({_("class"): table["class"], **columns}),
        hide_index=True,
        column_config={**dict.fromkeys(columns, form), _("p"): small},
    )
    if right_one["smoothing"]:
        st.caption(paragraph("training_step/smoothing", share=right_one["smoothing"]))


_TALL = 12  # groups above which a graph scrolls in its own window
_WINDOW = 32  # rows and columns of the heatmap


def _backward(model_at: ModelAtStep, _rate: float) -> None:
    graph = model_at.cached("graph", graph_of)
    show.prose(paragraph("training_step/graph", n=len(graph[0])))
    opened = st.selectbox(
        _("Open"),
        groups_of(graph),
        index=None,
        placeholder=_("One box for each part"),
        key="training-step-open",
    )
    folded = fold(graph, opened or "")
    dot = plots.graph(folded, state.theme(), say=_)
    n_groups = len(folded[0])
    height: int | Literal["content"] = 620 if n_groups > _TALL else "content"
    with st.container(border=True, height=height, horizontal_alignment="center"):
        st.graphviz_chart(dot, width="content" if n_groups <= 30 else "stretch")
    st.caption(
        _("Arrows show the norm and shape of a gradient; boxes, the norm over their parameters.")
    )
    names = model_at.own_names
    found = model_at.cached("gradients", lambda trainer: learning.gradients(trainer)[1])
    gradients = {names[name]: one.numpy() for name, one in found.items()}
    norms = np.array([np.linalg.norm(gradient) for gradient in gradients.values()], np.float32)
    show.figure(
        plots.gradient_norms([*gradients], norms, [one.size for one in gradients.values()]),
        _("One bar per parameter, from input to output."),
        key="training-step-norms",
    )
    name = st.selectbox(
        _("One gradient as a map"),
        [name for name, gradient in gradients.items() if gradient.ndim >= 1],
        key="training-step-parameter",
    )
    _heatmap(gradients[name])


def _heatmap(values: Floats) -> None:
    """Show a gradient around its largest number."""
    flat = values.reshape(len(values), -1) if values.ndim > 1 else values[None, :]
    largest = [int(at) for at in np.unravel_index(np.abs(flat).argmax(), flat.shape)]
    starts = [
        min(max(0, at - _WINDOW // 2), max(0, size - _WINDOW))
        for at, size in zip(largest, flat.shape, strict=True)
    ]
    part = flat[starts[0] :, starts[1] :][:_WINDOW, :_WINDOW]
    labels = [
        [f"{axis}: {first + i + 1}" for i in range(size)]
        for axis, first, size in zip((_("row"), _("column")), starts, part.shape, strict=True)
    ]
    figure = tensor_map(part, *labels, row_title=_("row"), column_title=_("column"))
    row, column = largest
    words = paragraph(
        "training_step/window",
        rows=part.shape[0],
        columns=part.shape[1],
        shape=" x ".join(map(str, values.shape)),
        value=float(flat[row, column]),
        row=row + 1,
        column=column + 1,
    )
    show.figure(figure, words, key="training-step-gradient")


def _update(model_at: ModelAtStep, rate: float) -> None:
    result = model_at.after(rate).last_step
    optimiser = result.optimiser
    name, at = _weight(result, model_at.own_names)
    lines, by_hand, real = update.one_weight(result, name, at)
    mover = result.mover(name)
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
        columns=[_("quantity"), _("formula"), _("value")],
    )
    st.dataframe(frame, hide_index=True, height=38 + 35 * len(frame))
    difference = abs(by_hand - real)
    is_same = difference <= 1e-6 + 1e-4 * abs(real)
    show_it = st.success if is_same else st.warning
    show_it(
        paragraph("training_step/by-hand", real=real, hand=by_hand, d=difference),
        icon=":material/check:" if is_same else ":material/error:",
    )
    values = update.singular_values(result, name, at)
    if values is not None:
        show.figure(
            plots.singular_values(values.numpy()),
            paragraph("training_step/orthogonal", **update.orthogonality(values.numpy())),
            key="training-step-singular",
        )


def _weight(result: StepTaken, own_names: Mapping[str, str]) -> tuple[str, tuple[int, ...]]:
    """Choose a weight; the default has the largest gradient that the optimiser itself applies."""
    names = list(result.gradients)
    left, *places = st.columns([3, 1, 1], vertical_alignment="bottom")
    name = left.selectbox(
        _("Parameter"),
        names,
        index=names.index(update.largest(result)),
        format_func=own_names.__getitem__,
        key="training-step-weight",
    )
    shape = tuple(result.gradients[name].shape)
    index = [int(i) for i in np.unravel_index(int(result.gradients[name].abs().argmax()), shape)]
    key = name.replace(".", "-")
    axes = zip(places, (_("Row"), _("Column")), shape, strict=False)
    for axis, (place, label, size) in enumerate(axes):
        first = index[axis] + 1
        picked = place.number_input(label, 1, size, first, key=f"training-step-{axis}-{key}")
        index[axis] = picked - 1
    return name, tuple(index)


def _after(model_at: ModelAtStep, rate: float) -> None:
    """Show the loss of the same batch after the step, at this rate and at others."""
    result = model_at.after(rate).last_step
    before, after = result.loss_before, result.loss_after
    expected = learning.step_question(rate, before, after)
    if not article.guess(expected, "step", of=model_at.subject):
        return
    left, middle, right = st.columns(3)
    left.metric(_("Loss before (nats)"), f"{before:.4g}")
    middle.metric(
        _("Loss after, same batch (nats)"),
        f"{after:.4g}",
        f"{after - before:+.2g}" if math.isfinite(after - before) else None,
        delta_color="inverse",
    )
    right.metric(_("Learning rate"), f"{rate:.3g}")
    losses = model_at.cached("rates", lambda trainer: learning.losses_at(trainer, TRIED))
    show.figure(
        plots.rates(TRIED, losses, before, rate),
        paragraph("training_step/line", rate=TRIED[-1], loss=losses[-1]),
        key="training-step-rates",
    )
    if after > before:
        best = TRIED[int(np.argmin(losses))]
        st.warning(
            paragraph("training_step/overshoots", rate=rate, best=best),
            icon=":material/trending_up:",
        )


def _two_ways(model_at: ModelAtStep, rate: float) -> None:
    st.header(_("One layer, in plain PyTorch"), anchor=False)
    for column, (title, code, printed) in zip(st.columns(2), update.one_layer(), strict=True):
        with column:
            st.markdown(_(title))
            st.code(code, "python", wrap_lines=True)
            st.markdown(_("It prints:"))
            st.code(printed, None, wrap_lines=True)
    show.prose(paragraph("training_step/modules-or-functions"))
    st.header(_("A whole step of your model"), anchor=False)
    result = model_at.after(rate).last_step
    both = model_at.cached(f"ways {rate}", lambda _trainer: update.two_ways(result))
    is_same = both["gradient"] < 1e-4 and both["weight"] < 1e-2 * max(rate, 1e-3)
    show_it = st.success if is_same else st.warning
    show_it(paragraph("training_step/both-run", **both), icon=":material/balance:")
    left, right = st.columns(2)
    with left:
        st.markdown(_("**`nn.Module`**: the optimiser changes the weights in place."))
        st.code(update.code(update.with_modules), "python", wrap_lines=True)
    with right:
        st.markdown(_("**Functions**: weights in, gradients out; nothing changes."))
        st.code(update.code(update.with_functions), "python", wrap_lines=True)
        rules = update.ARITHMETIC[result.optimiser.name]
        st.code("\n\n".join(map(update.code, rules)), "python", wrap_lines=True)


_HARDLY = 0.02
"""The share of a loss below which its change is no sign of a mistake."""


def _mistakes(model_at: ModelAtStep, _rate: float) -> None:
    """Show mistakes of the loop and of the model's code, made on a copy just now."""
    show_one = partial(_mistake, model_at)
    st.header(_("In the training loop"), anchor=False)
    for name, (title, code, work) in mistakes.LOOP_MISTAKES.items():
        show_one(_(title), code, work, _told(name))
    st.header(_("In the code of a block"), anchor=False)
    st.caption(
        _("The first block on the next batch, with and without the mistake, without dropout.")
    )
    code = "scores = torch.mm(q, k.transpose(-2, -1))"
    show_one(_("`mm` on tensors of four axes"), code, mistakes.mm_on_four_axes, _told("mm"))
    for name, in_block in mistakes.BLOCK_MISTAKES.items():
        show_one(_(MISTAKES[name].label), mistakes.code_of(MISTAKES[name]), in_block, _block)
    st.header(_("In the code of the model"), anchor=False)
    st.caption(_("The model on the next batch, with and without the mistake."))
    for one in (MISTAKES[name] for name in mistakes.MODEL_MISTAKES):
        in_model = partial(mistakes.in_model, name=one.name)
        show_one(_(one.label), mistakes.code_of(one), in_model, partial(_model, model_at, one))


def _mistake(
    model_at: ModelAtStep,
    title: str,
    code: str,
    work: Callable[[Trainer], T],
    tell: Callable[[T], None],
) -> None:
    """Show a mistake, its code, and what it does; or why it cannot be mistakes."""
    with st.container(border=True):
        try:
            result = model_at.cached(f"mistake {code}", work)
        except ValueError as error:
            st.info(_(error), icon=":material/info:")
            return
        st.subheader(title, anchor=False)
        st.code(code, "python", wrap_lines=True)
        tell(result)


def _told(name: str) -> Callable[[dict[str, Any]], None]:
    """Return what says in a paragraph what a mistake does in numbers."""

    def tell(result: dict[str, Any]) -> None:
        words = paragraph(f"training_step/{name}", **result)
        if result.get("is_borrowed"):
            words = words + " " + _("This model has no dropout; its copy was given some.")
        show.prose(words)
        if "error" in result:
            st.code(f"RuntimeError: {result['error']}", None, wrap_lines=True)

    return tell


def _model(model_at: ModelAtStep, mistake: Mistake, result: dict[str, float] | str) -> None:
    """Show what a mistake does to the loss; train the model with and without it on request."""
    st.markdown(_(mistake.help))
    if isinstance(result, str):
        st.code(f"RuntimeError: {result}", None, wrap_lines=True)
        st.caption(_("Training stops at this error."))
        return
    show.prose(paragraph("training_step/model", **result))
    label = _("Train both for {n} steps", n=mistakes.N_STEPS)
    if not st.toggle(label, key=f"training-step-apart-{mistake.name}"):
        return
    work = partial(mistakes.train_both, name=mistake.name)
    with st.spinner(_("Training …"), show_time=True):
        right, wrong = model_at.cached(f"trained {mistake.name}", work)
    words = paragraph("training_step/trained-apart", n=mistakes.N_STEPS, right=right, wrong=wrong)
    if abs(wrong - right) < _HARDLY * right:
        words = words + " " + _("This loss does not give the mistake away.")
    st.markdown(words)


def _block(result: mistakes.WrongBlock) -> None:
    table, difference, spread, fact = result
    rows = zip((_("right"), _("with the mistake")), table["n"], table["numbers"], strict=True)
    show.facts(
        [
            (name, f"{n:,}", f"`{' '.join(f'{value:+.3f}' for value in values)}`")
            for name, n, values in rows
        ],
        ["", _("parameters of the block"), _("out, first token")],
    )
    words = paragraph(
        "training_step/outputs-differ", difference=difference, spread=spread, fact=_(fact)
    )
    show.prose(words)


_DRAWN: dict[str, Callable[[ModelAtStep, float], None]] = {
    "batch": _batch,
    "loss": _loss,
    "backward": _backward,
    "update": _update,
    "after": _after,
    "ways": _two_ways,
    "mistakes": _mistakes,
}

FIGURES: Figures = {"step": step}
GUESSES = ("guessing", "step")
"""The questions that its stages ask."""

if __name__ == "__main__":
    article.draw("training-step", FIGURES)
