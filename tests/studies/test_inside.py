"""What lies in activations: sinks, superposition, what is learned by heart."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.inspect.constructed import constructed_run, text_experiment, vit_experiment
from tfm_core.data.image_data import load_images
from tfm_core.data.text.in_context import TRIGGERS
from tfm_core.data.vocabulary import SPECIALS
from tfm_core.recorded.build import place_of
from tfm_core.runs.curves import Curves
from tfm_core.runs.process.execute import execute
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunStore
from tfm_core.studies import memorising, sinks
from tfm_core.studies import superposition as toy
from tfm_core.studies.memorising import MEMORISING
from tfm_core.studies.phenomenon import first, landings, over_runs, since
from tfm_core.studies.sinks import SINKS, formed, on_first
from tfm_core.studies.study import changed
from tfm_core.studies.superposition import GAPS, IRREGULAR, ideal, is_kept, shape_of

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
        (0.02, 0.7, "follows the token"),
        (0.6, 0.1, "stays at the position"),
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


S, N_FEATURES = toy.N_SPARSITIES, toy.N_FEATURES


def made(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of a shape at every sparsity; features that are not kept are answered by the mean."""
    vectors = np.repeat(ideal(name, N_FEATURES)[None], S, 0)
    return vectors, np.where(is_kept(vectors), 0.0, toy.DENSITIES[:, None] / 2)


@pytest.mark.parametrize(("name", "n"), [("nothing", 0), ("one", 1), ("right-angle", 2)])
def test_the_loss_of_features_kept_alone_is_the_variance_of_the_others(name, n):
    found = toy.losses(*made(name))
    np.testing.assert_allclose(found, toy.loss_of_keeping(n), rtol=1e-5)
    density = toy.DENSITIES[3]
    rest = sum(0.9**k for k in range(n, N_FEATURES))
    assert found[3] == pytest.approx(rest * (density / 3 - (density / 2) ** 2), rel=1e-5)


def test_outputs_and_the_loss_of_a_pentagon_are_those_of_two_tied_layers():
    vectors, biases = made("pentagon")
    biases = biases - 0.1
    found = toy.losses(vectors, biases)
    rng = np.random.default_rng(1)
    for k in (0, 5, 9):
        there = rng.random((400_000, N_FEATURES)) < toy.DENSITIES[k]
        x = rng.random((400_000, N_FEATURES)) * there
        answered = np.maximum(x @ vectors[k] @ vectors[k].T + biases[k], 0)
        sampled = ((answered - x) ** 2 * toy.IMPORTANCE).sum(-1)
        error = sampled.std() / np.sqrt(len(x))
        assert abs(found[k] - sampled.mean()) < 5 * error + 0.005 * found[k]
    vectors, biases, x = (
        torch.randn(N_FEATURES, 2),
        torch.randn(N_FEATURES),
        torch.rand(7, N_FEATURES),
    )
    layer = nn.Linear(N_FEATURES, 2, bias=False)
    with torch.no_grad():
        layer.weight.copy_(vectors.T)
        expected = F.relu(F.linear(layer(x), layer.weight.T, biases))
    found = toy.responses(vectors.numpy(), biases.numpy(), x.numpy())
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-6)


@pytest.fixture(scope="module")
def trained():
    torch.set_num_threads(1)
    return [*map(np.array, zip(*toy.train(0), strict=True))]  # steps, vectors, biases


@pytest.fixture(scope="module")
def best():
    return toy.best()


def test_a_seed_is_one_training_to_a_shape_that_sparseness_decides(trained):
    steps, vectors, biases = trained
    again = toy.train(0)
    for number, step in enumerate(steps[:9]):
        same_step, same_vectors, same_biases = next(again)
        assert same_step == step
        np.testing.assert_array_equal(same_vectors, vectors[number])
        np.testing.assert_array_equal(same_biases, biases[number])
    _step, other, _biases = next(toy.train(1))
    assert not np.allclose(vectors[0], other)
    assert toy.formed(steps, vectors[:, 0])[0] == "right-angle"
    assert is_kept(vectors[-1, 0]).tolist() == [True, True, False, False, False]
    name, step = toy.formed(steps, vectors[:, -1])
    assert name == "pentagon"
    assert step is not None
    assert 0 < step < toy.STEPS
    shares = toy.shares_of(vectors[-1], biases[-1])
    two, none = toy.loss_of_keeping(2), toy.loss_of_keeping(0)
    assert shares[0] == pytest.approx((two / none)[0], rel=5e-3)
    assert shares[-1] < 0.25 * shares[0]


