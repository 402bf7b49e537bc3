"""How a text is written: greedily, drawn at random, by beam search, or beside the truth."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import streamlit as st

from pages.i18n import _
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
from pages.ui import view_link
from pages.ui.parameters import Option
from tfm_core.inspect.writing.beams import BeamSettings
from tfm_core.inspect.writing.source import Source

if TYPE_CHECKING:
    from tfm_core.decoding import SamplingConfig

MAX_SEARCHED = 100
"""Tokens that a beam writes at most: a wide one reads all of its texts again at each of them."""


def method(source: Source) -> str:
    """Ask how to write; what a model cannot do is not offered."""
    if source.is_at_once:
        view_link.forget([METHOD])
        return GREEDY
    names = tuple(
        name for name in METHOD.names if name != BESIDE or source.experiment.task.kind != "corpus"
    )
    return view_link.choice(
        _("How to write"),
        dataclasses.replace(METHOD, names=names),
        help=_(
            "Always the likeliest token, one drawn by its probability, the likeliest texts kept "
            "side by side, or the text beside the true one, token by token."
        ),
    )


def sampling(source: Source, method: str) -> tuple[SamplingConfig, int, int]:
    """Ask for what a token is drawn from; return that, the seed, and the tokens to write.

    Called in the row of the method, as ``beam`` is.
    """
    from tfm_core.decoding import SamplingConfig

    is_prompt = bool(source.context)
    gone: list[Any] = [] if method == SAMPLE else [TEMPERATURE, TOP_K, TOP_P, SEED]
    view_link.forget([*gone, WIDTH, PENALTY, *([] if is_prompt else [LENGTH])])
    if method != SAMPLE:
        n = choice.length(source.longest) if is_prompt else source.longest
        return SamplingConfig(temperature=0), 0, n
    temperature = _slider(
        _("Temperature"),
        TEMPERATURE,
        _("Logits are divided by it: 0 is greedy, 1 the model itself, 2 wild."),
    )
    top_k = _number(
        _("Top-k"), TOP_K, _("Draw from this many of the likeliest tokens; 0 is all of them.")
    )
    top_p = _slider(
        _("Top-p"),
        TOP_P,
        _("Draw from the fewest tokens that together have this probability."),
    )
    seed = _number(_("Seed"), SEED, _("The same seed draws the same text."))
    st.button(
        _("Draw again"),
        icon=":material/casino:",
        key="translate-draw",
        help=_("With the next seed."),
        on_click=_next_seed,
    )
    n = choice.length(source.longest) if is_prompt else source.longest
    return SamplingConfig(temperature, top_k, top_p), seed, n


def beam(source: Source) -> BeamSettings:
    """Ask how wide to search, and how longer texts fare; at most MAX_SEARCHED tokens."""
    view_link.forget([TEMPERATURE, TOP_K, TOP_P, SEED, *([] if source.context else [LENGTH])])
    width = _number(_("Width"), WIDTH, _("Texts kept at each step; 1 is greedy."))
    alpha = _slider(
        _("Length penalty"),
        PENALTY,
        _(
            "0 ranks by probability, which only falls with every token; the larger it is, the "
            "better longer texts fare: ln p is divided by ((5 + tokens) / 6) to this power."
        ),
    )
    most = min(source.longest, MAX_SEARCHED)
    return BeamSettings(width, choice.length(most) if source.context else most, alpha)


def _slider(label: str, parameter: Option, help: str) -> float:
    problem = view_link.receive(parameter)
    found = st.select_slider(
        label, parameter.options, key=parameter.key, help=help, on_change=choice.replay, width=140
    )
    view_link.warn(problem)
    view_link.say(parameter, found)
    return float(found)


def _number(label: str, parameter: Any, help: str) -> int:
    problem = view_link.receive(parameter)
    found = st.number_input(
        label, parameter.low, parameter.high, key=parameter.key, help=help,
        on_change=choice.replay, width=105,
    )  # fmt: skip
    view_link.warn(problem)
    view_link.say(parameter, int(found))
    return int(found)


def _next_seed() -> None:
    st.session_state[SEED.key] = (st.session_state[SEED.key] + 1) % SEED.high
    choice.replay()
