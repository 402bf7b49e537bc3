"""What is measured of real trainings: one in which an induction head forms, and its controls."""

import numpy as np
import pytest
import torch

from tfm_core.data.corpus.in_context import floors
from tfm_core.data.corpus.load import validation_sequences
from tfm_core.inspect.attention.trained import data_of, model_of
from tfm_core.inspect.discover import measured
from tfm_core.inspect.discover.heads import formed
from tfm_core.inspect.discover.phenomenon import CHAINS, INDUCTION
from tfm_core.inspect.experiments.trial import changed
from tfm_core.inspect.knockouts.engine import knocked_out
from tfm_core.inspect.knockouts.parts import Part
from tfm_core.probe.capture import capture
from tfm_core.runs.process.execute import execute
from tfm_core.runs.store import RunStore

STEPS = {"two-layers": 300, "one-layer": 100, "fixed": 120}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
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
def test_the_head_forms_where_the_accuracy_jumps_and_carries_it(runs):
    run = runs["two-layers"]
    steps, matching, looks_back = measured.head_scores(run)
    found = formed(steps, matching, looks_back)
    assert found is not None
    step, heads, previous = found
    assert (heads[0][0], previous[0]) == (1, 0)
    unseen = run.curves().unseen
    jump = unseen["step"][np.flatnonzero(unseen["accuracy"] > 0.5)[0]]
    assert abs(step - jump) < 50
    whole = measured.without(run, []).accuracy
    assert whole > 0.9
    assert measured.without(run, [previous]).accuracy < whole - 0.2
    both = [(1, head) for head in range(matching.shape[2])]
    assert measured.without(run, both).accuracy < 0.1
    assert measured.copying(run)[heads[0]] > 0.8


@pytest.mark.wide
def test_one_layer_fails_and_a_fixed_distance_only_looks_like_success(runs):
    for name in ("one-layer", "fixed"):
        assert formed(*measured.head_scores(runs[name])) is None
    assert measured.elsewhere(runs["one-layer"], "repeats")[0] < 0.5
    accuracy, matching = measured.elsewhere(runs["fixed"], "fixed-repeats")
    assert accuracy > 0.9
    assert matching.max() > 0.8
    accuracy, elsewhere = measured.elsewhere(runs["fixed"], "repeats")
    assert accuracy < 0.5
    assert elsewhere.max() < matching.max() / 2


@pytest.mark.wide
def test_copying_is_the_share_of_what_comes_back_along_the_whole_way(runs):
    run = runs["two-layers"]
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
    assert measured.copying(run)[1, head] == pytest.approx(
        found.real.sum() / np.abs(found).sum(), abs=1e-3
    )


@pytest.mark.wide
def test_queries_of_a_uniform_layer_see_all_tokens_so_far_alike(runs):
    model = model_of(runs["two-layers"])[0]
    rows = data_of(runs["two-layers"].experiment).validation.tgt[:3]
    layer = Part("sublayer", "decoder", 0, "self")
    with knocked_out(model, [layer], is_even=True), capture(model, only={"weights"}) as cache:
        model(rows[:, :0], rows[:, :-1])
    first, second = (cache.of("weights")[one] for one in measured.attentions_of(runs["two-layers"]))
    n = first.size(-1)
    even = torch.tril(torch.ones(n, n)) / torch.arange(1, n + 1)[:, None]
    torch.testing.assert_close(first, even.expand_as(first))
    assert (second - even).abs().max() > 0.1


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
