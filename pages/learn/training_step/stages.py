"""The stages of a step: from the batch to the loss after it, its two ways, famous mistakes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import pandas as pd
import streamlit as st

from pages.app import show
from pages.app import state as app_state
from pages.app.model import question
from pages.i18n import _, paragraph
from pages.learn.training_step import state
from pages.learn.training_step.state import ModelAtStep
from tfm_core.choices.config import Experiment
from tfm_core.choices.mistakes import MISTAKES, Mistake
from tfm_core.choices.variants.optimisers import OPTIMISERS, RMS, Optimiser
from tfm_core.inspect.syntax import source
from tfm_core.plots.examples.pictures import picture_url
from tfm_core.plots.model.walk import tensor_map
from tfm_core.plots.palette import INKS, LINES
from tfm_core.plots.training import training_step as plots
from tfm_core.probe.types import Floats

if TYPE_CHECKING:
    from tfm_core.inspect.training_step.backward import Graph
    from tfm_core.inspect.training_step.mistakes import WrongBlock
    from tfm_core.inspect.training_step.step import StepTaken
    from tfm_core.training.loop import Trainer


_SHOWN = 64  # rows of the table


def batch(model_at: ModelAtStep) -> None:
    rows, losses, loss, _answers = state.cached("batch", model_at, (), _batch)
    n = len(rows)
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


def _names(rows: pd.DataFrame) -> list[str]:
    """Return input and target of each example; a text to continue has only a target."""
    pairs = zip(rows["input"], rows["target"], strict=True)
    return [
        _("{source} → {target}", source=source, target=other) if source else other
        for source, other in pairs
    ]


def _table(rows: pd.DataFrame, losses: Floats | None) -> None:
    some = rows[:_SHOWN]
    columns: dict[str, object] = {_("number"): some["number"]}
    config = {_("number"): st.column_config.NumberColumn(width="small")}
    if losses is not None:  # before the sentences, which may be wider than the page
        columns[_("loss (nats)")] = losses[:_SHOWN]
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


def loss(model_at: ModelAtStep) -> None:
    """Show one answer: logits, log-softmax, loss."""
    from tfm_core.inspect.training_step.step import about_guessing

    rows, losses, _loss, answers = state.cached("batch", model_at, (), _batch)
    if losses is None:
        st.info(_("This loss is not a cross-entropy: no classes to show."))
        return
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
    table, right_one = state.cached("answer", model_at, (number,), partial(_answer, number=number))
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
    question.check({"guessing": about_guessing(n)}, of=f"{n}")


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


def _batch(trainer: Trainer) -> tuple[pd.DataFrame, Floats | None, float, list[list[int]]]:
    """Return the rows of a batch, their losses, that of all, and which answers of each count."""
    from tfm_core.inspect.training_step.backward import answers, batch_rows, example_losses

    rows, scored = batch_rows(trainer), answers(trainer)
    if scored is None:
        return rows, None, 0.0, []
    counted = [scored.of(example) for example in range(len(rows))]
    return rows, example_losses(scored, len(rows)), scored.loss, counted


def _answer(trainer: Trainer, number: int) -> tuple[pd.DataFrame, dict[str, Any]]:
    from tfm_core.inspect.training_step.backward import answers, one_answer

    scored = answers(trainer)
    assert scored is not None
    return one_answer(trainer, scored, number)


FILLS = {
    "light": {"loss": "#f6d9c3", "group": "#cfe2f3", "single": "#fbfaf7", "parameter": "#ecd5e4"},
    "dark": {"loss": "#5a3216", "group": "#1d3d5a", "single": "#14171c", "parameter": "#4a2d40"},
}
_TALL = 12  # groups of a graph that gets a window of its own to scroll in
_WINDOW = 32  # rows and columns of the heatmap


def backward(model_at: ModelAtStep) -> None:
    _graph(model_at)
    gradients = state.cached("gradients", model_at, (), _gradients)
    own_name = state.own_names_of(model_at)
    names = [own_name(name) for name in gradients]
    norms = np.array([np.linalg.norm(gradient) for gradient in gradients.values()], np.float32)
    show.figure(
        plots.gradient_norms(names, norms, [gradient.size for gradient in gradients.values()]),
        _("One bar per parameter, from input to output."),
        key="training-step-norms",
    )
    _heatmap(dict(zip(names, gradients.values(), strict=True)))


def _graph(model_at: ModelAtStep) -> None:
    from tfm_core.inspect.training_step.backward import fold, graph_of, groups_of

    graph: Graph = state.cached("graph", model_at, (), graph_of)
    show.prose(paragraph("training_step/graph", n=len(graph[0])))
    opened = st.selectbox(
        _("Open"),
        groups_of(graph),
        index=None,
        placeholder=_("nothing: one box for each part"),
        key="training-step-open",
    )
    folded, theme = fold(graph, opened or ""), app_state.theme()
    dot = plots.graph(folded, ink=INKS[theme], line=LINES[theme], fills=FILLS[theme], say=_)
    n_groups = len(folded[0])
    height: int | Literal["content"] = 620 if n_groups > _TALL else "content"
    with st.container(border=True, height=height, horizontal_alignment="center"):
        st.graphviz_chart(dot, width="content" if n_groups <= 30 else "stretch")
    st.caption(_("Arrows: norm and shape of the gradient. Boxes: its norm at the parameters."))


def _heatmap(gradients: dict[str, np.ndarray]) -> None:
    name = st.selectbox(
        _("One gradient as a map"),
        [name for name, gradient in gradients.items() if gradient.ndim >= 1],
        key="training-step-parameter",
    )
    values = gradients[name]
    flat = values.reshape(len(values), -1) if values.ndim > 1 else values[None, :]
    row, column = np.unravel_index(np.abs(flat).argmax(), flat.shape)
    tops = [
        int(np.clip(at - _WINDOW // 2, 0, max(0, size - _WINDOW)))
        for at, size in zip((row, column), flat.shape, strict=True)
    ]
    part = flat[tops[0] : tops[0] + _WINDOW, tops[1] : tops[1] + _WINDOW]
    labels = [
        [f"{axis}: {first + i + 1}" for i in range(size)]
        for axis, first, size in zip((_("row"), _("column")), tops, part.shape, strict=True)
    ]
    figure = tensor_map(
        part, *labels, row_title=_("row"), column_title=_("column"), theme=app_state.theme()
    )
    show.figure(
        figure,
        paragraph(
            "training_step/window",
            rows=part.shape[0],
            columns=part.shape[1],
            shape=" x ".join(map(str, values.shape)),
            value=float(flat[row, column]),
            row=int(row) + 1,
            column=int(column) + 1,
        ),
        key="training-step-gradient",
    )


def _gradients(trainer: Trainer) -> dict[str, np.ndarray]:
    from tfm_core.inspect.training_step.step import gradients

    return {name: gradient.numpy() for name, gradient in gradients(trainer)[1].items()}


TRIED = (*tuple(float(f"{digit}e{power}") for power in range(-5, 1) for digit in (1, 3)), 10.0)


def one_weight(model_at: ModelAtStep, rate: float) -> None:
    from tfm_core.inspect.training_step.update import one_weight as lines_of
    from tfm_core.inspect.training_step.update import singular_values

    optimiser = OPTIMISERS[Experiment.model_validate_json(model_at.text).trained.optimizer]
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
    from tfm_core.inspect.training_step.step import about_step, losses_at

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
    losses = state.cached("rates", model_at, (), lambda trainer: losses_at(trainer, TRIED))
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


T = TypeVar("T")
_HARDLY = 0.02
"""The share of a loss below which its change is no sign of a mistake."""


def one_layer() -> None:
    from tfm_core.inspect.training_step import update

    st.header(_("One layer, in plain PyTorch"), anchor=False)
    for column, (title, code, printed) in zip(st.columns(2), update.one_layer(), strict=True):
        with column:
            st.markdown(_(title))
            st.code(code, "python", wrap_lines=True)
            st.markdown(_("It prints:"))
            st.code(printed, None, wrap_lines=True)
    show.prose(paragraph("training_step/modules-or-functions"))


def two_ways(model_at: ModelAtStep, rate: float) -> None:
    from tfm_core.inspect.training_step import update as code

    one_layer()
    st.header(_("A whole step of your model"), anchor=False)

    chosen = Experiment.model_validate_json(model_at.text).trained.optimizer
    rules = code.ARITHMETIC[chosen]
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

    st.header(_("In the training loop"), anchor=False)

    again = "loss.backward()\nloss_again.backward()  # no optimizer.zero_grad() between"
    twice = "first, second = model(batch), model(batch)  # still in model.train()"
    wrong = "wrong = (logits.argmax(-1) != targets).float().mean()\nwrong.backward()"
    silent, probabilities = (
        MISTAKES[name] for name in ("argmax-before-loss", "softmax-before-loss")
    )
    loop: dict[str, tuple[Callable[[Trainer], dict[str, Any]], str, str]] = {
        "argmax": (made.argmax_before_loss, _("argmax before the loss"), wrong),
        "new-leaf": (made.argmax_made_to_require_grad, _(silent.label), _both(silent)),
        "zero-grad": (made.forgotten_zero_grad, _("Forgetting `zero_grad`"), again),
        "loss-input": (made.softmax_before_loss, _(probabilities.label), _both(probabilities)),
        "eval": (made.forgotten_eval, _("Forgetting `model.eval()`"), twice),
    }
    for number, (name, (work, title, code)) in enumerate(loop.items()):
        _mistake(model_at, number, work, partial(_measured, title, code, name))
    st.header(_("In the code of a block"), anchor=False)
    st.caption(_("The first block on the next batch, with and without the mistake; no dropout."))
    code = "scores = torch.mm(q, k.transpose(-2, -1))"
    draw = partial(_measured, _("`mm` on tensors of four axes"), code, "mm")
    _mistake(model_at, 5, made.mm_on_four_axes, draw)
    for number, (name, change) in enumerate(made.BLOCK_MISTAKES.items(), 6):
        _mistake(model_at, number, change, partial(_block, MISTAKES[name]))
    st.header(_("In the code of the model"), anchor=False)
    st.caption(_("The model on the next batch, with and without the mistake."))
    for number, name in enumerate(made.MODEL_MISTAKES, 6 + len(made.BLOCK_MISTAKES)):
        _mistake(
            model_at,
            number,
            partial(made.in_model, name=name),
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


def _measured(title: str, code: str, name: str, result: dict[str, Any]) -> None:
    """Show a mistake, its code, and what it does in numbers. name: of the paragraph."""
    st.subheader(title, anchor=False)
    st.code(code, "python", wrap_lines=True)
    words = paragraph(f"training_step/{name}", **result)
    if result.get("is_borrowed"):
        words = words + " " + _("This model has no dropout; its copy was given some.")
    show.prose(words)
    if "error" in result:
        st.code(f"RuntimeError: {result['error']}", None, wrap_lines=True)


def _both(mistake: Mistake) -> str:
    """Return the right code and the wrong code."""
    return f"{mistake.right}  # right\n\n{mistake.wrong}"


def _model(model_at: ModelAtStep, mistake: Mistake, result: dict[str, float] | str) -> None:
    st.subheader(_(mistake.label), anchor=False)
    st.code(_both(mistake), "python", wrap_lines=True)
    st.markdown(_(mistake.help))
    if isinstance(result, str):
        st.code(f"RuntimeError: {result}", None, wrap_lines=True)
        st.caption(_("No training goes past this error."))
        return
    show.prose(paragraph("training_step/model", **result))
    _trained(model_at, mistake)


def _trained(model_at: ModelAtStep, mistake: Mistake) -> None:
    """Train the model with and without the mistake, where that is asked for."""
    from tfm_core.inspect.training_step.mistakes import N_STEPS, trained_apart

    label = _("Train both for {n} steps", n=N_STEPS)
    if not st.toggle(label, key=f"training-step-apart-{mistake.name}"):
        return
    work = partial(trained_apart, name=mistake.name)
    with st.spinner(_("Training …"), show_time=True):
        right, wrong = state.cached(f"trained {mistake.name}", model_at, (), work)
    words = paragraph("training_step/trained-apart", n=N_STEPS, right=right, wrong=wrong)
    if abs(wrong - right) < _HARDLY * right:
        words = words + " " + _("This loss does not give the mistake away.")
    st.markdown(words)


def _block(mistake: Mistake, result: WrongBlock) -> None:
    st.subheader(_(mistake.label), anchor=False)
    st.code(_both(mistake), "python", wrap_lines=True)
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
