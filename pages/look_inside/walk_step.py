"""A step of the walk: which one is shown, what it says, and the numbers of its tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from pages.app import show
from pages.app.address import view
from pages.app.address.parameters import Choice, Text
from pages.app.typed import escape
from pages.i18n import _, paragraph
from tfm_core.anatomy.names import SCHEME_LABELS
from tfm_core.choices.config import built
from tfm_core.choices.variants.forms import SCALES
from tfm_core.data.vocabulary import text_of_names
from tfm_core.plots.chart import chart
from tfm_core.plots.heads.attention import short
from tfm_core.plots.model import walk as plots
from tfm_core.trace import functions
from tfm_core.trace.shown import axis_words, called, cut, first_numbers, scales, topic_text

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from tfm_core.anatomy.names import Scheme
    from tfm_core.trace.steps import Step, StepTensor
    from tfm_core.trace.subject import Subject

PART = Text("part", first="", most=40)
"""The name of the step; each model has its own. The "step" of a link is that of the training."""
_STEP = "walk-step"
_PLACE = "walk-place"
_WIDE = 64  # wider tensors get a slider
_MAX = 256


def current(names: Sequence[str]) -> tuple[int, str]:
    """Return the number of the step to show, from 1, and a problem of the link.

    names: of the model's steps, in order.
    """
    parameter = Choice(PART.query, first=names[0], names=tuple(names))
    text = view.query().get(PART.query)
    last = st.session_state.get(_STEP, names[0])
    wanted = last if text is None else text
    nearest_name = names[0]
    if wanted == last:  # where the model changed: as far on as before
        nearest_name = names[min(st.session_state.get(_PLACE, 0), len(names) - 1)]
    if text is None:
        shown, problem = (wanted if wanted in names else nearest_name), ""
    else:
        shown, problem = parameter.follow(text, nearest_name)
    place = names.index(shown)
    st.session_state[_STEP] = wanted if wanted == last else shown
    st.session_state[_PLACE] = place
    return place + 1, problem


def go(name: str) -> None:
    """Show a step, also in the link."""
    st.session_state[_STEP] = name
    view.put_query({PART.query: name})


def navigation(steps: tuple[Step, ...], number: int) -> None:
    """Draw back, the list of steps, and next. number: of the step shown, from 1."""
    names = [step.name for step in steps]
    titles = {step.name: f"{n} · {_(step.title)}" for n, step in enumerate(steps, 1)}
    index, last = number - 1, len(names) - 1
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        _arrow_button(_("Back"), "arrow_back", "Left", (names, -1), index == 0)
        _arrow_button(_("Next"), "arrow_forward", "Right", (names, 1), index == last)
        st.session_state["walk-list"] = names[index]
        st.selectbox(
            _("Step of the walk"),
            names,
            format_func=titles.__getitem__,
            key="walk-list",
            on_change=lambda: go(st.session_state["walk-list"]),
        )
    st.progress(number / len(names))


def _turn(names: Sequence[str], by: int) -> None:
    """Go on from the step that was asked for last: a quick press comes before that is drawn."""
    last = st.session_state.get(_STEP)
    at = names.index(last) if last in names else st.session_state.get(_PLACE, 0)
    go(names[min(max(at + by, 0), len(names) - 1)])


def _arrow_button(
    label: str, icon: str, shortcut: str, turn: tuple[Sequence[str], int], is_end: bool
) -> None:
    st.button(
        label,
        icon=f":material/{icon}:",
        key=f"walk-{shortcut.lower()}",
        shortcut=shortcut,
        disabled=is_end,
        on_click=_turn,
        args=turn,
    )


def shapes(step: Step, subject: Subject, example: int, *, is_revealed: bool) -> None:
    """Show the tensors before and after the step, without what is asked for."""
    hidden = frozenset[str]() if is_revealed else step.hidden_shapes
    secret = frozenset[str]() if is_revealed else step.hidden

    def lines(tensors: Sequence[StepTensor]) -> list[str]:
        return [
            f"{_labelled(tensor)}  \n`( ? )`"
            if tensor.name in hidden
            else _shape(tensor, subject, example, with_numbers=tensor.name not in secret)
            for tensor in tensors
        ]

    with st.container(border=True):
        if step.inputs:
            st.markdown("\n\n".join([f":grey[{_('Before')}]", *lines(step.inputs)]))
        questioned = [tensor for tensor in step.extra if tensor.name in step.question.shapes]
        made = [*step.outputs, *questioned]
        is_asked = hidden & {tensor.name for tensor in made}
        after = _("After: predict it below") if is_asked else _("After")
        st.markdown("\n\n".join([f":grey[{after}]", *lines(made)]))
        words = axis_words(subject.reader)
        visible = [tensor for tensor in (*step.inputs, *step.outputs) if tensor.name not in hidden]
        axes = dict.fromkeys(axis for tensor in visible for axis in tensor.axes)
        st.caption(" · ".join(f"**{axis}** {_(words[axis])}" for axis in axes))


def _labelled(tensor: StepTensor) -> str:
    label = _(tensor.label)
    return f"`{tensor.name}`" if label == tensor.name else f"`{tensor.name}` {label}"


def _shape(tensor: StepTensor, subject: Subject, example: int, *, with_numbers: bool) -> str:
    sizes = ", ".join(f"{size:,}" for size in tensor.shape)
    if len(tensor.shape) == 1:
        sizes += ","
    axes = ", ".join(tensor.axes)
    tokens = subject.looked_at.tokens(tensor.words[-1], example) if len(tensor.axes) == 2 else None
    numbers = (
        first_numbers(tensor, example, [escape(word) for word in tokens or ()])
        if with_numbers
        else ""
    )
    shown = f"  \n:small[:grey[{_('numbers')} {numbers}]]" if numbers else ""
    return f"{_labelled(tensor)}  \n`({axes})` = **({sizes})**{shown}"


def explanation(step: Step, subject: Subject, names: Sequence[str], *, is_revealed: bool) -> None:
    """Show the line of PyTorch, and the explanation for this model's settings.

    names: of all steps of the walk, in order, to which paragraphs refer as ``{step:split}``.
    """
    st.code(step.code, language="python", wrap_lines=True)
    sizes = (
        "d_model",
        "n_heads",
        "n_kv_heads",
        "d_head",
        "d_ff",
        "n_experts",
        "top_k",
        "window",
        "full_every",
    )
    values: dict[str, object] = {
        **{name: f"{getattr(subject.config, name, 0):,}" for name in sizes},
        "norm_eps": f"{getattr(subject.config, 'norm_eps', 0):g}",
        "dropout": f"{getattr(subject.config, 'dropout', 0):g}",
        "step": _StepNumbers(names),
    }
    hidden = () if is_revealed else step.question.topics
    topics = [topic for topic in step.topics if topic not in hidden]
    st.markdown(" ".join(_(topic_text(topic), **values) for topic in topics))


def named(step: Step, subject: Subject, scheme: Scheme, layer: int) -> None:
    """Show what others call the step's modules, tensors and sizes."""
    if scheme == "ours":
        return
    names = called(step, subject.config, subject.shape, scheme, layer)
    lines = [
        f"- `{ours}`: {', '.join(f'`{name}`' for name in theirs)}" for ours, theirs in names.items()
    ] or [_("It has no name for this.")]
    st.markdown("\n".join([f"**{_(SCHEME_LABELS[scheme])}**", "", *lines]))


