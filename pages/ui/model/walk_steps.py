"""Steps of the walk: which one is shown, what it says, its question, and links to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from pages.i18n import _
from pages.ui.address import view_link
from pages.ui.address.parameters import Choice
from pages.ui.model import question
from pages.ui.settings import names_choice
from pages.ui.typed import escape
from tfm_core.runs.run import Run

if TYPE_CHECKING:
    from tfm_core.anatomy.names import Scheme
    from tfm_core.inspect.walk.forward import Subject
    from tfm_core.inspect.walk.steps import StepTensor, WalkStep


_STEP = "walk-step"
_PLACE = "walk-place"
STEP = "step"  # in the link


def current(names: Sequence[str]) -> tuple[int, str]:
    """Return the number of the step to show, from 1, and a problem of the link.

    names: of the model's steps, in order.
    """
    parameter = Choice(STEP, first=names[0], names=tuple(names))
    text = view_link.query().get(STEP)
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
    view_link.put({STEP: name})


def navigation(steps: tuple[WalkStep, ...], number: int) -> None:
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


def is_step_revealed(step: WalkStep, subject_name: str, example: int) -> bool:
    """Return whether the step's question was answered right or its answer shown."""
    return question.is_revealed(step.name, of=f"{subject_name} {example}")


def shapes(step: WalkStep, subject: Subject, example: int, *, is_revealed: bool) -> None:
    """Show the tensors before and after the step, without what is asked for."""
    hidden = frozenset[str]() if is_revealed else step.hidden_shapes
    secret = frozenset[str]() if is_revealed else step.hidden

    def lines(tensors: Sequence[StepTensor]) -> list[str]:
        return [
            f"{_titled(tensor)}  \n`( ? )`"
            if tensor.name in hidden
            else _shape(tensor, subject, example, with_numbers=tensor.name not in secret)
            for tensor in tensors
        ]

    with st.container(border=True):
        if step.before:
            st.markdown("\n\n".join([f":grey[{_('Before')}]", *lines(step.before)]))
        questioned = [tensor for tensor in step.extra if tensor.name in step.question.shapes]
        made = [*step.after, *questioned]
        is_asked = hidden & {tensor.name for tensor in made}
        after = _("After: predict it below") if is_asked else _("After")
        st.markdown("\n\n".join([f":grey[{after}]", *lines(made)]))
        from tfm_core.inspect.walk.steps import axis_words

        words = axis_words(subject.reader)
        visible = [tensor for tensor in (*step.before, *step.after) if tensor.name not in hidden]
        axes = dict.fromkeys(axis for tensor in visible for axis in tensor.axes)
        st.caption(" · ".join(f"**{axis}** {_(words[axis])}" for axis in axes))


def _titled(tensor: StepTensor) -> str:
    label = _(tensor.label)
    return f"`{tensor.name}`" if label == tensor.name else f"`{tensor.name}` {label}"


def _shape(tensor: StepTensor, subject: Subject, example: int, *, with_numbers: bool) -> str:
    from tfm_core.inspect.walk.steps import first_numbers

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
    return f"{_titled(tensor)}  \n`({axes})` = **({sizes})**{shown}"


def explanation(
    step: WalkStep, subject: Subject, names: Sequence[str], *, is_revealed: bool
) -> None:
    """Show the line of PyTorch, and the explanation for this model's settings.

    names: of all steps of the walk, in order, to which paragraphs refer as ``{step:split}``.
    """
    st.code(step.code, language="python", wrap_lines=True)
    from tfm_core.inspect.walk.topics import topic_text

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


def named(step: WalkStep, subject: Subject, scheme: Scheme, layer: int) -> None:
    """Show what others call the step's modules, tensors and sizes."""
    from tfm_core.inspect.walk.names import called

    if scheme == "ours":
        return
    found = called(step, subject.config, subject.shape, scheme, layer)
    lines = [
        f"- `{one.ours}`: {', '.join(f'`{name}`' for name in one.theirs)}" for one in found
    ] or [_("It has no name for what is here.")]
    st.markdown("\n".join([f"**{names_choice.label(scheme)}**", "", *lines]))


class _StepNumbers(list[str]):
    """The names of the walk's steps; ``{step:split}`` is the number of one, from 1."""

    def __format__(self, name: str) -> str:
        return str(self.index(name) + 1)


def ask(step: WalkStep, subject_name: str, example: int) -> None:
    question.ask(step.question, step.name, of=f"{subject_name} {example}")


MAP_STEPS = {  # family and kind of attention -> name of the step; elsewhere "scores"
    ("encoder-decoder", "decoder"): "decoder-attention",
    ("encoder-decoder", "cross"): "cross-attention",
    ("captioner", "decoder"): "decoder-attention",
    ("captioner", "picture"): "cross-attention",
}


def map_link(run: Run, kind: str, layer: int) -> dict[str, str]:
    """Return the query of a link to a map's step. layer: from 0.

    kind: of the attention, a key of ``labels.KINDS``.
    """
    step = step_of_map(run.experiment.model.family, kind)
    return {"run": run.id, "show": "run", "step": step, "block": str(layer + 1)}


def step_of_map(family: str, kind: str) -> str:
    return MAP_STEPS.get((family, kind), "scores")
