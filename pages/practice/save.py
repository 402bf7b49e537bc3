"""Step 6: save the weights, load them into a fresh model, compare."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from pages.i18n import _, paragraph
from pages.practice import steps
from pages.practice.steps import Runs
from pages.ui import show
from tfm_core.config import to_json
from tfm_core.inspect.practice import evaluation
from tfm_core.inspect.practice.evaluation import RoundTrip
from tfm_core.runs.run import Run

_MODEL_WIDTH, _DIFFERENCE_WIDTH, _DIGIT_WIDTH = 220, 110, 64  # pixels: all ten classes in view


def view(runs: Runs) -> None:
    picked = steps.chosen(runs)
    if picked is None:
        return
    run = picked[1]
    pressed = st.button(
        _("Save, build a fresh model, load, compare"),
        type="primary",
        icon=":material/save:",
        key="practice-save",
    )
    if not pressed and not steps.is_marked("save"):
        return
    try:
        with st.spinner(_("Saving and loading …")):
            done = _round_trip(run.id, evaluation.weights_mark(run), run)
    except ValueError as error:
        show.problem(error)
        return
    steps.mark_done("save")
    _compare(done)
    _files(done, run)
    show.code(evaluation.save_weights)
    show.code(evaluation.load_weights)


def _compare(done: RoundTrip) -> None:
    names = {
        _("trained"): "trained",
        _("fresh, before loading"): "fresh",
        _("fresh, after loading"): "loaded",
        _("strict=False, wrong names"): "misnamed",
    }
    rows = []
    for label, name in names.items():
        logits = getattr(done, name)[0]
        rows.append(
            {
                _("model"): label,
                _("largest difference"): f"{done.difference(name):.6g}",
                **{str(digit): round(float(value), 3) for digit, value in enumerate(logits)},
            }
        )
    digits = [str(digit) for digit in range(done.trained.shape[1])]
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        key="practice-logits",
        column_config={
            _("model"): st.column_config.TextColumn(width=_MODEL_WIDTH),
            _("largest difference"): st.column_config.TextColumn(width=_DIFFERENCE_WIDTH),
            **{digit: st.column_config.NumberColumn(width=_DIGIT_WIDTH) for digit in digits},
        },
    )
    if done.difference("loaded") == 0:
        st.success(
            _("The logits on all {n} pictures are **exactly** the same.", n=len(done.trained)),
            icon=":material/check_circle:",
        )
    st.caption(
        paragraph(
            "practice/differences", n=len(done.trained), ignored=done.n_ignored, all=done.n_tensors
        )
    )


def _files(done: RoundTrip, run: Run) -> None:
    with st.container(horizontal=True, gap="small"):
        st.download_button(
            _("Weights ({size})", size=show.size(len(done.content))),
            done.content,
            file_name="weights.safetensors",
            mime="application/octet-stream",
            icon=":material/download:",
            on_click="ignore",
            key="practice-weights",
        )
        st.download_button(
            _("Configuration"),
            to_json(run.experiment),
            file_name="experiment.json",
            mime="application/json",
            icon=":material/download:",
            on_click="ignore",
            key="practice-configuration",
        )


@st.cache_data(show_spinner=False, max_entries=8)
def _round_trip(run_id: str, mark: int, _run: Run) -> RoundTrip:
    return evaluation.round_trip(_run)
