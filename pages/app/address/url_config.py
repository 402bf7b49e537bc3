"""The configuration in the address: written there, and read leniently."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from pages.app.settings import drafts
from pages.app.settings.fields import carried_by_links, every_setting, kinds
from pages.i18n import N_, _
from tfm_core import links, made_with
from tfm_core.choices.config import TASK_FACTS
from tfm_core.choices.config.codec import default_sections
from tfm_core.choices.config.training import with_optimizer
from tfm_core.choices.variants.optimisers import OPTIMISERS
from tfm_core.made_with import MadeWith

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
            sentences.append(_("There is no setting {path}.", path=path))
            continue
        parameter = settings[path].parameter
        value, sentence = parameter.follow(text, drafts.get(values, path))
        values = drafts.put(values, path, value)
        sentences += [sentence] if sentence else []
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
    asked = TASK_FACTS.get(query.get("task.name", ""))
    first = asked.families[0] if asked else "vit"
    families = kinds(first)["model.family"].parameter
    family, problem = families.follow(query.get("model.family", first), first)
    tasks = kinds(family)["task.name"].parameter
    task, other = tasks.follow(query.get("task.name", tasks.first), tasks.first)
    sentences += filter(None, (problem, other))
    values = default_sections(family, task)
    if optimizer is not None:
        values["training"] = with_optimizer(values["training"], optimizer)
    return values, sentences


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
