"""Controls of the configuration being edited: its settings, from the config's fields, and its data.

The draft is the truth: a widget starts with its value, and a callback writes changes back. A page
reads the draft once in a run. When a preset, link, file or other family replaces the draft, the
widgets get new keys, so late values of the old ones are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import streamlit as st

from pages.app import show, state
from pages.app.accounts import visitors
from pages.app.address import view
from pages.app.lessons import open_lesson
from pages.app.navigation.terms import BY_SETTING
from pages.app.runs import runs_access
from pages.app.settings import drafts, fields
from pages.app.settings.drafts import CheckedDraft, Draft, Values
from pages.app.settings.fields import KINDS, Setting, by_topic
from pages.app.typed import escape
from pages.i18n import _, ngettext
from tfm_core import settings
from tfm_core.choices.config import TASK_FACTS
from tfm_core.choices.config.shape import patches_per_side
from tfm_core.data.text.corpus import read_text
from tfm_core.data.user_data import pictures
from tfm_core.data.user_data import sets as own_data
from tfm_core.data.user_data.kinds import SET_KINDS, task_of
from tfm_core.data.user_data.sets import UserSet
from tfm_core.data.user_data.texts import inspect_text, prepare
from tfm_core.data.user_data.tokens import learn_from_text
from tfm_core.runs import own_sets

KEY = "setting:"
_MAX_IN_A_FIELD = 2**53  # beyond it a browser's numbers have gaps


def group(
    title: str, settings: Sequence[Setting], checked: CheckedDraft, *, help: str | None = None
) -> None:
    """Draw settings under a title, with problems below their controls.

    Advanced settings are folded, and drawn only when unfolded: most settings are advanced. One that
    changes nothing has no control, unless it has a problem.
    """
    changed = checked.draft.values
    shown = [one for one in settings if one.acts(changed) or checked.problems_of(one.path)]
    advanced = [setting for setting in shown if setting.is_advanced]
    draw = partial(control, checked=checked)
    with st.container(border=True):
        st.header(title, anchor=False, help=help)
        grid([setting for setting in shown if not setting.is_advanced], draw)
        if not advanced:
            _term_links(shown)
            return
        # label and key do not depend on problems, so it stays open while you type
        key = f"advanced-{shown[0].section}"
        if any(setting.path in checked.flagged for setting in advanced):
            st.session_state[key] = True  # problems and warnings must not stay folded
        folded = st.expander(_("Advanced"), key=key, icon=":material/tune:", on_change="rerun")
        if folded.open:
            with folded:
                for topic, some in by_topic(advanced):
                    if topic:
                        st.markdown(f"**{_(topic)}**")
                    grid(some, draw)
                _term_links(shown)


def kinds(checked: CheckedDraft) -> None:
    """Draw the choice of the family and of the task, with what is wrong with the whole."""
    settings = fields.kinds(drafts.family_of(checked.draft.values))
    grid(list(settings.values()), partial(control, checked=checked))
    for sentence in checked.problems_of(""):
        error_text(sentence)


def _term_links(settings: Sequence[Setting]) -> None:
    """Link to the pages that explain these settings."""
    terms = [BY_SETTING[setting.name] for setting in settings if setting.name in BY_SETTING]
    if not terms:
        return
    views = {term.page: dict(term.view) for term in reversed(terms)}
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(_("Explained on"), width="content")
        for name in dict.fromkeys(term.page for term in terms):
            show.link(name, query=views[name])


def grid(settings: Sequence[Setting], draw: Callable[[Setting], None]) -> None:
    """Draw settings two in a row, on a phone one below another."""
    for start in range(0, len(settings), 2):
        for column, setting in zip(st.columns(2), settings[start : start + 2], strict=False):
            with column:
                draw(setting)


def key_of(path: str, draft: Draft) -> str:
    """Return the widget key of a setting in this edition of the draft."""
    count = {"model.family": 1, "task.name": 2}.get(path, len(draft.edition))
    edition = draft.edition[:count]
    return f"{KEY}{path}" + ("@" + "-".join(map(str, edition)) if any(edition) else "")


def control(setting: Setting, checked: CheckedDraft) -> None:
    """Draw one setting, locked where a lesson fixes it, and its problems below it."""
    key, value = key_of(setting.path, checked.draft), drafts.get(checked.draft.values, setting.path)
    shown: Any = st.session_state.setdefault(key, setting.parameter.state(value))
    if shown is not None and not setting.parameter.fits(shown):
        shown = None
    if shown is not None and setting.kind in ("int", "float"):
        number = int if setting.kind == "int" else float
        shown = number(shown) if abs(shown) < _MAX_IN_A_FIELD else None
    view.widget(
        setting.field,
        shown,
        key=key,
        lock=open_lesson.lock(setting.path),
        on_change=_apply_control,
        args=(key, setting),
    )
    for name in (shown or ()) if setting.kind == "several" else ():
        st.caption(_((setting.choices or {})[name].help))
    _offer_reset(setting, checked)
    for sentence in checked.problems_of(setting.path):
        error_text(sentence)
    for item in checked.advice_at(setting.path):
        words = escape(_(item.sentence))
        st.caption(f":orange[:material/warning: {words}]" if item.is_warning else words)


def _offer_reset(setting: Setting, checked: CheckedDraft) -> None:
    """Offer to reset a changed setting."""
    section, _dot, name = setting.path.rpartition(".")
    baseline = checked.reference.get(section, {}) if section else checked.reference
    if name not in baseline or baseline[name] == drafts.get(checked.draft.values, setting.path):
        return
    words = _(
        "Reset {label} to {value}",
        label=_(setting.label),
        value=drafts.format_value(setting, baseline[name]),
    )
    reset_button(escape(words), setting.path, checked, key=f"reset:{setting.path}")


def reset_button(label: str, path: str, checked: CheckedDraft, *, key: str) -> None:
    """Draw a button that resets one setting."""
    st.button(
        label,
        icon=":material/undo:",
        type="tertiary",
        key=key,
        on_click=_reset,
        args=(path, checked.draft.edition),
    )


def _reset(path: str, edition: tuple[int, int, int]) -> None:
    """Reset a setting, if the draft on the screen is still the button's."""
    draft = state.current_draft()
    if draft.edition != edition:
        return
    checked = drafts.check(draft)
    if path in drafts.changed(checked):
        values = drafts.with_reset(checked, path)
        state.set_draft(values, base=draft.baseline)


