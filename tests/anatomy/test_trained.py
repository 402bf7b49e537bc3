"""A part of a model that is trained: its numbers, memory and compute against PyTorch's own."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from tests.facts.test_memory import BATCH, SIZES, SRC, TGT, inputs_of, kept_by_autograd
from tfm_core.anatomy.trained import trained
from tfm_core.choices.config import (
    DecoderOnlyConfig,
    EncoderOnlyConfig,
    Experiment,
    TunedLabelsConfig,
    TunedTextConfig,
)
from tfm_core.choices.config.shape import TextShape
from tfm_core.facts.memory import memory
from tfm_core.models.build import build_model
from tfm_core.training.optimisation import make_optimizer
from tfm_core.training.setup import choose_trained

BYTES = 4  # of a float32

pytestmark = pytest.mark.quick

LAYERS = 3
BASE = "0" * 20


def reader(trains):
    model = EncoderOnlyConfig(**SIZES, n_layers=LAYERS, norm_first=False)
    shape = TextShape(43, 7, head="mean", n_labels=3, n_segments=2, scale_embedding=False)
    task = TunedLabelsConfig(
        architecture="bert",
        n_words=43,
        pad_id=0,
        context=SRC,
        n_tgt=7,
        n_segments=2,
        base=BASE,
        trains=trains,
        n_last=1,
        rank=5,
    )
    return model, shape, task


def writer(trains):
    model = DecoderOnlyConfig(**SIZES, n_layers=LAYERS, max_len=TGT, tie_embeddings=True)
    shape = TextShape(
        43,
        43,
        pad_id=None,
        one_vocabulary=True,
        output_bias=False,
        scale_embedding=False,
        has_source=False,
    )
    task = TunedTextConfig(
        architecture="gpt2", n_words=43, context=TGT, base=BASE, trains=trains, n_last=1, rank=5
    )
    return model, shape, task


def built(make, trains):
    config, shape, task = make(trains)
    torch.manual_seed(0)
    model = build_model(config, shape).train()
    choose_trained(model, Experiment(model=config, task=task), 0)
    return config, shape, task, model


@pytest.mark.parametrize("trains", ["all", "last", "lora"])
@pytest.mark.parametrize("make", [reader, writer])
def test_memory_and_the_backward_pass_are_what_is_said(make, trains):
    """Activations within 10%, and where LoRA is trained never below."""
    config, shape, task, model = built(make, trains)
    held, logits = kept_by_autograd(model, inputs_of(shape, BATCH, SRC, TGT))
    n = sum(one.numel() for one in build_model(config, shape).parameters())
    found = memory(config, shape, n, batch=BATCH, src_len=SRC, tgt_len=TGT, task=task)
    if shape.is_label:
        logits = BYTES * BATCH * shape.n_labels
    assert found.activations - logits == pytest.approx(held, rel=0.1)
    learned = sum(one.numel() for one in model.parameters() if one.requires_grad)
    assert found.gradients == BYTES * learned
    assert found.weights == BYTES * sum(one.numel() for one in model.parameters())
    optimizer = make_optimizer(model, Experiment().training)
    kept = [one for group in optimizer.param_groups for one in group["params"]]
    assert found.optimizer == 2 * BYTES * sum(one.numel() for one in kept)
    """Within a fifth: LoRA's own small products, and the first layer's inputs, are left out."""
    config, shape, task, model = built(make, trains)
    inputs = inputs_of(shape, BATCH, SRC, TGT)
    with FlopCounterMode(display=False) as forward:
        loss = model(*inputs).float().logsumexp(-1).mean()
    with FlopCounterMode(display=False) as backward:
        loss.backward()
    found = trained(config, shape, task, src_len=SRC, tgt_len=TGT)
    ratio = backward.get_total_flops() / forward.get_total_flops()
    assert found.backward == pytest.approx(ratio, rel=0.2)
