"""All that is wrong is said at once, and nothing that is right."""

import pytest

from tfm_core.choices.config import Experiment
from tfm_core.choices.config.codec import default_sections, problems_of
from tfm_core.choices.presets import PRESETS


def wrong(family="vit", task="mnist-5000", **values):
    """Return the sentences by setting of the defaults with some values changed."""
    draft = default_sections(family, task)
    for path, value in values.items():
        section, _, name = path.partition("__")
        if name:
            draft[section][name] = value
        else:
            draft[section] = value
    return {problem.field: str(problem.sentence) for problem in problems_of(draft)}


def test_sections_and_rules_speak_at_once_and_presets_have_no_problem():
    for preset in PRESETS.values():
        assert problems_of(preset.experiment.model_dump()) == (), preset.name
    assert list(wrong(model__d_model=0, model__n_heads=5)) == ["model.d_model"]
    assert list(wrong(model__d_model=63, model__n_heads=5)) == ["model.n_heads"]
    found = wrong(
        model__n_layers=0,
        model__dropout=2.0,
        training__steps=10**9,
        training__batch_size=100_000,
        training__learning_rate=1e9,
        seed=10**12,
    )
    assert found == {
        "model.n_layers": "n_layers is 0; it must be at least 1.",
        "model.dropout": "dropout is 2; it must be less than 1.",
        "training.steps": "steps is 1,000,000,000; it must be at most 1,000,000.",
        "training.batch_size": "batch_size is 100,000; it must be at most 8,192.",
        "training.learning_rate": "learning_rate is 1,000,000,000; it must be at most 10.",
        "seed": "seed is 1,000,000,000,000; it must be at most 2,147,483,647.",
    }
    found = wrong(model__n_heads=5, model__patch_size=29, training__steps=0)
    assert set(found) == {"training.steps", "model.n_heads", "model.patch_size"}
    assert "n_heads 5 does not divide d_model 64" in found["model.n_heads"]
    assert "patch_size 29 does not divide the 28x28 pictures" in found["model.patch_size"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1e308])
def test_what_is_no_number_is_said(value):
    assert list(wrong(training__learning_rate=value)) == ["training.learning_rate"]


def test_whatever_is_wrong_is_found_by_the_validation_too():
    values = default_sections("encoder-decoder", "reverse")
    values["model"]["n_heads"] = 7
    with pytest.raises(ValueError, match="n_heads 7 does not divide"):
        Experiment.parse(values)
    assert [problem.field for problem in problems_of(values)] == ["model.n_heads"]
