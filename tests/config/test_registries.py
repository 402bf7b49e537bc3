"""What a config field picks by name stands in one registry, and the field carries it."""

import json
from pathlib import Path

import pytest

from tfm_core.choices.config import (
    MODEL_CONFIGS,
    TASK_FACTS,
    ConfigError,
    TrainingConfig,
    task_config,
)
from tfm_core.choices.config.base import choices_of, holds_several

pytestmark = pytest.mark.quick

CONFIGS = {*MODEL_CONFIGS.values(), *map(task_config, TASK_FACTS), TrainingConfig}
CARRYING = ("own-", "pretrained", "tuned", "look", "foreign")  # facts of a set or a model
USUAL = Path(__file__).with_name("usual.json")
PICKED = [
    (config, name, choices)
    for config in sorted(CONFIGS, key=lambda config: config.__name__)
    for name, field in config.model_fields.items()
    if (choices := choices_of(field)) is not None
]


def test_a_link_that_leaves_settings_out_means_what_it_meant():
    """Links and files leave out what is usual, so a usual value never changes."""
    found = {name: config().model_dump() for name, config in MODEL_CONFIGS.items()}
    generated = [name for name in TASK_FACTS if not name.startswith(CARRYING)]
    found |= {name: task_config(name).named(name).model_dump() for name in generated}
    found["training"] = TrainingConfig().model_dump()
    assert json.loads(json.dumps(found)) == json.loads(USUAL.read_text())


def test_fields_take_the_names_of_their_registries_each_with_label_and_help():
    for config, name, choices in PICKED:
        assert all(choice.label for choice in choices.values())
        assert all(choice.help.endswith((".", "?", ")")) for choice in choices.values())
        assert len({choice.label for choice in choices.values()}) == len(choices), (config, name)
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
