"""Mistakes of study notebooks, each beside code that makes it in plain torch."""

import copy

import pytest
import torch
import torch.nn.functional as F

from tests.layers.blocks import make_block
from tests.models.variants import captioner_model, text_batch, text_model, vit_model
from tests.training.test_loop import experiment
from tfm_core.choices.config import ConfigError, TrainingConfig
from tfm_core.choices.mistakes import MISTAKES, make
from tfm_core.decoding.greedy import greedy
from tfm_core.layers.attention import MultiHeadAttention
from tfm_core.layers.recurrent import AdditiveScore
from tfm_core.probe.capture import capture
from tfm_core.training.events import Measured
from tfm_core.training.loop import build, train

B, S, T, H, D_HEAD = 2, 7, 5, 3, 4
D_MODEL = H * D_HEAD


def spoilt(model, name):
    wrong = copy.deepcopy(model)
    make([name], wrong)
    return wrong


def heads(attention, x, memory):
    """Query, key and value (B, H, T, D) of an attention, from its weights."""
    q, k, v = attention.in_projection.weight.chunk(3)
    parts = (F.linear(x, q), F.linear(memory, k), F.linear(memory, v))
    return [part.unflatten(-1, (H, D_HEAD)).transpose(1, 2) for part in parts]


def test_keys_at_the_length_of_the_queries_are_right_for_one_length_alone():
    right = MultiHeadAttention(D_MODEL, H)
    wrong = spoilt(right, "keys-at-query-length")
    x, memory = torch.randn(B, T, D_MODEL), torch.randn(B, S, D_MODEL)
    assert torch.equal(wrong(x), right(x))
    assert torch.equal(wrong(x, memory[:, :T]), right(x, memory[:, :T]))
    size = memory.numel()
    with pytest.raises(RuntimeError, match=f"is invalid for input of size {size}"):
        wrong(x, memory)
    with pytest.raises(RuntimeError, match="is invalid for input of size"):
        memory.view(B, T, H, D_HEAD)
    src, tgt = text_batch()
    wrong = spoilt(text_model("encoder-decoder").eval(), "keys-at-query-length")
    with pytest.raises(RuntimeError, match="is invalid for input of size"):
        wrong(src, tgt)
    one = text_model("decoder-only").eval()
    assert torch.equal(spoilt(one, "keys-at-query-length")(src, tgt), one(src, tgt))


@pytest.mark.parametrize("family", ["encoder-decoder", "encoder-only"])
def test_padding_masked_as_queries_is_read_as_keys(family):
    right = text_model(family).eval()
    wrong = spoilt(right, "padding-on-queries")
    src, tgt = text_batch()  # the second source is padded
    path = "encoder.layers.0.self_attention"
    with capture(wrong) as cache:
        wrong(src, tgt)
    q, k, weights = (cache[f"{path}.{name}"] for name in ("query", "key", "weights"))
    keep = src != 0
    scores = q @ k.mT / D_HEAD**0.5
    naive = scores.masked_fill(~keep[:, None, :, None], -1e9).softmax(-1)
    is_real = keep[:, None, :, None].expand_as(weights)
    torch.testing.assert_close(weights[is_real], naive[is_real])
    leaked = (weights * ~keep[:, None, None, :]).sum(-1)[1, :, keep[1]]
    assert float(leaked.min()) > 0.1
    with capture(right) as cache:
        right(src, tgt)
    assert float((cache[f"{path}.weights"] * ~keep[:, None, None, :]).sum()) == 0
    whole = src.clamp(min=4)  # without padding there is no difference
    assert torch.equal(wrong(whole, tgt), right(whole, tgt))


def test_a_float_mask_is_added_beside_positions_and_hides_nothing():
    right = MultiHeadAttention(D_MODEL, H)
    wrong = spoilt(right, "float-mask")
    x, mask = torch.randn(B, T, D_MODEL), torch.ones(T, T, dtype=torch.bool).tril()
    added = F.scaled_dot_product_attention(*heads(right, x, x), attn_mask=mask.float())
    naive = right.out_projection(added.transpose(1, 2).flatten(2))
    torch.testing.assert_close(wrong(x, mask=mask), naive)
    assert not torch.allclose(wrong(x, mask=mask), right(x, mask=mask), atol=0.05)
    assert torch.equal(wrong(x), right(x))
    changed = x.clone()
    changed[:, -1] += 1
    assert not torch.equal(wrong(x, mask=mask)[:, 0], wrong(changed, mask=mask)[:, 0])
    model, (src, tgt) = text_model("decoder-only", position="alibi").eval(), text_batch()
    wrong = spoilt(model, "float-mask")
    path = "decoder.layers.0.self_attention"
    with capture(model) as right:
        model(src, tgt)
    with capture(wrong) as cache:
        wrong(src, tgt)
    expected = right[f"{path}.scores"] + right[f"{path}.mask"].float()
    torch.testing.assert_close(cache[f"{path}.scores"], expected)


