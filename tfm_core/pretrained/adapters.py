"""LoRA: changes of low rank to the matrices of a frozen model (Hu et al. 2022), in PEFT's layout.

A matrix W becomes W + alpha / r * B A, with A (r, d_in) and B (d_out, r). It is a parametrization
of the layer's weight, so that every way through the layer meets it. Where one matrix here is
several in Transformers (queries, keys, values), each of those has its own A and B.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save_file
from torch import Tensor, nn
from torch.nn.utils import parametrize

from tfm_core.anatomy.hugging_face import COLUMNS, pattern_of
from tfm_core.models.build import Model
from tfm_core.pretrained.families import PretrainedFamily, interleaved
from tfm_core.pretrained.folder import Unopenable, content_in, json_in, missing
from tfm_core.pretrained.writing import halved
from tfm_core.reading import is_number, is_whole

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_BEGIN = "base_model.model."
_CHANGED = "parametrizations"
"""What PyTorch keeps a layer's matrix and what changes it in."""
_MAX_BYTES = 2**30
_USUAL: Mapping[str, tuple[object, ...]] = {
    "peft_type": ("LORA",), "bias": ("none", None), "use_dora": (False, None),
    "use_rslora": (False, None), "modules_to_save": (None, []), "rank_pattern": ({}, None),
    "alpha_pattern": ({}, None), "lora_bias": (False, None),
}  # fmt: skip
"""Settings of PEFT that change what an adapter is, and the values that are read."""


@dataclass(frozen=True, slots=True)
class Lora:
    """rank, alpha: as above. targets: last parts of the names of layers in Transformers."""

    rank: int
    alpha: float
    targets: tuple[str, ...]

    @property
    def scale(self) -> float:
        """What the product is multiplied by."""
        return self.alpha / self.rank


class LowRank(nn.Module):
    """What a matrix is changed by. It starts as nothing: B is zeros."""

    def __init__(self, rows: Mapping[int, slice], n_rows: int, d_in: int, lora: Lora) -> None:
        """rows: of the matrix, by the number of the part that has an A and a B."""
        super().__init__()
        self.rows, self.n_rows, self.scale = dict(rows), n_rows, lora.scale
        self.a, self.b = nn.ParameterDict(), nn.ParameterDict()
        for part, where in rows.items():
            first = torch.empty(lora.rank, d_in)
            nn.init.kaiming_uniform_(first, a=math.sqrt(5))  # as PEFT's start
            self.a[str(part)] = nn.Parameter(first)
            self.b[str(part)] = nn.Parameter(torch.zeros(where.stop - where.start, lora.rank))

    def forward(self, weight: Tensor) -> Tensor:
        """Return the changed matrix (d_out, d_in)."""
        changes = []
        at = 0
        for part, where in sorted(self.rows.items()):
            changes.append(weight.new_zeros(where.start - at, weight.size(1)))
            changes.append(self.scale * (self.b[str(part)] @ self.a[str(part)]))
            at = where.stop
        changes.append(weight.new_zeros(self.n_rows - at, weight.size(1)))
        return weight + torch.cat(changes)


@dataclass(frozen=True, slots=True)
class _Part:
    """A layer in Transformers, and the rows of a layer here that are its matrix."""

    theirs: str
    number: int
    rows: slice


def add_adapters(model: Model, family: PretrainedFamily, lora: Lora) -> list[str]:
    """Freeze a model and give its target layers adapters; return their names here.

    Raises ValueError where no layer is a target.
    """
    chosen = {
        name: {part.number: part.rows for part in parts if _last(part.theirs) in lora.targets}
        for name, parts in _layers(model, family)
    }
    model.requires_grad_(False)
    for name, rows in chosen.items():
        if rows:
            layer = model.get_submodule(name)
            assert isinstance(layer, nn.Linear)
            change = LowRank(rows, layer.out_features, layer.in_features, lora)
            parametrize.register_parametrization(layer, "weight", change.to(layer.weight))
    names = [name for name, rows in chosen.items() if rows]
    if not names:
        raise ValueError(f"No layer is called {' or '.join(lora.targets)}.")
    return names