class _StepNumbers(list[str]):
    """The names of the walk's steps; ``{step:split}`` is the number of one, from 1."""

    def __format__(self, name: str) -> str:
        return str(self.index(name) + 1)


def tensor(step: Step, subject: Subject, example: int, *, is_revealed: bool) -> None:
    """Show a slice of one tensor of the step, unless it is still to be predicted."""
    hidden = frozenset[str]() if is_revealed else step.hidden
    every = {each.name: each for each in step.tensors if each.name not in hidden}
    if hidden & {each.name for each in step.tensors}:
        waiting = ", ".join(f"`{each.name}`" for each in step.tensors if each.name in hidden)
        st.caption(_("Answer first to see {names}.", names=waiting))
    if not every:
        return
    names, labels = list(every), {each: _(one.label) for each, one in every.items()}
    first = step.shown if step.shown in every else names[0]
    name = st.selectbox(
        _("Tensor"),
        names,
        index=names.index(first),
        format_func=lambda each: each if labels[each] == each else f"{each}: {labels[each]}",
        key=f"walk-tensor-{step.name}-{len(names)}-{is_revealed}",
    )
    chosen = every[name]
    if not chosen.has_values:
        st.info(
            _("This model is too large for numbers, so you see only shapes."),
            icon=":material/straighten:",
        )
        return
    values, starts = _slice(chosen, subject, example)
    rows, columns = _names(chosen, values.shape, starts, subject, example)
    words = _words(chosen, values.shape, starts, subject)
    row_axis, column_axis = ("1", *chosen.axes)[-2:]
    column_title = _axis_title(column_axis, subject)
    if words is not None:
        column_title = _("{axis}, example {n}", axis=column_title, n=example + 1)
    figure = plots.tensor_map(
        values,
        rows,
        columns,
        row_title=_axis_title(row_axis, subject),
        column_title=column_title,
        is_whole_number=not chosen.looked_at.is_floating_point(),
        words=words,
    )
    shape = " x ".join(map(str, values.shape))
    caption = _(
        "Point at a cell of {name} ({shape}) to see its number.", name=chosen.name, shape=shape
    )
    show.figure(figure, caption, key="walk-map")


