"""What pages call an example of a task, and how they ask for one of the visitor's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pages.i18n import _
from tfm_core.config import (
    CaptionTaskConfig,
    CorpusTaskConfig,
    Experiment,
    ImageTaskConfig,
    OpenedConfig,
)


def example_name(
    experiment: Experiment, item: Mapping[str, Any], number: int, *, is_short: bool = False
) -> str:
    """Return the name of a probe's example in one line; number: from 1.

    A short one leaves the truth out where that is long.
    """
    match experiment.task:
        case CaptionTaskConfig():
            return _("Picture {n}: {name}", n=number, name=item["tgt_text"])
        case ImageTaskConfig() as task:
            if item.get("label") is None:
                return _("Picture {n}", n=number)
            name = task.facts.class_names[item["label"]]
            return _("Picture {n}: {name}", n=number, name=name)
    source = f"{number}: {item['src_text']}"
    is_known = isinstance(experiment.task, CorpusTaskConfig) or not experiment.task.is_opened
    return f"{source} → {item['tgt_text']}" if is_known and not is_short else source


def own_words(experiment: Experiment) -> str:
    """Return the page content that says how to ask with an example of one's own."""
    match experiment.task:
        case CaptionTaskConfig():
            return "attention_own_caption"
        case ImageTaskConfig():
            return "attention_own_image"
    is_opened = isinstance(experiment.task, OpenedConfig) or experiment.task.is_foreign
    return "attention_own_pretrained" if is_opened else "attention_own_text"
