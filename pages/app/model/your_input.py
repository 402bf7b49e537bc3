"""What people enter for a model: a sentence in the words of its task, or a drawing of a digit."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

import streamlit as st

from pages.app import show, state
from pages.app.address import view
from pages.app.typed import escape
from pages.components.digits import Picture
from pages.components.pickers import word_chips
from pages.i18n import _
from tfm_core.background import Background
from tfm_core.data.text.nearest import Suggestion, is_of_words, nearest_sentence
from tfm_core.data.text.task import TextTask
from tfm_core.data.vocabulary import MASK
from tfm_core.inspect.attention.example import read_picture
from tfm_core.inspect.attention.pictures import AnswersByStep, answers_by_step, right_since
from tfm_core.inspect.text.embeddings import CLASSES, word_class
from tfm_core.runs.run import Run

POLL_SECONDS = 0.4
"""Seconds between two looks whether they are loaded."""
MAX_SAMPLES = 10
MIN_CONFIDENCE = 0.5
"""The probability below which the model counts as unsure."""
T = TypeVar("T")


LOADED = Background("digits", most=8)
"""Whether the models of a run are loaded, by its folder."""


def models_are_loaded(run: Run) -> bool:
    asked = LOADED.asked.get(run.folder)
    return asked is not None and asked.future.done()


def load_models(run: Run) -> Future[None]:
    """Load the models of a run as its training left them, once; return the future.

    Loading torch takes seconds and slows down what is drawn meanwhile, so it begins once the page
    is there. The page reports what fails when it reads.
    """

    def load() -> None:
        answers_by_step(run, read_picture(run, example_pictures(run)[0])[0])

    return LOADED.ask(run.folder, load).future


def example_pictures(run: Run) -> Picture:
    """Return the run's own examples, (N, size, size), none of them trained on.

    Of a run of digits there are ten, one of each digit.
    """
    images = run.probe().images
    assert images is not None
    picture: Picture = images[:MAX_SAMPLES, 0]
    return picture


def drawing_board(run: Run, draw: Callable[[bool], None]) -> None:
    """Draw a board in a fragment that polls until the run's models are loaded.

    draw: gets whether they are.
    """
    is_drawn = False

    def part(is_pending: bool) -> None:
        nonlocal is_drawn
        if is_drawn and is_pending:
            load_models(run)
        is_drawn = True
        draw(not is_pending)

    state.poll(lambda: not models_are_loaded(run), part, every=POLL_SECONDS)


def reading_or_note(
    picture: Picture | None, read: Callable[[Picture], T], *, is_ready: bool
) -> tuple[T | None, str]:
    """Return what is read in a drawing, if anything, and a note for the board."""
    if not is_ready:
        return None, _("Loading the model …")
    if picture is not None:
        try:
            return read(picture), ""
        except ValueError as error:
            return None, _(error)
    return None, _("Draw a digit; the bars follow each stroke.")


def describe_answer(
    answers: AnswersByStep, classes: Sequence[str], step_label: Callable[[int], str]
) -> str:
    """Return what a drawing is read as, and since when."""
    steps, shares = answers
    best = int(shares[-1].argmax())
    digit, share = classes[best], float(shares[-1, best])
    if share < MIN_CONFIDENCE:
        return _("Unsure: perhaps a {digit} ({share}).", digit=digit, share=show.percent(share))
    since = right_since(answers, best)
    assert since is not None
    if len(steps) == 1:
        return _("Reads a {digit}; no earlier weights were saved.", digit=digit)
    if since == steps[0]:
        return _("Reads a {digit}, but so do random weights.", digit=digit)
    return _("Reads a {digit} since step {step}.", digit=digit, step=step_label(since))


MAX_CHIPS = 120


def sentence_buttons(task: TextTask, *, key: str) -> None:
    """Draw buttons that draw a text for the field of that key, and that clear it."""
    missing = task.missing
    st.button(
        _("Surprise me"),
        icon=":material/casino:",
        key=f"{key}-surprise",
        disabled=missing is not None,
        help=None if missing is None else _(missing),
        on_click=lambda: view.put(key, text=sample_text(task)),
    )
    st.button(
        _("Clear"),
        key=f"{key}-clear",
        on_click=partial(view.put, key, text=""),
    )


def mark_unknown(task: TextTask, text: str) -> None:
    """Show which tokens of a text become ``<unk>``."""
    unknown = task.unknown(text)
    if not unknown:
        return
    listed = ", ".join(f"“{escape(token[:30])}”" for token in unknown[:5])
    if len(unknown) > 5:
        listed = _("{listed} and {n} more", listed=listed, n=len(unknown) - 5)
    st.caption(_("Read as `<unk>`: {listed}", listed=listed))


def chips(task: TextTask, groups: Mapping[str, Sequence[str]], *, key: str) -> None:
    """Draw words to append, group -> words; they also complete what is typed."""
    is_spaced = is_of_words(task) or MASK in task.src_vocabulary.tokens
    glue = " " if is_spaced else ""

    def add(word: str) -> None:
        before = str(st.session_state.get(f"{key}-text") or "").rstrip(" .")
        view.put(key, text=f"{before}{glue}{word}" if before else word)

    word_chips(
        groups,
        field=f"{key}-text",
        glue=glue,
        on_pick=add,
        key=f"{key}-chips",
    )


def by_class(task: TextTask) -> dict[str, list[str]]:
    """Return the words of a task by kind, or none if they are too many to show."""
    tokens = [token for token in task.src_vocabulary.tokens if not token.isspace()]
    if len(tokens) > MAX_CHIPS:
        return {}
    groups: dict[str, list[str]] = {}
    for token in tokens:
        groups.setdefault(word_class(task.name, token), []).append(token)
    ordered = {_(name): groups[name] for name in CLASSES if name in groups}
    return {"": tokens} if len(ordered) == 1 else ordered


def suggest(task: TextTask, text: str, *, key: str) -> None:
    """Offer the nearest sentence of the task, and show what it changes."""
    suggestion = nearest_sentence(task, text)
    if suggestion is None:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(
            _("Read “{text}”", text=escape(suggestion.text)),
            type="primary",
            icon=":material/auto_fix_high:",
            key=f"{key}-nearest",
            on_click=partial(view.put, key, text=suggestion.text),
        )
        st.caption(_changes(suggestion))


def sample_text(task: TextTask, seed: int | None = None) -> str:
    """Return a text sampled by the task's generator."""
    pair = task.sample(random.Random(seed))
    return task.join_src(pair.src) if pair.src else task.join_tgt(pair.tgt)


def _changes(suggestion: Suggestion) -> str:
    changes = []
    for change in suggestion.changes:
        was, now = escape(change.typed), escape(change.now)
        if not change.typed:
            changes.append(f"+ {now}")
        elif not change.now:
            changes.append(f"~~{was}~~")
        else:
            changes.append(f"{was} → {now}")
    return " · ".join(changes)
