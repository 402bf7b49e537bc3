"""What pages translate through a variable, as in ``_(step.title)``, is what a translator is given.

An extractor reads literals only: a label that is not marked with ``N_`` where it is written would
stay English for ever, and nothing would say so.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Iterator, Mapping

import tfm_core
from pages.ui.settings.fields import settings_of
from tests import translation
from tfm_core.config import FAMILIES, tasks_for
from tfm_core.sentences import Paragraph

WORDS = {  # the fields of records that pages draw
    "label", "help", "title", "learns", "reaches", "look_for", "cross", "patch", "where",
    "true_means", "size_label", "size_help", "x_title", "memory_words", "decay_words",
    "unseen",
}  # fmt: skip
NAMES = {
    "BERT-base",
    "BERT-large",
    "<bos>",
    "n_heads",
    "d_model",
    "d_ff",
    "keepdim",
}  # alike in every language


def known() -> set[str]:
    return {
        text
        for message in translation.messages()
        for text in ((message,) if isinstance(message, str) else message)
    }


def records() -> Iterator[tuple[str, object]]:
    """Every module-level value of the core."""
    for module in pkgutil.walk_packages(tfm_core.__path__, "tfm_core."):
        if not module.name.endswith(("__main__", "build")) and "recorded" not in module.name:
            for name, value in vars(importlib.import_module(module.name)).items():
                if not name.startswith("__"):
                    yield f"{module.name}.{name}", value


def said(value: object, depth: int = 0) -> Iterator[str]:
    """Every word that the fields of a record say, and those of the records that it holds."""
    if depth > 4:
        return
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            part = getattr(value, field.name)
            if isinstance(part, Paragraph):
                continue  # translated by its key
            if not isinstance(part, str):
                yield from said(part, depth + 1)
            elif field.name in WORDS and part:
                yield part
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from said(part, depth + 1)
    elif isinstance(value, tuple | list):
        for part in value:
            yield from said(part, depth + 1)


def test_every_word_of_every_record_is_in_the_catalogue() -> None:
    catalogue, found = known() | NAMES, {}
    for where, value in records():
        for text in said(value):
            found.setdefault(getattr(text, "template", text), where)
    assert len(found) > 300
    assert {text: where for text, where in found.items() if text not in catalogue} == {}


def test_every_label_and_help_of_a_setting_is_in_the_catalogue() -> None:
    catalogue = known()
    for family in FAMILIES:
        for task in tasks_for(family):
            for setting in settings_of(family, task):
                words = {w for w in (setting.label, setting.help) if not isinstance(w, Paragraph)}
                assert words <= catalogue | NAMES, setting.path
