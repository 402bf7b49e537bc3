"""Frequencies of addition on a clock, against a direct transform, and on models made by hand."""

import cmath

import numpy as np
import pytest
import torch

from tests.training.test_loop import experiment
from tfm_core.data.vocabulary import SPECIALS
from tfm_core.runs.process.execute import execute
from tfm_core.runs.store import RunStore
from tfm_core.studies import grokking

N = 13


def test_powers_waves_and_their_sums_are_those_of_a_direct_transform():
    table = np.random.default_rng(0).normal(size=(N, 5))
    expected = []
    for k in range(1, N // 2 + 1):
        total = 0.0
        for column in range(5):
            turned = (
                table[number, column] * cmath.exp(-2j * cmath.pi * k * number / N)
                for number in range(N)
            )
            total += abs(sum(turned)) ** 2
        expected.append(total)
    np.testing.assert_allclose(grokking.powers(table), np.array(expected) / sum(expected))
    np.testing.assert_allclose(grokking.powers(table + 7.0), grokking.powers(table))
    table = np.cos(2 * np.pi * 4 * np.arange(N) / N)[:, None] + 0.5
    shares = grokking.powers(table)
    assert shares[3] == pytest.approx(1)
    assert grokking.key_frequencies(shares) == (4,)
    np.testing.assert_allclose(grokking.kept(table, (4, 5)), table, atol=1e-12)
    np.testing.assert_allclose(grokking.kept(table, (2, 5)), 0.5, atol=1e-12)
    numbers = np.arange(N)
    a, b = np.meshgrid(numbers, numbers, indexing="ij")
    turn = 2 * np.pi / N
    of_sum = np.cos(turn * 2 * (a + b))[..., None] * np.arange(1, 4)
    other = np.cos(turn * 2 * a)[..., None] + np.sin(turn * 5 * (a + b))[..., None] + 3.0
    logits = of_sum + other
    np.testing.assert_allclose(grokking._by_sum(logits, (2,)), of_sum, atol=1e-12)
    np.testing.assert_allclose(grokking._by_sum(logits, (4,)), 0, atol=1e-12)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    chosen = experiment(
        "encoder-only",
        "modular-addition",
        model={"pooling": "cls", "norm": "none"},
        task={"size": N, "n_train": 60, "n_validation": 40, "n_test": 69},
        training={"steps": 3, "batch_size": 16},
    )
    made = RunStore(tmp_path_factory.mktemp("runs")).create(chosen)
    assert execute(made).state == "finished"
    return made


def test_the_table_and_its_power_are_those_of_the_model(run):
    _step, is_right, is_trained = grokking.sum_table(run)
    assert is_trained.sum() == 60
    model, _step = grokking.model_of_sums(run)
    for a, b in ((0, 0), (3, 12), (12, 3)):
        ids = torch.tensor([[a, b]]) + len(SPECIALS)
        with torch.inference_mode():
            answer = int(model(ids, ids[:, :1]).argmax()) - len(SPECIALS)
        assert is_right[a, b] == (answer == (a + b) % N)
    steps, shares = grokking.power_over_time(run)
    assert steps.tolist() == run.snapshot_steps()
    weight = grokking.model_of_sums(run)[0].src_embedding.table.weight
    table = weight.detach()[len(SPECIALS) :].numpy()
    np.testing.assert_allclose(shares[-1], grokking.powers(table), atol=1e-3)
    np.testing.assert_allclose(shares.sum(1), 1)


def test_taking_waves_out_leaves_the_model_alone_and_a_whole_whole(run):
    before = grokking.sum_table(run)[1].copy()
    found = grokking.projected(run, grokking.keys_of(run))
    is_new = ~grokking.sum_table(run)[2]
    assert found["whole"] == pytest.approx(before[is_new].mean())
    logits = grokking._logits(grokking.model_of_sums(run)[0], N)
    np.testing.assert_array_equal(logits.argmax(-1) == grokking._answers(N), before)
    every = range(1, N // 2 + 1)
    sums = grokking._by_sum(logits, every) + logits.mean((0, 1))
    for total in range(N):  # all waves of a + b together are its mean over each sum
        chosen = grokking._answers(N) == total
        np.testing.assert_allclose(
            sums[chosen], np.broadcast_to(logits[chosen].mean(0), sums[chosen].shape), atol=1e-6
        )
    nothing, every = grokking.projected(run, ()), grokking.projected(run, range(1, N // 2 + 1))
    assert nothing["without"] == nothing["whole"] == every["only"] == every["whole"]
    assert nothing["excluded"] == pytest.approx(nothing["trained_loss"])
    assert every["without"] == nothing["only"]  # the mean embedding alone
    one = grokking.projected(run, (2,))
    assert one["excluded"] != pytest.approx(nothing["excluded"])
    assert one["whole"] == nothing["whole"]
