"""Validation examples that the model gets wrong."""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from pages.attention import selection as chosen
from pages.attention.selection_link import Selection
from pages.components.pickers import Thumbnail, thumbnails
from pages.i18n import _
from pages.ui import show
from tfm_core.inspect.attention import own_example, trained
from tfm_core.inspect.attention.example import Example
from tfm_core.inspect.errors.validation_errors import read_one
from tfm_core.inspect.text import caption_look
from tfm_core.runs.run import Run

if TYPE_CHECKING:
    from tfm_core.inspect.errors.validation_errors import ValidationAnswer, ValidationAnswers


_KEY = "attention-mistake"
_SHORT = 6  # letters of an answer that stand below a small picture


def pick(run: Run, selection: Selection) -> Example | None:
    """Offer what went wrong, and look at the chosen one. Raises ValueError without weights."""
    with st.spinner(_("Reading the validation set …")):
        readings = _readings(run.folder, trained.checkpoint_mark(run))
    st.markdown(_sentence(readings))
    if not readings.examples:
        return None
    by_index = {reading.index: reading for reading in readings.examples}
    wanted = int(selection.own_of("validation") or next(iter(by_index)) + 1) - 1
    if wanted not in by_index:  # a link may name any of them
        try:
            reading_asked = read_one(run, wanted)
            by_index = {wanted: reading_asked, **by_index}
            readings = dataclasses.replace(readings, examples=tuple(by_index.values()))
        except ValueError as error:
            show.problem(error)
            wanted = next(iter(by_index))
    st.session_state[_KEY] = wanted
    if readings.examples[0].picture is not None:
        _pictures(run, readings, wanted)
        return _example(run, by_index[wanted], selection.kind)
    index = st.selectbox(
        _("Confident mistakes first, then uncertain right answers"),
        list(by_index),
        format_func=lambda index: _name(by_index[index]),
        key=_KEY,
        on_change=lambda: chosen.choose(run.id, own=f"validation-{st.session_state[_KEY] + 1}"),
    )
    return _example(run, by_index[index], selection.kind)


def _example(run: Run, reading: ValidationAnswer, kind: str) -> Example:
    if reading.picture is None:
        return own_example.look_at_text(run, reading.item["src_text"], kinds=(kind,))
    if "tgt" in reading.item:
        return caption_look.look_at_picture(run, reading.picture, reading.item).example
    example = own_example.look_at_picture(run, reading.picture)
    return dataclasses.replace(example, item=reading.item)


def _pictures(run: Run, readings: ValidationAnswers, wanted: int) -> None:
    shown = readings.examples
    st.caption(_("Confident mistakes first, then uncertain right answers"))
    thumbnails(
        [
            Thumbnail(
                reading.picture,
                _name(reading),
                below=reading.predicted if len(reading.predicted) <= _SHORT else "",
                is_wrong=not reading.is_right,
            )
            for reading in shown
            if reading.picture is not None
        ],
        chosen=[reading.index for reading in shown].index(wanted),
        label=_("Mistakes on unseen examples"),
        on_pick=lambda place: chosen.choose(run.id, own=f"validation-{shown[place].index + 1}"),
        key="attention-mistake-pictures",
    )


def _sentence(readings: ValidationAnswers) -> str:
    words = {"n": f"{readings.n_read:,}", "wrong": f"{readings.n_wrong:,}"}
    if readings.n_wrong == 0:
        return _("The first {n} validation examples are all right.", **words)
    share = show.percent(readings.n_wrong / readings.n_read)
    return _(
        "**{wrong}** of the first {n} validation examples are wrong ({share}).",
        **words,
        share=share,
    )


def _name(reading: ValidationAnswer) -> str:
    values = {
        "said": reading.predicted or "–",
        "truth": reading.truth,
        "sure": show.percent(reading.confidence),
    }
    if reading.picture is None:
        source = reading.item["src_text"]
        if reading.is_right:
            return _("{source} → {said}, right ({sure})", source=source, **values)
        return _("{source} → {said}, but it is {truth} ({sure})", source=source, **values)
    number = reading.index + 1
    if reading.is_right:
        return _("Picture {n}: {truth}, right with {sure}", n=number, **values)
    return _("Picture {n}: {truth} taken for {said}, with {sure}", n=number, **values)


@lru_cache(maxsize=4)
def _readings(folder: Path, mark: int) -> ValidationAnswers:
    from tfm_core.inspect.errors.validation_errors import wrong_examples

    return wrong_examples(Run(folder))
