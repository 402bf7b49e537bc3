"""Runs of one configuration, by seed; and what is missing of so many seeds."""

import pytest

from tests.pages.made_runs import damaged_run, made_run
from tests.runs.waiting import tiny
from tfm_core.inspect.compare.differences import group_by_seed, seed_plans
from tfm_core.sentences import StudentError
from tfm_core.training.progress import LOSS_DIVERGED, TrainingDiverged


def plan(experiment, runs, n):
    """The plan of one experiment."""
    (found,) = seed_plans([experiment], runs, n)
    return found


def seeds(experiments):
    return [experiment.seed for experiment in experiments]


def test_runs_that_differ_in_their_seed_alone_are_one_configuration(store):
    ones = [made_run(store, experiment=tiny().replace(seed=seed)) for seed in (5, 2)]
    again = made_run(store, experiment=tiny().replace(seed=5))
    other = made_run(store, experiment=tiny(steps=11))
    first, second = group_by_seed([ones[0], other, ones[1], again, damaged_run(store)])
    assert list(first) == [2, 5]
    assert first[5] is ones[0]
    assert list(second.values()) == [other]


def test_a_plan_goes_on_from_the_seed_of_the_experiment_and_after_the_last_from_the_first(store):
    experiment = tiny().replace(seed=42)
    there, missing = plan(experiment, [], 5)
    assert seeds(missing) == [42, 43, 44, 45, 46]
    assert all(each.replace(seed=42) == experiment for each in missing)
    assert there == {}
    assert seeds(plan(tiny().replace(seed=2**31 - 1), [], 3)[1]) == [2**31 - 1, 0, 1]
    for n in [-1, 0, 1, 21]:
        with pytest.raises(StudentError, match="Choose 2 to 20"):
            plan(tiny(), [], n)


def test_what_is_there_is_not_trained_again(store):
    experiment = tiny().replace(seed=42)
    runs = [
        made_run(store, experiment=experiment.replace(seed=seed), state=state)
        for seed, state in ((42, "finished"), (7, "finished"), (44, "running"), (43, "stopped"))
    ]
    there, missing = plan(experiment, runs, 5)
    assert list(there) == [7, 42, 44]
    assert seeds(missing) == [43, 45]
    assert plan(experiment, runs, 3)[1] == []


def test_a_copy_that_trained_further_is_no_seed_and_one_that_diverged_is(store):
    copy = store.fork(_with_weights(made_run(store, experiment=tiny(), step=7)).id, steps=11)
    assert seeds(plan(copy.experiment, [copy], 2)[1]) == [0, 1]
    values = {"loss": float("nan"), "step": 3, "learning_rate": 10.0, "lower": 1.0}
    words = TrainingDiverged(LOSS_DIVERGED, **values).sentence
    failed = made_run(store, experiment=tiny(), state="failed", step=3, reason=words)
    assert list(plan(tiny(), [failed], 2)[0]) == [0]


def _with_weights(run):
    last = run.folder / "checkpoints" / "last"
    last.mkdir(parents=True, exist_ok=True)
    (last / "checkpoint.safetensors").write_bytes(b"weights")
    return run


def test_configurations_get_the_same_seeds_to_be_paired_by(store):
    one, other = tiny(), tiny(steps=11)
    runs = [made_run(store, experiment=one.replace(seed=seed)) for seed in (3, 8)]
    runs += [made_run(store, experiment=other.replace(seed=seed)) for seed in (8, 11)]
    missing = [seeds(found) for _there, found in seed_plans([one.replace(seed=8), other], runs, 4)]
    assert missing == [[11, 9], [3, 9]]
    missing = [seeds(found) for _there, found in seed_plans([one.replace(seed=8), other], runs, 2)]
    assert missing == [[], [3]]  # 8 is there twice
