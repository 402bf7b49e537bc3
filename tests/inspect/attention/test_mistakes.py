"""What went wrong on the validation set."""

import numpy as np
import pytest
import torch

from tests.inspect.constructed import constructed_run, small, text_experiment, vit_experiment
from tfm_core.decoding import Decoded
from tfm_core.inspect.attention.mistakes import read_one, what_went_wrong
from tfm_core.inspect.attention.own_example import look_at_picture, look_at_text
from tfm_core.inspect.attention.trained import data_of
from tfm_core.runs.execute import execute
from tfm_core.runs.store import RunStore


@pytest.fixture(scope="module", params=["text", "image"])
def run(request, tmp_path_factory):
    experiment = text_experiment() if request.param == "text" else vit_experiment()
    run = RunStore(tmp_path_factory.mktemp("runs"), recorded=None).create(small(experiment))
    assert execute(run).state == "finished"
    return run


def test_the_wrong_ones_come_first_and_the_surest_of_them_before(run):
    readings = what_went_wrong(run, limit=53, shown=31)
    found = readings.found
    assert len(found) == min(31, readings.n_read)
    assert readings.step == 3
    wrong = [reading.confidence for reading in found if not reading.is_right]
    assert wrong == sorted(wrong, reverse=True)
    assert all(not reading.is_right for reading in found[: len(wrong)])
    assert readings.n_wrong >= len(wrong) > 0
    assert all((reading.said == reading.truth) == reading.is_right for reading in found)


def test_what_it_said_is_what_it_says_when_asked_again(run):
    for reading in what_went_wrong(run, limit=7).found[:3]:
        if reading.picture is None:
            again = look_at_text(run, reading.item["src_text"])
            longest = run.experiment.task.max_tgt_len  # maps show no token beyond it
            assert again.answer == reading.tokens[:longest]
        else:
            again = look_at_picture(run, reading.picture)
            assert float(np.max(again.probabilities)) == pytest.approx(reading.confidence, abs=1e-5)


def test_one_is_read_as_it_is_among_the_others(run):
    for reading in what_went_wrong(run, limit=11).found[:3]:
        alone = read_one(run, reading.index)
        assert (alone.index, alone.said, alone.tokens) == (
            reading.index,
            reading.said,
            reading.tokens,
        )
        assert alone.confidence == pytest.approx(reading.confidence, abs=1e-5)
    with pytest.raises(ValueError, match="no validation example 10,001; the last one is"):
        read_one(run, 10_000)


def test_without_weights_there_is_nothing_to_go_wrong(tmp_path):
    run = constructed_run(RunStore(tmp_path, recorded=None), text_experiment())
    with pytest.raises(ValueError, match="no checkpoint"):
        what_went_wrong(run)


def test_an_answer_that_never_ends_is_wrong_even_on_the_longest_examples(run, monkeypatch):
    """The model copies the truth and then goes on: only <eos> would have made it right."""
    task = run.experiment.task
    if task.kind == "image":
        pytest.skip("a class has no end")
    longest = task.max_tgt_len

    def endless(model, src, *, max_len):
        data = data_of(run.experiment).validation
        ids = torch.full((len(src), max_len), 4)
        for row, pair in enumerate(data.pairs[: len(src)]):
            truth = vocabulary.encode(pair.tgt)
            ids[row, : len(truth)] = torch.tensor(truth)
        return Decoded(ids, torch.ones(ids.shape))

    vocabulary = data_of(run.experiment).task.tgt_vocabulary
    monkeypatch.setattr("tfm_core.decoding.greedy", endless)
    readings = what_went_wrong(run, limit=61, shown=61)
    assert any(len(reading.item["tgt"]) == longest for reading in readings.found)
    assert readings.n_wrong == readings.n_read
