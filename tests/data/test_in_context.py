"""Sequences that only their own beginning explains, sums in columns, and what the loss counts."""

import random
from collections import Counter
from itertools import pairwise, product
from math import exp, log

import pytest
import torch
import torch.nn.functional as F

from tests.training.test_loop import experiment
from tfm_core.choices.config import ConfigError, CorpusTaskConfig
from tfm_core.data.tasks import corpus_task, load
from tfm_core.data.text.in_context import (
    ALPHABET,
    GENERATORS,
    INPUTS,
    STATES,
    TENTHS,
    TRIGGERS,
    back_copy,
    carries,
    chain,
    column_sum,
    copy_floors,
    floors,
    is_sum_bit,
    line,
    losses_on_line,
    next_letters,
    partial_scores,
    read_sum,
    rounded,
    seen_before,
    written_sum,
)
from tfm_core.training.loop import build

pytestmark = pytest.mark.quick


NOISE = {-1: 0.25, 0: 0.5, 1: 0.25}

LENGTH = 31


def attention_only(task, **training):
    return experiment("decoder-only", task, model={"d_ff": 0, "n_heads": 2}, training=training)


@pytest.mark.parametrize("name", ["repeats", "fixed-repeats"])
def test_what_counts_of_a_repeat_follows_from_what_came_before(name):
    rng, generator = random.Random(0), GENERATORS[name]
    for _ in range(50):
        tokens = generator.draw(rng, LENGTH)
        counted = generator.counts(tokens)
        assert len(tokens) == LENGTH
        assert counted == seen_before(tokens)
        for t in (t for t, counts in enumerate(counted) if counts):
            (earlier,) = [k for k in range(t - 1) if tokens[k] == tokens[t - 1]]
            assert tokens[earlier + 1] == tokens[t]
        first = counted.index(True)
        assert all(counted[first:])
        assert not any(counted[:first])
        assert len(set(tokens[: first - 1])) == first - 1


def test_repeats_come_back_at_many_distances_and_chains_keep_their_rows():
    rng = random.Random(0)

    def distances(name):
        drawn = [GENERATORS[name].draw(rng, LENGTH) for _ in range(200)]
        return {LENGTH - 1 - tokens.index(tokens[-1]) for tokens in drawn}

    assert len(distances("repeats")) > 10
    assert len(distances("fixed-repeats")) == 1
    rng = random.Random(3)
    one, other = chain(rng, 20_000), chain(rng, 20_000)
    first, second = transitions(one[:10_000]), transitions(one[10_000:])
    assert first == pytest.approx(second, abs=0.05)
    assert transitions(other) != pytest.approx(first, abs=0.1)


def transitions(states):
    pairs = Counter(pairwise(states))
    return {(a, b): pairs[a, b] / sum(pairs[a, c] for c in STATES) for a in STATES for b in STATES}


def test_floors_of_chains_and_lines_are_their_means():
    """Of short sequences: -ln of the exact chance of each, a Dirichlet integral over its rows."""
    exact = {}
    for states in product(STATES, repeat=4):
        # the first state, then each row: 2! n1! n2! n3! / (n1 + n2 + n3 + 2)!
        chance = 1 / 3
        for before in STATES:
            n = Counter(b for a, b in pairwise(states) if a == before)
            total = sum(n.values())
            chance *= 2 / ((total + 1) * (total + 2))
            for count in n.values():
                chance *= {0: 1, 1: 1, 2: 2, 3: 6}[count]
            chance /= {0: 1, 1: 1, 2: 2, 3: 6}[total]
        exact[states] = chance
    assert sum(exact.values()) == pytest.approx(1)
    for states, chance in exact.items():
        assert floors([states]).bigram == pytest.approx(-log(chance) / 4)
    rng = random.Random(1)
    found = floors([chain(rng, 64) for _ in range(300)])
    assert found.uniform == pytest.approx(log(3))
    assert found.uniform - 0.05 > found.unigram
    assert found.unigram - 0.05 > found.bigram
    """Of two examples: the chance of both answers, slope by slope, with numbers that none draws."""
    for x, other in [(1, 6), (5, 2), (4, 4)]:
        total = 0.0
        for y, later in product(range(-14, 15), repeat=2):
            chance = sum(
                NOISE.get(y - rounded(w, x), 0) * NOISE.get(later - rounded(w, other), 0)
                for w in TENTHS
            ) / len(TENTHS)
            total += chance
            if chance:
                losses = losses_on_line([str(one) for one in (x, y, other, later)])
                assert exp(-sum(losses)) == pytest.approx(chance)
        assert total == pytest.approx(1)
    assert {*GENERATORS["lines"].alphabet} >= {
        str(rounded(w, x) + e) for w in TENTHS for x in INPUTS for e in NOISE
    }
    rng = random.Random(2)
    losses = [losses_on_line(line(rng, 24)) for _ in range(1000)]
    means = [sum(one) / len(losses) for one in zip(*losses, strict=True)]
    noise = -sum(p * log(p) for p in NOISE.values())
    assert means[0] - 0.5 > means[1] > means[3] > means[-1] > noise - 0.02


