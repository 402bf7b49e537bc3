"""What is measured of real trainings: one in which an induction head forms, and its controls."""

import numpy as np
import pytest
import torch

from tfm_core.inspect.attention.head_roles import behind_earlier
from tfm_core.inspect.attention.trained import data_of, model_of
from tfm_core.inspect.knockouts.engine import knocked_out
from tfm_core.inspect.knockouts.parts import Part
from tfm_core.probe.capture import capture
from tfm_core.runs.process.execute import execute
from tfm_core.runs.store import RunStore
from tfm_core.studies import induction
from tfm_core.studies.induction import INDUCTION, formed, one_back, share_on
from tfm_core.studies.study import changed

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
def test_one_layer_fails_and_a_fixed_distance_only_looks_like_success(runs):
    for name in ("one-layer", "fixed"):
        assert formed(*induction.head_scores(runs[name])) is None
    assert induction.elsewhere(runs["one-layer"], "repeats")[0] < 0.5
    accuracy, matching = induction.elsewhere(runs["fixed"], "fixed-repeats")
    assert accuracy > 0.9
    assert matching.max() > 0.8
    accuracy, elsewhere = induction.elsewhere(runs["fixed"], "repeats")
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
    assert induction.copying(run)[1, head] == pytest.approx(
        found.real.sum() / np.abs(found).sum(), abs=1e-3
    )


@pytest.mark.wide
def test_queries_of_a_uniform_layer_see_all_tokens_so_far_alike(runs):
    model = model_of(runs["two-layers"])[0]
    rows = data_of(runs["two-layers"].experiment).validation.tgt[:3]
    layer = Part("sublayer", "decoder", 0, "self")
    with knocked_out(model, [layer], is_even=True), capture(model, only={"weights"}) as cache:
        model(rows[:, :0], rows[:, :-1])
    first, second = (
        cache.of("weights")[one] for one in induction.attentions_of(runs["two-layers"])
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
