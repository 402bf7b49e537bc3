"""Looking into captioners: maps, boxes, scores, composed pictures and unseen ones."""

import numpy as np
import pytest
import torch

from tests.probe.expected_masks import expected_mask
from tests.training.test_loop import experiment
from tfm_core.choices.config import CaptionTaskConfig
from tfm_core.data.caption_words import PlacedDigit, caption
from tfm_core.inspect.attention import alignment
from tfm_core.inspect.attention.example import example_of
from tfm_core.inspect.attention.maps import head_map
from tfm_core.inspect.text import captions
from tfm_core.inspect.text import captions as caption_scores
from tfm_core.probe import labels
from tfm_core.probe.items import caption_item
from tfm_core.probe.snapshot import probe_of, take
from tfm_core.runs.snapshots import write_probe, write_snapshot
from tfm_core.runs.store import RunStore
from tfm_core.training.checkpoints import save
from tfm_core.training.loop import build

SETTINGS = {"n_decoder_layers": 2, "position": "learned"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of an untrained model, its probe, one snapshot and its weights."""
    chosen = experiment("captioner", "captions", model=SETTINGS)
    made = RunStore(tmp_path_factory.mktemp("runs")).create(chosen, state="finished")
    trainer = build(chosen)
    write_probe(made.folder, probe_of(trainer))
    write_snapshot(made.folder, take(trainer))
    save(trainer, made.folder / "checkpoints" / "last")
    return made


def test_pictures_words_and_maps_of_the_probe_have_their_tokens(run):
    probe = run.probe()
    assert probe.kind == "caption"
    assert probe.images.shape[1:] == (1, 49, 49)
    for item in probe.items:
        named = [index for index, box in enumerate(item["boxes"]) if box is not None]
        assert len(named) == 2
        assert all(bool(item["alignment"][t]) == (t in named) for t in range(len(item["tgt"])))
        for index in named:
            left, top, right, bottom = item["boxes"][index]
            assert item["alignment"][index] == [
                row * 7 + column
                for row in range(top // 7, -(-bottom // 7))
                for column in range(left // 7, -(-right // 7))
            ]
    experiment, probe = run.experiment, run.probe()
    kinds = labels.modules_by_kind(experiment)
    assert {name: len(of) for name, of in kinds.items()} == {
        "patches": 2,
        "decoder": 2,
        "picture": 2,
    }
    for index, item in enumerate(probe.items):
        example = example_of(experiment, probe, run.snapshot(0), index)
        for modules in kinds.values():
            for module in modules:
                names = labels.axes(experiment, item, module)
                weights = example.attention[module]
                assert weights.shape == (2, len(names.query), len(names.key))
                mask = expected_mask(experiment, item, module)
                np.testing.assert_array_equal(example.masks[module], mask)
                assert (weights[:, ~mask] == 0).all()
                np.testing.assert_allclose(weights.astype(np.float32).sum(-1), 1, atol=5e-3)
    data = captions.data_of(run.experiment)
    laid_out = captions.unseen_scene(run, 5)
    composed = [
        captions.Piece(placed, captions.unseen_digits(run, placed.number)[hand])
        for placed, hand in laid_out
    ]
    picture, _boxes = captions.compose_pieces(composed)
    assert np.array_equal(picture, data.test.pictures(torch.tensor([5]))[0].numpy())
    look = captions.look_at_unseen(run, 5)
    assert np.array_equal(look.example.picture, picture)
    assert look.example.item["truth"] == list(data.test.captions[5].words)


def test_composed_pictures_are_described_and_heads_scored_in_their_boxes(run):
    probe, snapshot = run.probe(), run.snapshot(0)
    assert alignment.can_be_scored(run.experiment, probe)
    found = alignment.score(run.experiment, probe, snapshot)
    assert list(found["module"].unique()) == labels.modules_by_kind(run.experiment)["picture"]
    for module, score in found.groupby("module"):
        expected = []
        for index, item in enumerate(probe.items):
            weights = snapshot.attention[module][index].astype(np.float32)
            expected += [
                weights[:, t, patches].sum(-1)
                for t, patches in enumerate(item["alignment"])
                if patches
            ]
        np.testing.assert_allclose(score.share, np.mean(expected, 0), atol=1e-3)
        assert score["chance"].between(0.1, 0.4).all()
    look = captions.look_at_unseen(run, 3)
    share = np.arange(4.0).reshape(2, 2) / 8
    word = {"text": "three", "likely": (), "box": (0, 0, 7, 7), "share": share}
    told = captions.CaptionReading(look.example, (word, *look.words), look.maps, 0.1)
    (row, *_) = caption_scores.digit_scores(told, 1, 0).itertuples(index=False)
    assert tuple(row) == ("three", 0.25, 0.375, 2, 2)
    assert caption_scores.digit_scores(told, 1)["share"][0] == pytest.approx(0.3125)
    assert head_map(look.maps, 0).shape == look.maps.shape[2:]
    look = captions.look_at_scene(run, pieces(run, (7, 0, 0), (3, 28, 14)))
    assert look.example.item["tgt_text"] == "a three right of a seven"
    n_words = len(look.words)
    assert look.maps.shape == (2, 2, n_words, 7, 7)
    np.testing.assert_allclose(look.maps.sum((-1, -2)), 1, atol=1e-5)
    for word, sure in zip(look.words, look.example.confidence, strict=False):
        assert word["likely"][0][0] == word["text"]
        assert word["likely"][0][1] == pytest.approx(float(sure), abs=1e-5)
        assert list(word["likely"]) == sorted(word["likely"], key=lambda one: -one[1])


def pieces(run, *squares):
    return [
        captions.Piece(PlacedDigit(n, left, top), captions.unseen_digits(run, n)[3])
        for n, left, top in squares
    ]


def test_what_is_written_is_scored_by_the_box_that_its_word_names():
    scene = (PlacedDigit(7, 0, 0), PlacedDigit(7, 28, 28), PlacedDigit(3, 28, 0))
    config = CaptionTaskConfig(n_digits=3)
    boxes = [(0, 0, 21, 21), (28, 28, 49, 49), (28, 0, 49, 21)]
    truth = caption_item(config, caption(scene, config), boxes, 7)
    assert truth["tgt_text"].startswith("a three right of a seven, ")
    said = captions.written_item(("seven", "eight", "seven", "three", "three"), truth, "")
    assert said["boxes"] == [list(boxes[0]), None, list(boxes[1]), list(boxes[2]), None]
    assert said["alignment"][1] == []
    assert said["truth"] == truth["tgt"]


@pytest.mark.parametrize(
    ("places", "sentence"),
    [
        (((7, 0, 0), (3, 14, 14)), "Digits 1 and 2 overlap"),
        (((7, 0, 0), (3, 35, 0)), "Digit 2 lies outside the 49 × 49 picture"),
        (((7, 0, 0),), "pictures of 2 digits; this one has 1"),
    ],
)
def test_what_cannot_be_composed_is_said(run, places, sentence):
    with pytest.raises(ValueError, match=sentence):
        captions.look_at_scene(run, pieces(run, *places))