def test_a_line_has_one_slope_and_its_numbers_keep_their_sign():
    rng, generator = random.Random(5), GENERATORS["lines"]
    for _ in range(50):
        tokens = line(rng, LENGTH)
        assert len(tokens) == LENGTH
        assert set(tokens) <= set(generator.alphabet)
        pairs = [(int(x), int(y)) for x, y in zip(tokens[::2], tokens[1::2], strict=False)]
        fits = [all(y - rounded(w, x) in NOISE for x, y in pairs) for w in TENTHS]
        assert any(fits)
        assert generator.counts(tokens) == [t % 2 == 1 for t in range(LENGTH)]
    assert [rounded(w, 1) for w in (-20, -15, -14, -5, 4, 5, 14, 15)] == [-2, -1, -1, 0, 0, 1, 1, 2]
    task = corpus_task(CorpusTaskConfig.named("lines"))
    assert task.tokenize(" 3 -6  1") == ("3", "-6", "1")
    assert task.tokenize(task.join_tgt(("2", "-13"))) == ("2", "-13")
    with pytest.raises(ValueError, match="99"):
        task.tokenize("3 99")


def test_the_loss_counts_answers_and_repeats_and_every_letter_of_a_chain():
    trainer = build(attention_only("lines"))
    validation = trainer.data.validation
    assert validation.counted[:, 1::2].all()
    assert not validation.counted[:, ::2].any()
    words = trainer.data.task.tgt_vocabulary
    drawn = [tuple(map(words.token, row)) for row in validation.tgt[:, 1:].tolist()]
    bound = trainer.objective.loss_lower_bound()
    assert bound == GENERATORS["lines"].floor(drawn)
    assert trainer.objective.measure(trainer.model, "validation")[0] > bound
    trainer = build(attention_only("repeats"))
    data, model = trainer.data, trainer.model
    indices = torch.arange(7)
    metrics = trainer.objective.loss_and_metrics(model, indices, torch.Generator())
    rows, counted = data.train.tgt[:7], data.train.counted[:7]
    losses = F.cross_entropy(
        model(rows[:, :0], rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten(), reduction="none"
    )
    torch.testing.assert_close(metrics.loss, losses[counted.flatten()].mean())
    assert int(metrics.n_tokens) == int(counted.sum())
    assert trainer.objective.loss_lower_bound() == 0
    trainer = build(attention_only("markov-chains"))
    validation = trainer.data.validation
    assert validation.counted is None
    words = trainer.data.task.tgt_vocabulary
    drawn = [tuple(map(words.token, row)) for row in validation.tgt[:, 1:].tolist()]
    bound = trainer.objective.loss_lower_bound()
    assert bound == floors(drawn).bigram
    assert trainer.objective.measure(trainer.model, "validation")[0] > bound
    data = load(CorpusTaskConfig.named("repeats"), seed=2)
    words = data.task.tgt_vocabulary
    for pair, row in zip(data.test.pairs[:5], data.test.tgt[:5].tolist(), strict=True):
        assert tuple(map(words.token, row[1:-1])) == pair.tgt
        assert len(pair.tgt) == data.task.config.max_tgt_len


def test_after_a_trigger_comes_the_letter_before_it_and_copying_is_worth_it():
    letters = back_copy(random.Random(3), 50_000)
    rows = next_letters()
    assert rows.keys() == set(ALPHABET) - TRIGGERS
    after = Counter()
    for before, last, letter in zip(letters, letters[1:], letters[2:], strict=False):
        if last in TRIGGERS:
            assert letter == before
            assert before not in TRIGGERS
        else:
            after[last, letter] += 1
    for last, row in rows.items():
        assert sum(row.values()) == pytest.approx(1)
        n = sum(after[last, letter] for letter in ALPHABET)
        shares = {letter: after[last, letter] / n for letter in ALPHABET}
        assert shares == pytest.approx(row, abs=5 / n**0.5)
    rng = random.Random(1)
    drawn = [back_copy(rng, 31) for _ in range(300)]
    found = copy_floors(drawn)
    assert found.bigram - 0.1 > found.copying > 0
    others = [back_copy(rng, 31) for _ in range(10_000)]
    pairs = Counter(pair for each in others for pair in pairwise(each))
    firsts = Counter(first for each in others for first in each[:-1])
    counted = sum(log(firsts[a] / pairs[a, b]) for each in drawn for a, b in pairwise(each))
    assert found.bigram == pytest.approx((300 * log(23) + counted) / (300 * 31), abs=0.003)
    certain = [("a", "x", "a"), ("b", "x", "b")]
    row = next_letters()
    expected = 2 * log(23) - log(row["a"]["x"]) - log(row["b"]["x"])
    assert copy_floors(certain).copying == pytest.approx(expected / 6)
    before_x = sum(one["x"] for one in row.values())  # the first letter is any alike
    expected -= log(row["a"]["x"] / before_x) + log(row["b"]["x"] / before_x)
    assert copy_floors(certain).bigram == pytest.approx(expected / 6)


@pytest.mark.parametrize(
    ("changes", "field"), [({"unit": "words"}, "unit"), ({"context": 65}, "context")]
)
def test_repeats_are_of_letters_of_which_there_are_enough(changes, field):
    with pytest.raises(ConfigError) as caught:
        CorpusTaskConfig.named("repeats").replace(**changes)
    assert [problem.field for problem in caught.value.problems] == [field]


WIDTH = 3  # two bits and their sum


@pytest.mark.parametrize("length", [6, 9, 15, 30])
def test_every_third_bit_is_that_of_the_sum(length):
    rng = random.Random(1)
    for _ in range(50):
        tokens = column_sum(rng, length)
        a, b, total = read_sum(tokens)
        assert len(tokens) == length
        assert a + b == total
        assert max(a, b) < 2 ** (length // WIDTH - 1)


@pytest.mark.parametrize("length", [4, 5, 7, 8, 16, 17])
def test_any_length_begins_whole_columns(length):
    tokens = column_sum(random.Random(2), length)
    assert len(tokens) == length
    a, b, total = read_sum(tokens)
    n = length // WIDTH
    assert (a + b) % 2**n == total


def test_a_carry_runs_on_and_wrong_ways_have_their_shares():
    tokens = written_sum([1, 1, 1], [1, 0, 0], 12)
    assert read_sum(tokens) == (7, 1, 8)
    assert carries(tokens) == [0, 1, 1, 1]
    assert is_sum_bit("110100001") == [False, False, True] * 3
    assert GENERATORS["column-sums"].counts("11") == [False, False]
    trainer = build(experiment("decoder-only", "column-sums"))
    assert trainer.objective.loss_lower_bound() == 0
    counted = trainer.data.train.counted
    assert counted is not None
    assert counted[0].tolist() == is_sum_bit(range(counted.size(1)))
    """Each way is carried out on all sums of three bits, beside the true one."""
    sums = [written_sum(bits[:3], bits[3:], 12) for bits in product(range(2), repeat=6)]
    no_carry = one_column = 0
    for tokens in sums:
        d = list(map(int, tokens))
        for column in range(4):
            a, b, total = d[3 * column : 3 * column + 3]
            before = d[3 * column - 3 : 3 * column - 1] if column else (0, 0)
            no_carry += (a + b) % 2 == total
            one_column += (a + b + (sum(before) >= 2)) % 2 == total
    found = partial_scores(sums)
    assert found.no_carry == no_carry / (4 * len(sums))
    assert found.one_column == one_column / (4 * len(sums))
    assert found.no_carry < found.one_column < 1
