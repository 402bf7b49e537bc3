"""The walk through a captioner: the pictures of its task, and what it writes of them."""

from itertools import takewhile

import numpy as np
import pytest
import torch

from tests.trace.test_trace import experiment
from tfm_core.data.captions import load_captions
from tfm_core.decoding import greedy
from tfm_core.probe.capture import capture
from tfm_core.probe.snapshot import probe_of
from tfm_core.trace.shown import word_maps
from tfm_core.trace.subject import subject
from tfm_core.trace.trace import trace
from tfm_core.training.loop import build


@pytest.fixture(scope="module")
def looked_at():
    return subject(experiment("captioner"))


def step(subject, name, **options):
    return next(one for one in trace(subject, **options) if one.name == name)


@pytest.mark.parametrize("language", ["english", "korean"])
def test_an_untrained_one_gets_the_validation_pictures_that_its_training_would(language):
    chosen = experiment("captioner")
    chosen = chosen.replace(task=chosen.task.replace(language=language, n_train=700).model_dump())
    found, data = subject(chosen), load_captions(chosen.task, seed=chosen.seed)
    pictures = data.validation.pictures(torch.arange(found.n_examples))
    assert np.array_equal(found.pictures, pictures.numpy())
    torch.testing.assert_close(found.inputs[0], data.normalise(pictures), rtol=0, atol=0)
    words = [list(caption.words) for caption in data.validation.captions[: found.n_examples]]
    assert [list(truth[:-1]) for truth in found.truth] == words


def test_a_trained_one_gets_the_pictures_of_its_probe():
    trainer = build(experiment("captioner"))
    probe = probe_of(trainer)
    items, images = probe["items"][::-1], probe["images"][::-1]
    found = subject(trainer.experiment, trainer.model.eval(), items=items, images=images)
    assert np.array_equal(found.pictures, images)
    assert list(found.described.truth) == [item["tgt_text"] for item in items]


def test_the_caption_is_the_models_and_the_question_asks_for_its_digit(looked_at):
    written = greedy(looked_at.model, looked_at.inputs[0], max_len=looked_at.shape.tgt_len).ids
    assert torch.equal(step(looked_at, "whole").outputs[-1].value, written)
    for row, said in enumerate(looked_at.described.said):
        words = takewhile(lambda word: word != "<eos>", looked_at.tokens("written", row))
        assert said == " ".join(word for word in words if word not in {"<bos>", "<pad>"})
    for example in range(looked_at.n_examples):
        boxes = looked_at.described.boxes[example]
        first = next(t for t, box in enumerate(boxes) if box is not None)
        before = " ".join(["<bos>", *looked_at.truth[example][:first]])
        question = step(looked_at, "whole", example=example).question
        assert f"After “{before}”" in question.text
        best = looked_at.cache["output.logits"][example, first].argmax()
        assert question.answer == looked_at.tokens("vocabulary", 0)[best]
        assert f"The truth is “{looked_at.truth[example][first]}”" in question.because


@pytest.mark.parametrize(("layer", "head"), [(0, 0), (2, 1)])
def test_the_maps_over_the_picture_are_the_weights_of_the_forward_pass(looked_at, layer, head):
    with capture(looked_at.model) as cache:
        looked_at.model(*looked_at.inputs)
    weights = cache[f"decoder.layers.{layer}.cross_attention.weights"]
    for example in range(looked_at.n_examples):
        shown = step(looked_at, "cross-attention", layer=layer, example=example)
        maps, words, boxes = word_maps(looked_at, shown, example, head)
        n = len(looked_at.truth[example])
        assert np.array_equal(maps.reshape(n, -1), weights[example, head, :n].numpy())
        np.testing.assert_allclose(maps.sum((1, 2)), 1, atol=1e-5)
        assert list(words) == ["<bos>", *looked_at.truth[example][:-1]]
        assert len(boxes) == n
        last, *_others = word_maps(looked_at, shown, example, weights.size(1) - 1)
        beyond, *_others = word_maps(looked_at, shown, example, weights.size(1) + 3)
        assert np.array_equal(beyond, last)  # of a model that had more heads
