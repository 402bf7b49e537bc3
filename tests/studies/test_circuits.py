"""What small models are known to learn: sums, chains, induction, grokking."""

import cmath
import random

import numpy as np
import pandas as pd
import pytest
import torch

from tests.training.test_loop import experiment
from tfm_core.choices.presets import PRESETS
from tfm_core.data.text.in_context import floors, line
from tfm_core.data.text_data import validation_sequences
from tfm_core.data.vocabulary import SPECIALS
from tfm_core.inspect.attention.heads import behind_earlier
from tfm_core.inspect.attention.trained import data_of, model_of
from tfm_core.inspect.knockouts.engine import knocked_out
from tfm_core.inspect.knockouts.parts import Part
from tfm_core.probe.capture import capture
from tfm_core.recorded.build import place_of
from tfm_core.runs.process.execute import execute
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunStore
from tfm_core.studies import adder, chains, grokking, induction
from tfm_core.studies.adder import ADDER, learned, sums_of
from tfm_core.studies.chains import CHAINS
from tfm_core.studies.induction import INDUCTION, formed, one_back, share_on
from tfm_core.studies.study import changed


@pytest.fixture(scope="module")
def runs():
    return {arm.name: Run(place_of(f"recorded-adder-{arm.name}")) for arm in ADDER.arms}


def test_without_a_carry_no_more_is_right_and_steps_are_shares(runs):
    run = runs["blind"]
    known = list(ADDER.levels(run.experiment).values())
    has, last = adder.read_sums(run)[1][3].mean(), adder.history(run).iloc[-1]
    assert has * last["carried"] + (1 - has) * last["others"] < known[1] + 0.05
    assert adder.set_by_hand(run)[0] < 0.2  # there is no carry to set
    looks, _arrives, _explained, neurons, _answer = adder.steps_of(runs["adder"])
    assert looks.sum(1) == pytest.approx(1.0, abs=1e-5)
    assert looks[:, -1].max() < 1e-6  # the window ends at the column before
    assert neurons.shape == (ADDER.base.model.d_ff, len(adder.TOTALS))
    for run in runs.values():
        parts = adder.weights_of(run)
        assert sum(values.size for _name, values, *_ in parts) == adder.n_parameters(run.experiment)
        for _name, values, rows, columns, _words in parts:
            assert values.shape == (len(rows), len(columns))


def test_the_probe_reads_no_rounding(runs):
    """The shares of a stream in float64, whose rounding is far below the cut-off."""
    right = [adder.read_right(adder.carry_of(run)) for run in runs.values()]
    assert right == pytest.approx([0.894, 0.976, 0.800, 0.611], abs=0.002)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("shares", "step"),
    [
        ([0.0, 0.5, 1.0, 1.0], 20),
        ([0.0, 1.0, 0.5, 1.0], 30),  # it was lost meanwhile
        ([0.0, 0.5, 0.99, 0.99], 20),
        ([0.0, 0.5, 0.98, 0.989], None),
        ([1.0, 1.0, 1.0], None),  # there from the start: nothing was learned
        ([0.0, 1.0, 1.0, 0.9], None),
        ([], None),
    ],
)
def test_the_carry_is_learned_where_it_stays(shares, step):
    history = pd.DataFrame({"step": 10 * np.arange(len(shares)), "carried": shares})
    assert learned(history) == step


@pytest.mark.quick
def test_carries_are_read_from_the_bits():
    a, b, _digit, carries = sums_of(["110100001", "000110010"])
    assert carries.tolist() == [[0, 1, 1], [0, 0, 1]]
    assert (a + b + carries).tolist() == [[2, 2, 1], [0, 2, 2]]


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
    assert tuple(CHAINS.levels(experiment).values()) == (drawn.uniform, drawn.unigram, drawn.bigram)


def test_levels_over_seeds_are_the_mean_of_each_seeds_own():
    each = [CHAINS.levels(CHAINS.base.replace(seed=seed)) for seed in (0, 3)]
    assert CHAINS.known([3, 0]) == {
        label: pytest.approx((each[0][label] + each[1][label]) / 2) for label in each[0]
    }
    assert CHAINS.known() == CHAINS.known([CHAINS.base.seed])


STEPS = {"two-layers": 300, "one-layer": 100, "fixed": 120}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    store = RunStore(tmp_path_factory.mktemp("runs"))
    found = {}
    for arm in INDUCTION.arms:
        training = {"training.steps": STEPS[arm.name], "training.snapshots": 40}
        sizes = {"task.n_train": 14_000, "task.n_test": 50, "task.n_validation": 100}
        run = store.create(changed(INDUCTION.experiment(arm), training | sizes), device="cpu")
        assert execute(run).state == "finished"
        found[arm.name] = run
    return found


