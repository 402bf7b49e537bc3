"""Every family learns one batch of every task by heart."""

import pytest

from tests.training.test_loop import experiment
from tfm_core.choices.config import MODEL_CONFIGS, OWN_TEXT_TASKS, TEXT_TASKS, tasks_for
from tfm_core.training.events import Step
from tfm_core.training.loop import build, train

STEPS = 150
LEARNED = 0.1
"""Nats: the loss below which a batch is known by heart, and nothing more needs to be trained."""
SEQUENCES = (
    "english-korean", "dates", "numbers", "copy", "reverse", "sort", "addition", "select",
    "sort-by-key",
)  # fmt: skip
"""Tasks that differ in their data alone; each family learns every third of them."""
MORE_STEPS = {"masked-words": 400}  # other words are hidden at each step


@pytest.mark.core(6)
@pytest.mark.parametrize(
    ("family", "task"),
    [
        (family, task)
        for number, family in enumerate(MODEL_CONFIGS)
        for place, task in enumerate(tasks_for(family))
        if task in TEXT_TASKS or task in OWN_TEXT_TASKS
        if task not in SEQUENCES or (place + number) % 3 == 0
    ],
)
def test_one_batch_of_text_is_learned_by_heart(family, task):
    last = learn(family, task, {"n_train": 8} if task in TEXT_TASKS else {})
    assert last.accuracy == 1.0
    assert last.loss < LEARNED


@pytest.mark.parametrize("stem", ["patches", "conv", "conv-stack"])
def test_one_batch_of_pictures_is_learned_by_heart(stem):
    last = learn("vit", "mnist-5000", {"shift": 0.0}, {"stem": stem})
    assert last.accuracy == 1.0
    assert last.loss < LEARNED


@pytest.mark.parametrize("language", ["english", "korean"])
def test_one_batch_of_captions_is_learned_by_heart(language):
    still = {"rotation": 0.0, "scale": 0.0, "slant": 0.0, "shift": 0.0}
    last = learn(
        "captioner", "captions", {"n_train": 8, "n_digits": 3, "language": language, **still}
    )
    assert last.accuracy == 1.0
    assert last.loss < LEARNED


def learn(family, task, task_settings, model_settings=None):
    n_steps = MORE_STEPS.get(task, STEPS)
    heads = {} if family == "recurrent" else {"n_heads": 4, "d_ff": 32}
    chosen = experiment(
        family,
        task,
        model={"d_model": 32, **heads, **(model_settings or {})},
        task=task_settings,
        training={
            "steps": n_steps,
            "batch_size": 8,
            "learning_rate": 0.01,
            "validate_every": n_steps,
        },
    )
    trainer = build(chosen)
    trainer.objective.n_train = 8  # the same batch again and again
    last = None
    for event in train(trainer):
        if isinstance(event, Step):
            last = event
            if last.accuracy == 1.0 and last.loss < LEARNED:
                break
    return last
