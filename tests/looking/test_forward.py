"""``look`` finds the attention of any model, equal to what the model itself computes."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.models.variants import text_batch, text_model, vit_model
from tfm_core import look
from tfm_core.probe.capture import capture

B, Q, K, WIDTH, HEADS = 2, 4, 5, 32, 4


class ByEinsum(nn.Module):
    """Attention as minGPT and many notebooks write it: one projection, einsum, a float mask."""

    def __init__(self, *, causal: bool = True, to_half: bool = False) -> None:
        super().__init__()
        self.n_head, self.causal, self.to_half = HEADS, causal, to_half
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.classes = nn.Linear(WIDTH, 7)
        self.dropout = nn.Dropout(0.5)
        self.weights: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        n, length, _width = x.shape
        q, k, v = self.qkv(x).view(n, length, 3, HEADS, WIDTH // HEADS).unbind(2)
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) * (WIDTH // HEADS) ** -0.5
        if self.causal:
            forbidden = torch.ones(length, length).triu(1).bool()
            scores = scores.masked_fill(forbidden, torch.finfo(scores.dtype).min)
        self.weights = scores.softmax(-1)
        mixed = torch.einsum("bhqk,bkhd->bqhd", self.dropout(self.weights), v)
        return self.classes(self.out(mixed.reshape(n, length, WIDTH))).softmax(-1)


class Additive(nn.Module):
    """Bahdanau's scores, without a product of query and key."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(WIDTH, 8), nn.Linear(WIDTH, 8)
        self.score = nn.Linear(8, 1)

    def forward(self, x: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        both = self.query(x)[:, :, None] + self.key(memory)[:, None]
        weights = self.score(both.tanh()).squeeze(-1).softmax(-1)
        return weights @ memory, weights


class Fused(nn.Module):
    """Two groups of queries share keys in PyTorch's fused attention."""

    def __init__(self) -> None:
        super().__init__()
        self.n_heads = HEADS
        self.q, self.kv = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, allowed: Tensor | None = None) -> Tensor:
        n, length, _width = x.shape
        q = self.q(x).view(n, length, HEADS, 8).transpose(1, 2)
        k, v = self.kv(x).view(n, length, 2, 2, 8).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(q, k, v, allowed, enable_gqa=True)


