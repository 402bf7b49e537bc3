"""What pages show of each kind of task: one record a kind, beside its record in the core."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from pages.i18n import _
from tfm_core.config import Experiment, ImageTaskConfig
from tfm_core.variants.tasks import TASK_KINDS

Item = Mapping[str, Any]


def _text_name(experiment: Experiment, item: Item, number: int, *, is_short: bool) -> str:
    source = f"{number}: {item['src_text']}"
    return source if is_short else f"{source} → {item['tgt_text']}"


def _picture_name(experiment: Experiment, item: Item, number: int, *, is_short: bool) -> str:
    label = item.get("label")
    if label is None:
        return _("Picture {n}", n=number)
    names = experiment.task_as(ImageTaskConfig).facts.class_names
    return _("Picture {n}: {name}", n=number, name=names[label])


def _caption_name(experiment: Experiment, item: Item, number: int, *, is_short: bool) -> str:
    return _("Picture {n}: {name}", n=number, name=item["tgt_text"])


def _source_name(experiment: Experiment, item: Item, number: int, *, is_short: bool) -> str:
    return f"{number}: {item['src_text']}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPanels:
    """What pages show of a kind of task.

    example: what an example is. example_name(experiment, item, number, *, is_short): an example in
    one line; a short one leaves the truth out where that is long. own_words: the page content that
    says how to ask with an example of one's own.
    """

    example: Literal["text", "picture", "scene"]
    example_name: Callable[..., str]
    own_words: str


_TEXT = TaskPanels(
    example="text",
    example_name=_text_name,
    own_words="attention_own_text",
)
_IMAGE = TaskPanels(
    example="picture",
    example_name=_picture_name,
    own_words="attention_own_image",
)
TASK_PANELS: dict[str, TaskPanels] = {
    "text": _TEXT,
    "image": _IMAGE,
    "caption": TaskPanels(
        example="scene",
        example_name=_caption_name,
        own_words="attention_own_caption",
    ),
    "corpus": _TEXT,
    "own-pictures": _IMAGE,
    "own": _TEXT,
    "pretrained": replace(_TEXT, own_words="attention_own_pretrained"),
    "pretrained-reader": replace(
        _TEXT, example_name=_source_name, own_words="attention_own_pretrained"
    ),
    "pretrained-pictures": _IMAGE,
    "pretrained-answerer": replace(
        _TEXT, example_name=_source_name, own_words="attention_own_pretrained"
    ),
    "tuned-text": replace(_TEXT, own_words="attention_own_pretrained"),
    "tuned-labels": replace(_TEXT, own_words="attention_own_pretrained"),
    "look": replace(_TEXT, example_name=_source_name, own_words="attention_own_pretrained"),
    "foreign": replace(_TEXT, example_name=_source_name, own_words="attention_own_pretrained"),
}
if lacking := set(TASK_KINDS) - set(TASK_PANELS):
    raise LookupError(f"Pages show nothing of tasks of the kind {', '.join(sorted(lacking))}.")


def panels(experiment: Experiment) -> TaskPanels:
    return TASK_PANELS[experiment.task.kind]


def example_name(experiment: Experiment, item: Any, number: int, *, is_short: bool = False) -> str:
    """Return the name of a probe's example in one line; number: from 1."""
    return panels(experiment).example_name(experiment, item, number, is_short=is_short)
