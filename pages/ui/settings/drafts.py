"""Drafts: configurations while they are edited, as nested plain values, and their history.

They need not be valid: the configuration's own error is shown at its control, and nothing is
corrected silently.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from pages.i18n import _
from pages.ui.settings.fields import Setting, carried_by_links, settings_of
from tfm_core.config import TASK_FACTS, ConfigError, Experiment, Problem, TrainingConfig, tasks_for
from tfm_core.config.advice import Advice, advice
from tfm_core.config.base import plain
from tfm_core.config.codec import default_sections, problems_of
from tfm_core.config.training import with_optimizer
from tfm_core.facts.learning_rate import advised
from tfm_core.presets import PRESETS

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
    def begun(self) -> Values:
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

    def at(self, path: str) -> list[str]:
        """Return the problems of a setting, in the session's language."""
        return [_(problem.sentence) for problem in self.problems if problem.field == path]

    @property
    def concerned(self) -> set[str]:
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
    values, family, task = draft.begun, family_of(draft.values), task_of(draft.values)
    if family_of(values) != family:
        values, _note = with_family(values, family)
    return values if task_of(values) == task else with_task(values, task)


def changed(checked: CheckedDraft) -> list[str]:
    """Return the dotted paths at which a draft differs from what it began as."""
    draft, begun = checked.draft, checked.draft.begun
    paths = [
        path
        for path in ("model.family", "task.name")
        if get(draft.values, path) != get(begun, path)
    ]
    return paths + differences(draft.values, checked.reference)


def with_reset(checked: CheckedDraft, path: str) -> Values:
    """Return the draft with one setting reset, and what depends on it."""
    values, begun = checked.draft.values, checked.draft.begun
    if path == "model.family":
        return with_family(values, family_of(begun))[0]
    if path == "task.name":
        return with_task(values, task_of(begun))
    return chosen(values, path, get(checked.reference, path))


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
    same = (name for name in PRESETS if not differences(draft.begun, preset_values(name)))
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
    """Return the draft with a chosen value, and what depends on it."""
    if path == "training.optimizer":
        return {**values, "training": with_optimizer(values["training"], value)}
    return put(values, path, value)


def with_family(values: Mapping[str, Any], family: str) -> tuple[Values, str | None]:
    """Return the draft with another family, and a sentence where its task had to change.

    Settings that were changed by hand and exist in the new family are kept.
    """
    task, note = task_of(values), None
    if task not in tasks_for(family):
        old, task = task, tasks_for(family)[0]
        note = _(
            "The task is now “{task}”: this family cannot learn “{old}”.",
            old=_(TASK_FACTS[old].label),
            task=_(TASK_FACTS[task].label),
        )
    return _moved(values, family, task), note


def with_task(values: Mapping[str, Any], task: str) -> Values:
    """Return the draft with another task, at that task's default size."""
    return _moved(values, family_of(values), task)


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


def fitting(setting: Setting, value: Any) -> Any:
    """Return a value as its control accepts it. Raises ValueError with a message.

    Text from a link is read as a number or a yes or no.
    """
    if setting.kind == "choice":
        return _choice(setting, value)
    if setting.kind == "several":
        names = value.split(",") if isinstance(value, str) else value
        given = {_choice(setting, name.strip()) for name in names if name}
        return tuple(name for name in setting.choices or {} if name in given)
    if setting.kind == "bool":
        return _truth(setting, value)
    try:
        number = int(str(value)) if setting.kind == "int" else float(value)
    except (TypeError, ValueError):
        label, text = _(setting.label), _short(value)
        if setting.kind == "int":
            message = _("{label} is {value}, but must be a whole number.", label=label, value=text)
        else:
            message = _("{label} is {value}, but must be a number.", label=label, value=text)
        raise ValueError(message) from None
    low, high = setting.lowest, setting.highest
    if not ((low is None or number >= low) and (high is None or number <= high)):
        raise ValueError(
            _(
                "{label} is {value}, but must be from {low} to {high}.",
                label=_(setting.label),
                value=_short(value),
                low=_limit(low),
                high=_limit(high),
            )
        )
    return number


def _limit(number: float | None) -> str:
    return "" if number is None else plain(number)


def _choice(setting: Setting, value: Any) -> str:
    choices = setting.choices or {}
    if value in choices:
        return str(value)
    raise ValueError(
        _(
            "{label} is {value}, but must be one of {known}.",
            label=_(setting.label),
            value=_short(value),
            known=", ".join(choices),
        )
    )


def _truth(setting: Setting, value: Any) -> bool:
    if str(value).lower() in {"true", "1", "yes", "on"}:
        return True
    if str(value).lower() in {"false", "0", "no", "off"}:
        return False
    raise ValueError(
        _(
            "{label} is {value}, but must be true or false.",
            label=_(setting.label),
            value=_short(value),
        )
    )


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


def _short(value: object) -> str:
    text = str(value)
    return f"“{text}”" if len(text) <= 40 else f"“{text[:37]}…”"


MAX_HISTORY = 50
"""Changes that a session can take back."""


class DraftMoment(NamedTuple):
    """An earlier draft, and what it began as."""

    values: Values
    base: Values


@dataclass(frozen=True, slots=True)
class History:
    """The drafts before the current one and those that were undone, both newest last."""

    past: tuple[DraftMoment, ...] = ()
    future: tuple[DraftMoment, ...] = ()

    def changed(self, old: Draft) -> History:
        """Return the history after a change, which drops what was undone."""
        return History((*self.past, moment(old))[-MAX_HISTORY:])

    def undone(self, now: Draft) -> tuple[DraftMoment, History] | None:
        """Return the previous moment and its history, or None."""
        if not self.past:
            return None
        return self.past[-1], History(self.past[:-1], (*self.future, moment(now)))

    def redone(self, now: Draft) -> tuple[DraftMoment, History] | None:
        """Return the moment that was undone last and its history, or None."""
        if not self.future:
            return None
        return self.future[-1], History((*self.past, moment(now)), self.future[:-1])


def moment(draft: Draft) -> DraftMoment:
    return DraftMoment(draft.values, draft.begun)
