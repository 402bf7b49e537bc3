"""Draw a digit: what a trained model reads, where it looks, and since when it is right."""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import partial

import streamlit as st

from pages.app import show, state
from pages.app.address import view_link
from pages.app.address.parameters import Unfit, Written
from pages.app.model import digit_models
from pages.app.navigation import head, page_table
from pages.app.runs import runs_access
from pages.app.runs.shown_run import Needs
from pages.components.digits import (
    DrawnDigit,
    LabReading,
    Picture,
    Reading,
    digit_lab,
    valid_drawing,
)
from pages.i18n import N_, _
from tfm_core.choices.config import ImageTaskConfig, ViTConfig
from tfm_core.data import own_picture
from tfm_core.facts.batches import Batches
from tfm_core.inspect.attention.example import read_picture
from tfm_core.inspect.attention.pictures import (
    PictureHistory,
    picture_history,
    reads_drawings,
    right_since,
)
from tfm_core.probe.labels import patches_per_side
from tfm_core.runs.run import Run

NEEDS = Needs(
    N_("a model that reads digits"),
    reads_drawings,
    first="recorded-digits",
    presets=("vit-digits",),
    is_ready=lambda run: run.has_checkpoint or bool(run.weight_steps()),
)
StepWords = Callable[[int], str]
_ON_BOARD = "draw-board"  # the drawing, kept between runs
_IN_ADDRESS = "draw-said"  # the drawing's number in the address
FIRST = "3"
"""The sample shown at the first visit."""
PICTURE = "picture-"
_MAX = 4096  # letters of a drawing


def _board_of(text: str) -> str:
    is_sample = len(text) == 1 and text in "0123456789"
    is_picture = text.startswith(PICTURE) and len(PICTURE) < len(text) <= _MAX
    if not (is_sample or is_picture):
        raise Unfit(_("0 to 9, or picture- and a drawing"))
    return text


BOARD = Written("digit", reader=_board_of, writer=str, first=FIRST)
"""A sample's index, or ``picture-`` and a drawing as ``own_picture.to_text`` writes it."""


def page() -> None:
    show.header("draw")
    run = head.run(NEEDS)
    if run is not None:
        digit_models.board(run, partial(_board, run))


def _board(run: Run, is_ready: bool) -> None:
    key = f"draw-{run.id}"
    pictures = digit_models.samples(run)
    shown = _on_board(run, key)
    reading, note = digit_models.reading_or_note(
        shown.picture(pictures), partial(look_at, run), is_ready=is_ready
    )
    model = run.experiment.model_as(ViTConfig)
    digit_lab(
        shown,
        reading,
        samples=pictures,
        labels=[int(item["label"]) for item in run.probe().items[: len(pictures)]],
        classes=run.experiment.task.class_names,
        shape=(model.n_layers, model.n_heads, patches_per_side(run.experiment) ** 2),
        note=note,
        key=key,
    )
    drawn = "" if reading is None else PICTURE + own_picture.to_text(reading.seen[None])
    if drawn:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            words = _("Maps: mean attention of all patches to each.")
            if run.experiment.has_cls:
                words = _("Maps: attention of the CLS token to each patch.")
            st.caption(words, width="content")
            st.page_link(
                page_table.path_of("attention"),
                label=_("Open all maps"),
                icon=":material/visibility:",
                query_params={"run": run.id, "example": "own", "own": drawn},
            )
    is_at_rest = (st.session_state.get(key) or {}).get("kept") == shown.number
    if is_at_rest and st.session_state.get(_IN_ADDRESS) != shown.number:
        st.session_state[_IN_ADDRESS] = shown.number
        number = shown.sample(len(pictures))
        if number is not None or drawn:
            view_link.say(BOARD, drawn if number is None else str(number))
        state.draw_anew()  # the strip's links contain it too


def _on_board(run: Run, key: str) -> DrawnDigit:
    """Return the drawing for this run: the newest one, or the link's."""
    drawn = valid_drawing((st.session_state.get(key) or {}).get("drawn"))
    current: DrawnDigit = st.session_state.get(_ON_BOARD, DrawnDigit(0, FIRST))
    if drawn is not None and drawn.number > current.number:
        current = drawn
    linked, problem = view_link.opened(BOARD), ""
    if linked is not None:
        wanted, problem = BOARD.follow(linked, FIRST)
        digit = wanted
        if wanted.startswith(PICTURE):
            facts = run.experiment.task_as(ImageTaskConfig).facts
            try:
                picture = own_picture.from_text(wanted.removeprefix(PICTURE), facts)
                digit = base64.b64encode(picture.tobytes()).decode()
            except ValueError as error:
                digit, wanted, problem = FIRST, FIRST, _(error)
        current = DrawnDigit(current.number + 1, digit)
        view_link.say(BOARD, wanted)
    view_link.warn(problem)
    st.session_state[_ON_BOARD] = current
    return current


def look_at(run: Run, picture: Picture) -> LabReading:
    """Return what a run reads in a picture (H, W). Raises ValueError."""
    given, notes = read_picture(run, picture)
    steps, shares, heads, rollout = readings = picture_history(run, given)
    classes = run.experiment.task.class_names
    words: StepWords = "{:,}".format
    if per_epoch := runs_access.curves(run).started.get("steps_per_epoch"):
        batches = Batches.of_experiment(run.experiment)

        def words(step: int) -> str:
            epoch = f"{batches.whole(step) / per_epoch:.1f}"
            return _("{step} (epoch {epoch})", step=f"{step:,}", epoch=epoch)

    meanings = [meant(readings, index, classes, words) for index in range(len(classes))]
    best = int(shares[-1].argmax())
    since = meanings[best][0]
    assert since is not None
    answer = digit_models.answer((steps, shares), classes, words)
    return LabReading(
        Reading(steps, shares, since, answer),
        seen=given[0],
        how=" ".join(_(note) for note in notes),
        heads=heads,
        rollout=rollout,
        sinces=tuple(at for at, _sentence in meanings),
        sentences=tuple(sentence for _at, sentence in meanings),
    )


def meant(
    readings: PictureHistory, index: int, classes: tuple[str, ...], words: StepWords
) -> tuple[int | None, str]:
    """Return the index since when a class is read (or None), and a sentence on it."""
    steps, shares, *_maps = readings
    since = right_since((steps, shares), index)
    digit = classes[index]
    if since is None:
        best, at = int(shares[-1].argmax()), int(shares[:, index].argmax())
        values = {
            "best": classes[best],
            "digit": digit,
            "share": show.percent(float(shares[at, index])),
            "step": words(steps[at]),
        }
        if (shares.argmax(-1) == index).any():
            return None, _(
                "Reads a {best}, not a {digit}; at step {step} it read a {digit} ({share}).",
                **values,
            )
        return None, _(
            "Reads a {best}, never a {digit}: at most {share}, at step {step}.", **values
        )
    at = steps.index(since)
    if len(steps) == 1:
        return at, _("Right: a {digit}; no earlier weights were saved.", digit=digit)
    if at == 0:
        return at, _("Right: a {digit}, but so are random weights.", digit=digit)
    return at, _("Right from step {step} on: a {digit}.", digit=digit, step=words(since))


if __name__ == "__main__":
    page()
