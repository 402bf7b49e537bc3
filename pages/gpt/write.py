"""Writing on from a prompt: several samples, step by step, and what each token is drawn from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from pages.gpt import beam
from pages.gpt import sampling as gpt_sampling
from pages.i18n import N_, _, paragraph
from pages.ui import sentence_field, show, typed
from tfm_core.config import CorpusTaskConfig
from tfm_core.data.text import text_task
from tfm_core.inspect.attention import trained
from tfm_core.inspect.text import gpt_writing
from tfm_core.inspect.text.gpt_writing import Sample
from tfm_core.inspect.text.surprisal import example_text
from tfm_core.plots import gpt as plots
from tfm_core.plots.language import written_text
from tfm_core.runs.run import Run
from tfm_core.variants.units import UNITS

if TYPE_CHECKING:
    from tfm_core.decoding import SamplingConfig

_WRITTEN, _ASKED = "gpt-written", "gpt-asked"
_METHODS = {
    "sample": N_("Sample"),
    "greedy": N_("Greedy"),
    "beam": N_("Beam search"),
}


def part(run: Run) -> None:
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    with left:
        prompt = _prompt(run)
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
            help=_("Sample each token, take the likeliest, or keep several texts."),
        )
    begun = gpt_writing.prompt_ids(run, prompt)
    if method == "beam":
        beam.part(run, begun)
        return
    sampling, seeds, length = gpt_sampling.controls(is_greedy=method == "greedy")
    # not in the mark: the sampling may change in the middle of a text
    mark = (run.id, trained.checkpoint_mark(run), begun, seeds)
    st.fragment(_written)(run, mark, sampling, length)


def _prompt(run: Run) -> str:
    key = f"gpt-prompt-{run.id}"
    first = {"words": 2, "characters": 12, "bpe": 4}[run.experiment.task_as(CorpusTaskConfig).unit]
    st.session_state.setdefault(key, example_text(run, first))
    text = st.text_input(_("Prompt"), key=key, help=_("The model continues it; may be empty."))
    prompt = typed.within(text, 400)
    sentence_field.mark_unknown(text_task(run.experiment.task_as(CorpusTaskConfig)), prompt)
    return prompt


def _written(run: Run, mark: tuple[Any, ...], sampling: SamplingConfig, length: int) -> None:
    kept = st.session_state.get(_WRITTEN)
    if kept is None or kept[0] != mark:
        kept = (mark, [Sample(mark[2], ()) for _seed in mark[3]])
    samples: list[Sample] = kept[1]
    bar = st.container(horizontal=True, gap="small", vertical_alignment="center")
    areas = [column.empty() for column in st.columns(len(samples))]
    asked = st.session_state.pop(_ASKED, None)
    if asked == "again":
        samples = [Sample(mark[2], ()) for _seed in mark[3]]
    n = {"step": 1, "on": length - _done(samples)}.get(asked, 0)
    if n > 0:
        for longer in gpt_writing.write_on(run, samples, sampling, mark[3], n=n):
            _draw(run, areas, longer, mark)
            samples = longer
    _draw(run, areas, samples, mark)
    st.session_state[_WRITTEN] = (mark, samples)
    with bar:
        _buttons(samples, length)
    _next(run, samples[0], sampling)


def _done(samples: list[Sample]) -> int:
    return max(len(sample.chances) for sample in samples)


def _buttons(samples: list[Sample], length: int) -> None:
    n, is_over = _done(samples), all(map(gpt_writing.has_ended, samples))
    for name, label, icon, help_text in (
        ("step", _("Step"), ":material/skip_next:", _("Write one token.")),
        ("on", _("Continue"), ":material/play_arrow:", _("Write up to the limit.")),
        ("again", _("Restart"), ":material/restart_alt:", _("Go back to the prompt.")),
    ):
        st.button(
            label,
            icon=icon,
            key=f"gpt-{name}",
            help=help_text,
            type="primary" if name == "on" else "secondary",
            disabled=name != "again" and (is_over or n >= length),
            on_click=_ask,
            args=(name,),
        )
    st.caption(_("{n} of {length} tokens", n=n, length=length))


def _ask(name: str) -> None:
    st.session_state[_ASKED] = name


def _draw(run: Run, areas: list[Any], samples: list[Sample], mark: tuple[Any, ...]) -> None:
    gap = UNITS[run.experiment.task_as(CorpusTaskConfig).unit].separator
    for area, sample, seed in zip(areas, samples, mark[3], strict=True):
        tokens = gpt_writing.tokens_of(run, sample.ids)
        n_prompt = len(tokens) - len(sample.chances)
        with area.container(border=True):
            if len(samples) > 1:
                st.caption(_("Seed {seed}", seed=seed))
            st.html(written_text(tokens, sample.chances, n_prompt, gap))


def _next(run: Run, sample: Sample, sampling: SamplingConfig) -> None:
    if gpt_writing.has_ended(sample):
        st.caption(_("The first sample has ended with <eos>.").replace("<", "\\<"))
        return
    upcoming = gpt_writing.next_token(run, sample.ids, sampling)
    st.markdown(
        paragraph(
            "gpt/next-token",
            left=f"{upcoming.n_left:,}",
            all=f"{upcoming.n_all:,}",
            before=f"{upcoming.perplexity_before:.2f}",
            after=f"{upcoming.perplexity_after:.2f}",
        )
    )
    show.figure(
        plots.before_and_after(upcoming.tokens, upcoming.before, upcoming.after),
        _("Grey: the model. Vermilion: after temperature, top-k and top-p."),
        key="gpt-next",
    )