def _words(
    chosen: StepTensor, shape: tuple[int, ...], starts: tuple[int, int], subject: Subject
) -> list[list[str]] | None:
    """Return the word of each id of a batch; None of tensors that are not ids of words."""
    is_batch = chosen.axes[:1] == ("B",) and len(chosen.axes) == 2
    if not is_batch or chosen.looked_at.is_floating_point():
        return None
    (first, start), (n, size) = starts, shape
    lists = [subject.tokens(chosen.words[1], index) for index in range(first, first + n)]
    by_sequence = [list(words[start : start + size]) for words in lists if words is not None]
    return by_sequence if len(by_sequence) == n else None


def _axis_title(axis: str, subject: Subject) -> str:
    return "" if axis == "1" else f"{axis}: {_(axis_words(subject.reader)[axis])}"


def _slice(
    chosen: StepTensor, subject: Subject, example: int
) -> tuple[npt.NDArray[np.float64], tuple[int, int]]:
    """Return the last two axes of a tensor, cut, and their first row and column."""
    at = {"B": example}
    for index, axis in enumerate(chosen.axes[:-2]):  # those that must be fixed
        size = chosen.shape[index]
        if axis not in ("1", "B") and size > 1:
            counted = {"H": _("Head"), "C": _("Channel")}  # from 1, positions from 0
            tokens = subject.tokens(chosen.words[index], example)
            options = [
                str(i + 1) if axis in counted else f"{i}: {tokens[i]}" if tokens else str(i)
                for i in range(size)
            ]
            at[axis] = st.selectbox(
                counted.get(axis, axis),
                range(size),
                format_func=options.__getitem__,
                key=f"walk-{axis}-{size}",
                persist_state="session",
            )
    n_rows, n_columns = (1, 1, *chosen.looked_at.shape)[-2:]
    rows, columns = (0, n_rows), (0, min(n_columns, _MAX))
    if n_rows > 2:
        is_batch = chosen.axes[-2] == "B"  # examples count from 1, positions from 0
        rows = _range(_range_label(chosen), n_rows, int(is_batch))
    if n_columns > _WIDE:
        columns = _range(_("Columns"), n_columns)
    return cut(chosen, at, rows, columns), (rows[0], columns[0])


def _range_label(chosen: StepTensor) -> str:
    if chosen.axes[-2] == "B":
        return _("Examples")
    return _("Rows") if chosen.axes[-2:] == ("Y", "X") else _("Positions")


