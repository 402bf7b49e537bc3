"""The language of an experiment's words, and glosses for who does not read that of the target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tfm_core.config import Experiment, TextTaskConfig
from tfm_core.data.text import generated
from tfm_core.data.text.glosses import glosses


@dataclass(frozen=True, slots=True)
class Glosses:
    """The source word of each target token that has one. language: of the target, as in ``ko``."""

    language: str
    words: Mapping[str, str] = field(default_factory=dict)


def glosses_of(experiment: Experiment) -> Glosses | None:
    """Return the glosses of a translation whose true alignment is known; None of other tasks."""
    task = experiment.task
    if not isinstance(task, TextTaskConfig) or task.facts.tgt_language is None:
        return None
    return Glosses(task.facts.tgt_language, glosses(generated(task)))


def language_of(experiment: Experiment) -> str | None:
    """Return the language of the words that a text task of ours reads, as in ``en``."""
    task = experiment.task
    return task.facts.language if isinstance(task, TextTaskConfig) else None
