"""The user's own example: a sentence to type, a digit to draw, a picture to upload."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt
import streamlit as st

from pages.attention import mistakes
from pages.attention import selection as chosen
from pages.attention.selection_link import MAX_TEXT, Selection
from pages.components.digit_pad import digit_pad
from pages.i18n import _, content
from pages.ui import page_table, show, typed
from pages.ui.task_panels import panels
from tfm_core.config import CaptionTaskConfig, ImageTaskConfig
from tfm_core.data import own_picture
from tfm_core.inspect.attention import own_example
from tfm_core.inspect.attention.example import Example
from tfm_core.inspect.text import caption_look
from tfm_core.probe.continuation import is_language
from tfm_core.probe.types import Probe
from tfm_core.runs.run import Run


def own(run: Run, probe: Probe, selection: Selection) -> Example | None:
    """Ask for an example and read it with the last checkpoint; None while there is none."""
    st.markdown(content(panels(run.experiment).own_words))
    if not run.has_checkpoint:
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
        if _origin(run, selection) == "mistakes":
            example = mistakes.pick(run, selection)
        else:
            example = panels(run.experiment).part("own")(run, probe, selection)
    except ValueError as error:
        show.problem(error)
        return None
    if example is not None:
        words = _("Read with the last checkpoint of the run, at step {step}.")
        if is_language(example.item):
            words += _(" The maps are over your text; what the model writes follows it.")
        elif "tgt" in example.item and run.experiment.model.family != "encoder-only":
            words += _(" Nobody tells the decoder the truth here: it reads its own answer.")
        st.caption(words.format(step=f"{example.step:,}"))
    return example


def described(run: Run, probe: Probe, selection: Selection) -> Example:
    """Choose one of the unseen pictures, and let the model describe it."""
    key, most = "attention-test-picture", run.experiment.task_as(CaptionTaskConfig).n_test
    wanted = int(selection.own_of("test") or 1)
    if wanted > most:
        show.problem(
            _("There is no test picture {n}; the last one is {most}.").format(n=wanted, most=most)
        )
    st.session_state[key] = min(wanted, most)
    number = st.number_input(
        _("Test picture"),
        1,
        most,
        key=key,
        on_change=lambda: chosen.choose(run.id, own=f"test-{st.session_state[key]}"),
        help=_("Composed of digits that the model never trained on."),
    )
    st.page_link(
        page_table.path_of("captions"),
        label=_("Compose a picture of your own"),
        icon=":material/image_search:",
    )
    return caption_look.look_at_unseen(run, int(number) - 1).example


def _origin(run: Run, selection: Selection) -> str:
    key = "attention-origin"
    names = {"new": _("A new one"), "mistakes": _("From the validation set, by what went wrong")}
    if selection.own:
        st.session_state[key] = "mistakes" if selection.own_of("validation") else "new"
    st.session_state.setdefault(key, "new")
    picked = st.segmented_control(
        _("Where it comes from"),
        list(names),
        format_func=names.__getitem__,
        key=key,
        on_change=lambda: chosen.choose(run.id, own=""),
        wrap=True,
        persist_state="session",
        label_visibility="collapsed",
    )
    return picked or "new"


def sentence(run: Run, probe: Probe, selection: Selection) -> Example:
    """Ask for a sentence and read it."""
    key = "attention-text"
    st.session_state.setdefault(key, selection.text or probe.items[0]["src_text"])
    text = st.text_input(
        _("Your sentence"),
        key=key,
        on_change=lambda: chosen.choose(run.id, text=st.session_state[key]),
        help=_("Use the words of the task; press Enter and the model reads it."),
    )
    return own_example.look_at_text(run, typed.within(text, MAX_TEXT))


def picture(run: Run, probe: Probe, selection: Selection) -> Example | None:
    """Ask for a drawing or a file and read it; None while there is none."""
    given = _given(run)
    if given is None and not selection.own_of("picture"):
        return None
    if given is None:
        facts = run.experiment.task_as(ImageTaskConfig).facts
        picture = own_picture.from_text(selection.own_of("picture"), facts)
        st.caption(_("The picture of the link. Draw or upload another one to replace it."))
        return own_example.look_at_picture(run, picture)
    picture, notes = own_example.read_picture(run, given)
    if isinstance(given, bytes):
        st.caption(" ".join(notes))
    own = f"picture-{own_picture.to_text(picture)}"
    if own != selection.own:
        chosen.choose(run.id, own=own)
    return own_example.look_at_picture(run, picture)


def _given(run: Run) -> bytes | npt.NDArray[np.uint8] | None:
    """Ask for a drawing or a file; a change of either takes the picture out of the link."""
    facts = run.experiment.task_as(ImageTaskConfig).facts
    forget = partial(chosen.choose, run.id, own="")
    drawn = None
    pad, upload = st.columns(2)
    if facts.channels == 1:
        with pad:
            drawn = digit_pad(key="attention-pad", on_change=forget)
    with upload:
        uploaded = st.file_uploader(
            _("Or upload a picture") if facts.channels == 1 else _("Upload a picture"),
            type=["png", "jpg", "jpeg", "webp", "bmp"],
            key="attention-upload",
            max_upload_size=own_picture.MOST_BYTES // 10**6,
            on_change=forget,
            help=_("It is made {size} pixels square, as the run's pictures are.").format(
                size=facts.image_size
            ),
        )
    return drawn if uploaded is None else uploaded.getvalue()
