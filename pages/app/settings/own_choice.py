"""The choice of the data set that a configuration learns from."""

from __future__ import annotations

import streamlit as st

from pages.app import show, state
from pages.app.accounts import visitors
from pages.app.runs import runs_access
from pages.app.settings import controls, drafts
from pages.app.settings.drafts import CheckedDraft, Values
from pages.i18n import _, ngettext
from tfm_core import settings
from tfm_core.choices.config.shape import patches_per_side
from tfm_core.data.corpus.task import read_text
from tfm_core.data.own import kinds, pictures
from tfm_core.data.own import sets as own_data
from tfm_core.data.own.kinds import SET_KINDS
from tfm_core.data.own.sets import OwnSet
from tfm_core.data.own.texts import inspect_text, prepare
from tfm_core.data.own.tokens import learned_from_text
from tfm_core.runs import own_sets

TASKS = {f"own-{kind}": kind for kind in SET_KINDS}
"""The kind of sets that each task learns."""

_KEY = "own-set"
_TEXT = "task.text"
_OF_THE_DRAFT = ("shift", "rotation", "scale", "label_noise", "context")
"""Settings of a task that say nothing of its data: they stay when another set is chosen."""


def area(checked: CheckedDraft) -> None:
    """Draw the choice of the data set, if the draft's task has one, or of the text without one."""
    values = checked.draft.values
    task = drafts.task_of(values)
    if task not in TASKS:
        return
    available = sets(TASKS[task])
    chosen = str(values["task"]["data"])
    options = ["", *available] if task == "own-text" else list(available)
    with st.container(border=True):
        st.header(_("Data"), anchor=False)
        key = f"{_KEY}-{chosen}"
        if chosen not in options:
            controls.error_text(_("The data set {data} is not on this machine.", data=chosen[:40]))
        st.selectbox(
            _("Set"),
            options,
            index=options.index(chosen) if chosen in options else None,
            format_func=lambda set_id: words(available[set_id]) if set_id else _("The text below"),
            key=key,
            on_change=_take,
            args=(key,),
        )
        link(TASKS[task], chosen if chosen in available else "")
        if task == "own-text" and not chosen:
            _text(checked)


def link(kind: str, set_id: str) -> None:
    """Link to Own data, where sets of a kind are looked at and added."""
    query = {"kind": kind, **({"set": set_id} if set_id else {})}
    show.link("own-data", _("Preview or add your own"), query)


def _text(checked: CheckedDraft) -> None:
    """Show the text to learn: the built-in one, or that of the configuration."""
    values = checked.draft.values
    own, unit = drafts.get(values, _TEXT), drafts.get(values, "task.unit")
    text = own or read_text()
    tokens = learned_from_text(unit, text).cut_text(text)
    counts = {"n": f"{len(tokens):,}", "different": f"{len(set(tokens)):,}"}
    if not own:
        words = _("Alice in Wonderland, chapter 1: {n} tokens, {different} distinct.", **counts)
        st.caption(words)
        return
    st.caption(_("Your text: {n} tokens, {different} distinct.", **counts))
    for sentence in checked.at(_TEXT):
        controls.error_text(sentence)
    st.caption(_("Links leave out this text. Save it as a data set to share it."))
    with st.container(horizontal=True, gap="small"):
        st.button(
            _("Save as a data set and use it"),
            key="corpus-text-keep",
            icon=":material/save:",
            disabled=bool(checked.at(_TEXT)),
            help=_("Stored only on this computer; see Own data."),
            on_click=_save_text,
        )
        st.button(
            _("Use the built-in text"),
            key="corpus-text-forget",
            icon=":material/undo:",
            on_click=_forget_text,
        )


def _forget_text() -> None:
    values = state.draft()
    if drafts.task_of(values) == "own-text":
        state.set_draft(drafts.put(values, _TEXT, ""), by=_TEXT)


def _save_text() -> None:
    values = state.draft()
    if drafts.task_of(values) != "own-text":
        return
    try:
        own = keep_text(drafts.get(values, _TEXT), str(drafts.get(values, "task.unit")))
        state.set_draft(with_set(values, own), by="task.data")
    except (ValueError, OSError) as error:
        state.notify(_(error))


def sets(kind: str) -> dict[str, OwnSet]:
    """Return the data sets of a kind that the visitor may use, by id, newest first."""
    own_and_shared = own_sets.listed(runs_access.store(), visitors.visitor())
    of_kind = [own for own in [*own_and_shared, *own_data.examples()] if own.kind == kind]
    return {own.id: own for own in of_kind if own.problem is None}


def keep_text(text: str, unit: str) -> OwnSet:
    """Make a data set of a pasted text. Raises ValueError and OSError with a message."""
    prepared = prepare(inspect_text("text", text, unit=unit))
    return own_sets.keep(
        prepared, store=runs_access.store(), visitor=visitors.visitor(), settings=settings.read()
    )


def with_set(values: Values, own: OwnSet) -> Values:
    """Return a draft with another data set; resize patches that would not divide it."""
    task = kinds.task_of(own)
    fresh = task.model_dump()
    moved = {name: values["task"][name] for name in _OF_THE_DRAFT if name in fresh}
    values = {**values, "task": fresh | moved}
    if task.picture_shape is None:
        return values
    try:
        patches_per_side(task.picture_shape[-1], drafts.get(values, "model.patch_size"))
    except ValueError:
        size = pictures.patch(task.picture_shape[-1])
        values = drafts.put(values, "model.patch_size", size)
    return values


def _take(key: str) -> None:
    values = state.draft()
    task = drafts.task_of(values)
    wanted = str(st.session_state.get(key))
    if task == "own-text" and not wanted:
        state.set_draft(drafts.put(values, "task.data", ""))
        return
    own = sets(TASKS[task]).get(wanted) if task in TASKS else None
    if own is None:
        return
    try:
        state.set_draft(with_set(values, own))
    except ValueError as error:
        state.notify(_(error))


def words(own: OwnSet) -> str:
    """Return a set in words: its name and its size."""
    n = sum(own.counts.values())
    return ngettext("{name}, {n:,} example", "{name}, {n:,} examples", n, name=own.name, n=n)
