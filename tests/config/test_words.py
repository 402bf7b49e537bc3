"""Every choice has its words in each language, and no words are left without their choice."""

import dataclasses
import importlib
import pkgutil
from pathlib import Path

import pytest

from tfm_core import sentences
from tfm_core.choices import variants
from tfm_core.choices.config import (
    MODEL_CONFIGS,
    TASK_CONFIGS,
    Experiment,
    TrainingConfig,
    facts_of,
)
from tfm_core.choices.config.tuned_tasks import TRAINS
from tfm_core.choices.mistakes import MISTAKES
from tfm_core.choices.presets import PRESETS
from tfm_core.choices.variants.record import Registry
from tfm_core.data.own.pictures import FITS
from tfm_core.data.own.tokens import CUTS
from tfm_core.inspect.tensors.operations import OPERATIONS
from tfm_core.sentences import Paragraph, paragraphs

pytestmark = pytest.mark.quick

SUBJECTS = [
    importlib.import_module(f"tfm_core.choices.variants.{each.name}")
    for each in pkgutil.iter_modules(variants.__path__)
]
REGISTRIES = [MISTAKES, CUTS, FITS] + [
    each for subject in SUBJECTS for each in vars(subject).values() if isinstance(each, Registry)
]
CONFIGS = [*MODEL_CONFIGS.values(), *TASK_CONFIGS.values(), TrainingConfig, Experiment]
RECORDS = [
    *(record for registry in REGISTRIES for record in registry.values()),
    *PRESETS.values(),
    *TRAINS.values(),
    *(facts_of(name) for config in TASK_CONFIGS.values() for name in config.tasks),
    *OPERATIONS.values(),
    *(one for operation in OPERATIONS.values() for one in operation.parameters),
]


def words_of(record):
    return [field.name for field in dataclasses.fields(record)]


def test_all_words_of_choices_belong_to_one_and_none_is_missing_in_a_language():
    shown = [getattr(record, name) for record in RECORDS for name in words_of(record)]
    for config in CONFIGS:
        for field in config.model_fields.values():
            shown += [field.title, field.description]
    used = {each.key for each in shown if isinstance(each, Paragraph)}
    for english in Path(sentences.CONTENT_DIR / "en" / "choices").glob("*.md"):
        there = {f"choices/{english.stem}/{name}" for name in paragraphs(english)}
        assert there <= used, there - used
        for other in sentences.CONTENT_DIR.glob(f"*/choices/{english.name}"):
            assert paragraphs(other).keys() == paragraphs(english).keys()
