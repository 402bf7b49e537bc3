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
from pages.app.model import question
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
            question.ask(asked, piece.name, of=of)


def keep(made: Made, of: object, **questions: Question | None) -> None:
    """Make questions for the article to ask below a figure. of: what they are asked of."""
    for name, asked in questions.items():
        made[name.replace("_", "-")] = (asked, str(of))