@pytest.mark.wide
def test_the_head_forms_where_the_accuracy_jumps_and_carries_it(trained):
    run = trained["two-layers"]
    steps, matching, looks_back = induction.head_scores(run)
    found = formed(steps, matching, looks_back)
    assert found is not None
    step, heads, previous = found
    assert (heads[0][0], previous[0]) == (1, 0)
    unseen = run.curves().unseen
    jump = unseen["step"][np.flatnonzero(unseen["accuracy"] > 0.5)[0]]
    assert abs(step - jump) < 50
    whole = induction.without(run, []).accuracy
    assert whole > 0.9
    assert induction.without(run, [previous]).accuracy < whole - 0.2
    both = [(1, head) for head in range(matching.shape[2])]
    assert induction.without(run, both).accuracy < 0.1
    assert induction.copying(run)[heads[0]] > 0.8


@pytest.mark.wide
def test_one_layer_fails_and_a_fixed_distance_only_looks_like_success(trained):
    for name in ("one-layer", "fixed"):
        assert formed(*induction.head_scores(trained[name])) is None
    assert induction.elsewhere(trained["one-layer"], "repeats")[0] < 0.5
    accuracy, matching = induction.elsewhere(trained["fixed"], "fixed-repeats")
    assert accuracy > 0.9
    assert matching.max() > 0.8
    accuracy, elsewhere = induction.elsewhere(trained["fixed"], "repeats")
    assert accuracy < 0.5
    assert elsewhere.max() < matching.max() / 2


@pytest.mark.wide
def test_copying_is_the_share_of_what_comes_back_along_the_whole_way(trained):
    run = trained["two-layers"]
    model, _step = model_of(run)
    block, head = model.decoder.layers[1], 0
    attention, d = block.self_attention, 32
    ids = torch.arange(4, model.output.out_features)
    with torch.inference_mode():
        x = model.tgt_embedding.table(ids) * block.self_attention_norm.weight
        values = attention.in_projection(x)[:, -64:]
        if attention.in_projection.bias is not None:
            values = values - attention.in_projection.bias[-64:]
        merged = torch.zeros_like(x)
        merged[:, head * d : (head + 1) * d] = values[:, head * d : (head + 1) * d]
        way = (merged @ attention.out_projection.weight.T @ model.output.weight.T)[:, 4:]
    found = np.linalg.eigvals(way.double().numpy())
    assert induction.copying(run)[1, head] == pytest.approx(
        found.real.sum() / np.abs(found).sum(), abs=1e-3
    )


@pytest.mark.wide
def test_queries_of_a_uniform_layer_see_all_tokens_so_far_alike(trained):
    model = model_of(trained["two-layers"])[0]
    rows = data_of(trained["two-layers"].experiment).validation.tgt[:3]
    layer = Part("sublayer", "decoder", 0, "self")
    with knocked_out(model, [layer], is_even=True), capture(model, only={"weights"}) as cache:
        model(rows[:, :0], rows[:, :-1])
    first, second = (
        cache.of("weights")[one] for one in induction.attentions_of(trained["two-layers"])
    )
    n = first.size(-1)
    even = torch.tril(torch.ones(n, n)) / torch.arange(1, n + 1)[:, None]
    torch.testing.assert_close(first, even.expand_as(first))
    assert (second - even).abs().max() > 0.1


SEEN = np.array([0, 10, 30, 70])

LOW, HIGH = 0.399, 0.4  # of its attention, from which on a page calls a head one


def scores(matching, previous):
    """Two layers of two heads: what layer 2, head 1 matches, and layer 1, head 2 looks back."""
    matches, looks_back = np.full((2, 4, 2, 2), 0.01)
    matches[:, 1, 0], looks_back[:, 0, 1] = matching, previous
    return SEEN, matches, looks_back


@pytest.mark.quick
@pytest.mark.parametrize(
    ("matching", "previous", "step"),
    [
        ([LOW, LOW, HIGH, HIGH], [LOW, HIGH, HIGH, HIGH], 30),
        ([LOW, HIGH, LOW, HIGH], [LOW, LOW, LOW, HIGH], 70),  # it has to stay
        ([LOW, LOW, HIGH, LOW], [HIGH, HIGH, HIGH, HIGH], None),  # it went again
        ([LOW, LOW, LOW, LOW], [LOW, HIGH, HIGH, HIGH], None),
        ([LOW, LOW, HIGH, HIGH], [LOW, LOW, LOW, LOW], None),  # nothing to build on
        ([HIGH, HIGH, HIGH, HIGH], [LOW, HIGH, HIGH, HIGH], None),  # it did not form: it was there
    ],
)
def test_a_head_forms_where_it_stays_and_builds_on_another(matching, previous, step):
    expected = None if step is None else (step, ((1, 0),), (0, 1))
    assert formed(*scores(matching, previous)) == expected


