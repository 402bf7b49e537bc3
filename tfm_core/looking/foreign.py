"""A look as what the app stores: an experiment without settings, examples, and snapshots.

A run shows all heads of a kind of attention in one grid, so it keeps the maps of a kind that have
as many heads and tokens, and says which it leaves out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from tfm_core.choices.config import Experiment, ForeignModelConfig
from tfm_core.choices.config.model import MAX_LAYERS, MAX_NAME
from tfm_core.data.vocabulary import position_labels, text_of_names
from tfm_core.facts.storage import N_SENTENCES
from tfm_core.looking import Names, Words
from tfm_core.looking.seen import AttentionMap, Seen
from tfm_core.probe.snapshot import half
from tfm_core.probe.types import Array, Snapshot
from tfm_core.sentences import N_, Sentence, StudentError

KINDS = ("both", "past", "cross")
MAX_TOKENS = 2048
"""Of an example of a loop, whose maps are kept."""
_MAX_VECTOR_BYTES = 2**28
"""Of all queries, keys and values of a snapshot."""


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """The examples of the caller: inputs of the model, by position and by name, and their words.

    tokens: of what is read; tgt_tokens: of what a decoder reads beside it. truth: the right answer
    to each, where there is one.
    """

    inputs: tuple[Any, ...]
    named: Mapping[str, Any]
    tokens: Names = ()
    tgt_tokens: Names = ()
    truth: Sequence[str] = ()

    @classmethod
    def of(cls, probe: Any, words: Words) -> Self:
        """Return examples. probe: the inputs, a tuple by position, a dict by name, or one input."""
        if isinstance(probe, Mapping):
            if not all(isinstance(name, str) for name in probe):
                raise StudentError("The keys of probe must be names of the model's inputs.")
            inputs, named = (), dict(probe)
        else:
            inputs, named = tuple(probe) if isinstance(probe, tuple | list) else (probe,), {}
        tokens, tgt_tokens = words.get("tokens", ()), words.get("tgt_tokens", ())
        return cls(inputs, named, tokens, tgt_tokens, words.get("truth", ()))

    def on(self, parameter: Tensor | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the inputs on the device of a parameter."""

        if parameter is None:
            return self.inputs, dict(self.named)
        device = parameter.device

        def moved(value: Any) -> Any:
            return value.to(device) if isinstance(value, Tensor) else value

        named = {name: moved(value) for name, value in self.named.items()}
        return tuple(map(moved, self.inputs)), named


@dataclass(frozen=True, slots=True)
class Stacks:
    """The maps that a run shows, each kind of one shape.

    both: their queries see all keys; past: none later; cross: those of another sequence.
    """

    both: tuple[AttentionMap, ...] = ()
    past: tuple[AttentionMap, ...] = ()
    cross: tuple[AttentionMap, ...] = ()

    @property
    def all(self) -> tuple[AttentionMap, ...]:
        """Every map."""
        return (*self.both, *self.past, *self.cross)

    @property
    def lengths(self) -> tuple[int, int]:
        """The positions of the source and of the target, 0 for none."""
        crossing = self.cross[0].weights.shape[2:] if self.cross else (0, 0)
        src = self.both[0].weights.shape[-1] if self.both else crossing[1]
        tgt = self.past[0].weights.shape[-1] if self.past else crossing[0]
        return src, tgt

    def experiment(self, look: Seen, **task: Any) -> Experiment:
        """Return what a run says of the model and of what it read. Raises ConfigError."""
        model = {
            "family": "foreign",
            "class_name": look.model[:MAX_NAME],
            "n_parameters": look.n_parameters,
            "n_heads": self.all[0].weights.shape[1] if self.all else 1,
            **{kind: [_called(one.name) for one in getattr(self, kind)] for kind in KINDS},
        }
        task |= {"kind": "foreign", "n_left_out": len(look.maps) - len(self.all)}
        return Experiment.parse({"model": model, "task": task})

    def snapshot(self, experiment: Experiment, step: int, n: int, **words: Any) -> Snapshot:
        """Return the maps of n examples, under the names of ``experiment``, as a snapshot."""
        everything = torch.ones(1, 1, 1, 1, dtype=torch.bool)
        attention: dict[str, Array] = {}
        masks: dict[str, Array] = {}
        vectors: dict[str, dict[str, Array]] = {}
        modules = experiment.model_as(ForeignModelConfig).modules
        for here, one in zip(modules, self.all, strict=True):
            attention[here] = half(one.weights[:n])
            masks[here] = (everything if one.allowed is None else one.allowed)[:n].numpy()
            if one.vectors is not None:
                vectors[here] = {
                    name: (values[:n] if values.ndim else values).numpy()
                    for name, values in one.vectors.tensors.items()
                }
        n_bytes = sum(array.nbytes for of in vectors.values() for array in of.values())
        return Snapshot(
            step=step,
            attention=attention,
            masks=masks,
            vectors=vectors if n_bytes <= _MAX_VECTOR_BYTES else {},
            **words,
        )


def stacks_of(look: Seen) -> Stacks:
    """Return the maps that a run can show: as many as have one shape."""
    cross = _alike(one for one in look.maps.values() if one.kind == "cross")
    own = [
        attention
        for attention in look.maps.values()
        if attention.kind == "self" and attention.weights.shape[-2] == attention.weights.shape[-1]
    ]
    alike = _alike(own)
    if not cross and not own:
        return Stacks()
    if not cross:
        return Stacks(past=alike) if alike[0].is_causal else Stacks(both=alike)
    batch, n_heads, n_queries, n_keys = cross[0].weights.shape

    def square(size: int, *, writes: bool) -> tuple[AttentionMap, ...]:
        shape = (batch, n_heads, size, size)
        fitting = [
            attention
            for attention in own
            if attention.weights.shape == shape
            and (attention.is_causal or "decoder" in attention.name.split(".")) is writes
        ]
        return tuple(fitting[:MAX_LAYERS])

    encoder, decoder = square(n_keys, writes=False), square(n_queries, writes=True)
    if len(alike) > len(cross) and not encoder and not decoder:
        return Stacks(past=alike) if alike[0].is_causal else Stacks(both=alike)
    return Stacks(encoder, decoder if len(decoder) == len(cross) else (), cross)


