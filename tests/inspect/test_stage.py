"""The stage of a run: answers, labels and weights at each snapshot, as they are drawn."""

import dataclasses

import numpy as np
import pytest

from tests.pages.learned_runs import learned_run
from tests.probe.expected_masks import expected_mask
from tfm_core.inspect import stage
from tfm_core.inspect.attention import alignment
from tfm_core.probe.labels import axes, modules_by_kind
from tfm_core.runs.run import Run
from tfm_core.runs.snapshots import write_snapshot
from tfm_core.runs.store import RECORDED, RunStore


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path)


def test_every_snapshot_is_a_frame_with_an_answer_to_each_example_and_a_label_of_each_head(store):
    run = learned_run(store, "reverse")
    shown = stage.read_stage(run)
    model, items = run.experiment.model, run.probe().items
    assert shown.steps == (1, 211)
    assert shown.kind == "cross"
    assert set(shown.kinds) == {"cross", "encoder", "decoder"}
    for frame in shown.frames:
        assert len(frame["answers"]) == len(items)
        assert len(frame["labels"]) == model.n_decoder_layers * model.n_heads
    assert shown.weights is not None
    assert shown.weights.shape[:3] == (2, model.n_decoder_layers, model.n_heads)
    assert shown.weights.shape[3:] == (len(shown.maps.query), len(shown.maps.key))


def test_weights_are_those_of_the_snapshot_cut_to_the_example_and_nan_where_masked(store):
    run = learned_run(store, "reverse")
    for index in (0, 2):
        shown = stage.read_stage(run, "decoder", index)
        module = modules_by_kind(run.experiment)["decoder"][0]
        names = axes(run.experiment, run.probe().items[index], module)
        rows, columns = names.shape
        mask = expected_mask(run.experiment, run.probe().items[index], module)
        own = run.snapshot(211).attention[module][index][:, :rows, :columns]
        drawn = shown.weights[-1, 0]
        assert np.isnan(drawn[:, ~mask]).all()
        np.testing.assert_array_equal(drawn[:, mask], own[:, mask])


def test_an_answer_is_right_where_every_token_is_unless_a_text_goes_on(store):
    run = learned_run(store, "reverse")
    truth = [tuple(item["tgt"]) for item in run.probe().items]
    for frame in stage.read_stage(run).frames:
        assert [answer["right"] for answer in frame["answers"]] == [
            answer["tokens"] == true for answer, true in zip(frame["answers"], truth, strict=True)
        ]
    shown = stage.read_stage(learned_run(store, "gpt-grammar"))
    assert {answer["right"] for frame in shown.frames for answer in frame["answers"]} == {None}


def test_pictures_get_their_likeliest_classes_and_one_row_over_the_patches(store):
    run = learned_run(store, "vit-digits")
    shown = stage.read_stage(run)
    assert shown.surface == "picture"
    assert shown.weights is not None
    assert shown.weights.shape[3:] == (1, shown.side**2)
    answer, probabilities = shown.frames[-1]["answers"][3], run.snapshot(211).probabilities[3]
    assert answer["classes"][0][1] == pytest.approx(float(probabilities.max()), abs=5.1e-5)
    assert [share for _name, share in answer["classes"]] == sorted(
        (share for _name, share in answer["classes"]), reverse=True
    )


def test_over_a_picture_lies_the_row_of_cls_or_else_the_mean_of_all_rows():
    maps = np.random.default_rng(3).random((2, 3, 5, 5)).astype(np.float16)
    np.testing.assert_array_equal(stage.over_picture(maps, has_cls=True), maps[:, :, :1, 1:])
    mean = stage.over_picture(maps, has_cls=False)
    assert mean.shape == (2, 3, 1, 5)
    np.testing.assert_allclose(mean[:, :, 0], maps.astype(np.float32).mean(2), atol=1e-3)


def test_without_attention_there_are_answers_and_no_maps(store):
    run = learned_run(store, "reverse")
    for step in (1, 211):
        bare = dataclasses.replace(run.snapshot(step), attention={})
        write_snapshot(run.folder, bare)
    shown = stage.read_stage(run)
    assert (shown.surface, shown.weights) == ("none", None)
    assert len(shown.frames[1]["answers"]) == len(run.probe().items)


def test_the_heads_that_show_most_come_first(store):
    run = Run(RECORDED / "recorded-korean", recorded=True)
    shown = stage.read_stage(run, "cross")
    scores = alignment.score(run.experiment, run.probe(), run.snapshot(shown.steps[-1]))
    assert list(shown.telling) == list(np.argsort(-scores["share"].to_numpy())[:4])
    others = stage.read_stage(run, "decoder").telling
    assert len(others) == len(set(others)) == 4


def test_a_translation_has_glosses_and_its_true_alignment_framed(store):
    translated = stage.read_stage(Run(RECORDED / "recorded-korean", recorded=True)).glosses
    assert translated is not None
    assert translated.language == "ko"
    assert translated.words["달걀"] == "egg"
    assert stage.read_stage(learned_run(store, "reverse")).glosses is None
    run = Run(RECORDED / "recorded-korean", recorded=True)
    item = run.probe().items[1]
    cells = [(row, column) for row, sources in enumerate(item["alignment"]) for column in sources]
    assert list(stage.read_stage(run, "cross", 1).truth) == cells
    assert stage.read_stage(run, "encoder", 1).truth == ()
    assert stage.read_stage(learned_run(store, "vit-digits")).truth == ()
