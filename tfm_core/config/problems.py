"""All that is wrong with an experiment at once, also what one mistake hides.

Rules between settings are asked only where each setting for itself is right, and the first that is
broken ends the validation. So what is wrong is put right, one after the other, and asked again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfm_core.config.base import ConfigError, Problem
from tfm_core.config.codec import default_sections
from tfm_core.config.experiment import Experiment
from tfm_core.sentences import Sentence

_MAX_ROUNDS = 12


def problems_of(values: Mapping[str, Any]) -> tuple[Problem, ...]:
    """Return what is wrong with plain values of a known family and task, one for each setting."""
    good = default_sections(values["model"]["family"], values["task"]["name"])
    tried = {key: dict(v) if isinstance(v, Mapping) else v for key, v in values.items()}
    found: dict[str, Problem] = {}
    mended: set[str] = set()
    for _ in range(_MAX_ROUNDS):
        try:
            Experiment.parse(tried)
            break
        except ConfigError as error:
            wrong = set()
            for problem in error.problems:
                if not mended & {problem.field, *_named(problem)}:
                    found.setdefault(problem.field, problem)
                wrong |= _named(problem) if problem.field in mended else {problem.field}
            wrong -= mended
            if not wrong or not all(_mend(tried, good, path) for path in wrong):
                break
            mended |= wrong
    return tuple(found.values())


def _named(problem: Problem) -> set[str]:
    """Return the other settings of its section that a sentence names by their values."""
    said = problem.sentence.values if isinstance(problem.sentence, Sentence) else {}
    section, _dot, own = problem.field.rpartition(".")
    return {f"{section}.{name}" for name in said if name != own}


def _mend(tried: dict[str, Any], good: Mapping[str, Any], path: str) -> bool:
    """Put the default in the place of a value; False where there is none."""
    section, _dot, name = path.rpartition(".")
    of_section = good.get(section, {}) if section else good
    if name not in of_section or isinstance(of_section[name], Mapping):
        return False
    (tried[section] if section else tried)[name] = of_section[name]
    return True
