"""Experiments as JSON and as the query of a link, both ways, and all that is wrong with one.

A link holds only what differs from the defaults of its family and task:
``?model.family=vit&model.n_layers=4&task.name=mnist``. A text that a user pasted is not in a link;
the link opens with the text that comes with the app.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tfm_core.choices.config.base import Config, ConfigError, Problem, no_setting
from tfm_core.choices.config.experiment import Experiment
from tfm_core.choices.config.model import MAX_LAYERS, MAX_NAME, MODEL_CONFIGS
from tfm_core.choices.config.task import TASK_CONFIGS, TASK_FACTS, task_config, tasks_for
from tfm_core.choices.config.training import with_optimizer
from tfm_core.reading import json_of
from tfm_core.sentences import N_, Sentence


def to_json(config: Config) -> str:
    """Return a config as indented JSON."""
    return config.model_dump_json(indent=2)


def from_json(text: str | bytes) -> Experiment:
    """Read an experiment from JSON. Raises ConfigError with a sentence for each problem.

    Older apps wrote a training, of which nothing was true, beside models that they did not train.
    """
    try:
        values = json_of(text)
    except ValueError as error:
        why = getattr(error, "sentence", error)
        raise ConfigError([Problem("", N_("Invalid JSON: {error}.", error=why))]) from None
    if isinstance(values, dict) and isinstance(values.get("task"), dict):
        if values["task"].get("kind") == "look" and isinstance(values.get("model"), dict):
            values = {**values, **_look(values["model"], values["task"])}
        kind = TASK_CONFIGS.get(str(values["task"].get("kind")))
        if kind is not None and not kind.is_trained_here:
            values = {**values, "training": None}
    return Experiment.parse(values)


def _look(model: Mapping[str, Any], task: Mapping[str, Any]) -> dict[str, Any]:
    """Return model and task of a look that an older app stored, as layers of a family of its own.

    A stack without maps had layers all the same; what they are named here, no snapshot has.
    """
    names = str(task.get("modules", "")).split("\n")

    def stack(depth: str, names: Sequence[str]) -> list[str]:
        n = model.get(depth)
        n = n if isinstance(n, int) and 0 < n <= MAX_LAYERS else 0
        return [(name or "model")[-MAX_NAME:] for name in (*names, *n * [""])[:n]]

    kinds = dict[str, list[str]]()
    if model.get("family") == "encoder-decoder":
        n = len(stack("n_decoder_layers", names))
        own, cross = names[: len(names) - n], names[len(names) - n :]
        kinds["both"] = stack("n_encoder_layers", own)
        kinds["past"] = stack("n_decoder_layers", own[-n:])
        kinds["cross"] = stack("n_decoder_layers", cross)
    else:
        kinds["past" if model.get("family") == "decoder-only" else "both"] = stack(
            "n_layers", names
        )
    sizes = {"n_parameters": task.get("n_parameters"), "n_heads": model.get("n_heads")}
    kept = ("name", "src_len", "tgt_len", "bos", "n_left_out", "unseen")
    return {
        "model": {"family": "foreign", "class_name": task.get("called"), **sizes, **kinds},
        "task": {"kind": "foreign", **{name: task[name] for name in kept if name in task}},
    }


def default_sections(family: str, task_name: str) -> dict[str, Any]:
    """Return the defaults of a family and a task as nested plain values."""
    model = MODEL_CONFIGS[family]().model_dump()
    task = task_config(task_name).named(task_name)
    blank = Experiment().model_dump()
    return {**blank, "model": model, "task": task.model_dump()}


def to_query(experiment: Experiment) -> dict[str, str]:
    """Return the query of a link that reproduces an experiment."""
    return values_to_query(experiment.model_dump())


def values_to_query(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the query of a link for nested plain values, which need not make a valid experiment.

    Raises KeyError when family or task is unknown.
    """
    family, task = values["model"]["family"], values["task"]["name"]
    base = default_sections(family, task)
    optimizer = base["training"]["optimizer"]
    base["training"] = with_optimizer(base["training"], values["training"]["optimizer"])
    usual = _flatten(base) | {"training.optimizer": optimizer}
    query = {"model.family": family, "task.name": task}
    for key, value in _flatten(values).items():
        if key not in query and key not in _NOT_IN_LINKS and usual.get(key) != value:
            query[key] = in_link(value)
    return query


