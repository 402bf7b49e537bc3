"""The board and the run's answer, in a fragment of their own."""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st

from pages.components.digits import (
    DrawnDigit,
    LabReading,
    Picture,
    Reading,
    digit_lab,
    valid_drawing,
)
from pages.i18n import _
from pages.ui import show, state
from pages.ui.address import view_link
from pages.ui.address.parameters import Unfit, Written
from pages.ui.model import digit_models
from pages.ui.model.digit_models import samples
from pages.ui.navigation import page_table
from pages.ui.runs import runs_access
from tfm_core.config import ImageTaskConfig, ViTConfig
from tfm_core.data import own_picture
from tfm_core.facts.batches import Batches
from tfm_core.inspect.attention.own_example import read_picture
from tfm_core.inspect.progress.pictures import PictureHistory, picture_history, right_since
from tfm_core.probe.labels import patches_per_side
from tfm_core.runs.run import Run

Epochs = Callable[[int], float] | None
"""Epochs by step; None if unknown."""
SURE = 0.5
"""The probability below which the model counts as unsure."""


_ON_BOARD = "draw-board"  # the drawing, kept between runs
_IN_ADDRESS = "draw-said"  # the drawing's number in the address
_TICK = 2.0  # seconds between polls of a training run
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


def board(run: Run) -> None:
    is_live = run.status.is_active

    def part(is_ready: bool) -> None:
        if is_live and not run.status.is_active:
            state.draw_anew()  # once: redrawn, it no longer polls
        key = f"draw-{run.id}"
        shown, pictures = _on_board(run, key), samples(run)
        picture = shown.picture(pictures)
        view, note = digit_models.reading_or_note(picture, partial(look_at, run), is_ready=is_ready)
        _lab(run, shown, view, pictures, note, key)
        if view is not None:
            _links(run, view)
        _keep_in_address(run, shown, view, key)

    digit_models.board(run, part, tick=_TICK if is_live else None)


def look_at(run: Run, picture: Picture) -> LabReading:
    """Return what a run reads in a picture (H, W). Raises ValueError."""
    given, notes = read_picture(run, picture)
    steps, shares, heads, rollout = readings = picture_history(run, given)
    classes = run.experiment.task_as(ImageTaskConfig).facts.class_names
    epochs: Epochs = None
    if per_epoch := runs_access.curves(run).started.get("steps_per_epoch"):
        batches = Batches.of_experiment(run.experiment)

        def epochs(step: int) -> float:
            return float(batches.whole(step) / per_epoch)

    meanings = [meant(readings, index, classes, epochs) for index in range(len(classes))]
    best = int(shares[-1].argmax())
    since = meanings[best][0]
    assert since is not None
    return LabReading(
        Reading(steps, shares, since, answer(readings, classes, epochs)),
        seen=given[0],
        how=" ".join(_(note) for note in notes),
        heads=heads,
        rollout=rollout,
        sinces=tuple(at for at, _sentence in meanings),
        sentences=tuple(sentence for _at, sentence in meanings),
    )


def _lab(
    run: Run, shown: DrawnDigit, view: LabReading | None, pictures: Picture, note: str, key: str
) -> None:
    experiment = run.experiment
    model = experiment.model_as(ViTConfig)
    digit_lab(
        shown,
        view,
        samples=pictures,
        labels=[int(item["label"]) for item in run.probe().items[: len(pictures)]],
        classes=experiment.task_as(ImageTaskConfig).facts.class_names,
        shape=(model.n_layers, model.n_heads, patches_per_side(experiment) ** 2),
        note=note,
        key=key,
    )


