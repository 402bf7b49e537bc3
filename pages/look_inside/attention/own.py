"""The visitor's own example: a sentence, a drawing, a picture to upload, or a mistake."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import streamlit as st

from pages.app import show, typed
from pages.app.address import view
from pages.app.address.parameters import Text
from pages.app.model import answer, your_input
from pages.app.typed import escape
from pages.components.digits import digit_pad
from pages.components.pickers import Thumbnail, thumbnails
from pages.i18n import N_, _
from pages.look_inside.attention.maps import SCOPE, choose
from tfm_core.choices.config import CaptionTaskConfig, ImageTaskConfig
from tfm_core.choices.config.image_tasks import ImageTaskFacts
from tfm_core.data import user_picture
from tfm_core.data.tasks import text_task
from tfm_core.inspect.answers import ValidationAnswer, answer_one, has_right_answers, wrong_first
from tfm_core.inspect.attention.example import (
    Example,
    look_at_picture,
    look_at_text,
    read_picture,
)
from tfm_core.inspect.attention.pictures import answers_by_step, right_since
from tfm_core.inspect.text import captions
from tfm_core.probe.items import is_language
from tfm_core.probe.types import Probe
from tfm_core.runs.run import Run
from tfm_core.sentences import StudentError

DRAWN = "drawn"
UPLOADED = "uploaded"
OWN = "own"
MISTAKES = "mistakes"
MAX_TEXT = 1200
MAX_SHOWN = 40  # examples to choose from, the worst first
MAX_IN_LINK = 16_500
"""Letters of a picture in a link."""
_LAST = "attention-last-picture"
_READ = "attention-read"
_PICTURE, _LARGE = "attention-own-picture", "large."  # what no link holds, and its mark there
_SIDE = 76  # pixels to a side of the picture that is read
_SHORT = 6  # letters of an answer that stand below a small picture


def _own_field(of: str = "") -> Any:
    return view.written(
        f"|{MISTAKES}|picture-.+|(?:test|validation)-0*[1-9][0-9]{{0,8}}",
        N_("mistakes, or picture-, test- or validation- and which"),
        default="",
        of=of,
    )


def _text_field(first: str = "") -> Any:
    return view.held(Text("", first=first, most=MAX_TEXT))


@dataclass(frozen=True)
class Own:
    """An example of the visitor's own.

    own: what is no sentence: "picture-" and ``user_picture.to_text``, or "test-" or "validation-"
    and its number from 1, or "mistakes" for the first of them.
    """

    own: str = _own_field()
    text: str = _text_field()

    @property
    def is_mistake(self) -> bool:
        return self.own == MISTAKES or bool(self.of("validation"))

    def of(self, kind: str) -> str:
        """Return what follows the kind in ``own``; empty where it is of another kind."""
        prefix, _dash, rest = self.own.partition("-")
        return rest if prefix == kind else ""


def ask(run: Run, probe: Probe) -> Own:
    """Ask for one's own example, or a mistake of the model."""
    first = str(probe.items[0].get("src_text", ""))
    chosen = view.ask(Own, SCOPE, own=_own_field(run.id), text=_text_field(first))
    if has_right_answers(run.experiment.task):
        key = "attention-source"
        st.session_state[key] = MISTAKES if chosen.is_mistake else OWN
        st.segmented_control(
            _("Input"),
            [OWN, MISTAKES],
            format_func={OWN: _("Your own"), MISTAKES: _("Mistakes")}.__getitem__,
            required=True,
            key=key,
            on_change=lambda: _choose(run, MISTAKES if st.session_state[key] == MISTAKES else ""),
            help=_("Mistakes are from the validation set."),
        )
    return chosen


def _choose(run: Run, own: str) -> None:
    """Look at another example."""
    choose(**{f"{run.id}-own": own})


def example(run: Run, probe: Probe, given: Own, kind: str) -> Example | None:
    """Ask for an example and read it with the last checkpoint; None while there is none."""
    if not run.has_checkpoint:
        if run.status.is_active:
            st.info(_("The run has not saved its weights yet."))
        else:
            show.problem(_("This run has no checkpoint, so it cannot read new examples."))
        return None
    try:
        if given.is_mistake:
            example = mistake(run, given, kind)
        else:
            read = run.experiment.task.by_data(
                pairs=sentence, stream=sentence, pictures=picture, captions=described
            )
            example = read(run, probe, given, kind)
    except ValueError as error:
        show.problem(error)
        return None
    if example is not None:
        message = ""
        if run.experiment.training is not None:
            message = _("Read with the last checkpoint, step {step}.", step=f"{example.step:,}")
        if is_language(example.item):
            message += " " + _("The maps show your text, not its continuation.")
        elif "tgt" in example.item and run.experiment.model.family != "encoder-only":
            message += " " + _("The decoder reads what it wrote (no teacher forcing).")
        st.caption(message.strip())
    return example


