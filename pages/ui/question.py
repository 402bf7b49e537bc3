"""One step in words: its shapes, its line of PyTorch, why it is there, and the question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from pages.i18n import _
from pages.ui import walk_state
from pages.ui.typed import escape

if TYPE_CHECKING:
    from tfm_core.inspect.walk.forward import Subject
    from tfm_core.inspect.walk.steps import Question, StepTensor, WalkStep


def navigation(steps: tuple[WalkStep, ...], number: int) -> None:
    """Back, the list of steps, next. number: of the step that is shown, from 1."""
    names = [step.name for step in steps]
    titles = {step.name: f"{n} · {_(step.title)}" for n, step in enumerate(steps, 1)}
    index, last = number - 1, len(names) - 1
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        _move(_("Back"), "arrow_back", "Left", names[max(0, index - 1)], index == 0)
        _move(_("Next"), "arrow_forward", "Right", names[min(last, index + 1)], index == last)
        walk_state.hold("walk-list", names[index])
        st.selectbox(
            _("Step"),
            names,
            format_func=titles.__getitem__,
            key="walk-list",
            on_change=lambda: walk_state.go(walk_state.picked("walk-list", names[index])),
        )
    st.progress(number / len(names))


def _move(label: str, icon: str, shortcut: str, to: str, is_end: bool) -> None:
    st.button(
        label,
        icon=f":material/{icon}:",
        key=f"walk-{shortcut.lower()}",
        shortcut=shortcut,
        disabled=is_end,
        on_click=walk_state.go,
        args=(to,),
    )


def is_revealed(step: WalkStep, subject_name: str, example: int) -> bool:
    """Return whether what the step asks for may be seen: it was answered, or its answer shown."""
    return walk_state.is_revealed(_name(step, subject_name, example))


def _name(step: WalkStep, subject_name: str, example: int) -> str:
    return f"{subject_name} {step.name} {example}"


def shapes(step: WalkStep, subject: Subject, example: int, *, is_revealed: bool) -> None:
    """Show the tensors before and after: axes, sizes and first numbers; not what is asked for."""
    hidden = frozenset[str]() if is_revealed else step.hidden_shapes
    secret = frozenset[str]() if is_revealed else step.hidden

    def lines(tensors: Sequence[StepTensor]) -> list[str]:
        return [
            f"{_titled(one)}  \n`( ? )`"
            if one.name in hidden
            else _shape(one, subject, example, with_numbers=one.name not in secret)
            for one in tensors
        ]

    with st.container(border=True):
        if step.before:
            st.markdown("\n\n".join([f":grey[{_('Before')}]", *lines(step.before)]))
        asked = [one for one in step.extra if one.name in step.question.shapes]
        made = [*step.after, *asked]
        is_asked = hidden & {one.name for one in made}
        after = _("After: predict it below") if is_asked else _("After")
        st.markdown("\n\n".join([f":grey[{after}]", *lines(made)]))
        st.caption(_legend(step, subject, hidden))


def _titled(tensor: StepTensor) -> str:
    label = _(tensor.label)
    return f"`{tensor.name}`" if label == tensor.name else f"`{tensor.name}` {label}"


def _shape(tensor: StepTensor, subject: Subject, example: int, *, with_numbers: bool) -> str:
    from tfm_core.inspect.walk.steps import first_numbers

    sizes = ", ".join(f"{size:,}" for size in tensor.shape)
    if len(tensor.shape) == 1:
        sizes += ","
    axes = ", ".join(tensor.axes)
    words = subject.looked_at.tokens(tensor.words[-1], example) if len(tensor.axes) == 2 else None
    numbers = (
        first_numbers(tensor, example, [escape(word) for word in words or ()])
        if with_numbers
        else ""
    )
    shown = f"  \n:small[:grey[{_('numbers')} {numbers}]]" if numbers else ""
    return f"{_titled(tensor)}  \n`({axes})` = **({sizes})**{shown}"


def _legend(step: WalkStep, subject: Subject, hidden: frozenset[str]) -> str:
    from tfm_core.inspect.walk.steps import axis_words

    said = axis_words(subject.reader)
    visible = [one for one in (*step.before, *step.after) if one.name not in hidden]
    used = dict.fromkeys(axis for one in visible for axis in one.axes)
    return " · ".join(f"**{axis}** {_(said[axis])}" for axis in used)


def words(step: WalkStep, subject: Subject, names: Sequence[str], *, is_revealed: bool) -> None:
    """Show the line of PyTorch, and the paragraph that is true of this model's settings.

    names: of all steps of the walk, in order, to which paragraphs refer as ``{step:split}``.
    """
    st.code(step.code, language="python", wrap_lines=True)
    from tfm_core.inspect.walk.topics import topic_text

    sizes = ("d_model", "n_heads", "d_head", "d_ff", "window")
    values: dict[str, object] = {
        **{name: f"{getattr(subject.config, name, 0):,}" for name in sizes},
        "norm_eps": f"{getattr(subject.config, 'norm_eps', 0):g}",
        "dropout": f"{getattr(subject.config, 'dropout', 0):g}",
        "step": _StepNumbers(names),
    }
    hidden = () if is_revealed else step.question.topics
    topics = [topic for topic in step.topics if topic not in hidden]
    st.markdown(" ".join(_(topic_text(topic), **values) for topic in topics))


class _StepNumbers(list[str]):
    """The names of a walk's steps; ``{step:split}`` is the number of one, from 1."""

    def __format__(self, name: str) -> str:
        return str(self.index(name) + 1)


