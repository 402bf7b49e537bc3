"""What a tour asks and waits for is answered by the run itself."""

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tfm_core.inspect.attention import alignment
from tfm_core.inspect.knockouts import measure
from tfm_core.inspect.questions import Question
from tfm_core.inspect.tours import questions, waits
from tfm_core.inspect.tours.questions import UNKNOWN
from tfm_core.inspect.tours.waits import TourRun, Waited
from tfm_core.probe.labels import axes
from tfm_core.runs.curves import Curves
from tfm_core.runs.record.outcome import loss_progress
from tfm_core.runs.run import Run
from tfm_core.runs.status import write_status
from tfm_core.runs.store import RECORDED, RunStore

MIN_PROGRESS = 0.15  # of the way, as the page says it

KOREAN, DIGITS = Run(RECORDED / "recorded-korean"), Run(RECORDED / "recorded-digits")
OF_TEXT = (
    questions.right_at_random,
    questions.leaves_guessing,
    questions.heads_that_align,
    questions.where_it_reads,
    questions.without_mask,
    questions.decoder_passes,
    questions.without_cross_attention,
)
OF_PICTURES = (
    questions.sure_at_random,
    questions.patches_read,
    questions.reads_most,
    questions.attention_on_ink,
    questions.without_positions,
)
ASKED = [*((ask, KOREAN) for ask in OF_TEXT), *((ask, DIGITS) for ask in OF_PICTURES)]
MEASURED = (
    questions.without_mask,
    questions.without_cross_attention,
    questions.without_positions,
)


def of(run: Run, *, is_answered: bool = True) -> TourRun:
    return TourRun(run, run.thinned_curves(), is_answered)


@pytest.mark.parametrize(("ask", "run"), ASKED)
def test_a_recorded_run_answers_every_question_with_one_of_a_few_options(
    ask: Callable[[TourRun], Question], run: Run
) -> None:
    asked = ask(of(run))
    assert asked.answer in asked.options
    assert 2 <= len(set(asked.options)) == len(asked.options) <= 3
    assert asked.because


@pytest.mark.parametrize("ask", MEASURED)
def test_what_takes_seconds_is_measured_once_somebody_has_answered(
    ask: Callable[[TourRun], Question],
) -> None:
    run = DIGITS if ask is questions.without_positions else KOREAN
    before, after = ask(of(run, is_answered=False)), ask(of(run))
    assert before.answer == UNKNOWN
    assert before.options == after.options
    assert before.text == after.text


def test_answers_of_the_questions_are_those_of_models_and_snapshots() -> None:
    off = questions.cross_attention(KOREAN.experiment)
    assert {part.code for part in off} == {
        f"decoder.{layer}.cross" for layer in range(1, KOREAN.experiment.model.n_decoder_layers + 1)
    }
    n = measure.n_first(KOREAN)
    before = measure.measured(KOREAN, (), "zero", n).accuracy
    after = measure.measured(KOREAN, off, "zero", n).accuracy
    asked = questions.without_cross_attention(of(KOREAN))
    kept = after / before
    assert asked.options.index(asked.answer) == (0 if kept >= 0.9 else 2 if kept <= 0.1 else 1)
    assert f"{100 * after:.1f}%" in asked.because
    asked = questions.where_it_reads(of(KOREAN))
    item, snapshot = KOREAN.probe().items[0], KOREAN.snapshot(KOREAN.snapshot_steps()[-1])
    best = alignment.best_head(alignment.of_snapshot(KOREAN.experiment, KOREAN.probe(), snapshot))
    assert best is not None
    module, head = best["module"], best["head"] - 1
    keys = axes(KOREAN.experiment, item, module).key
    rows = [n for n, token in enumerate(item["tgt"]) if f"“{token}”" in asked.text]
    strongest = {keys[int(snapshot.attention[module][0, head, row].argmax())] for row in rows}
    assert asked.answer.strip("“”") in strongest
    assert all(option.strip("“”") in keys for option in asked.options)
    score = waits.newest_alignment(KOREAN)
    shares = np.array([row["share"] for row in score if row["kind"] == "cross"])
    asked = questions.heads_that_align(of(KOREAN))
    assert f"{int((shares >= 0.5).sum())} of {len(shares)}" in asked.because
    curves = KOREAN.thinned_curves()
    progress = loss_progress(curves)
    assert progress is not None
    step = waits.guessing_left_at(curves)
    assert step in progress.steps
    assert np.all(progress.shares[progress.steps < step] < MIN_PROGRESS)
    assert waits.left_guessing(of(KOREAN)) == Waited(
        True, f"The loss left guessing at step {step:,}."
    )


def test_a_run_without_a_step_waits_and_knows_no_answer(store: RunStore) -> None:
    run = store.create(KOREAN.experiment, name="New")
    on = TourRun(run, Curves())
    for wait in (waits.left_guessing, waits.head_aligns, waits.is_trained):
        waited = wait(on)
        assert not waited.has_happened
        assert waited.sentence
    for ask in (questions.right_at_random, questions.leaves_guessing, questions.heads_that_align):
        assert ask(on).answer == UNKNOWN
    with pytest.raises(ValueError, match="yet"):
        questions.where_it_reads(on)


def test_a_run_counts_as_trained_once_it_has_ended_with_weights(tmp_path: Path) -> None:
    shutil.copytree(KOREAN.folder, tmp_path / "copy")
    run = Run(tmp_path / "copy")
    assert waits.is_trained(of(run)).has_happened
    write_status(run.folder, dataclasses.replace(run.status, state="queued", step=97))
    assert "97" in waits.is_trained(of(run)).sentence
    assert not waits.is_trained(of(run)).has_happened
