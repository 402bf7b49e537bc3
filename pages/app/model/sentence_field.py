"""A text in the words of a task: typed, built from chips, sampled, or corrected."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial

import streamlit as st

from pages.app.address import view
from pages.app.typed import escape
from pages.components.pickers import word_chips
from pages.i18n import _
from tfm_core.data.text.nearest import Suggestion, is_of_words, nearest_sentence
from tfm_core.data.text.task import TextTask
from tfm_core.data.vocabulary import MASK
from tfm_core.inspect.text.embeddings import CLASSES, word_class

MAX_CHIPS = 120


def buttons(task: TextTask, *, key: str) -> None:
    """Draw buttons that draw a text for the field of that key, and that clear it."""
    missing = task.missing
    st.button(
        _("Surprise me"),
        icon=":material/casino:",
        key=f"{key}-surprise",
        disabled=missing is not None,
        help=None if missing is None else _(missing),
        on_click=lambda: view.put(key, text=drawn_text(task)),
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


def drawn_text(task: TextTask, seed: int | None = None) -> str:
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
