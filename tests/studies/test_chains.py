"""Lines in context: the predictors on lines made by hand, and on a real training."""

import random

import numpy as np
import pytest

from tfm_core.choices.presets import PRESETS
from tfm_core.data.corpus.in_context import floors, line
from tfm_core.data.corpus.load import validation_sequences
from tfm_core.runs.process.execute import execute
from tfm_core.runs.store import RunStore
from tfm_core.studies import chains
from tfm_core.studies.chains import CHAINS
from tfm_core.studies.study import changed


def test_one_clean_example_gives_the_slope_and_nothing_beats_bayes() -> None:
    x, y = np.array([[2.0, 5.0, 3.0]]), np.array([[4.0, 10.0, 6.0]])
    _bayes, fitted = chains.known(x, y)
    np.testing.assert_allclose(fitted, [[0, 10, 6]])
    rng = random.Random(3)
    drawn = np.array([list(map(int, line(rng, 14))) for _ in range(3000)], float)
    x, y = drawn[:, ::2], drawn[:, 1::2]
    bayes, fitted = (((guess - y) ** 2).mean(0) for guess in chains.known(x, y))
    assert (bayes[1:] < fitted[1:]).all()
    assert (bayes <= (y**2).mean(0) + 0.3).all()
    assert bayes[0] > 3 * bayes[-1] > 3 * 0.4  # examples help, noise of variance 0.5 stays


@pytest.mark.wide
def test_a_trained_model_is_nearer_to_bayes_than_to_nothing(tmp_path) -> None:
    experiment = changed(PRESETS["lines"].experiment, {"training.steps": 300})
    run = RunStore(tmp_path).create(experiment, device="cpu")
    assert execute(run).state == "finished"
    found = chains.errors_of(run)
    assert len(found) == experiment.task.context // 2
    first, last = found.iloc[0], found.iloc[-1]
    assert last["model"] < (last["bayes"] + last["zero"]) / 2
    assert last["model"] >= 0.9 * last["bayes"]
    assert first["model"] == pytest.approx(first["zero"], rel=0.2)


@pytest.mark.quick
def test_levels_are_computed_from_the_data_of_the_run():
    experiment = CHAINS.base
    drawn = floors(validation_sequences(experiment.task, experiment.seed))
    assert tuple(CHAINS.levels(experiment).values()) == (
        drawn.uniform, drawn.unigram, drawn.bigram,
    )  # fmt: skip


def test_levels_over_seeds_are_the_mean_of_each_seeds_own():
    each = [CHAINS.levels(CHAINS.base.replace(seed=seed)) for seed in (0, 3)]
    assert CHAINS.known([3, 0]) == {
        label: pytest.approx((each[0][label] + each[1][label]) / 2) for label in each[0]
    }
    assert CHAINS.known() == CHAINS.known([CHAINS.base.seed])
