"""Step time against sequence length, measured in the background."""

from __future__ import annotations

from concurrent.futures import Future

import pandas as pd
import streamlit as st

from pages.before.maps import LABELS
from pages.i18n import _, paragraph
from pages.ui import show, state
from pages.ui.model import question
from pages.ui.runs import run_time
from tfm_core.inspect.attention import questions, rnn_attention
from tfm_core.inspect.speed.step_times import BATCH, LENGTHS, recorded_times
from tfm_core.plots.heads import before as plots

TICK = 1.5
_ROUND = "before-round"


def view() -> None:
    words, press = st.columns([3, 1], vertical_alignment="center")
    words.markdown(
        _("An RNN computes token by token; a Transformer all at once."),
        help=paragraph("before/times", batch=BATCH, d=rnn_attention.WIDTH),
    )
    if press.button(
        _("Measure now"),
        type="primary",
        icon=":material/timer:",
        key="before-measure",
        width="stretch",
    ):
        _rounds()[0] += 1  # of this server, so that each press measures again
        st.session_state[_ROUND] = _rounds()[0]
    if st.session_state.get(_ROUND) is None:
        seconds, torch, day = recorded_times()
        show.prose(paragraph("before/recorded-times", day=day, torch=torch))
        _figures(1000 * seconds)
        return
    futures = _futures(st.session_state[_ROUND])
    is_open = any(not future.done() for future in futures.values())
    st.fragment(_draw, run_every=TICK if is_open else None)(st.session_state[_ROUND], is_open)


def _draw(number: int, was_open: bool) -> None:
    futures = _futures(number)
    done = {key: future.result() for key, future in futures.items() if _is_measured(future)}
    if was_open and all(future.done() for future in futures.values()):
        state.draw_anew()  # once: redrawn, it no longer polls
    if was_open:
        st.progress(
            len(done) / len(futures), _("Measuring {n} of {all} …", n=len(done), all=len(futures))
        )
    whole = [n for n in LENGTHS if all((name, n) in done for name in rnn_attention.RACERS)]
    if not whole:
        return
    times = {name: [1000 * done[name, n] for n in whole] for name in rnn_attention.RACERS}
    _figures(pd.DataFrame(times, index=whole), is_whole=not was_open)


def _figures(frame: pd.DataFrame, *, is_whole: bool = True) -> None:
    """Draw milliseconds by length (rows) and model (columns)."""
    ratio = frame[["additive"]].div(frame["one-head"], axis=0)
    left, right = st.columns(2, gap="medium")
    with left:
        series = {name: (_(LABELS[name]), frame.index, frame[name]) for name in frame}
        show.live_figure(
            plots.times(series, _("source and target tokens, each"), _("ms per step")),
            _("Which line is steeper? Both axes are logarithmic."),
            key="before-times",
        )
    with right:
        series = {
            "additive": (_("RNN / Transformer, 1 head"), ratio.index, ratio["additive"]),
        }
        show.live_figure(
            plots.times(series, _("source and target tokens, each"), _("ratio"), is_ratio=True),
            _("RNN time over Transformer time. Dotted: equal."),
            key="before-ratios",
        )
    if is_whole:
        _sentence(frame)


def _sentence(frame: pd.DataFrame) -> None:
    first, last = frame.index[0], frame.index[-1]
    if first == last:
        return
    ratio = frame["additive"] / frame["one-head"]
    growth = {name: frame[name][last] / frame[name][first] for name in ("additive", "one-head")}
    asked = questions.about_growth(last // first, growth["additive"], growth["one-head"])
    if not question.guess(asked, "growth", of=f"{growth}"):
        return
    show.prose(
        paragraph(
            "before/growth",
            a=first,
            b=last,
            n=last // first,
            rnn=f"{growth['additive']:.1f}",
            one=f"{growth['one-head']:.1f}",
            low=f"{ratio[first]:.1f}",
            high=f"{ratio[last]:.1f}",
        )
    )
    st.caption(paragraph("before/theory"))


def _futures(number: int) -> dict[tuple[str, int], Future[float]]:
    return {
        (name, length): run_time.step_time(name, length, number)
        for length in LENGTHS
        for name in rnn_attention.RACERS
    }


def _is_measured(future: Future[float]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


@st.cache_resource(show_spinner=False)
def _rounds() -> list[int]:
    return [0]
