"""What a training step asks of a GPU, counted without one (see ``far_device``).

A wait keeps the GPU idle: it has nothing to do until the program has read its number and asked for
more. Each step has one, for the numbers that it reports. Launches are what a small model's step
takes its time with on a GPU; they may become fewer.
"""

import math
from dataclasses import replace
from itertools import islice

import pytest
import torch

from tests.training.far_device import DEVICE, step_of
from tests.training.test_language import language
from tests.training.test_loop import EXPERIMENTS, HALVED, IDS, experiment
from tfm_core.data.moving import to_device_together
from tfm_core.layers.attention import fused_attention
from tfm_core.layers.relative import alibi_bias
from tfm_core.runs.process.execute import settle
from tfm_core.training import setup
from tfm_core.training import trainer as trainers
from tfm_core.training.events import Step
from tfm_core.training.loop import build, train
from tfm_core.training.progress import TrainingDiverged

CHOSEN = dict(zip(IDS, EXPERIMENTS, strict=True)) | {
    "rotary": experiment(model={"position": "rotary"}),
    "alibi": experiment(model={"position": "alibi"}),
    "t5-bias": experiment(model={"position": "t5-bias"}),
    "averaged muon": experiment(training={"optimizer": "muon", "ema_decay": 0.9}),
    "grammar": experiment("decoder-only", "grammar"),
    "text": language(),
}
LAUNCHES = {
    "encoder-decoder": 263,
    "encoder-only": 151,
    "decoder-only": 175,
    "label": 164,  # its last block computes the CLS token alone
    "blanks": 180,
    "additive": 781,
    "luong": 398,
    "vit": 206,
    "captioner": 395,
    "rotary": 217,
    "alibi": 205,
    "t5-bias": 213,
    "averaged muon": 245,
    "grammar": 150,
    "attention only": 122,
    "experts": 359,  # without data all experts run; with data each of their blocks waits once more
    "text": 154,
}


@pytest.mark.parametrize("name", CHOSEN)
def test_a_step_waits_once_for_its_device_and_launches_no_more_than_it_did(name, monkeypatch):
    asked = step_of(CHOSEN[name], monkeypatch)
    assert asked.waits.total() == 1, asked.waits
    assert "setup" in next(iter(asked.waits))
    assert not asked.sent, asked.sent  # the batch came with those of the steps before
    assert asked.launches.total() <= LAUNCHES[name], asked.launches


@pytest.mark.parametrize("chosen", [*CHOSEN.values(), HALVED], ids=[*CHOSEN, "halved"])
def test_batches_drawn_ahead_are_those_drawn_one_by_one(chosen, monkeypatch):
    trainer, other = build(chosen), build(chosen)
    there = torch.device("cpu")
    monkeypatch.setattr(
        trainers,
        "send_batches",
        lambda draws, _device: [
            replace(draw, tensors=sent)
            for draw, sent in zip(
                draws, to_device_together([draw.tensors for draw in draws], there), strict=True
            )
        ],
    )
    monkeypatch.setattr(trainers, "_PREFETCHED_STEPS", 3)
    trainer.device = DEVICE
    for step in (1, 2, 3, 4, 6):  # the fifth was drawn with the fourth
        ahead, own = trainer.batch(step), other.batch(step)
        assert ahead.sizes == own.sizes
        torch.testing.assert_close(ahead.tensors, own.tensors, rtol=0, atol=0)
        assert torch.equal(ahead.indices, own.rows)


@pytest.mark.parametrize(
    ("name", "most"), [("encoder-decoder", 2), ("grammar", 1), ("text", 1), ("vit", 2)]
)
def test_data_without_room_on_the_device_stays_and_each_batch_is_sent(name, most, monkeypatch):
    monkeypatch.setattr(setup, "memory_free", lambda _device: 1000)
    asked = step_of(CHOSEN[name], monkeypatch)
    assert asked.waits.total() == 1, asked.waits
    assert asked.sent.total() == most, asked.sent
    remark = asked.trainer.remark
    assert "do not fit into the 1000 B free on meta" in remark.replace(",", "")
    assert next(train(asked.trainer)).remark == remark


def test_data_with_room_on_the_device_lies_there_and_nothing_is_remarked(monkeypatch):
    monkeypatch.setattr(setup, "memory_free", lambda _device: 2**30)
    asked = step_of(CHOSEN["encoder-decoder"], monkeypatch)
    assert asked.trainer.data.train.src.is_meta
    assert asked.trainer.remark is None


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_the_mask_of_alibi_is_finite_in_16_bits_too(kind, monkeypatch):
    """A row in which nothing is allowed would be NaN in kernels that take -inf at its word."""
    given = []

    def noted(q, k, v, attn_mask, **_options):
        given.append(attn_mask.to(kind))
        return q

    monkeypatch.setattr("torch.nn.functional.scaled_dot_product_attention", noted)
    q = torch.zeros(2, 3, 5, 7)
    mask = torch.zeros(5, 5, dtype=torch.bool)
    with torch.autocast("cpu", dtype=kind):
        fused_attention(q, q, q, mask, alibi_bias(3, 5))
    fused_attention(q.to(kind), q.to(kind), q.to(kind), mask, alibi_bias(3, 5))
    for bias in given:
        assert bias.isfinite().all()
        assert (bias < -1e4).all()


def lost(trainer, n_steps: int) -> list[Step]:
    """Return steps of fp16 of which those from the third to before ``n_steps`` more overflow."""
    sound, events = trainer.model.output.weight.detach().clone(), []
    for event in train(trainer):
        if isinstance(event, Step):
            events.append(event)
            is_lost = 2 <= event.step < 2 + n_steps
            with torch.no_grad():
                trainer.model.output.weight.copy_(sound * (math.inf if is_lost else 1))
    return events


def test_a_few_steps_that_overflow_fp16_are_not_the_end_and_all_are():
    trainer = build(experiment(training={"precision": "fp16"}))
    losses = [event.loss for event in lost(trainer, 3)]
    assert [math.isfinite(loss) for loss in losses] == [True, True, False, False, False, True]
    assert all(bool(weight.isfinite().all()) for weight in trainer.parameters)
    assert math.isfinite(trainer.descent.smoothed)
    trainer = build(experiment(training={"precision": "fp16", "steps": 40}))
    with pytest.raises(TrainingDiverged, match="at step 19:"):
        lost(trainer, 40)
    with pytest.raises(TrainingDiverged, match="at step 3:"):
        lost(build(experiment(training={"steps": 40})), 1)


def test_products_of_fp32_take_tf32_and_no_number_of_the_cpu_changes():
    settle(1)
    assert torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    curves = []
    for _ in range(2):
        steps = [e for e in train(build(experiment())) if isinstance(e, Step)]
        curves.append([event.loss for event in islice(steps, 6)])
        settle(1)
    assert curves[0] == curves[1]
