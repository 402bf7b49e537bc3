"""Wrong labels: the rules on constructed cases, and what real trainings make of them."""

import pandas as pd
import pytest

from tfm_core.data.image_data import load_images
from tfm_core.runs.curves import Curves
from tfm_core.runs.process.execute import execute
from tfm_core.runs.store import RunStore
from tfm_core.studies import memorising
from tfm_core.studies.memorising import MEMORISING
from tfm_core.studies.study import changed

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
def runs(store):
    found = []
    for arm in MEMORISING.arms:
        run = store.create(changed(MEMORISING.experiment(arm), SMALL), device="cpu")
        assert execute(run).state == "finished"
        found.append(run)
    return found


@pytest.mark.wide
def test_a_model_reads_past_wrong_labels_before_it_memorises_them(runs):
    noisy, _clean = runs
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
def test_with_right_labels_there_is_nothing_to_memorise(runs):
    noisy, clean = runs
    table, said = memorising.answers(clean)
    assert said.shape == (0, 0)
    assert memorising.memorised(table) is None
    wrong, right = memorising.rises(run.curves() for run in runs).itertuples()
    assert right.accuracy > wrong.accuracy + 0.1
    assert wrong.loss - wrong.best_loss > right.loss - right.best_loss + 0.3
    same = [load_images(run.experiment.task, seed=0).validation.labels for run in (noisy, clean)]
    assert (same[0] == same[1]).all()


@pytest.mark.wide
def test_trained_on_with_right_labels_a_model_forgets_the_wrong_ones(runs, store):
    noisy, clean = runs
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
