"""When a head is called an attention sink: on constructed maps, and on models that form none."""

import numpy as np
import pytest
import torch

from tests.inspect.constructed import constructed_run, text_experiment, vit_experiment
from tfm_core.data.corpus.in_context import TRIGGERS
from tfm_core.data.vocabulary import SPECIALS
from tfm_core.recorded.build import place_of
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunStore
from tfm_core.studies import sinks
from tfm_core.studies.sinks import SINKS, formed, on_first

FAR = 4  # positions behind a key from which on a query counts

N = 11
CAUSAL = np.tril(np.ones((1, N, N), bool))
EVEN = CAUSAL / CAUSAL.sum(-1, keepdims=True)


@pytest.mark.quick
def test_even_attention_has_its_share_and_padded_queries_nothing():
    sink = np.zeros((1, N, N))
    sink[..., 0] = 1
    shares, even = on_first(np.stack([EVEN, sink], 1), CAUSAL)
    expected = np.mean([1 / (q + 1) for q in range(FAR, N)])
    assert even == pytest.approx(expected)
    np.testing.assert_allclose(shares, [expected, 1])
    padded = CAUSAL.copy()
    padded[:, 7:] = False
    weights = np.where(padded, EVEN, 1.0)[:, None]
    shares, even = on_first(weights, padded)
    assert even == pytest.approx(np.mean([1 / (q + 1) for q in range(FAR, 7)]))
    assert shares[0] == pytest.approx(even)
    shares, even = on_first(np.ones((1, 2, FAR, FAR)), np.ones((1, FAR, FAR), bool))
    assert np.isnan(shares).all()
    assert np.isnan(even)


LOW, HIGH = 0.299, 0.3  # of its attention, from which on a page calls a head a sink


@pytest.mark.quick
@pytest.mark.parametrize(
    ("shares", "even", "step"),
    [
        ([LOW, LOW, HIGH, HIGH], 0.05, 30),
        ([LOW, HIGH, LOW, HIGH], 0.05, 70),  # it has to stay
        ([LOW, HIGH, HIGH, LOW], 0.05, None),  # it went again
        ([HIGH, HIGH, HIGH, HIGH], 0.05, None),  # it did not form: it was there
        ([LOW, LOW, HIGH, HIGH], 0.099, 30),
        ([LOW, LOW, HIGH, HIGH], 0.101, None),  # less than three times even attention's
    ],
)
def test_a_sink_forms_where_it_stays_and_is_far_from_even(shares, even, step):
    values = np.full((4, 2, 3), 0.01)
    values[:, 1, 2] = shares
    evens = np.array([0.3, even])  # with a window, even attention differs between the layers
    found = (np.array([0, 10, 30, 70]), values, evens, np.zeros_like(values))
    assert formed(found) == (None if step is None else (step, 1, 2))


@pytest.mark.quick
@pytest.mark.parametrize("experiment", [text_experiment(), vit_experiment()])
def test_random_maps_form_none(tmp_path, experiment):
    run = constructed_run(RunStore(tmp_path), experiment)
    found = sinks.first_shares(run)
    assert found[1].shape[0] == 3
    assert formed(found) is None


@pytest.fixture(scope="module")
def runs():
    return {arm.name: Run(place_of(f"recorded-sinks-{arm.name}")) for arm in SINKS.arms}


def test_the_sink_forms_with_readings_of_the_model_and_a_zero_logit(runs):
    softmax, zero = (sinks.first_shares(runs[name]) for name in ("softmax", "zero"))
    assert (formed(softmax) is None, sinks.rests(softmax[3])) == (False, False)
    assert (formed(zero) is None, sinks.rests(zero[3])) == (True, True)
    run = runs["softmax"]
    found = sinks.moved(run)
    assert found.keys() == sinks.MOVES.keys()
    first, bos = found["as it is"]
    np.testing.assert_allclose(first, softmax[1][-1], atol=0.1)  # of three other texts
    np.testing.assert_allclose(first, bos)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("first", "bos", "words"),
    [
        (0.02, 0.7, "goes with the token"),
        (0.6, 0.1, "stays on the position"),
        (0.1, 0.1, "unclear"),
    ],
)
def test_what_moves_with_the_token_is_told_from_what_stays(first, bos, words):
    whole = (np.array([[0.1, 0.8]]), np.array([[0.1, 0.8]]))
    behind = (np.array([[0.5, first]]), np.array([[0.9, bos]]))
    assert words in sinks.where_it_goes({"as it is": whole, "behind": behind})


def test_the_head_is_at_work_at_triggers_and_rests_elsewhere(runs):
    from tfm_core.inspect.attention.trained import data_of, model_of
    from tfm_core.probe.capture import capture

    run = runs["softmax"]
    model, _step = model_of(run)
    data = data_of(run.experiment)
    rows = data.validation.tgt[:50, :-1]
    with torch.inference_mode(), capture(model, only={"weights"}) as cache:
        model(rows[:, :0], rows)
    weights = next(iter(cache.of("weights").values()))[:, 0]
    words = data.task.tgt_vocabulary
    letters = [words.token(n) for n in range(len(SPECIALS), len(words))]
    ids = torch.tensor([n + len(SPECIALS) for n, one in enumerate(letters) if one in TRIGGERS])
    is_trigger = torch.isin(rows, ids)
    is_trigger[:, :FAR] = False
    rests = ~torch.isin(rows, ids)
    rests[:, :FAR] = False
    before = weights.diagonal(-1, 1, 2)  # (B, T - 1)
    assert before[is_trigger[:, 1:]].mean() > 0.6
    assert weights[..., 0][is_trigger].mean() < 0.1
    assert weights[..., 0][rests].mean() > 0.3
