"""Trainings side by side: a base, arms, the runs of each, a verdict."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load

from tests.pages.guided_runs import guided_run
from tests.pages.made_runs import made_run
from tests.runs.waiting import tiny
from tfm_core.choices.config import Experiment
from tfm_core.choices.presets import PRESETS
from tfm_core.choices.variants.positions import POSITIONS_OF_WORDS
from tfm_core.facts.architectures import of_experiment
from tfm_core.inspect.attention import alignment
from tfm_core.inspect.attention.trained import data_of, model_of
from tfm_core.inspect.differences import differences
from tfm_core.runs.outcome import overfit
from tfm_core.runs.process.execute import execute
from tfm_core.runs.run import Run
from tfm_core.runs.store import RECORDED, RunStore
from tfm_core.studies import bugs, comparing, practice
from tfm_core.studies.bugs import BUGS, PROBES, Bug, Measured, ProbedModel, basis, bug_of
from tfm_core.studies.comparing import Generated, Result, in_any_order, result_of
from tfm_core.studies.experiments import (
    BY_THEME,
    COPY_RACE,
    DEMONSTRATIONS,
    THEMES,
    TRANSLATION_RACE,
    conclude,
    race_of_attention,
    race_of_positions,
)
from tfm_core.studies.practice import STUDY
from tfm_core.studies.study import changed, missing, runs_of
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
    assert (
        "The loss on unseen text is 1.90 for “llama” and 2.30 for “gpt-2”."
        in found.findings[0].sentence
    )
    assert "“llama” is 0.400 below “gpt-2”." in found.seeds[0]
    assert "Holm’s correction for 2 comparisons" in found.seeds[0]
    assert list(BY_THEME) == list(THEMES)
    assert all(BY_THEME.values())
    assert sum(map(len, BY_THEME.values())) == len(DEMONSTRATIONS)


def test_the_recorded_pair_shows_what_a_missing_mask_does(tmp_path):
    one = next(iter(DEMONSTRATIONS.values()))  # it is opened first
    found = runs_of(one, RunStore(tmp_path, recorded=RECORDED).list())
    assert [run.id for run in found.runs] == ["recorded-causal-mask", "recorded-no-mask"]
    assert len(found.shown) == len(one.arms)
    right, wrong = (result_of(run, run.id, writes_freely=True) for run in found.runs)
    assert min(right.sequence_accuracy, right.written.share, wrong.sequence_accuracy) > 0.95
    assert wrong.written.share < 0.1


def test_recorded_runs_make_one_experiment_alive(tmp_path):
    heads = DEMONSTRATIONS["heads"]
    found = runs_of(heads, RunStore(tmp_path, recorded=RECORDED).list())
    assert {name: [run.id for run in runs.values()] for name, runs in found.by_arm.items()} == {
        "eight": [],
        "four": ["recorded-many-heads"],
        "one": ["recorded-one-head"],
    }
    assert list(missing(heads, found)) == ["eight"]
    results = {
        arm.name: {seed: result_of(run, arm.label) for seed, run in found.by_arm[arm.name].items()}
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
    found = runs_of(one, store.list())
    assert found.seed == 3
    assert len(found.shown) < len(one.arms)
    assert {name: kept.id for name, kept in found.shown.items()} == {"positions": run.id}
    assert missing(one, found) == {"none": second}
    made_run(store, experiment=second)
    made_run(store, experiment=second, state="stopped")  # the newer one does not hide the other
    found = runs_of(one, store.list())
    assert len(found.shown) == len(one.arms)
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
    assert "Run five" in same.verdict
    seeds = conclude(
        one, {"positions": shares("a", 0.99, 0.98, 0.97), "none": shares("b", 0.02, 0.03, 0.05)}
    )
    assert "Paired t-test" in seeds.seeds[0]
    assert conclude(one, {"positions": shares("a", 0.99)}) is None
    lone = {7: Result("b", accuracy=0.5, sequence_accuracy=0.5, n_unseen=500)}
    assert conclude(one, {"positions": shares("a", 0.99), "none": lone}) is None


FAST = ((0, 0.05), (50, 0.5), (100, 0.95), (150, 0.99), (200, 0.995))

SLOW = ((0, 0.05), (50, 0.2), (100, 0.4), (150, 0.6), (200, 0.994))


def result(
    label: str = "usual", sequence_accuracy: float | None = 0.97, **values: object
) -> Result:
    made = Result(
        label, accuracy=0.995, sequence_accuracy=sequence_accuracy, n_unseen=1000, validations=FAST
    )
    return dataclasses.replace(made, **values)


def test_ends_that_differ_enough_are_worse_better_slower_or_faster():
    right, wrong = result(), result("broken", 0.13, accuracy=0.6)
    found = comparing.usual(right, wrong)
    assert found.kind == "worse"
    assert "“broken” gets 13.0% of unseen sequences right, “usual” 97.0%" in found.sentence
    assert "84.0 points less." in found.sentence
    found = comparing.usual(wrong, right)
    assert found.kind == "better"
    assert "84.0 points more." in found.sentence
    found = comparing.usual(result("usual", 0.9144), result("odd", 0.1356))
    assert "13.6%" in found.sentence
    assert "91.4%" in found.sentence
    assert "77.8 points less." in found.sentence  # of what is shown; 77.88 of what was measured
    right, wrong = (result(name, None, accuracy=a) for name, a in (("a", 0.97), ("b", 0.5)))
    found = comparing.usual(right, wrong)
    assert found.kind == "worse"
    assert "“b” gets 50.0% right, “a” 97.0%" in found.sentence
    few = {"n_unseen": 50}
    found = comparing.usual(result(**few), result("broken", 0.93, **few))
    assert found.kind == "same"
    found = comparing.usual(result(sequence_accuracy=1.0), result("broken", 0.995, n_unseen=10**6))
    assert found.kind == "same"
    late = ((0, 0.05), (50, 0.5), (100, 0.8), (150, 0.95), (200, 0.995))
    assert comparing.usual(result(), result("broken", validations=late)).kind == "same"
    found = comparing.usual(result(), result("broken", 0.968, validations=SLOW))
    assert found.kind == "slower"
    assert "at step 200, “usual” at step 100." in found.sentence
    found = comparing.usual(result(validations=SLOW), result("better"))
    assert found.kind == "faster"
    assert "at step 100, “usual” at step 200." in found.sentence


def test_a_run_without_an_end_diverged_whichever_side_it_is_on():
    gone = result("broken", None, accuracy=None, diverged="Its loss became no number at step 7.")
    found = comparing.usual(result(), gone)
    assert found.kind == "diverged"
    assert "step 7" in found.sentence
    assert "“usual” ends with 97.0% right" in found.sentence
    assert comparing.usual(gone, result()).kind == "saved"
    assert comparing.usual(gone, gone).kind == "same"


def test_who_is_right_only_with_the_truth_before_it_is_fooled_and_no_other():
    honest = result(written=Generated(0.965, 200))
    cheat = result("no mask", 0.989, written=Generated(0.015, 200))
    found = comparing.fooled(honest, cheat)
    assert found.kind == "fooled"
    assert "98.9% of unseen sequences right" in found.sentence
    assert "**1.5%** of 200 right (“usual” 96.5%)" in found.sentence
    assert "look perfect" in found.sentence
    honest, other = (result(name, written=Generated(0.965, 200)) for name in ("usual", "no mask"))
    found = comparing.fooled(honest, other)
    assert found.kind == "same"
    assert "96.5% of 200 right" in found.sentence


def test_tokens_are_counted_in_any_order_and_wrong_ones_told_apart():
    right = result()
    shuffled = result("no positions", 0.02, accuracy=0.5, written=Generated(0.03, 200, 0.96))
    found = comparing.unordered(right, shuffled)
    assert found.kind == "unordered"
    assert "96.0%" in found.sentence
    lost = result("no positions", 0.02, accuracy=0.1, written=Generated(0.02, 200, 0.4))
    assert comparing.unordered(right, lost).kind == "worse"
    assert (
        comparing.unordered(right, result("no positions", written=Generated(1.0, 200, 1.0))).kind
        == "same"
    )
    for answer, truth, share in [
        ("abc", "cab", 1.0),
        ("abb", "aab", 2 / 3),
        ("", "ab", 0.0),
        ("abcd", "ab", 0.5),
        ("", "", 0.0),
    ]:
        assert in_any_order(list(answer), list(truth)) == pytest.approx(share)


def test_smoothing_gradients_and_probabilities_are_held_against_what_they_are():
    sure = result(confidence=0.998, loss=0.004)
    found = comparing.smoothed(sure, result("smooth", confidence=0.9, loss=0.11))
    assert found.kind == "unsure"
    assert "90.0% on average, not 99.8%" in found.sentence
    assert "0.110 against 0.004" in found.sentence
    found = comparing.smoothed(sure, result("smooth", confidence=0.995, loss=0.002))
    assert found.kind == "same"
    assert "as confident" in found.sentence
    worse = comparing.smoothed(sure, result("smooth", 0.2, confidence=0.5))
    assert worse.kind == "worse"
    calm = result(largest_gradient=5.9)
    found = comparing.roughened(calm, result("no norm", largest_gradient=48.4))
    assert found.kind == "rougher"
    assert "48.4, 8 times that of “usual” (5.9)" in found.sentence
    found = comparing.roughened(calm, result("no norm", largest_gradient=7.0))
    assert found.kind == "same"
    assert "no larger" in found.sentence
    found = comparing.roughened(calm, result("no norm", 0.1, largest_gradient=48.4))
    assert found.kind == "worse"
    broken = result("broken", 0.1, guessing=4.2485, training_loss=3.49)
    found = comparing.twice_squashed(result(), broken)
    assert found.kind == "worse"
    assert "ends at 3.49" in found.sentence
    assert "has 3.27" in found.sentence
    certain = torch.eye(70)  # probabilities, given to a loss that takes logits
    assert comparing.lowest_of_probabilities(70) == pytest.approx(
        float(torch.nn.functional.cross_entropy(certain, torch.arange(70))), abs=1e-5
    )


@pytest.mark.parametrize(
    ("second", "words"),
    [(0.8, "puts 80%"), (0.1, "look alike"), (0.31, "both put a similar share")],
)
def test_another_scale_is_seen_in_how_sharply_attention_begins(second, words):
    found = comparing.sharpened(result(sharpness=0.3), result("other", sharpness=second))
    assert words in found.sentence
    assert found.kind == "same"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return RunStore(tmp_path_factory.mktemp("runs"), recorded=None)


@pytest.fixture(scope="module")
def run(store):
    return guided_run(store, "plain")


def test_the_runs_differ_in_one_thing_each():
    plain, early, augmented = (STUDY.experiment(arm).model_dump() for arm in STUDY.arms)
    assert early["training"].pop("patience") == 6
    assert plain["training"].pop("patience") == 0
    assert early == plain
    changed = {key for key, value in augmented["task"].items() if value != plain["task"][key]}
    assert changed == {"shift", "rotation", "scale"}


def test_a_guided_run_is_found_again_and_no_other(store, run):
    plain, early, _augmented = map(STUDY.experiment, STUDY.arms)
    other = store.create(plain.replace(seed=1))
    early = store.create(early)
    found = runs_of(STUDY, store.list())
    assert [one.id for one in found.shown.values()] == [run.id, early.id]
    assert found.by_arm["plain"][1].id == other.id


def test_splits_share_no_picture_and_the_turn_is_the_lowest_loss(run):
    counts, n_shared = practice.splits_of(STUDY.base)
    assert counts.sum(axis=1).to_dict() == {"train": 4000, "validation": 500, "test": 500}
    assert n_shared == 0
    assert (counts.nunique(axis=1) == 1).all()
    turn = overfit(run.curves())
    assert turn["step"] == 150
    assert (turn["lowest"], turn["newest"]) == pytest.approx((0.9, 1.3))
    assert turn["now"] < turn["before"]


def test_validation_chooses_the_lowest_loss(store, run):
    curves = run.curves()
    lower = run.curves()
    lower.validation = lower.validation.with_records(
        [{"step": 350, "loss": 0.1, "accuracy": 0.9, "sequence_accuracy": None}]
    )
    both = {"plain": (run, curves), "augmented": (run, lower)}
    assert practice.best_of(both) == ("augmented", 350, pytest.approx(0.1))
    assert overfit(lower) is None  # it still falls
    assert practice.best_of({}) is None


def test_a_run_with_patience_stands_for_itself_with_its_best_weights(store):
    patient = guided_run(store, "early", steps=2)
    last = guided_run(store, "plain", steps=2)
    assert practice.best_of({"early": (patient, patient.curves())}) == (
        "early",
        150,
        pytest.approx(0.9),
    )
    assert practice.best_of({"plain": (last, last.curves())}) == ("plain", 300, pytest.approx(1.3))
    (patient.folder / "checkpoints" / "last" / "checkpoint.safetensors").unlink()
    assert practice.evaluate(patient, "validation").step == 2
    (last.folder / "checkpoints" / "best" / "checkpoint.safetensors").unlink()
    assert practice.evaluate(last, "validation").step == 2
    for run in (patient, last):
        store.delete(run.id)


@pytest.mark.parametrize("split", ["validation", "test"])
def test_a_judgement_is_what_the_weights_that_count_say(run, split):
    evaluated = practice.evaluate(run, split)
    model, step = model_of(run)
    data = data_of(run.experiment)
    part = getattr(data, split)
    with torch.inference_mode():
        logits = model(data.normalise(part.images))
    assert evaluated.step == step == 3
    assert evaluated.loss.mean() == pytest.approx(
        float(F.cross_entropy(logits, part.labels)), rel=1e-5
    )
    assert evaluated.n_right == int((logits.argmax(-1) == part.labels).sum())
    np.testing.assert_array_equal(evaluated.truth, part.labels.numpy())
    np.testing.assert_array_equal(evaluated.predicted, logits.argmax(-1).numpy())


def test_a_saved_model_gives_the_same_answers_and_one_with_a_wrong_name_is_refused(run):
    content, n_tensors, n_ignored, logits = practice.round_trip(run)
    np.testing.assert_array_equal(logits["loaded"], logits["trained"])
    assert abs(logits["fresh"] - logits["trained"]).max() > 0.01
    model, _step = model_of(run)
    weights = model.state_dict()
    assert load(content).keys() == weights.keys()
    np.testing.assert_array_equal(logits["misnamed"], logits["fresh"])  # nothing was loaded
    assert n_ignored == n_tensors == len(weights)
    content = practice.save_weights({f"x{k}": v for k, v in model.state_dict().items()})
    with pytest.raises(RuntimeError, match="Missing key"):
        practice.load_weights(model, content)


EACH_BUG = pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS)


@pytest.fixture(scope="module")
def healthy() -> dict[str, Measured]:
    """What each probe measures on a healthy model that nobody has trained."""
    subject = ProbedModel(basis())
    return {name: probe.measure(subject) for name, probe in PROBES.items()}


def pair_of(folder: Path, bug: Bug) -> tuple[Run, Run]:
    """A pair that was created and not trained."""
    store = RunStore(folder, recorded=None)
    return (store.create(basis()), store.create(changed(basis(), bug.changes)))


@EACH_BUG
def test_the_probe_of_a_mistake_finds_it_and_the_code_shows_it(
    healthy: dict[str, Measured], bug: Bug, tmp_path: Path
) -> None:
    measured = PROBES[bug.probe].measure(ProbedModel(changed(basis(), bug.changes)))
    pairs = zip(healthy[bug.probe].values(), measured.values(), strict=True)
    assert any(bugs.differs(one, other) for one, other in pairs)
    pair = [run.experiment for run in pair_of(tmp_path, bug)]
    assert bug_of(*pair) is bug
    lines = bugs.difference(*pair).splitlines()
    assert any(line.startswith("-") and not line.startswith("---") for line in lines)
    assert any(line.startswith("+") and not line.startswith("+++") for line in lines)


def test_a_healthy_twin_has_no_mistake_and_what_differs_in_more_is_none_of_the_list(
    healthy: dict[str, Measured],
) -> None:
    assert bug_of(basis(), basis()) is None
    for name, probe in PROBES.items():
        assert probe.measure(ProbedModel(basis())) == healthy[name]
    values = changed(basis(), BUGS["no-scale"].changes).model_dump()
    values["seed"] = 5
    assert bug_of(basis(), Experiment.parse(values)) is None


@pytest.mark.parametrize("guess", ["no-positions", "sliced-heads", "softmax-before-loss"])
def test_a_hint_says_what_the_guess_would_measure_and_names_no_mistake(
    guess: str, tmp_path: Path
) -> None:
    bug = BUGS["no-causal-mask"]
    healthy, twin = (run.experiment for run in pair_of(tmp_path, bug))
    words = bugs.hint(healthy, twin, BUGS[guess])
    assert PROBES[BUGS[guess].probe].question in words
    expected = PROBES[BUGS[guess].probe].measure(ProbedModel(changed(basis(), BUGS[guess].changes)))
    found = PROBES[BUGS[guess].probe].measure(ProbedModel(changed(basis(), bug.changes)))
    apart = [
        (one, other)
        for one, other in zip(expected.values(), found.values(), strict=True)
        if bugs.differs(one, other)
    ]
    shown = PROBES[BUGS[guess].probe].format
    assert any(shown(one) in words and shown(other) in words for one, other in apart)
    assert bug.label not in words


def test_guesses_are_told_apart_and_the_apps_pair_differs_in_its_heads() -> None:
    """So that a hint never has to say that nothing differs."""
    measured = {
        name: {
            probe: PROBES[probe].measure(ProbedModel(changed(basis(), bug.changes)))
            for probe in (
                "sight",
                "order",
                "gradients",
                "attention",
                "growth",
                "mixing",
                "numbers",
                "rate",
            )
        }
        for name, bug in BUGS.items()
    }
    for name, mine in measured.items():
        for other, theirs in measured.items():
            if name != other:
                assert any(
                    bugs.differs(one, two)
                    for probe in mine
                    for one, two in zip(mine[probe].values(), theirs[probe].values(), strict=True)
                ), (name, other)
    store = RunStore()
    healthy, twin = store.get("recorded-many-heads"), store.get("recorded-one-head")
    assert bug_of(healthy.experiment, twin.experiment) is BUGS["one-head"]
    assert bugs.can_probe(twin.experiment)
    assert any(differs for *_values, differs in bugs.measure_pair(healthy, twin, "attention"))
    assert not bugs.can_probe(store.get("recorded-digits").experiment)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    """A healthy run and its twin without a causal mask, which learned for a while."""
    store = RunStore(tmp_path_factory.mktemp("runs"), recorded=None)
    training = basis().training.replace(steps=150, snapshots=2, validate_every=50)
    sound = basis().replace(training=training.model_dump())
    runs = []
    for experiment in (sound, changed(sound, BUGS["no-causal-mask"].changes)):
        run = store.create(experiment)
        assert execute(run).state == "finished"
        runs.append(run)
    healthy, twin = runs
    return healthy, twin


@pytest.mark.wide
def test_trained_without_a_mask_it_is_right_with_the_truth_and_lost_alone(
    trained: tuple[Run, Run],
) -> None:
    forced, alone = bugs.measure_pair(*trained, "running")
    assert float(forced[2].removesuffix("%")) > 95
    assert float(alone[2].removesuffix("%")) < 60
    (_label, healthy, _twin, differs), _behind = bugs.measure_pair(*trained, "sight")
    assert healthy == "0"
    assert differs


def test_a_part_that_the_twin_lacks_is_measured_as_nothing(tmp_path: Path) -> None:
    measured = bugs.measure_pair(*pair_of(tmp_path, BUGS["no-norm"]), "gradients")
    answer = {label: (twin, differs) for label, _healthy, twin, differs in measured}
    assert answer["gradient norm of encoder.final_norm"] == ("0", True)


@pytest.mark.parametrize("preset", ["reverse", "sort-at-once", "addition", "vit-digits"])
def test_kinds_of_positions_differ_in_these_alone(preset):
    found = race_of_positions(PRESETS[preset].experiment, steps=31).experiments
    assert set(found) == set(POSITIONS_OF_WORDS)
    assert [each.model.position for each in found.values()] == list(found)
    assert {each.training.steps for each in found.values()} == {31}
    first, *others = (one.model_dump(exclude={"model": {"position"}}) for one in found.values())
    assert others == [first] * len(others)
    with pytest.raises(ValueError, match="has no positions"):
        race_of_positions(TRANSLATION_RACE.experiments["additive"], steps=31)


@pytest.mark.parametrize("task", alignment.rnn_tasks())
def test_attentions_of_every_offered_task_differ_in_their_model_alone(task):
    found = race_of_attention(task, steps=700).experiments
    assert {name: one.model for name, one in found.items()} == alignment.rnn_models()
    assert {one.training.steps for one in found.values()} == {700}
    first, *others = (one.model_dump(exclude={"model"}) for one in found.values())
    assert others == [first] * len(others)


@pytest.mark.parametrize("race", [COPY_RACE, TRANSLATION_RACE], ids=["positions", "attention"])
def test_the_races_come_with_the_app_and_can_be_trained_by_oneself(race):
    store = RunStore()
    found = runs_of(race, [*store.list(), *store.lessons()])
    assert list(found.shown) == [arm.name for arm in race.arms]
    assert all(run.meta.recorded for run in found.runs)
    assert missing(race, found) == {}
    assert missing(race, found, own=True) == race.experiments


def test_the_newest_run_of_each_kind_races_whatever_snapshots_it_took(store):
    race = race_of_positions(tiny(steps=10), steps=10)
    base = race.experiments
    made_run(store, experiment=base["sinusoidal"])
    rotary = made_run(store, experiment=base["rotary"])
    few = base["sinusoidal"].training.replace(snapshots=2).model_dump()
    again = made_run(store, experiment=base["sinusoidal"].replace(training=few))
    made_run(store, experiment=race_of_positions(tiny(steps=11), steps=11).experiments["alibi"])
    found = runs_of(race, store.list())
    assert {name: run.id for name, run in found.shown.items()} == {
        "sinusoidal": again.id,
        "rotary": rotary.id,
    }
    assert set(missing(race, found)) == set(base) - {"sinusoidal", "rotary"}
    race = race_of_positions(tiny().replace(seed=3), steps=10)
    assert {one.seed for one in missing(race, runs_of(race, [])).values()} == {3}
