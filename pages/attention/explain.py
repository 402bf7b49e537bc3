"""Three explanations of one picture."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import streamlit as st

from pages.i18n import _, content
from pages.ui import show, state
from tfm_core.config import ImageTaskConfig
from tfm_core.inspect.attention import trained
from tfm_core.inspect.attention.example import Example
from tfm_core.inspect.attention.explanations import EXPLANATIONS, explained
from tfm_core.plots.heads.patches import patch_overlay
from tfm_core.probe.types import Floats
from tfm_core.runs.run import Run

_CLASS = "attention-explained-class"


def explanations(run: Run, example: Example) -> None:
    """Show three explanations of the answer."""
    assert example.picture is not None
    names = run.experiment.task_as(ImageTaskConfig).facts.class_names
    target = st.selectbox(
        _("The class to explain"),
        [None, *range(len(names))],
        format_func=lambda index: _("The predicted class") if index is None else names[index],
        key=_CLASS,
        persist_state="session",
        help=_("Only relevance depends on the class."),
    )
    try:
        step, label, probabilities, maps = _explained(
            run.folder,
            trained.checkpoint_mark(run),
            example.picture.tobytes(),
            example.picture.shape,
            target,
        )
    except ValueError as error:
        show.problem(error)
        return
    name = names[label]
    share = show.percent(float(probabilities[label]))
    words = _(
        "What supports **{name}** ({share} at step {step})?",
        name=name,
        step=f"{step:,}",
        share=share,
    )
    if run.experiment.task.is_opened:
        words = _("What supports **{name}** ({share})?", name=name, share=share)
    st.markdown(words)
    for column, (kind, values) in zip(st.columns(3), maps.items(), strict=True):
        with column:
            st.markdown(f"**{_(EXPLANATIONS[kind].label)}**")
            figure = patch_overlay(values, example.picture, theme=state.theme())
            figure.update_layout(height=300, margin={"l": 4, "r": 4, "t": 44, "b": 4})
            show.live_figure(figure, _(EXPLANATIONS[kind].help), key=f"attention-explain-{kind}")
    show.prose(content("attention_explanation"))


@lru_cache(maxsize=16)
def _explained(
    folder: Path, mark: int, picture: bytes, shape: tuple[int, ...], target: int | None
) -> tuple[int, int, Floats, dict[str, Floats]]:
    pixels = np.frombuffer(picture, np.uint8).reshape(shape)
    return explained(Run(folder), pixels, target)
