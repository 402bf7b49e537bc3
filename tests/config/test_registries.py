"""What a config field picks by name stands in one registry, and the field carries it."""

import pytest

from tfm_core.config import MODEL_CONFIGS, TASK_FACTS, ConfigError, TrainingConfig, task_config
from tfm_core.config.base import choices_of, holds_several

pytestmark = pytest.mark.quick

CONFIGS = {*MODEL_CONFIGS.values(), *map(task_config, TASK_FACTS), TrainingConfig}
PICKED = [
    (config, name, choices)
    for config in sorted(CONFIGS, key=lambda config: config.__name__)
    for name, field in config.model_fields.items()
    if (choices := choices_of(field)) is not None
]


def test_every_name_has_a_label_and_help():
    for config, name, choices in PICKED:
        assert all(choice.label and choice.help.endswith(".") for choice in choices.values())
        assert len({choice.label for choice in choices.values()}) == len(choices), (config, name)


def test_a_field_takes_the_names_of_its_registry_and_nothing_else():
    for config, name, choices in PICKED:
        field, schema = config.model_fields[name], config.model_json_schema()["properties"][name]
        if holds_several(field):
            items = schema["items"]
            assert items.get("enum", [items.get("const")]) == list(choices)
            assert field.default == ()
            value, words, known = ["lion"], "Unknown name lion", choices
        else:
            assert schema["enum"] == list(choices)
            assert field.default in choices
            value, words, known = "spiral", f"{name} is 'spiral'; choose", map(repr, choices)
        with pytest.raises(ConfigError, match=words) as wrong:
            config.parse({name: value})
        assert all(each in str(wrong.value) for each in known)
