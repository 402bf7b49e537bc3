"""Drafts: configurations while they are edited, as nested plain values, their history and links.

They need not be valid: the configuration's own error is shown at its control, and nothing is
corrected silently. Links are read leniently.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import streamlit as st

from pages.app.settings.fields import (
    KINDS,
    Setting,
    carried_by_links,
    every_setting,
    kinds,
    settings_by_path,
    settings_of,
)
from pages.i18n import N_, _
from tfm_core import links, made_with
from tfm_core.choices.config import (
    TASK_FACTS,
    ConfigError,
    Experiment,
    Problem,
    TrainingConfig,
    tasks_for,
)
from tfm_core.choices.config.advice import Advice, advice
from tfm_core.choices.config.base import plain
from tfm_core.choices.config.codec import default_sections, problems_of
from tfm_core.choices.config.training import with_optimizer
from tfm_core.choices.presets import PRESETS
from tfm_core.choices.variants.training import OPTIMISERS
from tfm_core.facts.learning_rate import advised
from tfm_core.made_with import MadeWith

Values = dict[str, Any]


class Draft(NamedTuple):
    """A configuration being edited, and which edition of it is on the screen.

    edition: how often it was replaced as a whole, and how often its family and its task were
    chosen. Widget keys contain the edition (``controls.key_of``), so a late value of an older
    edition is ignored. base: what it began as, from a preset, a link, a file or a run; None if it
    is unchanged.
    """

    values: Values
    edition: tuple[int, int, int] = (0, 0, 0)
    base: Values | None = None

    @property
    def baseline(self) -> Values:
        return self.values if self.base is None else self.base


@dataclass(frozen=True, slots=True)
class CheckedDraft:
    """What a draft amounts to: an experiment, or the problems that keep it from being one.

    reference: what it is compared with, see ``reference_of``.
    """

    draft: Draft
    experiment: Experiment | None
    problems: tuple[Problem, ...] = ()
    advice: tuple[Advice, ...] = ()
    reference: Values = field(default_factory=dict)

    @property
    def settings(self) -> Mapping[str, Setting]:
        """The settings that the draft has, by path, in the order to show."""
        return settings_by_path(family_of(self.draft.values), task_of(self.draft.values))

    def problems_of(self, path: str) -> list[str]:
        """Return the problems of a setting, in the session's language."""
        return [_(problem.sentence) for problem in self.problems if problem.field == path]

    def label(self, path: str) -> str:
        """Return what a setting, or what has no control, is called."""
        if path in self.settings:
            return _(self.settings[path].label)
        labels = {"model.family": _("Model family"), "task.name": _("Task"), "task.text": _("Text")}
        return labels.get(path, path)

    @property
    def flagged(self) -> set[str]:
        """The settings with a problem or a warning."""
        warnings = {item.field for item in self.advice if item.is_warning}
        return warnings | {problem.field for problem in self.problems}

    def advice_at(self, path: str) -> list[Advice]:
        return [item for item in self.advice if item.field == path]


def check(draft: Draft) -> CheckedDraft:
    """Validate a draft and collect all its problems."""
    reference = reference_of(draft)
    try:
        experiment = Experiment.parse(draft.values)
    except ConfigError:
        advices: tuple[Advice, ...] = ()
        with suppress(ConfigError):  # another part of the draft may be wrong
            advices = advice(TrainingConfig.parse(draft.values["training"]))
        return CheckedDraft(draft, None, problems_of(draft.values), advices, reference)
    return CheckedDraft(draft, experiment, advice=advised(experiment), reference=reference)


def reference_of(draft: Draft) -> Values:
    """Return what each setting of a draft is compared with: what it began as.

    Where it has another family or task by now, what that beginning would be with these.
    """
    values = draft.baseline
    for path in KINDS:
        wanted = get(draft.values, path)
        values = values if get(values, path) == wanted else chosen(values, path, wanted)
    return values


