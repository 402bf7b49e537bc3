"""How a text is written: greedy, sampled, by beam search, or compared with the truth."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import streamlit as st

from pages.i18n import _, paragraph
from pages.translate import choice
from pages.translate.link import (
    BESIDE,
    GREEDY,
    LENGTH,
    METHOD,
    PENALTY,
    SAMPLE,
    SEED,
    TEMPERATURE,
    TOP_K,
    TOP_P,
    WIDTH,
)
from pages.ui.address import view_link
from pages.ui.address.parameters import Option
from tfm_core.inspect.writing.beams import BeamSettings
from tfm_core.inspect.writing.source import Source

if TYPE_CHECKING:
    from tfm_core.decoding import SamplingConfig

MAX_SEARCHED = 100
"""Most tokens of a beam search: every step reads all its texts again."""


def method(source: Source) -> str:
    if source.is_at_once:
        view_link.forget([METHOD])
        return GREEDY
    task = source.experiment.task
    # a text may go on in many ways
    knows_truth = task.facts.answer != "text" and not task.is_opened
    names = tuple(name for name in METHOD.names if name != BESIDE or knows_truth)
    return view_link.choice(
        _("Method"),
        dataclasses.replace(METHOD, names=names),
        is_labelled=False,
    )


def sampling(source: Source, method: str) -> tuple[SamplingConfig, int, int]:
    """Ask for sampling settings in the row of the method; return them, seed and length."""
    from tfm_core.decoding import SamplingConfig

    is_prompt = bool(source.context)
    gone: list[Any] = [] if method == SAMPLE else [TEMPERATURE, TOP_K, TOP_P, SEED]
    view_link.forget([*gone, WIDTH, PENALTY, *([] if is_prompt else [LENGTH])])
    if method != SAMPLE:
        n = choice.length(source.longest) if is_prompt else source.longest
        return SamplingConfig(temperature=0), 0, n
    temperature = _slider(_("Temperature"), TEMPERATURE, paragraph("sampling/temperature"))
    top_k = _number(_("Top-k"), TOP_K, paragraph("sampling/top-k"))
    top_p = _slider(_("Top-p"), TOP_P, paragraph("sampling/top-p"))
    seed = _number(_("Seed"), SEED, _("The same seed gives the same text."))
    st.button(
        _("Sample again"),
        icon=":material/casino:",
        key="translate-draw",
        on_click=_next_seed,
    )
    n = choice.length(source.longest) if is_prompt else source.longest
    return SamplingConfig(temperature, top_k, top_p), seed, n


def beam(source: Source) -> BeamSettings:
    """Ask for width, length penalty and length."""
    view_link.forget([TEMPERATURE, TOP_K, TOP_P, SEED, *([] if source.context else [LENGTH])])
    width = _number(_("Width"), WIDTH, _("Texts kept per step; 1 is greedy."))
    alpha = _slider(_("Length penalty"), PENALTY, _("Ranks by ln p / ((5 + tokens) / 6)^penalty."))
    most = min(source.longest, MAX_SEARCHED)
    return BeamSettings(width, choice.length(most) if source.context else most, alpha)


def _slider(label: str, parameter: Option, help: str) -> float:
    problem = view_link.receive(parameter)
    value = st.select_slider(
        label, parameter.options, key=parameter.key, help=help, on_change=choice.replay, width=140
    )
    view_link.warn(problem)
    view_link.say(parameter, value)
    return float(value)


def _number(label: str, parameter: Any, help: str) -> int:
    problem = view_link.receive(parameter)
    value = st.number_input(
        label,
        parameter.low,
        parameter.high,
        key=parameter.key,
        help=help,
        on_change=choice.replay,
        width=105,
    )
    view_link.warn(problem)
    view_link.say(parameter, int(value))
    return int(value)


def _next_seed() -> None:
    st.session_state[SEED.key] = (st.session_state[SEED.key] + 1) % SEED.high
    choice.replay()
