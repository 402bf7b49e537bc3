"""Every family of models has its settings, what builds it, and known families learn a task."""

from tfm_core.choices.config import MODEL_CONFIGS, TASK_FACTS
from tfm_core.choices.variants.families import FAMILIES
from tfm_core.models.build import BUILDERS


def test_every_family_has_settings_a_builder_and_tasks() -> None:
    assert set(FAMILIES) == set(MODEL_CONFIGS) == set(BUILDERS)
    for name, facts in TASK_FACTS.items():
        assert set(facts.families) <= set(FAMILIES), name