def changed(checked: CheckedDraft) -> list[str]:
    """Return the dotted paths at which a draft differs from what it began as."""
    draft, baseline = checked.draft, checked.draft.baseline
    paths = [path for path in KINDS if get(draft.values, path) != get(baseline, path)]
    return paths + differences(draft.values, checked.reference)


def with_reset(checked: CheckedDraft, path: str) -> Values:
    """Return the draft with one setting reset, and what depends on it."""
    values = checked.draft.baseline if path in KINDS else checked.reference
    return chosen(checked.draft.values, path, get(values, path))


def format_value(setting: Setting, value: Any) -> str:
    """Return a value of a setting as text to read."""
    if setting.choices is not None and setting.kind == "several":
        return ", ".join(_(setting.choices[name].label) for name in value) or _("none")
    if setting.choices is not None:
        choice = setting.choices.get(value)
        return str(value) if choice is None else _(choice.label)
    if isinstance(value, bool):
        return _("on") if value else _("off")
    return plain(value) if isinstance(value, int | float) else str(value)


def preset_of(draft: Draft) -> str | None:
    same = (name for name in PRESETS if not differences(draft.baseline, preset_values(name)))
    return next(same, None)


@cache
def preset_values(name: str) -> Values:
    """Return the values of a preset. Do not change them."""
    return PRESETS[name].experiment.model_dump()


def family_of(values: Mapping[str, Any]) -> str:
    return str(values["model"]["family"])


def task_of(values: Mapping[str, Any]) -> str:
    return str(values["task"]["name"])


def get(values: Mapping[str, Any], path: str) -> Any:
    section, _dot, name = path.rpartition(".")
    return values[section][name] if section else values[name]


def put(values: Mapping[str, Any], path: str, value: Any) -> Values:
    """Return the draft with another value at a dotted path."""
    section, _dot, name = path.rpartition(".")
    if not section:
        return {**values, name: value}
    return {**values, section: {**values[section], name: value}}


def chosen(values: Mapping[str, Any], path: str, value: Any) -> Values:
    """Return the draft with a chosen value, and what depends on it.

    With another family or task, settings that were changed by hand and exist there, too, are kept;
    another family has another task where it cannot learn this one.
    """
    if path == "model.family":
        tasks = tasks_for(value)
        return _moved(values, value, task_of(values) if task_of(values) in tasks else tasks[0])
    if path == "task.name":
        return _moved(values, family_of(values), value)
    if path == "training.optimizer":
        return {**values, "training": with_optimizer(values["training"], value)}
    return put(values, path, value)