def error_text(sentence: str) -> None:
    """Show a problem in small red text."""
    st.caption(f":red[:material/error: {escape(sentence)}]")


def _apply_control(key: str, setting: Setting) -> None:
    """Put the chosen value into the draft, if this control is still on the screen."""
    draft = state.current_draft()
    if key != key_of(setting.path, draft):
        return
    parameter, chosen = setting.parameter, st.session_state.get(key)
    if chosen is None or not parameter.fits(chosen):  # also resets an emptied field
        st.session_state[key] = parameter.state(drafts.get(draft.values, setting.path))
        return
    value = parameter.value(chosen)
    if setting.kind == "float":
        value = float(f"{value:.9g}")  # 0.004 + 0.0005 is 0.0045, not 0.0045000000000000005
    choose(setting.path, value)


def choose(path: str, value: Any) -> None:
    """Put a value into the draft, with what depends on it, and into their controls."""
    draft = state.current_draft()
    values = drafts.chosen(draft.values, path, value)
    state.set_draft(values, by=path)
    old, new = drafts.task_of(draft.values), drafts.task_of(values)
    if path == "model.family" and old != new:
        words = _(
            "This family can't learn “{old}”, so the task is now “{task}”.",
            old=_(TASK_FACTS[old].label),
            task=_(TASK_FACTS[new].label),
        )
        st.toast(words, icon=":material/info:")
    if path in KINDS:  # the others have controls of their own now
        return
    for changed in drafts.differences(values, draft.values):
        value = drafts.get(values, changed)
        st.session_state[key_of(changed, draft)] = (
            list(value) if isinstance(value, tuple) else value
        )


SET_KIND_OF_TASK = {f"own-{kind}": kind for kind in SET_KINDS}
"""The kind of sets that each task learns."""

_SET_KEY = "own-set"
_TEXT = "task.text"
_KEPT_SETTINGS = ("shift", "rotation", "scale", "label_noise", "context")
"""Settings of a task that say nothing of its data: they stay when another set is chosen."""


