"""The numbers of a step's tensors, as a map."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from pages.i18n import _, paragraph
from pages.ui import show, state
from pages.ui.address import view_link
from pages.walk.link import BLOCK
from tfm_core.config import built
from tfm_core.data.opened.spelling import text_of
from tfm_core.plots.model import walk as plots
from tfm_core.variants.forms import SCALES

if TYPE_CHECKING:
    from tfm_core.inspect.walk.forward import Subject
    from tfm_core.inspect.walk.steps import Slice, StepTensor, WalkStep

_WIDE = 64  # wider tensors get a slider
_MAX = 256


def example_picker(subject: Subject) -> int:
    """Choose one example of the batch, from 0; the same one stays from step to step."""
    if not subject.is_real or subject.n_examples == 1:
        return 0
    return st.selectbox(
        _("Example"),
        range(subject.n_examples),
        format_func=lambda index: example_name(subject, index),
        key=f"walk-example-{subject.n_examples}",
        persist_state="session",
    )


def layer_picker(subject: Subject) -> int:
    """Choose the block that the steps open, from 0."""
    from tfm_core.inspect.walk.subject import n_blocks

    count = n_blocks(subject.config)
    key = f"walk-layer-{count}"
    block = replace(BLOCK, high=count - 1)
    problem = view_link.receive(block, key)
    index = 0
    if count > 1:
        index = st.selectbox(
            _("Block"),
            range(count),
            width=150,
            format_func=lambda index: str(index + 1),
            key=key,
            persist_state="session",
        )
    view_link.warn(problem)
    view_link.say(block, index)
    return index


def tensor(step: WalkStep, subject: Subject, example: int, *, is_revealed: bool) -> None:
    """Show a slice of one tensor of the step, unless it is still to be predicted."""
    hidden = frozenset[str]() if is_revealed else step.hidden
    every = {each.name: each for each in step.tensors if each.name not in hidden}
    if hidden & {each.name for each in step.tensors}:
        waiting = ", ".join(f"`{each.name}`" for each in step.tensors if each.name in hidden)
        st.caption(_("Answer first to see {names}.", names=waiting))
    if not every:
        return
    names = list(every)
    first = step.shown if step.shown in every else names[0]
    name = st.selectbox(
        _("Tensor"),
        names,
        index=names.index(first),
        format_func=lambda each: _titled(each, _(every[each].label)),
        key=f"walk-tensor-{step.name}-{len(names)}-{is_revealed}",
    )
    chosen = every[name]
    if not chosen.has_values:
        st.info(
            _("Shapes only: this model is too large for numbers."), icon=":material/straighten:"
        )
        return
    cut = _slice(chosen, subject, example)
    rows, columns = _names(chosen, cut, subject, example)
    words = _words(chosen, cut, subject)
    column_title = _axis_title(cut.column_axis, subject)
    if words is not None:
        column_title = _("{axis} (words of example {n})", axis=column_title, n=example + 1)
    figure = plots.tensor_map(
        cut.values,
        rows,
        columns,
        row_title=_axis_title(cut.row_axis, subject),
        column_title=column_title,
        theme=state.theme(),
        is_whole_number=cut.is_whole_number,
        words=words,
    )
    shape = " x ".join(map(str, cut.values.shape))
    caption = _("{name}: {shape} numbers; point at a cell.", name=chosen.name, shape=shape)
    show.live_figure(figure, caption, key="walk-map")


def _titled(name: str, label: str) -> str:
    return name if label == name else f"{name}: {label}"


def _words(chosen: StepTensor, cut: Slice, subject: Subject) -> list[list[str]] | None:
    """Return the word of each id of a batch; None of tensors that are not ids of words."""
    if chosen.axes[:1] != ("B",) or len(chosen.axes) != 2 or not cut.is_whole_number:
        return None
    (first, start), (n, size) = cut.starts, cut.values.shape
    lists = [subject.tokens(chosen.words[1], index) for index in range(first, first + n)]
    by_sequence = [list(words[start : start + size]) for words in lists if words is not None]
    return by_sequence if len(by_sequence) == n else None


def _axis_title(axis: str, subject: Subject) -> str:
    from tfm_core.inspect.walk.steps import axis_words

    return "" if axis == "1" else f"{axis}: {_(axis_words(subject.reader)[axis])}"


def _slice(chosen: StepTensor, subject: Subject, example: int) -> Slice:
    from tfm_core.inspect.walk.steps import cut, extent, picked_axes

    at = {"B": example}
    for index in picked_axes(chosen):
        axis, size = chosen.axes[index], chosen.shape[index]
        if axis != "B" and size > 1:
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
    n_rows, n_columns = extent(chosen)
    rows, columns = (0, n_rows), (0, min(n_columns, _MAX))
    if n_rows > 2:
        is_batch = chosen.axes[-2] == "B"  # examples count from 1, positions from 0
        rows = _range(_range_label(chosen), n_rows, int(is_batch))
    if n_columns > _WIDE:
        columns = _range(_("Columns"), n_columns)
    return cut(chosen, at, rows, columns)


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
    chosen: StepTensor, cut: Slice, subject: Subject, example: int
) -> tuple[list[str], list[str]]:
    axes, words = ("1", *chosen.axes)[-2:], ("", *chosen.words)[-2:]
    names = []
    for axis, list_name, start, size in zip(axes, words, cut.starts, cut.values.shape, strict=True):
        tokens = subject.tokens(list_name, example) if list_name else None
        positions = range(start, start + size)
        of_batch = int(axis == "B")
        names.append([f"{axis} {i}: {tokens[i] if tokens else i + of_batch}" for i in positions])
    return names[0], names[1]


def chosen_head(subject: Subject) -> int:
    """Return the head that the map is shown of, from 0."""
    return int(st.session_state.get(f"walk-H-{subject.config.n_heads}", 0))


def mistake(subject: Subject, step: WalkStep, example: int) -> None:
    """Show what dividing by the wrong number would do to a head's weights, or does here."""
    subject = subject.looked_at
    if not subject.is_real:
        return
    from tfm_core.inspect.walk.scale import scales

    head = chosen_head(subject)
    both = scales(subject, f"{step.block}.self_attention", example, head)
    if SCALES[both.mistake].width is None:
        kind, heading = "unscaled", _("Mistake: scores not divided")
    else:
        kind, heading = "by-d-model", _("Mistake: dividing by sqrt(d_model)")
    st.subheader(heading, anchor=False)
    weights = next(each for each in step.after if each.name == "weights")
    names = subject.tokens(weights.words[-2], example) or map(str, range(weights.shape[-2]))
    figure = plots.entropies(
        both.right_bits.numpy(),
        both.wrong_bits.numpy(),
        both.most.numpy(),
        list(names),
        both.mistake,
    )
    words = paragraph(
        f"walk/{kind}",
        head=head + 1,
        right=float(both.right_bits.mean()),
        wrong=float(both.wrong_bits.mean()),
        small=subject.anatomy.sizes["d_head"] ** 0.5,
        large=built(subject.config).d_model ** 0.5,
    )
    if both.is_own:
        words = words + " " + _("This model makes the mistake.")
    show.live_figure(figure, words, key="walk-mistake")


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
    return f"{index + 1}: {text_of(src)}" if src else ""
