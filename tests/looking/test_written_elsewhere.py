"""Attention as notebooks and known repositories write it: the map found is the one they use."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm_core import look

N, SRC, TGT, WIDTH, HEADS = 3, 7, 5, 12, 2


def states(length: int = SRC) -> Tensor:
    return torch.randn(N, length, WIDTH)


class ByHeads(nn.Module):
    """The notebook's attention: views, einsum over heads, a mask of zeros before the scale."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = HEADS
        self.values, self.keys, self.queries, self.fc_out = (
            nn.Linear(WIDTH, WIDTH) for _one in range(4)
        )
        self.attention: Tensor | None = None

    def forward(self, v: Tensor, k: Tensor, q: Tensor, mask: Tensor | None) -> Tensor:
        v, k, q = (
            part(x).reshape(x.shape[0], x.shape[1], HEADS, -1)
            for part, x in ((self.values, v), (self.keys, k), (self.queries, q))
        )
        energy = torch.einsum("nqhd,nkhd->nhqk", q, k)
        if mask is not None:
            energy = energy.masked_fill(mask == 0, -1e20)
        self.attention = torch.softmax(energy / WIDTH**0.5, dim=3)
        mixed = torch.einsum("nhql,nlhd->nqhd", self.attention, v)
        return self.fc_out(mixed.reshape(mixed.shape[0], mixed.shape[1], WIDTH))


class OnSlices(nn.Module):
    """The notebook's attention of a ViT: a loop over pictures, and one over heads on slices."""

    def __init__(self) -> None:
        super().__init__()
        self.d_head, self.n_heads = WIDTH // HEADS, HEADS
        self.q, self.k, self.v = (
            nn.ModuleList(nn.Linear(self.d_head, self.d_head) for _head in range(HEADS))
            for _one in range(3)
        )
        self.attention: list[Tensor] = []

    def forward(self, pictures: Tensor) -> Tensor:
        self.attention = []
        rows = []
        for picture in pictures:
            row = []
            for head in range(HEADS):
                part = picture[:, head * self.d_head : (head + 1) * self.d_head]
                q, k, v = self.q[head](part), self.k[head](part), self.v[head](part)
                self.attention.append(torch.softmax(q @ k.T / self.d_head**0.5, dim=-1))
                row.append(self.attention[-1] @ v)
            rows.append(torch.hstack(row))
        return torch.cat([torch.unsqueeze(row, dim=0) for row in rows])


class Recurrent(nn.Module):
    """An LSTM that asks for one word at a time, scored by tanh (Bahdanau et al. 2015)."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(WIDTH, WIDTH)
        self.attn, self.v = nn.Linear(2 * WIDTH, WIDTH), nn.Linear(WIDTH, 1, bias=False)

    def forward(self, memory: Tensor, words: Tensor) -> Tensor:
        hidden = cell = memory[:, -1]
        rows = []
        for at in range(words.shape[1]):
            again = hidden.unsqueeze(1).repeat(1, memory.shape[1], 1)
            scores = self.v(torch.tanh(self.attn(torch.cat((again, memory), dim=2)))).squeeze(2)
            rows.append(F.softmax(scores, dim=1))
            context = torch.bmm(rows[-1].unsqueeze(1), memory).squeeze(1)
            hidden, cell = self.cell(words[:, at] + context, (hidden, cell))
        return torch.stack(rows, 1)


class LikeMinGpt(nn.Module):
    """One projection, heads in front, a buffer of ones below the diagonal, and dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.attn_dropout, self.n_head = nn.Dropout(0.5), HEADS
        self.register_buffer("bias", torch.tril(torch.ones(16, 16)).view(1, 1, 16, 16))
        self.attention: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        n, length, _width = x.size()
        q, k, v = (
            one.view(n, length, HEADS, -1).transpose(1, 2)
            for one in self.c_attn(x).split(WIDTH, dim=2)
        )
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :length, :length] == 0, float("-inf"))
        self.attention = F.softmax(att, dim=-1)
        y = self.attn_dropout(self.attention) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(n, length, WIDTH))


class LikeVitPytorch(nn.Module):
    """Its softmax is a module of its own; the heads are called ``heads``."""

    def __init__(self) -> None:
        super().__init__()
        self.heads, self.attend, self.dropout = HEADS, nn.Softmax(dim=-1), nn.Dropout(0.5)
        self.norm = nn.LayerNorm(WIDTH)
        self.to_qkv, self.to_out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH)
        self.attention: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            one.unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for one in self.to_qkv(self.norm(x)).chunk(3, dim=-1)
        )
        self.attention = self.attend(torch.matmul(q, k.transpose(-1, -2)) * 6**-0.5)
        out = torch.matmul(self.dropout(self.attention), v)
        return self.to_out(out.transpose(1, 2).flatten(2))


class Annotated(nn.Module):
    """The Annotated Transformer's: four cloned projections, a function, ``attn`` kept."""

    def __init__(self) -> None:
        super().__init__()
        self.h, self.d_k = HEADS, WIDTH // HEADS
        linear = nn.Linear(WIDTH, WIDTH)
        self.linears = nn.ModuleList(copy.deepcopy(linear) for _one in range(4))
        self.attn: Tensor | None = None

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        n = query.size(0)
        query, key, value = (
            lin(x).view(n, -1, self.h, self.d_k).transpose(1, 2)
            for lin, x in zip(self.linears, (query, key, value), strict=False)
        )
        scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask.unsqueeze(1) == 0, -1e9)
        self.attn = scores.softmax(dim=-1)
        x = torch.matmul(self.attn, value).transpose(1, 2).contiguous().view(n, -1, WIDTH)
        return self.linears[-1](x)


