"""``look``: the attention of any PyTorch model in one call, and the model left as it was."""

from __future__ import annotations

import fnmatch
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from tfm_core.looking.recorder import Kind, Recorded, Recorder
from tfm_core.sentences import N_, Sentence, StudentError

MAX_BYTES = 2**30
"""Bytes of all maps together, unless a call allows more."""
_HEADS = ("num_heads", "n_heads", "num_attention_heads", "n_head", "nhead", "heads", "h")
"""What modules call the number of their heads."""


@dataclass(frozen=True, slots=True, eq=False)
class AttentionMap:
    """The attention of one module in one forward pass.

    weights: float32 (batch, n_heads, query_len, key_len), on the CPU; each row sums to 1, or to 0
    where the mask allows nothing. allowed: the mask as it was applied, bool, broadcastable to the
    weights, True = may attend; None where everything is allowed. is_fused: PyTorch kept no weights,
    so that they were computed once more from the query and the key. problem: what is odd, or "".
    """

    name: str
    kind: Kind
    weights: Tensor
    allowed: Tensor | None
    is_fused: bool
    problem: str = ""

    @property
    def is_causal(self) -> bool:
        """Whether no query may attend to a later key, and some may to all before."""
        n_queries, n_keys = self.weights.shape[-2:]
        if self.allowed is None or n_queries < 2:
            return False
        later = torch.ones(n_queries, n_keys, dtype=torch.bool).triu(n_keys - n_queries + 1)
        allowed = self.allowed.expand(*self.allowed.shape[:-2], n_queries, n_keys)
        return not bool((allowed & later).any()) and bool(allowed[..., -1, :].all(-1).any())


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """What a forward pass showed.

    maps: by the name of the module; its second call ends in ``#2``. output: what the model
    returned. shapes: module -> shape of the tensor that it returned first. n_parameters: of the
    model. unseen: a sentence for each attention whose weights PyTorch did not show.
    """

    maps: Mapping[str, AttentionMap]
    output: Any
    shapes: Mapping[str, tuple[int, ...]]
    n_parameters: int
    tokens: tuple[str, ...]
    unseen: tuple[Sentence, ...]

    def __repr__(self) -> str:
        """Return a line for each map."""
        lines = [f"Look at {self.n_parameters:,} parameters, {len(self.maps)} maps"]
        for one in self.maps.values():
            words = " ".join(filter(None, [one.kind, "causal" if one.is_causal else ""]))
            shape = ", ".join(map(str, one.weights.shape))
            lines.append(
                f"  {one.name}: {words} ({shape}){' ' + one.problem if one.problem else ''}"
            )
        return "\n".join([*lines, *map(str, self.unseen)])


