"""A user's own example goes through the very model of the checkpoint."""

import re

import numpy as np
import pytest

from tests.inspect.constructed import small, text_experiment, vit_experiment
from tests.probe.expected_masks import expected_mask
from tfm_core.data.image_data import load_images
from tfm_core.data.tasks import text_task
from tfm_core.data.vocabulary import BOS, EOS
from tfm_core.inspect.attention.example import look_at_picture, look_at_text
from tfm_core.inspect.attention.trained import (
    model_of,
    model_of_step,
)
from tfm_core.probe.capture import capture
from tfm_core.probe.labels import axes, modules_by_kind
from tfm_core.runs.run import Run
from tfm_core.runs.store import (
    RECORDED,
    RunStore,
)
from tfm_core.sentences import StudentError
from tfm_core.training import checkpoints, loop

torch = pytest.importorskip("torch")


FAMILIES = ("encoder-decoder", "encoder-only", "decoder-only", "recurrent")


def trained(folder, experiment, steps=3):
    """Return a run with a checkpoint, and its trainer."""
    run = RunStore(folder, recorded=None).create(experiment, state="finished")
    trainer = loop.build(experiment)
    for _event in loop.train(trainer):
        if trainer.step == steps:
            break
    checkpoints.save(trainer, run.folder / "checkpoints" / "last")
    return run, trainer


@pytest.fixture(scope="module", params=FAMILIES)
def text_run(request, tmp_path_factory):
    return trained(tmp_path_factory.mktemp("runs"), small(text_experiment(request.param)))


@pytest.fixture(scope="module", params=["mean", "cls"])
def picture_run(request, tmp_path_factory):
    return trained(tmp_path_factory.mktemp("runs"), small(vit_experiment(request.param)))


def test_maps_of_a_sentence_are_the_models_and_computed_where_asked(text_run):
    run, trainer = text_run
    example = look_at_text(run, "forty two")
    task = text_task(run.experiment.task)
    src = torch.tensor([task.src_vocabulary.encode(["forty", "two"])])
    tgt_in = torch.tensor([[BOS, *task.tgt_vocabulary.encode(example.answer)]])
    with capture(trainer.model, only={"weights"}) as cache:
        trainer.model(src, tgt_in)
    assert set(example.attention) == set(cache.of("weights"))
    for module, weights in cache.of("weights").items():
        rows, columns = axes(run.experiment, example.item, module).shape
        expected = weights[0, :, :rows, :columns].numpy()
        np.testing.assert_allclose(example.attention[module], expected, rtol=0, atol=0)
        assert weights.shape[2:] == (rows, columns)
        mask = expected_mask(run.experiment, example.item, module)
        np.testing.assert_array_equal(example.masks[module], mask)
    run, _trainer = text_run
    everything = look_at_text(run, "forty two")
    for kind, modules in modules_by_kind(run.experiment).items():
        example = look_at_text(run, "forty two", kinds=(kind,))
        assert list(example.attention) == modules
        assert example.answer == everything.answer
        for name in modules:
            np.testing.assert_allclose(
                example.attention[name], everything.attention[name], atol=1e-5
            )
    assert not look_at_text(run, "forty two", kinds=()).attention
    run, trainer = text_run
    example = look_at_text(run, "forty two")
    task = text_task(run.experiment.task)
    src = torch.tensor([task.src_vocabulary.encode(["forty", "two"])])
    trainer.model.eval()
    if run.experiment.model.family == "encoder-only":
        ids = trainer.model(src, src.new_full((1, run.experiment.task.max_tgt_len + 1), BOS))
        ids = ids[0].argmax(-1).tolist()
    else:
        ids = []
        while EOS not in ids and len(ids) <= run.experiment.task.max_tgt_len:
            ids.append(int(trainer.model(src, torch.tensor([[BOS, *ids]]))[0, -1].argmax()))
    longest = run.experiment.task.max_tgt_len
    assert list(example.answer) == task.tgt_vocabulary.decode(ids)[:longest]
    assert example.item["truth"] == ["4", "2"]
    assert example.step == 3
    assert len(example.confidence) == len(example.answer)


def test_a_newer_checkpoint_is_read_at_once(tmp_path):
    run, trainer = trained(tmp_path, small(text_experiment()), steps=2)
    assert look_at_text(run, "six").step == 2
    for _event in loop.train(trainer):
        if trainer.step == 3:
            break
    checkpoints.save(trainer, run.folder / "checkpoints" / "last")
    assert look_at_text(run, "six").step == 3


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("forty tow", "“tow” is not a word of this task. Try two"),
        ("  ", "There is nothing to read"),
        ("one " * 99, "99 tokens; the limit is"),
    ],
)
def test_a_sentence_that_the_model_cannot_read_is_answered_with_why(text_run, text, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        look_at_text(text_run[0], text)


def test_the_maps_and_shares_of_a_picture_are_those_of_the_model(picture_run):
    run, trainer = picture_run
    picture = np.random.default_rng(5).integers(0, 256, (1, 28, 28), dtype=np.uint8)
    example = look_at_picture(run, picture)
    data = load_images(run.experiment.task, seed=run.experiment.seed)
    with capture(trainer.model, only={"weights"}) as cache:
        shares = trainer.model(data.normalise(torch.tensor(picture)[None])).softmax(-1)[0]
    np.testing.assert_allclose(example.probabilities, shares.numpy(), rtol=0, atol=0)
    for module in modules_by_kind(run.experiment)["patches"]:
        expected = cache[f"{module}.weights"][0].numpy()
        np.testing.assert_allclose(example.attention[module], expected, rtol=0, atol=0)
    assert np.array_equal(example.picture, picture)


def test_pictures_of_another_shape_and_sentences_for_pictures_are_refused(picture_run, tmp_path):
    with pytest.raises(ValueError, match=re.escape("(3, 32, 32), but this run reads (1, 28, 28)")):
        look_at_picture(picture_run[0], np.zeros((3, 32, 32), np.uint8))
    store = RunStore(tmp_path, recorded=None)
    with pytest.raises(ValueError, match="Draw one"):
        look_at_text(store.create(vit_experiment()), "six")
    with pytest.raises(ValueError, match="Type one"):
        look_at_picture(store.create(text_experiment()), np.zeros((1, 28, 28), np.uint8))


def test_a_run_without_checkpoint_says_so(tmp_path):
    store = RunStore(tmp_path, recorded=None)
    text, vit = store.create(text_experiment()), store.create(vit_experiment())
    assert not text.has_checkpoint
    with pytest.raises(ValueError, match="This run has no checkpoint yet"):
        look_at_text(text, "six")
    with pytest.raises(ValueError, match="This run has no checkpoint yet"):
        look_at_picture(vit, np.zeros((1, 28, 28), np.uint8))


torch = pytest.importorskip("torch")


def test_the_model_of_a_step_has_its_weights_and_none_means_the_last(tmp_path):
    run, _trainer = trained(tmp_path, small(text_experiment("encoder-decoder")))
    last, step = model_of(run)
    assert model_of_step(run) == (last, step)
    assert model_of_step(run, step) == (last, step)
    korean = Run(RECORDED / "recorded-korean")
    early, at = model_of_step(korean, 63)
    assert at == 63
    for name, value in korean.weights(63).items():
        assert np.array_equal(early.state_dict()[name].numpy(), value), name
    with pytest.raises(StudentError, match="64"):
        model_of_step(korean, 64)
