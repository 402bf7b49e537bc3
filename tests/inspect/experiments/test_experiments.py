"""The experiments themselves: one thing differs, expectations, what is found and concluded."""

import json

import pytest

from tests.pages.made_runs import made_run
from tfm_core.facts.architectures import of_experiment
from tfm_core.inspect.compare.differences import differences
from tfm_core.inspect.experiments import DEMONSTRATIONS
from tfm_core.inspect.experiments.catalogue import BY_THEME
from tfm_core.inspect.experiments.demonstration import THEMES
from tfm_core.inspect.experiments.findings import conclude
from tfm_core.inspect.experiments.result import Generated, Result, RunIndex, missing, read
from tfm_core.runs.store import RECORDED, RunStore
from tfm_core.sentences import StudentError
from tfm_core.trace.trace import index

ALL = pytest.mark.parametrize("one", DEMONSTRATIONS.values(), ids=lambda one: one.name)
ONE_THING = {"coupled-decay": {"training.optimizer", "training.beta2"}}


STYLES = {"styles-translate", "styles-write"}  # whose arms are whole blocks


@ALL
def test_one_setting_differs_where_the_walk_has_its_step(one):
    made = [one.experiment(arm) for arm in one.arms]
    assert len({json.dumps(each.model_dump(), sort_keys=True) for each in made}) == len(made) > 1
    assert len({each.seed for each in made}) == 1
    rows = {row.field for row in differences(made)}
    if one.name in STYLES:
        assert all(row.startswith("model.") for row in rows)
    else:
        assert len(rows - ONE_THING.get(one.name, set()) or {1}) == 1
    for arm in one.arms:
        experiment = one.experiment(arm)
        shape = of_experiment(experiment, "").shape
        names = set(index(experiment.model, shape))
        assert one.step in names | {""}


def test_themes_have_experiments_whose_seeds_are_compared_with_holms():
    one = DEMONSTRATIONS["styles-write"]
    losses = {"gpt-2": (2.3, 2.4, 2.35), "llama": (1.9, 2.05, 1.9), "mixtral": (2.3, 2.41, 2.3)}
    results = {
        arm: {seed: Result(arm, accuracy=0.4, loss=loss) for seed, loss in enumerate(of_arm)}
        for arm, of_arm in losses.items()
    }
    found = conclude(one, results)
    assert [finding.kind for finding in found.findings] == ["better", "same"]
    assert "“llama” has a loss of 1.90 on unseen text, “gpt-2” 2.30." in found.findings[0].sentence
    assert "“llama” is 0.400 below “gpt-2”." in found.seeds[0]
    assert "Holm’s correction for 2 comparisons" in found.seeds[0]
    assert list(BY_THEME) == list(THEMES)
    assert all(BY_THEME.values())
    assert sum(map(len, BY_THEME.values())) == len(DEMONSTRATIONS)
    with pytest.raises(StudentError, match=r"no experiment “perpetuum”; there are .*heads"):
        DEMONSTRATIONS["perpetuum"]


def test_the_recorded_pair_shows_what_a_missing_mask_does(tmp_path):
    one = next(iter(DEMONSTRATIONS.values()))  # it is opened first
    found = RunIndex(RunStore(tmp_path, recorded=RECORDED).list()).of(one)
    assert [run.id for run in found.runs] == ["recorded-causal-mask", "recorded-no-mask"]
    assert found.is_whole
    right, wrong = (read(run, run.id, writes_freely=True) for run in found.runs)
    assert min(right.sequence_accuracy, right.written.share, wrong.sequence_accuracy) > 0.95
    assert wrong.written.share < 0.1


def test_recorded_runs_make_one_experiment_alive(tmp_path):
    heads = DEMONSTRATIONS["heads"]
    found = RunIndex(RunStore(tmp_path, recorded=RECORDED).list()).of(heads)
    assert {name: [run.id for run in runs.values()] for name, runs in found.by_arm.items()} == {
        "eight": [],
        "four": ["recorded-many-heads"],
        "one": ["recorded-one-head"],
    }
    assert list(missing(heads, found)) == ["eight"]
    results = {
        arm.name: {seed: read(run, arm.label) for seed, run in found.by_arm[arm.name].items()}
        for arm in heads.arms
    }
    conclusion = conclude(heads, results)
    assert conclusion.is_expected
    (finding,) = conclusion.findings
    assert "“1 head” gets 99.5% of unseen sequences right, “4 heads” 100.0%" in finding.sentence


def test_runs_are_found_by_their_settings_and_stopped_ones_are_trained_again(tmp_path):
    store, one = RunStore(tmp_path, recorded=None), DEMONSTRATIONS["no-positions"]
    first, second = (one.experiment(arm).replace(seed=3) for arm in one.arms)
    run = made_run(store, experiment=first)
    made_run(store, experiment=second, state="stopped")
    found = RunIndex(store.list()).of(one)
    assert found.seed == 3
    assert not found.is_whole
    assert {name: kept.id for name, kept in found.of_seed(3).items()} == {"positions": run.id}
    assert missing(one, found) == {"none": second}
    made_run(store, experiment=second)
    made_run(store, experiment=second, state="stopped")  # the newer one does not hide the other
    found = RunIndex(store.list()).of(one)
    assert found.is_whole
    assert not missing(one, found)


def shares(label: str, *values: float) -> dict[int, Result]:
    return {
        seed: Result(
            label,
            accuracy=value,
            sequence_accuracy=value,
            n_unseen=500,
            written=Generated(value, 500, tokens=0.99),
        )
        for seed, value in enumerate(values)
    }


def test_a_conclusion_says_what_was_expected_and_what_seeds_with_a_partner_say():
    one = DEMONSTRATIONS["no-positions"]
    worse = conclude(one, {"positions": shares("a", 0.99), "none": shares("b", 0.02)})
    assert worse.is_expected
    assert worse.seeds == ()
    assert worse.verdict == "This was expected."
    same = conclude(one, {"positions": shares("a", 0.99), "none": shares("b", 0.99)})
    assert same.is_expected is False
    assert same.findings[0].kind == "same"
    assert "run five" in same.verdict
    seeds = conclude(
        one,
        {"positions": shares("a", 0.99, 0.98, 0.97), "none": shares("b", 0.02, 0.03, 0.05)},
    )
    assert "Paired t-test" in seeds.seeds[0]
    assert conclude(one, {"positions": shares("a", 0.99)}).verdict is None
    lone = {7: Result("b", accuracy=0.5, sequence_accuracy=0.5, n_unseen=500)}
    assert conclude(one, {"positions": shares("a", 0.99), "none": lone}).findings == ()
