"""The user's own example: a sentence to type, a digit to draw, a picture to upload."""

from __future__ import annotations

import dataclasses
import zlib
from functools import partial

import numpy as np
import numpy.typing as npt
import streamlit as st

from pages.attention import mistakes
from pages.attention import selection as chosen
from pages.attention.selection_link import MAX_TEXT, MISTAKES, Selection
from pages.components.digits import digit_pad
from pages.i18n import _, content
from pages.ui import show, typed
from pages.ui.model import answer, sentence_field
from pages.ui.model.task_panels import own_words
from pages.ui.navigation import page_table
from pages.ui.typed import escape
from tfm_core.config import CaptionTaskConfig, ImageTaskConfig, SequenceTaskConfig
from tfm_core.config.image_tasks import ImageTaskFacts
from tfm_core.data import own_picture
from tfm_core.data.tasks import text_task
from tfm_core.inspect.attention import own_example
from tfm_core.inspect.attention.example import Example
from tfm_core.inspect.progress.pictures import AnswersByStep, answers_by_step, right_since
from tfm_core.inspect.text import caption_look
from tfm_core.probe.items import is_language
from tfm_core.probe.types import Probe
from tfm_core.runs.run import Run
from tfm_core.sentences import StudentError

DRAWN, UPLOADED = "drawn", "uploaded"
_LAST = "attention-last-picture"
_KEY, _TEXT, _READ = "attention", "attention-text", "attention-read"
_PICTURE, _LARGE = "attention-own-picture", "large."  # what no link holds, and its mark there
MAX_IN_LINK = 16_500
"""Letters of a picture in a link."""
_SIDE = 76  # pixels to a side of the picture that is read


def own(run: Run, probe: Probe, selection: Selection) -> Example | None:
    """Ask for an example and read it with the last checkpoint; None while there is none."""
    if selection.source != MISTAKES:
        st.caption(content(own_words(run.experiment)))
    if not run.has_checkpoint:
        if run.status.is_active:
            st.info(_("The run has not saved its weights yet."))
        else:
            show.problem(_("This run has no checkpoint, so it cannot read new examples."))
        return None
    try:
        if selection.source == MISTAKES:
            example = mistakes.pick(run, selection)
        else:
            ask = run.experiment.task.by_data(
                pairs=sentence, stream=sentence, pictures=picture, captions=described
            )
            example = ask(run, probe, selection)
    except ValueError as error:
        show.problem(error)
        return None
    if example is not None:
        words = ""
        if not run.experiment.task.is_opened:
            words = _("Read with the last checkpoint, step {step}.", step=f"{example.step:,}")
        if is_language(example.item):
            words += " " + _("The maps are over your text, not its continuation.")
        elif "tgt" in example.item and run.experiment.model.family != "encoder-only":
            words += " " + _("The decoder reads what it wrote (no teacher forcing).")
        st.caption(words.strip())
    return example


def is_picture(run: Run) -> bool:
    return bool(run.experiment.task.class_names)