def described(run: Run, probe: Probe, given: Own, kind: str) -> Example:
    key, n_test = "attention-test-picture", run.experiment.task_as(CaptionTaskConfig).n_test
    number_in_link = int(given.of("test") or 1)
    if number_in_link > n_test:
        show.problem(
            _("There is no test picture {n}; the last is {most}.", n=number_in_link, most=n_test)
        )
    st.session_state[key] = min(number_in_link, n_test)
    number = st.number_input(
        _("Test picture"),
        1,
        n_test,
        key=key,
        on_change=lambda: _choose(run, f"test-{st.session_state[key]}"),
    )
    show.link("try", _("Compose a picture"), {"view": "scene"}, icon=":material/image_search:")
    example = captions.look_at_unseen(run, int(number) - 1).example
    if example.picture is not None:
        st.image(example.picture[0], width=160, caption=_("The picture to describe"))
    return example


def picture(run: Run, probe: Probe, given: Own, kind: str) -> Example | None:
    """Ask for a drawing or a file and read it; None while there is none.

    The last thing done is read: a drawing, a file, or the picture of the link. It stands beside the
    pad with its answer.
    """
    facts = run.experiment.task_as(ImageTaskConfig).facts
    new = _new_picture(run)
    if new is None and not given.of("picture"):
        return None
    if new is None:
        picture = _picture_in_link(run, given.of("picture"), facts)
    else:
        picture, notes = read_picture(run, new)
        if isinstance(new, bytes):
            st.caption(" ".join(notes))
        _choose(run, f"picture-{_link_text(run, picture)}")
        view.one(_own_field(run.id), "own", SCOPE)
    example = look_at_picture(run, picture)
    _answer(run, example)
    return example


def _link_text(run: Run, picture: npt.NDArray[np.uint8]) -> str:
    """Return what the link says of a picture: all of it, or its mark where that is too long."""
    text = user_picture.to_text(picture)
    if len(text) <= MAX_IN_LINK:
        return text
    mark = f"{_LARGE}{zlib.crc32(text.encode()):08x}"
    st.session_state[_PICTURE] = (run.id, mark, picture)
    return mark


def _picture_in_link(run: Run, text: str, facts: ImageTaskFacts) -> npt.NDArray[np.uint8]:
    """Return the picture that a link names. Raises StudentError where it is not here."""
    if not text.startswith(_LARGE):
        st.caption(_("This picture is from the link. Draw or upload another."))
        return user_picture.from_text(text, facts)
    *names, picture = st.session_state.get(_PICTURE, ("", "", None))
    if names != [run.id, text]:
        raise StudentError("This picture is too large for a link. Upload it again.")
    st.caption(_("This is your last upload. Upload another to replace it."))
    stored: npt.NDArray[np.uint8] = picture
    return stored


def _answer(run: Run, example: Example) -> None:
    """Show the picture as it is read, what the model makes of it, and since when."""
    assert example.picture is not None
    assert example.probabilities is not None
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.image(np.moveaxis(example.picture, 0, -1).squeeze(), width=_SIDE)
        answer.verdict(run.experiment, (example,), example.step, name="")
    try:
        steps, shares = answers_by_step(run, example.picture)
    except ValueError:  # no weights from the training were saved
        answer.details(run.experiment, (example,), example.step, name="")
        return
    best = int(example.probabilities.argmax())
    name = run.experiment.task.class_names[best]
    since = right_since((steps, shares), best)
    if since is None:
        st.markdown(_("Only the last weights read it as **{name}**.", name=name))
    else:
        message = _("Read as **{name}** since step **{step}**.", step=f"{since:,}", name=name)
        st.markdown(message)
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


