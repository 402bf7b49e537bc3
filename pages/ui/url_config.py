"""The configuration in the address bar: mirrored there, and read from there leniently."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from pages.i18n import _
from pages.ui import drafts
from pages.ui.fields import carried_by, settings_of
from tfm_core.config import FAMILIES, TASK_FACTS, tasks_for
from tfm_core.config.codec import default_sections, values_to_query
from tfm_core.config.training import own_decay

MOST = 8
"""Sentences about one link; a link with more mistakes than that is no configuration."""


def read(query: Mapping[str, str]) -> tuple[drafts.Values, list[str]]:
    """Return the draft that a link describes, and a sentence for each value that cannot be.

    What is good in the link is kept; each sentence names the value that is used instead.
    """
    family, task, sentences = _family_and_task(query)
    values = default_sections(family, task)
    known = {setting.path: setting for setting in (*settings_of(family, task), *carried_by(task))}
    for path, text in query.items():
        if path in {"model.family", "task.name"}:
            continue
        if path not in known:
            sentences.append(
                _("There is no setting {path} here; it is left out.").format(path=path)
            )
            continue
        try:
            values = drafts.put(values, path, drafts.fitting(known[path], text))
        except ValueError as error:
            used = drafts.get(values, path)
            sentences.append(_("{why} {used} is used instead.").format(why=error, used=_said(used)))
    if "training.weight_decay" not in query:
        values = drafts.put(
            values, "training.weight_decay", own_decay(drafts.get(values, "training.optimizer"))
        )
    if len(sentences) > MOST:
        more = len(sentences) - MOST
        sentences = [*sentences[:MOST], _("And {more} more of that kind.").format(more=more)]
    return values, sentences


def settings_in(query: Mapping[str, str]) -> dict[str, str]:
    """Return the part of an address's query that describes a configuration."""
    return {key: value for key, value in query.items() if _is_setting(key)}


def mirror(values: Mapping[str, Any]) -> None:
    """Say the draft in the address bar, in as few words as can be."""
    old = st.query_params.to_dict()
    new = {key: value for key, value in old.items() if not _is_setting(key)}
    new |= values_to_query(values)
    if new != old:
        st.query_params.from_dict(new)


def clear() -> None:
    """Take the configuration out of the address bar."""
    for key in settings_in(st.query_params.to_dict()):
        del st.query_params[key]


def _is_setting(key: str) -> bool:
    return key == "seed" or key.partition(".")[0] in {"model", "task", "training"}


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
            sentences[0] += _(" {used} is used instead.").format(used=_(FAMILIES[family].label))
    fits = tasks_for(family)
    if task is not None and task not in fits:
        sentences.append(
            _("The task {task} is not for this family; it must be one of {known}.").format(
                task=task, known=", ".join(fits)
            )
        )
    if task not in fits:
        bad = task is not None or "task.name" in query
        task = fits[0]
        if bad:
            sentences[-1] += _(" {used} is used instead.").format(used=_(TASK_FACTS[task].label))
    return family, task, sentences


def _unknown(what: str, value: str, known: list[str]) -> str:
    return _("{what} cannot be “{value}”; it must be one of {known}.").format(
        what=what, value=value[:40], known=", ".join(known)
    )


def _said(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