def test_no_shape_beats_the_best_which_keep_more_features_the_sparser_they_are(trained, best):
    shares, shapes = best
    _steps, vectors, biases = trained
    assert (toy.shares_of(vectors[-1], biases[-1]) >= 0.99 * shares).all()
    for name in GAPS:
        assert (toy.shares_of(*made(name)) >= 0.99 * shares).all()
    n = [len(GAPS[name]) for name in shapes]
    assert n == sorted(n)
    assert (n[0], n[-1]) == (2, 5)
    assert (np.diff(shares) < 0).all()


def test_a_shape_formed_when_it_came_to_stay_and_seeds_are_counted_by_it():
    def held(*names: str) -> np.ndarray:
        """Vectors with given shapes at their snapshots, at every sparsity."""
        return np.array([made(name)[0] for name in names])

    steps = 10 * np.arange(5)
    shapes = held("nothing", "pentagon", "square", "pentagon", "pentagon")
    assert toy.formed(steps, shapes[:, 3]) == ("pentagon", 30)
    assert toy.formed(steps, held("nothing", "square")[:, 0]) == ("square", 10)
    known = (np.full(S, 0.1), ("pentagon",) * S)
    vectors = np.array(
        [
            held("nothing", "pentagon", "pentagon"),
            held("square", "square", "square"),
            held("nothing", "nothing", "pentagon"),
        ]
    )
    biases = np.zeros(vectors.shape[:-1])
    row = toy.found(steps, vectors, biases, known).iloc[9]
    assert row["shapes"] == {"pentagon": 2, "square": 1}
    assert row["steps"] == [10, 20]
    shares = toy.shares_of(vectors[:, -1], biases[:, -1])[:, 9]
    assert row["mean"] == pytest.approx(np.mean(shares))
    assert row["sd"] == pytest.approx(np.std(shares, ddof=1))
    assert (row["best"], row["best_share"]) == ("pentagon", 0.1)
    assert toy.found(steps, vectors[:1], biases[:1], known)["sd"][0] == 0


def test_features_reach_only_those_that_share_their_direction_and_erase_each_other():
    vectors, biases = ideal("square", N_FEATURES), np.zeros(N_FEATURES)
    alone = toy.responses(vectors, biases, np.eye(N_FEATURES))
    np.testing.assert_allclose(alone[:4, :4], np.eye(4), atol=1e-6)  # the opposite one is cut
    vectors = ideal("pentagon", N_FEATURES)
    alone = toy.responses(vectors, biases, np.eye(N_FEATURES))
    assert alone[0] == pytest.approx(
        [1, np.cos(np.radians(72)), 0, 0, np.cos(np.radians(72))], abs=1e-6
    )
    vectors, biases = ideal("pentagon", N_FEATURES), np.full(N_FEATURES, -0.1)

    def error(*there):
        given = toy.features(there, 1.0)
        return toy.squared_error(given, toy.responses(vectors, biases, given))

    assert error(0, 2) > 5 * (error(0) + error(2))
    assert error(0, 2) > 5 * error(0, 1)
    assert error() == 0


def at(*degrees: float, length: float = 1.0) -> np.ndarray:
    angles = np.radians(degrees)
    return length * np.column_stack([np.cos(angles), np.sin(angles)])


def turned(vectors: np.ndarray, degrees: float) -> np.ndarray:
    (c, s), _sine = at(degrees, 0)
    return vectors @ np.array([[c, s], [-s, c]])


@pytest.mark.parametrize("name", GAPS)
@pytest.mark.parametrize("degrees", [0, 17, 123, 200, 359])
def test_an_ideal_shape_is_found_turned_mirrored_and_in_any_order(name, degrees):
    vectors = turned(ideal(name, 5), degrees)
    rng = np.random.default_rng(degrees)
    assert shape_of(vectors) == name
    assert shape_of(vectors * [1, -1]) == name
    assert shape_of(rng.permutation(vectors)) == name
    assert shape_of(vectors * np.array([1.1, 0.9, 1, 1.2, 0.8])[:, None]) == name


