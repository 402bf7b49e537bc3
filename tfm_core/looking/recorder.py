"""What runs inside a forward pass: every attention map, seen where PyTorch computes it.

Each operation passes ``Recorder``. Attention shows in two ways: as a fused operation, whose weights
are computed once more from the query, the key and the mask that it was given; or as a softmax whose
result multiplies values. A softmax over classes multiplies nothing, one over experts multiplies
parameters, or runs over an axis that parameters made: neither is attention.
"""

from __future__ import annotations

import logging
import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tfm_core.looking.layout import allowed_of, as_heads, axes_of, kept_values, memory_of
from tfm_core.looking.vectors import Operands, Vectors, values_of, vectors_of

Kind = Literal["self", "cross"]

_log = logging.getLogger(__name__)

_FUSED = "_scaled_dot_product"
_SOFTMAX = frozenset({"_softmax", "_safe_softmax"})
_PRODUCTS = frozenset({"bmm", "mm", "baddbmm", "mv"})
_LINEAR = frozenset({"mm", "addmm", "bmm", "baddbmm", "mv", "linear", "convolution"})
_KEEPS_VALUE = frozenset({"clone", "_to_copy", "copy_", "_unsafe_view", "contiguous"})
_CHANGES_WEIGHTS = frozenset({"mul", "div", "masked_fill", "where"})
_KEEPS_WEIGHTS = _KEEPS_VALUE | _CHANGES_WEIGHTS | {"native_dropout"}
_SCALES = frozenset({"mul", "mul_", "div", "div_"})
_MAX_OPERANDS = 32  # products whose operands are kept until a softmax comes
_OPAQUE = ("native_multi_head_attention", "transformer_encoder_layer", "flash", "attention", "attn")


class Place(NamedTuple):
    """Where something runs: the module's name, the number of its call, and what it was called with.

    n_heads: that it, or one around it, says it has; 0 where none does. shape: of the first tensor
    that this one was called with.
    """

    module: str
    call: int
    n_heads: int
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Recorded:
    """One computation of attention.

    weights: float32 on the CPU, (batch, n_heads, query_len, key_len). allowed: the mask as it was
    applied, bool, broadcastable to it, True = may attend; None where all is allowed. queries, keys:
    the positions of rows and columns; length: of both before a crop. is_fused: the weights were
    computed once more from the query and the key of a fused operation. is_over_keys: whether the
    softmax runs over the keys. vectors: what it was computed from, where that shows.
    """

    place: Place
    kind: Kind
    weights: Tensor
    allowed: Tensor | None
    queries: range
    keys: range
    length: tuple[int, int]
    is_fused: bool
    is_over_keys: bool = True
    vectors: Vectors | None = None


@dataclass(slots=True)
class _Facts:
    """What is known of the values in a piece of memory.

    value: a number that copies share. source: of a projection by parameters, the value that was
    projected. width: of a projection, how many values it made of each. softmax: number of the
    softmax whose weights these are. product: value of the product of activations that these were
    made of; scale: what that was multiplied by.
    """

    value: int
    source: int | None = None
    width: int | None = None
    softmax: int | None = None
    product: int | None = None
    scale: float = 1.0


@dataclass(slots=True)
class Softmax:
    """A softmax that has multiplied nothing yet.

    changed: what was made of its weights since, such as a product with another mask, by value.
    """

    place: Place
    scores: Tensor
    weights: Tensor
    dim: int
    sources: tuple[int | None, int | None]
    is_of_product: bool
    operands: Operands | None
    changed: dict[int, Tensor] = field(default_factory=dict)


