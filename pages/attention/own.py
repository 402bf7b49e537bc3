"""The user's own example: a sentence to type, a digit to draw, a picture to upload."""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np
import numpy.typing as npt
import streamlit as st

from pages.attention import mistakes
from pages.attention import selection as chosen
from pages.attention.selection_link import MISTAKES, Selection
from pages.components.digit_pad import digit_pad
from pages.i18n import _, content
from pages.ui import answer, page_table, show
from pages.ui.task_panels import panels
from tfm_core.config import CaptionTaskConfig, ImageTaskConfig
from tfm_core.data import own_picture
from tfm_core.inspect.attention import own_example
from tfm_core.inspect.attention.example import Example
from tfm_core.inspect.progress.pictures import AnswersByStep, answers_by_step, right_since
from tfm_core.inspect.text import caption_look
from tfm_core.probe.items import is_language
from tfm_core.probe.types import Probe
from tfm_core.runs.run import Run

DRAWN, UPLOADED = "drawn", "uploaded"
_LAST = "attention-last-picture"
_READ = 76  # pixels to a side of the picture that is read


def own(run: Run, probe: Probe, selection: Selection) -> Example | None:
    """Ask for an example and read it with the last checkpoint; None while there is none."""
    if selection.source != MISTAKES:
        st.caption(content(panels(run.experiment).own_words))
    if not run.has_checkpoint:
        if run.status.is_active:
            st.info(_("The run has not saved its weights yet. Wait a moment."))
        else:
            show.problem(
                _(
                    "This run has no checkpoint, so its model cannot read anything new. Its own "
                    "examples are still here."
                )
            )
        return None
    try:
        if selection.source == MISTAKES:
            example = mistakes.pick(run, selection)
        else:
            example = panels(run.experiment).own()(run, probe, selection)
    except ValueError as error:
        show.problem(error)
        return None
    if example is not None:
        words = _("Read with the last checkpoint of the run, at step {step}.")
        if is_language(example.item):
            words += _(" The maps are over your text; what the model writes follows it.")
        elif "tgt" in example.item and run.experiment.model.family != "encoder-only":
            words += _(" The decoder sees only what it has written so far (no teacher forcing).")
        st.caption(words.format(step=f"{example.step:,}"))
    return example


def is_picture(run: Run) -> bool:
    """Return whether one's own example is a picture to draw or to upload."""
    return bool(run.experiment.task.class_names)


def described(run: Run, probe: Probe, selection: Selection) -> Example:
    """Choose one of the unseen pictures, and let the model describe it."""
    key, most = "attention-test-picture", run.experiment.task_as(CaptionTaskConfig).n_test
    wanted = int(selection.own_of("test") or 1)
    if wanted > most:
        show.problem(
            _("There is no test picture {n}; the last one is {most}.", n=wanted, most=most)
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
    example = caption_look.look_at_unseen(run, int(number) - 1).example
    if example.picture is not None:
        st.image(example.picture[0], width=160, caption=_("The picture that is described"))
    return example


def picture(run: Run, probe: Probe, selection: Selection) -> Example | None:
    """Ask for a drawing or a file and read it; None while there is none.

    The last thing done is read: a drawing, a file, or the picture of the link. It stands beside the
    pad with its answer.
    """
    facts = run.experiment.task_as(ImageTaskConfig).facts
    given = _given(run)
    if given is None and not selection.own_of("picture"):
        return None
    if given is None:
        picture = own_picture.from_text(selection.own_of("picture"), facts)
        st.caption(_("The picture from the link. Draw or upload another to replace it."))
    else:
        picture, notes = own_example.read_picture(run, given)
        if isinstance(given, bytes):
            st.caption(" ".join(notes))
        own = f"picture-{own_picture.to_text(picture)}"
        if own != selection.own:
            chosen.choose(run.id, own=own)
    example = own_example.look_at_picture(run, picture)
    _answer(run, example)
    return example


def _answer(run: Run, example: Example) -> None:
    """Show the picture as it is read, what the model makes of it, and since when."""
    assert example.picture is not None
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.image(np.moveaxis(example.picture, 0, -1).squeeze(), width=_READ)
        answer.verdict(run.experiment, (example,), example.step, name="")
    try:
        found = answers_by_step(run, example.picture)
    except ValueError:  # the run kept no weights of the time in which it learned
        answer.details(run.experiment, (example,), example.step, name="")
        return
    _since_when(run, example, found)


def _since_when(run: Run, example: Example, found: AnswersByStep) -> None:
    """Say from which step on the picture was read as it is now, and show it step by step."""
    assert example.probabilities is not None
    steps, shares = found
    best = int(example.probabilities.argmax())
    name = run.experiment.task_as(ImageTaskConfig).facts.class_names[best]
    since = right_since(found, best)
    words = _("Only the last weights read your picture as **{name}**.")
    if since is not None:
        words = _("From step **{step}** it reads your picture as **{name}**.")
    st.markdown(words.format(step=f"{since or 0:,}", name=name))
    key = "attention-own-step"
    if st.session_state.get(key) not in steps:
        st.session_state[key] = steps[-1]
    at = st.select_slider(
        _("Read with the weights of step"), steps, format_func=lambda step: f"{step:,}", key=key
    )
    then = example  # of whose step the weights are whole
    if at != example.step:
        then = dataclasses.replace(example, step=at, probabilities=shares[steps.index(at)])
    answer.details(run.experiment, (then,), at, name="")


def _given(run: Run) -> bytes | npt.NDArray[np.uint8] | None:
    """Ask for a drawing or a file; return the one that was changed last, None where it is gone.

    A change of either takes the picture out of the link.
    """
    facts = run.experiment.task_as(ImageTaskConfig).facts
    drawn = None
    if facts.channels == 1:
        drawn = digit_pad(key="attention-pad", on_change=partial(_changed, run, DRAWN))
    uploaded = st.file_uploader(
        _("Or upload a picture") if facts.channels == 1 else _("Upload a picture"),
        type=["png", "jpg", "jpeg", "webp", "bmp"],
        key="attention-upload",
        max_upload_size=own_picture.MAX_BYTES // 10**6,
        on_change=partial(_changed, run, UPLOADED),
        help=_(
            "It is resized to {size} x {size} pixels, like the run's pictures.",
            size=facts.image_size,
        ),
    )
    return last_given(
        drawn, None if uploaded is None else uploaded.getvalue(), st.session_state.get(_LAST)
    )


def last_given(
    drawn: npt.NDArray[np.uint8] | None, uploaded: bytes | None, last: str | None
) -> bytes | npt.NDArray[np.uint8] | None:
    """Return what was changed last, a drawing or a file; the other where that one is gone."""
    if last == UPLOADED and uploaded is not None:
        return uploaded
    if last == DRAWN and drawn is None:
        return None  # cleared to draw another: an old file is not meant
    return uploaded if drawn is None else drawn


def _changed(run: Run, what: str) -> None:
    st.session_state[_LAST] = what
    chosen.choose(run.id, own="")