def _on_board(run: Run, key: str) -> DrawnDigit:
    """Return the drawing for this run: the newest one, or the link's."""
    sent: Any = st.session_state.get(key)
    drawn = valid_drawing(sent.get("drawn") if sent else None)
    current: DrawnDigit = st.session_state.get(_ON_BOARD, DrawnDigit(0, FIRST))
    if drawn is not None and drawn.number > current.number:
        current = drawn
    linked, problem = view_link.opened(BOARD), ""
    if linked is not None:
        wanted, problem = BOARD.follow(linked, FIRST)
        try:
            digit = wanted
            if wanted.startswith(PICTURE):
                facts = run.experiment.task_as(ImageTaskConfig).facts
                picture = own_picture.from_text(wanted.removeprefix(PICTURE), facts)
                digit = base64.b64encode(picture.tobytes()).decode()
            current = DrawnDigit(current.number + 1, digit)
        except ValueError as error:
            current, wanted, problem = DrawnDigit(current.number + 1, FIRST), FIRST, _(error)
        view_link.say(BOARD, wanted)
    view_link.warn(problem)
    st.session_state[_ON_BOARD] = current
    return current


def _keep_in_address(run: Run, shown: DrawnDigit, view: LabReading | None, key: str) -> None:
    sent: Any = st.session_state.get(key)
    if (
        not sent
        or sent.get("kept") != shown.number
        or st.session_state.get(_IN_ADDRESS) == shown.number
    ):
        return
    st.session_state[_IN_ADDRESS] = shown.number
    number = shown.sample(len(samples(run)))
    if number is not None:
        view_link.say(BOARD, str(number))
    elif view is not None:
        view_link.say(BOARD, PICTURE + own_picture.to_text(view.seen[None]))
    state.draw_anew()  # the strip's links contain it too


def _links(run: Run, view: LabReading) -> None:
    own = PICTURE + own_picture.to_text(view.seen[None])
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        words_ = _("Maps: mean attention of all patches to each.")
        if run.experiment.has_cls:
            words_ = _("Maps: attention of the CLS token to each patch.")
        st.caption(words_, width="content")
        st.page_link(
            page_table.path_of("attention"),
            label=_("Open all maps"),
            icon=":material/visibility:",
            query_params={"run": run.id, "example": "own", "own": own},
        )


def answer(readings: PictureHistory, classes: tuple[str, ...], epochs: Epochs) -> str:
    steps, shares, *_maps = readings
    best = int(shares[-1].argmax())
    share = float(shares[-1, best])
    if share < SURE:
        digit, sure = classes[best], show.percent(share)
        return _("Not sure: perhaps a {digit} ({share}).", digit=digit, share=sure)
    since = right_since((steps, shares), best)
    assert since is not None
    if len(steps) == 1:
        return _("Reads a {digit}; no earlier weights were saved.", digit=classes[best])
    if since == steps[0]:
        return _("Reads a {digit}, but so do random weights.", digit=classes[best])
    step = step_words(since, epochs)
    return _("Reads a {digit} from step {step} on.", digit=classes[best], step=step)


def meant(
    readings: PictureHistory, index: int, classes: tuple[str, ...], epochs: Epochs
) -> tuple[int | None, str]:
    """Return the index since when a class is read (or None), and a sentence on it."""
    steps, shares, *_maps = readings
    since = right_since((steps, shares), index)
    digit = classes[index]
    if since is None:
        return None, _missed(readings, index, classes, epochs)
    at = steps.index(since)
    if len(steps) == 1:
        return at, _("Right: a {digit}; no earlier weights were saved.", digit=digit)
    if at == 0:
        return at, _("Right: a {digit}, but so are random weights.", digit=digit)
    step = step_words(since, epochs)
    return at, _("Right from step {step} on: a {digit}.", digit=digit, step=step)


def _missed(readings: PictureHistory, index: int, classes: tuple[str, ...], epochs: Epochs) -> str:
    steps, shares, *_maps = readings
    best, at = int(shares[-1].argmax()), int(shares[:, index].argmax())
    values = {
        "best": classes[best],
        "digit": classes[index],
        "share": show.percent(float(shares[at, index])),
        "step": step_words(steps[at], epochs),
    }
    if (shares.argmax(-1) == index).any():
        return _(
            "Reads a {best}, not a {digit}; at step {step} it read a {digit} ({share}).", **values
        )
    return _("Reads a {best}, never a {digit}: at most {share}, at step {step}.", **values)


def step_words(step: int, epochs: Epochs) -> str:
    if epochs is None:
        return f"{step:,}"
    return _("{step} (epoch {epoch})", step=f"{step:,}", epoch=f"{epochs(step):.1f}")
