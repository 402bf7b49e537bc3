"""Presets as cards: what each learns, shown by an example, how long it takes, what it reaches."""

from __future__ import annotations

import streamlit as st

from pages.ui import run_actions, run_words, show
from pages.ui.samples import DIGITS, text_sample
from pages.ui.words import _
from tfm_core.config import FAMILIES
from tfm_core.presets import PRESETS, Preset

N_LARGE = 2
COLUMNS = 4


def grid() -> None:
    """Show every preset; the first ones are the ones to begin with."""
    presets = list(PRESETS.values())
    for column, preset in zip(st.columns(N_LARGE), presets, strict=False):
        with column:
            _card(preset, is_large=True)
    rest = presets[N_LARGE:]
    for first in range(0, len(rest), COLUMNS):
        for column, preset in zip(st.columns(COLUMNS), rest[first:], strict=False):
            with column:
                _card(preset, is_large=False)


def _card(preset: Preset, *, is_large: bool) -> None:
    with st.container(border=True, height="stretch", gap="small", key=f"card-{preset.name}"):
        heading = "####" if is_large else "#####"
        st.markdown(f"{heading} {preset.label}")
        _example(preset)
        st.markdown(preset.learns)
        takes = _("about {time}").format(time=show.duration(preset.seconds))
        model = FAMILIES[preset.experiment.model.family].label
        st.caption(f":material/timer: {takes} · :material/target: {preset.reaches} · {model}")
        st.space("stretch")
        if st.button(
            _("Train it"),
            key=f"start-{preset.name}",
            type="primary" if is_large else "secondary",
            icon=":material/play_arrow:",
            width="stretch",
        ):
            run_actions.start_preset(preset.name)


def _example(preset: Preset) -> None:
    sample = text_sample(preset.experiment)
    if sample is None:
        st.image(DIGITS, width=300)
        return
    source, target = (run_words.escape(text) for text in sample)
    st.markdown(f"{source} :gray[:material/arrow_forward:] **{target}**")
