"""When a head is called an attention sink: on constructed maps, and on models that form none."""

import numpy as np
import pytest
import torch

from tests.inspect.constructed import constructed_run, text_experiment, vit_experiment
from tfm_core.data.corpus.in_context import TRIGGERS
from tfm_core.data.vocabulary import SPECIALS
from tfm_core.inspect.discover import sinks
from tfm_core.inspect.discover.phenomenon import SINKS
from tfm_core.inspect.discover.sinks import FirstShares, FormedSink, formed, on_first
from tfm_core.inspect.experiments.trial import changed
from tfm_core.recorded.build import place_of
from tfm_core.runs.process.execute import execute
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunStore

FAR = 4  # positions behind a key from which on a query counts

N = 11
CAUSAL = np.tril(np.ones((1, N, N), bool))
EVEN = CAUSAL / CAUSAL.sum(-1, keepdims=True)


@pytest.mark.quick
def test_even_attention_has_the_even_share_and_a_sink_all_of_it():
    sink = np.zeros((1, N, N))
    sink[..., 0] = 1
    shares, even = on_first(np.stack([EVEN, sink], 1), CAUSAL)
    expected = np.mean([1 / (q + 1) for q in range(FAR, N)])
    assert even == pytest.approx(expected)
    np.testing.assert_allclose(shares, [expected, 1])


@pytest.mark.quick
def test_padded_queries_do_not_count():
    padded = CAUSAL.copy()
    padded[:, 7:] = False
    weights = np.where(padded, EVEN, 1.0)[:, None]
    shares, even = on_first(weights, padded)
    assert even == pytest.approx(np.mean([1 / (q + 1) for q in range(FAR, 7)]))
    assert shares[0] == pytest.approx(even)


@pytest.mark.quick
def test_of_too_short_texts_nothing_is_known():
    shares, even = on_first(np.ones((1, 2, FAR, FAR)), np.ones((1, FAR, FAR), bool))
    assert np.isnan(shares).all()
    assert np.isnan(even)


@pytest.mark.quick
def test_a_position_is_compared_with_even_attention_of_the_same_queries():
    found, even = sinks.by_position(EVEN[:, None], CAUSAL)
    np.testing.assert_allclose(found[0], even)
    assert even[0] == pytest.approx(np.mean([1 / (q + 1) for q in range(FAR, N)]))
    assert np.isnan(even[-1])  # no query is far behind the last token


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
    found = FirstShares(np.array([0, 10, 30, 70]), values, even, np.zeros_like(values))
    assert formed(found) == (None if step is None else FormedSink(step, 1, 2, HIGH))


@pytest.mark.quick
@pytest.mark.parametrize("experiment", [text_experiment(), vit_experiment()])
def test_random_maps_form_none(tmp_path, experiment):
    run = constructed_run(RunStore(tmp_path), experiment)
    found = sinks.first_shares(run)
    assert found.shares.shape[0] == 3
    assert formed(found) is None


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The recorded runs of both softmaxes, and a model that learns nothing."""
    found = {arm.name: Run(place_of(f"recorded-sinks-{arm.name}")) for arm in SINKS.arms}
    sizes = {"task.n_train": 10_000, "task.n_test": 50, "task.n_validation": 100}
    still = {"training.steps": 20, "training.learning_rate": 1e-9, "training.weight_decay": 0.0}
    store = RunStore(tmp_path_factory.mktemp("runs"))
    found["untrained"] = store.create(changed(SINKS.base, {**sizes, **still}), device="cpu")
    assert execute(found["untrained"]).state == "finished"
    return found


def test_the_sink_forms_and_a_zero_logit_takes_its_place(runs):
    softmax, zero = (sinks.first_shares(runs[name]) for name in ("softmax", "zero"))
    assert formed(softmax) is not None
    assert softmax.no_token[-1].max() < 0.01
    assert not softmax.rests
    assert formed(zero) is None
    assert zero.no_token[-1].max() > 0.3
    assert zero.rests


def test_an_untrained_model_has_none(runs):
    found = sinks.first_shares(runs["untrained"])
    assert formed(found) is None
    np.testing.assert_allclose(found.shares, found.even, atol=0.1)


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
    whole = sinks.Moved(np.array([[0.1, 0.8]]), np.array([[0.1, 0.8]]))
    behind = sinks.Moved(np.array([[0.5, first]]), np.array([[0.9, bos]]))
    assert words in sinks.where_it_goes({"as it is": whole, "behind": behind})


def test_moved_readings_are_those_of_the_model(runs):
    from tfm_core.inspect.attention.trained import data_of, model_of

    run = runs["softmax"]
    found = sinks.moved(run)
    assert found.keys() == sinks.MOVES.keys()
    last = sinks.first_shares(run).shares[-1]
    np.testing.assert_allclose(found["as it is"].first, last, atol=0.1)  # of three other texts
    np.testing.assert_allclose(found["as it is"].first, found["as it is"].bos)
    assert found["dropped"].bos is None
    assert "goes with the token" in sinks.where_it_goes(found)
    model, _step = model_of(run)
    rows = data_of(run.experiment).validation.tgt[:3]
    assert (rows[:, 0] == model.bos_id).all()


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