class Experts(nn.Module):
    """A softmax over experts, which is no attention."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(WIDTH, 4)
        self.experts = nn.Parameter(torch.randn(4, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return self.gate(x).softmax(-1) @ self.experts


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def states(length: int = Q) -> Tensor:
    return torch.randn(B, length, WIDTH)


def test_all_maps_of_a_transformer_are_found_in_order_with_kinds_and_masks() -> None:
    model = nn.Transformer(WIDTH, HEADS, 2, 2, 64, batch_first=True)
    mask = model.generate_square_subsequent_mask(Q)
    pad = torch.zeros(B, K, dtype=torch.bool)
    pad[1, 3:] = True
    seen: dict[str, Tensor] = {}
    source, target = states(K), states(Q)
    found = look(model, source, target, tgt_mask=mask, src_key_padding_mask=pad)
    kinds = [(name, one.kind, one.is_causal) for name, one in found.maps.items()]
    assert kinds == [
        ("encoder.layers.0.self_attn", "self", False),
        ("encoder.layers.1.self_attn", "self", False),
        ("decoder.layers.0.self_attn", "self", True),
        ("decoder.layers.0.multihead_attn", "cross", False),
        ("decoder.layers.1.self_attn", "self", True),
        ("decoder.layers.1.multihead_attn", "cross", False),
    ]
    for one in found.maps.values():
        assert torch.allclose(one.weights.sum(-1), torch.ones(one.weights.shape[:-1]))
    first = found.maps["encoder.layers.0.self_attn"]
    assert first.allowed is not None
    assert torch.equal(first.allowed.expand_as(first.weights)[:, 0, 0], ~pad)
    with torch.no_grad():
        _out, own = model.encoder.layers[0].self_attn.eval()(
            source, source, source, key_padding_mask=pad, average_attn_weights=False
        )
    assert torch.allclose(first.weights, own, atol=1e-6)
    assert not seen
    assert found.shapes["encoder"] == (B, K, WIDTH)
    assert found.n_parameters == sum(one.numel() for one in model.parameters())
    assert not found.unseen


@pytest.mark.parametrize("causal", [False, True])
def test_written_out_attention_is_found_and_other_softmaxes_are_not(causal: bool) -> None:
    model = ByEinsum(causal=causal)
    (one,) = look(model, states()).maps.values()
    assert model.weights is not None
    assert torch.equal(one.weights, model.weights)
    assert one.weights.shape == (B, HEADS, Q, Q)
    assert (one.kind, one.is_causal, one.is_fused) == ("self", causal, False)
    none = look(Experts(), states())
    assert not none.maps
    assert "No attention" in none.unseen[0]


def test_additive_attention_is_found() -> None:
    found = look(Additive(), states(Q), states(K))
    (one,) = found.maps.values()
    assert torch.equal(one.weights[:, 0], found.output[1])
    assert one.kind == "cross"


def test_fused_attention_with_shared_keys_is_computed_once_more() -> None:
    model = Fused()
    allowed = torch.ones(Q, Q).tril().bool()
    x = states()
    (one,) = look(model, x, allowed).maps.values()
    with torch.no_grad():
        q = model.q(x).view(B, Q, HEADS, 8).transpose(1, 2)
        k = model.kv(x).view(B, Q, 2, 2, 8).permute(2, 0, 3, 1, 4)[0].repeat_interleave(2, 1)
        wanted = (q @ k.mT / 8**0.5).masked_fill(~allowed, -torch.inf).softmax(-1)
    assert torch.allclose(one.weights, wanted, atol=1e-6)
    assert (one.kind, one.is_causal, one.is_fused) == ("self", True, True)


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("encoder-decoder", {}),
        ("encoder-decoder", {"position": "t5-bias", "norm_first": True}),
        ("decoder-only", {"position": "rotary", "n_kv_heads": 1}),
        ("encoder-only", {}),
        ("vit", {}),
    ],
)
def test_models_of_the_engine_show_what_they_record_themselves(
    family: str, settings: dict[str, Any]
) -> None:
    if family == "vit":
        model, inputs = vit_model(**settings), (torch.randn(2, 3, 6, 6),)
    else:
        model, inputs = text_model(family, **settings), text_batch()
    with capture(model) as own, torch.no_grad():
        model(*inputs)
    found = look(model, *inputs)
    assert found.maps.keys() == own.of("weights").keys()
    for name, weights in own.of("weights").items():
        one, mask = found.maps[name], own.of("mask").get(name)
        assert torch.allclose(one.weights, weights, atol=1e-6)
        is_cross = name.endswith("cross_attention")
        assert one.kind == ("cross" if is_cross else "self")
        if mask is not None:
            shown = (
                torch.ones_like(weights, dtype=torch.bool) if one.allowed is None else one.allowed
            )
            assert torch.equal(shown.expand_as(weights) & (weights > 0), mask & (weights > 0))


def test_a_model_is_left_as_it_was_also_after_an_error() -> None:
    model = ByEinsum()
    model.train()
    model.out.eval()
    before = [part.training for part in model.modules()]
    fast = torch.backends.mha.get_fastpath_enabled()
    with pytest.raises(RuntimeError):
        look(model, torch.randn(B, Q, WIDTH + 1))
    look(model, states())
    assert [part.training for part in model.modules()] == before
    assert torch.backends.mha.get_fastpath_enabled() == fast
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())
    assert all(one.grad is None and one.requires_grad for one in model.parameters())


def test_a_compiled_model_is_looked_into_uncompiled() -> None:
    model = ByEinsum()
    compiled = torch.compile(model, backend="eager")
    x = states()
    assert torch.equal(look(compiled, x).maps[""].weights, look(model, x).maps[""].weights)


def test_half_precision_and_inference_tensors() -> None:
    model = ByEinsum().to(torch.bfloat16)
    (one,) = look(model, states().to(torch.bfloat16)).maps.values()
    assert one.weights.dtype == torch.float32
    assert one.is_causal
    with torch.inference_mode():
        (one,) = look(ByEinsum(), states()).maps.values()
    assert one.weights.shape == (B, HEADS, Q, Q)


def test_maps_too_large_are_refused_with_their_size_and_layers_can_be_named() -> None:
    model = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(WIDTH, HEADS, 64, batch_first=True),
        3,
        enable_nested_tensor=False,
    )
    x = states(16)
    size = 4 * B * HEADS * 16 * 16
    with pytest.raises(ValueError, match="layers="):
        look(model, x, most_bytes=2 * size)
    found = look(model, x, most_bytes=2 * size, layers=["layers.1.*"])
    assert list(found.maps) == ["layers.1.self_attn"]
    with pytest.raises(ValueError, match=r"torch\.nn\.Module"):
        look("model", x)  # type: ignore[arg-type]


def test_two_looks_at_once_are_both_right() -> None:
    model = ByEinsum()
    model.train()
    inputs = [states(4), states(6)]
    wanted = [look(model, x).maps[""].weights for x in inputs]
    found: dict[int, list[Tensor]] = {0: [], 1: []}

    def often(number: int) -> None:
        for _time in range(10):
            found[number].append(look(model, inputs[number]).maps[""].weights)

    threads = [threading.Thread(target=often, args=(number,)) for number in (0, 1)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    for number in (0, 1):
        assert len(found[number]) == 10
        assert all(torch.equal(each, wanted[number]) for each in found[number])
    assert model.training


def test_layers_that_run_twice_are_numbered() -> None:
    block = ByEinsum()

    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block = block

        def forward(self, x: Tensor) -> Tensor:
            self.block(x)
            return self.block(x * 2)

    assert list(look(Twice(), states()).maps) == ["block", "block#2"]


def test_weights_that_are_mixed_between_heads_are_told_of() -> None:
    class Talking(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.mix = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(HEADS, HEADS)

        def forward(self, x: Tensor) -> Tensor:
            n, length, _width = x.shape
            q, k, v = self.qkv(x).view(n, length, 3, HEADS, 8).permute(2, 0, 3, 1, 4)
            weights = (q @ k.mT).softmax(-1)
            return self.mix(weights.permute(0, 2, 3, 1)).permute(0, 3, 1, 2) @ v

    found = look(Talking(), states())
    assert not found.maps
    assert "before they multiply values" in found.unseen[0]