def _range(label: str, size: int, start: int = 0) -> tuple[int, int]:
    """Choose a first and a last of so many; start: the number that the first one has."""
    most = min(size, _MAX)
    first, last = st.slider(
        label,
        start,
        start + size - 1,
        (start, start + most - 1),
        key=f"walk-range-{label}-{size}",
    )
    return first - start, min(last - start + 1, first - start + _MAX)


def _names(
    chosen: StepTensor,
    shape: tuple[int, ...],
    starts: tuple[int, int],
    subject: Subject,
    example: int,
) -> tuple[list[str], list[str]]:
    axes, words = ("1", *chosen.axes)[-2:], ("", *chosen.words)[-2:]
    names = []
    for axis, list_name, start, size in zip(axes, words, starts, shape, strict=True):
        tokens = subject.tokens(list_name, example) if list_name else None
        positions = range(start, start + size)
        of_batch = int(axis == "B")
        names.append([f"{axis} {i}: {tokens[i] if tokens else i + of_batch}" for i in positions])
    return names[0], names[1]


def chosen_head(subject: Subject) -> int:
    """Return the head that the map is shown of, from 0."""
    return int(st.session_state.get(f"walk-H-{subject.config.n_heads}", 0))


def mistake(subject: Subject, step: Step, example: int) -> None:
    """Show what dividing by the wrong number would do to a head's weights, or does here."""
    subject = subject.looked_at
    if not subject.is_real:
        return
    head = chosen_head(subject)
    wrong, is_own, bits = scales(subject, f"{step.block}.self_attention", example, head)
    if SCALES[wrong].width is None:
        kind, heading = "unscaled", _("Mistake: scores not divided")
    else:
        kind, heading = "by-d-model", _("Mistake: dividing by sqrt(d_model)")
    st.subheader(heading, anchor=False)
    weights = next(each for each in step.outputs if each.name == "weights")
    names = subject.tokens(weights.words[-2], example) or map(str, range(weights.shape[-2]))
    scale = f"/ sqrt({SCALES[wrong].width})" if SCALES[wrong].width else _("not scaled")
    lines = {
        "right": "/ sqrt(d_head)",
        "wrong": _("{scale}, the mistake", scale=scale),
        "most": _("equal shares, log2 of the keys"),
    }
    texts = [short(name) for name in names]
    figure = chart(bits, x="token", y=lines, ticks=texts, height=320, hovermode="x unified")
    words = paragraph(
        f"walk/{kind}",
        head=head + 1,
        right=float(bits["right"].mean()),
        wrong=float(bits["wrong"].mean()),
        small=subject.anatomy.sizes["d_head"] ** 0.5,
        large=built(subject.config).d_model ** 0.5,
    )
    if is_own:
        words = words + " " + _("This model makes the mistake.")
    show.figure(figure, words, key="walk-mistake")


def example_name(subject: Subject, index: int) -> str:
    """Return an example's number and its text."""
    if subject.pictures is not None:
        if subject.n_examples == 1 and not subject.truth:
            return ""  # a drawing, as the note says
        name = " ".join(subject.truth[index]) if subject.truth else ""
        if subject.described is not None:
            name = subject.described.truth[index]
        return _("Picture {n}: {name}", n=index + 1, name=name).removesuffix(": ")
    src = [word for word in subject.tokens("src", index) or () if word != "<pad>"]
    if not src:  # a language model: its text is all there is
        src = [word for word in subject.tokens("tgt", index) or () if word != "<pad>"]
    return f"{index + 1}: {text_of_names(src)}" if src else ""


def used(step: Step) -> None:
    """Show each function of the step's code: what it does, and a call of it with its result."""
    shown = functions.used(step)
    if not shown:
        return
    st.subheader(_("The functions used"), anchor=False)
    for function, session in shown:
        with st.container(gap="xsmall"):
            st.markdown(f"`{function.name}` {_(function.says)}")
            st.code(session, language="python", wrap_lines=True)
