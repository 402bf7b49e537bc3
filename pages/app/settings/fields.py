"""The settings of a config for the app's controls, read from the config's own fields.

A new field or variant in ``tfm_core.choices.config`` gets its control here without another line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal

import streamlit as st
from pydantic.fields import FieldInfo

from pages.app.address import view
from pages.app.address.parameters import InvalidValue, Parameter
from pages.i18n import _
from tfm_core.choices.config import (
    CORPUS_TASKS,
    FAMILIES,
    MODEL_CONFIGS,
    TASK_FACTS,
    TEXT_TASKS,
    Config,
    Experiment,
    facts_of,
    task_config,
    tasks_for,
)
from tfm_core.choices.config.base import Labelled, acts, choices_of, holds_several, needs_of, plain
from tfm_core.choices.config.training import TrainingConfig
from tfm_core.sentences import N_

MAX_SEGMENTS, MAX_LETTERS = 3, 12  # what stands in a row of half a column
Kind = Literal["choice", "several", "bool", "int", "float"]

ADVANCED: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        N_("Attention"),
        (
            "n_kv_heads",
            "head_dim",
            "qk_norm",
            "projection_bias",
            "qkv_bias",
            "query_key_gain",
            "window",
            "full_every",
            "sink",
        ),
    ),
    (N_("Rotary positions"), ("rope_theta", "rope_scaling", "rope_factor", "rope_original_len")),
    (N_("Mixture of experts"), ("n_experts", "top_k", "balance_weight")),
    (N_("Residuals and norms"), ("norm", "norm_eps", "final_norm")),
    (N_("Layers and tables"), ("max_len", "bias", "tie_embeddings", "is_bidirectional")),
    (
        N_("Optimiser"),
        ("warmup", "batch_warmup", "weight_decay", "beta1", "beta2", "clip_norm", "ema_decay"),
    ),
    (N_("Loss"), ("label_smoothing",)),
    (N_("Mistakes, on purpose"), ("mistakes",)),
    (N_("Arithmetic"), ("precision", "checkpointing", "compile")),
    (N_("Snapshots and stopping"), ("validate_every", "snapshots", "patience", "final_test")),
)
"""The advanced settings by what they belong to, in the order to show."""
_FIRST = ("n_encoder_layers", "n_decoder_layers", "n_layers", "d_model", "n_heads", "d_ff")
KINDS = ("model.family", "task.name")
"""The settings that decide which others there are."""
_TAGS = {"family", "kind", "text"}  # chosen above the other settings, not beside them


@dataclass(frozen=True)
class _Amount(Parameter[float]):
    """A number of a link within limits. One that is typed has none: the experiment says why not."""

    is_whole: bool
    low: float | None
    high: float | None

    def parse(self, text: str) -> float:
        """Return the number. Raises InvalidValue; the nearest number may not fit the others."""
        try:
            number = int(text) if self.is_whole else float(text)
        except ValueError:
            raise InvalidValue(
                _("a whole number") if self.is_whole else _("a number, such as 0.5")
            ) from None
        low, high = self.low, self.high
        if (low is None or number >= low) and (high is None or number <= high):
            return number
        low_text, high_text = ("" if limit is None else plain(limit) for limit in (low, high))
        raise InvalidValue(_("from {low} to {high}", low=low_text, high=high_text))

    def fits(self, state: object) -> bool:
        return isinstance(state, int | float) and not isinstance(state, bool)


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its dotted path, words, kind, range (ends included), step and variants.

    needs: as in ``setting`` of ``tfm_core.choices.config.base``.
    """

    path: str
    label: str
    help: str
    kind: Kind
    lowest: float | None = None
    highest: float | None = None
    step: float | None = None
    is_advanced: bool = False
    choices: Mapping[str, Labelled] | None = None
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def acts(self, values: Mapping[str, Any]) -> bool:
        """Return whether it changes anything in an experiment of these values."""
        return acts(self.needs, values.get(self.section, {}))

    @property
    def parameter(self) -> Parameter[Any]:
        """What a link says of it, and what its control can hold."""
        return self.field.parameter

    @property
    def field(self) -> view.Field:
        """Its control. A number has no limits there: the experiment says what is wrong."""
        labels = {name: one.label for name, one in (self.choices or {}).items()}
        shared: dict[str, Any] = {"query": self.path, "help": self._help}
        if self.kind == "bool":
            return view.placed(view.flag(self.label, **shared), self.path, "")
        if self.kind == "choice":
            n_letters = sum(map(len, labels.values()))
            is_list = len(labels) > MAX_SEGMENTS or n_letters > MAX_LETTERS
            offered = view.choice(self.label, labels, is_list=is_list, **shared)
            return view.placed(offered, self.path, "")
        if self.kind == "several":
            look = {"placeholder": N_("none")}
            several = view.choices(self.label, labels, look=look, is_sorted=True, **shared)
            return view.placed(several, self.path, "")
        is_whole, low, high = self.kind == "int", self.lowest, self.highest
        number = int if is_whole else float
        return view.Field(
            parameter=_Amount(self.path, first=0, is_whole=is_whole, low=low, high=high),
            label=self.label,
            help=self._help,
            draw=st.number_input,
            settings={
                "step": number(self.step or (1 if is_whole else 0.01)),
                "format": "%d" if is_whole else "%.6g",
            },
        )

    def _help(self) -> str:
        if self.choices is None or self.path == "task.name":  # Train says what the task is
            return _(self.help)
        lines = (f"- **{_(one.label)}**: {_(one.help)}" for one in self.choices.values())
        return "\n".join([_(self.help), "", *lines])

    @property
    def section(self) -> str:
        """The part of the experiment it belongs to; empty for the seed."""
        return self.path.rpartition(".")[0]

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]


