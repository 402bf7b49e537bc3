"""Every mistake is a run like any other, told from a healthy one by its probe and by its code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfm_core.config import Experiment
from tfm_core.inspect.bugs.bugs import BUGS, Bug, basis, bug_of, of_level, with_bug
from tfm_core.inspect.bugs.probes import PROBES, Measurement, ProbedModel, can_probe, differs
from tfm_core.inspect.bugs.round import Twins, difference, format_value, hint, measure_pair
from tfm_core.runs.process.execute import execute
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunStore

ALL = pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS)


@pytest.fixture(scope="module")
def healthy() -> dict[str, tuple[Measurement, ...]]:
    """What each probe measures on a healthy model that nobody has trained."""
    subject = ProbedModel(basis())
    return {name: probe.measure(subject) for name, probe in PROBES.items()}


def pair_of(folder: Path, bug: Bug) -> Twins:
    """A pair that was created and not trained."""
    store = RunStore(folder, recorded=None)
    return Twins(store.create(basis()), store.create(with_bug(basis(), bug)))


@ALL
def test_the_probe_of_a_mistake_finds_it_and_the_code_shows_it(
    healthy: dict[str, tuple[Measurement, ...]], bug: Bug, tmp_path: Path
) -> None:
    measured = PROBES[bug.probe].measure(ProbedModel(with_bug(basis(), bug)))
    pairs = zip(healthy[bug.probe], measured, strict=True)
    assert any(differs(one.value, other.value) for one, other in pairs)
    pair = pair_of(tmp_path, bug)
    assert pair.bug is bug
    lines = difference(pair).splitlines()
    assert any(line.startswith("-") and not line.startswith("---") for line in lines)
    assert any(line.startswith("+") and not line.startswith("+++") for line in lines)


def test_a_healthy_twin_has_no_mistake_and_measures_the_same(
    healthy: dict[str, tuple[Measurement, ...]],
) -> None:
    assert bug_of(basis(), basis()) is None
    for name, probe in PROBES.items():
        assert probe.measure(ProbedModel(basis())) == healthy[name]


def test_what_differs_in_more_than_one_thing_is_no_mistake_of_the_list() -> None:
    values = with_bug(basis(), BUGS["no-scale"]).model_dump()
    values["seed"] = 5
    assert bug_of(basis(), Experiment.parse(values)) is None


def test_every_level_hides_something_and_the_last_one_all() -> None:
    sizes = [len(of_level(level)) for level in (1, 2, 3)]
    assert sizes == sorted(set(sizes))
    assert sizes[-1] == len(BUGS)


@pytest.mark.parametrize("guess", ["no-positions", "sliced-heads", "softmax-before-loss"])
def test_a_hint_says_what_the_guess_would_measure_and_names_no_mistake(
    guess: str, tmp_path: Path
) -> None:
    bug = BUGS["no-causal-mask"]
    words = hint(pair_of(tmp_path, bug), BUGS[guess])
    assert PROBES[BUGS[guess].probe].question in words
    expected = PROBES[BUGS[guess].probe].measure(ProbedModel(with_bug(basis(), BUGS[guess])))
    found = PROBES[BUGS[guess].probe].measure(ProbedModel(with_bug(basis(), bug)))
    apart = [
        (one, other)
        for one, other in zip(expected, found, strict=True)
        if differs(one.value, other.value)
    ]
    assert any(format_value(one) in words and format_value(other) in words for one, other in apart)
    assert bug.label not in words


def test_a_hint_asks_for_a_probe_that_was_not_used_where_one_tells(tmp_path: Path) -> None:
    pair, guess = pair_of(tmp_path, BUGS["no-causal-mask"]), BUGS["sliced-heads"]
    words = hint(pair, guess, used=[guess.probe])
    assert PROBES[guess.probe].question not in words
    words = hint(pair, guess, used=list(PROBES))
    assert words.startswith("Look again")


def test_every_guess_is_told_apart_from_every_other_mistake() -> None:
    """So that a hint never has to say that nothing differs."""
    measured = {
        name: {
            probe: PROBES[probe].measure(ProbedModel(with_bug(basis(), bug)))
            for probe in ("sight", "order", "gradients", "attention", "growth", "mixing", "numbers",
                          "rate")
        }
        for name, bug in BUGS.items()
    }  # fmt: skip
    for name, mine in measured.items():
        for other, theirs in measured.items():
            if name != other:
                assert any(
                    differs(one.value, two.value)
                    for probe in mine
                    for one, two in zip(mine[probe], theirs[probe], strict=True)
                ), (name, other)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Twins:
    """A healthy run and its twin without a causal mask, which learned for a while."""
    store = RunStore(tmp_path_factory.mktemp("runs"), recorded=None)
    training = basis().training.replace(steps=150, snapshots=2, validate_every=50)
    sound = basis().replace(training=training.model_dump())
    runs: list[Run] = []
    for experiment in (sound, with_bug(sound, BUGS["no-causal-mask"])):
        run = store.create(experiment)
        assert execute(run).state == "finished"
        runs.append(run)
    return Twins(*runs)


@pytest.mark.wide
def test_trained_without_a_mask_it_is_right_with_the_truth_and_lost_alone(trained: Twins) -> None:
    forced, alone = measure_pair(trained, "running")
    assert float(forced.twin.removesuffix(" %")) > 95
    assert float(alone.twin.removesuffix(" %")) < 60
    before, _behind = measure_pair(trained, "sight")
    assert before.healthy == "0"
    assert before.is_apart


def test_all_probes_answer_for_trained_runs(trained: Twins) -> None:
    for name in PROBES:
        assert measure_pair(trained, name)


def test_a_part_that_the_twin_lacks_is_measured_as_nothing(tmp_path: Path) -> None:
    answer = {
        one.label: one for one in measure_pair(pair_of(tmp_path, BUGS["no-norm"]), "gradients")
    }
    final = answer["gradient norm of encoder.final_norm"]
    assert final.twin == "0"
    assert final.is_apart


def test_a_pair_without_weights_says_so(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no checkpoint"):
        measure_pair(pair_of(tmp_path, BUGS["no-scale"]), "running")


def test_the_pair_that_comes_with_the_app_differs_in_its_heads() -> None:
    store = RunStore()
    pair = Twins(store.get("recorded-many-heads"), store.get("recorded-one-head"))
    assert pair.bug is BUGS["one-head"]
    assert can_probe(pair.twin.experiment)
    assert any(one.is_apart for one in measure_pair(pair, "attention"))
    assert not can_probe(store.get("recorded-digits").experiment)


def test_a_measurement_is_said_short() -> None:
    for value, is_share, words in [
        (0.0, False, "0"),
        (4.0, False, "4"),
        (99840.0, False, "99,840"),
        (0.3546, False, "0.355"),
        (1.4184, False, "1.42"),
        (0.25, True, "25.0 %"),
    ]:
        assert format_value(Measurement("", value, is_share)) == words
