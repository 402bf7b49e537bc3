"""Every text task: what the registry promises holds for each of them."""

import random

import pytest

from tfm_core.choices.config import TEXT_TASKS, ConfigError, TextTaskConfig
from tfm_core.choices.config.codec import to_query
from tfm_core.choices.presets import PRESETS
from tfm_core.choices.variants.tasks import OPERATIONS
from tfm_core.data.tasks import load, text_task
from tfm_core.data.text import drawn

CASES = [  # the smallest, the default and a large size take turns
    (name, (facts.sizes[0], facts.default_size, min(facts.sizes[-1], 13))[number % 3])
    for number, (name, facts) in enumerate(TEXT_TASKS.items())
]

N = 300


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def config(request):
    name, size = request.param
    return TextTaskConfig(name=name, size=size)


@pytest.fixture
def task(config):
    return text_task(config)


@pytest.fixture
def pairs(task):
    rng = random.Random(7)
    return [task.sample(rng) for _ in range(N)]


def test_targets_are_functions_of_sources_within_their_vocabularies(config, task, pairs):
    for pair in pairs[: 30 if config.facts.hides else N]:
        if config.facts.hides:  # several words may fit: the truth is a distribution
            assert config.facts.answer != "blanks" or task.solve(pair.tgt) == pair.tgt
            assert task.solve(pair.src) in (None, pair.tgt)
        else:
            assert task.solve(pair.src) == pair.tgt
    for pair in pairs:
        assert 1 <= len(pair.src) <= config.max_src_len
        assert 1 <= len(pair.tgt) <= config.max_tgt_len
        assert set(pair.src) <= set(task.src_vocabulary.tokens)
        assert set(pair.tgt) <= set(task.tgt_vocabulary.tokens)


def test_alignments_point_into_the_source_in_ascending_order(pairs):
    for pair in pairs:
        assert len(pair.alignment) == len(pair.tgt)
        for positions in pair.alignment:
            assert list(positions) == sorted(set(positions))
            assert all(0 <= position < len(pair.src) for position in positions)


def test_pairs_can_be_typed_again_and_stand_once(task, pairs):
    for pair in pairs:
        assert task.tokenize(task.join_src(pair.src)) == pair.src
        assert task.tokenize(f"  {task.join_src(pair.src).upper()} ") == pair.src
    every = task.every(11_000)
    if every is not None:
        assert len({pair.src for pair in every}) == len(every) <= 11_000
        assert {pair.src for pair in pairs} <= {pair.src for pair in every}


def test_what_means_nothing_is_refused_and_has_no_answer(task):
    with pytest.raises(ValueError, match="nothing to read"):
        task.tokenize(" \n ")
    with pytest.raises(ValueError, match="§"):
        task.tokenize("§")
    assert task.solve(()) is None
    assert task.solve(("§",)) is None
    assert task.join_src([]) == task.join_tgt([]) == ""


GOLDEN = [
    ("dates", 6, "March 5, 2019", "2019-03-05"),
    ("dates", 6, "5 Mar 2019", "2019-03-05"),
    ("dates", 6, "2019/3/5", "2019-03-05"),
    ("dates", 6, "5th of march 2019", "2019-03-05"),
    ("dates", 6, "2019년 3월 5일", "2019-03-05"),
    ("dates", 6, "Tuesday, 5th of March 2019.", "2019-03-05"),
    ("dates", 1, "February 29, 2000", "2000-02-29"),
    ("numbers", 4, "Forty-two", "42"),
    ("numbers", 4, "four thousand and forty two", "4042"),
    ("numbers", 4, "one hundred five", "105"),
    ("numbers", 6, "nine hundred and ten thousand", "910000"),
    ("numbers", 1, "zero", "0"),
    ("copy", 10, "abca", "a b c a"),
    ("reverse", 10, "a, b, c", "c b a"),
    ("sort", 10, "3 1 4 1 5", "1 1 3 4 5"),
    ("select", 10, ". b . . a", "b a"),
    ("sort-by-key", 6, "3b 1a 3c 0d", "d a b c"),
    ("brackets", 12, "([()])[]", "balanced"),
    ("brackets", 12, "([)]", "unbalanced"),
    ("brackets", 12, "(()", "unbalanced"),
    ("brackets", 12, ")(", "unbalanced"),
    ("parity", 10, "1 0 1 1", "odd"),
    ("parity", 10, "0", "even"),
    ("two-sum", 8, "3 9 7", "pair"),
    ("two-sum", 8, "5", "none"),
    ("two-sum", 8, "5 5", "pair"),
    ("addition", 2, "12+34", "46"),
    ("addition", 2, "99 + 1 =", "100"),
]


def test_tasks_solve_what_they_read_and_have_no_answer_to_the_rest():
    for name, size, text, target in GOLDEN:
        task = drawn(name, size)
        assert task.join_tgt(task.solve(task.tokenize(text))) == target
    for name, size, text in [
        ("dates", 6, "February 30, 2019"),
        ("dates", 6, "5 March"),
        ("dates", 1, "2019, 5, 2019"),
        ("numbers", 4, "two three"),
        ("numbers", 4, "zero hundred"),
        ("numbers", 6, "thousand"),
        ("select", 10, "..."),
        ("sort-by-key", 6, "3 b 1"),
        ("sort-by-key", 6, "b 3"),
    ]:
        task = drawn(name, size)
        assert task.solve(task.tokenize(text)) is None


