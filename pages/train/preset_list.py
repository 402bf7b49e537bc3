"""The list of presets in a dialog over Train: what each learns, its time here, and its result."""

from __future__ import annotations

import json
import random
import textwrap

import streamlit as st

from pages.app import state
from pages.app.runs import run_time, shown_run
from pages.app.settings import drafts
from pages.app.typed import escape
from pages.i18n import N_, _
from tfm_core.choices.config import (
    FAMILIES,
    TASK_CONFIGS,
    CaptionTaskConfig,
    CorpusTaskConfig,
    Experiment,
)
from tfm_core.choices.presets import PRESETS, Preset
from tfm_core.data import caption_words
from tfm_core.data.caption_words import PlacedDigit

_SEED = 6  # gives short examples
_SCENE = (PlacedDigit(7, 21, 0), PlacedDigit(3, 14, 28))
"""A seven above a three."""
TEACHES = {
    "vit": N_("See pictures"),
    "encoder-decoder": N_("Translate and rewrite"),
    "encoder-only": N_("Read"),
    "decoder-only": N_("Write"),
    "captioner": N_("Describe pictures"),
    "recurrent": N_("Before the Transformer"),
}
"""What the presets of a family teach, in filter order."""
START_HERE = "vit-digits", "translate", "copy", "addition", "sentiment", "gpt-grammar"
"""Shown first: one of most kinds, each trained in a minute or two."""
FEW, ALL = "few", "all"
_WIDTHS = 2.4, 5, 3


def button(*, lock: str) -> None:
    """Draw the button that opens the list. lock: why a lesson disables it, or ""."""
    if st.button(
        _("All presets"),
        icon=":material/view_list:",
        type="tertiary",
        key="presets-open",
        help=lock or None,
        disabled=bool(lock),
    ):
        st.dialog(_("What you can train"), width="large", icon=":material/view_list:")(_list)()


def _list() -> None:
    chosen = _filter()
    names = {FEW: START_HERE, ALL: tuple(PRESETS)}.get(chosen) or [
        name for name, preset in PRESETS.items() if preset.experiment.model.family == chosen
    ]
    st.caption(run_time.estimate_source())
    with st.container(gap="xsmall"):
        for name in names:
            _row(PRESETS[name])


def _filter() -> str:
    labels = {FEW: _("Start here"), ALL: _("All {n}", n=len(PRESETS))}
    labels |= {family: _(label) for family, label in TEACHES.items()}
    chosen = st.pills(
        _("What it learns to do"),
        [FEW, *TEACHES, ALL],
        default=FEW,
        required=True,
        format_func=labels.__getitem__,
        key="presets-teach",
        label_visibility="collapsed",
        persist_state="session",
    )
    return chosen or FEW


def _row(preset: Preset) -> None:
    left, learns, facts = st.columns(_WIDTHS, vertical_alignment="center")
    if left.button(
        _(preset.label),
        key=f"preset-{preset.name}",
        width="stretch",
        on_click=lambda: state.set_draft(drafts.preset_values(preset.name)),
    ):
        st.rerun()  # which closes the list
    example = sample(preset.experiment)
    learns.markdown(
        f":small[{_(preset.learns)}]" + (f"  \n:small[:gray[{example}]]" if example else "")
    )
    family = _(FAMILIES[preset.experiment.model.family].label)
    time = shown_run.preset_time(preset.name)
    facts.caption(f"{escape(family)} · {time}  \n{_(preset.reaches)}")


def sample(experiment: Experiment) -> str:
    """Return an example of a task as one line of Markdown; empty for pictures."""
    line = experiment.task.by_data(pairs=text, stream=text, pictures=pictures, captions=scene)
    return line(experiment)


def text(experiment: Experiment) -> str:
    task = experiment.task.model_dump_json()
    is_text = experiment.task.facts.answer == "text"
    source, target = (
        escape(textwrap.shorten(part, 80, placeholder=" …"))
        for part in (_split_text(task) if is_text else _pair(task))
    )
    return f"{source} → **{target}**"


def pictures(experiment: Experiment) -> str:
    return ""


def scene(experiment: Experiment) -> str:
    task = experiment.task_as(CaptionTaskConfig)
    caption = caption_words.join(caption_words.caption(_SCENE, task).words, task)
    return f"**{escape(caption)}**"


@st.cache_data(show_spinner=False)
def _pair(task: str) -> tuple[str, str]:
    from tfm_core.data.tasks import text_task

    config = TASK_CONFIGS[json.loads(task)["kind"]].model_validate_json(task)
    generator = text_task(config)
    pair = generator.sample(random.Random(_SEED))
    return generator.join_src(pair.src), generator.join_tgt(pair.tgt)


@st.cache_data(show_spinner=False)
def _split_text(task: str) -> tuple[str, str]:
    from tfm_core.data.tasks import corpus_task

    corpus = corpus_task(CorpusTaskConfig.model_validate_json(task))
    tokens = corpus.sample(random.Random(_SEED)).tgt
    n = max(1, len(tokens) // 2)
    first, rest = corpus.join_src(tokens[:n]), corpus.join_tgt(tokens[n:])
    return f"{' '.join(first.split())} …", f"… {' '.join(rest.split())}"
