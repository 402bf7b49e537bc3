"""What a map was computed from: queries, keys and values, where a forward pass shows them.

An arrangement of a product's operands is taken only if it gives the scores, and what is kept only
if its softmax gives the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

_EXACT = 1e-5
"""How far a weight may lie from the recorded one, in single precision."""
_ROUNDINGS = 16


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """What one map was computed from, float32 on the CPU.

    weights = softmax(query · key / divisor + bias) where the mask allows it. query: (batch,
    n_heads, query_len, d); key: (batch, n_heads, key_len, d); value: (batch, n_heads, key_len,
    d_v); divisor: scalar. bias: what else the model did to the scores, such as ALiBi or a cap,
    broadcastable to the weights; None for nothing. rest: (batch, n_heads, query_len), log of the
    sum of e^score over what the map does not show, a sink or keys beyond a crop; None for nothing.
    output: (batch, n_heads, query_len, d_v), the sum of weight * value over all keys.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    divisor: Tensor
    output: Tensor
    bias: Tensor | None = None
    rest: Tensor | None = None

    @property
    def tensors(self) -> dict[str, Tensor]:
        """Those that are there, by name."""
        named = ((one.name, getattr(self, one.name)) for one in fields(self))
        return {name: tensor for name, tensor in named if tensor is not None}