def by_topic(settings: Sequence[Setting]) -> list[tuple[str, list[Setting]]]:
    """Return advanced settings by topic; those without one come last, under no title."""
    topics = [
        (title, [setting for name in names for setting in settings if setting.name == name])
        for title, names in ADVANCED
    ]
    listed = {name for _title, names in ADVANCED for name in names}
    others = [setting for setting in settings if setting.name not in listed]
    return [(title, some) for title, some in (*topics, ("", others)) if some]


def kinds(family: str) -> dict[str, Setting]:
    """Return the settings of KINDS, with the tasks that a family learns."""
    tasks = {name: TASK_FACTS[name] for name in tasks_for(family)}
    flow = N_("How tokens flow through the model.")
    learned = N_("What this model family can learn.")
    return {
        "model.family": Setting(
            "model.family", N_("Model family"), flow, "choice", choices=FAMILIES
        ),
        "task.name": Setting("task.name", N_("Task"), learned, "choice", choices=tasks),
    }


def every_setting(family: str, task_name: str) -> dict[str, Setting]:
    """Return all settings of an experiment by path, also those without a control."""
    hidden = [*_section("model", MODEL_CONFIGS[family]), *_section("task", task_config(task_name))]
    return {setting.path: setting for setting in (*hidden, *settings_of(family, task_name))}


def carried_by_links(task_name: str) -> dict[str, type]:
    """Return the facts of a task's data set that links contain: path -> type."""
    fields = task_config(task_name).model_fields.items()
    kinds: dict[Any, type] = {bool: bool, int: int, float: float}
    return {
        f"task.{name}": kinds.get(info.annotation, str)
        for name, info in fields
        if _is_carried(info)
    }


def settings_of(family: str, task_name: str) -> list[Setting]:
    """Return all settings of an experiment with this family and task, in the order to show."""
    task = _section("task", task_config(task_name))
    task = [one for one in task if task_name in one.needs.get("name", (task_name,))]
    if task_name in CORPUS_TASKS:
        shown = CORPUS_TASKS[task_name].settings
        task = [setting for setting in task if setting.name in shown]
    settings = [
        *_section("model", MODEL_CONFIGS[family]),
        *task,
        *_section("training", TrainingConfig),
        _setting("seed", Experiment.model_fields["seed"]),
    ]
    if getattr(facts_of(task_name), "answer", "") != "label":
        settings = [setting for setting in settings if setting.path != "model.pooling"]
    facts = TEXT_TASKS.get(task_name)  # says what a size is, and its range
    return [
        replace(
            setting,
            label=facts.size_label,
            help=facts.size_help,
            lowest=facts.sizes[0],
            highest=facts.sizes[-1],
        )
        if facts is not None and setting.path == "task.size"
        else setting
        for setting in settings
    ]


@cache
def settings_by_path(family: str, task_name: str) -> Mapping[str, Setting]:
    """Return the settings of an experiment by their paths, in the order to show."""
    return {setting.path: setting for setting in settings_of(family, task_name)}


def _section(section: str, config: type[Config]) -> list[Setting]:
    """Return the settings of a config: sizes first, switches last."""
    entries = [
        _setting(f"{section}.{name}", info)
        for name, info in config.model_fields.items()
        if name not in _TAGS
        and not (section == "task" and name == "name")
        and not _is_carried(info)
    ]

    def rank(setting: Setting) -> int:
        if setting.name in _FIRST:
            return _FIRST.index(setting.name)
        return len(_FIRST) + (setting.kind == "bool")

    return sorted(entries, key=rank)  # stable


def _is_carried(info: FieldInfo) -> bool:
    """Return whether a field is a fact of a data set, not a setting."""
    extra: Any = info.json_schema_extra or {}
    return bool(extra.get("carried"))


def _setting(path: str, info: FieldInfo) -> Setting:
    extra: Any = info.json_schema_extra or {}
    bounds = {
        bound: getattr(constraint, bound)
        for constraint in info.metadata
        for bound in ("ge", "gt", "le", "lt")
        if hasattr(constraint, bound)
    }
    choices = choices_of(info)
    kinds: dict[Any, Kind] = {bool: "bool", int: "int", float: "float"}
    chosen: Kind = "several" if holds_several(info) else "choice"
    return Setting(
        path,
        label=info.title or path,
        help=info.description or "",
        kind=kinds[info.annotation] if choices is None else chosen,
        lowest=bounds.get("ge", bounds.get("gt")),
        highest=bounds.get("le", bounds.get("lt")),
        step=extra.get("step"),
        is_advanced=bool(extra.get("advanced")),
        choices=choices,
        needs=needs_of(info),
    )
