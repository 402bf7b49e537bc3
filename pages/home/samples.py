"""What a task looks like: one real example of it, before anything is trained."""

from __future__ import annotations

import random

import streamlit as st

from pages.i18n import PAGES_DIR
from pages.ui.typed import escape
from tfm_core.config import (
    CaptionTaskConfig,
    CorpusTaskConfig,
    Experiment,
    SequenceTaskConfig,
    TextTaskConfig,
)
from tfm_core.data import caption_words
from tfm_core.data.scenes import Placed

DIGITS = str(PAGES_DIR / "content" / "digits.png")
"""Eight handwritten digits of MNIST, blue on nothing, so that they fit the light and the dark."""

_SEED = 6  # short lines that show what each task is about


def text(experiment: Experiment, *, is_large: bool) -> None:
    """Draw a source and what should become of it."""
    source, target = (escape(words) for words in text_sample(experiment))
    arrow = ":gray[:material/subdirectory_arrow_right:]"
    st.markdown(f"{source}  \n{arrow} **{target}**")


def pictures(experiment: Experiment, *, is_large: bool) -> None:
    """Draw digits, large where there is room."""
    st.image(DIGITS, width=320 if is_large else "stretch")


def scene(experiment: Experiment, *, is_large: bool) -> None:
    """Draw a picture and its caption."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.image(SCENE, width=72)
        st.markdown(f"**{escape(caption_sample(experiment))}**", width="stretch")


def text_sample(experiment: Experiment) -> tuple[str, str]:
    """Return a source and its target as a person reads them. Raises ValueError for pictures."""
    task = experiment.task_as(SequenceTaskConfig).model_dump_json()
    return _begun(task) if experiment.task.facts.answer == "text" else _text_sample(task)


@st.cache_data(show_spinner=False)
def _text_sample(task: str) -> tuple[str, str]:
    from tfm_core.data.text import text_task

    generator = text_task(TextTaskConfig.model_validate_json(task))
    pair = generator.sample(random.Random(_SEED))
    return generator.join_src(pair.src), generator.join_tgt(pair.tgt)


@st.cache_data(show_spinner=False)
def _begun(task: str) -> tuple[str, str]:
    """Return how a text begins, and how it goes on, each on one line."""
    from tfm_core.data.corpus.task import corpus_task

    corpus = corpus_task(CorpusTaskConfig.model_validate_json(task))
    tokens = corpus.sample(random.Random(_SEED)).tgt
    n = max(1, len(tokens) // 2)
    first, rest = corpus.join_src(tokens[:n]), corpus.join_tgt(tokens[n:])
    return f"{' '.join(first.split())} …", f"… {' '.join(rest.split())}"


_SCENE = (Placed(7, 21, 0), Placed(3, 14, 28))
SCENE = str(PAGES_DIR / "content" / "scene.png")
"""A seven above a three, real digits composed as the caption task does, blue on nothing."""


def caption_sample(experiment: Experiment) -> str:
    """Return the caption of ``SCENE`` in the words of a task. Raises ValueError for others."""
    task = experiment.task_as(CaptionTaskConfig)
    return caption_words.join(caption_words.caption(_SCENE, task).words, task)
