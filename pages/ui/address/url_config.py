"""The configuration in the address: written there, and read leniently."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from pages.i18n import N_, _
from pages.ui.settings import drafts
from pages.ui.settings.fields import carried_by_links, every_setting
from tfm_core import links, made_with
from tfm_core.config import FAMILIES, TASK_FACTS, tasks_for
from tfm_core.config.codec import default_sections
from tfm_core.config.training import with_optimizer
from tfm_core.made_with import MadeWith
from tfm_core.variants.optimisers import OPTIMISERS

MAX = 8
"""Sentences about one link; a link with more mistakes than that is no configuration."""


def read(query: Mapping[str, str]) -> tuple[drafts.Values, list[str]]:
    """Return the draft of a link, and a message for each invalid value.

    What is good in the link is kept; each sentence names the value that is used instead.
    """
    values, sentences = _begun(query)
    settings = every_setting(drafts.family_of(values), drafts.task_of(values))
    carried = carried_by_links(drafts.task_of(values))
    for path, text in query.items():
        if path in {"model.family", "task.name", *links.QUERIES}:
            continue
        if path in carried:
            values = drafts.put(values, path, _carried(carried[path], text))
            continue
        if path not in settings:
            sentences.append(_("There is no setting {path}; it is ignored.", path=path))
            continue
        try:
            values = drafts.put(values, path, drafts.fitting(settings[path], text))
        except ValueError as error:
            used = drafts.get(values, path)
            sentences.append(_("{why} Using {used}.", why=error, used=_text(used)))
    if len(sentences) > MAX:
        more = len(sentences) - MAX
        sentences = [*sentences[:MAX], _("And {more} more.", more=more)]
    return values, sentences


def _carried(kind: type, text: str) -> object:
    """Return a fact of a data set, or the text itself if it is invalid."""
    if kind is bool:
        return {"true": True, "false": False}.get(text.lower(), text)
    try:
        return kind(text)
    except ValueError:
        return text


def base_of(query: Mapping[str, str]) -> drafts.Values | None:
    """Return the values of the preset that a link names, or None."""
    preset = links.named(query).preset
    return None if preset is None else drafts.preset_values(preset)


def made_in(query: Mapping[str, str]) -> MadeWith | None:
    """Return the versions that a link was made with, or None."""
    return made_with.read(query.get(links.MADE_QUERY, ""))


def _begun(query: Mapping[str, str]) -> tuple[drafts.Values, list[str]]:
    """Return the values that a link starts from, and problems with their names."""
    named = links.named(query)
    problems = [named.problem, links.version_problem(query)]
    if links.MADE_QUERY in query and made_in(query) is None:
        problems.append(N_("The versions in this link are unreadable."))
    sentences = [_(problem) for problem in problems if problem]
    optimizer = query.get("training.optimizer")
    optimizer = optimizer if optimizer in OPTIMISERS else None
    if named.preset is not None:
        values = links.preset_values(named.preset, optimizer)
        chosen = {"model.family": drafts.family_of(values), "task.name": drafts.task_of(values)}
        if all(query.get(path, value) == value for path, value in chosen.items()):
            return values, sentences
    family, task, wrong = _family_and_task(query)
    values = default_sections(family, task)
    if optimizer is not None:
        values["training"] = with_optimizer(values["training"], optimizer)
    return values, [*sentences, *wrong]


def settings_in(query: Mapping[str, str]) -> dict[str, str]:
    """Return the part of a query that describes a configuration."""
    return {key: value for key, value in query.items() if _is_setting(key)}


def mirror(said: Mapping[str, str]) -> None:
    """Write the configuration to the address. said: of ``state.configuration_query``."""
    old = st.query_params.to_dict()
    new = {key: value for key, value in old.items() if not _is_setting(key)}
    new |= said
    if new != old:
        st.query_params.from_dict(new)


def clear() -> None:
    """Remove the configuration from the address."""
    for key in settings_in(st.query_params.to_dict()):
        del st.query_params[key]


def _is_setting(key: str) -> bool:
    names = {"seed", *links.QUERIES}
    return key in names or key.partition(".")[0] in {"model", "task", "training"}


def _family_and_task(query: Mapping[str, str]) -> tuple[str, str, list[str]]:
    sentences = []
    task = query.get("task.name")
    family = query.get("model.family")
    if family is not None and family not in FAMILIES:
        sentences.append(_unknown(_("Model family"), family, list(FAMILIES)))
        family = None
    if task is not None and task not in TASK_FACTS:
        sentences.append(_unknown(_("Task"), task, list(TASK_FACTS)))
        task = None
    if family is None:
        family = TASK_FACTS[task].families[0] if task is not None else "vit"
        if sentences:
            sentences[0] += " " + _("Using {used}.", used=_(FAMILIES[family].label))
    fits = tasks_for(family)
    if task is not None and task not in fits:
        sentences.append(
            _(
                "{task} is not for this family; use one of {known}.",
                task=task,
                known=", ".join(fits),
            )
        )
    if task not in fits:
        bad = task is not None or "task.name" in query
        task = fits[0]
        if bad:
            sentences[-1] += " " + _("Using {used}.", used=_(TASK_FACTS[task].label))
    return family, task, sentences


def _unknown(what: str, value: str, names: list[str]) -> str:
    return _(
        "{what} is “{value}”, but must be one of {known}.",
        what=what,
        value=value[:40],
        known=", ".join(names),
    )


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(value) or _("None")
    return str(value).lower() if isinstance(value, bool) else str(value)
