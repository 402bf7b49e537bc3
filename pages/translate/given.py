"""What the model writes from: a sentence, a prompt, or a picture."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.i18n import _
from pages.translate import choice
from pages.translate.link import MAX_TEXT, PICTURE, TEXT
from pages.ui import typed
from pages.ui.address import view_link
from pages.ui.model import sentence_field
from pages.ui.typed import escape
from tfm_core.config import CaptionTaskConfig, CorpusTaskConfig, SequenceTaskConfig
from tfm_core.data.tasks import text_task
from tfm_core.data.text import TextTask
from tfm_core.data.text.task import missing_examples
from tfm_core.inspect.text.surprisal import example_text
from tfm_core.inspect.writing.source import Source, next_words, picture_source, source_of
from tfm_core.runs.run import Run

_KEY, _READ = "translate", "translate-read"


def source(run: Run, step: int, choices: DeltaGenerator) -> Source:
    """Ask for what the weights of a step write from; ``choices`` is for what few need.

    Raises ValueError if there are no such weights.
    """
    if run.experiment.task.describes_pictures:
        view_link.forget([TEXT])
        return _picture(run, step)
    view_link.forget([PICTURE])
    return _text(run, step, choices)


def _picture(run: Run, step: int) -> Source:
    task = run.experiment.task_as(CaptionTaskConfig)
    problem = view_link.receive(PICTURE)
    st.session_state[PICTURE.key] = min(st.session_state[PICTURE.key], task.n_test)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        number = st.number_input(
            _("Test picture"),
            1,
            task.n_test,
            key=PICTURE.key,
            width=220,
            on_change=choice.begin_anew,
        )
        st.button(
            _("Next picture"),
            icon=":material/casino:",
            key="translate-another",
            on_click=_another,
            args=(task.n_test,),
        )
    view_link.warn(problem)
    view_link.say(PICTURE, int(number))
    return picture_source(run, int(number) - 1, step)


def _another(n: int) -> None:
    st.session_state[PICTURE.key] = st.session_state[PICTURE.key] % n + 1
    choice.begin_anew()


def _text(run: Run, step: int, choices: DeltaGenerator) -> Source:
    config = run.experiment.task_as(SequenceTaskConfig)
    task = text_task(config)
    is_prompt = not config.has_source
    if view_link.opened(TEXT) is None and TEXT.key not in st.session_state:
        st.session_state[TEXT.key] = _first(run, task)
    problem = view_link.receive(TEXT)

    text = sentence_field.field(
        label=_("Prompt") if is_prompt else _("Your sentence"),
        help=_("Press Enter to continue it; may be empty.")
        if is_prompt
        else _("Use the task's words, then press Enter."),
        key=_KEY,
        on_read=lambda _text: choice.begin_anew(),
    )
    with choices.container(horizontal=True, gap="small"):
        sentence_field.buttons(task, key=_KEY, on_read=lambda _text: choice.begin_anew())
    view_link.warn(problem)
    view_link.say(TEXT, text or " ")  # a link without a text opens the first example
    result = _read(run, step, task, text)
    _next(task, text)
    return result


def _read(run: Run, step: int, task: TextTask, text: str) -> Source:
    """Return the source of a text; if it is invalid, say why and keep the last one."""
    try:
        source = source_of(run, typed.within(text, MAX_TEXT), step)
    except ValueError as error:
        st.warning(escape(_(error)), icon=":material/spellcheck:")
        if 0 < len(text) <= MAX_TEXT:
            sentence_field.suggest(task, text, key=_KEY, on_read=lambda _text: choice.begin_anew())
        run_id, last = st.session_state.get(_READ, ("", ""))
        shown = last if run_id == run.id else _first(run, task)
        st.caption(_("Showing “{text}”", text=escape(shown)))
        return source_of(run, shown, step)
    st.session_state[_READ] = (run.id, text)
    sentence_field.mark_unknown(task, text)
    return source


def _next(task: TextTask, text: str) -> None:
    if missing_examples(task) is not None:
        return
    try:
        words = task.tokenize(text) if text.strip() else ()
    except ValueError:
        words = ()
    candidates = next_words(task, words)
    if candidates:
        groups = {_("Possible next words"): list(candidates)}
        sentence_field.chips(task, groups, key=_KEY, on_read=lambda _text: choice.begin_anew())


def _first(run: Run, task: TextTask) -> str:
    if run.experiment.task.facts.answer == "text":
        unit = run.experiment.task_as(CorpusTaskConfig).unit
        first = {"words": 2, "characters": 12, "bpe": 4}[unit]
        return example_text(run, first)
    try:
        return str(run.probe().items[0]["src_text"])
    except (OSError, ValueError, LookupError):
        return sentence_field.drawn_text(task, seed=0)