def test_says_what_cannot_be_read():
    for name, size, text, sentence in [
        ("numbers", 4, "fourty two", "“fourty” is not a word of this task. Try forty"),
        ("numbers", 2, "twenty twenty two", "Too long: 3 tokens; the limit is 2"),
        ("copy", 3, "abcd", "Too long: 4 tokens; the limit is 3"),
        ("copy", 3, "xaz", "does not know “x” “z”. It knows a b c"),
        ("addition", 2, "123+4", "Each number may have up to 2 digits"),
        ("addition", 2, "1+2+3", "“1\\+2\\+3” is not a sum"),
        ("dates", 3, "Tuesday, 5th of March 2019", "It knows"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            drawn(name, size).tokenize(text)


def aligned(name, size, text):
    """Return target tokens with the source tokens they come from, found by drawing pairs."""
    task = drawn(name, size)
    pair = next(pair for pair in task.every(10**6) if task.join_src(pair.src) == text)
    return [
        (token, "".join(pair.src[i] for i in positions))
        for token, positions in zip(pair.tgt, pair.alignment, strict=True)
    ]


def test_digits_come_from_the_words_and_columns_that_make_them():
    digits = [("2", "2"), ("0", "0"), ("1", "1"), ("9", "9"), ("-", "")]
    assert aligned("dates", 1, "March 25, 2019") == [
        *digits,
        *[("0", "March"), ("3", "March"), ("-", ""), ("2", "2"), ("5", "5")],
    ]
    assert aligned("dates", 3, "2019/12/7") == [
        *digits,
        *[("1", "1"), ("2", "2"), ("-", ""), ("0", "7"), ("7", "7")],
    ]
    assert aligned("numbers", 4, "four thousand and forty two") == [
        *[("4", "fourthousand"), ("0", "thousand"), ("4", "forty"), ("2", "two")]
    ]
    assert aligned("numbers", 3, "three hundred") == [
        *[("3", "threehundred"), ("0", "hundred"), ("0", "hundred")]
    ]
    assert aligned("numbers", 2, "seventeen") == [("1", "seventeen"), ("7", "seventeen")]
    assert aligned("addition", 2, "95+8") == [("1", "9"), ("0", "9"), ("3", "58")]
    pair = next(p for p in drawn("sort", 3).every(10**4) if p.src == ("2", "1", "2"))
    assert pair.alignment == ((1,), (0,), (2,))


def test_labels_of_puzzles_are_even_and_no_count_of_brackets_tells_them():
    rng = random.Random(11)
    for name in ("brackets", "parity", "two-sum"):
        task = drawn(name, 16)
        pairs = [task.sample(rng) for _ in range(2000)]
        first = sum(pair.tgt[0] == task.tgt_vocabulary.tokens[0] for pair in pairs)
        assert 900 < first < 1100, name
        assert all(pair.tgt == task.solve(pair.src) for pair in pairs)
    pair = next(pair for pair in pairs if pair.tgt == ("pair",))
    assert sum(int(pair.src[at]) for at in pair.alignment[0]) == 10
    rng, task = random.Random(3), drawn("brackets", 16)
    pairs = [task.sample(rng) for _ in range(1000)]
    equal = [p for p in pairs if all(p.src.count(a) == p.src.count(b) for a, b in ("()", "[]"))]
    assert 200 < sum(pair.tgt == ("unbalanced",) for pair in equal) < 300


MODULUS = 13

SIDES = {  # both sides of an equation, equal modulo N
    "add": lambda a, b, c: (a + b, c),
    "subtract": lambda a, b, c: (a, b + c),
    "multiply": lambda a, b, c: (a * b, c),
    "divide": lambda a, b, c: (a, b * c),
    "squares": lambda a, b, c: (a**2 + b**2, c),
    "squares-and-product": lambda a, b, c: (a**2 + a * b + b**2, c),
    "cube-and-product": lambda a, b, c: (a * (a**2 + b), c),
}


def configured(operation, size=MODULUS):
    few = {"n_train": 40, "n_validation": 20, "n_test": 20}
    return TextTaskConfig.parse(
        {"name": "modular-addition", "size": size, "operation": operation, **few}
    )


@pytest.mark.quick
@pytest.mark.parametrize("operation", OPERATIONS)
def test_answers_are_what_the_equation_says(operation):
    task = text_task(configured(operation))
    every = task.every(MODULUS * MODULUS)
    assert len(every) == configured(operation).n_pairs
    assert len({pair.src for pair in every}) == len(every)
    for pair in every:
        left, right = SIDES[operation](*map(int, pair.src), int(pair.tgt[0]))
        assert (left - right) % MODULUS == 0
        assert task.tokenize(task.join_src(pair.src)) == pair.src
        assert task.solve(pair.src) == pair.tgt
    drawn = {task.sample(random.Random(seed)).src for seed in range(60)}
    assert drawn <= {pair.src for pair in every}


@pytest.mark.quick
@pytest.mark.parametrize(("size", "near"), [(12, "11, 13"), (25, "23, 29"), (6, "5, 7")])
def test_division_takes_a_prime_modulus_alone_and_names_near_ones(size, near):
    with pytest.raises(ConfigError, match=near) as caught:
        configured("divide", size)
    assert [problem.field for problem in caught.value.problems] == ["size"]
    assert configured("multiply", size).size == size


@pytest.mark.quick
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
