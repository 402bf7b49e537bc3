"""Column addition: what is written is a sum, and what is known of its carries is right."""

import random
from itertools import product

import pytest

from tests.training.test_loop import experiment
from tfm_core.data.corpus.column_sums import carries, columns, is_sum, known, numbers, written
from tfm_core.data.corpus.in_context import GENERATORS
from tfm_core.training.loop import build

WIDTH = 3  # two bits and their sum

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("length", [6, 9, 15, 30])
def test_every_third_bit_is_that_of_the_sum(length):
    rng = random.Random(1)
    for _ in range(50):
        tokens = columns(rng, length)
        a, b, total = numbers(tokens)
        assert len(tokens) == length
        assert a + b == total
        assert max(a, b) < 2 ** (length // WIDTH - 1)


@pytest.mark.parametrize("length", [4, 5, 7, 8, 16, 17])
def test_any_length_begins_whole_columns(length):
    tokens = columns(random.Random(2), length)
    assert len(tokens) == length
    a, b, total = numbers(tokens)
    n = length // WIDTH
    assert (a + b) % 2**n == total


def test_a_carry_runs_on_and_wrong_ways_have_their_shares():
    tokens = written([1, 1, 1], [1, 0, 0], 12)
    assert numbers(tokens) == (7, 1, 8)
    assert carries(tokens) == [0, 1, 1, 1]
    assert is_sum("110100001") == [False, False, True] * 3
    assert GENERATORS["column-sums"].counts("11") == [False, False]
    trainer = build(experiment("decoder-only", "column-sums"))
    assert trainer.objective.loss_lower_bound() == 0
    counted = trainer.data.train.counted
    assert counted is not None
    assert counted[0].tolist() == is_sum(range(counted.size(1)))
    """Each way is carried out on all sums of three bits, beside the true one."""
    sums = [written(bits[:3], bits[3:], 12) for bits in product(range(2), repeat=6)]
    no_carry = one_column = 0
    for tokens in sums:
        d = list(map(int, tokens))
        for column in range(4):
            a, b, total = d[3 * column : 3 * column + 3]
            before = d[3 * column - 3 : 3 * column - 1] if column else (0, 0)
            no_carry += (a + b) % 2 == total
            one_column += (a + b + (sum(before) >= 2)) % 2 == total
    found = known(sums)
    assert found.no_carry == no_carry / (4 * len(sums))
    assert found.one_column == one_column / (4 * len(sums))
    assert found.no_carry < found.one_column < 1
