"""What a sweep may vary: any point of a space is a configuration or says why it can't be."""

from __future__ import annotations

import contextlib
import json
import random
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runs.waiting import tiny
from tests.sweeps.made import HEADS, RATES, a_plan
from tfm_core.choices.config import ConfigError, Experiment
from tfm_core.choices.presets import PRESETS
from tfm_core.sweeps import plan as plans
from tfm_core.sweeps import space
from tfm_core.sweeps.space import Choices, Range, with_values
from tfm_core.sweeps.store import distributions

ONE_A_FAMILY = list({one.experiment.model.family: name for name, one in PRESETS.items()}.values())
FINE = st.floats(1e-6, 1e6, allow_nan=False)
RANGES = st.builds(
    lambda ends, is_log, points: Range("training.learning_rate", *ends, is_log, points=points),
    st.tuples(FINE, FINE).map(sorted).filter(lambda ends: ends[0] < ends[1]),
    st.booleans(),
    st.integers(2, 9),
)
WHOLE = st.builds(
    lambda low, more, is_log, step, points: Range(
        "model.d_model", low, low + more, is_log, True, step, points
    ),
    st.integers(1, 500),
    st.integers(1, 500),
    st.booleans(),
    st.integers(1, 40),
    st.integers(2, 9),
)


@given(one=RANGES | WHOLE, seed=st.integers(0, 99))
def test_grid_and_chance_stay_within_a_range_and_optuna_agrees(one: Range, seed: int) -> None:
    (there,) = distributions((one,)).values()
    for value in (*one.grid(), one.draw(random.Random(seed))):
        assert one.holds(value)
        assert there._contains(there.to_internal_repr(value))
        assert isinstance(value, int if one.is_whole else float)
    assert list(one.grid()) == sorted(set(one.grid()))


@given(one=RANGES | WHOLE)
def test_a_space_comes_back_from_its_plan(one: Range) -> None:
    dimensions = (one, HEADS, Choices("model.norm_first", (True, False)))
    assert (
        plans.space_of(json.loads(json.dumps(a_plan(space=dimensions).values()))["space"])
        == dimensions
    )


@given(one=WHOLE.filter(lambda one: not one.is_log))
def test_a_grid_holds_the_nearest_steps_to_even_places(one: Range) -> None:
    n, last = max(2, one.points), one.high - (one.high - one.low) % one.step
    for k in range(n):
        place = one.low + (one.high - one.low) * k / (n - 1)
        nearest = min(abs(value - place) for value in one.grid())
        assert nearest <= one.step / 2 or place > last


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
JSON = st.recursive(
    VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=9,
)
KEYS = ["path", "low", "high", "is_log", "is_whole", "step", "points", "values"]


@given(values=st.lists(st.dictionaries(st.sampled_from(KEYS), JSON)) | JSON)
def test_a_garbled_space_is_a_sentence_or_a_space(values: object) -> None:
    with contextlib.suppress(plans.SweepDamaged):
        assert all(one.grid() for one in plans.space_of(values))


@pytest.mark.parametrize("name", ONE_A_FAMILY)
def test_every_setting_of_a_preset_can_vary_or_says_why(name: str) -> None:
    base = PRESETS[name].experiment
    for section in ("model", "task", "training"):
        config: Any = getattr(base, section)
        for field in type(config).model_fields:
            path = f"{section}.{field}"
            if path in (*space.FIXED, "model.family"):
                continue
            now = getattr(config, field)
            assert with_values(base, {path: now}) == base, path
            assert space.label_of(base, path) != "", path


def test_a_combination_is_judged_by_the_configuration() -> None:
    with pytest.raises(ConfigError, match="n_heads"):
        with_values(tiny(), {"model.n_heads": 3})
    assert with_values(tiny(), {"model.n_heads": 3, "model.d_model": 12}).model.n_heads == 3
    found = space.share(tiny(), (HEADS,))
    assert (found.n, found.drawn) == (3, 4)
    assert "n_heads" in found.why


