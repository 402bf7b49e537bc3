"""Each lesson of the app, solved and failed by script: every task by a right and a wrong answer.

What is trained is either trained here, comes with the app, or is a run with the figure that such a
run was measured to reach.
"""

import itertools
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.lessons.made import finished_run
from tfm_core.choices.config import Experiment, ImageTaskConfig
from tfm_core.choices.presets import PRESETS
from tfm_core.data.text.korean_words import VERBS
from tfm_core.inspect.knockouts.parts import part_of
from tfm_core.lessons import catalogue
from tfm_core.lessons.checks import Choice, HeadAligns, Number, PredictedCount, Reached
from tfm_core.lessons.lesson import Lesson
from tfm_core.lessons.task import Verdict, Work
from tfm_core.runs.process.execute import execute
from tfm_core.runs.process.requests import Control
from tfm_core.runs.run import Run
from tfm_core.runs.store import RECORDED, RunStore
from tfm_core.sentences import StudentError
from tfm_core.studies import specialise as roles
from tfm_core.studies.bugs import BUGS, basis
from tfm_core.studies.chains import CHAINS
from tfm_core.studies.sinks import SINKS
from tfm_core.studies.study import changed
from tfm_core.training.setup import new_model


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path)


class Pupil:
    """Answers tasks of a lesson with the runs that it trained."""

    def __init__(self, name: str, store: RunStore) -> None:
        self.lesson: Lesson = catalogue.lesson(name)
        self.store = store
        self.runs: list[Run] = []

    def answer(self, task: str, given: object = None) -> Verdict:
        chosen = self.lesson.task(task)
        assert chosen is not None
        words = self.lesson.words().tasks[task]
        work = Work(words, self.lesson.experiment, self.runs, self.store)
        return chosen.judge(chosen.answer_of(given, words), work)

    def begun(self, **model: object) -> Experiment:
        begun = self.lesson.experiment
        assert begun is not None
        changed = begun.replace(model=begun.model.model_dump() | model)
        self.lesson.check(changed)  # the lesson lets one do this
        return changed

    def trained(self, experiment: Experiment, accuracy: float) -> None:
        self.runs.insert(0, finished_run(self.store, experiment, accuracy=accuracy))


def is_solved(pupil: Pupil, task: str, right: object, wrong: object) -> None:
    """Assert that one answer solves a task and another fails it, with a reason."""
    failed = pupil.answer(task, wrong)
    assert not failed.is_right
    assert failed.sentence
    assert pupil.answer(task, right).is_right


@pytest.mark.parametrize("name", catalogue.catalogue().lessons)
def test_every_option_of_a_question_is_right_or_wrong_as_its_words_say(
    store: RunStore, name: str
) -> None:
    pupil = Pupil(name, store)
    for task in pupil.lesson.tasks:
        if not isinstance(task, Choice | Number):
            continue
        for option in pupil.lesson.words().tasks[task.id].options:
            given = float(option.text) if task.asks == "number" else option.text
            verdict = pupil.answer(task.id, given)
            assert verdict.is_right == option.is_right
            assert verdict.sentence == option.why != ""


def test_aligning_head(store: RunStore) -> None:
    pupil = Pupil("aligning-head", store)
    is_solved(pupil, "head", right=[3, 1], wrong=[1, 1])
    assert 0.7 < pupil.answer("head", [3, 2]).figures["share"] < 0.88  # nearly
    task = pupil.lesson.task("head")
    assert isinstance(task, HeadAligns)
    forms = {form for verb in VERBS for form in (verb.korean_final, verb.korean_past)}
    assert set(task.tokens) == forms
    run = store.get("recorded-korean")
    maps = run.snapshot(run.snapshot_steps()[-1]).attention["decoder.layers.2.cross_attention"]
    shares = [  # of the first head, by hand: the row that writes the verb, on its source
        float(maps[number, 0, at, item["alignment"][at]].sum())
        for number, item in enumerate(run.probe().items[: len(maps)])
        for at, token in enumerate(item["tgt"])
        if token in forms
    ]
    share = pupil.answer("head", [3, 1]).figures["share"]
    assert share == pytest.approx(sum(shares) / len(shares), abs=1e-3)
    for nowhere in ([4, 1], [1, 5], [99, 99]):
        with pytest.raises(StudentError, match="layers 1 to 3, heads 1 to 4"):
            pupil.answer("head", nowhere)
    for nonsense in ([1], "1.1", [1.5, 2], [True, 1], None, [0, 1]):
        with pytest.raises(StudentError, match="both from 1"):
            pupil.answer("head", nonsense)


def recorded_as_own(store: RunStore, name: str) -> Run:
    """A copy of a recorded run as a pupil's own."""
    shutil.copytree(RECORDED / name, store.root / name)
    return Run(store.root / name)