def question(step: WalkStep, subject_name: str, example: int) -> None:
    """Ask for the step's prediction, then reveal."""
    ask(step.question, _name(step, subject_name, example))


def ask(asked: Question, name: str) -> None:
    """Ask for a prediction under a name; only the first answer to it counts for the score."""
    with st.container(border=True):
        st.markdown(_("**Predict:** {question}", question=_(asked.text)))
        with st.form(f"walk-form-{hash(name)}", border=False, enter_to_submit=True):
            given = _input(asked, f"walk-answer-{hash(name)}")
            with st.container(horizontal=True):
                pressed = st.form_submit_button(_("Check"), type="primary")
                shown = st.form_submit_button(_("Show the answer"), type="tertiary")
        if pressed and given is None:
            st.caption(_("Choose or type an answer first."))
        elif pressed and given is not None:
            walk_state.answered(name, given, is_right=asked.is_right(given))
        elif shown:
            walk_state.shown(name)
        _verdict(asked, name)
        _score()


def guess(asked: Question, name: str) -> bool:
    """Ask for a guess before a result is shown; return whether it was made, or declined."""
    if not is_guessed(name):
        ask(asked, name)
        if not is_guessed(name):
            return False
        st.rerun()
    last = walk_state.last_answer(name)
    if last is not None:
        words = _("Your guess: **{given}**", given=_(str(last)).rstrip("."))
        icon = ":green[:material/check_circle:]" if asked.is_right(last) else ":material/cancel:"
        st.markdown(f"{icon} {words}")
    return True


def is_guessed(name: str) -> bool:
    """Return whether a guess was made under a name, or declined."""
    return walk_state.last_answer(name) is not None or walk_state.is_revealed(name)


def _verdict(asked: Question, name: str) -> None:
    """Say whether the last answer is right and why; it stays while the question does."""
    last = walk_state.last_answer(name)
    if last is None:
        if walk_state.is_revealed(name):
            st.info(f"**{_(asked.answer)}**. {_(asked.because)}")
    elif asked.is_right(last):
        st.success(_("Right. {because}", because=_(asked.because)))
    else:
        given = _(last) if isinstance(last, str) else f"{last:g}"
        why = _(asked.why_not(last))
        st.warning(_("Not {given}. {why} Try again, or show the answer.", given=given, why=why))


def _input(asked: Question, key: str) -> str | float | None:
    if asked.options:
        return st.radio(
            _("Your prediction"),
            asked.options,
            format_func=_,
            index=None,
            key=key,
            label_visibility="collapsed",
        )
    return st.number_input(
        _("Your prediction"),
        value=None,
        step=1,
        format="%d",
        key=key,
        placeholder=_("a whole number"),
        label_visibility="collapsed",
    )


def _score() -> None:
    given = walk_state.answers()
    if given:
        right, count = sum(given.values()), len(given)
        st.caption(_("Score: {right} of {count} right on the first try.", right=right, count=count))
