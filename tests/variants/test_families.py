"""Every family of models has its settings, and what builds it."""

from __future__ import annotations

from dataclasses import fields

from tfm_core.config import MODEL_CONFIGS, TASK_FACTS
from tfm_core.variants.families import FAMILIES, Family
from tfm_core.variants.record import Variant

PARTS = {part.name for part in fields(Family)} - {part.name for part in fields(Variant)}


def test_every_family_has_settings_and_every_settings_a_family() -> None:
    assert set(FAMILIES) == set(MODEL_CONFIGS)


def test_every_part_of_a_family_is_there() -> None:
    for name in FAMILIES:
        for part in PARTS:
            assert callable(getattr(FAMILIES[name], part)()), part


def test_tasks_name_families_that_there_are() -> None:
    for name, facts in TASK_FACTS.items():
        assert set(facts.families) <= set(FAMILIES), name
