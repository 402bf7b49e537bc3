"""What runs inside a forward pass: every attention map, seen where PyTorch computes it.

Each operation passes ``Recorder``. Attention shows in two ways: as a fused operation, whose weights
are computed once more from the query, the key and the mask that it was given; or as a softmax whose
result multiplies values. A softmax over classes multiplies nothing, one over experts multiplies
parameters, or runs over an axis that parameters made: neither is attention. A query may consist of
parameters: such a softmax runs over positions.
"""

from __future__ import annotations

import logging
import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tfm_core.looking.layout import (
    Place,
    allowed_of,
    as_heads,
    axes_of,
    axis_of_parameters,
    factor_of,
    flat,
    forbidden_by,
    is_alike,
    is_along_text,
    is_attention,
    is_composite,
    is_of_channels,
    kept_values,
    masked_by,
    memory_of,
)
from tfm_core.looking.seen import AttentionMap, Kind
from tfm_core.looking.vectors import Operands, Vectors, values_of, vectors_of

_log = logging.getLogger(__name__)

_FUSED = "_scaled_dot_product"
_SOFTMAX = frozenset({"_softmax", "_safe_softmax"})
_PRODUCTS = frozenset({"bmm", "mm", "baddbmm", "mv"})
_LINEAR = frozenset({"mm", "addmm", "bmm", "baddbmm", "mv", "linear", "convolution"})
_KEEPS_VALUE = frozenset({"clone", "_to_copy", "copy_", "_unsafe_view", "contiguous"})
_CHANGES_WEIGHTS = frozenset({"mul", "div", "masked_fill", "where"})
_KEEPS_WEIGHTS = _KEEPS_VALUE | _CHANGES_WEIGHTS | {"native_dropout"}
_ADDS = frozenset({"add", "add_", "sub", "sub_", "baddbmm", "addmm"})
_MASKS = _ADDS | {"masked_fill", "masked_fill_", "where", "fill_", "index_put", "index_put_"}
_MAX_OPERANDS = 32  # products whose operands are kept until a softmax comes


@dataclass(slots=True)
class _Facts:
    """What is known of the values in a piece of memory.

    value: a number that copies share. sources: the inputs and results of attention that these were
    made of, without attention; none of parameters and constants. axis: stride and size of the axis
    that parameters made. softmax: number of the softmax whose weights these are. product: value of
    the product of activations that these were made of; scale: what that was multiplied by.
    forbidden: for each place of the memory whether a mask forbids it.
    """

    value: int
    sources: frozenset[int] = frozenset()
    axis: tuple[int, int] | None = None
    softmax: int | None = None
    product: int | None = None
    scale: float = 1.0
    forbidden: Tensor | None = None


@dataclass(slots=True)
class Softmax:
    """A softmax that has multiplied nothing yet.

    changed: what was made of its weights since, such as a product with another mask, by value.
    """

    place: Place
    scores: Tensor
    forbidden: Tensor
    weights: Tensor
    dim: int
    pair: _Pair | None
    operands: Operands | None
    changed: dict[int, Tensor] = field(default_factory=dict)

    def of_each_example(self) -> None:
        """Take (batch, keys) as one query for each example."""
        self.scores, self.forbidden = self.scores[:, None], self.forbidden[:, None]
        self.dim = 0 if self.dim == 0 else 2


