"""What differs between experiments, names made of it, and runs of several seeds."""

import pytest

from tests.pages.made_runs import damaged_run, made_run
from tests.runs.waiting import tiny
from tfm_core.choices.config import MODEL_CONFIGS, Experiment
from tfm_core.choices.presets import PRESETS
from tfm_core.inspect.differences import (
    ABSENT,
    change_text,
    differences,
    group_by_seed,
    matches_search,
    run_names,
    seed_plans,
    settings,
)
from tfm_core.runs.run import Run
from tfm_core.runs.store import RECORDED, RunStore
from tfm_core.sentences import StudentError
from tfm_core.training.progress import LOSS_DIVERGED, TrainingDiverged

pytestmark = pytest.mark.quick
BASE = PRESETS["translate"].experiment


def changed(**fields: object) -> Experiment:
    """The first experiment with other settings: ``model__n_heads=8``."""
    values = BASE.model_dump()
    for path, value in fields.items():
        section, _, name = path.partition("__")
        if name:
            values[section][name] = value
        else:
            values[section] = value
    return Experiment.parse(values)


def test_settings_that_differ_are_found_and_shown_with_their_values() -> None:
    many = changed(model__n_heads=8, training__warmup=0.0)
    rows = differences([BASE, many, BASE])
    assert [row.field for row in rows] == ["model.n_heads", "training.warmup"]
    assert rows[0].values == (BASE.model.n_heads, 8, BASE.model.n_heads)
    assert rows[1].texts[1] == "0"
    assert BASE.model.position == "sinusoidal"  # so no table limits the length
    assert differences([BASE, changed(model__max_len=128)]) == ()
    learned = [changed(model__position="learned", model__max_len=n) for n in (64, 128)]
    assert [row.field for row in differences(learned)] == ["model.max_len"]
    recurrent = Experiment.parse({**BASE.model_dump(), "model": {"family": "recurrent"}})
    rows = {row.field: row for row in differences([BASE, recurrent])}
    assert rows["model.family"].texts == ("Encoder-decoder", "RNN with attention")
    assert rows["model.n_heads"].texts[1] == ABSENT
    assert rows["model.cell"].texts == (ABSENT, "GRU")
    for family, config in MODEL_CONFIGS.items():
        task = next(
            preset.experiment
            for preset in PRESETS.values()
            if preset.experiment.model.family == family
        )
        known = settings(task)
        for name in config.model_fields:
            if name != "max_len":
                assert f"model.{name}" in known


def test_names_say_what_differs_shortly_and_tell_all_apart() -> None:
    many = changed(model__n_heads=8, training__warmup=0.0)
    heads = BASE.model.n_heads
    share = f"{100 * BASE.training.warmup:g}"
    assert run_names([BASE, many]) == (f"{heads} heads, {share}% warm-up", "8 heads, no warm-up")
    assert run_names([changed(model__n_heads=1), many])[0].startswith("1 head, ")
    label = BASE.task.facts.label
    assert run_names([BASE, BASE]) == (f"{label}, no. 1", f"{label}, no. 2")
    other = changed(seed=5)
    assert run_names([BASE, other, BASE]) == ("seed 0, no. 1", "seed 5", "seed 0, no. 2")
    assert run_names([BASE]) == (label,)
    sgd = BASE.replace(training=BASE.training.replace(optimizer="sgd").model_dump())
    assert run_names([BASE, sgd]) == ("AdamW", "SGD")
    assert change_text(BASE, sgd) == "SGD"
    assert change_text(BASE, BASE) == ""
    store = RunStore(recorded=RECORDED)
    experiments = [run.experiment for run in store.list() if run.meta.recorded]
    found = run_names(experiments)
    assert len(set(found)) == len(found) == len(experiments)
    assert max(map(len, found)) < 60


@pytest.fixture
def run(tmp_path) -> Run:
    store = RunStore(tmp_path, recorded=None)
    made = made_run(store, name="Mine", experiment=tiny())
    return store.label(
        made.id, tags=["Baseline", "too slow"], note="Falls\nlate.", group="Heads of 2"
    )


def test_words_stand_where_they_are_and_others_find_nothing(run):
    for words in [
        "",
        " ",
        "mine",
        "MINE copy",
        "baseline",
        "#baseline",
        "#too-slow",
        "late",
        "heads of",
        "n_heads=2",
        "model.n_heads=2",
        "copy mine n_heads=2",
        "adamw",
        "adam",
        "norm_first=true",
        "extra",
    ]:
        assert matches_search(run, words, also="Extra")
    for words in [
        "other",
        "mine other",
        "#base",
        "#mine",
        "n_heads=20",
        "n_heads=",
        "heads=2",
        "$(.*",
        "damw",
        "5",
    ]:
        assert not matches_search(run, words)


def test_a_damaged_run_is_found_by_its_name(tmp_path):
    run = damaged_run(RunStore(tmp_path, recorded=None))
    assert matches_search(run, "broken")
    assert not matches_search(run, "n_heads=2")


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
