"""An experiment as a short link that can be shared: a preset, what differs from it, and by what.

``?v=1&preset=translate~5c1f&model.n_heads=8&made=0.1.0-2.13.0-cpu-x86_64``. ``v`` is the version of
this form; ``preset`` names the preset that every other setting is taken from, with a mark of what
it was then; without one, what is not said is the default of the family and the task, as in links of
``config.codec``, which go on to be read. ``made`` says by what (``made_with``). A pasted text is in
no link.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tfm_core.choices.config.codec import in_link, values_to_query
from tfm_core.choices.config.training import with_optimizer
from tfm_core.choices.presets import PRESETS
from tfm_core.made_with import MadeWith
from tfm_core.sentences import N_

VERSION = 1
VERSION_QUERY, PRESET_QUERY, MADE_QUERY = "v", "preset", "made"
QUERIES = (VERSION_QUERY, PRESET_QUERY, MADE_QUERY)
"""The queries of a link besides settings."""

_SHOWN = 20  # characters of a link that a sentence repeats


@dataclass(frozen=True, slots=True)
class NamedPreset:
    """The preset that a link names, and a sentence where it can't be taken as it was meant."""

    preset: str | None
    problem: str | None = None


def to_link(
    values: Mapping[str, Any], *, made: MadeWith, preset: str | None = None
) -> dict[str, str]:
    """Return the query of a link for nested plain values, which need not make an experiment.

    preset: the one to begin with, where it has the same family and task; without one, the nearest
    is named where that is shorter than naming none. Raises KeyError for an unknown family or task.
    """
    plain = values_to_query(values)
    if preset is not None and _fits(values, preset):
        query = _beside(values, preset)
    else:
        fitting = [name for name in PRESETS if _fits(values, name)]
        query = min([plain, *(_beside(values, name) for name in fitting)], key=_length)
    return {VERSION_QUERY: str(VERSION), **query, MADE_QUERY: str(made)}


def named(query: Mapping[str, str]) -> NamedPreset:
    """Return the preset that a link names, if it does."""
    if PRESET_QUERY not in query:
        return NamedPreset(None)
    name, tilde, mark = query[PRESET_QUERY].partition("~")
    if name not in PRESETS:
        return NamedPreset(
            None,
            N_(
                "There is no preset “{name}”, so the rest of the link uses defaults.",
                name=name[:_SHOWN],
            ),
        )
    if tilde and mark != _mark(name):
        return NamedPreset(
            name,
            N_(
                "“{label}” has changed; the rest of the link uses the new preset.",
                label=PRESETS[name].label,
            ),
        )
    return NamedPreset(name)


def version_problem(query: Mapping[str, str]) -> str | None:
    """Say, in a sentence, what is wrong with the version of a link; None where nothing is."""
    text = query.get(VERSION_QUERY, str(VERSION))
    if not (text.isascii() and text.isdecimal() and int(text[:9]) > 0):
        return N_(
            "The link version “{text}” isn't a whole number; version {version} is assumed.",
            text=text[:_SHOWN],
            version=VERSION,
        )
    if len(text) > 9 or int(text) > VERSION:
        return N_(
            "A newer app made this link (version {text}; this app reads {version}).",
            text=text[:_SHOWN],
            version=VERSION,
        )
    return None


def preset_values(preset: str, optimizer: str | None = None) -> dict[str, Any]:
    """Return the values of a preset, with another optimiser where the link says one."""
    values = PRESETS[preset].experiment.model_dump()
    if optimizer is not None:
        values["training"] = with_optimizer(values["training"], optimizer)
    return values


def _fits(values: Mapping[str, Any], preset: str) -> bool:
    experiment = PRESETS[preset].experiment
    chosen = values["model"]["family"], values["task"]["name"]
    return chosen == (experiment.model.family, experiment.task.name)


def _beside(values: Mapping[str, Any], preset: str) -> dict[str, str]:
    """Return the query of a link for values that start from a preset."""
    base = preset_values(preset, values["training"]["optimizer"])
    base["training"]["optimizer"] = PRESETS[preset].experiment.trained.optimizer
    query = {PRESET_QUERY: f"{preset}~{_mark(preset)}"}
    for section in ("model", "task", "training"):
        for name, value in values[section].items():
            if name not in _NOT_SAID and base[section].get(name) != value:
                query[f"{section}.{name}"] = in_link(value)
    if values["seed"] != base["seed"]:
        query["seed"] = in_link(values["seed"])
    return query


_NOT_SAID = {"family", "kind", "name", "text"}


def _length(query: Mapping[str, str]) -> int:
    return sum(len(name) + len(text) + 2 for name, text in query.items())


@cache
def _mark(preset: str) -> str:
    """Return four digits that change where a preset says something else.

    Of what differs from the defaults alone: a new setting, at its default, changes no preset.
    """
    changes = sorted(values_to_query(PRESETS[preset].experiment.model_dump()).items())
    return f"{zlib.crc32(repr(changes).encode()) & 0xFFFF:04x}"
