"""Explicit attention, softmax(q k^T) v with its map in memory, against the fused kernel.

Dao et al. 2022, "FlashAttention": the fused kernel reads keys in tiles and never stores the (Q, K)
map, so the memory for the backward pass grows linearly with the length.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager
from functools import partial

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from tfm_core.inspect.speed.bench import Bench, compare, saved_bytes
from tfm_core.inspect.speed.report import BenchmarkCase
from tfm_core.layers.attention import MultiHeadAttention, attention_weights, fused_attention
from tfm_core.layers.recorder import recording
from tfm_core.sentences import N_

BACKENDS = {  # what autograd calls the kernel that ran -> its name for a reader
    "ScaledDotProductFlashAttentionForCpuBackward0": N_("flash, for CPU"),
    "ScaledDotProductFlashAttentionBackward0": "flash",
    "ScaledDotProductEfficientAttentionBackward0": N_("memory-efficient"),
    "ScaledDotProductCudnnAttentionBackward0": "cuDNN",
}


def explicit_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    divisor: float | None = None,
) -> Tensor:
    """Weights first, all (B, H, Q, K) of them in memory, then the weighted sum of values."""
    return attention_weights(q, k, mask, bias, divisor=divisor) @ v


def einsum_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    divisor: float | None = None,
) -> Tensor:
    """The same by two einsums. q: (B, H, Q, D), k and v: (B, H, K, D)."""
    q, k, v = (part.transpose(1, 2) for part in (q, k, v))
    scores = torch.einsum("nqhd,nkhd->nhqk", q, k)
    scores = scores / (math.sqrt(q.size(-1)) if divisor is None else divisor)
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = scores.softmax(-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return torch.einsum("nhql,nlhd->nqhd", weights, v).transpose(1, 2)


class _Nothing:
    """A recorder that keeps nothing; while it is active, attention takes its explicit path."""

    def wants(self, module: object, kinds: Collection[str]) -> bool:
        """Ask for everything."""
        return True

    def record(self, module: object, tensors: dict[str, Tensor]) -> None:
        """Let everything go."""


def written_out() -> AbstractContextManager[None]:
    """Return a context in which all attention of our models is computed step by step."""
    return recording(_Nothing())


class _Calls:
    """A recorder that keeps what each attention was computed from."""

    def wants(self, module: object, kinds: Collection[str]) -> bool:
        """Ask for everything."""
        return True

    def __init__(self) -> None:
        self.found: list[dict[str, Tensor]] = []
        self.divisors: list[float] = []

    def record(self, module: object, tensors: dict[str, Tensor]) -> None:
        """Keep query, key, value and what decides who may look where."""
        if isinstance(module, MultiHeadAttention) and "weights" in tensors:
            names = {"query", "key", "value", "mask", "bias"} & tensors.keys()
            self.divisors.append(module.divisor)
            self.found.append({name: tensors[name].detach() for name in names})


def backend_name(out: Tensor) -> str:
    """Return which kernel made a tensor, as autograd remembers it."""
    name = out.grad_fn.name() if out.grad_fn is not None else ""
    return BACKENDS.get(name, N_("math, step by step"))


def cases(bench: Bench) -> Iterator[BenchmarkCase]:
    """Compare the first attention of the model, then the whole pass."""
    calls = _Calls()
    with recording(calls):
        bench.loss()
    yield _alone(calls.found[0], calls.divisors[0])
    yield _whole(bench)


def _alone(seen: dict[str, Tensor], divisor: float) -> BenchmarkCase:
    q, k, v = (seen[name].clone().requires_grad_() for name in ("query", "key", "value"))
    mask, bias = seen.get("mask"), seen.get("bias")

    def run(side: str) -> Tensor:
        for tensor in (q, k, v):
            tensor.grad = None
        if side == "explicit":
            out = explicit_attention(q, k, v, mask, bias, divisor=divisor)
        elif side == "einsum":
            out = einsum_attention(q, k, v, mask, bias, divisor=divisor)
        elif side == "math":
            with sdpa_kernel([SDPBackend.MATH]):
                out = fused_attention(q, k, v, mask, bias, divisor=divisor)
        else:
            out = fused_attention(q, k, v, mask, bias, divisor=divisor)
        out.square().sum().backward()  # type: ignore[no-untyped-call]
        return out

    def results(side: str) -> dict[str, Tensor]:
        out = run(side).detach()
        gradients = [tensor.grad.flatten() for tensor in (q, k, v) if tensor.grad is not None]
        return {"output": out, "gradients": torch.cat(gradients)}

    names = ("explicit", "einsum", "math", "fused")
    reference = results("explicit")
    equal = [compare(reference, results(name), name) for name in names[1:]]
    calls: dict[str, Callable[[], object]] = {name: partial(run, name) for name in names}
    batch, heads, length, width = q.shape
    return BenchmarkCase(
        N_("attention of one layer"),
        calls,
        tuple(one for group in equal for one in group),
        n_bytes={name: saved_bytes(calls[name]) for name in names},
        facts={
            "backend": backend_name(run("fused")),
            "shape": f"({batch}, {heads}, {length}, {width})",
            "keys": float(k.size(2)),
        },
    )


def _whole(bench: Bench) -> BenchmarkCase:
    reference = bench.results(written_out)
    return BenchmarkCase(
        N_("whole model, forward and backward"),
        {"explicit": lambda: bench.pass_(written_out), "fused": bench.pass_},
        compare(reference, bench.results(), "fused"),
        n_bytes={
            "explicit": saved_bytes(lambda: bench.pass_(written_out)),
            "fused": saved_bytes(bench.pass_),
        },
    )
