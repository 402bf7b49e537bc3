"""Articles: a chapter as one text, with its figures and questions in place.

The words are ``content/<language>/<page>.md``, in which a directive marks what is drawn there:

    ::figure tokens              a figure of the page, by its name
    ::figure equation of=2014    with parameters
    ::question compound          a question that a figure above it has made
    ::more Bytes                 what follows stands behind a line that opens,
    ::end                        up to here

Each part with a heading is drawn by itself, so that a control redraws only its own part. An address
leads to a figure by its name: ``numbers?figure=tokens``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

from pages.app import show, state
from pages.app.address import view
from pages.app.address.parameters import Choice
from pages.app.navigation import ticks
from pages.i18n import _
from tfm_core.inspect.questions import Question

HEADING = "heading"
FIGURE = "figure"
"""What an address calls the figure that it leads to."""
Made = dict[str, Any]
"""What the figures of a part have made for those below them: values, and questions by name."""
Figures = Mapping[str, Callable[..., None]]
"""The figures of an article by name: functions of what was made above, and of parameters.

A figure that cannot be drawn raises ValueError; its message is shown instead.
"""
_DIRECTIVE = re.compile(r"^(?:::(figure|question|more|end)|##)(?: +(.+))?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of an article: its kind ("text" or that of a directive), and what it says."""

    kind: str
    text: str

    @property
    def name(self) -> str:
        return self.text.partition(" ")[0]

    @property
    def parameters(self) -> dict[str, str]:
        """What a directive says behind its name, as ``key=value``."""
        return dict(word.split("=", 1) for word in self.text.split()[1:])


def parts(text: str) -> list[list[Passage]]:
    """Return the parts of an article, each from one heading to the next, in pieces."""
    return [list(_pieces(part)) for part in re.split(r"^(?=## )", text, flags=re.MULTILINE)]


def _pieces(text: str) -> Iterator[Passage]:
    end = 0
    for found in _DIRECTIVE.finditer(text):
        if before := text[end : found.start()].strip():
            yield Passage("text", before)
        yield Passage(found[1] or HEADING, found[2] or "")
        end = found.end()
    if after := text[end:].strip():
        yield Passage("text", after)


def figure_parameter(figures: Figures) -> Choice:
    """Return the parameter that leads to a figure."""
    return Choice(FIGURE, first="", names=tuple(figures))


def draw(name: str, figures: Figures) -> None:
    """Draw the article of a page."""
    show.header(name, is_article=True)
    parameter = figure_parameter(figures)
    wanted, problem = parameter.follow(view.query().get(FIGURE, ""), "")
    view.warn(problem)
    words = show.words(name)
    with st.container(key="article"):
        for number, part in enumerate(parts(f"{words.intro}\n\n{words.more}")):
            state.body(partial(_part, part, figures, wanted), of=f"{name}-{number}")


def _part(pieces: Sequence[Passage], figures: Figures, wanted: str) -> None:
    made: Made = {}
    place = st.container()
    is_open = True
    for number, piece in enumerate(pieces):
        if piece.kind == "more":
            end = [one.kind for one in pieces].index("end", number)
            behind = {one.name for one in pieces[number:end] if one.kind == FIGURE}
            place = _line(piece.text, is_wanted=wanted in behind)
            is_open = bool(place.open)
        elif piece.kind == "end":
            place, is_open = st.container(), True
        elif is_open:
            with place:
                _piece(piece, figures, made)


def _line(title: str, *, is_wanted: bool) -> Any:
    """Draw a line that opens: what stands behind it is drawn only then.

    is_wanted: the address leads behind it, so it opens, but stays closed once the reader closes it.
    """
    key, seen = f"more-{title}", f"more-{title}-wanted"
    if is_wanted and not st.session_state.get(seen):
        st.session_state[key] = True
    st.session_state[seen] = is_wanted
    return st.expander(title, key=key, on_change="rerun")


def _piece(piece: Passage, figures: Figures, made: Made) -> None:
    if piece.kind == "text":
        show.prose(piece.text)
    elif piece.kind == HEADING:
        st.header(piece.text, anchor=False)
    elif piece.kind == FIGURE:
        place = "-".join(["figure", piece.name, *piece.parameters.values()])
        with st.container(key=place):
            try:
                figures[piece.name](made, **piece.parameters)
            except ValueError as error:
                show.problem(error)
    elif piece.name in made:
        asked, of = made[piece.name]
        if asked is not None:
            ask(asked, piece.name, of=of)


def keep(made: Made, of: object, **questions: Question | None) -> None:
    """Make questions for the article to ask below a figure. of: what they are asked of."""
    for name, asked in questions.items():
        made[name.replace("_", "-")] = (asked, str(of))


_GIVEN = "questions-given"
MAX_RADIO = 6
"""Options of a question that stand side by side; more are a list that opens."""


@dataclass
class _Given:
    """What was answered: whether the first answer was right, and the last one.

    last: None where the solution was shown. is_revealed: it was, or an answer was right.
    """

    is_right: bool
    last: str | float | None = None
    is_revealed: bool = False


