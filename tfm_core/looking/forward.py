"""Run a forward pass of any model with temporary hooks, and restore the model."""

from __future__ import annotations

import fnmatch
import inspect
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from tfm_core.looking import unseen
from tfm_core.looking.layout import Place
from tfm_core.looking.recorder import Recorder
from tfm_core.looking.result import Look
from tfm_core.looking.seen import AttentionMap
from tfm_core.looking.vectors import joined, joined_queries
from tfm_core.probe.capture import evaluating
from tfm_core.sentences import Sentence, StudentError

_HEADS = ("num_heads", "n_heads", "num_attention_heads", "n_head", "nhead", "heads", "h")
"""What modules call the number of their heads."""
_COMPILED = "_orig_mod"
"""What torch.compile calls the module inside."""


def forward(
    model: nn.Module,
    inputs: Sequence[Any],
    named: Mapping[str, Any],
    *,
    tokens: Sequence[str] | Sequence[Sequence[str]],
    layers: Sequence[str],
    crop: int | slice | None,
    most_bytes: int,
    keeps_vectors: bool = False,
) -> Look:
    """Return what one forward pass shows; see ``look``. keeps_vectors: see ``Recorder``."""
    if not isinstance(model, nn.Module):
        raise StudentError("look needs a torch.nn.Module, not {kind}.", kind=type(model).__name__)
    if any(one.is_meta for one in model.parameters()):
        raise StudentError("This model has no weights: its parameters are on the meta device.")
    called = _token_lists(tokens)
    patterns = _patterns(layers)
    model = getattr(model, _COMPILED, model)
    inputs, named = _arguments(model, inputs, named)
    names = {module: _short(name) for name, module in model.named_modules()}
    stack: list[_Running] = []
    shapes: dict[str, tuple[int, ...]] = {}
    recorder = Recorder(
        [*model.parameters(), *model.buffers()],
        where=_where(stack, names),
        wanted=lambda name: not patterns or any(fnmatch.fnmatchcase(name, p) for p in patterns),
        crop=_positions(crop),
        most_bytes=most_bytes,
        keeps_vectors=keeps_vectors,
    )
    with torch.no_grad(), _undisturbed(model), _followed(stack, names, shapes), recorder:
        output = _output(model, inputs, named)
    if recorder.bytes > most_bytes:
        raise StudentError(
            "The maps take {size}, more than the {most} allowed. Keep some layers, such as "
            "layers=['{name}'], or the first positions, such as crop=128.",
            **unseen.sizes(recorder.bytes, most_bytes),
            name=next(filter(None, recorder.modules), "*"),
        )
    if recorder.n_empty and not recorder.found:
        raise StudentError("crop leaves no position of any map.")
    if patterns and recorder.modules and not recorder.found:
        raise StudentError(
            "No attention is in layers {layers}. It is in {names}.",
            layers=", ".join(patterns),
            names=", ".join(list(recorder.modules)[:5]),
        )
    is_whole = recorder.bytes + recorder.vector_bytes <= most_bytes
    found = recorder.found
    if not is_whole:
        found = [(place, replace(one, vectors=None)) for place, one in found]
    look = Look(
        model=type(model).__name__,
        maps=_named(found),
        output=output,
        shapes=shapes,
        n_parameters=sum(one.numel() for one in model.parameters()),
        tokens=called,
        unseen=_unseen(recorder, most_bytes),
    )
    _check_tokens(look)
    return look


def _token_lists(tokens: Any) -> tuple[tuple[str, ...], ...]:
    """Return the lists of names, none, one, or two. Raises StudentError for anything else."""
    try:
        if isinstance(tokens, str | Tensor):
            raise TypeError
        rows = [tokens] if all(isinstance(one, str) for one in tokens) else list(tokens)
        lists = tuple(tuple(row) for row in rows if len(row))
        if len(lists) > 2 or not all(isinstance(one, str) for row in lists for one in row):
            raise TypeError
    except TypeError:
        raise StudentError(
            "tokens names the positions: a list of texts, or two, of source and target. Give what "
            "the model reads by position, not as tokens=."
        ) from None
    return lists


def _patterns(layers: Any) -> tuple[str, ...]:
    """Return names of modules, with ``*`` for anything. Raises StudentError for others."""
    patterns = (layers,) if isinstance(layers, str) or not isinstance(layers, Iterable) else layers
    if not all(isinstance(one, str) for one in patterns):
        raise StudentError("layers must be a list of module names, such as layers=['*.attn'].")
    return tuple(patterns)