def differences(values: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    paths = []
    for section in ("model", "task", "training"):
        names = {**values[section], **other[section]}
        paths += [
            f"{section}.{name}"
            for name in names
            if values[section].get(name) != other[section].get(name)
        ]
    return paths + (["seed"] if values["seed"] != other["seed"] else [])


def _moved(values: Mapping[str, Any], family: str, task: str) -> Values:
    """Return the defaults of a family and task, with the draft's own changes."""
    old = default_sections(family_of(values), task_of(values))
    new = {**default_sections(family, task), "seed": values["seed"]}
    if task == task_of(values):  # a custom data set and its facts stay together
        names = [path.partition(".")[2] for path in carried_by_links(task)]
        new["task"] |= {name: values["task"][name] for name in names}
    for setting in settings_of(family, task):
        section, name = setting.section, setting.name
        if not section or name not in values[section] or setting.path == "task.size":
            continue
        value = values[section][name]
        if section != "training" and value == old[section].get(name):
            continue  # untouched: the new family's or task's own default is the better one
        if setting.choices is not None and setting.kind == "several":
            new[section][name] = tuple(each for each in value if each in setting.choices)
        elif setting.choices is None or value in setting.choices:
            new[section][name] = value  # else a variant that only the old family has
    return new


MAX_HISTORY = 50
"""Changes that a session can take back."""


@dataclass(frozen=True, slots=True)
class History:
    """The drafts before the current one and those that were undone, both newest last."""

    past: tuple[Draft, ...] = ()
    future: tuple[Draft, ...] = ()

    def changed(self, old: Draft) -> History:
        """Return the history after a change, which drops what was undone."""
        return History((*self.past, old)[-MAX_HISTORY:])

    def moved(self, now: Draft, *, back: bool) -> tuple[Draft, History] | None:
        """Return the draft before, or the one that was undone last, and its history; or None."""
        if back and self.past:
            return self.past[-1], History(self.past[:-1], (*self.future, now))
        if self.future and not back:
            return self.future[-1], History((*self.past, now), self.future[:-1])
        return None


MAX_LINK_PROBLEMS = 8
"""Sentences about one link; a link with more mistakes than that is no configuration."""


def draft_of_link(query: Mapping[str, str]) -> tuple[Values, list[str]]:
    """Return the draft of a link, and a message for each invalid value.

    What is good in the link is kept; each sentence names the value that is used instead.
    """
    values, sentences = _link_start(query)
    settings = every_setting(family_of(values), task_of(values))
    carried = carried_by_links(task_of(values))
    for path, text in query.items():
        if path in {"model.family", "task.name", *links.QUERIES}:
            continue
        if path in carried:
            values = put(values, path, _carried(carried[path], text))
            continue
        if path not in settings:
            sentences.append(_("There is no setting {path}.", path=path))
            continue
        parameter = settings[path].parameter
        value, sentence = parameter.follow(text, get(values, path))
        values = put(values, path, value)
        sentences += [sentence] if sentence else []
    if len(sentences) > MAX_LINK_PROBLEMS:
        more = len(sentences) - MAX_LINK_PROBLEMS
        sentences = [*sentences[:MAX_LINK_PROBLEMS], _("And {more} more.", more=more)]
    return values, sentences


def _carried(kind: type, text: str) -> object:
    """Return a fact of a data set, or the text itself if it is invalid."""
    if kind is bool:
        return {"true": True, "false": False}.get(text.lower(), text)
    try:
        return kind(text)
    except ValueError:
        return text


def link_base(query: Mapping[str, str]) -> Values | None:
    """Return the values of the preset that a link names, or None."""
    preset = links.named(query).preset
    return None if preset is None else preset_values(preset)


def link_versions(query: Mapping[str, str]) -> MadeWith | None:
    """Return the versions that a link was made with, or None."""
    return made_with.read(query.get(links.MADE_QUERY, ""))


def _link_start(query: Mapping[str, str]) -> tuple[Values, list[str]]:
    """Return the values that a link starts from, and problems with their names."""
    named = links.named(query)
    problems = [named.problem, links.version_problem(query)]
    if links.MADE_QUERY in query and link_versions(query) is None:
        problems.append(N_("The versions in this link are unreadable."))
    sentences = [_(problem) for problem in problems if problem]
    optimizer = query.get("training.optimizer")
    optimizer = optimizer if optimizer in OPTIMISERS else None
    if named.preset is not None:
        values = links.preset_values(named.preset, optimizer)
        chosen = {"model.family": family_of(values), "task.name": task_of(values)}
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


def link_settings(query: Mapping[str, str]) -> dict[str, str]:
    """Return the part of a query that describes a configuration."""
    return {key: value for key, value in query.items() if _is_setting(key)}


def write_link(said: Mapping[str, str]) -> None:
    """Write the configuration to the address. said: of ``state.configuration_query``."""
    old = st.query_params.to_dict()
    new = {key: value for key, value in old.items() if not _is_setting(key)}
    new |= said
    if new != old:
        st.query_params.from_dict(new)


def clear_link() -> None:
    """Remove the configuration from the address."""
    for key in link_settings(st.query_params.to_dict()):
        del st.query_params[key]


def _is_setting(key: str) -> bool:
    names = {"seed", *links.QUERIES}
    return key in names or key.partition(".")[0] in {"model", "task", "training"}
