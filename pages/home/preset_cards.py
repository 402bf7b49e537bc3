"""Presets as cards: what each learns, shown by an example, how long it takes, what it reaches."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.ui import run_actions, run_time
from pages.ui.task_panels import panels
from tfm_core.config import FAMILIES
from tfm_core.presets import PRESETS, Preset
from tfm_core.runs.run import Run

N_LARGE = 2
COLUMNS = 4


def first(runs: list[Run]) -> None:
    """Show the presets to begin with; ``runs`` know how long they took here."""
    _rows(list(PRESETS.values())[:N_LARGE], runs, N_LARGE, is_large=True)


def rest(runs: list[Run]) -> None:
    """Show the other presets, family by family; small families stand side by side."""
    others = list(PRESETS.values())[N_LARGE:]
    trained = {
        name: [preset for preset in others if preset.experiment.model.family == name]
        for name in FAMILIES
    }
    for shelf in _shelves({name: len(presets) for name, presets in trained.items() if presets}):
        widths = [min(len(trained[name]), COLUMNS) for name in shelf]
        room = COLUMNS - sum(widths)
        for column, name, width in zip(
            st.columns([*widths, room] if room else widths), shelf, widths, strict=False
        ):
            with column:
                st.header(_(FAMILIES[name].label), anchor=False, help=_(FAMILIES[name].help))
                _rows(trained[name], runs, width, is_large=False)


def _shelves(sizes: dict[str, int]) -> list[list[str]]:
    """Put each family on the first shelf that has room for all of its cards."""
    shelves: list[list[str]] = []
    for name, size in sizes.items():
        for shelf in shelves:
            if sum(sizes[other] for other in shelf) + size <= COLUMNS:
                shelf.append(name)
                break
        else:
            shelves.append([name])
    return shelves


def _rows(presets: list[Preset], runs: list[Run], n_columns: int, *, is_large: bool) -> None:
    for begin in range(0, len(presets), n_columns):
        row = presets[begin : begin + n_columns]
        for column, preset in zip(st.columns(n_columns), row, strict=False):
            with column:
                _card(preset, runs, is_large=is_large)


def _card(preset: Preset, runs: list[Run], *, is_large: bool) -> None:
    with st.container(border=True, height="stretch", gap="small", key=f"card-{preset.name}"):
        heading = "##" if is_large else "###"
        st.markdown(f"{heading} {_(preset.label)}")
        _example(preset, is_large=is_large)
        st.markdown(_(preset.learns))
        takes = run_time.takes(preset.experiment)
        st.caption(f":material/timer: {takes}  \n:material/target: {_(preset.reaches)}")
        st.space("stretch")
        if st.button(
            _("Train it"),
            key=f"start-{preset.name}",
            type="primary" if is_large else "secondary",
            icon=":material/play_arrow:",
            width="stretch",
        ):
            run_actions.start_preset(preset.name)


def _example(preset: Preset, *, is_large: bool) -> None:
    panels(preset.experiment).part("sample")(preset.experiment, is_large=is_large)