def described(run: Run, probe: Probe, selection: Selection) -> Example:
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
    )
    st.page_link(
        page_table.path_of("captions"), label=_("Compose a picture"), icon=":material/image_search:"
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
        picture = _kept(run, selection.own_of("picture"), facts)
    else:
        picture, notes = own_example.read_picture(run, given)
        if isinstance(given, bytes):
            st.caption(" ".join(notes))
        own = f"picture-{_keep(run, picture)}"
        if own != selection.own:
            chosen.choose(run.id, own=own)
    example = own_example.look_at_picture(run, picture)
    _answer(run, example)
    return example


def _keep(run: Run, picture: npt.NDArray[np.uint8]) -> str:
    """Return what the link says of a picture: all of it, or its mark where that is too long."""
    text = own_picture.to_text(picture)
    if len(text) <= MAX_IN_LINK:
        return text
    mark = f"{_LARGE}{zlib.crc32(text.encode()):08x}"
    st.session_state[_PICTURE] = (run.id, mark, picture)
    return mark


def _kept(run: Run, text: str, facts: ImageTaskFacts) -> npt.NDArray[np.uint8]:
    """Return the picture that a link names. Raises StudentError where it is not here."""
    if not text.startswith(_LARGE):
        st.caption(_("The picture from the link. Draw or upload another."))
        return own_picture.from_text(text, facts)
    *names, picture = st.session_state.get(_PICTURE, ("", "", None))
    if names != [run.id, text]:
        raise StudentError("This picture is too large for a link. Upload it again.")
    st.caption(_("The picture that you uploaded last. Upload another to replace it."))
    kept: npt.NDArray[np.uint8] = picture
    return kept


def _answer(run: Run, example: Example) -> None:
    """Show the picture as it is read, what the model makes of it, and since when."""
    assert example.picture is not None
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.image(np.moveaxis(example.picture, 0, -1).squeeze(), width=_SIDE)
        answer.verdict(run.experiment, (example,), example.step, name="")
    try:
        steps_and_shares = answers_by_step(run, example.picture)
    except ValueError:  # no weights from the training were saved
        answer.details(run.experiment, (example,), example.step, name="")
        return
    _since_when(run, example, steps_and_shares)


def _since_when(run: Run, example: Example, steps_and_shares: AnswersByStep) -> None:
    """Say from which step on the picture was read as it is now, and show it step by step."""
    assert example.probabilities is not None
    steps, shares = steps_and_shares
    best = int(example.probabilities.argmax())
    name = run.experiment.task_as(ImageTaskConfig).facts.class_names[best]
    since = right_since(steps_and_shares, best)
    if since is None:
        st.markdown(_("Only the last weights read it as **{name}**.", name=name))
    else:
        words = _("Read as **{name}** since step **{step}**.", step=f"{since:,}", name=name)
        st.markdown(words)
    key = "attention-own-step"
    if st.session_state.get(key) not in steps:
        st.session_state[key] = steps[-1]
    at = st.select_slider(
        _("Weights of step"), steps, format_func=lambda step: f"{step:,}", key=key
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
        _("Upload a picture"),
        type=["png", "jpg", "jpeg", "webp", "bmp"],
        key="attention-upload",
        max_upload_size=own_picture.MAX_BYTES // 10**6,
        on_change=partial(_changed, run, UPLOADED),
        help=_("Resized to {size} × {size} pixels.", size=facts.image_size),
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


def sentence(run: Run, probe: Probe, selection: Selection) -> Example:
    """Ask for a sentence and read it; what was read last stays while the new one cannot be."""
    first = str(probe.items[0]["src_text"])
    st.session_state.setdefault(_TEXT, selection.text or first)
    task = text_task(run.experiment.task_as(SequenceTaskConfig))

    def read(text: str) -> None:
        chosen.choose(run.id, text=text)

    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        with st.container(key="attention-sentence"):
            text = sentence_field.field(
                label=_("Your sentence"),
                help=_("Use the words of the task, then press Enter."),
                key=_KEY,
                on_read=read,
            )
        sentence_field.buttons(task, key=_KEY, on_read=read)
    if getattr(run.experiment.task, "mask_id", -1) >= 0:
        st.caption(escape(_("Type [MASK] where the model is to guess a word.")))
    groups = sentence_field.by_class(task)
    if groups:
        sentence_field.chips(task, groups, key=_KEY, on_read=read)
    try:
        example = own_example.look_at_text(
            run, typed.within(text, MAX_TEXT), kinds=(selection.kind,)
        )
    except ValueError as error:
        run_id, last = st.session_state.get(_READ, ("", ""))
        shown = last if run_id == run.id else first
        st.warning(escape(_(error)), icon=":material/spellcheck:")
        if len(text) <= MAX_TEXT:
            sentence_field.suggest(
                task, text, key=_KEY, on_read=lambda nearest: chosen.choose(run.id, text=nearest)
            )
        st.caption(_("Shown below: “{text}”", text=escape(shown)))
        return own_example.look_at_text(run, shown, kinds=(selection.kind,))
    st.session_state[_READ] = (run.id, text)
    sentence_field.mark_unknown(task, text)
    return example