def check(asked: Mapping[str, Question | None], *, of: str = "", label: str = "") -> None:
    """Ask questions, by slot, behind a line that opens; None is one that this subject has not."""
    there = {slot: question for slot, question in asked.items() if question is not None}
    if there:
        with st.expander(label or _("Check yourself"), icon=":material/quiz:"):
            for slot, question in there.items():
                ask(question, slot, of=of)


def ask(asked: Question, slot: str, *, of: str = "") -> bool:
    """Ask a question; return whether an answer was given or shown.

    slot: names the question on its page. of: what it is asked of; of something else it is asked
    anew.
    """
    return _asked(asked, slot, _name(slot, of))


def _asked(asked: Question, slot: str, name: str, *, is_guess: bool = False) -> bool:
    with st.container(border=True):
        st.markdown(_("**Predict:** {question}", question=_(asked.text)))
        with st.form(f"question-form-{hash(name)}", border=False, enter_to_submit=True):
            key = f"question-input-{hash(name)}"
            given = _answer_input(asked, key)
            with st.container(horizontal=True):
                pressed = st.form_submit_button(
                    _("Check"),
                    type="primary",
                    on_click=_check,
                    args=(asked, slot, name, key, is_guess),
                )
                st.form_submit_button(
                    _("Show the answer"), type="tertiary", on_click=_reveal, args=(slot, name)
                )
        if pressed and given is None:
            st.caption(_("Answer first."))
        _verdict(asked, name)
        _score()
    return _is_guessed(name)


def guess(asked: Question, slot: str, *, of: str = "") -> bool:
    """Ask for a guess before a result; return whether it was made or declined."""
    name = _name(slot, of)
    if not _is_guessed(name):
        return _asked(asked, slot, name, is_guess=True)
    mine = _all().get(name)
    if mine is not None and mine.last is not None:
        last = mine.last
        is_right = asked.is_right(last)
        given = _(str(last)).rstrip(".")
        message = _("Your guess: **{given}**.", given=given)
        why = "" if is_right else _(asked.why_not(last))
        icon = ":green[:material/check_circle:]" if is_right else ":material/cancel:"
        st.markdown(f"{icon} {message} {why}".rstrip())
    return True


def is_guessed(slot: str, *, of: str = "") -> bool:
    """Return whether an answer to a question was given or shown."""
    return _is_guessed(_name(slot, of))


def is_revealed(slot: str, *, of: str = "") -> bool:
    """Return whether a question was answered right or its answer shown."""
    given = _all().get(_name(slot, of))
    return given is not None and given.is_revealed


def _name(slot: str, of: str) -> str:
    return f"{state.page()} {slot} {of}"


def _check(asked: Question, slot: str, name: str, key: str, is_guess: bool) -> None:
    """Record an answer. Only the first one counts; a right one reveals.

    is_guess: the page shows what is true behind any answer.
    """
    given = st.session_state.get(key)
    if given is None:
        return
    is_right = asked.is_right(given)
    mine = _all().setdefault(name, _Given(is_right))
    mine.last = given
    mine.is_revealed |= is_right
    if is_right or is_guess:
        ticks.mark(slot)


def _reveal(slot: str, name: str) -> None:
    """Reveal the answer; a question that was not answered counts as wrong."""
    mine = _all().setdefault(name, _Given(is_right=False))
    mine.last, mine.is_revealed = None, True
    ticks.mark(slot)


def _is_guessed(name: str) -> bool:
    return name in _all()


def _all() -> dict[str, _Given]:
    """Return what was answered in this session, by question."""
    given: dict[str, _Given] = st.session_state.setdefault(_GIVEN, {})
    return given


def _verdict(asked: Question, name: str) -> None:
    """Show whether the last answer is right, and why."""
    mine = _all().get(name)
    if mine is None:
        return
    last = mine.last
    if last is None:
        st.info(f"**{_(asked.answer)}**. {_(asked.because)}")
    elif asked.is_right(last):
        st.success(_("Right. {because}", because=_(asked.because)))
    else:
        given = _(last) if isinstance(last, str) else f"{last:g}"
        why = _(asked.why_not(last))
        st.warning(_("Not {given}. {why} Try again.", given=given, why=why))


def _answer_input(asked: Question, key: str) -> str | float | None:
    label = _("Your prediction")
    shared: dict[str, Any] = {"key": key, "label_visibility": "collapsed"}
    options: dict[str, Any] = {"options": asked.options, "format_func": _, "index": None}
    given: str | float | None
    if not asked.options:
        hint = _("a whole number")
        given = st.number_input(label, value=None, step=1, format="%d", placeholder=hint, **shared)
    elif len(asked.options) > MAX_RADIO:
        given = st.selectbox(label, placeholder=_("Choose"), **options, **shared)
    else:
        given = st.radio(label, **options, **shared)
    return given


def _score() -> None:
    given = _all().values()
    if given:
        right, count = sum(one.is_right for one in given), len(given)
        st.caption(_("{right} of {count} right on the first try.", right=right, count=count))
