"""Continue a prompt: several samples step by step, or beam search."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import streamlit as st

from pages.i18n import N_, _, paragraph
from pages.ui import show, typed
from pages.ui.model import beam_view, question, sentence_field
from tfm_core.config import CorpusTaskConfig
from tfm_core.data.tasks import text_task
from tfm_core.inspect.attention import trained
from tfm_core.inspect.text import gpt_writing, questions
from tfm_core.inspect.text.gpt_writing import Sample
from tfm_core.inspect.text.surprisal import example_text
from tfm_core.inspect.writing import beams
from tfm_core.inspect.writing.beams import BeamComparison, BeamSettings
from tfm_core.inspect.writing.source import Ids, continuing
from tfm_core.plots.texts import gpt as plots
from tfm_core.plots.texts.writing import written_text
from tfm_core.runs.run import Run
from tfm_core.variants.units import UNITS

if TYPE_CHECKING:
    from tfm_core.decoding import SamplingConfig

_HOT = 2.0
"""The temperature of the question."""
_WRITTEN, _COMMAND = "gpt-written", "gpt-asked"
_METHODS = {
    "sample": N_("Sample"),
    "greedy": N_("Greedy"),
    "beam": N_("Beam search"),
}


def part(run: Run) -> None:
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    with left:
        key = f"gpt-prompt-{run.id}"
        first = {"words": 2, "characters": 12, "bpe": 4}[
            run.experiment.task_as(CorpusTaskConfig).unit
        ]
        st.session_state.setdefault(key, example_text(run, first))
        text = st.text_input(_("Prompt"), key=key, help=_("The model continues it; may be empty."))
        prompt = typed.within(text, 400)
        sentence_field.mark_unknown(text_task(run.experiment.task_as(CorpusTaskConfig)), prompt)
    with right:
        method = st.segmented_control(
            _("Method"),
            list(_METHODS),
            format_func=lambda name: _(_METHODS[name]),
            default="sample",
            required=True,
            wrap=True,
            key="gpt-method",
            persist_state="session",
            help=_("Sample, take the likeliest, or keep several texts."),
        )
    begun = gpt_writing.prompt_ids(run, prompt)
    if method == "beam":
        _beam(run, begun)
        return
    sampling, seeds, length = _controls(is_greedy=method == "greedy")
    # sampling is not part of the mark: it may change within a text
    mark = (run.id, trained.checkpoint_mark(run), begun, seeds)
    st.fragment(_written)(run, mark, sampling, length)


def _written(run: Run, mark: tuple[Any, ...], sampling: SamplingConfig, length: int) -> None:
    stored = st.session_state.get(_WRITTEN)
    if stored is None or stored[0] != mark:
        stored = (mark, [Sample(mark[2], ()) for _seed in mark[3]])
    samples: list[Sample] = stored[1]
    bar = st.container(horizontal=True, gap="small", vertical_alignment="center")
    areas = [column.empty() for column in st.columns(len(samples))]
    command = st.session_state.pop(_COMMAND, None)
    if command == "again":
        samples = [Sample(mark[2], ()) for _seed in mark[3]]
    n = {"step": 1, "on": length - _done(samples)}.get(command, 0)
    if n > 0:
        for longer in gpt_writing.write_on(run, samples, sampling, mark[3], n=n):
            _draw(run, areas, longer, mark)
            samples = longer
    _draw(run, areas, samples, mark)
    st.session_state[_WRITTEN] = (mark, samples)
    with bar:
        _buttons(run, samples, length)
    _next(run, samples[0], sampling)


def _done(samples: list[Sample]) -> int:
    return max(len(sample.chances) for sample in samples)


def _buttons(run: Run, samples: list[Sample], length: int) -> None:
    n, is_over = _done(samples), all(gpt_writing.has_ended(run, one) for one in samples)
    for name, label, icon in (
        ("step", _("Write one token"), ":material/skip_next:"),
        ("on", _("Write the rest"), ":material/play_arrow:"),
        ("again", _("Restart"), ":material/restart_alt:"),
    ):
        st.button(
            label,
            icon=icon,
            key=f"gpt-{name}",
            type="primary" if name == "on" else "secondary",
            disabled=name != "again" and (is_over or n >= length),
            on_click=st.session_state.update,
            args=({_COMMAND: name},),
        )
    st.caption(_("{n} of {length} tokens", n=n, length=length))


def _draw(run: Run, areas: list[Any], samples: list[Sample], mark: tuple[Any, ...]) -> None:
    gap = UNITS[run.experiment.task_as(CorpusTaskConfig).unit].separator
    for area, sample, seed in zip(areas, samples, mark[3], strict=True):
        tokens = gpt_writing.tokens_of(run, sample.ids)
        n_prompt = len(tokens) - len(sample.chances)
        with area.container(border=True):
            if len(samples) > 1:
                st.caption(_("Seed {seed}", seed=seed))
            st.html(written_text(tokens, sample.chances, n_prompt, gap, say=_))


def _next(run: Run, sample: Sample, sampling: SamplingConfig) -> None:
    if gpt_writing.has_ended(run, sample):
        st.caption(_("The first sample has ended with <eos>.").replace("<", "\\<"))
        return
    upcoming, facts = gpt_writing.next_token(run, sample.ids, sampling)
    show.prose(
        paragraph(
            "gpt/next-token",
            left=f"{facts['left']:,}",
            all=f"{facts['all']:,}",
            before=f"{facts['before']:.2f}",
            after=f"{facts['after']:.2f}",
        )
    )
    show.figure(
        plots.before_and_after(upcoming),
        _("Grey: model. Vermilion: after sampling settings."),
        key="gpt-next",
    )
    if sampling.temperature < _HOT:
        hotter, _facts = gpt_writing.next_token(
            run, sample.ids, replace(sampling, temperature=_HOT)
        )
        asked = questions.about_temperature(upcoming, hotter)
        question.check({"temperature": asked}, of=f"{run.id} {sample.ids} {sampling}")


def _slider(name: str, label: str, *, bounds: tuple[float, float], first: float) -> float:
    return st.slider(
        label,
        *bounds,
        first,
        0.05,
        key=f"gpt-{name}",
        help=paragraph(f"sampling/{name}"),
        persist_state="session",
    )


def _number(
    name: str,
    label: str,
    *,
    bounds: tuple[int, int],
    first: int,
    step: int = 1,
    help: str | None = None,
) -> int:
    key = f"gpt-{name}"
    return int(
        st.number_input(label, *bounds, first, step, key=key, help=help, persist_state="session")
    )


def _controls(*, is_greedy: bool) -> tuple[SamplingConfig, tuple[int, ...], int]:
    """Return the sampling settings, a seed per sample, and the length."""
    from tfm_core.decoding import SamplingConfig

    with st.container(border=True):
        first = st.columns(3)
        if is_greedy:
            with first[0]:
                length = _length()
            return SamplingConfig(temperature=0), (0,), length
        with first[0]:
            temperature = _slider("temperature", _("Temperature"), bounds=(0.0, 2.0), first=0.8)
        with first[1]:
            words = paragraph("sampling/top-k")
            top_k = _number("top-k", _("Top-k"), bounds=(0, 1000), first=0, help=words)
        with first[2]:
            top_p = _slider("top-p", _("Top-p"), bounds=(0.05, 1.0), first=1.0)
        second = st.columns(3)
        with second[0]:
            words = _("The same seed gives the same text.")
            seed = _number("seed", _("Seed"), bounds=(0, 10**6), first=0, help=words)
        with second[1]:
            words = _("Texts side by side, with successive seeds.")
            n = _number("samples", _("Samples"), bounds=(1, 4), first=2, help=words)
        with second[2]:
            length = _length()
    return SamplingConfig(temperature, top_k, top_p), tuple(range(seed, seed + n)), length


def _length() -> int:
    return _number("length", _("Tokens to write"), bounds=(1, 400), first=80, step=10)


def _beam(run: Run, prompt: Ids) -> None:
    left, middle, right = st.columns(3)
    with left:
        words = _("Texts kept per step; 1 is greedy.")
        width = _number("width", _("Width"), bounds=(1, 16), first=4, help=words)
    with middle:
        length = _number("beam-length", _("Tokens to write"), bounds=(1, 100), first=20)
    comparison = _compare(str(run.folder), trained.checkpoint_mark(run), prompt, width, length, run)
    if comparison is None:
        st.caption(_("The prompt has ended."))
        return
    with right:
        step = len(comparison.steps)
        if step > 1:
            step = st.slider(_("After token"), 1, step, step, key="gpt-beam-step")
    join = beam_view.joined_by(UNITS[run.experiment.task_as(CorpusTaskConfig).unit].separator)
    st.markdown(beam_view.conclusion(comparison, join))
    beam_view.ranking(comparison.steps[step - 1], comparison, join, key="gpt-beams")
    st.header(_("Other methods"), anchor=False)
    beam_view.others(comparison, join, key="gpt-beam-others")


@st.cache_data(show_spinner=False, max_entries=32)
def _compare(
    folder: str, mark: int, prompt: Ids, width: int, length: int, _run: Run
) -> BeamComparison | None:
    return beams.compare(continuing(_run, prompt, length), BeamSettings(width, length))
