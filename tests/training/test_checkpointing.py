"""Gradient checkpointing: less is kept, blocks run once more, and nothing else changes by a bit."""

import pytest
import torch

from tests.training.test_loop import (
    EXPERIMENTS,
    IDS,
    experiment,
    goes_on_with_the_same_curve,
    records,
)
from tfm_core.choices.config import ConfigError
from tfm_core.layers.blocks import Block
from tfm_core.training.loop import build

WITH_BLOCKS = {
    name: chosen
    for name, chosen in zip(IDS, EXPERIMENTS, strict=True)
    if chosen.model.family != "recurrent"
}
WITH_BLOCKS |= {
    "vit-cls": experiment("vit", "mnist-5000", model={"dropout": 0.1, "pooling": "cls"}),
    "rotary": experiment("encoder-decoder", "copy", model={"position": "rotary", "dropout": 0.1}),
    "bf16": experiment("decoder-only", "addition", training={"precision": "bf16"}),
}


def forgetting(chosen):
    return chosen.replace(training=chosen.training.replace(checkpointing=True).model_dump())


@pytest.mark.parametrize("chosen", WITH_BLOCKS.values(), ids=WITH_BLOCKS)
def test_the_curve_and_the_weights_are_the_same_bit_for_bit(chosen):
    plain, other = build(chosen), build(forgetting(chosen))
    assert list(records(other)) == list(records(plain))
    for name, value in plain.model.state_dict().items():
        assert torch.equal(other.model.state_dict()[name], value), name


def test_going_on_from_a_checkpoint_gives_the_same_curve(tmp_path):
    goes_on_with_the_same_curve(forgetting(EXPERIMENTS[0]), tmp_path)


def kept_and_passes(chosen):
    """Numbers that a step keeps for its backward pass, and forward passes of blocks."""
    trainer = build(chosen)
    passes, kept = [], []
    for module in trainer.model.modules():
        if isinstance(module, Block):
            module.register_forward_pre_hook(lambda *_: passes.append(1))
    generator = torch.Generator().manual_seed(0)
    with torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: kept.append(tensor.numel()) or tensor, lambda tensor: tensor
    ):
        metrics = trainer.objective.loss_and_metrics(
            trainer.model.train(), trainer.batch_indices(1), generator
        )
        n_kept = sum(kept)
        metrics.loss.backward()
    return n_kept, len(passes)


def test_less_is_kept_where_there_are_blocks():
    chosen = experiment("encoder-decoder", "copy", model={"dropout": 0.2})
    kept, passes = kept_and_passes(chosen)
    kept_then, passes_then = kept_and_passes(forgetting(chosen))
    assert kept_then < kept / 2
    assert passes_then == 2 * passes
    with pytest.raises(ConfigError, match="has no Transformer blocks") as why:
        forgetting(experiment("recurrent", "copy"))
    assert why.value.problems[0].field == "training.checkpointing"