class HeadsInAList(nn.Module):
    """A module a head, in a list called ``heads``."""

    class Head(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.key, self.query, self.value = (
                nn.Linear(WIDTH, 4, bias=False) for _one in range(3)
            )
            self.attention: Tensor | None = None

        def forward(self, x: Tensor) -> Tensor:
            wei = self.query(x) @ self.key(x).transpose(-2, -1) * 4**-0.5
            wei = wei.masked_fill(torch.tril(torch.ones(*wei.shape[-2:])) == 0, float("-inf"))
            self.attention = F.softmax(wei, dim=-1)
            return self.attention @ self.value(x)

    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleList(self.Head() for _head in range(3))
        self.proj = nn.Linear(12, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.proj(torch.cat([head(x) for head in self.heads], dim=-1))


class QueriesFirst(nn.Module):
    """Scores as (batch, query, key, head): the softmax runs over an axis in the middle."""

    def __init__(self) -> None:
        super().__init__()
        self.num_heads, self.qkv = HEADS, nn.Linear(WIDTH, 3 * WIDTH)
        self.attention: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, HEADS, -1)).unbind(2)
        weights = torch.einsum("bqhd,bkhd->bqkh", q, k).softmax(2)
        self.attention = weights.permute(0, 3, 1, 2)
        return torch.einsum("bqkh,bkhd->bqhd", weights, v).flatten(2)


@pytest.mark.parametrize(
    ("make", "kind", "is_causal"),
    [
        (lambda: Model(ByHeads(), lambda one, x, _y: one(x, x, x, None)), "self", False),
        (lambda: Model(ByHeads(), lambda one, x, y: one(x, x, y, _padding())), "cross", False),
        (lambda: Model(ByHeads(), lambda one, _x, y: one(y, y, y, _triangle())), "self", True),
        (lambda: Model(Annotated(), lambda one, x, y: one(y, x, x, None)), "cross", False),
        (lambda: Model(Annotated(), lambda one, _x, y: one(y, y, y, _triangle()[0])), "self", True),
        (lambda: Model(LikeMinGpt(), lambda one, x, _y: one(x)), "self", True),
        (lambda: Model(LikeVitPytorch(), lambda one, x, _y: one(x)), "self", False),
        (lambda: Model(QueriesFirst(), lambda one, x, _y: one(x)), "self", False),
    ],
)
def test_the_map_found_is_the_one_that_the_module_used(
    make: Callable[[], Model], kind: str, is_causal: bool
) -> None:
    model = make()
    found = look(model, states(), states(TGT))
    (one,) = found.maps.values()
    inner = model.inner
    own = inner.attn if isinstance(inner, Annotated) else inner.attention
    assert torch.equal(one.weights, own)
    assert (one.name, one.kind, one.is_causal) == ("inner", kind, is_causal)
    assert not found.unseen


class Model(nn.Module):
    def __init__(self, inner: nn.Module, call: Callable[..., Tensor]) -> None:
        super().__init__()
        self.inner, self.call = inner, call

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.call(self.inner, x, y)


def _triangle() -> Tensor:
    return torch.tril(torch.ones(TGT, TGT)).expand(1, 1, TGT, TGT)


def _padding() -> Tensor:
    return (torch.arange(SRC) < torch.tensor([[SRC], [4], [2]]))[:, None, None]


def test_masks_and_heads_written_in_other_ways_are_shown_as_they_were() -> None:
    found = look(
        Model(ByHeads(), lambda one, x, y: one(x, x, y, _padding())), states(), states(TGT)
    )
    (one,) = found.maps.values()
    assert one.allowed is not None
    assert torch.equal(one.allowed.expand_as(one.weights), _padding().expand_as(one.weights))
    model = OnSlices()
    (one,) = look(model, states()).maps.values()
    assert torch.equal(one.weights, torch.stack(model.attention).view(N, HEADS, SRC, SRC))
    model = HeadsInAList()
    (one,) = look(nn.Sequential(model), states()).maps.values()
    assert one.name == "0"
    assert one.is_causal
    assert torch.equal(one.weights, torch.stack([head.attention for head in model.heads], 1))
    found = look(Recurrent(), states(), states(TGT))
    (one,) = found.maps.values()
    assert torch.equal(one.weights[:, 0], found.output)
    assert one.kind == "cross"


def test_a_sink_takes_its_share_and_a_head_that_is_switched_off_shows_nothing() -> None:
    class Changed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.n_heads, self.qkv = HEADS, nn.Linear(WIDTH, 3 * WIDTH)

        def forward(self, x: Tensor, on: Tensor) -> Tensor:
            q, k, v = self.qkv(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
            scores = torch.cat([q @ k.mT, torch.zeros(N, HEADS, SRC, 1)], -1)
            return (scores.softmax(-1)[..., :-1] * on[:, None, None]) @ v

    (one,) = look(Changed(), states(), torch.tensor([1.0, 0.0])).maps.values()
    assert one.weights.shape == (N, HEADS, SRC, SRC)
    assert bool((one.weights[:, 0].sum(-1) < 1).all())
    assert not one.weights[:, 1].any()
