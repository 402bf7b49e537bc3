"""Every mistake is a run like any other, told from a healthy one by its probe and by its code."""

from pathlib import Path

import pytest

from tfm_core.choices.config import Experiment
from tfm_core.runs.process.execute import execute
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunStore
from tfm_core.studies import bugs
from tfm_core.studies.bugs import BUGS, PROBES, Bug, Measured, ProbedModel, basis, bug_of
from tfm_core.studies.study import changed

ALL = pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS)


@pytest.fixture(scope="module")
def healthy() -> dict[str, Measured]:
    """What each probe measures on a healthy model that nobody has trained."""
    subject = ProbedModel(basis())
    return {name: probe.measure(subject) for name, probe in PROBES.items()}


def pair_of(folder: Path, bug: Bug) -> tuple[Run, Run]:
    """A pair that was created and not trained."""
    store = RunStore(folder, recorded=None)
    return (store.create(basis()), store.create(changed(basis(), bug.changes)))


@ALL
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
            for probe in ("sight", "order", "gradients", "attention", "growth", "mixing", "numbers",
                          "rate")
        }
        for name, bug in BUGS.items()
    }  # fmt: skip
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
    assert any(is_apart for *_values, is_apart in bugs.measure_pair(healthy, twin, "attention"))
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
    (_label, healthy, _twin, is_apart), _behind = bugs.measure_pair(*trained, "sight")
    assert healthy == "0"
    assert is_apart


def test_a_part_that_the_twin_lacks_is_measured_as_nothing(tmp_path: Path) -> None:
    measured = bugs.measure_pair(*pair_of(tmp_path, BUGS["no-norm"]), "gradients")
    answer = {label: (twin, is_apart) for label, _healthy, twin, is_apart in measured}
    assert answer["gradient norm of encoder.final_norm"] == ("0", True)
