"""What a probe and its snapshots must look like, before anybody shows them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.inspect.constructed import (
    constructed_snapshot,
    items_of_text,
    text_experiment,
    vit_experiment,
)
from tfm_core.probe.form import check_probe, form_of
from tfm_core.probe.types import Probe, Snapshot
from tfm_core.reading import Unreadable

pytestmark = pytest.mark.quick

CROSS = "decoder.layers.0.cross_attention"
ENCODER = "encoder.layers.0.self_attention"


def text() -> tuple[Probe, Snapshot]:
    items = items_of_text()
    return Probe("text", items), constructed_snapshot(text_experiment(), items, 3)


def pictures() -> tuple[Probe, Snapshot]:
    items = [{"label": label} for label in (4, 0, 9)]
    probe = Probe("image", items, np.zeros((3, 1, 28, 28), np.uint8))
    return probe, constructed_snapshot(vit_experiment(), items, 3)


def test_what_fits_passes() -> None:
    for experiment, (probe, snapshot) in (
        (text_experiment(), text()),
        (vit_experiment(), pictures()),
    ):
        check_probe(experiment, probe)
        form_of(experiment, probe).check(snapshot)
        form_of(experiment, None).check(snapshot)  # as far as can be known without the probe
        form_of(experiment, probe).check(Snapshot(3))  # nothing was kept


MAPS = {
    "a layer too many": ({"decoder.layers.9.self_attention": np.zeros((3, 3, 9, 9))}, "layer"),
    "no layer": ({"x": np.zeros((3, 3, 9, 9))}, "layer"),
    "two heads": ({CROSS: np.zeros((3, 2, 9, 9))}, "has 2 heads, but this model 3"),
    "no heads": ({CROSS: np.zeros((3, 0, 9, 9))}, "has 0 heads"),
    "one axis less": ({CROSS: np.zeros((3, 9, 9))}, "examples"),
    "one number": ({CROSS: np.zeros(())}, "examples"),
    "other examples": ({CROSS: np.zeros((5, 3, 9, 9))}, "examples"),
    "short": ({ENCODER: np.zeros((3, 3, 4, 5))}, "too small for the examples"),
    "narrow": ({ENCODER: np.zeros((3, 3, 5, 4))}, "too small for the examples"),
}


def test_a_snapshot_of_another_form_is_refused() -> None:
    for name in MAPS:
        attention, sentence = MAPS[name]
        probe, snapshot = text()
        other = dataclasses.replace(snapshot, attention={**snapshot.attention, **attention})
        with pytest.raises(Unreadable, match=sentence):
            form_of(text_experiment(), probe).check(other)


def test_a_map_without_its_mask_is_refused() -> None:
    probe, snapshot = text()
    masks = {name: mask for name, mask in snapshot.masks.items() if name != CROSS}
    with pytest.raises(Unreadable, match=f"the mask of {CROSS} is missing"):
        form_of(text_experiment(), probe).check(dataclasses.replace(snapshot, masks=masks))


FEED_FORWARD = "encoder.layers.0.feed_forward"
ROUTES = {
    "no experts": (0, FEED_FORWARD, np.zeros((3, 9, 4))),
    "of an attention": (4, ENCODER, np.zeros((3, 9, 4))),
    "a layer too many": (4, "encoder.layers.9.feed_forward", np.zeros((3, 9, 4))),
    "other examples": (4, FEED_FORWARD, np.zeros((2, 9, 4))),
    "another expert": (4, FEED_FORWARD, np.zeros((3, 9, 5))),
    "tokens too few": (4, FEED_FORWARD, np.zeros((3, 1, 4))),
    "too large": (4, FEED_FORWARD, np.full((3, 9, 4), 1.5)),
    "no number": (4, FEED_FORWARD, np.full((3, 9, 4), np.nan)),
}


def test_routes_that_cannot_be_are_refused() -> None:
    probe, snapshot = text()
    plain = text_experiment()
    chosen = plain.replace(model=plain.model.replace(n_experts=4).model_dump())
    fitting = dataclasses.replace(snapshot, routing={FEED_FORWARD: np.full((3, 9, 4), 0.25)})
    form_of(chosen, probe).check(fitting)
    for n_experts, name, gates in ROUTES.values():
        other = dataclasses.replace(snapshot, routing={name: gates})
        with pytest.raises(Unreadable):
            form_of(chosen if n_experts else plain, probe).check(other)


ANSWERS = {
    "flat": {"ids": np.zeros(3, np.int32)},
    "no numbers of words": {"ids": np.zeros((3, 9), np.float32)},
    "fewer": {"confidence": np.zeros((2, 9))},
    "classes": {"probabilities": np.zeros((3, 10))},
    "a word": {"tokens": "abc"},
    "numbers": {"tokens": [[1], [2], [3]]},
    "half a character": {"texts": ["a", "\ud800", "b"]},
    "two texts": {"texts": ["a", "b"]},
    "more words than numbers": {"ids": np.zeros((3, 2), np.int32), "tokens": [["a"] * 9] * 3},
    "an empty table": {"embeddings": {"src_embedding": np.zeros((0, 12))}},
    "a flat table": {"embeddings": {"src_embedding": np.zeros(12)}},
    "another width": {"positions": {"encoder.positions.table": np.zeros((9, 11))}},
    "other buckets": {"positions": {"encoder.relative.table": np.zeros((9, 3))}},
}


def test_answers_and_tables_of_another_form_are_refused() -> None:
    for name in ANSWERS:
        probe, snapshot = text()
        with pytest.raises(Unreadable):
            form_of(text_experiment(), probe).check(dataclasses.replace(snapshot, **ANSWERS[name]))


def test_a_snapshot_of_words_is_none_of_pictures() -> None:
    with pytest.raises(Unreadable, match="does not hold the predictions of a model of pictures"):
        form_of(vit_experiment(), None).check(Snapshot(1, texts=["a"]))
    probe, snapshot = pictures()
    nine = dataclasses.replace(snapshot, probabilities=np.zeros((3, 9)))
    with pytest.raises(Unreadable, match="not those of 10 classes"):
        form_of(vit_experiment(), probe).check(nine)
    rows = dataclasses.replace(snapshot, positions={"positions.table": np.zeros((15, 12))})
    with pytest.raises(Unreadable, match="does not hold positions"):
        form_of(vit_experiment(), probe).check(rows)


ITEMS = {
    "no words": {"src": []},
    "a text for words": {"src": "abc"},
    "numbers for words": {"tgt": [1, 2]},
    "half a character": {"src": ["\ud800"]},
    "no text": {"src_text": None},
    "too long": {"tgt": ["a"] * 999},
    "an alignment of others": {"alignment": []},
    "an alignment beyond": {"alignment": [[99], []]},
    "negative": {"alignment": [[-1], []]},
    "a prompt": {"prompt": 1},
}


def test_an_example_of_another_task_is_refused() -> None:
    for name in ITEMS:
        items = items_of_text()
        items[0] = {**items[0], **ITEMS[name]}
        with pytest.raises(Unreadable, match="its example 1 does not belong to this task"):
            check_probe(text_experiment(), Probe("text", items))


def test_a_class_that_there_is_not_is_refused() -> None:
    for label in [-1, 10, 10**400, "4", None, True, 4.0]:
        probe = Probe("image", [{"label": label}], np.zeros((1, 1, 28, 28), np.uint8))
        with pytest.raises(Unreadable, match="its example 1 does not belong to this task"):
            check_probe(vit_experiment(), probe)


@pytest.mark.parametrize("low", [0.0, 0.5, 1.0])
def test_the_scale_of_pictures_is_a_number_a_channel(low: float) -> None:
    probe, _snapshot = pictures()
    check_probe(vit_experiment(), dataclasses.replace(probe, mean=[low], std=[0.3]))


@pytest.mark.parametrize(
    ("mean", "std"),
    [
        ([0.1], None),
        (None, [0.3]),
        ([0.1, 0.1], [0.3, 0.3]),
        ([0.1], [0.0]),
        ([0.1], [float("nan")]),
        ([-0.1], [0.3]),
        ([1.1], [0.3]),
        (["0.1"], [0.3]),
        (0.1, 0.3),
        ([True], [0.3]),
    ],
)
def test_another_scale_is_refused(mean: object, std: object) -> None:
    probe, _snapshot = pictures()
    with pytest.raises(Unreadable, match="how its pictures are scaled"):
        check_probe(vit_experiment(), dataclasses.replace(probe, mean=mean, std=std))  # type: ignore[arg-type]


def test_pictures_of_another_size_are_refused() -> None:
    for images in [None, np.zeros((2, 1, 28, 28), np.uint8), np.zeros((1, 1, 28, 28))]:
        with pytest.raises(Unreadable, match="its pictures are not those of"):
            check_probe(vit_experiment(), Probe("image", [{"label": 4}], images))
        with pytest.raises(Unreadable, match="its examples are not those of"):
            check_probe(vit_experiment(), Probe("text", items_of_text()))
        with pytest.raises(Unreadable, match="it has 0 examples"):
            check_probe(text_experiment(), Probe("text", []))