def merge_adapters(model: nn.Module) -> None:
    """Write the changes into the matrices; the model is one without adapters again."""
    for module in list(model.modules()):
        if isinstance(module, nn.Linear) and _change(module) is not None:
            parametrize.remove_parametrizations(module, "weight", leave_parametrized=True)


def merged_state(model: nn.Module) -> dict[str, Tensor]:
    """Return the state of a model as one without adapters has it, their changes in the matrices."""
    state: dict[str, Tensor] = {}
    for name, value in model.state_dict().items():
        layer, is_changed, leaf = name.partition(f".{_CHANGED}.")
        if not is_changed:
            state[name] = value
        elif leaf.endswith(".original"):
            changed: Any = model.get_submodule(layer)
            state[f"{layer}.weight"] = changed.weight.detach()
    return state


def save_adapters(model: Model, family: PretrainedFamily, lora: Lora, folder: Path) -> None:
    """Write the adapters as PEFT does: a config and two tensors a layer."""
    tensors = {}
    for name, parts in _layers(model, family):
        change = _change(model.get_submodule(name))
        for part in parts:
            if change is None or part.number not in change.rows:
                continue
            b = change.b[str(part.number)].detach()
            begin = _BEGIN + part.theirs
            tensors[f"{begin}.lora_A.weight"] = change.a[str(part.number)].detach().contiguous()
            tensors[f"{begin}.lora_B.weight"] = _theirs(b, part, family, model).contiguous()
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / WEIGHTS, {"format": "pt"})
    values = {
        "peft_type": "LORA", "task_type": None, "base_model_name_or_path": None,
        "r": lora.rank, "lora_alpha": lora.alpha, "lora_dropout": 0.0, "bias": "none",
        "target_modules": list(lora.targets), "fan_in_fan_out": family.name == "gpt2",
        "inference_mode": True,
    }  # fmt: skip
    (folder / CONFIG).write_text(json.dumps(values, indent=2), encoding="utf-8")


def load_adapters(model: Model, family: PretrainedFamily, folder: Path) -> Lora:
    """Give a model the adapters of a folder. Raises Unopenable, the model then being as it was."""
    rank, alpha = _settings(folder)
    places = {
        _bare(part.theirs, family): (name, part)
        for name, parts in _layers(model, family)
        for part in parts
    }
    found = _pairs(_tensors(folder), places.keys(), family)
    for module, pair in found.items():
        name, part = places[module]
        shapes = {
            "A": (rank, _linear(model, name).in_features),
            "B": (part.rows.stop - part.rows.start, rank),
        }
        for letter, shape in shapes.items():
            if letter not in pair or tuple(pair[letter].shape) != shape:
                raise Unopenable("{name} does not fit this model.", name=f"{module}.lora_{letter}")
    lora = Lora(rank, alpha, tuple(sorted({_last(one) for one in found})))
    model.requires_grad_(False)
    for name in dict.fromkeys(places[module][0] for module in found):
        layer = _linear(model, name)
        here = [(one, part) for one, (at, part) in places.items() if at == name and one in found]
        rows = {part.number: part.rows for _module, part in here}
        change = LowRank(rows, layer.out_features, layer.in_features, lora).to(layer.weight)
        with torch.no_grad():
            for module, part in here:
                change.a[str(part.number)].copy_(found[module]["A"])
                change.b[str(part.number)].copy_(_ours(found[module]["B"], part, family, model))
        parametrize.register_parametrization(layer, "weight", change)
    return lora


def _settings(folder: Path) -> tuple[int, float]:
    """Return rank and alpha of a folder. Raises Unopenable for adapters of another kind."""
    values = json_in(folder, CONFIG)
    for name, known in _USUAL.items():
        if name in values and values[name] not in known:
            raise _not_read(name, values[name])
    rank, alpha = values.get("r"), values.get("lora_alpha")
    if not is_whole(rank, 1, 4096):
        raise _not_read("r", rank)
    if not is_number(alpha, 1e-9, 1e9):
        raise _not_read("lora_alpha", alpha)
    return int(rank), float(alpha)