@dataclass(frozen=True, slots=True, eq=False)
class Operands:
    """Operands of the product that scores come from, (N, rows, d) and (N, d, columns).

    scale: what the product was multiplied by on its way to the softmax. Grouped keys may have fewer
    than N examples of heads.
    """

    left: Tensor
    right: Tensor
    scale: float

    def arranged(self, shape: torch.Size) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield queries and keys as (batch, n_heads, length, d), in each order that fits a shape.

        shape: (batch, n_heads, query_len, key_len) of the scores.
        """
        batch, n_heads, n_queries, n_keys = shape
        sides = ((self.left, self.right.mT), (self.right.mT, self.left))
        for query, key in sides:
            if query.ndim == 2:
                query, key = query[None], key[None]
            d, keys = query.shape[-1], _by_heads(key, batch, n_heads)
            n_all = batch * n_heads * n_queries * d
            if keys is None or keys.shape[2] != n_keys or query.numel() != n_all:
                continue
            yield query.reshape(batch, n_heads, n_queries, d), keys
            if len(query) == batch and n_heads > 1:  # one key for all heads: queries come first
                yield query.reshape(batch, n_queries, n_heads, d).transpose(1, 2), keys


def values_of(other: Tensor, one: Tensor, weights: Tensor, *, is_left: bool) -> Tensor | None:
    """Return values as (batch, n_heads, key_len, d_v); None where they lie in an unknown order.

    They were multiplied as ``one`` @ ``other``, or ``other`` @ ``one`` if not ``is_left``, where
    one holds the weights (batch, n_heads, query_len, key_len).
    """
    if not is_left:
        one, other = one.mT, other.mT
    if other.ndim == 2:
        one, other = one[None], other[None]
    batch, n_heads, _n_queries, n_keys = weights.shape
    if len(other) == batch * n_heads and n_heads > 1:
        if one.numel() // one.shape[-1] != weights.numel() // n_keys:
            return None
        if not torch.equal(one[..., :n_keys].reshape(weights.shape), weights):
            return None
    return _by_heads(other[:, :n_keys], batch, n_heads)


def _by_heads(keys: Tensor, batch: int, n_heads: int) -> Tensor | None:
    """Return (batch, n_heads, length, d) of (N, length, d), whose heads may share groups."""
    n_groups, is_uneven = divmod(len(keys), batch)
    if is_uneven or not n_groups or n_heads % n_groups:
        return None
    grouped = keys.reshape(batch, n_groups, *keys.shape[1:])
    return grouped.repeat_interleave(n_heads // n_groups, 1)


def vectors_of(
    arrangements: Iterable[tuple[Tensor, Tensor]],
    value: Tensor | None,
    scores: Tensor,
    weights: Tensor,
    *,
    allowed: Tensor | None,
    scale: float,
    queries: range,
    keys: range,
) -> Vectors | None:
    """Return what weights were computed from; None where they are not a softmax of such scores.

    scores: (batch, n_heads, query_len, columns) before the softmax, also those of a sink, which
    follow the keys. weights: (batch, n_heads, query_len, key_len). queries: those of scores and
    weights; keys: those that are kept; allowed: the mask of both.
    """
    if value is None or not scale or not weights.is_floating_point():
        return None
    rows, columns = slice(queries.start, queries.stop), slice(keys.start, keys.stop)
    eps = max(torch.finfo(one.dtype).eps for one in (scores, weights, value))
    scores, whole = scores.detach().float(), weights.detach().float()
    shown, weights = scores[..., columns], whole[..., columns]
    is_allowed = torch.ones_like(weights, dtype=torch.bool)
    if allowed is not None:
        is_allowed &= allowed.to(weights.device)
    outside = torch.cat([scores[..., : columns.start], scores[..., columns.stop :]], -1)
    best = None
    for query, key in arrangements:
        query, key = query.detach().float()[..., rows, :], key.detach().float()[..., columns, :]
        raw = query @ key.mT * scale
        shift, left = _unexplained(raw, shown, is_allowed, eps)
        best = best if best is not None and left is not None else (query, key, raw, shift, left)
        if left is None:
            break
    if best is None:
        return None
    query, key, raw, shift, bias = best
    rest = outside.logsumexp(-1) - shift if outside.shape[-1] else None
    scored = (raw if bias is None else raw + bias).masked_fill(~is_allowed, -torch.inf)
    if not _gives(weights, scored, rest, max(_EXACT, 4 * eps)):
        return None
    value = value.detach().float()
    made = Vectors(
        query,
        key,
        value[..., columns, :],
        torch.tensor(1 / scale),
        whole @ value,
        None if bias is None else _small(bias),
        rest,
    )
    return made.__class__(
        **{
            name: one.detach().to("cpu", copy=True).contiguous()
            for name, one in made.tensors.items()
        }
    )


def _unexplained(
    raw: Tensor, scores: Tensor, allowed: Tensor, eps: float
) -> tuple[Tensor, Tensor | None]:
    """Return a shift of each row, which changes no weight, and what else a product leaves open.

    raw, scores, allowed: (batch, n_heads, query_len, key_len). The shift is (batch, n_heads,
    query_len); the rest None where rounding explains it, else like the scores, 0 where forbidden.
    """
    left = torch.where(allowed, scores - raw, 0.0)
    tolerance = _ROUNDINGS * eps * (1 + torch.where(allowed, raw, 0.0).abs().amax())
    low = torch.where(allowed, left, torch.inf).amin(-1)
    high = torch.where(allowed, left, -torch.inf).amax(-1)
    if bool((high - low <= tolerance).all()) or not bool(allowed.any()):
        return torch.where(allowed.any(-1), (low + high) / 2, 0.0), None
    return torch.zeros_like(low), left


def _gives(weights: Tensor, scores: Tensor, rest: Tensor | None, most: float) -> bool:
    """Return whether the softmax of scores gives weights, in rows where anything is allowed."""
    if rest is not None:
        scores = torch.cat([scores, rest[..., None]], -1)
    is_row = (scores[..., : weights.shape[-1]] > -torch.inf).any(-1, keepdim=True)
    wrong = (scores.softmax(-1)[..., : weights.shape[-1]] - weights).abs() > most
    return not bool((wrong & is_row).any())


def _small(bias: Tensor) -> Tensor:
    """Return a bias without the axes of examples and heads along which it stays as it is."""
    for axis in (0, 1):
        first = bias.narrow(axis, 0, 1)
        if bool(((bias - first).abs() <= _EXACT).all()):
            bias = first
    return bias


def joined(
    several: Sequence[Vectors | None], join: Callable[[Sequence[Tensor]], Tensor]
) -> Vectors | None:
    """Return the vectors of several heads as one; None where one lacks or they differ in form.

    join: puts tensors (batch, 1, rows, columns) together.
    """
    found = _alike(several)
    if not found:
        return None
    made = {
        name: join([one.tensors[name] for one in found])
        for name in ("query", "key", "value", "output")
    }
    if any(one.bias is not None for one in found):
        made["bias"] = join([_whole_bias(one) for one in found])
    if found[0].rest is not None:
        made["rest"] = join([one.tensors["rest"][..., None] for one in found])[..., 0]
    return Vectors(**made, divisor=found[0].divisor)


def joined_queries(several: Sequence[Vectors | None]) -> Vectors | None:
    """Return the vectors of one query each as those of all; None where their keys differ."""
    found = _alike(several)
    if not found or any(
        not torch.equal(getattr(one, name), getattr(found[0], name))
        for one in found
        for name in ("key", "value")
    ):
        return None
    first = found[0]
    made = {
        name: torch.cat([one.tensors[name] for one in found], 2) for name in ("query", "output")
    }
    if any(one.bias is not None for one in found):
        made["bias"] = torch.cat([_whole_bias(one) for one in found], 2)
    if first.rest is not None:
        made["rest"] = torch.cat([one.tensors["rest"] for one in found], 2)
    return replace(first, **made)


def _alike(several: Sequence[Vectors | None]) -> list[Vectors]:
    """Return vectors of one form, none if one lacks or is of another."""
    found = [one for one in several if one is not None]
    forms = {
        (float(one.divisor), one.query.shape, one.value.shape, one.rest is None) for one in found
    }
    return found if len(found) == len(several) and len(forms) == 1 else []


def _whole_bias(one: Vectors) -> Tensor:
    shape = (*one.query.shape[:3], one.key.shape[2])
    return torch.zeros(shape) if one.bias is None else one.bias.expand(shape)
