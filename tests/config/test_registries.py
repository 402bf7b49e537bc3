"""What a config field picks by name stands in one registry, and the field carries it."""

import pytest

from tfm_core.config import MODEL_CONFIGS, TASK_FACTS, ConfigError, TrainingConfig, task_config
from tfm_core.config.base import choices_of, holds_several

pytestmark = pytest.mark.quick

CONFIGS = {*MODEL_CONFIGS.values(), *map(task_config, TASK_FACTS), TrainingConfig}
PICKED = [
    pytest.param(config, name, choices, id=f"{config.__name__}.{name}")
    for config in sorted(CONFIGS, key=lambda config: config.__name__)
    for name, field in config.model_fields.items()
    if (choices := choices_of(field)) is not None
]


@pytest.mark.parametrize(("config", "name", "choices"), PICKED)
def test_every_name_has_a_label_and_help(config, name, choices):
    assert all(choice.label and choice.help.endswith(".") for choice in choices.values())
    assert len({choice.label for choice in choices.values()}) == len(choices)


@pytest.mark.parametrize(("config", "name", "choices"), PICKED)
def test_a_field_takes_the_names_of_its_registry_and_nothing_else(config, name, choices):
    field = config.model_fields[name]
    if holds_several(field):
        items = config.model_json_schema()["properties"][name]["items"]
        assert items.get("enum", [items.get("const")]) == list(choices)
        assert field.default == ()
        with pytest.raises(ConfigError, match="lion is not one of ") as wrong:
            config.parse({name: ["lion"]})
        assert all(each in str(wrong.value) for each in choices)
        return
    assert config.model_json_schema()["properties"][name]["enum"] == list(choices)
    assert field.default in choices
    with pytest.raises(ConfigError, match=f"{name} is 'spiral', but must be one of '") as wrong:
        config.parse({name: "spiral"})
    assert all(repr(each) in str(wrong.value) for each in choices)
