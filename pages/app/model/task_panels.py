"""What pages call an example of a task, and how they ask for one of the visitor's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pages.i18n import _
from tfm_core.choices.config import (
    Experiment,
    OpenedConfig,
)


def example_name(
    experiment: Experiment, item: Mapping[str, Any], number: int, *, is_short: bool = False
) -> str:
    """Return the name of a probe's example in one line; number: from 1.

    A short one leaves the truth out where that is long.
    """
    task, label = experiment.task, item.get("label")
    if task.picture_shape is not None:
        if task.class_names and label is None:
            return _("Picture {n}", n=number)
        name = item["tgt_text"] if label is None else task.class_names[label]
        return _("Picture {n}: {name}", n=number, name=name)
    source = f"{number}: {item['src_text']}"
    is_known = task.data_kind == "stream" or experiment.training is not None
    return f"{source} → {item['tgt_text']}" if is_known and not is_short else source


def own_words(experiment: Experiment) -> str:
    """Return the page content that says how to ask with an example of one's own."""
    if experiment.task.picture_shape is not None:
        is_captioned = experiment.task.describes_pictures
        return "attention_own_caption" if is_captioned else "attention_own_image"
    is_opened = isinstance(experiment.task, OpenedConfig) or not experiment.task.has_model
    return "attention_own_pretrained" if is_opened else "attention_own_text"