def _alike(maps: Iterable[AttentionMap]) -> tuple[AttentionMap, ...]:
    """Return the maps of the shape that most have."""
    groups: dict[tuple[Any, ...], list[AttentionMap]] = {}
    for one in maps:
        groups.setdefault((one.is_causal, *one.weights.shape), []).append(one)
    largest: list[AttentionMap] = max(groups.values(), key=len, default=[])
    return tuple(largest[:MAX_LAYERS])


@dataclass(frozen=True, slots=True)
class Plan:
    """Which maps of a model are kept: of each kind those alike in heads and tokens.

    maps: of each kind the names in the model, with heads, queries and keys. src_len, tgt_len:
    positions of keys and of what is written; 0 for none. left_out: a sentence on the others.
    """

    maps: Mapping[str, Mapping[str, tuple[int, ...]]]
    n_examples: int
    src_len: int
    tgt_len: int
    left_out: tuple[Sentence, ...]

    @property
    def n_weights(self) -> int:
        """Weights of all maps on one example."""
        return sum(math.prod(shape) for kind in self.maps.values() for shape in kind.values())

    def stacks(self, look: Seen) -> Stacks:
        """Return its maps in a look. Raises StudentError where they are not as at the start."""
        for name, shape in (one for kind in self.maps.values() for one in kind.items()):
            found = look.maps.get(name)
            if found is None or found.weights.shape[1:] != shape:
                raise StudentError(
                    "The map of {name} differs from that at the start.", name=_called(name)
                )
        return Stacks(*(tuple(look.maps[name] for name in self.maps[kind]) for kind in KINDS))

    def experiment(self, look: Seen) -> Experiment:
        """Return what a run says of the model."""
        return self.stacks(look).experiment(look, src_len=self._n_read, tgt_len=self.tgt_len)

    @property
    def _n_read(self) -> int:
        return self.src_len or int(not self.tgt_len)  # without any map one token is shown

    def items(self, given: Given) -> list[dict[str, Any]]:
        """Return the examples of the probe. Raises StudentError for names that fit no map."""
        n, n_read = min(self.n_examples or 1, N_SENTENCES), self._n_read
        reads_past = not n_read and not given.tgt_tokens  # a decoder alone
        src = _rows("tokens", () if reads_past else given.tokens, n, n_read)
        tgt_tokens = given.tokens if reads_past else given.tgt_tokens
        tgt = _rows("tokens" if reads_past else "tgt_tokens", tgt_tokens, n, self.tgt_len)
        if given.truth and (isinstance(given.truth, str) or len(given.truth) < n):
            raise StudentError("truth must be a list of {n} texts, one per example.", n=n)
        items = []
        for number in range(n):
            item = {
                "src": src[number],
                "tgt": tgt[number],
                "alignment": [[] for _ in tgt[number]],
                "src_text": text_of_names(src[number] or tgt[number]),
                "tgt_text": str(given.truth[number]) if given.truth else "",
            }
            items.append(item if n_read else item | {"prompt": len(tgt[number])})
        return items


def plan_of(look: Seen) -> Plan:
    """Return which maps of a look a run keeps. Raises StudentError for very long examples."""
    kept = stacks_of(look)
    src_len, tgt_len = kept.lengths
    if max(src_len, tgt_len) > MAX_TOKENS:
        raise StudentError(
            "The probe has {n:,} tokens; the limit is {most:,}. Give shorter inputs.",
            n=max(src_len, tgt_len),
            most=MAX_TOKENS,
        )
    plan = {
        kind: {one.name: tuple(one.weights.shape[1:]) for one in getattr(kept, kind)}
        for kind in KINDS
    }
    shown = {name for names in plan.values() for name in names}
    others = [_called(name) for name in look.maps if name not in shown]
    left_out = (
        (
            N_(
                "Left out, because they have other heads or tokens: {names}.",
                names=", ".join(others[:5]) + (", …" if len(others) > 5 else ""),
            ),
        )
        if others
        else ()
    )
    return Plan(
        maps=plan,
        n_examples=len(kept.all[0].weights) if kept.all else 0,
        src_len=src_len,
        tgt_len=tgt_len,
        left_out=left_out,
    )


def _called(name: str) -> str:
    return (name or "model")[-MAX_NAME:]


def _rows(what: str, names: Any, n: int, length: int) -> list[list[str]]:
    """Return the names of the positions of n examples; numbers where none are given."""
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise StudentError("{what} must be a list of names, or one list per example.", what=what)
    rows = [names] if names and isinstance(names[0], str) else list(names)
    rows = rows or [[str(number) for number in range(1, length + 1)]]
    rows = rows * n if len(rows) == 1 else rows
    if len(rows) < n:
        raise StudentError(
            "{what} has {found} lists for {n} examples.", what=what, found=len(rows), n=n
        )
    made = [list(position_labels([str(one) for one in row])) for row in rows[:n]]
    for row in made:
        if len(row) > length or (length and not row):
            raise StudentError(
                "{what} has {found} names, but the maps have {length} positions.",
                what=what,
                found=len(row),
                length=length,
            )
    return made
