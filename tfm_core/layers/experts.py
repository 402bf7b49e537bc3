"""Mixture of experts: a router sends each token to a few of several feed-forward layers.

The router's softmax over the chosen experts is Mixtral's (Jiang et al. 2024, section 2.1); the loss
that keeps the experts busy alike is that of the Switch Transformer (Fedus et al. 2022, Eq. 4 to 6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor, nn

from tfm_core.layers import recorder
from tfm_core.layers.feed_forward import FeedForward

Routed = list[tuple[Tensor, int]]
"""The logits (B, T, E) of each router, and how many experts each token passes there."""

_routed: ContextVar[Routed | None] = ContextVar("routed", default=None)


@contextmanager
def routing() -> Iterator[Routed]:
    """Collect what the routers say inside the block, layer by layer, for ``load_balance``."""
    routed: Routed = []
    token = _routed.set(routed)
    try:
        yield routed
    finally:
        _routed.reset(token)


class MixtureOfExperts(nn.Module):
    """Feed-forward layers of which each token passes ``top_k``, weighted by the router.

    A token's result depends on no other token: there is no capacity, and none is dropped.
    """

    def __init__(
        self, d_model: int, experts: int, make: Callable[[], FeedForward], *, top_k: int = 2
    ) -> None:
        """experts: how many there are; make: returns one of them.

        Raises ValueError where a token would pass more experts than there are.
        """
        super().__init__()
        if not 1 <= top_k <= experts:
            raise ValueError(f"top_k {top_k} is not from 1 to the {experts} experts")
        self.top_k = top_k
        self.router = nn.Linear(d_model, experts, bias=False)
        self.experts = nn.ModuleList(make() for _ in range(experts))

    def forward(self, x: Tensor) -> Tensor:
        """Map x: (B, T, d_model) to the same shape."""
        logits = self.router(x)
        self._tell(logits)
        shares, chosen = top_shares(logits, self.top_k)
        # how many tokens each expert gets is not known while a graph is traced, nor without data
        is_traced = torch.compiler.is_compiling() or x.is_meta
        mixed = (self._mixed_by_all if is_traced else self._mixed)(x, shares, chosen)
        out = recorder.changed(self, "output", mixed, x)
        if recorder.active():
            recorder.record(self, input=x, gates=self._gates(shares, chosen), output=out)
        return out

    def _tell(self, logits: Tensor) -> None:
        routed = None if torch.compiler.is_compiling() else _routed.get()
        if routed is not None:
            routed.append((logits, self.top_k))

    def _mixed(self, x: Tensor, shares: Tensor, chosen: Tensor) -> Tensor:
        """Return (B, T, d_model): every expert maps the tokens that chose it, and no others."""
        tokens, flat = x.flatten(0, -2), chosen.flatten()  # (B * T, d_model), (B * T * top_k,)
        order = flat.argsort(stable=True)  # by expert, and within one by token
        counts = flat.bincount(minlength=len(self.experts)).tolist()
        groups = torch.split(tokens.index_select(0, order // self.top_k), counts)
        made = torch.cat([expert(own) for expert, own in zip(self.experts, groups, strict=True)])
        by_token = made.index_select(0, order.argsort()).view(*chosen.shape, -1)
        return (by_token * shares.to(made.dtype)[..., None]).sum(-2)

    def _mixed_by_all(self, x: Tensor, shares: Tensor, chosen: Tensor) -> Tensor:
        """Return the same where every expert maps all tokens, for graphs of fixed sizes."""
        made = torch.stack([expert(x) for expert in self.experts], -2)  # (B, T, E, d_model)
        return (made * self._gates(shares, chosen).to(made.dtype)[..., None]).sum(-2)

    def _gates(self, shares: Tensor, chosen: Tensor) -> Tensor:
        """Return the share of each expert (B, T, E), 0 where a token does not pass it."""
        gates = shares.new_zeros(*shares.shape[:-1], len(self.experts))
        return gates.scatter(-1, chosen, shares)


def top_shares(logits: Tensor, top_k: int) -> tuple[Tensor, Tensor]:
    """Return the shares (..., top_k) of the likeliest experts of each token, and which they are.

    logits: (..., E). The shares are a softmax over these experts alone, as in Mixtral. A single
    expert keeps its probability among all, as in the Switch Transformer (Eq. 2): a share of 1 would
    teach the router nothing.
    """
    probabilities = logits.float().softmax(-1)
    shares, chosen = probabilities.topk(top_k, dim=-1)
    return (shares / shares.sum(-1, keepdim=True) if top_k > 1 else shares), chosen


def load_balance(logits: Tensor, top_k: int) -> Tensor:
    """Return how unequally tokens are spread over experts: 1 where alike, E where one gets all.

    E times the sum of f_i P_i: the share f_i of choices that fall on expert i, and its mean
    probability P_i (Fedus et al. 2022, Eq. 4 to 6). logits: (..., E). Returns a scalar that teaches
    by P_i alone.
    """
    probabilities = logits.float().softmax(-1).flatten(0, -2)  # (N, E)
    chosen = probabilities.topk(top_k, dim=-1).indices
    is_chosen = torch.zeros_like(probabilities).scatter(1, chosen, 1.0)
    shares = is_chosen.mean(0) / top_k
    return logits.size(-1) * (shares * probabilities.mean(0)).sum()
