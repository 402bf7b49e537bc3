"""What a snapshot says a model writes is what greedy decoding writes, found by it or not."""

import dataclasses

import numpy as np
import pytest
import torch

from tests.training.test_loop import EXPERIMENTS, experiment
from tfm_core.decoding import greedy
from tfm_core.probe import snapshot
from tfm_core.training.loop import build, train

FAMILIES = ("encoder-decoder", "decoder-only", "recurrent")


def learned(family, steps, **model):
    """Return a trainer whose validation split is the 8 examples that it learned."""
    heads = {} if family == "recurrent" else {"n_heads": 4, "d_ff": 32}
    rules = {"steps": steps, "batch_size": 8, "learning_rate": 0.01, "validate_every": steps}
    chosen = experiment(
        family,
        "reverse",
        model={"d_model": 32, **heads, **model},
        task={"n_train": 8},
        training=rules,
    )
    trainer = build(chosen)
    trainer.objective.n_train = 8
    for _ in train(trainer):
        pass
    trainer.data = dataclasses.replace(trainer.data, validation=trainer.data.train)
    return trainer


@pytest.mark.core(2)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("steps", [2, 150])
def test_it_holds_what_greedy_decoding_writes(family, steps, monkeypatch):
    trainer = learned(family, steps)
    src, tgt = (
        part[: snapshot.N_SENTENCES] for part in dataclasses.astuple(trainer.data.train)[:2]
    )
    expected = greedy(trainer.model, src, max_len=tgt.size(1) - 1)
    calls = []
    monkeypatch.setattr(snapshot, "greedy", lambda *a, **k: calls.append(a) or greedy(*a, **k))
    taken = snapshot.take(trainer)
    assert np.array_equal(taken.ids, expected.ids.numpy())
    assert taken.confidence == pytest.approx(expected.confidence.numpy(), abs=2e-3)
    assert len(calls) == (1 if steps == 2 else 0)  # whoever knows all needs no decoding


@pytest.mark.parametrize("mistake", ["no-causal-mask", "mask-transposed"])
def test_answers_that_were_read_off_the_truth_are_not_said_to_be_written(mistake):
    trainer = learned("encoder-decoder", 150, mistakes=mistake)
    src, tgt = (
        part[: snapshot.N_SENTENCES] for part in dataclasses.astuple(trainer.data.train)[:2]
    )
    with torch.inference_mode():
        read_off = trainer.model(src, tgt[:, :-1]).argmax(-1)
    assert bool(((read_off == tgt[:, 1:]) | (tgt[:, 1:] == 0)).all())
    expected = greedy(trainer.model, src, max_len=tgt.size(1) - 1)
    assert np.array_equal(snapshot.take(trainer).ids, expected.ids.numpy())


def test_one_wrong_token_asks_for_decoding():
    targets = torch.tensor([[5, 6, 2, 0], [7, 2, 0, 0]])
    logits = torch.nn.functional.one_hot(targets, 9).float() * 9
    logits[1, 3, 4] = 99.0  # padding may say what it wants
    decoded = snapshot._as_taught(logits, targets)
    assert decoded.ids.tolist() == [[5, 6, 2], [7, 2, 0]]
    assert decoded.confidence[1, 2] == 0
    logits[1, 1, 4] = 99.0
    assert snapshot._as_taught(logits, targets) is None


@pytest.mark.parametrize("chosen", EXPERIMENTS, ids=lambda e: f"{e.model.family}-{e.task.name}")
def test_with_fewer_maps_the_predictions_are_those_of_all(chosen):
    trainer = build(chosen)
    whole, few = snapshot.take(trainer), snapshot.take(trainer, 2)
    for name, maps in whole.attention.items():
        assert len(maps) > 2
        np.testing.assert_allclose(few.attention[name], maps[:2], atol=2e-3)
    assert few.texts == whole.texts
    assert few.tokens == whole.tokens
    for name in ("probabilities", "ids", "confidence"):
        if getattr(whole, name) is not None:
            np.testing.assert_allclose(getattr(few, name), getattr(whole, name), atol=2e-3)
    assert trainer.model.training is build(chosen).model.training


def test_examples_without_maps_go_through_the_fused_attention(monkeypatch):
    from tfm_core.layers.attention import MultiHeadAttention as Attention

    trainer, seen = build(EXPERIMENTS[-1]), []
    explicit = Attention.attend_explicitly
    monkeypatch.setattr(
        Attention,
        "attend_explicitly",
        lambda self, q, *rest: seen.append(len(q)) or explicit(self, q, *rest),
    )
    snapshot.take(trainer, 1)
    assert set(seen) == {1}