@pytest.mark.quick
def test_of_two_heads_both_are_named_with_the_cells_of_a_loop():
    _steps, matching, previous = scores([LOW, LOW, LOW, HIGH], [HIGH] * 4)
    matching[:, 1, 1] = [LOW, HIGH, HIGH, HIGH]
    assert formed(SEEN, matching, previous) == (10, ((1, 1), (1, 0)), (0, 1))
    matching, previous = np.full((2, 4, 1, 2), HIGH)
    matching[0] = 0
    assert formed(SEEN, matching, previous) is None
    tokens = tuple("abcadbca")
    n = len(tokens)
    for q in range(n):
        for k in range(n):
            is_behind = 0 < k <= q and tokens[k - 1] == tokens[q] and k - 1 < q
            assert behind_earlier(tokens)[q, k] == is_behind
            assert one_back(tokens)[q, k] == (k == q - 1)
    texts = [tuple("abcdabc"), tuple("xyxy")]
    cells = [behind_earlier(text) for text in texts]
    maps = np.zeros((2, 2, 7, 7))
    for n, chosen in enumerate(cells):
        length = len(chosen)
        maps[n, 0, :length, :length] = chosen / np.maximum(chosen.sum(1, keepdims=True), 1)
        maps[n, 1, :length, :length] = np.tril(np.ones((length, length))) / (
            1 + np.arange(length)[:, None]
        )
    perfect, even = share_on(maps, cells)
    assert perfect == pytest.approx(1)
    rows = [row + 1 for chosen in cells for row in np.flatnonzero(chosen.any(1))]
    assert even == pytest.approx(np.mean([1 / row for row in rows]))


MODULUS = 13


def test_powers_waves_and_their_sums_are_those_of_a_direct_transform():
    table = np.random.default_rng(0).normal(size=(MODULUS, 5))
    expected = []
    for k in range(1, MODULUS // 2 + 1):
        total = 0.0
        for column in range(5):
            turned = (
                table[number, column] * cmath.exp(-2j * cmath.pi * k * number / MODULUS)
                for number in range(MODULUS)
            )
            total += abs(sum(turned)) ** 2
        expected.append(total)
    np.testing.assert_allclose(grokking.powers(table), np.array(expected) / sum(expected))
    np.testing.assert_allclose(grokking.powers(table + 7.0), grokking.powers(table))
    table = np.cos(2 * np.pi * 4 * np.arange(MODULUS) / MODULUS)[:, None] + 0.5
    shares = grokking.powers(table)
    assert shares[3] == pytest.approx(1)
    assert grokking.key_frequencies(shares) == (4,)
    np.testing.assert_allclose(grokking.kept(table, (4, 5)), table, atol=1e-12)
    np.testing.assert_allclose(grokking.kept(table, (2, 5)), 0.5, atol=1e-12)
    numbers = np.arange(MODULUS)
    a, b = np.meshgrid(numbers, numbers, indexing="ij")
    turn = 2 * np.pi / MODULUS
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
        task={"size": MODULUS, "n_train": 60, "n_validation": 40, "n_test": 69},
        training={"steps": 3, "batch_size": 16},
    )
    made = RunStore(tmp_path_factory.mktemp("runs")).create(chosen)
    assert execute(made).state == "finished"
    return made


def test_the_table_and_its_power_are_those_of_the_model(run):
    *_others, last = grokking.table_steps(run)
    is_right, is_trained = grokking.sum_table(run, last)
    assert is_trained.sum() == 60
    model, _step = grokking.model_of_sums(run)
    for a, b in ((0, 0), (3, 12), (12, 3)):
        ids = torch.tensor([[a, b]]) + len(SPECIALS)
        with torch.inference_mode():
            answer = int(model(ids, ids[:, :1]).argmax()) - len(SPECIALS)
        assert is_right[a, b] == (answer == (a + b) % MODULUS)
    steps, shares = grokking.power_over_time(run)
    assert steps.tolist() == run.snapshot_steps()
    weight = grokking.model_of_sums(run)[0].src_embedding.table.weight
    table = weight.detach()[len(SPECIALS) :].numpy()
    np.testing.assert_allclose(shares[-1], grokking.powers(table), atol=1e-3)
    np.testing.assert_allclose(shares.sum(1), 1)


def test_taking_waves_out_leaves_the_model_alone_and_a_whole_whole(run):
    *_others, last = grokking.table_steps(run)
    before, is_trained = grokking.sum_table(run, last)
    found = grokking.projected(run, grokking.keys_of(run))
    is_new = ~is_trained
    assert found["whole"] == pytest.approx(before[is_new].mean())
    logits = grokking._logits(grokking.model_of_sums(run)[0], MODULUS)
    np.testing.assert_array_equal(logits.argmax(-1) == grokking._answers(MODULUS), before)
    every = range(1, MODULUS // 2 + 1)
    sums = grokking._by_sum(logits, every) + logits.mean((0, 1))
    for total in range(MODULUS):  # all waves of a + b together are its mean over each sum
        chosen = grokking._answers(MODULUS) == total
        np.testing.assert_allclose(
            sums[chosen], np.broadcast_to(logits[chosen].mean(0), sums[chosen].shape), atol=1e-6
        )
    nothing, every = (
        grokking.projected(run, ()),
        grokking.projected(run, range(1, MODULUS // 2 + 1)),
    )
    assert nothing["without"] == nothing["whole"] == every["only"] == every["whole"]
    assert nothing["excluded"] == pytest.approx(nothing["trained_loss"])
    assert every["without"] == nothing["only"]  # the mean embedding alone
    one = grokking.projected(run, (2,))
    assert one["excluded"] != pytest.approx(nothing["excluded"])
    assert one["whole"] == nothing["whole"]