class _Pair(NamedTuple):
    query: int | None
    key: int | None


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records the attention of what runs under it, in this thread.

    where: what runs now. wanted: whether to keep the maps of a module. crop: the positions that are
    kept. most_bytes: of all maps; more are counted, but not kept. keeps_vectors: whether to keep
    what they were computed from, too, in what they leave of those bytes.
    """

    supports_higher_order_operators = True

    def __init__(
        self,
        parameters: Iterable[Tensor],
        *,
        where: Callable[[], Place],
        wanted: Callable[[str], bool],
        crop: slice | None,
        most_bytes: int,
        keeps_vectors: bool,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: list[Recorded] = []
        self.modules: dict[str, None] = {}  # in order, also those that are not wanted
        self.bytes = self.vector_bytes = 0
        self.n_empty = 0  # maps of which a crop leaves nothing
        self.opaque: dict[str, str] = {}
        self._where, self._wanted, self._crop = where, wanted, crop
        self._most, self._keeps_vectors = most_bytes, keeps_vectors
        self._fixed = {memory_of(one) for one in parameters}
        self._facts: dict[int, _Facts] = {}
        self._pairs: dict[int, _Pair] = {}  # scores -> what its query and its key were made of
        self._softmaxes: dict[int, Softmax] = {}
        self._operands: OrderedDict[int, tuple[Tensor, Tensor]] = OrderedDict()
        self._n = 0

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run an operation and look at what went in and came out."""
        given = dict(kwargs or {})
        if not isinstance(func, torch._ops.OpOverload):  # such as flex_attention
            self.opaque.setdefault(self._where().module, str(func))
            return func(*args, **given)
        parts = NotImplemented
        if torch.is_inference_mode_enabled() and _is_composite(func):
            with self:  # it would else arrive whole
                parts = func.decompose(*args, **given)
        if parts is not NotImplemented:
            return parts
        result = func(*args, **given)
        try:
            self._look(func, args, given, result)
        except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError) as error:
            _log.debug("%s could not be read", func, exc_info=error)
            if _is_attention(func._schema.name):
                self.opaque.setdefault(self._where().module, func._schema.name.split("::")[-1])
        return result

    def unused(self) -> list[str]:
        """Return the modules whose softmax over products of activations multiplied no values."""
        return [one.place.module for one in self._softmaxes.values() if one.is_of_product]

    # ---- each operation

    def _look(self, func: Any, args: tuple[Any, ...], given: dict[str, Any], result: Any) -> None:
        name = func._schema.name.split("::")[-1]
        named = {
            **dict(zip((one.name for one in func._schema.arguments), args, strict=False)),
            **given,
        }
        tensors = [one for one in _flat([*args, *given.values()]) if isinstance(one, Tensor)]
        outs = [one for one in _flat([result]) if isinstance(one, Tensor)]
        if name.startswith(_FUSED):
            self._fused(named)
        elif name in _PRODUCTS and len(tensors) >= 2:
            self._product(*tensors[-2:])
        elif name == "mul" and len(tensors) == 2 and outs:
            self._broadcast(tensors[0], tensors[1], out=outs[0])
        elif name not in _SOFTMAX and _is_attention(name):
            self.opaque.setdefault(self._where().module, name)
        if outs:
            self._learn(name, tensors, outs, _factor(name, named))
        if name in _SOFTMAX and outs:
            self._softmax(tensors[0], outs[0], int(named.get("dim", -1)))

    def _learn(self, name: str, tensors: list[Tensor], outs: list[Tensor], factor: float) -> None:
        """Note what is known of what an operation made."""
        inner = [one for one in tensors if memory_of(one) not in self._fixed]
        known = [self._of(one) for one in inner]
        for out in outs:
            memory = memory_of(out)
            if any(memory == memory_of(one) for one in tensors):
                if memory in self._facts:
                    self._facts[memory].scale *= factor
                continue  # a view, or in place: what is known of it still holds
            if tensors and not inner:
                self._fixed.add(memory)  # such as parameters in another precision
                continue
            self._fixed.discard(memory)  # memory that was freed and taken again
            made = self._facts[memory] = self._made(name, known, len(tensors) > len(inner))
            made.scale *= factor
            if made.product == made.value and self._keeps_vectors:
                self._operands[made.value] = (tensors[-2], tensors[-1])
                if len(self._operands) > _MAX_OPERANDS:
                    self._operands.popitem(last=False)
            if name in _LINEAR and made.source is not None:
                made.width = out.shape[1] if name == "convolution" else out.shape[-1]
            softmax = self._softmaxes.get(-1 if made.softmax is None else made.softmax)
            if softmax is not None and name in _CHANGES_WEIGHTS:
                softmax.changed[made.value] = out

    def _made(self, name: str, known: list[_Facts], has_parameters: bool) -> _Facts:
        """Return what is known of a new value. known: of the values that it was made of."""
        self._n += 1
        facts = _Facts(self._n)
        if name in _PRODUCTS and len(known) >= 2:
            self._pairs[facts.value] = _Pair(known[-2].source, known[-1].source)
            facts.product = facts.value
            return facts
        if name in _KEEPS_VALUE and len(known) == 1:
            facts.value = known[0].value
            facts.width = known[0].width
        if name in _KEEPS_WEIGHTS:
            facts.softmax = next((one.softmax for one in known if one.softmax is not None), None)
        pairs = [self._pairs[one.value] for one in known if one.value in self._pairs]
        if pairs:  # also of scores that a projection mixes
            self._pairs[facts.value] = pairs[0]
        of_product = next((one for one in known if one.product is not None), None)
        if of_product is not None and not (name in _LINEAR and has_parameters):
            facts.product, facts.scale = of_product.product, of_product.scale
        if name in _LINEAR and has_parameters and len(known) == 1:
            facts.source = known[0].value
            return facts
        sources = {one.source for one in known if one.source is not None}
        facts.source = sources.pop() if len(sources) == 1 else None
        if len(known) == 1:
            facts.width = known[0].width  # scaled, or masked by a buffer
        return facts

    def _of(self, tensor: Tensor) -> _Facts:
        memory = memory_of(tensor)
        if memory not in self._facts:
            self._n += 1
            self._facts[memory] = _Facts(self._n)
        return self._facts[memory]

    # ---- a softmax whose result multiplies values

    def _softmax(self, scores: Tensor, weights: Tensor, dim: int) -> None:
        if weights.ndim < 1 or not weights.is_floating_point():
            return
        before = self._of(scores)
        pair = self._pairs.get(before.value)
        is_made = before.width == weights.shape[dim] > 1 and scores.stride(dim) == 1
        if is_made and before.product is None:
            return  # over an axis that parameters made: classes, or experts
        operands = self._operands.get(-1 if before.product is None else before.product)
        facts = self._of(weights)
        facts.softmax, facts.product = facts.value, None
        self._softmaxes[facts.value] = Softmax(
            self._where(), scores, weights, dim % weights.ndim, pair or (None, None), bool(pair),
            None if operands is None else Operands(*operands, before.scale),
        )  # fmt: skip

    def _consumed(self, one: Tensor, other: Tensor) -> tuple[Softmax, Tensor] | None:
        """Return the softmax whose weights ``one`` holds, and those, if ``other`` holds values."""
        facts = self._facts.get(memory_of(one))
        if facts is None or facts.softmax is None or memory_of(other) in self._fixed:
            return None
        made = self._softmaxes.pop(facts.softmax, None)
        return None if made is None else (made, made.changed.get(facts.value, made.weights))

    def _product(self, left: Tensor, right: Tensor) -> None:
        """Take the maps of a softmax that multiplies values here."""
        for one, other, is_left in ((left, right, True), (right, left, False)):
            found = self._consumed(one, other)
            if found is None:
                continue
            made, weights = found
            if weights.ndim == 2 and one.ndim == 3:  # one query for each example
                weights, made.scores = weights[:, None], made.scores[:, None]
                made.dim = 0 if made.dim == 0 else 2
            axes = (-2, -1) if is_left else (-1, -2)
            n_keys = one.shape[axes[1] if one.ndim > 1 else 0]
            rows, columns = axes_of(one, weights, axes, made)
            self._take(
                made, weights, rows, columns, n_keys=n_keys,
                values=partial(values_of, other, one, is_left=is_left),
            )  # fmt: skip
            return

    def _broadcast(self, left: Tensor, right: Tensor, *, out: Tensor) -> None:
        """Take the maps of a softmax that is multiplied with vectors, to be summed then."""
        for one, other in ((left, right), (right, left)):
            if out.numel() > one.numel() and (found := self._consumed(one, other)) is not None:
                made, weights = found
                if weights.ndim == 2:  # (batch, keys): one query for each example
                    weights, made.scores = weights[:, None], made.scores[:, None]
                    made.dim = 0 if made.dim == 0 else 2
                rows = made.dim - 1 if made.dim in (0, weights.ndim - 1) else weights.ndim - 1
                self._take(made, weights, rows, made.dim, n_keys=weights.shape[made.dim])
                return

    def _take(
        self,
        made: Softmax,
        weights: Tensor,
        rows: int,
        columns: int,
        *,
        n_keys: int,
        values: Callable[[Tensor], Tensor | None] | None = None,
    ) -> None:
        """Keep weights as (batch, n_heads, queries, keys). rows, columns: their axes there.

        values: returns what such weights multiplied.
        """

        def arranged(values: Tensor) -> Tensor:
            if values.ndim < 2:
                return values.reshape(1, 1, 1, -1)
            values = values.movedim((rows, columns), (-2, -1))
            return values.reshape(as_heads(tuple(values.shape), made.place))

        kind: Kind = "self"
        query, key = made.sources
        if query is not None and key is not None:
            kind = "self" if query == key else "cross"
        elif n_keys != (weights.shape[rows] if weights.ndim > 1 else 1):
            kind = "cross"
        scores, shown = arranged(made.scores), arranged(weights)
        shown = shown[..., :n_keys]  # without the column of a sink
        queries, keys = self._kept(shown.shape[-2]), self._kept(n_keys)
        shape = (*shown.shape[:2], len(queries), len(keys))
        if not self._may_keep(made.place.module, shape):
            return
        part = (..., slice(queries.start, queries.stop), slice(keys.start, keys.stop))
        allowed = allowed_of(scores[part], shown[part])
        is_over_keys = columns % max(weights.ndim, 1) == made.dim
        vectors = None
        if made.operands is not None and values is not None and is_over_keys:
            kept = slice(queries.start, queries.stop)
            vectors = self._counted(
                vectors_of(
                    made.operands.arranged(shown.shape), values(shown), scores[..., kept, :],
                    shown[..., kept, :], allowed=allowed, scale=made.operands.scale,
                    queries=queries, keys=keys,
                )
            )  # fmt: skip
        self.found.append(
            Recorded(
                made.place, kind, kept_values(shown[part]), allowed, queries, keys,
                (shown.shape[-2], n_keys), False, is_over_keys, vectors,
            )
        )  # fmt: skip

    # ---- a fused operation

    def _fused(self, named: Mapping[str, Any]) -> None:
        query, key, value = (named[name] for name in ("query", "key", "value"))
        place = self._where()
        mask = named.get("attn_mask", named.get("attn_bias"))
        if query.ndim == 3:
            query, key, value = query[None], key[None], value[None]
        if key.shape[1] != query.shape[1]:  # groups of queries share a key
            n_groups = query.shape[1] // key.shape[1]
            key, value = (one.repeat_interleave(n_groups, 1) for one in (key, value))
        n_queries, n_keys = query.shape[-2], key.shape[-2]
        sources = self._of(query).source, self._of(named["key"]).source
        kind: Kind = "self" if n_queries == n_keys else "cross"
        if None not in sources:
            kind = "self" if sources[0] == sources[1] else "cross"
        queries, keys = self._kept(n_queries), self._kept(n_keys)
        if not self._may_keep(place.module, (*query.shape[:2], len(queries), len(keys))):
            return
        rows = slice(queries.start, queries.stop)
        scale = named.get("scale") or query.shape[-1] ** -0.5
        scores = query[..., rows, :].detach().float() @ key.detach().float().mT * scale
        if named.get("is_causal"):
            causal = torch.ones(n_queries, n_keys, dtype=torch.bool, device=scores.device).tril()
            scores = scores.masked_fill(~causal[rows], -torch.inf)
        if mask is not None:
            mask = mask[..., rows, :] if mask.ndim > 1 and mask.shape[-2] > 1 else mask
            is_bool = mask.dtype == torch.bool
            scores = scores.masked_fill(~mask, -torch.inf) if is_bool else scores + mask.float()
        columns = slice(keys.start, keys.stop)
        weights = scores.softmax(-1).nan_to_num(0.0)
        allowed = allowed_of(scores[..., columns], weights[..., columns])
        vectors = None
        if self._keeps_vectors:
            found = vectors_of(
                [(query, key)], value, scores, weights, allowed=allowed, scale=scale,
                queries=queries, keys=keys,
            )  # fmt: skip
            vectors = self._counted(found)
        self.found.append(
            Recorded(
                place, kind, kept_values(weights[..., columns]), allowed, queries, keys,
                (n_queries, n_keys), True, vectors=vectors,
            )
        )  # fmt: skip

    def _counted(self, vectors: Vectors | None) -> Vectors | None:
        """Count the bytes of what a map was computed from; return it if there is room."""
        if vectors is not None:
            self.vector_bytes += sum(4 * one.numel() for one in vectors.tensors.values())
        return vectors if self.bytes + self.vector_bytes <= self._most else None

    def _kept(self, length: int) -> range:
        """Return the positions that are kept of an axis."""
        return range(length)[self._crop or slice(None)]

    def _may_keep(self, module: str, shape: tuple[int, ...]) -> bool:
        """Count the bytes of a map; return whether it is to be kept."""
        self.modules[module] = None
        if not self._wanted(module):
            return False
        if not math.prod(shape):
            self.n_empty += 1
            return False
        self.bytes += 4 * math.prod(shape)
        return self.bytes <= self._most


def _factor(name: str, named: Mapping[str, Any]) -> float:
    """Return by what an operation multiplies a tensor: 1 for all but scaling by one number."""
    if name.startswith("baddbmm"):
        return float(named.get("alpha", 1))
    if name not in _SCALES:
        return 1.0
    one, other = named.get("self"), named.get("other")
    if isinstance(one, Tensor) and one.numel() == 1 and not name.startswith("div"):
        one, other = other, one
    if isinstance(other, Tensor) and other.numel() > 1:
        return 1.0
    number = float(other) if other is not None else 1.0
    return 1 / number if name.startswith("div") and number else number


def _is_attention(name: str) -> bool:
    return any(part in name.split("::")[-1] for part in _OPAQUE)


def _is_composite(func: Any) -> bool:
    """Return whether an operation consists of others, so that it may run as those."""
    return bool(
        torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd")
    )


def _flat(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _flat(value)
        else:
            yield value
