"""What of a model is trained: all of it, its last blocks, or LoRA's matrices beside frozen ones.

What answers is trained with them where it is new, as a classifier's labels are; behind the last
blocks the norm is, too. Torch-free, so that memory, compute and pages count alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from tfm_core.anatomy.anatomy import Anatomy, anatomy
from tfm_core.anatomy.formula import formula
from tfm_core.anatomy.part import Part, Saved
from tfm_core.choices.config import ModelConfig, TunedConfig, TunedLabelsConfig
from tfm_core.choices.config.shape import Shape
from tfm_core.choices.variants.activations import ACTIVATIONS

NEW = "output."
"""What the layers that answer begin with, which are new in a classifier."""


@dataclass(frozen=True, slots=True)
class Trained:
    """Numbers that are trained; ``n_added`` of them are LoRA's, beside those of the model.

    backward: multiply-accumulates of the backward pass, as a share of those of the forward one: 2
    where all is trained, for gradients of what is read and of the weights.
    """

    n: int
    n_added: int = 0
    backward: float = 2.0


def is_trained(name: str, task: Any, n_layers: int) -> bool:
    """Return whether a parameter of a model learns; LoRA's own ones are not asked for."""
    if not isinstance(task, TunedConfig) or task.trains == "all":
        return True
    if isinstance(task, TunedLabelsConfig) and name.startswith(NEW):
        return True
    if task.trains == "lora":
        return False
    _before, layers, after = name.partition(".layers.")
    if not layers:
        return name.partition(".")[2].startswith("final_norm")
    return int(after.partition(".")[0]) >= n_layers - task.n_last


def trained(
    config: ModelConfig, shape: Shape, task: Any, *, src_len: int = 0, tgt_len: int = 0
) -> Trained:
    """Return what is trained of a model."""
    found = anatomy(config, shape)
    n_layers = int(getattr(config, "n_layers", 0))
    n = sum(one.size for one in found.parameters if is_trained(one.name, task, n_layers))
    if not isinstance(task, TunedConfig) or task.trains == "all":
        return Trained(n)
    lora = list(lora_parts(found, task)) if task.trains == "lora" else []
    added = sum(task.rank * (d_in + rows) for _path, d_in, rows in lora)
    passes = _passes(found, task, n_layers, {path for path, _d_in, _rows in lora})
    sizes = found.at(src_len, tgt_len)
    whole = sum(formula.value(sizes) for formula in found.macs.values())
    back = sum(n * part.macs.value(sizes) for part, n in passes)
    return Trained(n + added, added, back / max(1, whole))


def _passes(
    found: Anatomy, task: TunedConfig, n_layers: int, changed: set[str]
) -> Iterator[tuple[Part, int]]:
    """Yield the parts that the backward pass goes through, and how often it computes as much.

    Twice, for what was read and for the weights, or for the two that a product was made of; once
    where the weights are frozen, or nothing in front is trained. A matrix that LoRA changes has a
    gradient of its own, which those of the two thin ones are made of.
    """
    first = n_layers - task.n_last if task.trains == "last" else 0
    for part in found.all:
        if not part.macs or (task.trains == "last" and not _is_reached(part, task, n_layers)):
            continue
        is_first = part.path.endswith(f".layers.{first}.self_attention.in_projection")
        is_frozen = bool(part.parameters) and not any(
            is_trained(one.name, task, n_layers) for one in part.parameters
        )
        has_weights = part.path in changed or not is_frozen
        yield part, has_weights + (not is_first)


def _is_reached(part: Part, task: TunedConfig, n_layers: int) -> bool:
    """Return whether the backward pass goes through a part, where the last blocks are trained."""
    if part.path.startswith(("output", "head")):
        return True
    _before, layers, after = part.path.partition(".layers.")
    return bool(layers) and int(after.partition(".")[0]) >= n_layers - task.n_last


def saved_while_tuned(found: Anatomy, config: ModelConfig, task: TunedConfig) -> Saved:
    """Return what autograd saves of one example where a part of a model is trained.

    The backward pass ends at the first block that is trained: of what is in front nothing is kept.
    A frozen matrix needs no input for a gradient of its own; a matrix that LoRA changes is made
    anew in each step, and kept.
    """
    if task.trains == "last":
        n_layers = int(getattr(config, "n_layers", 0))
        reached = {one.path for one in found.all if _is_reached(one, task, n_layers)}
        return Saved.total(
            part.saved
            for part in found.all
            if part.path in reached or (part.kind in ("norm", "pooling") and not _in_front(part))
        )
    kept = []
    for part in found.all:
        activation = getattr(config, "activation", "relu")
        is_hidden = part.kind == "activation" and ACTIVATIONS[activation].n_saved
        if part.path.endswith((".up", ".gate")):
            continue
        saved = part.saved
        if is_hidden:  # what the second matrix reads
            length = part.outputs[0].shape[1]
            saved = replace(saved, products=saved.products + formula(f"-1 {length} d_ff"))
        kept.append(saved)
    made = sum(d_in * rows for _path, d_in, rows in _whole_lora_layers(found, task))
    return Saved.total([*kept, Saved(once=formula(str(made)))])


def _in_front(part: Part) -> bool:
    """Return whether a norm or a table stands in front of the stack, or in a block."""
    return part.path.startswith("segments") or ".layers." in part.path


def _whole_lora_layers(found: Anatomy, task: TunedConfig) -> set[tuple[str, int, int]]:
    """Return the layers that LoRA changes, each with inputs and all rows."""
    changed = {path for path, _d_in, _rows in lora_parts(found, task)}
    return {
        (part.path, one.shape[1], one.shape[0])
        for part in found.modules
        for one in part.parameters
        if part.path in changed and one.name.endswith(".weight")
    }


def lora_parts(found: Anatomy, task: TunedConfig) -> Iterator[tuple[str, int, int]]:
    """Yield the matrices that LoRA changes: the layer's path, its inputs, and rows of them."""
    for part in found.modules:
        if not part.path.endswith(".self_attention.in_projection"):
            continue
        rows, d_in = next(one.shape for one in part.parameters if one.name.endswith(".weight"))
        for width in (rows,) if has_one_matrix(task) else (d_in, (rows - d_in) // 2):
            yield part.path, d_in, width


def has_one_matrix(task: TunedConfig) -> bool:
    """Return whether LoRA changes queries, keys and values as one matrix, as PEFT does in GPT-2.

    Elsewhere it changes queries and values (Hu et al. 2022, section 4.2).
    """
    return task.architecture == "gpt2"