def look(
    model: nn.Module,
    *inputs: Any,
    tokens: Sequence[str] = (),
    layers: Sequence[str] = (),
    most_bytes: int = MAX_BYTES,
    **named: Any,
) -> Look:
    """Run a model once on inputs and return the attention in it; the model is left as it was.

    It runs in eval mode, without gradients, and uncompiled. tokens: names of the positions.
    layers: names of modules whose maps are kept, with ``*`` for anything; all without one.
    named: inputs by name. Raises what the model raises, and StudentError, in a sentence, for maps
    of more than ``most_bytes``.
    """
    if not isinstance(model, nn.Module):
        raise StudentError("look needs a torch.nn.Module, not {kind}.", kind=type(model).__name__)
    model = getattr(model, "_orig_mod", model)  # of torch.compile
    names = {module: name for name, module in model.named_modules()}
    learning = {module for module in names if any(True for _one in module.parameters())}
    stack: list[nn.Module] = []
    shapes: dict[str, tuple[int, ...]] = {}

    def wanted(module: str) -> bool:
        return not layers or any(fnmatch.fnmatchcase(module, pattern) for pattern in layers)

    recorder = Recorder(
        [*model.parameters(), *model.buffers()],
        where=lambda: next((names[one] for one in reversed(stack) if one in learning), ""),
        heads=lambda _module: _n_heads(stack),
        wanted=wanted,
        most_bytes=most_bytes,
    )
    with (
        torch.inference_mode(False),
        torch.no_grad(),
        _undisturbed(model),
        _followed(model, stack, names, shapes),
        recorder,
    ):
        output = model(*inputs, **named)
    if recorder.bytes > most_bytes:
        raise StudentError(
            "The maps take {size:.1f} GiB. Name some layers, such as layers=['{name}'], or give "
            "shorter inputs.",
            size=recorder.bytes / 2**30,
            name=next((one.module for one in recorder.found), "*.0.*"),
        )
    unseen = [
        N_("{module} computes attention in {operation}, which shows no weights.",
           module=module or "The model", operation=operation)
        for module, operation in recorder.opaque.items()
    ] + [
        N_("{module} changes its weights before they multiply values; they are not shown.",
           module=module or "The model")
        for module in recorder.unused()
    ]  # fmt: skip
    if not recorder.found and not unseen:
        unseen = [N_("No attention was found: no softmax multiplied values.")]
    return Look(
        maps=_named(recorder.found),
        output=output,
        shapes=shapes,
        n_parameters=sum(one.numel() for one in model.parameters()),
        tokens=tuple(tokens),
        unseen=tuple(unseen),
    )


def _named(found: Sequence[Recorded]) -> dict[str, AttentionMap]:
    maps: dict[str, AttentionMap] = {}
    for one in found:
        name, n = one.module, 2
        while name in maps:
            name, n = f"{one.module}#{n}", n + 1
        odd = one.dim not in (-1,)
        problem = (
            N_("The softmax runs over axis {dim}, not over the keys.", dim=one.dim) if odd else ""
        )
        maps[name] = AttentionMap(name, one.kind, one.weights, one.allowed, one.is_fused, problem)
    return maps


def _n_heads(stack: Sequence[nn.Module]) -> int:
    """Return the number of heads that the module that runs, or the nearest around it, names."""
    for module in reversed(stack):
        for name in _HEADS:
            value = getattr(module, name, None)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    return 0


@contextmanager
def _followed(
    model: nn.Module,
    stack: list[nn.Module],
    names: Mapping[nn.Module, str],
    shapes: dict[str, tuple[int, ...]],
) -> Iterator[None]:
    """Keep the modules that run in this thread in ``stack``, the innermost last."""
    thread = threading.get_ident()

    def enter(module: nn.Module, _inputs: Any) -> None:
        if threading.get_ident() == thread:
            stack.append(module)

    def leave(module: nn.Module, _inputs: Any, output: Any) -> None:
        if threading.get_ident() == thread and stack and stack[-1] is module:
            stack.pop()
            first = output[0] if isinstance(output, list | tuple) and output else output
            if isinstance(first, Tensor):
                shapes.setdefault(names[module], tuple(first.shape))

    hooks = []
    try:
        for module in names:
            hooks.append(module.register_forward_pre_hook(enter))
            hooks.append(module.register_forward_hook(leave))
        yield
    finally:
        for hook in hooks:
            hook.remove()


_ONE_AT_A_TIME = threading.RLock()


@contextmanager
def _undisturbed(model: nn.Module) -> Iterator[None]:
    """Run a model in eval mode, uncompiled, without PyTorch's fused encoder layers.

    These are switches of the model and of the process: looks of several threads wait for each
    other.
    """
    with _ONE_AT_A_TIME:
        modes = {module: module.training for module in model.modules()}
        is_fast = torch.backends.mha.get_fastpath_enabled()
        try:
            torch.backends.mha.set_fastpath_enabled(False)
            model.eval()
            with torch.compiler.set_stance("force_eager"):
                yield
        finally:
            torch.backends.mha.set_fastpath_enabled(is_fast)
            for module, is_training in modes.items():
                module.training = is_training