def test_causal_mask(store: RunStore) -> None:
    pupil = Pupil("causal-mask", store)
    with pytest.raises(StudentError, match="No causal mask"):
        pupil.answer("fail")
    sound, blind = (
        recorded_as_own(store, name) for name in ("recorded-causal-mask", "recorded-no-mask")
    )
    for run in (sound, blind):  # what comes with the app is what the lesson lets one train
        pupil.lesson.check(run.experiment)
    pupil.runs = [sound]
    with pytest.raises(StudentError, match="No causal mask"):
        pupil.answer("fail")
    pupil.runs = [blind, sound]
    verdict = pupil.answer("fail")
    assert verdict.is_right
    assert verdict.run == blind.id
    assert verdict.figures["given"] > 0.9 > 0.5 > verdict.figures["alone"]
    strict = pupil.lesson.task("fail").replace(alone_at_most=0.0)
    work = Work(pupil.lesson.words().tasks["fail"], pupil.lesson.experiment, pupil.runs, store)
    assert not strict.judge("", work).is_right


def test_count_parameters(store: RunStore) -> None:
    pupil = Pupil("count-parameters", store)
    model = new_model(pupil.begun())  # PyTorch's own count
    for task in ("queries", "feed-forward"):
        check = pupil.lesson.task(task)
        assert isinstance(check, PredictedCount)
        n = sum(one.numel() for one in model.get_submodule(check.part).parameters())
        is_solved(pupil, task, right=n, wrong=n + 1)
        assert pupil.answer(task, n + 1).sentence != pupil.answer(task, n - 1).sentence
        for option in pupil.lesson.words().tasks[task].options:
            assert pupil.answer(task, float(option.text)).sentence == option.why
    with pytest.raises(StudentError, match="enter a number"):
        pupil.answer("queries", "many")


def test_smallest_model(store: RunStore) -> None:
    pupil = Pupil("smallest-model", store)
    with pytest.raises(StudentError, match="train a run with"):
        pupil.answer("smallest", "16")
    pupil.trained(pupil.begun(d_model=32), 0.999)
    with pytest.raises(StudentError, match="16, too"):
        pupil.answer("smallest", "32")
    pupil.trained(pupil.begun(d_model=16), 0.9997)  # as measured
    assert not pupil.answer("smallest", "32").is_right
    pupil.trained(pupil.begun(d_model=8), 0.935)
    is_solved(pupil, "smallest", right="16", wrong="8")
    with pytest.raises(StudentError, match="choose an answer"):
        pupil.answer("smallest", "17")
    pupil.runs = pupil.runs[1:]
    pupil.trained(pupil.begun(d_model=8), 0.96)  # on another machine, perhaps
    is_solved(pupil, "smallest", right="8", wrong="16")


@pytest.mark.wide
def test_learning_rate(store: RunStore) -> None:
    pupil = Pupil("learning-rate", store)
    with pytest.raises(StudentError, match="train a run"):
        pupil.answer("reach")

    def train(rate: float) -> None:
        begun = pupil.lesson.experiment
        assert begun is not None
        experiment = begun.replace(training=begun.training.model_dump() | {"learning_rate": rate})
        pupil.lesson.check(experiment)
        run = store.create(experiment, state="starting")
        execute(run, Control(run.folder), lambda _event: None)
        pupil.runs.insert(0, run)

    train(0.0001)
    assert not pupil.answer("reach").is_right
    with pytest.raises(StudentError, match="None of your finished runs has the settings"):
        pupil.answer("break")  # too low a rate is another mistake
    train(0.002)
    assert pupil.answer("reach").is_right
    train(0.3)
    assert pupil.answer("break").is_right


def test_name_the_bug(store: RunStore) -> None:
    pupil = Pupil("name-the-bug", store)
    with pytest.raises(StudentError, match="Train a new suspect"):
        pupil.answer("bug", "no-positions")
    for bug in BUGS.values():
        run = finished_run(store, changed(basis(), bug.changes), accuracy=0.9, is_suspect=True)
        pupil.runs = [run]
        other = next(name for name in BUGS if name != bug.name)
        is_solved(pupil, "bug", right=bug.name, wrong=other)
        run.write_meta(replace(run.meta, is_suspect=False))  # the page has shown it
        with pytest.raises(StudentError, match="still be hidden"):
            pupil.answer("bug", bug.name)


def test_read_a_digit(store: RunStore) -> None:
    pupil = Pupil("read-a-digit", store)
    assert pupil.begun().patches_per_side ** 2 == 16
    pupil.trained(pupil.begun(), 0.886)  # as measured
    assert pupil.answer("blind").is_right
    assert not pupil.answer("seeing").is_right
    pupil.trained(pupil.begun(position="learned"), 0.962)
    assert pupil.answer("seeing").is_right
    pupil.runs = pupil.runs[:1]
    with pytest.raises(StudentError, match="None of your finished runs has the settings"):
        pupil.answer("blind")