def in_link(value: object) -> str:
    """Return a value as a link writes it."""
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def from_query(query: Mapping[str, str]) -> Experiment:
    """Read an experiment from the query of a link. Raises ConfigError."""
    return Experiment.parse(query_to_values(query))


def query_to_values(query: Mapping[str, str]) -> dict[str, Any]:
    """Return nested plain values for a link: defaults, with what the link says over them.

    Values of the link stay text; Experiment.parse reads them. Raises ConfigError for a family or
    task that does not exist and for a setting that is not of the form ``section.name``.
    """
    family = query.get("model.family", "encoder-decoder")
    problems = []
    if family not in MODEL_CONFIGS:
        problems.append(_unknown("model.family", family, MODEL_CONFIGS))
    task = query.get("task.name") or next(iter(tasks_for(family)), "")
    if "task.name" in query and task not in TASK_FACTS:
        problems.append(_unknown("task.name", task, TASK_FACTS))
    if problems:
        raise ConfigError(problems)
    values = default_sections(family, task)
    if "training.optimizer" in query:
        values["training"] = with_optimizer(values["training"], query["training.optimizer"])
    for key, text in query.items():
        section, dot, name = key.partition(".")
        if key == "seed":
            values["seed"] = text
        elif dot and name and isinstance(values.get(section), dict):
            values[section][name] = text
        else:
            problems.append(Problem(key, no_setting(key, _flatten(values))))
    if problems:
        raise ConfigError(problems)
    return values


_NOT_IN_LINKS = {"task.kind", "task.text"}  # a pasted text is too long for an address


def _unknown(field: str, value: str, choices: Any) -> Problem:
    return Problem(
        field,
        N_(
            "{field} is {value!r}; choose from {known}.",
            field=field,
            value=value,
            known=", ".join(choices),
        ),
    )


def _flatten(values: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= {f"{key}.{name}": inner for name, inner in value.items()}
        else:
            flat[key] = value
    return flat


_MAX_ROUNDS = 12


def problems_of(values: Mapping[str, Any]) -> tuple[Problem, ...]:
    """Return what is wrong with plain values of a known family and task, one for each setting.

    Rules between settings are checked only where each setting itself is valid, and the first that
    is broken ends the validation. So what is wrong is replaced by its default and checked again.
    """
    good = default_sections(values["model"]["family"], values["task"]["name"])
    tried = {key: dict(v) if isinstance(v, Mapping) else v for key, v in values.items()}
    problems: dict[str, Problem] = {}
    mended: set[str] = set()
    for _ in range(_MAX_ROUNDS):
        try:
            Experiment.parse(tried)
            break
        except ConfigError as error:
            wrong = set()
            for problem in error.problems:
                if not mended & {problem.field, *_named_beside(problem)}:
                    problems.setdefault(problem.field, problem)
                wrong |= _named_beside(problem) if problem.field in mended else {problem.field}
            wrong -= mended
            if not wrong or not all(_mend(tried, good, path) for path in wrong):
                break
            mended |= wrong
    return tuple(problems.values())


def _named_beside(problem: Problem) -> set[str]:
    """Return the other settings of its section that a sentence names by their values."""
    values = problem.sentence.values if isinstance(problem.sentence, Sentence) else {}
    section, _dot, own = problem.field.rpartition(".")
    return {f"{section}.{name}" for name in values if name != own}


def _mend(tried: dict[str, Any], good: Mapping[str, Any], path: str) -> bool:
    """Put the default in the place of a value; False where there is none."""
    section, _dot, name = path.rpartition(".")
    of_section = good.get(section, {}) if section else good
    if name not in of_section or isinstance(of_section[name], Mapping):
        return False
    (tried[section] if section else tried)[name] = of_section[name]
    return True
