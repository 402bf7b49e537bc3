"""Every mistake is a run like any other, told from a healthy one by its probe and by its code."""

from pathlib import Path

import pytest

from tfm_core.choices.config import Experiment
from tfm_core.inspect.bugs.bugs import BUGS, Bug, basis, bug_of, with_bug
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


def test_a_healthy_twin_has_no_mistake_and_what_differs_in_more_is_none_of_the_list(
    healthy: dict[str, tuple[Measurement, ...]],
) -> None:
    assert bug_of(basis(), basis()) is None
    for name, probe in PROBES.items():
        assert probe.measure(ProbedModel(basis())) == healthy[name]
    values = with_bug(basis(), BUGS["no-scale"]).model_dump()
    values["seed"] = 5
    assert bug_of(basis(), Experiment.parse(values)) is None


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


def test_guesses_are_told_apart_and_the_apps_pair_differs_in_its_heads() -> None:
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
    store = RunStore()
    pair = Twins(store.get("recorded-many-heads"), store.get("recorded-one-head"))
    assert pair.bug is BUGS["one-head"]
    assert can_probe(pair.twin.experiment)
    assert any(is_apart for *_values, is_apart in measure_pair(pair, "attention"))
    assert not can_probe(store.get("recorded-digits").experiment)


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
    assert float(forced[2].removesuffix("%")) > 95
    assert float(alone[2].removesuffix("%")) < 60
    (_label, healthy, _twin, is_apart), _behind = measure_pair(trained, "sight")
    assert healthy == "0"
    assert is_apart


def test_a_part_that_the_twin_lacks_is_measured_as_nothing(tmp_path: Path) -> None:
    measured = measure_pair(pair_of(tmp_path, BUGS["no-norm"]), "gradients")
    answer = {label: (twin, is_apart) for label, _healthy, twin, is_apart in measured}
    assert answer["gradient norm of encoder.final_norm"] == ("0", True)
