"""Arithmetic on a clock: each operation against its equation, and which moduli it takes."""

import random

import pytest

from tfm_core.choices.config import ConfigError, TextTaskConfig
from tfm_core.choices.config.codec import to_query
from tfm_core.choices.presets import PRESETS
from tfm_core.choices.variants.operations import OPERATIONS
from tfm_core.data.tasks import load, text_task

pytestmark = pytest.mark.quick

N = 13
SIDES = {  # both sides of an equation, equal modulo N
    "add": lambda a, b, c: (a + b, c),
    "subtract": lambda a, b, c: (a, b + c),
    "multiply": lambda a, b, c: (a * b, c),
    "divide": lambda a, b, c: (a, b * c),
    "squares": lambda a, b, c: (a**2 + b**2, c),
    "squares-and-product": lambda a, b, c: (a**2 + a * b + b**2, c),
    "cube-and-product": lambda a, b, c: (a * (a**2 + b), c),
}


def configured(operation, size=N):
    few = {"n_train": 40, "n_validation": 20, "n_test": 20}
    return TextTaskConfig.parse(
        {"name": "modular-addition", "size": size, "operation": operation, **few}
    )


@pytest.mark.parametrize("operation", OPERATIONS)
def test_answers_are_what_the_equation_says(operation):
    task = text_task(configured(operation))
    every = task.every(N * N)
    assert len(every) == configured(operation).n_pairs
    assert len({pair.src for pair in every}) == len(every)
    for pair in every:
        left, right = SIDES[operation](*map(int, pair.src), int(pair.tgt[0]))
        assert (left - right) % N == 0
        assert task.tokenize(task.join_src(pair.src)) == pair.src
        assert task.solve(pair.src) == pair.tgt
    drawn = {task.sample(random.Random(seed)).src for seed in range(60)}
    assert drawn <= {pair.src for pair in every}


@pytest.mark.parametrize(("size", "near"), [(12, "11, 13"), (25, "23, 29"), (6, "5, 7")])
def test_division_takes_a_prime_modulus_alone_and_names_near_ones(size, near):
    with pytest.raises(ConfigError, match=near) as caught:
        configured("divide", size)
    assert [problem.field for problem in caught.value.problems] == ["size"]
    assert configured("multiply", size).size == size


def test_operations_without_meaning_are_refused_and_addition_is_the_default():
    with pytest.raises(ConfigError, match=r"operation is .*power.*multiply"):
        configured("power")
    assert text_task(configured("subtract")).tokenize("12-5 =") == ("12", "5")
    for operation, text in [("add", "3 * 4"), ("subtract", "3 + 4"), ("add", "-3 + 4")]:
        with pytest.raises(ValueError, match="is not a word of this task"):
            text_task(configured(operation)).tokenize(text)
    with pytest.raises(ValueError, match="12 ÷ 34"):
        text_task(configured("divide")).tokenize("3")
    task = text_task(configured("divide"))
    assert task.solve(("5", "0")) is None
    assert all(pair.src[1] != "0" for pair in load(configured("divide"), seed=1).train.pairs)
    experiment = PRESETS["grokking"].experiment
    plain = experiment.task.model_dump(exclude={"operation"})
    assert TextTaskConfig.parse(plain) == experiment.task
    assert "task.operation" not in to_query(experiment)
    assert load(TextTaskConfig.parse(plain), seed=3).train.pairs[0].tgt == (
        str(sum(map(int, load(experiment.task, seed=3).train.pairs[0].src)) % 97),
    )
