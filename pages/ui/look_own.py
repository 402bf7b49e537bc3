"""The user's own example: a sentence to type, a digit to draw, a picture to upload."""

from __future__ import annotations

import streamlit as st

from pages.components.digit_pad import digit_pad
from pages.ui import look_mistakes, show, state
from pages.ui import selection as chosen
from pages.ui.selection_link import MAX_TEXT, Selection
from pages.ui.words import _, content
from tfm_core.data.own_picture import MOST_BYTES
from tfm_core.inspect import caption_look, own_example
from tfm_core.inspect.continuation import is_language
from tfm_core.inspect.example import Example
from tfm_core.runs.run import Run
from tfm_core.runs.snapshots import Probe


def own(run: Run, probe: Probe, selection: Selection) -> Example | None:
    """Ask for an example and read it with the last checkpoint; None while there is none."""
    st.markdown(content(f"attention_own_{probe.kind}"))
    if not own_example.has_checkpoint(run):
        if run.status.is_active:
            st.info(_("The run has not saved its weights yet; it will in a moment."))
        else:
            show.problem(
                _(
                    "This run has no checkpoint, so its model cannot read anything new; the run's "
                    "own examples can still be looked at."
                )
            )
        return None
    try:
        if _origin() == "mistakes":
            example = look_mistakes.pick(run)
        else:
            example = _new(run, probe, selection)
    except ValueError as error:
        show.problem(str(error))
        return None
    if example is not None:
        words = _("Read with the last checkpoint of the run, at step {step}.")
        if is_language(example.item):
            words += _(" The maps are over your text; what the model writes follows it.")
        elif "decoder" in run.experiment.model.family or probe.kind == "caption":
            words += _(" Nobody tells the decoder the truth here: it reads its own answer.")
        st.caption(words.format(step=f"{example.step:,}"))
    return example


def _new(run: Run, probe: Probe, selection: Selection) -> Example | None:
    if probe.kind == "text":
        return _sentence(run, probe, selection)
    return _described(run) if probe.kind == "caption" else _picture(run)


def _described(run: Run) -> Example:
    number = st.number_input(
        _("Test picture"),
        1,
        run.experiment.task.n_test,
        key="attention-test-picture",
        help=_("Composed of digits that the model never trained on."),
    )
    st.page_link(
        state.PAGES["captions"],
        label=_("Compose a picture of your own"),
        icon=":material/image_search:",
    )
    return caption_look.look_at_unseen(run, int(number) - 1).example


def _origin() -> str:
    names = {"new": _("A new one"), "mistakes": _("From the validation set, by what went wrong")}
    picked = st.segmented_control(
        _("Where it comes from"),
        list(names),
        format_func=names.__getitem__,
        default="new",
        key="attention-origin",
        wrap=True,
        persist_state="session",
        label_visibility="collapsed",
    )
    return picked or "new"


def _sentence(run: Run, probe: Probe, selection: Selection) -> Example | None:
    key = "attention-text"
    st.session_state.setdefault(key, selection.text or probe.items[0]["src_text"])
    text = st.text_input(
        _("Your sentence"),
        key=key,
        max_chars=MAX_TEXT,
        on_change=lambda: chosen.choose(run.id, text=st.session_state[key]),
        help=_("In the words of the task; press Enter to let the model read it."),
    )
    return own_example.look_at_text(run, text)


def _picture(run: Run) -> Example | None:
    facts = run.experiment.task.facts
    uploaded = None
    drawn = None
    pad, upload = st.columns(2)
    if facts.channels == 1:
        with pad:
            drawn = digit_pad(key="attention-pad")
    with upload:
        uploaded = st.file_uploader(
            _("Or upload a picture") if facts.channels == 1 else _("Upload a picture"),
            type=["png", "jpg", "jpeg", "webp", "bmp"],
            key="attention-upload",
            max_upload_size=MOST_BYTES // 10**6,
            help=_("It is made {size} pixels square, as the run's pictures are.").format(
                size=facts.image_size
            ),
        )
    if uploaded is None and drawn is None:
        return None
    given = drawn if uploaded is None else uploaded.getvalue()
    picture, notes = own_example.read_picture(run, given)
    if uploaded is not None:
        st.caption(" ".join(notes))
    return own_example.look_at_picture(run, picture)