def data_set_choice(checked: CheckedDraft) -> None:
    """Draw the choice of the data set, if the draft's task has one, or of the text without one."""
    values = checked.draft.values
    task = drafts.task_of(values)
    if task not in SET_KIND_OF_TASK:
        return
    available = data_sets(SET_KIND_OF_TASK[task])
    chosen = str(values["task"]["data"])
    options = ["", *available] if task == "own-text" else list(available)
    with st.container(border=True):
        st.header(_("Data"), anchor=False)
        key = f"{_SET_KEY}-{chosen}"
        if chosen not in options:
            error_text(_("The data set {data} is not on this machine.", data=chosen[:40]))
        st.selectbox(
            _("Set"),
            options,
            index=options.index(chosen) if chosen in options else None,
            format_func=lambda set_id: (
                data_set_label(available[set_id]) if set_id else _("The text below")
            ),
            key=key,
            on_change=_take_set,
            args=(key,),
        )
        own_data_link(SET_KIND_OF_TASK[task], chosen if chosen in available else "")
        if task == "own-text" and not chosen:
            _text_to_learn(checked)


def own_data_link(kind: str, set_id: str) -> None:
    """Link to Own data, where sets of a kind are looked at and added."""
    query = {"kind": kind, **({"set": set_id} if set_id else {})}
    show.link("own-data", _("Preview or add your own"), query)


def _text_to_learn(checked: CheckedDraft) -> None:
    """Show the text to learn: the built-in one, or that of the configuration."""
    values = checked.draft.values
    own, unit = drafts.get(values, _TEXT), drafts.get(values, "task.unit")
    text = own or read_text()
    tokens = learn_from_text(unit, text).cut_text(text)
    counts = {"n": f"{len(tokens):,}", "different": f"{len(set(tokens)):,}"}
    if not own:
        words = _("Alice in Wonderland, chapter 1: {n} tokens, {different} distinct.", **counts)
        st.caption(words)
        return
    st.caption(_("Your text: {n} tokens, {different} distinct.", **counts))
    for sentence in checked.problems_of(_TEXT):
        error_text(sentence)
    st.caption(_("Links leave out this text. Save it as a data set to share it."))
    with st.container(horizontal=True, gap="small"):
        st.button(
            _("Save as a data set and use it"),
            key="corpus-text-keep",
            icon=":material/save:",
            disabled=bool(checked.problems_of(_TEXT)),
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


def data_sets(kind: str) -> dict[str, UserSet]:
    """Return the data sets of a kind that the visitor may use, by id, newest first."""
    own_and_shared = own_sets.listed(runs_access.store(), visitors.visitor())
    of_kind = [own for own in [*own_and_shared, *own_data.examples()] if own.kind == kind]
    return {own.id: own for own in of_kind if own.problem is None}


def keep_text(text: str, unit: str) -> UserSet:
    """Make a data set of a pasted text. Raises ValueError and OSError with a message."""
    prepared = prepare(inspect_text("text", text, unit=unit))
    return own_sets.keep(
        prepared, store=runs_access.store(), visitor=visitors.visitor(), settings=settings.read()
    )


def with_set(values: Values, own: UserSet) -> Values:
    """Return a draft with another data set; resize patches that would not divide it."""
    task = task_of(own)
    fresh = task.model_dump()
    moved = {name: values["task"][name] for name in _KEPT_SETTINGS if name in fresh}
    values = {**values, "task": fresh | moved}
    if task.picture_shape is None:
        return values
    try:
        patches_per_side(task.picture_shape[-1], drafts.get(values, "model.patch_size"))
    except ValueError:
        size = pictures.patch(task.picture_shape[-1])
        values = drafts.put(values, "model.patch_size", size)
    return values


def _take_set(key: str) -> None:
    values = state.draft()
    task = drafts.task_of(values)
    wanted = str(st.session_state.get(key))
    if task == "own-text" and not wanted:
        state.set_draft(drafts.put(values, "task.data", ""))
        return
    own = data_sets(SET_KIND_OF_TASK[task]).get(wanted) if task in SET_KIND_OF_TASK else None
    if own is None:
        return
    try:
        state.set_draft(with_set(values, own))
    except ValueError as error:
        state.notify(_(error))


def data_set_label(own: UserSet) -> str:
    """Return a set in words: its name and its size."""
    n = sum(own.counts.values())
    return ngettext("{name}, {n:,} example", "{name}, {n:,} examples", n, name=own.name, n=n)
