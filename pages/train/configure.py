"""Configure: the draft as controls, its costs, its file, and the Start button."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from pages.app import show, state
from pages.app.address import view
from pages.app.lessons import open_lesson
from pages.app.settings import controls, drafts
from pages.app.settings.drafts import CheckedDraft, Draft
from pages.app.typed import escape
from pages.i18n import _
from pages.train import at_work, changes, play, preset_list, start
from tfm_core import made_with
from tfm_core.choices.config import TASK_FACTS, ConfigError, from_json, to_json
from tfm_core.choices.presets import PRESETS

_ALL = "all-settings"
_LINK_READ = "configure-link-read"
_LINK_PROBLEMS = "configure-link-problems"
_LINK_MADE = "configure-link-made"
_PRESET, _PRESET_TIMES = "configure-preset", "configure-preset-times"
_JSON = "transfer-file"
_JSON_PROBLEMS = "transfer-problems"
_MAX_MEGABYTES = 1


def page() -> None:
    show.header("train")
    _read_link()
    problems = st.session_state.get(_LINK_PROBLEMS)
    if problems:
        lines = [_("Invalid settings in the link:"), *(f"- {escape(text)}" for text in problems)]
        st.warning("\n".join(lines), icon=":material/link:")
        st.button(_("Dismiss"), key="configure-understood", on_click=problems.clear)
    draft = state.current_draft()  # read once: a callback may replace it meanwhile
    with st.container():  # exists even when empty, as that of the changes does
        _link_made(draft)
    checked = drafts.check(draft)
    advice = tuple(hint for hint in checked.advice if not open_lesson.asks_for(hint.field))
    checked = replace(checked, advice=advice)
    preset = drafts.preset_of(draft)
    if not checked.flagged <= set(play.PLAYED):
        st.session_state[_ALL] = True
    with st.container(key="play"):
        left, right = st.columns([1, 3.4], gap="medium")
    with left:
        _presets(preset)
        open_lesson.draw_locks()
        opened = open_lesson.few_open()
        for path in opened or ():
            if path in checked.settings and path not in play.PLAYED:
                controls.control(checked.settings[path], checked)
        play.of_draft(checked, shows_problems=not st.session_state.get(_ALL))
    changes.strip(
        checked, threads=state.threads(), preset="" if preset is None else _(PRESETS[preset].label)
    )
    controls.data_set_choice(checked)
    if opened is None and st.toggle(_("All settings"), key=_ALL, persist_state="session"):
        _all(checked, preset)
    is_preset = not drafts.differences(draft.values, draft.baseline)
    start.bar(checked, preset if is_preset else None)
    drafts.write_link(state.configuration_query(draft))
    with right:
        at_work.of_draft(checked.experiment)


def _all(checked: CheckedDraft, preset: str | None) -> None:
    """Draw a control of each setting."""
    with st.container(border=True, gap="small"):
        controls.kinds(checked)
        facts = TASK_FACTS[drafts.task_of(checked.draft.values)]
        about, unseen = _(facts.help), _("“Unseen”: {words}", words=_(facts.unseen))
        if preset is not None:
            unseen = f"{about} {unseen}"
            learns, reaches = _(PRESETS[preset].learns), _(PRESETS[preset].reaches)
            about = _("{learns} It reaches {reaches}.", learns=learns, reaches=reaches)
        st.caption(about, help=unseen)
    by_section = {
        section: [setting for setting in checked.settings.values() if setting.section == section]
        for section in ("model", "task", "training", "")
    }
    with st.container(key="settings"):
        left, right = st.columns(2)
    with left:
        controls.group(_("Architecture"), by_section["model"], checked)
        controls.group(_("Task"), by_section["task"], checked)
    with right:
        controls.group(_("Optimisation"), by_section["training"], checked)
        start.seed_and_name(by_section[""], checked)
        _file(checked)


def _presets(chosen: str | None) -> None:
    """Draw the preset choice.

    If the draft changed otherwise, the choice gets a new key, so a late browser event is ignored.
    """
    key = _preset_key()
    if key not in st.session_state:
        st.session_state[key] = chosen
    elif st.session_state[key] != chosen:
        st.session_state[_PRESET_TIMES] = st.session_state.get(_PRESET_TIMES, 0) + 1
        key = _preset_key()
        st.session_state[key] = chosen
    lock = open_lesson.lock("task.name")
    st.selectbox(
        _("Preset"),
        list(PRESETS),
        format_func=lambda name: _(PRESETS[name].label),
        key=key,
        placeholder=_("Your own configuration"),
        help=lock or None,
        disabled=bool(lock),
        on_change=_take_preset,
        args=(key,),
        persist_state="session",
    )
    preset_list.button(lock=lock)


def _preset_key() -> str:
    times = st.session_state.get(_PRESET_TIMES, 0)
    return f"{_PRESET}@{times}" if times else _PRESET


def _take_preset(key: str) -> None:
    chosen = st.session_state.get(key)
    if key == _preset_key() and chosen in PRESETS:
        state.set_draft(drafts.preset_values(chosen))


def _read_link() -> None:
    if st.session_state.get(_LINK_READ):
        return
    st.session_state[_LINK_READ] = True
    query = drafts.link_settings(view.query())
    if query:
        values, sentences = drafts.draft_of_link(query)
        state.set_draft(values, base=drafts.link_base(query))
        st.session_state[_LINK_PROBLEMS] = sentences
        made = drafts.link_versions(query)
        if made is not None:
            st.session_state[_LINK_MADE] = (made, values)


def _link_made(draft: Draft) -> None:
    """Explain why the curve of a linked experiment may differ here, while it is unchanged."""
    made, values = st.session_state.get(_LINK_MADE, (None, None))
    if made is None or drafts.differences(draft.values, values):
        return
    why = made_with.why_curves_differ(made, made_with.made_here(state.device(), state.threads()))
    if why is None:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="link-made"):
        st.caption(f":material/info: {escape(_(why))}", width="stretch")
        st.button(
            _("Hide note"),
            icon=":material/close:",
            type="tertiary",
            key="link-made-hide",
            on_click=lambda: st.session_state.pop(_LINK_MADE, None),
        )


def _file(checked: CheckedDraft) -> None:
    problems = st.session_state.get(_JSON_PROBLEMS, [])
    with st.expander(_("Experiment file"), icon=":material/data_object:", expanded=bool(problems)):
        experiment = checked.experiment
        st.download_button(
            _("Download experiment"),
            "" if experiment is None else to_json(experiment),
            file_name="experiment.json",
            mime="application/json",
            icon=":material/download:",
            disabled=experiment is None,
            on_click="ignore",
            help=_("As JSON, also for the command line."),
        )
        st.file_uploader(
            _("Upload experiment"),
            type="json",
            key=_JSON,
            max_upload_size=_MAX_MEGABYTES,
            on_change=_take_file,
            help=_("Replaces all settings above."),
        )
        for sentence in problems:
            controls.error_text(sentence)


def _take_file() -> None:
    file = st.session_state.get(_JSON)
    st.session_state[_JSON_PROBLEMS] = []
    if file is None:
        return
    try:
        experiment = from_json(file.getvalue())
    except ConfigError as error:
        sentences = [_(sentence) for sentence in error.sentences]
        st.session_state[_JSON_PROBLEMS] = [_("{name} was not loaded:", name=file.name), *sentences]
        return
    if experiment.task.name not in TASK_FACTS:
        reason = _("This task belongs to an opened model. Fine-tune it on the page of that model.")
        st.session_state[_JSON_PROBLEMS] = [_("{name} was not loaded:", name=file.name), reason]
        return
    state.set_draft(experiment.model_dump())
    message = _("Experiment loaded from {name}.", name=escape(file.name))
    st.toast(message, icon=":material/upload_file:")