class _Pair(NamedTuple):
    """What a query and a key were made of; nothing of parameters alone."""

    query: frozenset[int]
    key: frozenset[int]

    @property
    def kind(self) -> Kind:
        """Self-attention where the keys are the queries' own, maybe beside others of a cache."""
        return "self" if self.query <= self.key and bool(self.query) == bool(self.key) else "cross"


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
        self.found: list[tuple[Place, AttentionMap]] = []  # under the names of modules
        self.modules: dict[str, None] = {}  # in order, also those that are not wanted
        self.bytes = self.vector_bytes = 0
        self.n_empty = 0  # maps of which a crop leaves nothing
        self.opaque: dict[str, str] = {}
        self.changed: dict[str, None] = {}  # modules that rearrange their weights
        self.channels: dict[str, None] = {}  # modules that attend to channels
        self.mixing: dict[str, None] = {}  # modules that mix positions without a softmax
        self._where, self._wanted, self._crop = where, wanted, crop
        self._most, self._keeps_vectors = most_bytes, keeps_vectors
        self._parameters = frozenset(memory_of(one) for one in parameters)
        self._fixed = set(self._parameters)
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
        if torch.is_inference_mode_enabled() and is_composite(func):
            with self:  # it would else arrive whole
                parts = func.decompose(*args, **given)
        if parts is not NotImplemented:
            return parts
        result = func(*args, **given)
        try:
            self._look(func, args, given, result)
        except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError) as error:
            _log.debug("%s could not be read", func, exc_info=error)
            if is_attention(func._schema.name):
                self.opaque.setdefault(self._where().module, func._schema.name.split("::")[-1])
        return result

    def unused(self) -> list[str]:
        """Return the modules whose softmax over products of activations multiplied no values."""
        pairs = [(one.place.module, one.pair) for one in self._softmaxes.values()]
        lost = [module for module, pair in pairs if pair and (pair.query or not pair.key)]
        return list(dict.fromkeys([*self.changed, *lost]))

    # ---- each operation

    def _look(self, func: Any, args: tuple[Any, ...], given: dict[str, Any], result: Any) -> None:
        name = func._schema.name.split("::")[-1]
        named = {
            **dict(zip((one.name for one in func._schema.arguments), args, strict=False)),
            **given,
        }
        tensors = [one for one in flat([*args, *given.values()]) if isinstance(one, Tensor)]
        outs = [one for one in flat([result]) if isinstance(one, Tensor)]
        if name.startswith(_FUSED):
            self._fused(named)
        elif name in _PRODUCTS and len(tensors) >= 2:
            self._product(*tensors[-2:])
        elif name == "mul" and len(tensors) == 2 and outs:
            self._broadcast(tensors[0], tensors[1], out=outs[0])
        elif name not in _SOFTMAX and is_attention(name):
            self.opaque.setdefault(self._where().module, name)
        elif name == "convolution" and is_along_text(named):
            self.mixing[self._where().module] = None
        if outs:
            forbidden = self._forbidden_by(name, named, tensors, outs[0])
            self._learn(name, tensors, outs, factor_of(name, named))
            if forbidden is not None:
                self._forbid(outs[0], forbidden)
        if name in _SOFTMAX and outs:
            self._softmax(tensors[0], outs[0], int(named.get("dim", -1)))

    def _learn(self, name: str, tensors: list[Tensor], outs: list[Tensor], factor: float) -> None:
        """Note what is known of what an operation made."""
        inner = [one for one in tensors if memory_of(one) not in self._fixed]
        for out in outs:
            memory = memory_of(out)
            if any(memory == memory_of(one) for one in tensors):
                if memory in self._facts:
                    self._facts[memory].scale *= factor
                continue  # a view, or in place: what is known of it still holds
            if tensors and not inner and not self._is_of_learned(name, tensors):
                self._fixed.add(memory)  # such as parameters in another precision
                continue
            made = self._made(name, tensors, inner, out)
            self._fixed.discard(memory)  # memory that was freed and taken again
            self._facts[memory] = made
            made.scale *= factor
            if name in _PRODUCTS and made.product == made.value and self._keeps_vectors:
                self._operands[made.value] = (tensors[-2], tensors[-1])
                if len(self._operands) > _MAX_OPERANDS:
                    self._operands.popitem(last=False)
            softmax = self._softmaxes.get(-1 if made.softmax is None else made.softmax)
            if softmax is not None and name in _CHANGES_WEIGHTS:
                softmax.changed[made.value] = out

    def _is_of_learned(self, name: str, tensors: list[Tensor]) -> bool:
        """Return whether learned queries and keys are multiplied, both projected."""
        return name in ("bmm", "baddbmm") and not any(
            memory_of(one) in self._parameters for one in tensors[-2:]
        )

    def _made(self, name: str, tensors: list[Tensor], inner: list[Tensor], out: Tensor) -> _Facts:
        """Return what is known of a new value. inner: what it was made of, without parameters."""
        self._n += 1
        facts = _Facts(self._n, frozenset([self._n]))
        known = [self._of(one) for one in inner]
        is_weighted = any(one.softmax is not None for one in known)
        if name.startswith(_FUSED) or (is_weighted and name not in _KEEPS_WEIGHTS):
            return facts  # of attention
        sides = tensors[:2] if name in ("convolution", "linear") else tensors[-2:]
        factors = [None if memory_of(one) in self._fixed else self._of(one) for one in sides]
        if name in _PRODUCTS and (None not in factors or not known):
            facts.product = facts.value
        pairs = [self._pairs[one.value] for one in known if one.value in self._pairs]
        if name in _PRODUCTS and (factors[-1] is not None or not known):
            self._pairs[facts.value] = _Pair(*(self._sources(one) for one in sides))
        elif pairs and (name not in _LINEAR or self._where().n_heads in (0, *out.shape)):
            self._pairs[facts.value] = pairs[0]  # also of scores whose heads are mixed
        if facts.product is not None:
            if any(one is not None and one.product is not None for one in factors):
                self.mixing[self._where().module] = None  # by a product which was no softmax's
            return facts
        self._derive(name, facts, known, inner, out)
        if name in _LINEAR and len(inner) < len(tensors) and any(factors):
            facts.axis = axis_of_parameters(name, out, is_left=factors[0] is None)
            facts.product = None
        if name in _KEEPS_VALUE and len(known) == 1:
            facts.value = known[0].value
        if name in _KEEPS_WEIGHTS:
            facts.softmax = next((one.softmax for one in known if one.softmax is not None), None)
        return facts

    def _derive(
        self, name: str, facts: _Facts, known: list[_Facts], inner: list[Tensor], out: Tensor
    ) -> None:
        """Note what a value takes over from those that it was made of."""
        numbers = [one for one in inner if one.is_floating_point()] or inner
        sources = frozenset[int]().union(*(self._of(one).sources for one in numbers))
        is_text = not (out.is_floating_point() or out.is_complex())
        if not (is_text and sources):  # a text that is made of another, such as shifted, is new
            facts.sources = sources
        if len(known) == 1 and is_alike(inner[0], out):
            facts.axis = known[0].axis  # scaled, or masked by a buffer
        elif name == "topk" and known[0].axis is not None:
            facts.axis = (1, out.shape[-1])
        of_product = next((one for one in known if one.product is not None), None)
        if of_product is not None:
            facts.product, facts.scale = of_product.product, of_product.scale

    def _of(self, tensor: Tensor) -> _Facts:
        memory = memory_of(tensor)
        if memory not in self._facts:
            self._n += 1
            self._facts[memory] = _Facts(self._n, frozenset([self._n]))
        return self._facts[memory]

    def _sources(self, tensor: Tensor) -> frozenset[int]:
        return frozenset() if memory_of(tensor) in self._fixed else self._of(tensor).sources

    # ---- masks

    def _forbidden_by(
        self, name: str, named: Mapping[str, Any], tensors: list[Tensor], out: Tensor
    ) -> Tensor | None:
        """Return what the masks in what was made forbid, those applied before and by this."""
        if not out.is_floating_point() or name in _SOFTMAX:
            return None
        before = [self._forbidden(one) for one in tensors]
        if name == "cat" and any(one is not None for one in before):  # with the scores of a sink
            parts = [
                torch.zeros_like(one, dtype=torch.bool) if mask is None else mask
                for one, mask in zip(tensors, before, strict=True)
            ]
            return torch.cat(parts, int(named.get("dim", 0)))
        found = [one for one in before if one is not None and one.shape == out.shape]
        if name in _MASKS:
            addends = tensors[1:] if name.startswith("sub") else tensors[: 1 if "mm" in name else 3]
            is_added = name in _ADDS or name == "where"
            addends = [one for one in addends if is_added and self._may_mask(one)]
            if (one := masked_by(name, named, addends)) is not None:
                found.append(one)
        if not found:
            return None
        return torch.stack([one.expand(out.shape) for one in found]).any(0)

    def _may_mask(self, tensor: Tensor) -> bool:
        """Return whether a tensor that is added holds no scores itself."""
        facts = self._facts.get(memory_of(tensor))
        return tensor.is_floating_point() and (
            facts is None
            or (facts.axis is None and facts.product is None and facts.value not in self._pairs)
        )

    def _forbidden(self, tensor: Tensor) -> Tensor | None:
        facts = self._facts.get(memory_of(tensor))
        if facts is None or facts.forbidden is None:
            return None
        return facts.forbidden.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())

    def _forbid(self, tensor: Tensor, forbidden: Tensor) -> None:
        facts = self._of(tensor)
        if facts.forbidden is None:
            n = tensor.untyped_storage().nbytes() // tensor.element_size()
            facts.forbidden = torch.zeros(n, dtype=torch.bool, device=tensor.device)
        shown = self._forbidden(tensor)
        if shown is not None:
            shown |= forbidden

    # ---- a softmax whose result multiplies values

    def _softmax(self, scores: Tensor, weights: Tensor, dim: int) -> None:
        if weights.ndim < 1 or not weights.is_floating_point():
            return
        before = self._of(scores)
        pair = self._pairs.get(before.value)
        (stride, n), step = before.axis or (0, 0), scores.stride(dim)
        if stride <= step and step * (scores.shape[dim] - 1) < stride * n:
            return  # over an axis that parameters made: classes, or experts
        operands = self._operands.get(-1 if before.product is None else before.product)
        facts = self._of(weights)
        facts.softmax, facts.product = facts.value, None
        forbidden = torch.isneginf(scores)
        if (masked := self._forbidden(scores)) is not None:
            forbidden |= masked
        self._softmaxes[facts.value] = Softmax(
            self._where(),
            scores,
            forbidden,
            weights,
            dim % weights.ndim,
            pair,
            None if operands is None else Operands(*operands, before.scale),
        )

    def _consumed(self, one: Tensor, other: Tensor) -> tuple[Softmax, Tensor] | None:
        """Return the softmax whose weights ``one`` holds, and those, if ``other`` holds values."""
        facts = self._facts.get(memory_of(one))
        if facts is None or facts.softmax not in self._softmaxes:
            return None
        made = self._softmaxes[facts.softmax]
        is_learned = made.pair is not None and not made.pair.query and not made.pair.key
        if memory_of(other) in self._fixed and not is_learned:
            return None
        del self._softmaxes[facts.softmax]
        return made, made.changed.get(facts.value, made.weights)

    def _product(self, left: Tensor, right: Tensor) -> None:
        """Take the maps of a softmax that multiplies values here."""
        for one, other, is_left in ((left, right, True), (right, left, False)):
            found = self._consumed(one, other)
            if found is None:
                continue
            made, weights = found
            if weights.ndim == 2 and one.ndim == 3:  # one query for each example
                weights = weights[:, None]
                made.of_each_example()
            axes = (-2, -1) if is_left else (-1, -2)
            n_keys = one.shape[axes[1] if one.ndim > 1 else 0]
            rows, columns = axes_of(one, weights, axes, made.dim, made.place)
            self._take(
                made,
                weights,
                rows,
                columns,
                n_keys=n_keys,
                values=partial(values_of, other, one, is_left=is_left),
            )
            return

    def _broadcast(self, left: Tensor, right: Tensor, *, out: Tensor) -> None:
        """Take the maps of a softmax that is multiplied with vectors, to be summed then."""
        for one, other in ((left, right), (right, left)):
            if out.numel() > one.numel() and (found := self._consumed(one, other)) is not None:
                made, weights = found
                if weights.ndim == 2:  # (batch, keys): one query for each example
                    weights = weights[:, None]
                    made.of_each_example()
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
            if values.ndim > 1:
                values = values.movedim((rows, columns), (-2, -1))
            return as_heads(values, made.place)

        scores, shown = arranged(made.scores), arranged(weights)
        if shown.shape[-1] > n_keys + 1:
            self.changed[made.place.module] = None  # a part of each row multiplies values
            return
        shown = shown[..., :n_keys]  # without the column of a sink
        n_rows = shown.shape[-2]
        if (n_rows == n_keys or made.pair is None) and is_of_channels(
            n_rows, shown.shape[1], made.place
        ):
            self.channels[made.place.module] = None
            return
        kind: Kind = "self" if n_keys == n_rows else "cross"
        if made.pair is not None:
            kind = made.pair.kind
        queries, keys = self._kept(shown.shape[-2]), self._kept(n_keys)
        shape = (*shown.shape[:2], len(queries), len(keys))
        if not self._may_keep(made.place.module, shape):
            return
        part = (..., slice(queries.start, queries.stop), slice(keys.start, keys.stop))
        allowed = allowed_of(arranged(made.forbidden)[part])
        is_over_keys = columns % max(weights.ndim, 1) == made.dim
        vectors = None
        if made.operands is not None and values is not None and is_over_keys:
            kept = slice(queries.start, queries.stop)
            vectors = self._counted(
                vectors_of(
                    made.operands.arranged(shown.shape),
                    values(shown),
                    scores[..., kept, :],
                    shown[..., kept, :],
                    allowed=allowed,
                    scale=made.operands.scale,
                    queries=queries,
                    keys=keys,
                )
            )
        found = AttentionMap(
            made.place.module,
            kind,
            kept_values(shown[part]),
            allowed,
            queries,
            keys,
            (shown.shape[-2], n_keys),
            False,
            is_over_keys,
            vectors,
        )
        self.found.append((made.place, found))

    # ---- a fused operation

    def _fused(self, named: Mapping[str, Any]) -> None:
        query, key, value = (named[name] for name in ("query", "key", "value"))
        place = self._where()
        mask = named.get("attn_mask", named.get("attn_bias"))
        kind = _Pair(*(self._sources(one) for one in (query, key))).kind
        if key.shape[-3] != query.shape[-3]:  # groups of queries share a key
            n_groups = query.shape[-3] // key.shape[-3]
            key, value = (one.repeat_interleave(n_groups, -3) for one in (key, value))
        shape = (*query.shape[:-1], key.shape[-2])
        query, key, value = (as_heads(one, place) for one in (query, key, value))
        n_queries, n_keys = shape[-2:]
        if n_queries == n_keys and is_of_channels(n_queries, query.shape[1], place):
            self.channels[place.module] = None
            return
        queries, keys = self._kept(n_queries), self._kept(n_keys)
        if not self._may_keep(place.module, (*query.shape[:2], len(queries), len(keys))):
            return
        rows = slice(queries.start, queries.stop)
        scale = named.get("scale") or query.shape[-1] ** -0.5
        scores = query[..., rows, :].detach().float() @ key.detach().float().mT * scale
        forbidden = torch.zeros((), dtype=torch.bool, device=scores.device)
        if named.get("is_causal"):
            causal = torch.ones(n_queries, n_keys, dtype=torch.bool, device=scores.device).tril()
            forbidden = ~causal
        if mask is not None:
            mask = as_heads(mask.expand(shape), place)
            forbidden = ~mask if mask.dtype == torch.bool else forbidden_by(mask)
            if mask.dtype != torch.bool:
                scores = scores + mask[..., rows, :].float()
        forbidden = forbidden.expand(*query.shape[:-1], n_keys)[..., rows, :]
        scores = scores.masked_fill(forbidden, -torch.inf)
        columns = slice(keys.start, keys.stop)
        weights = scores.softmax(-1).nan_to_num(0.0)
        allowed = allowed_of(forbidden[..., columns])
        vectors = None
        if self._keeps_vectors:
            computed_from = vectors_of(
                [(query, key)],
                value,
                scores,
                weights,
                allowed=allowed,
                scale=scale,
                queries=queries,
                keys=keys,
            )
            vectors = self._counted(computed_from)
        found = AttentionMap(
            place.module,
            kind,
            kept_values(weights[..., columns]),
            allowed,
            queries,
            keys,
            (n_queries, n_keys),
            True,
            vectors=vectors,
        )
        self.found.append((place, found))

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
