"""An example of a run in one line: its number, and its source and truth, or its class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pages.i18n import _
from tfm_core.config import Experiment, ImageTaskConfig

Item = Mapping[str, Any]


def of_text(experiment: Experiment, item: Item, number: int, *, is_short: bool) -> str:
    """Return a text, and where there is room what it should become."""
    source = f"{number}: {item['src_text']}"
    return source if is_short else f"{source} → {item['tgt_text']}"


def of_picture(experiment: Experiment, item: Item, number: int, *, is_short: bool) -> str:
    """Return what a picture shows."""
    names = experiment.task_as(ImageTaskConfig).facts.class_names
    return _("Picture {n}: {name}", n=number, name=names[item["label"]])


def of_caption(experiment: Experiment, item: Item, number: int, *, is_short: bool) -> str:
    """Return a picture's caption."""
    return _("Picture {n}: {name}", n=number, name=item["tgt_text"])