def test_another_optimiser_brings_its_own_weight_decay_and_another_family_its_defaults() -> None:
    assert with_values(tiny(), {"training.optimizer": "sgd"}).training.weight_decay == 0
    kept = tiny(weight_decay=0.3)
    assert with_values(kept, {"training.optimizer": "sgd"}).training.weight_decay == 0.3
    moved = with_values(tiny(), {"model.family": "decoder-only"})
    assert (moved.model.family, moved.model.d_model) == ("decoder-only", 8)
    with pytest.raises(ConfigError, match=r"no setting model\.n_encoder_layers"):
        with_values(tiny(), {"model.family": "decoder-only", "model.n_encoder_layers": 2})


def test_what_cannot_be_swept_is_said() -> None:
    for dimensions, sentence in [
        ((), "Choose at least one setting"),
        ((RATES, RATES), "Learning rate varies twice"),
        ((Choices("task.name", ("copy", "sort")),), "The task can't vary"),
        ((Choices("model.colour", ("red", "blue")),), "no setting model.colour"),
        ((Choices("model", ("red", "blue")),), "no setting model"),
        ((Range("training.learning_rate", 0.1, 0.1),), "must be larger than"),
        ((Range("training.learning_rate", 0.0, 0.1, is_log=True),), "starts above 0"),
        ((Range("training.learning_rate", 0.1, 100.0),), "learning_rate is 100; it must be at"),
        ((Range("training.learning_rate", 0.1, float("nan")),), "must be larger than"),
        ((Range("model.norm_first", 0, 1, is_whole=True),), "isn't a number"),
        ((Range("model.d_model", 8, 16),), "takes whole numbers"),
        ((Range("training.learning_rate", 1, 2, is_whole=True),), "decimal numbers"),
        ((Choices("model.position", ("rotary",)),), "has 1 values; give 2"),
        ((Choices("model.position", ("rotary", "circular")),), "choose from"),
        ((Choices("model.n_heads", (1, 1)),), "has the same value twice"),
        ((Choices("model.n_heads", (1, 2.5)),), "cannot be 2.5"),
        ((Choices("model.n_heads", (3, 5)),), "None of 2 random combinations is valid"),
        ((Choices("model.family", ("vit", "decoder-only")),), "vit cannot learn this task"),
    ]:
        with pytest.raises(ValueError, match=re.escape(sentence)):
            space.check(tiny(), dimensions)


def test_a_plan_that_cannot_be_is_said() -> None:
    for changes, sentence in [
        ({"max_runs": 0}, "budget of 0 runs is invalid; use 1"),
        ({"max_runs": None, "max_minutes": 0}, "budget of 0 minutes"),
        ({"max_runs": None}, "a budget"),
        ({"max_runs": 10**6}, "use 1 to 1,000"),
        ({"at_once": 0}, "at once is 0"),
        ({"name": " \n"}, "a name of at most"),
        ({"search": "guess"}, "no sampler guess"),
        (
            {
                "search": "grid",
                "space": (
                    Range("seed", 0, 10**6, False, True, 1, 64),
                    Range("training.learning_rate", 0.1, 1, points=64),
                    Range("training.warmup", 0, 1, points=64),
                ),
            },
            "The grid has 262,144 points",
        ),
        (
            {
                "base": PRESETS["vit-digits"].experiment,
                "objective": "sequence_accuracy",
                "space": (RATES,),
            },
            "does not measure sequence_accuracy",
        ),
    ]:
        with pytest.raises(ValueError, match=re.escape(sentence)):
            a_plan(**changes).check()


def test_a_plan_comes_back_from_its_folder() -> None:
    plan = a_plan(max_minutes=1.5, owner="somebody", reason="Why “so”", state="stopped")
    assert plans.of_values(json.loads(json.dumps(plan.values()))) == plan
    assert isinstance(plan.base, Experiment)
