"""What runs inside a forward pass: every attention map, seen where PyTorch computes it.

Each operation passes ``Recorder``. Attention shows in two ways: as a fused operation, whose weights
are computed once more from the query, the key and the mask that it was given; or as a softmax whose
result multiplies values. A softmax over classes multiplies nothing, one over experts multiplies
parameters or nothing: neither is attention.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

Kind = Literal["self", "cross"]

_FUSED = "_scaled_dot_product"
_SOFTMAX = frozenset({"_softmax", "_safe_softmax"})
_PRODUCTS = frozenset({"bmm", "mm", "baddbmm"})
_LINEAR = frozenset({"mm", "addmm", "bmm", "baddbmm", "linear", "convolution"})
_KEEPS_VALUE = frozenset({"clone", "_to_copy", "copy_", "_unsafe_view", "contiguous"})
_KEEPS_WEIGHTS = _KEEPS_VALUE | {"native_dropout", "mul", "div", "masked_fill", "where"}
_OPAQUE = ("native_multi_head_attention", "transformer_encoder_layer", "flash", "attention", "attn")


@dataclass(frozen=True, slots=True)
class Recorded:
    """One computation of attention.

    weights: float32 on the CPU, (batch, n_heads, query_len, key_len). allowed: the mask as it was
    applied, bool, broadcastable to it, True = may attend; None where all is allowed. is_fused: the
    weights were computed once more from the query and the key of a fused operation. dim: over what
    the softmax runs, -1 for the keys.
    """

    module: str
    kind: Kind
    weights: Tensor
    allowed: Tensor | None
    is_fused: bool
    dim: int


@dataclass(slots=True)
class _Facts:
    """What is known of the values in a piece of memory.

    value: a number that copies share. source: of a projection by parameters, the value that was
    projected. softmax: number of the softmax whose weights these are.
    """

    value: int
    source: int | None = None
    softmax: int | None = None


@dataclass(slots=True)
class _Softmax:
    module: str
    scores: Tensor
    weights: Tensor
    dim: int
    sources: tuple[int | None, int | None]
    is_of_product: bool


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records the attention of what runs under it, in this thread.

    where: the name of the module that runs now. heads: the number of heads that a module, or one
    around it, says it has; 0 where none does. wanted: whether to keep the maps of a module.
    """

    def __init__(
        self,
        parameters: Iterable[Tensor],
        *,
        where: Callable[[], str],
        heads: Callable[[str], int],
        wanted: Callable[[str], bool],
        most_bytes: int,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: list[Recorded] = []
        self.bytes = 0
        self.opaque: dict[str, str] = {}
        self._where, self._heads, self._wanted = where, heads, wanted
        self._most = most_bytes
        self._fixed = {_memory(one) for one in parameters}
        self._facts: dict[int, _Facts] = {}
        self._pairs: dict[
            int, tuple[int | None, int | None]
        ] = {}  # scores -> query's, key's source
        self._softmaxes: dict[int, _Softmax] = {}
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
        result = func(*args, **given)
        self._look(func, args, given, result)
        return result

    def unused(self) -> list[str]:
        """Return the modules whose softmax over products of activations multiplied no values."""
        return [one.module for one in self._softmaxes.values() if one.is_of_product]

    # ---- each operation

    def _look(self, func: Any, args: tuple[Any, ...], given: dict[str, Any], result: Any) -> None:
        name = func._schema.name.split("::")[-1]
        named = {
            **dict(zip((one.name for one in func._schema.arguments), args, strict=False)),
            **given,
        }
        tensors = [one for one in _flat([*args, *given.values()]) if isinstance(one, Tensor)]
        if name.startswith(_FUSED):
            self._fused(named)
        elif name in _PRODUCTS and len(tensors) >= 2:
            self._product(*tensors[-2:])
        elif any(part in name for part in _OPAQUE) and name not in _SOFTMAX:
            self.opaque.setdefault(self._where(), name)
        outs = [one for one in _flat([result]) if isinstance(one, Tensor)]
        if outs:
            self._learn(name, tensors, outs)
        if name in _SOFTMAX and outs:
            self._softmax(tensors[0], outs[0], int(named.get("dim", -1)))

    def _learn(self, name: str, tensors: list[Tensor], outs: list[Tensor]) -> None:
        """Note what is known of what an operation made."""
        inner = [one for one in tensors if _memory(one) not in self._fixed]
        known = [self._of(one) for one in inner]
        for out in outs:
            memory = _memory(out)
            if any(memory == _memory(one) for one in tensors):
                continue  # a view, or in place: what is known of it still holds
            if tensors and not inner:
                self._fixed.add(memory)  # such as parameters in another precision
                continue
            self._fixed.discard(memory)  # memory that was freed and taken again
            self._facts[memory] = self._made(name, known, len(tensors) > len(inner))

    def _made(self, name: str, known: list[_Facts], has_parameters: bool) -> _Facts:
        """Return what is known of a new value. known: of the values that it was made of."""
        self._n += 1
        facts = _Facts(self._n)
        if name in _PRODUCTS and len(known) >= 2:
            self._pairs[facts.value] = (known[-2].source, known[-1].source)
            return facts
        if name in _KEEPS_VALUE and len(known) == 1:
            facts.value = known[0].value
        if name in _KEEPS_WEIGHTS:
            facts.softmax = next((one.softmax for one in known if one.softmax is not None), None)
        if name in _LINEAR and has_parameters and len(known) == 1:
            facts.source = known[0].value
            return facts
        sources = {one.source for one in known if one.source is not None}
        facts.source = sources.pop() if len(sources) == 1 else None
        pairs = [self._pairs[one.value] for one in known if one.value in self._pairs]
        if pairs:
            self._pairs[facts.value] = pairs[0]
        return facts

    def _of(self, tensor: Tensor) -> _Facts:
        memory = _memory(tensor)
        if memory not in self._facts:
            self._n += 1
            self._facts[memory] = _Facts(self._n)
        return self._facts[memory]

    # ---- a softmax whose result multiplies values

    def _softmax(self, scores: Tensor, weights: Tensor, dim: int) -> None:
        if weights.ndim < 2 or not weights.is_floating_point():
            return
        before = self._of(scores)
        pair = self._pairs.get(before.value)
        facts = self._of(weights)
        facts.softmax = facts.value
        self._softmaxes[facts.value] = _Softmax(
            self._where(), scores, weights, dim, pair or (None, None), pair is not None
        )

    def _product(self, left: Tensor, right: Tensor) -> None:
        """Take the maps of a softmax that multiplies values here."""
        for one, other in ((left, right), (right, left)):
            mark = self._of(one).softmax if _memory(one) in self._facts else None
            if mark is None or mark not in self._softmaxes or _memory(other) in self._fixed:
                continue
            made = self._softmaxes.pop(mark)
            dim = made.dim - made.weights.ndim if made.dim >= 0 else made.dim
            is_batched = one.ndim == 3
            kind: Kind = "self"
            query, key = made.sources
            if query is not None and key is not None:
                kind = "self" if query == key else "cross"
            elif made.weights.shape[-1] != made.weights.shape[-2]:
                kind = "cross"
            shape = _as_heads(tuple(made.weights.shape), self._heads(made.module), is_batched)
            if self._may_keep(made.module, math.prod(shape)):
                weights = made.weights.detach().float().reshape(shape)
                allowed = _allowed_of(made.scores, shape)
                self.found.append(Recorded(made.module, kind, weights.cpu(), allowed, False, dim))
            return

    # ---- a fused operation

    def _fused(self, named: Mapping[str, Any]) -> None:
        query, key = named["query"], named["key"]
        module = self._where()
        mask = named.get("attn_mask", named.get("attn_bias"))
        if query.ndim == 3:
            query, key = query[None], key[None]
        if key.shape[1] != query.shape[1]:  # groups of queries share a key
            key = key.repeat_interleave(query.shape[1] // key.shape[1], 1)
        shape = (*query.shape[:-1], key.shape[-2])
        sources = self._of(query).source, self._of(named["key"]).source
        kind: Kind = "self" if query.shape[-2] == key.shape[-2] else "cross"
        if None not in sources:
            kind = "self" if sources[0] == sources[1] else "cross"
        if not self._may_keep(module, math.prod(shape)):
            return
        scale = named.get("scale") or query.shape[-1] ** -0.5
        scores = query.detach().float() @ key.detach().float().mT * scale
        if named.get("is_causal"):
            rows, columns = shape[-2:]
            causal = torch.ones(rows, columns, dtype=torch.bool, device=scores.device).tril()
            scores = scores.masked_fill(~causal, -torch.inf)
        if mask is not None:
            is_bool = mask.dtype == torch.bool
            scores = scores.masked_fill(~mask, -torch.inf) if is_bool else scores + mask.float()
        weights = scores.softmax(-1).nan_to_num(0.0)
        allowed = _allowed_of(scores, shape)
        self.found.append(Recorded(module, kind, weights.cpu(), allowed, True, -1))

    def _may_keep(self, module: str, n: int) -> bool:
        """Count the bytes of a map; return whether it is to be kept."""
        if not self._wanted(module):
            return False
        self.bytes += 4 * n
        return self.bytes <= self._most


def _memory(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr() if tensor.device.type != "meta" else id(tensor)


def _flat(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _flat(value)
        else:
            yield value


def _as_heads(shape: tuple[int, ...], n_heads: int, is_batched: bool) -> tuple[int, int, int, int]:
    """Return (batch, n_heads, query_len, key_len) of a softmax's shape."""
    *rest, n_queries, n_keys = shape
    if not rest:  # unbatched, or one query for each example of a batch
        return (n_queries, 1, 1, n_keys) if is_batched else (1, 1, n_queries, n_keys)
    if len(rest) == 1:
        if n_heads > 1 and rest[0] % n_heads == 0:
            return rest[0] // n_heads, n_heads, n_queries, n_keys
        return rest[0], 1, n_queries, n_keys
    return rest[0], math.prod(rest[1:]), n_queries, n_keys


def _allowed_of(scores: Tensor, shape: tuple[int, ...]) -> Tensor | None:
    """Return the mask that scores show: very low ones are forbidden. None where all is allowed."""
    lowest = -1e4 if scores.dtype in (torch.float16, torch.bfloat16) else -1e8
    allowed = (scores.detach() > lowest).reshape(shape)
    if bool(allowed.all()):
        return None
    if bool((allowed == allowed[:1, :1]).all()):
        allowed = allowed[:1, :1]
    return allowed.cpu()
