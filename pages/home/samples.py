"""What a task looks like: one real example of it, before anything is trained."""

from __future__ import annotations

import random

import streamlit as st

from pages.i18n import PAGES_DIR
from tfm_core.config import CaptionTaskConfig, CorpusTaskConfig, Experiment, TextTaskConfig
from tfm_core.data import caption_words
from tfm_core.data.scenes import Placed

DIGITS = str(PAGES_DIR / "content" / "digits.png")
"""Eight handwritten digits of MNIST, blue on nothing, so that they fit the light and the dark."""

_SEED = 6  # short lines that show what each task is about


def text_sample(experiment: Experiment) -> tuple[str, str] | None:
    """Return a source and its target as a person reads them; None for a task of pictures."""
    if isinstance(experiment.task, CorpusTaskConfig):
        return _begun(experiment.task.model_dump_json())
    if not isinstance(experiment.task, TextTaskConfig):
        return None
    return _text_sample(experiment.task.model_dump_json())


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


def caption_sample(experiment: Experiment) -> str | None:
    """Return the caption of ``SCENE`` in the words of a task; None for another kind of task."""
    task = experiment.task
    if not isinstance(task, CaptionTaskConfig):
        return None
    return caption_words.join(caption_words.caption(_SCENE, task).words, task)