def test_each_angle_has_its_tolerance_and_a_short_vector_does_not_count():
    assert shape_of(at(0, 90 + 15 - 0.1)) == "right-angle"
    assert shape_of(at(0, 90 + 15 + 0.1)) == IRREGULAR
    assert shape_of(at(0, 72, 144, 216, 288 + 15 - 0.1)) == "pentagon"
    assert shape_of(at(0, 72, 144, 216, 288 + 15 + 0.1)) == IRREGULAR
    short = at(45, length=0.69)  # the page says 0.7
    assert is_kept(at(45, length=0.71)).all()
    assert is_kept(np.concatenate([at(0, 90), short])).tolist() == [True, True, False]
    assert shape_of(np.concatenate([at(0, 90), short])) == "right-angle"
    assert shape_of(short) == "nothing"


@pytest.mark.parametrize(
    "degrees", [(0, 40), (0, 72, 144, 216), (0, 90, 180, 270, 315), (0, 1, 2, 3, 4), (0, 120, 200)]
)
def test_vectors_of_no_regular_shape_are_called_so(degrees):
    assert shape_of(at(*degrees)) == IRREGULAR


OBSERVED = np.array([0, 10, 20, 30, 50], float)

FLOORS = (1.1, 1.0, 0.8)


def test_what_ends_does_not_hold_and_a_staircase_lands_on_its_floors() -> None:
    is_there = np.array([False, True, False, True, True])
    assert first(OBSERVED, is_there) == 10
    assert since(OBSERVED, is_there) == 30
    never = np.zeros(5, bool)
    assert first(OBSERVED, never) is None
    assert since(OBSERVED, never) is None
    assert since(OBSERVED, np.array([True, True, True, True, False])) is None
    assert since(OBSERVED, np.array([False, False, False, False, True])) is None
    assert first(np.empty(0), np.empty(0, bool)) is None
    assert landings(OBSERVED, np.array([1.2, 1.01, 1.0, 0.85, 0.81]), FLOORS) == (10, 30)
    assert over_runs([40, None, 60]) == "50 ± 14 (2 / 3)"
    assert over_runs([1040]) == "1,040"
    assert over_runs([None]) == "–"


STEPS, TRAINED = 400, 600