def test_a_linear_score_looks_at_the_source_alike_in_both_families():
    score = AdditiveScore(D_MODEL)
    wrong = spoilt(score, "linear-score")
    states, memory = torch.randn(B, T, D_MODEL), torch.randn(B, S, D_MODEL)
    pairs = torch.cat(
        [states[:, :, None].expand(-1, -1, S, -1), memory[:, None].expand(-1, T, -1, -1)], -1
    )
    matrix = score.v.weight @ torch.cat([score.of_state.weight, score.of_source.weight], 1)
    shift = score.v.weight @ score.of_source.bias
    naive = F.linear(pairs, matrix, shift).squeeze(-1)  # one Linear of [s; h]
    found = wrong(wrong.query_projection(states), wrong.prepare(memory))
    torch.testing.assert_close(found, naive)
    weights = found.softmax(-1)
    torch.testing.assert_close(weights, weights[:, :1].expand_as(weights))
    right = score(score.query_projection(states), score.prepare(memory)).softmax(-1)
    assert not torch.allclose(right, right[:, :1].expand_as(right), atol=1e-3)
    wrong, (src, tgt) = spoilt(text_model("recurrent").eval(), "linear-score"), text_batch()
    with capture(wrong) as cache:
        wrong(src, tgt)
    (weights,) = cache.of("weights").values()
    torch.testing.assert_close(weights, weights[..., :1, :].expand_as(weights))
    for model in (text_model("encoder-decoder"), text_model("recurrent", attention="dot")):
        with pytest.raises(ValueError, match="has no additive score"):
            make(["linear-score"], model)


def test_dropout_after_the_norm_drops_numbers_of_the_token_itself():
    right = make_block(D_MODEL, H, 11)
    right.dropout.p = 0.3
    wrong = spoilt(right, "dropout-after-norm")
    x = torch.randn(B, T, D_MODEL)
    right.eval()
    assert torch.equal(wrong.eval()(x), right(x))
    wrong.train()
    for part in (wrong.self_attention, wrong.feed_forward):
        part.eval()  # what they drop inside is none of this
    torch.manual_seed(7)
    found = wrong(x)
    torch.manual_seed(7)
    y = F.dropout(right.self_attention_norm(x + right.self_attention(x)), 0.3)
    naive = F.dropout(right.feed_forward_norm(y + right.feed_forward(y)), 0.3)
    assert torch.equal(found, naive)
    assert bool((found == 0).any())


@pytest.mark.parametrize("width", [8, 512])
def test_a_norm_with_the_deviation_of_a_sample_is_too_small_by_its_width(width):
    right = torch.nn.LayerNorm(width)
    torch.nn.init.normal_(right.weight)
    x = torch.randn(B, T, width)
    naive = (x - x.mean(-1, True)) / (x.std(-1, keepdim=True) ** 2 + right.eps).sqrt()
    found = spoilt(right, "sample-deviation")(x)
    torch.testing.assert_close(found, naive * right.weight)
    factor = {8: 1.069, 512: 1.001}[width]
    torch.testing.assert_close(right(x), found * factor, rtol=1e-3, atol=1e-4)
    with pytest.raises(ValueError, match="has no LayerNorm"):
        make(["sample-deviation"], text_model("decoder-only", norm="rmsnorm"))


def test_what_has_no_such_part_has_no_such_mistake_and_twice_is_once():
    for model in (vit_model(), captioner_model(), text_model("decoder-only")):
        with pytest.raises(ValueError, match="masks no padding there"):
            make(["padding-on-queries"], model)
    for family, task in (("encoder-only", "sort"), ("vit", "mnist-5000")):
        with pytest.raises(ConfigError, match="needs a model that writes token by token"):
            experiment(family, task, training={"mistakes": "target-not-shifted"})
    for name, family in [
        (name, "recurrent" if name == "linear-score" else "encoder-decoder")
        for name, one in MISTAKES.items()
        if one.place is None and name != "keys-at-query-length"
    ]:
        model, (src, tgt) = spoilt(text_model(family, dropout=0.1).train(), name), text_batch()
        results = []
        for _ in range(2):
            torch.manual_seed(3)
            results.append(model(src, tgt))
            make([name], model)
        assert torch.equal(*results)


def test_argmax_before_the_loss_learns_nothing_and_gives_no_gradients():
    chosen = experiment(
        training={"mistakes": "argmax-before-loss", "steps": 3, "validate_every": 1}
    )
    trainer = build(chosen)
    before = copy.deepcopy(trainer.model.state_dict())
    metrics = trainer.objective.loss_and_metrics(
        trainer.model, trainer.batch_indices(1), torch.Generator().manual_seed(0)
    )
    assert metrics.loss.requires_grad
    metrics.loss.backward()
    assert all(parameter.grad is None for parameter in trainer.model.parameters())
    measured = [event for event in train(trainer) if isinstance(event, Measured)]
    losses = [event.loss for event in measured if event.split == "validation"]
    assert len(losses) > 1
    assert len(set(losses)) == 1
    after = trainer.model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    with pytest.raises(ConfigError, match="choose another precision"):
        TrainingConfig.parse({"mistakes": "argmax-before-loss", "precision": "fp16"})


@pytest.mark.core(1)
@pytest.mark.parametrize("family", ["encoder-decoder", "decoder-only", "recurrent"])
def test_a_target_that_is_not_shifted_is_copied_and_nothing_can_be_written(family):
    chosen = experiment(
        family,
        "copy",
        model={"d_model": 32, "position": "learned"} if family != "recurrent" else {"d_model": 32},
        task={"size": 8, "n_train": 2000, "n_validation": 100},
        training={
            "mistakes": "target-not-shifted",
            "steps": 200,
            "batch_size": 64,
            "learning_rate": 0.01,
            "validate_every": 200,
        },
    )
    trainer = build(chosen)
    last = [event for event in train(trainer) if isinstance(event, Measured)][-1]
    assert last.accuracy > 0.98
    split = trainer.data.validation
    model = trainer.model.eval()
    ids = split.tgt[:, :-1]
    is_token = ids != 0
    assert float((model(split.src, ids).argmax(-1) == ids)[is_token].float().mean()) > 0.98
    written = greedy(model, split.src, max_len=split.tgt.size(1) - 1)
    truth = split.tgt[:, 1 : written.ids.size(1) + 1]
    assert float((written.ids == truth).all(1).float().mean()) < 0.02