def _new_picture(run: Run) -> bytes | npt.NDArray[np.uint8] | None:
    """Ask for a drawing or a file; return the one that was changed last, None where it is gone.

    A change of either takes the picture out of the link.
    """
    facts = run.experiment.task_as(ImageTaskConfig).facts
    drawn = None
    if facts.channels == 1:
        drawn = digit_pad(key="attention-pad", on_change=partial(_remember_source, run, DRAWN))
    uploaded = st.file_uploader(
        _("Upload a picture"),
        type=["png", "jpg", "jpeg", "webp", "bmp"],
        key="attention-upload",
        max_upload_size=user_picture.MAX_BYTES // 10**6,
        on_change=partial(_remember_source, run, UPLOADED),
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


def _remember_source(run: Run, source: str) -> None:
    st.session_state[_LAST] = source
    _choose(run, "")


def sentence(run: Run, probe: Probe, given: Own, kind: str) -> Example:
    """Ask for a sentence and read it; what was read last stays while the new one cannot be."""
    first = str(probe.items[0]["src_text"])
    task = text_task(run.experiment.task)

    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        with st.container(key="attention-sentence"):
            text = st.text_input(
                _("Your sentence"),
                key=f"{SCOPE}-text",
                persist_state="session",
                help=_("Use the words of the task, then press Enter."),
            )
        your_input.sentence_buttons(task, key=SCOPE)
    if getattr(run.experiment.task, "mask_id", -1) >= 0:
        st.caption(escape(_("Type [MASK] for each word to guess.")))
    groups = your_input.by_class(task)
    if groups:
        your_input.chips(task, groups, key=SCOPE)
    try:
        example = look_at_text(run, typed.check_length(text, MAX_TEXT), kinds=(kind,))
    except ValueError as error:
        run_id, last = st.session_state.get(_READ, ("", ""))
        last_text = last if run_id == run.id else first
        st.warning(escape(_(error)), icon=":material/spellcheck:")
        if len(text) <= MAX_TEXT:
            your_input.suggest(task, text, key=SCOPE)
        st.caption(_("Shown below: “{text}”", text=escape(last_text)))
        return look_at_text(run, last_text, kinds=(kind,))
    st.session_state[_READ] = (run.id, text)
    your_input.mark_unknown(task, text)
    return example


def mistake(run: Run, given: Own, kind: str) -> Example | None:
    """Offer what went wrong, and look at the chosen one. Raises ValueError without weights."""
    with st.spinner(_("Reading the validation set …")):
        readings = wrong_first(run)
    st.markdown(_wrong_share(readings))
    if not readings:
        return None
    by_index = {reading.index: reading for reading in readings[:MAX_SHOWN]}
    index_in_link = int(given.of("validation") or readings[0].index + 1) - 1
    if index_in_link not in by_index:  # a link may name any of them
        try:
            by_index = {index_in_link: answer_one(run, index_in_link), **by_index}
        except ValueError as error:
            show.problem(error)
            index_in_link = readings[0].index
    key = "attention-mistake"
    st.session_state[key] = index_in_link
    if readings[0].picture is not None:
        _pictures(run, list(by_index.values()), index_in_link)
        return _mistaken(run, by_index[index_in_link], kind)
    index = st.selectbox(
        _("Confident mistakes first, then uncertain right answers"),
        list(by_index),
        format_func=lambda index: _example_name(by_index[index]),
        key=key,
        on_change=lambda: _choose(run, f"validation-{st.session_state[key] + 1}"),
    )
    return _mistaken(run, by_index[index], kind)


def _mistaken(run: Run, reading: ValidationAnswer, kind: str) -> Example:
    if reading.picture is None:
        return look_at_text(run, reading.item["src_text"], kinds=(kind,))
    if "tgt" in reading.item:
        return captions.look_at_picture(run, reading.picture, reading.item).example
    example = look_at_picture(run, reading.picture)
    return dataclasses.replace(example, item=reading.item)


def _pictures(run: Run, shown: Sequence[ValidationAnswer], wanted: int) -> None:
    st.caption(_("Confident mistakes first, then uncertain right answers"))
    thumbnails(
        [
            Thumbnail(
                reading.picture,
                _example_name(reading),
                below=reading.predicted if len(reading.predicted) <= _SHORT else "",
                is_wrong=not reading.is_right,
            )
            for reading in shown
            if reading.picture is not None
        ],
        chosen=[reading.index for reading in shown].index(wanted),
        label=_("Mistakes on unseen examples"),
        on_pick=lambda place: _choose(run, f"validation-{shown[place].index + 1}"),
        key="attention-mistake-pictures",
    )


def _wrong_share(readings: Sequence[ValidationAnswer]) -> str:
    n, wrong = len(readings), sum(not reading.is_right for reading in readings)
    words = {"n": f"{n:,}", "wrong": f"{wrong:,}"}
    if wrong == 0:
        return _("The first {n} validation examples are all right.", **words)
    share = show.percent(wrong / n)
    return _(
        "**{wrong}** of the first {n} validation examples are wrong ({share}).",
        **words,
        share=share,
    )


def _example_name(reading: ValidationAnswer) -> str:
    values = {
        "predicted": reading.predicted or "–",
        "truth": reading.truth,
        "confidence": show.percent(reading.confidence),
    }
    if reading.picture is None:
        source = reading.item["src_text"]
        if reading.is_right:
            return _("{source}: {predicted}, right ({confidence})", source=source, **values)
        return _(
            "{source}: predicted {predicted}, true {truth} ({confidence})", source=source, **values
        )
    number = reading.index + 1
    if reading.is_right:
        return _("Picture {n}: {truth}, right ({confidence})", n=number, **values)
    return _("Picture {n}: predicted {predicted}, true {truth} ({confidence})", n=number, **values)
