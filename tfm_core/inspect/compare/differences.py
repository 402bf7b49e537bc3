"""What differs between experiments, one row a setting, and runs found by words; torch-free.

A setting that an experiment lacks, or that has no effect in it, has no value there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pydantic.fields import FieldInfo

from tfm_core.choices.config import Experiment, TunedConfig, family_label
from tfm_core.choices.config.base import Config, choices_of, plain
from tfm_core.choices.variants.positions import POSITIONS
from tfm_core.choices.variants.training import OPTIMISERS
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, listed

FAMILY, TASK = "model.family", "task.name"
ABSENT = "–"
"""Shown where an experiment has no such setting."""
MAX_SHOWN = 40
"""Characters of a text that a row shows."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One setting that differs between experiments.

    field: ``model.n_heads``. values: one an experiment, or None; texts: the same in words.
    """

    field: str
    label: str
    values: tuple[object, ...]
    texts: tuple[str, ...]


SettingValue = tuple[str, object, str]
"""A setting of one experiment: its label, its value, and that in words."""


def differences(experiments: Sequence[Experiment]) -> tuple[Difference, ...]:
    """Return a row for each setting that differs, in the order of the configuration."""
    kept = [settings(experiment) for experiment in experiments]
    rows = []
    for field in _fields(kept):
        found = [each.get(field) for each in kept]
        values = tuple(None if one is None else one[1] for one in found)
        if all(value == values[0] for value in values):
            continue
        label = next(one[0] for one in found if one is not None)
        texts = tuple(ABSENT if one is None else one[2] for one in found)
        rows.append(Difference(field, label, values, texts))
    return tuple(rows)


def settings(experiment: Experiment) -> dict[str, SettingValue]:
    """Return the settings that have an effect: path -> setting, family and task first."""
    return dict(_cached_settings(experiment))


@lru_cache(maxsize=1024)  # a comparison of many runs asks for each several times a drawing
def _cached_settings(experiment: Experiment) -> tuple[tuple[str, SettingValue], ...]:
    return tuple(_settings(experiment))


def _settings(experiment: Experiment) -> Iterator[tuple[str, SettingValue]]:
    model, task = experiment.model, experiment.task
    yield FAMILY, (N_("Family"), model.family, family_label(model.family))
    yield TASK, (N_("Task"), task.name, task.facts.label)
    sections: list[tuple[str, Config]] = [("model", model), ("task", task)]
    if experiment.training is not None:
        sections.append(("training", experiment.training))
    for section, config in sections:
        for name, field in type(config).model_fields.items():
            path = f"{section}.{name}"
            if path not in _SEPARATE and _is_heeded(config, name):
                yield path, _setting(config, name, field)
    if experiment.training is not None:
        yield "seed", (N_("Seed"), experiment.seed, str(experiment.seed))


_SEPARATE = {FAMILY, TASK, "task.kind"}


def _is_heeded(config: Config, name: str) -> bool:
    """Return whether a setting has an effect, given the others."""
    if name == "max_len":
        return POSITIONS[getattr(config, "position", "none")].has_table
    if name in ("beta1", "beta2"):
        return name in OPTIMISERS[getattr(config, "optimizer", "adamw")].settings
    if name in _OF_PARTS and isinstance(config, TunedConfig):
        return config.trains == _OF_PARTS[name]
    return True


_OF_PARTS = {"n_last": "last", "rank": "lora", "alpha": "lora"}
"""Settings of a part of a model that is trained."""


def _setting(config: Config, name: str, field: FieldInfo) -> SettingValue:
    value = getattr(config, name)
    label = field.title or name
    if name == "size":  # what it counts depends on the task
        label = getattr(getattr(config, "facts", None), "size_label", label)
    if name == "base" and isinstance(config, TunedConfig):
        text = N_("weights of {name}", name=config.called) if value else N_("random weights")
        return label, value, text
    return label, value, value_text(value, field)


def value_text(value: object, field: FieldInfo) -> str:
    """Return a value in words: the label of a variant, a number as one writes it."""
    choices = choices_of(field)
    if choices is not None and isinstance(value, tuple):
        return listed(choices[str(name)].label for name in value) or N_("none")
    if choices is not None and value in choices:
        return choices[str(value)].label
    if isinstance(value, bool):
        return N_("yes") if value else N_("no")
    if isinstance(value, int | float):
        return plain(value)
    text = " ".join(str(value).split())
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]} …"


def _fields(kept: Sequence[dict[str, SettingValue]]) -> list[str]:
    """Return every path that one of them has, each section in the order of its settings."""
    found = dict.fromkeys(field for each in kept for field in each)
    sections = ("model", "task", "training", "seed")
    order = {FAMILY: -2, TASK: -1}
    return sorted(found, key=lambda path: order.get(path, sections.index(path.partition(".")[0])))


def is_found(run: Run, words: str, *, also: str = "") -> bool:
    """Return whether every word is in a label of a run, in ``also``, or begins a variant.

    ``n_heads=8`` finds that setting, ``#too-slow`` the runs with that tag.
    """
    wanted = words.casefold().split()
    if not wanted:
        return True
    labels = run.labels
    parts = [run.meta.name, run.meta.preset or "", *labels.tags, labels.note, labels.group or ""]
    own = ("\n".join(parts) + also).casefold()
    exact = {f"#{tag.casefold()}".replace(" ", "-") for tag in run.labels.tags}
    variants: tuple[str, ...] = ()
    if run.problem is None:
        pairs, variants = _setting_words(run.experiment)
        exact |= pairs
    return all(
        word in exact
        if word[0] == "#" or "=" in word
        else word in own or any(one.startswith(word) for one in variants)
        for word in wanted
    )


@lru_cache(maxsize=8192)
def _setting_words(experiment: Experiment) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return settings as ``name=value``, and the words of the chosen variants."""
    known = settings(experiment)
    pairs = {
        f"{name}={str(value).casefold()}"
        for path, (_label, value, _text) in known.items()
        for name in (path, path.rpartition(".")[2])
    }
    words_of_variants = {
        word
        for path, (_label, value, text) in known.items()
        if isinstance(value, str) and path != "task.text"
        for word in (*text.casefold().split(), value.casefold())
    }
    return frozenset(pairs), tuple(sorted(words_of_variants))