def _arguments(
    model: nn.Module, inputs: Sequence[Any], named: Mapping[str, Any]
) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Return what a model is called with: the values of one mapping by name, as a tokenizer's.

    A model that needs an input that is not in the mapping takes the mapping itself.
    """
    if len(inputs) != 1 or not isinstance(inputs[0], Mapping):
        return inputs, named
    values = {**inputs[0], **named}
    if not all(isinstance(name, str) for name in values):
        return inputs, named
    needed = [
        one.name
        for one in inspect.signature(model.forward).parameters.values()
        if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    ]
    return ((), values) if {*needed} <= values.keys() else (inputs, named)


def _output(model: nn.Module, inputs: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """Call a model. Raises StudentError where it fails on texts or on ids that are no tensor."""
    try:
        return model(*inputs, **named)
    except Exception:
        if any(map(_is_plain, (*inputs, *named.values()))):
            raise StudentError(
                "The model reads tensors, not texts or lists of ids. Give "
                "tokenizer(text, return_tensors='pt') or torch.tensor([ids])."
            ) from None
        raise


def _is_plain(value: Any) -> bool:
    """Return whether a value is a text, an id, or a list of either."""
    if isinstance(value, list | tuple) and value:
        return _is_plain(value[0])
    return isinstance(value, str | int) and not isinstance(value, bool)


def _positions(crop: Any) -> slice | None:
    """Return the positions that are kept. Raises StudentError for what names none."""
    if crop is None:
        return None
    cut = slice(crop) if isinstance(crop, int) and not isinstance(crop, bool) else crop
    if not isinstance(cut, slice) or cut.step not in (None, 1):
        raise StudentError("crop must be a number of positions, such as 128, or slice(64, 128).")
    return cut


def _check_tokens(look: Look) -> None:
    """Raise StudentError for a list of names that fits no axis of any map."""
    lengths = {size for one in look.maps.values() for size in one.length}
    for row in look.tokens:
        if lengths and len(row) not in lengths:
            raise StudentError(
                "tokens has {n} names, but the maps have {lengths} positions.",
                n=len(row),
                lengths=", ".join(map(str, sorted(lengths))),
            )


def _unseen(recorder: Recorder, most_bytes: int) -> tuple[Sentence, ...]:
    """Return a sentence for each attention that showed no weights, and for what was left out."""
    found = [
        Sentence(unseen.OPAQUE.template, {"module": module or unseen.WHOLE, "operation": operation})
        for module, operation in recorder.opaque.items()
    ]
    found += [
        Sentence(unseen.CHANGED.template, {"module": module or unseen.WHOLE})
        for module in recorder.unused()
    ]
    found += [
        Sentence(unseen.CHANNELS.template, {"module": module or unseen.WHOLE})
        for module in recorder.channels
    ]
    if mixing := [one for one in recorder.mixing if one not in recorder.modules]:
        names = ", ".join(one or unseen.WHOLE for one in mixing[:3])
        values = {"names": f"{names}, …" if len(mixing) > 3 else names, "n": len(mixing)}
        found.append(Sentence(unseen.MIXING.template, values))
    size = recorder.bytes + recorder.vector_bytes
    if size > most_bytes:
        values = {
            **unseen.sizes(size, most_bytes),
            "name": next(filter(None, recorder.modules), "*"),
        }
        found.append(Sentence(unseen.NO_ROOM.template, values))
    if not recorder.modules and not found:
        found = [unseen.NONE]
    return tuple(found)


def _named(found: Sequence[tuple[Place, AttentionMap]]) -> dict[str, AttentionMap]:
    maps: dict[str, AttentionMap] = {}
    for one in _joined_queries(_joined_heads(found)):
        name, n = one.name, 2
        while name in maps:
            name, n = f"{one.name}#{n}", n + 1
        maps[name] = replace(one, name=name)
    return maps


def _joined_heads(found: Sequence[tuple[Place, AttentionMap]]) -> Iterator[AttentionMap]:
    """Yield maps; those of heads that a module computes one after the other become one.

    Either in a loop, of which the innermost may be over examples, or as modules in a list of heads.
    """

    def group(placed: tuple[Place, AttentionMap]) -> tuple[Any, ...]:
        place, one = placed
        path, _dot, last = place.module.rpartition(".")
        is_head = last.isdigit() and path.rpartition(".")[2] == "heads"
        name, call = (path, -1) if is_head else (place.module, place.call)
        return (name, call, one.kind, one.is_fused, one.is_over_keys, one.weights.shape)

    for key, several in itertools.groupby(found, group):
        places, ones = zip(*several, strict=True)
        n, first = len(ones), ones[0]
        batch, n_heads = first.weights.shape[:2]
        is_list = key[1] < 0
        n_named = n if is_list else places[0].n_heads
        if n == 1 or n_heads > 1 or not n_named or n % n_named or (n > n_named and batch > 1):
            yield from ones
            continue
        name = key[0].rpartition(".")[0] if is_list else key[0]
        yield replace(
            first,
            name=name,
            weights=_stacked([one.weights for one in ones], n_named),
            allowed=None
            if all(one.allowed is None for one in ones)
            else _stacked([_whole(one) for one in ones], n_named),
            vectors=joined([one.vectors for one in ones], partial(_stacked, n_heads=n_named)),
        )


def _joined_queries(found: Iterable[AttentionMap]) -> Iterator[AttentionMap]:
    """Yield maps; those of a decoder that asks with one query at a time become one."""
    for (_module, kind, _length, shape), several in itertools.groupby(
        found, lambda one: (one.name, one.kind, one.length, one.weights.shape)
    ):
        ones = list(several)
        if kind != "cross" or shape[-2] != 1 or len(ones) == 1:
            yield from ones
            continue
        allowed = None
        if any(one.allowed is not None for one in ones):
            allowed = torch.cat([_whole(one) for one in ones], -2)
        yield replace(
            ones[0],
            weights=torch.cat([one.weights for one in ones], -2),
            allowed=allowed,
            vectors=joined_queries([one.vectors for one in ones]),
            queries=range(len(ones)),
            length=(len(ones), ones[0].length[1]),
        )


def _stacked(maps: Sequence[Tensor], n_heads: int) -> Tensor:
    """Return maps of one head each, head after head for each example, as one of several heads."""
    if len(maps) == n_heads:
        return torch.cat(list(maps), 1)
    return torch.cat(list(maps), 1).reshape(-1, n_heads, *maps[0].shape[-2:])


def _whole(one: AttentionMap) -> Tensor:
    allowed = torch.ones(1, dtype=torch.bool) if one.allowed is None else one.allowed
    return allowed.expand(one.weights.shape)


def _short(name: str) -> str:
    return ".".join(part for part in name.split(".") if part != _COMPILED)


class _Running(NamedTuple):
    """A module that runs: the number of its call, and the shape of the first tensor in it."""

    module: nn.Module
    call: int
    shape: tuple[int, ...]


def _where(stack: Sequence[_Running], names: Mapping[nn.Module, str]) -> Callable[[], Place]:
    """Return what tells the innermost module that runs and learns something."""
    learning = {module for module in names if any(True for _one in module.parameters())}

    def where() -> Place:
        inner = next((one for one in reversed(stack) if one.module in learning), None)
        if inner is None:
            return Place("", 0, 0, ())
        n_heads, shape = _n_heads(stack)
        return Place(names[inner.module], inner.call, n_heads, shape or inner.shape)

    return where


def _n_heads(stack: Sequence[_Running]) -> tuple[int, tuple[int, ...]]:
    """Return how many heads the innermost module that names them has, and what it was given."""
    for one in reversed(stack):
        for name in _HEADS:
            value = getattr(one.module, name, None)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value, one.shape
    return 0, ()


@contextmanager
def _followed(
    stack: list[_Running],
    names: Mapping[nn.Module, str],
    shapes: dict[str, tuple[int, ...]],
) -> Iterator[None]:
    """Keep the modules that run in this thread in ``stack``, the innermost last."""
    thread, calls = threading.get_ident(), itertools.count()

    def enter(module: nn.Module, inputs: Any, named: Any) -> None:
        if threading.get_ident() == thread:
            values = (*inputs, *named.values())
            first = next((one for one in values if isinstance(one, Tensor)), None)
            shape = () if first is None else tuple(first.shape)
            stack.append(_Running(module, next(calls), shape))

    def leave(module: nn.Module, _inputs: Any, output: Any) -> None:
        if threading.get_ident() != thread:
            return
        while stack:  # of modules above it, which raised something that the model caught
            if stack.pop().module is module:
                break
        first = output[0] if isinstance(output, list | tuple) and output else output
        if isinstance(first, Tensor):
            shapes.setdefault(names[module], tuple(first.shape))

    with ExitStack() as undo:
        for module in names:
            undo.enter_context(module.register_forward_pre_hook(enter, with_kwargs=True))
            undo.enter_context(module.register_forward_hook(leave))
        yield


_ONE_AT_A_TIME = threading.RLock()


@contextmanager
def _undisturbed(model: nn.Module) -> Iterator[None]:
    """Run a model in eval mode, uncompiled, without PyTorch's fused encoder layers.

    These are switches of the model and of the process: looks of several threads wait for each
    other. Random numbers that a forward pass draws are given back.
    """
    with _ONE_AT_A_TIME, evaluating(model):
        is_fast = torch.backends.mha.get_fastpath_enabled()
        devices = {one.device.index for one in model.parameters() if one.is_cuda}
        try:
            torch.backends.mha.set_fastpath_enabled(False)
            with torch.random.fork_rng(devices), torch.compiler.set_stance("force_eager"):
                yield
        finally:
            torch.backends.mha.set_fastpath_enabled(is_fast)
