"""Configure: the draft as controls, what it would need, and the button that starts it."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.train import corpus_text, start, transfer
from pages.ui import controls, drafts, own_choice, run_time, show, state, url_config, view_link
from pages.ui.fields import settings_of
from pages.ui.typed import escape
from tfm_core.presets import PRESETS

_LINK_READ = "configure-link-read"
_LINK_PROBLEMS = "configure-link-problems"
_PRESET = "configure-preset"


def page() -> None:
    """Draw the configuration and keep the address bar in step with it."""
    show.header("train")
    _read_link()
    _link_problems()
    draft = state.current_draft()  # once: a callback of a later run may replace it meanwhile
    checked = drafts.check(draft)
    with st.container(border=True, gap="small"):
        _presets(draft.values)
        first, second = st.columns([2, 1])
        with first:
            controls.family(draft)
        with second:
            controls.task(draft)
        for sentence in (*checked.at("task.name"), *checked.at("model.family"), *checked.at("")):
            controls.complaint(sentence)
    settings = settings_of(drafts.family_of(draft.values), drafts.task_of(draft.values))
    by_section = {
        section: [setting for setting in settings if setting.section == section]
        for section in ("model", "task", "training", "")
    }
    with st.container(key="settings"):
        left, right = st.columns(2)
    with left:
        controls.group(_("Architecture"), by_section["model"], checked)
        controls.group(_("Task"), by_section["task"], checked)
        corpus_text.area(checked)
        own_choice.area(checked)
    with right:
        controls.group(_("Optimisation"), by_section["training"], checked)
        start.place(by_section[""], checked)
        transfer.row(checked)
    start.bar(checked, _preset(draft.values))
    url_config.mirror(draft.values)


def _preset(draft: drafts.Values) -> str | None:
    """Return the preset that the draft is, unchanged, or None."""
    chosen = st.session_state.get(_PRESET)
    if chosen in PRESETS and not drafts.differences(draft, _values(chosen)):
        return str(chosen)
    return None


def _presets(draft: drafts.Values) -> None:
    if st.session_state.get(_PRESET) not in PRESETS:
        same = (name for name in PRESETS if not drafts.differences(draft, _values(name)))
        st.session_state[_PRESET] = next(same, None)
    first, second, third = st.columns([3, 8, 1], vertical_alignment="bottom")
    chosen = first.selectbox(
        _("Preset"),
        list(PRESETS),
        format_func=lambda name: _(PRESETS[name].label),
        key=_PRESET,
        placeholder=_("None: your own configuration"),
        help=_("Fills in every setting below with values that are known to learn."),
        on_change=_take_preset,
        persist_state="session",
    )
    with second:
        _about(chosen, draft)
    if chosen in PRESETS:
        third.button(  # also for what is typed and was not sent yet: the server knows nothing of it
            _("Reset"),
            help=_("Set everything back to the preset."),
            on_click=_take_preset,
            key="configure-reset",
            width="stretch",
        )


def _about(name: str | None, draft: drafts.Values) -> None:
    """Say what the preset learns, or how the draft differs from it."""
    if name not in PRESETS:
        st.caption(_("This configuration is your own. A preset would replace it."))
        return
    chosen = PRESETS[name]
    changed = drafts.differences(draft, _values(name))
    words = _("{learns} It reaches {reaches} in {time} here.").format(
        learns=_(chosen.learns),
        reaches=_(chosen.reaches),
        time=run_time.takes(chosen.experiment),
    )
    if changed:
        badge = f":orange-badge[:material/edit: {_('Changed')}]"
        words = f"{badge} {_changes(draft, _values(name), changed)}  \n{words}"
    st.caption(words)


def _changes(draft: drafts.Values, old: drafts.Values, changed: list[str], most: int = 3) -> str:
    """Return the first few settings that differ, with their old and new values."""
    if {"model.family", "task.name"} & set(changed):
        return _("another family or task")
    words = [
        _("another text")
        if path == "task.text"
        else f"`{path.rpartition('.')[2]}` {drafts.get(old, path)} → {drafts.get(draft, path)}"
        for path in changed[:most]
    ]
    more = len(changed) - most
    return ", ".join(words) + (_(" and {n} more").format(n=more) if more > 0 else "")


def _take_preset() -> None:
    chosen = st.session_state.get(_PRESET)
    if chosen in PRESETS:
        state.set_draft(_values(chosen))


def _values(name: str) -> drafts.Values:
    return PRESETS[name].experiment.model_dump()


def _read_link() -> None:
    """Take the configuration of the link that opened this session, and what is wrong with it."""
    if st.session_state.get(_LINK_READ):
        return
    st.session_state[_LINK_READ] = True
    query = url_config.settings_in(view_link.query())
    if query:
        values, sentences = url_config.read(query)
        state.set_draft(values)
        st.session_state[_LINK_PROBLEMS] = sentences


def _link_problems() -> None:
    sentences = st.session_state.get(_LINK_PROBLEMS)
    if not sentences:
        return
    words = [_("Some of what the link asks for is not possible; the rest is set as it says:")]
    words += [f"- {escape(sentence)}" for sentence in sentences]
    st.warning("\n".join(words), icon=":material/link:")
    st.button(_("Understood"), key="configure-understood", on_click=_forget_link_problems)


def _forget_link_problems() -> None:
    st.session_state[_LINK_PROBLEMS] = []
