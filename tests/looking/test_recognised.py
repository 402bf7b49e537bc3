"""``look`` tells attention from other operations: learned queries, masks, windows, channels."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.looking.test_forward import HEADS, WIDTH, B, K, Q, states
from tfm_core import look


class Pooling(nn.Module):
    """Learned queries ask (pooling by attention, a Q-Former, a Perceiver), computed in one way."""

    def __init__(self, how: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.num_heads, self.how = HEADS, how
        self.asked = nn.Parameter(torch.randn(1, 3, WIDTH))
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.own: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        query = self.asked.expand(len(x), -1, -1)
        if self.how == "module":
            out, self.own = self.attention(query, x, x, average_attn_weights=False)
            return out
        projected = zip(
            (query, x, x),
            self.attention.in_proj_weight.chunk(3),
            self.attention.in_proj_bias.chunk(3),
            strict=True,
        )
        q, k, v = (
            F.linear(one, weight, bias).unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for one, weight, bias in projected
        )
        if self.how == "fused":
            return F.scaled_dot_product_attention(q, k, v)
        scores = q @ k.mT if self.how == "matmul" else torch.einsum("bhqd,bhkd->bhqk", q, k)
        self.own = (scores / 8**0.5).softmax(-1)
        if self.how == "matmul":
            return self.own @ v
        return torch.einsum("bhqk,bhkd->bqhd", self.own, v)


@pytest.mark.parametrize("how", ["module", "fused", "matmul", "einsum"])
def test_learned_queries_are_seen_however_they_are_computed(how: str) -> None:
    model, x = Pooling(how), states(K)
    with torch.no_grad():
        _out, own = model.attention(model.asked.expand(B, -1, -1), x, x, average_attn_weights=False)
    found = look(model, x)
    (one,) = found.maps.values()
    assert torch.allclose(one.weights, own, atol=1e-6)
    assert one.kind == "cross"
    assert not found.unseen


def test_learned_queries_that_ask_one_another_first_are_seen_too() -> None:
    class Detector(nn.Module):  # as DETR's first decoder layer: values of zeros
        def __init__(self) -> None:
            super().__init__()
            self.asked = nn.Parameter(torch.randn(1, 3, WIDTH))
            self.own = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
            self.cross = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)

        def forward(self, x: Tensor) -> Tensor:
            asked = self.asked.expand(len(x), -1, -1)
            y = self.own(asked, asked, torch.zeros_like(asked), average_attn_weights=False)[0]
            return self.cross(y + asked, x, x, average_attn_weights=False)[0]

    found = look(Detector(), states(K))
    assert [(name, one.kind) for name, one in found.maps.items()] == [
        ("own", "self"),
        ("cross", "cross"),
    ]
    assert not found.unseen


def test_a_class_token_that_asks_is_seen() -> None:
    class ClassAttention(nn.Module):  # CaiT: the token is the first key, too
        def __init__(self) -> None:
            super().__init__()
            self.token = nn.Parameter(torch.randn(1, 1, WIDTH))
            self.q, self.kv = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 2 * WIDTH)

        def forward(self, x: Tensor) -> Tensor:
            token = self.token.expand(len(x), -1, -1)
            k, v = self.kv(torch.cat([token, x], 1)).chunk(2, -1)
            self.weights = (self.q(token) @ k.mT).softmax(-1)
            return self.weights @ v

    model = ClassAttention()
    (one,) = look(model, states(K)).maps.values()
    assert torch.equal(one.weights[:, 0], model.weights)
    assert one.weights.shape == (B, 1, 1, K + 1)


@pytest.mark.parametrize("gain", [60.0, 1000.0])
@pytest.mark.parametrize("need_weights", [False, True])
def test_scores_that_explode_are_no_mask(gain: float, need_weights: bool) -> None:
    model = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
    with torch.no_grad():
        model.in_proj_weight *= gain
    x = states()
    (one,) = look(model, x, x, x, need_weights=need_weights).maps.values()
    assert float(one.weights.min()) == 0.0
    assert one.allowed is None
    causal = torch.ones(Q, Q).triu(1).bool()
    given = {"attn_mask": causal, "need_weights": need_weights}
    (one,) = look(model, x, x, x, **given).maps.values()
    assert one.allowed is not None
    assert torch.equal(one.allowed.expand(B, HEADS, Q, Q), ~causal.expand(B, HEADS, Q, Q))


@pytest.mark.parametrize(
    "apply",
    [
        lambda scores, mask: torch.where(mask, scores, -1e4),
        lambda scores, mask: scores + torch.zeros(Q, Q).masked_fill(~mask, -1e9),
        lambda scores, mask: scores - 1e9 * (~mask).float(),
        lambda scores, mask: scores.index_put(
            (~mask).expand(B, 2, Q, Q).nonzero(as_tuple=True), torch.tensor(-1e9)
        ),
        lambda scores, mask: scores.masked_fill_(~mask, -6e3).clone().div(2.0),
    ],
)
def test_a_mask_is_found_however_it_is_applied(apply: Any) -> None:
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.n_heads, self.qkv = 2, nn.Linear(WIDTH, 3 * WIDTH)

        def forward(self, x: Tensor) -> Tensor:
            q, k, v = self.qkv(60 * x).unflatten(-1, (3, 2, -1)).permute(2, 0, 3, 1, 4)
            return apply(60 * q @ k.mT, torch.ones(Q, Q).tril().bool()).softmax(-1) @ v

    (one,) = look(Masked(), states()).maps.values()
    assert one.allowed is not None
    assert torch.equal(one.allowed.expand(B, 2, Q, Q)[0, 0], torch.ones(Q, Q).tril().bool())


class Latent(nn.Module):
    """Keys and values from a narrow common vector, queries from another (DeepSeek), a cache."""

    def __init__(self) -> None:
        super().__init__()
        self.n_heads = HEADS
        self.down_q, self.up_q = nn.Linear(WIDTH, 7), nn.Linear(7, WIDTH)
        self.down, self.norm, self.up = (
            nn.Linear(WIDTH, 5),
            nn.LayerNorm(5),
            nn.Linear(5, 2 * WIDTH),
        )

    def forward(self, x: Tensor) -> Tensor:
        cache: list[Tensor] = []
        for part in x.split([3, 1, 1], 1):
            q = self.up_q(self.down_q(part)).unflatten(-1, (HEADS, -1)).transpose(1, 2)
            cache.append(self.up(self.norm(self.down(part))))
            k, v = torch.cat(cache, 1).unflatten(-1, (2, HEADS, -1)).permute(2, 0, 3, 1, 4)
            out = F.scaled_dot_product_attention(q, k, v)
        return out


def test_latent_attention_and_steps_with_a_cache_are_self_attention() -> None:
    found = look(Latent(), states(K))
    assert [(one.kind, one.length) for one in found.maps.values()] == [
        ("self", (3, 3)),
        ("self", (1, 4)),
        ("self", (1, 5)),
    ]


def test_a_decoder_that_reads_what_the_encoder_read_asks_across() -> None:
    model = nn.Transformer(WIDTH, HEADS, 1, 1, 64, batch_first=True)
    x = states()
    kinds = [one.kind for one in look(model, x, x).maps.values()]
    assert kinds == ["self", "self", "cross"]


@pytest.mark.parametrize("is_fused", [False, True])
@pytest.mark.parametrize("order", ["bwhqd", "bhwqd"])
def test_windows_are_examples_and_heads_stay_heads(order: str, is_fused: bool) -> None:
    class Windows(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.num_heads, self.qkv = HEADS, nn.Linear(WIDTH, 3 * WIDTH)

        def forward(self, x: Tensor) -> Tensor:
            parts = self.qkv(x.unflatten(1, (3, 2))).unflatten(-1, (3, HEADS, -1))
            q, k, v = torch.einsum(f"bwqshd->s{order}", parts)
            if is_fused:
                return F.scaled_dot_product_attention(q, k, v)
            return (q @ k.mT).softmax(-1) @ v

    (one,) = look(Windows(), states(6)).maps.values()
    assert one.weights.shape == (B * 3, HEADS, 2, 2)
    assert torch.allclose(one.weights.sum(-1), torch.ones(B * 3, HEADS, 2))


@pytest.mark.parametrize("is_fused", [False, True])
def test_attention_to_channels_is_named_not_shown(is_fused: bool) -> None:
    class Channels(nn.Module):  # XCiT
        def __init__(self) -> None:
            super().__init__()
            self.num_heads, self.qkv = HEADS, nn.Linear(WIDTH, 3 * WIDTH)

        def forward(self, x: Tensor) -> Tensor:
            q, k, v = self.qkv(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 4, 1)
            if is_fused:
                return F.scaled_dot_product_attention(q, k, v)
            return (F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT).softmax(-1) @ v

    found = look(nn.Sequential(Channels()), states(K))
    assert not found.maps
    assert [str(one) for one in found.unseen] == [
        "0 attends to channels, not to positions; its weights are not shown."
    ]


def test_layers_that_mix_positions_otherwise_are_named_and_routers_are_not() -> None:
    class Linear(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(WIDTH, 3 * WIDTH)

        def forward(self, x: Tensor) -> Tensor:
            q, k, v = self.qkv(x).chunk(3, -1)
            return x + q.relu() @ (k.relu().mT @ v)

    class Routed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate = nn.Linear(WIDTH, 4)
            self.experts = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _one in range(4))

        def forward(self, x: Tensor) -> Tensor:
            shares, chosen = self.gate(x).topk(2)
            shares = torch.zeros(*x.shape[:2], 4).scatter(-1, chosen, shares.softmax(-1))
            return sum(
                share[..., None] * one(x)
                for share, one in zip(shares.unbind(-1), self.experts, strict=True)
            )

    class Convolved(nn.Conv1d):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x.mT).mT

    model = nn.Sequential(
        Latent(),
        nn.Flatten(1),
        nn.Unflatten(1, (1, WIDTH)),
        Linear(),
        Routed(),
        Convolved(WIDTH, WIDTH, 3, padding=1, groups=WIDTH),
    )
    found = look(model, states(K))
    assert all(name.startswith("0") for name in found.maps)
    assert [str(one) for one in found.unseen] == [
        "Parts that mix positions without a softmax, such as linear attention or a convolution, "
        "have no map: 2, such as 3, 5."
    ]
