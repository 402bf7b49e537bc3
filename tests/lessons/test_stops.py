"""What a tour asks and waits for is answered by the run itself, and its words are short."""

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tfm_core.choices.presets import PRESETS
from tfm_core.inspect.attention import alignment
from tfm_core.inspect.knockouts import measure
from tfm_core.inspect.questions import Question
from tfm_core.lessons import catalogue, stops
from tfm_core.lessons.stops import UNKNOWN, Stop
from tfm_core.lessons.task import Verdict, Work
from tfm_core.lessons.words import TaskWords
from tfm_core.probe.labels import axes
from tfm_core.runs.curves import Curves
from tfm_core.runs.outcome import loss_progress
from tfm_core.runs.run import Run
from tfm_core.runs.status import write_status
from tfm_core.runs.store import RECORDED, RunStore
from tfm_core.sentences import StudentError

MIN_PROGRESS = 0.15  # of the way, as the page says it

KOREAN, DIGITS = Run(RECORDED / "recorded-korean"), Run(RECORDED / "recorded-digits")
OF_PICTURES = {
    "sure-at-random",
    "patches-read",
    "reads-most",
    "attention-on-ink",
    "without-positions",
}
ASKED = [(ask, DIGITS if name in OF_PICTURES else KOREAN) for name, ask in stops.QUESTIONS.items()]
MEASURED = (stops.without_mask, stops.without_cross_attention, stops.without_positions)


def of(run: Run, *, is_answered: bool = True) -> Work:
    words, store = TaskWords(""), RunStore(recorded=None)
    return Work(words, None, [run], store, run.thinned_curves(), is_answered)


@pytest.mark.parametrize(("ask", "run"), ASKED)
def test_a_recorded_run_answers_every_question_with_one_of_a_few_options(
    ask: Callable[[Work], Question], run: Run
) -> None:
    asked = ask(of(run))
    assert asked.answer in asked.options
    assert 2 <= len(set(asked.options)) == len(asked.options) <= 3
    assert asked.because


@pytest.mark.parametrize("ask", MEASURED)
def test_what_takes_seconds_is_measured_once_somebody_has_answered(
    ask: Callable[[Work], Question],
) -> None:
    run = DIGITS if ask is stops.without_positions else KOREAN
    before, after = ask(of(run, is_answered=False)), ask(of(run))
    assert before.answer == UNKNOWN
    assert before.options == after.options
    assert before.text == after.text


def test_answers_of_the_questions_are_those_of_models_and_snapshots() -> None:
    off = stops.cross_attention(KOREAN.experiment)
    assert {part.code for part in off} == {
        f"decoder.{layer}.cross" for layer in range(1, KOREAN.experiment.model.n_decoder_layers + 1)
    }
    n = measure.default_examples(KOREAN)
    before = measure.score_without(KOREAN, (), "zero", n).accuracy
    after = measure.score_without(KOREAN, off, "zero", n).accuracy
    asked = stops.without_cross_attention(of(KOREAN))
    kept = after / before
    assert asked.options.index(asked.answer) == (0 if kept >= 0.9 else 2 if kept <= 0.1 else 1)
    assert f"{100 * after:.1f}%" in asked.because
    asked = stops.where_it_reads(of(KOREAN))
    item, snapshot = KOREAN.probe().items[0], KOREAN.snapshot(KOREAN.snapshot_steps()[-1])
    best = alignment.best_head(
        alignment.scores_of_snapshot(KOREAN.experiment, KOREAN.probe(), snapshot)
    )
    assert best is not None
    module, head = best["module"], best["head"] - 1
    keys = axes(KOREAN.experiment, item, module).key
    rows = [n for n, token in enumerate(item["tgt"]) if f"“{token}”" in asked.text]
    strongest = {keys[int(snapshot.attention[module][0, head, row].argmax())] for row in rows}
    assert asked.answer.strip("“”") in strongest
    assert all(option.strip("“”") in keys for option in asked.options)
    score = stops.newest_alignment(KOREAN)
    shares = np.array([row["share"] for row in score if row["kind"] == "cross"])
    asked = stops.heads_that_align(of(KOREAN))
    assert f"{int((shares >= 0.5).sum())} of {len(shares)}" in asked.because
    curves = KOREAN.thinned_curves()
    progress = loss_progress(curves)
    assert progress is not None
    step = stops.guessing_left_at(curves)
    assert step in progress.steps
    assert np.all(progress.shares[progress.steps < step] < MIN_PROGRESS)
    assert stops.left_guessing(of(KOREAN)) == Verdict(
        True, f"The loss fell below guessing at step {step:,}."
    )


def test_a_run_without_a_step_waits_and_knows_no_answer(store: RunStore) -> None:
    run = store.create(KOREAN.experiment, name="New")
    on = Work(TaskWords(""), None, [run], store, Curves())
    for wait in (stops.left_guessing, stops.head_aligns, stops.is_trained):
        waited = wait(on)
        assert not waited.is_right
        assert waited.sentence
    for ask in (stops.right_at_random, stops.leaves_guessing, stops.heads_that_align):
        assert ask(on).answer == UNKNOWN
    with pytest.raises(ValueError, match="yet"):
        stops.where_it_reads(on)


def test_a_run_counts_as_trained_once_it_has_ended_with_weights(tmp_path: Path) -> None:
    shutil.copytree(KOREAN.folder, tmp_path / "copy")
    run = Run(tmp_path / "copy")
    assert stops.is_trained(of(run)).is_right
    write_status(run.folder, dataclasses.replace(run.status, state="queued", step=97))
    assert "97" in stops.is_trained(of(run)).sentence
    assert not stops.is_trained(of(run)).is_right


@pytest.mark.parametrize("name", ["translate", "digit", "discover"])
def test_every_answer_of_a_stop_is_judged_as_its_run_answers(name: str) -> None:
    tour = catalogue.lesson(name)
    assert tour.over is not None
    run = Run(RECORDED / tour.over.recorded)
    assert tour.over.fits(run.experiment)
    assert tour.over.fits(PRESETS[tour.over.preset].experiment)
    for stop in tour.tasks:
        assert isinstance(stop, Stop)
        assert 10 <= len(tour.words().tasks[stop.id].text.split()) <= 50
        assert stop.query(run)["run"] == run.id
        asked = stop.asked(of(run))
        if asked is None:
            with pytest.raises(StudentError, match="what the run shows"):
                stop.judge("", of(run))
            continue
        verdicts = {option: stop.judge(option, of(run)).is_right for option in asked.options}
        assert verdicts == {option: option == asked.answer for option in asked.options}


def test_a_tour_leaves_out_models_without_what_it_switches_off() -> None:
    seen = PRESETS["translate"].experiment
    blind = seen.replace(model=seen.model.replace(mistakes=("no-causal-mask",)).model_dump())
    placed = PRESETS["vit-digits"].experiment
    adrift = placed.replace(model=placed.model.replace(position="none").model_dump())
    for name, experiment in (("translate", blind), ("digit", adrift)):
        over = catalogue.lesson(name).over
        assert over is not None
        assert not over.fits(experiment)
