"""Answers to validation examples: computed once, right ones known, the wrong ones first."""

import numpy as np
import pytest
import torch

from tests.inspect.constructed import small, text_experiment, vit_experiment
from tfm_core.data.tasks import load
from tfm_core.data.vocabulary import BOS, EOS, PAD
from tfm_core.decoding.greedy import Decoded
from tfm_core.inspect import errors
from tfm_core.inspect.answers import Answers, answer_one, answers, text_answers, wrong_first
from tfm_core.inspect.attention.example import look_at_picture, look_at_text
from tfm_core.inspect.attention.trained import data_of, model_of, steps_of, weights_mark
from tfm_core.inspect.errors import by_example, groupings, worst_texts
from tfm_core.runs.process.execute import execute
from tfm_core.runs.run import Run
from tfm_core.runs.store import RECORDED, RunStore
from tfm_core.training.setup import new_model

KINDS = ["digits", "korean", "sentiment", "masked-words", "grammar", "captions"]


@pytest.fixture(scope="module", params=KINDS)
def asked(request: pytest.FixtureRequest) -> tuple[Run, Answers]:
    run = Run(RECORDED / f"recorded-{request.param}", recorded=True)
    return run, answers(run, steps_of(run)[-1])


@pytest.mark.core(2)
def test_the_mean_loss_and_the_share_right_are_those_of_the_training(
    asked: tuple[Run, Answers],
) -> None:
    run, found = asked
    measured = run.curves().validation
    assert found.n_examples == found.n_all
    assert found.loss.mean() == pytest.approx(measured.last("loss"), rel=0.01, abs=1e-5)
    share = found.n_right / len(found.truth)
    assert share == pytest.approx(measured.last("accuracy"), abs=0.003)


def test_every_grouping_holds_answers_and_whole_texts_once(asked: tuple[Run, Answers]) -> None:
    run, found = asked
    for name, way in groupings(found, run.experiment).items():
        groups = way.groups(found, run.experiment)
        whole = len(found.items) if way.is_of_texts else len(found.truth)
        assert groups["n"].sum() == whole or name == "pattern"
        assert groups["accuracy"].between(0, 1).all()


def test_tokens_are_asked_after_the_true_beginning() -> None:
    """The third token of the third text, asked alone, behind the two that are true."""
    run = Run(RECORDED / "recorded-korean", recorded=True)
    found = answers(run, 78, limit=17)
    model, data = answers_model(run, 78), data_of(run.experiment).validation
    for example, position in ((2, 2), (11, 4)):
        tgt = data.tgt[example]
        assert tgt[0] == BOS
        with torch.inference_mode():
            logits = model(data.src[example, None], tgt[None, : position + 1])[0, -1]
        (place,) = np.flatnonzero((found.example == example) & (found.position == position))
        assert found.truth[place] == tgt[position + 1]
        assert found.predicted[place] == logits.argmax()
        assert found.confidence[place] == pytest.approx(float(logits.softmax(-1).max()), abs=1e-5)
        wanted = -float(logits.log_softmax(-1)[tgt[position + 1]])
        assert found.loss[place] == pytest.approx(wanted, abs=1e-4)


def answers_model(run: Run, step: int) -> torch.nn.Module:
    from tfm_core.inspect.attention.trained import model_at

    return model_at(run, step)


def test_earlier_weights_err_more_and_their_errors_are_shown() -> None:
    run = Run(RECORDED / "recorded-korean", recorded=True)
    steps = steps_of(run)
    assert steps[0] == 0
    assert steps[-1] == model_of(run)[1]
    early, late = (answers(run, step, limit=37) for step in (steps[-3], steps[-1]))
    assert early.n_right < late.n_right
    assert (early.n_examples, early.n_all) == (37, 500)
    is_right, _loss = by_example(early)
    worst = worst_texts(early, "loss").tolist()
    assert sorted(worst) == np.flatnonzero(~is_right).tolist()
    at, predicted, true = errors.first_difference(early, worst[0])
    assert early.written[worst[0]].tokens[at : at + 1] == (predicted,) != (true,)
    assert weights_mark(run, steps[-3]) != weights_mark(run, steps[-1])


def test_surprises_are_read_up_to_their_token_and_progress_is_reported() -> None:
    run = Run(RECORDED / "recorded-grammar", recorded=True)
    found = answers(run, steps_of(run)[-1], limit=31)
    assert found.is_language
    (place,) = np.flatnonzero((found.example == 5) & (found.position == 2))
    before, text = errors.surprise_context(run, found, int(place))
    words = found.items[5]["tgt"]
    assert text.split() == list(words[:3])
    assert before.split() == list(words[:2])
    run = Run(RECORDED / "recorded-digits", recorded=True)
    heard: list[float] = []
    answers(run, steps_of(run)[1], heard.append, limit=270)
    assert heard == sorted(heard)
    assert heard[-1] == 1
    assert len(heard) > 1


@pytest.fixture(scope="module", params=["text", "image"])
def run(request, tmp_path_factory):
    experiment = text_experiment() if request.param == "text" else vit_experiment()
    run = RunStore(tmp_path_factory.mktemp("runs"), recorded=None).create(small(experiment))
    assert execute(run).state == "finished"
    return run


def test_the_surest_wrong_ones_come_first_as_asked_again_or_among_others(run):
    found = wrong_first(run, limit=53)
    assert len(found) == min(53, len(data_of(run.experiment).validation))
    wrong = [reading.confidence for reading in found if not reading.is_right]
    assert wrong == sorted(wrong, reverse=True)
    assert all(not reading.is_right for reading in found[: len(wrong)])
    assert wrong
    assert all((reading.predicted == reading.truth) == reading.is_right for reading in found)
    for reading in wrong_first(run, limit=7)[:3]:
        if reading.picture is None:
            again = look_at_text(run, reading.item["src_text"])
            longest = run.experiment.task.max_tgt_len
            assert list(again.answer) == list(reading.tokens[:longest])
            assert again.item["goes_on"] == (len(reading.tokens) > longest)
        else:
            again = look_at_picture(run, reading.picture)
            assert float(np.max(again.probabilities)) == pytest.approx(reading.confidence, abs=1e-5)
    for reading in wrong_first(run, limit=11)[:3]:
        alone = answer_one(run, reading.index)
        assert (alone.index, alone.predicted, alone.tokens) == (
            reading.index,
            reading.predicted,
            reading.tokens,
        )
        assert alone.confidence == pytest.approx(reading.confidence, abs=1e-5)
    with pytest.raises(ValueError, match="no validation example 10,001; the last is"):
        answer_one(run, 10_000)


def test_an_answer_that_never_ends_is_wrong_on_the_longest_examples_too(monkeypatch):
    experiment = small(text_experiment())
    data = load(experiment.task, seed=experiment.seed)
    rows = range(len(data.validation))
    truth = data.validation.tgt[:, 1:]
    assert experiment.task.max_tgt_len in {len(pair.tgt) for pair in data.validation.pairs}
    first = data.task.tgt_vocabulary.id_of(data.validation.pairs[0].tgt[0])
    endless = torch.where((truth == EOS) | (truth == PAD), first, truth)

    def right(written):
        def greedy(model, src, *, max_len):
            ids = written[:, :max_len]
            return Decoded(ids, torch.ones(ids.shape))

        monkeypatch.setattr("tfm_core.decoding.greedy", greedy)
        readings = text_answers(experiment, new_model(experiment), data, rows)
        assert all((one.predicted == one.truth) == one.is_right for one in readings)
        return {one.is_right for one in readings}

    assert right(truth) == {True}
    assert right(endless) == {False}