SMALL = {
    "task.n_validation": 4500 - TRAINED,
    "training.steps": STEPS,
    "training.validate_every": STEPS // 2,
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return RunStore(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def trainings(store):
    found = []
    for arm in MEMORISING.arms:
        run = store.create(changed(MEMORISING.experiment(arm), SMALL), device="cpu")
        assert execute(run).state == "finished"
        found.append(run)
    return found


@pytest.mark.wide
def test_a_model_reads_past_wrong_labels_before_it_memorises_them(trainings):
    noisy, _clean = trainings
    table, said = memorising.answers(noisy)
    assert said.shape == (len(table), round(0.3 * TRAINED))
    early, last = table.iloc[table["true"].argmax()], table.iloc[-1]
    assert last["step"] == STEPS
    assert early["true"] > early["given"] + 0.1
    assert last["given"] > 0.9
    step = memorising.memorised(table)
    assert step is not None
    assert early["step"] < step <= STEPS


@pytest.mark.wide
def test_with_right_labels_there_is_nothing_to_memorise(trainings):
    noisy, clean = trainings
    table, said = memorising.answers(clean)
    assert said.shape == (0, 0)
    assert memorising.memorised(table) is None
    wrong, right = memorising.rises(run.curves() for run in trainings).itertuples()
    assert right.accuracy > wrong.accuracy + 0.1
    assert wrong.loss - wrong.best_loss > right.loss - right.best_loss + 0.3
    same = [load_images(run.experiment.task, seed=0).validation.labels for run in (noisy, clean)]
    assert (same[0] == same[1]).all()


@pytest.mark.wide
def test_trained_on_with_right_labels_a_model_forgets_the_wrong_ones(trainings, store):
    noisy, clean = trainings
    cure = memorising.correction(noisy)
    assert cure.step == STEPS
    assert cure.changes["task.label_noise"] == 0
    experiment = changed(noisy.experiment, cure.changes)
    other = store.cure(noisy.id, experiment, begins=cure.begins)
    assert execute(other).state == "finished"
    assert memorising.corrected(noisy, [clean, noisy, other]) == other
    assert memorising.corrected(clean, [clean, noisy, other]) is None
    (before, _said), (after, _) = memorising.answers(noisy), memorising.answers(other, of=noisy)
    assert after["given"].iloc[-1] < 0.1 < before["given"].iloc[-1]
    assert after["true"].iloc[-1] > 0.9
    steps = memorising.forgotten(other.curves(), other.meta.cured_from, 0.3)
    assert 0 < steps < STEPS


@pytest.mark.quick
@pytest.mark.parametrize(
    ("given", "step"),
    [
        ([0.1, 0.2, 0.6, 0.9], 30),
        ([0.1, 0.6, 0.4, 0.9, 0.9], 70),  # it has to stay
        ([0.1, 0.6, 0.4, 0.9], None),  # the last alone does not say whether it stays
        ([0.1, 0.6, 0.9, 0.4], None),
        ([0.1, 0.1, 0.3, 0.5], None),  # half is not more than half
        ([0.0, 0.0, 0.0, 0.0], None),
        ([], None),
    ],
)
def test_wrong_labels_are_memorised_from_the_step_on_that_keeps_most_of_them(given, step):
    steps = [0, 10, 30, 70, 90][: len(given)]
    assert memorising.memorised(pd.DataFrame({"step": steps, "given": given})) == step


@pytest.mark.quick
@pytest.mark.parametrize(
    ("errors", "places"),
    [
        ([0.6, 0.4, 0.5, 0.3], (1, 2, 3)),
        ([0.6, 0.4, 0.45, 0.5, 0.44, 0.3], (1, 3, 5)),
        ([0.6, 0.5, 0.4, 0.3], None),  # one descent
        ([0.3, 0.4, 0.5, 0.6], None),
        ([0.6, 0.4, 0.4 + 0.019, 0.3], None),  # too little to tell from chance
        ([0.6, 0.4, 0.4 + 0.021, 0.3], (1, 2, 3)),  # from two points on
        ([0.6, 0.4, 0.5, 0.5 - 0.019], None),  # it rose, and stays
        ([0.5], None),
        ([], None),
    ],
)
def test_a_second_descent_needs_a_peak_between_two_better_widths(errors, places):
    assert memorising.second_descent(errors) == places


def curves(accuracies, *, validation=(), ended=True):
    found = Curves()
    events = [
        {"event": "step", "step": n, "loss": 1.0, "accuracy": right}
        for n, right in enumerate(accuracies, 1)
    ]
    events += [
        {"event": "measured", "step": n, "split": "validation", "loss": 1.0, "accuracy": right}
        for n, right in validation
    ]
    found.extend(events + [{"event": "finished", "step": len(accuracies), "seconds": 1}] * ended)
    return found


@pytest.mark.quick
def test_labels_are_forgotten_at_half_of_the_gap_and_means_are_of_what_ended():
    before, low, high = [1.0] * 50, [0.6] * 30, [0.95] * 40
    since = len(before)
    assert memorising.forgotten(curves(before + low), since, 0.4) is None
    steps = memorising.forgotten(curves(before + low + high), since, 0.4)
    assert steps == len(low) + 12  # of 20 batches 12 have to be good for a mean above 0.8
    assert memorising.forgotten(curves(before + low[:5]), since, 0.4) is None
    ended = [curves([0.5] * 40 + [0.9] * 20, validation=[(60, right)]) for right in (0.5, 0.7)]
    going = curves([0.1] * 60, validation=[(60, 0.1)], ended=False)
    found = memorising.by_width((16, one) for one in (*ended, going))
    expected = {"width": 16, "n": 2, "error": 0.4, "sd": 0.02**0.5, "fitted": 0.9}
    assert found.to_dict("records") == [pytest.approx(expected)]
    assert memorising.by_width([(16, going)]).empty
