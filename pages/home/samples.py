"""One real example of a task."""

from __future__ import annotations

import json
import random
import textwrap

import streamlit as st

from pages.ui.typed import escape
from tfm_core.config import (
    TASK_CONFIGS,
    CaptionTaskConfig,
    CorpusTaskConfig,
    Experiment,
    SequenceTaskConfig,
)
from tfm_core.data import caption_words
from tfm_core.data.scenes import PlacedDigit

_SEED = 6  # gives short examples


def sample(experiment: Experiment) -> str:
    """Return an example of a task as one line of Markdown; empty for pictures."""
    line = experiment.task.by_data(pairs=text, stream=text, pictures=pictures, captions=scene)
    return line(experiment)


def text(experiment: Experiment) -> str:
    source, target = (
        escape(textwrap.shorten(words, 80, placeholder=" …")) for words in text_sample(experiment)
    )
    return f"{source} → **{target}**"


def pictures(experiment: Experiment) -> str:
    return ""


def scene(experiment: Experiment) -> str:
    return f"**{escape(caption_sample(experiment))}**"


def text_sample(experiment: Experiment) -> tuple[str, str]:
    """Return an example's source and target as text. Raises ValueError for pictures."""
    task = experiment.task_as(SequenceTaskConfig).model_dump_json()
    return _begun(task) if experiment.task.facts.answer == "text" else _text_sample(task)


@st.cache_data(show_spinner=False)
def _text_sample(task: str) -> tuple[str, str]:
    from tfm_core.data.tasks import text_task

    config = TASK_CONFIGS[json.loads(task)["kind"]].model_validate_json(task)
    generator = text_task(config)
    pair = generator.sample(random.Random(_SEED))
    return generator.join_src(pair.src), generator.join_tgt(pair.tgt)


@st.cache_data(show_spinner=False)
def _begun(task: str) -> tuple[str, str]:
    from tfm_core.data.tasks import corpus_task

    corpus = corpus_task(CorpusTaskConfig.model_validate_json(task))
    tokens = corpus.sample(random.Random(_SEED)).tgt
    n = max(1, len(tokens) // 2)
    first, rest = corpus.join_src(tokens[:n]), corpus.join_tgt(tokens[n:])
    return f"{' '.join(first.split())} …", f"… {' '.join(rest.split())}"


_SCENE = (PlacedDigit(7, 21, 0), PlacedDigit(3, 14, 28))
"""A seven above a three."""


def caption_sample(experiment: Experiment) -> str:
    """Return a caption in the words of a task. Raises ValueError for others."""
    task = experiment.task_as(CaptionTaskConfig)
    return caption_words.join(caption_words.caption(_SCENE, task).words, task)