def _pairs(
    stored: Mapping[str, Tensor], places: Set[str], family: PretrainedFamily
) -> dict[str, dict[str, Tensor]]:
    """Return A and B of each layer there. Raises Unopenable for a tensor of no layer."""
    found: dict[str, dict[str, Tensor]] = {}
    for key, tensor in stored.items():
        module, _dot, leaf = key.removeprefix(_BEGIN).rpartition(".lora_")
        module = _bare(module, family)
        if module not in places or leaf not in ("A.weight", "B.weight"):
            raise Unopenable("{name} has no place in the model of config.json.", name=key[:200])
        found.setdefault(module, {})[leaf[0]] = tensor
    return found


def _linear(model: Model, name: str) -> nn.Linear:
    layer = model.get_submodule(name)
    assert isinstance(layer, nn.Linear)
    return layer


def _tensors(folder: Path) -> dict[str, Tensor]:
    try:
        stored: dict[str, Tensor] = load(content_in(folder, WEIGHTS, most=_MAX_BYTES))
    except FileNotFoundError:
        raise missing(WEIGHTS) from None
    except SafetensorError:
        raise Unopenable("{name} is damaged or incomplete.", name=WEIGHTS) from None
    for name, value in stored.items():
        if not value.is_floating_point() or not value.isfinite().all():
            raise Unopenable("{name} has NaN or infinite numbers.", name=name[:200])
    return {name: value.float() for name, value in stored.items()}


def _not_read(name: str, value: object) -> Unopenable:
    return Unopenable(
        "{name} is {value} in {file}, which is not read.",
        name=name, value=str(value)[:40], file=CONFIG,
    )  # fmt: skip


def _layers(model: Model, family: PretrainedFamily) -> Iterator[tuple[str, list[_Part]]]:
    """Yield the linear layers that Transformers has too, with their parts there."""
    column = COLUMNS[family.column]
    for name, module in model.named_modules():
        pattern, layer = pattern_of(name)
        theirs = column.get(pattern, ())
        if not isinstance(module, nn.Linear) or not theirs:
            continue
        widths = _widths(model, name, len(theirs), module.out_features)
        starts = [sum(widths[:number]) for number in range(len(widths))]
        yield (
            name,
            [
                _Part(one.replace("{i}", layer), number, slice(start, start + width))
                for number, (one, start, width) in enumerate(
                    zip(theirs, starts, widths, strict=True)
                )
            ],
        )


def _widths(model: Model, name: str, n: int, n_rows: int) -> Sequence[int]:
    if n == 1:
        return [n_rows]
    attention: Any = model.get_submodule(name.rpartition(".")[0])
    q, k, v = attention.widths
    return [q, k, v] if n == 3 else [q, k + v]


def _change(module: nn.Module) -> LowRank | None:
    if not parametrize.is_parametrized(module, "weight"):
        return None
    changes: Any = module.parametrizations
    return next((one for one in changes["weight"] if isinstance(one, LowRank)), None)


def _theirs(b: Tensor, part: _Part, family: PretrainedFamily, model: Model) -> Tensor:
    return halved(b, _d_head(part, model)) if _turns(part, family) else b


def _ours(b: Tensor, part: _Part, family: PretrainedFamily, model: Model) -> Tensor:
    return interleaved(b, len(b) // _d_head(part, model)) if _turns(part, family) else b


def _turns(part: _Part, family: PretrainedFamily) -> bool:
    """Return whether rows are turned in pairs by their position: queries and keys of Llama."""
    return family.name in ("llama", "mistral", "mixtral", "qwen2", "qwen3") and _last(
        part.theirs
    ) in (
        "q_proj",
        "k_proj",
    )


def _d_head(part: _Part, model: Any) -> int:
    return int(model.decoder.layers[0].self_attention.d_head)


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _bare(name: str, family: PretrainedFamily) -> str:
    return name.removeprefix(family.base) if family.base else name
