"""What went wrong on the validation set."""

import numpy as np
import pytest
import torch

from tests.inspect.constructed import small, text_experiment, vit_experiment
from tfm_core.data.tasks import load
from tfm_core.data.vocabulary import EOS, PAD
from tfm_core.decoding.greedy import Decoded
from tfm_core.inspect.answers import answer_one, text_answers, wrong_first
from tfm_core.inspect.attention.example import look_at_picture, look_at_text
from tfm_core.inspect.attention.trained import data_of
from tfm_core.runs.process.execute import execute
from tfm_core.runs.store import RunStore
from tfm_core.training.setup import new_model


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
