"""Mistakes in the code of a block: what they cost in parameters, and that outputs really differ."""

from contextlib import suppress

import pytest
import torch

from tests.trace.test_learning import chosen, weights, worst
from tests.training.test_loop import experiment
from tfm_core.sentences import StudentError
from tfm_core.trace import mistakes
from tfm_core.trace.learning import start, take_step
from tfm_core.trace.mistakes import (
    BLOCK_MISTAKES,
    MODEL_MISTAKES,
    in_model,
    mm_on_four_axes,
    train_both,
)

FAMILIES = ("encoder-decoder", "encoder-only", "decoder-only", "vit", "captioner")


@pytest.fixture(scope="module", params=FAMILIES)
def trainer(request):
    return start(chosen(request.param, model={"n_heads": 2}))


def sizes(trainer):
    model = trainer.experiment.model
    return model.d_model, model.n_heads


def saved(table):
    return table["n"][0] - table["n"][1]


def test_shared_norms_missing_projections_and_slices_save_their_weights(trainer):
    d_model, n_heads = sizes(trainer)
    table, apart, _spread, fact = mistakes.shared_norm(trainer)
    assert saved(table) == 2 * d_model
    assert apart == 0
    assert "every norm starts with scale 1" in fact
    after = take_step(trainer, 0.01).after
    _table, apart, _spread, fact = mistakes.shared_norm(after)
    assert apart > 0
    assert "starts with scale 1" not in fact
    table, apart, _spread, _fact = mistakes.no_output_projection(trainer)
    assert saved(table) == d_model * d_model + d_model
    assert apart > 0
    table, apart, _spread, _fact = mistakes.heads_on_slices(trainer)
    assert saved(table) == 3 * d_model**2 * (n_heads - 1) // n_heads
    assert apart > 0


def test_the_right_residual_brings_more_and_mm_refuses_the_blocks_own_queries_and_keys(trainer):
    table, apart, _spread, fact = mistakes.residual_from_norm(trainer)
    assert saved(table) == 0
    assert apart > 0
    arranged = trainer.experiment.model.norm_first
    assert ("is pre-norm" in fact) == arranged
    shapes = mm_on_four_axes(trainer)
    assert shapes["error"] == "self must be a matrix"
    assert len(shapes["query"]) == len(shapes["key"]) == 4
    assert shapes["scores"] == (*shapes["query"][:3], shapes["key"][-1])


def test_heads_on_slices_read_nothing_else_and_the_model_is_left(trainer):
    _name, block, x, _out = mistakes._first_block(trainer)
    attention = block.self_attention
    d_head = attention.d_model // attention.n_heads
    own = torch.block_diag(*[torch.ones(d_head, d_head)] * attention.n_heads).repeat(3, 1)
    with torch.no_grad():
        attention.in_projection.weight *= own
        q, k, v = attention.project(x)
        changed = x.clone()
        changed[..., :d_head] += 1
        for one, other in zip((q, k, v), attention.project(changed), strict=True):
            torch.testing.assert_close(one[:, 1:], other[:, 1:])
            assert not torch.allclose(one[:, 0], other[:, 0])
    before = weights(trainer)
    for work in BLOCK_MISTAKES.values():
        work(trainer)
    for name in MODEL_MISTAKES:
        with suppress(StudentError):
            in_model(trainer, name)
    assert worst(before, weights(trainer)) == 0
    assert trainer.model.training


def test_mistakes_change_the_loss_or_crash_where_there_are_blocks():
    pair = start(experiment("encoder-decoder", "dates"))
    found = {name: in_model(pair, name) for name in MODEL_MISTAKES if name != "linear-score"}
    assert "is invalid for input of size" in found["keys-at-query-length"]
    for name in ("float-mask", "padding-on-queries"):
        assert found[name]["wrong"] != found[name]["right"]
    dropped = found["dropout-after-norm"]
    assert dropped["wrong"] == dropped["right"]
    assert dropped["wrong_there"] != dropped["right_there"]
    after = train_both(pair, "dropout-after-norm")
    assert all(0 < loss < dropped["right"] for loss in after)
    assert after[0] != after[1]
    with pytest.raises(StudentError, match="The mistake “Score linear in"):
        train_both(pair, "linear-score")
    with pytest.raises(StudentError, match="The mistake “Score linear in"):
        in_model(pair, "linear-score")
    recurrent = in_model(start(chosen("recurrent")), "linear-score")
    assert recurrent["wrong"] != recurrent["right"]
    recurrent = start(chosen("recurrent"))
    with pytest.raises(ValueError, match="no Transformer blocks"):
        mm_on_four_axes(recurrent)
    with pytest.raises(ValueError, match="has one head"):
        mistakes.heads_on_slices(start(chosen(model={"n_heads": 1})))


def test_a_block_without_feed_forward_has_no_norm_to_share():
    trainer = start(chosen(model={"d_ff": 0}))
    with pytest.raises(StudentError, match="needs a feed-forward layer"):
        mistakes.shared_norm(trainer)