def test_induction_heads(store: RunStore) -> None:
    pupil = Pupil("induction-heads", store)
    begun = pupil.begun()
    assert begun == PRESETS["induction"].experiment
    pupil.trained(pupil.begun(n_layers=1), 0.15)
    assert pupil.answer("one").is_right
    with pytest.raises(StudentError, match="None of your finished runs has the settings"):
        pupil.answer("two")
    pupil.trained(begun, 0.5)
    assert not pupil.answer("two").is_right
    pupil.trained(begun, 0.99)
    assert pupil.answer("two").is_right


def test_markov_chains(store: RunStore) -> None:
    pupil = Pupil("markov-chains", store)
    uniform, unigram, bigram = CHAINS.levels(CHAINS.base).values()
    assert uniform == pytest.approx(1.099, abs=5e-4)
    pairs, letters = (pupil.lesson.task(name) for name in ("pairs", "letters"))
    assert isinstance(pairs, Reached)
    assert isinstance(letters, Reached)
    assert pairs.at_most is not None
    assert letters.at_least is not None
    # between the floors: only counting pairs comes below, and counting states stays above
    assert bigram < pairs.at_most < letters.at_least < unigram


def test_carry_the_one(store: RunStore) -> None:
    pupil = Pupil("carry-the-one", store)
    columns = [sum(bits) for bits in itertools.product((0, 1), repeat=3)]
    assert pupil.answer("cases", len(columns)).is_right
    carries = [(5 % 2**n + 3 % 2**n) >> n for n in range(4)]  # into each column
    assert pupil.answer("carries", sum(carries)).is_right


def test_by_heart(store: RunStore) -> None:
    pupil = Pupil("by-heart", store)
    begun = pupil.begun()
    assert begun == PRESETS["memorising"].experiment
    task = begun.task_as(ImageTaskConfig)
    assert task.label_noise == 0.3
    pupil.trained(begun, 0.55)  # as measured
    assert pupil.answer("noisy").is_right
    with pytest.raises(StudentError, match="None of your finished runs has the settings"):
        pupil.answer("clean")
    clean = begun.replace(task=task.replace(label_noise=0.0).model_dump())
    pupil.lesson.check(clean)
    pupil.trained(clean, 0.7)
    assert not pupil.answer("clean").is_right
    pupil.trained(clean, 0.84)
    assert pupil.answer("clean").is_right


def test_idle_heads(store: RunStore) -> None:
    pupil = Pupil("idle-heads", store)
    bigram, copying = SINKS.levels(SINKS.base).values()
    for name, sink in (("softmax", "none"), ("zero", "zero")):
        with pytest.raises(StudentError, match=r"train a run|None of your finished runs"):
            pupil.answer(name)
        experiment, task = pupil.begun(sink=sink), pupil.lesson.task(name)
        assert isinstance(task, Reached)
        assert task.at_most is not None
        assert copying < task.at_most < bigram  # no model comes below without copying
        for loss, is_right in ((bigram, False), (2.152, True)):  # as measured, of both
            pupil.runs.insert(0, finished_run(store, experiment, accuracy=0.3, loss=loss))
            assert pupil.answer(name).is_right == is_right


def test_first_roles(store: RunStore) -> None:
    run = store.get("recorded-korean")
    table = roles.timeline(run)
    first = roles.first_taken(table)
    assert first["role"].tolist() == ["aligned", "previous"]
    assert sum(rows["role"].iloc[-1] == "aligned" for rows in roles.heads(table)) > 1
    aligned = first.iloc[0]
    assert roles.without(run, part_of(aligned["module"], aligned["head"])) > 0.95
    together = roles.timeline(store.get("recorded-induction-two-layers"))
    taken = roles.first_taken(together).set_index("role")["step"]
    steps = together["step"].unique().tolist()
    assert abs(steps.index(taken["previous"]) - steps.index(taken["induction"])) <= 2


def test_runs_that_have_not_ended_count_for_nothing(store: RunStore) -> None:
    pupil = Pupil("read-a-digit", store)
    pupil.runs = [store.create(pupil.begun(), state="stopped")]
    with pytest.raises(StudentError, match="to its end"):
        pupil.answer("blind")


@pytest.mark.parametrize(
    ("given", "is_right"), [("recorded-no-mask", True), ("recorded-causal-mask", False)]
)
def test_one_of_several_runs_can_be_the_one_with_the_bug(
    store: RunStore, given: str, is_right: bool
) -> None:
    task = Pupil("name-the-bug", store).lesson.task("bug")
    assert task is not None
    chosen = task.replace(runs=["recorded-causal-mask", "recorded-no-mask"])
    work = Work(Pupil("name-the-bug", store).lesson.words().tasks["bug"], None, [], store)
    assert list(chosen.options(work.words)) == ["recorded-causal-mask", "recorded-no-mask"]
    assert chosen.judge(chosen.answer_of(given, work.words), work).is_right == is_right
