"""What is opened of a path: a folder, a training's newest checkpoint, an adapter with its base.

An adapter of PEFT lies beside the folder of its base model, or around it; the base's matrices take
in LoRA's changes. Other adapters, and what is trained beside one, are refused.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor

from tfm_core.data.opened_folder import (
    CONFIG,
    DTYPES,
    Folder,
    StoredTensor,
    Unopenable,
    header,
    json_in,
    numbers_of,
    open_folder,
)
from tfm_core.reading import is_number, is_whole
from tfm_core.sentences import Paragraph

SETTINGS, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
CHECKPOINT = re.compile(r"checkpoint-\d{1,12}", re.ASCII)
"""What Transformers calls the folders that it saves while it trains."""
Change = Callable[[Tensor], Tensor]
_FRONT, _A, _B = "base_model.model.", ".lora_A.weight", ".lora_B.weight"
_EMPTY = ("modules_to_save", "rank_pattern", "alpha_pattern", "use_dora", "layer_replication")
_STARTS = (None, True, False, "gaussian")  # others change the base as well


def open_any(path: Path, *, most: int) -> Folder:
    """Return a folder, or what is in it: the newest checkpoint, an adapter merged into its base.

    most: bytes of all weights. Raises Unopenable.
    """
    path = path.expanduser()
    if not os.path.isdir(path):
        return open_folder(path, most=most)  # which says so
    if not any((path / name).exists() for name in (CONFIG, SETTINGS)):
        checkpoints = [
            folder for folder in path.glob("checkpoint-*/") if CHECKPOINT.fullmatch(folder.name)
        ]
        adapters = [folder.parent for folder in path.glob(f"*/{SETTINGS}")]
        if checkpoints:
            path = max(checkpoints, key=lambda folder: int(folder.name.partition("-")[2]))
        elif len(adapters) == 1:
            path = adapters[0]
    if (path / SETTINGS).exists() and not (path / CONFIG).exists():
        return _merged(path, most)
    return open_folder(path, most=most)


def _merged(path: Path, most: int) -> Folder:
    """Return the base of an adapter with its changes. Raises Unopenable."""
    settings = json_in(path, SETTINGS)
    given = settings.get("base_model_name_or_path")
    name = given.replace("\\", "/").rstrip("/").rpartition("/")[2] if isinstance(given, str) else ""
    places = [folder / name for folder in (path, path.parent)] if name.strip(".") else []
    base = next((folder for folder in places if (folder / CONFIG).is_file()), None)
    if base is None:
        raise Unopenable(Paragraph("pretrained/adapter-alone", base=str(given)[:200], name=name))
    folder = open_folder(base, most=most)
    changes = _changes(path, settings, folder)
    return Folder(folder.path, folder.config, folder.tensors, path, changes)


def _changes(path: Path, settings: dict[str, Any], base: Folder) -> dict[str, Change]:
    """Return what changes by the name of a tensor of the base, which every one must have."""
    rank, alpha, is_turned = (settings.get(one) for one in ("r", "lora_alpha", "fan_in_fan_out"))
    if (
        settings.get("peft_type") != "LORA"
        or any(map(settings.get, _EMPTY))
        or settings.get("init_lora_weights") not in _STARTS
        or not (is_whole(rank, 1, 2**16) and is_number(alpha, 0, 1e6))
    ):
        raise _unmergeable(SETTINGS)
    scale = alpha / (math.sqrt(rank) if settings.get("use_rslora") else rank)
    stored = {one.key: one for one in header(path / WEIGHTS)}
    changes: dict[str, Change] = {}
    for key, a in stored.items():
        if key.endswith(_B) and key.replace(_B, _A) in stored:
            continue
        module = key.removeprefix(_FRONT).removesuffix(_A)
        names = [f"{module}.weight", f"{module.partition('.')[2]}.weight"]  # some lack the first
        name = next((one for one in names if one in base.tensors), "")
        b = stored.get(key.replace(_A, _B))
        if not (key.endswith(_A) and name and b is not None and a.shape[:1] == (rank,)):
            raise _unmergeable(key)
        _check(a, b, base.tensors[name], is_turned is True)
        changes[name] = partial(_changed, a, b, scale, is_turned is True)
    if not changes:
        raise _unmergeable(WEIGHTS)
    return changes


def _changed(
    a: StoredTensor, b: StoredTensor, scale: float, is_turned: bool, values: Tensor
) -> Tensor:
    """Return W + scale * B A, transposed where a layer is."""
    change = scale * (numbers_of(b) @ numbers_of(a))
    return values + (change.t() if is_turned else change)


def _check(a: StoredTensor, b: StoredTensor, base: StoredTensor, is_turned: bool) -> None:
    """Raise Unopenable where B A has another shape than the matrix that it changes."""
    is_one = len(a.shape) == len(b.shape) == 2 and a.shape[0] == b.shape[1]
    shape = (b.shape[0], a.shape[1]) if is_one else ()
    if {a.dtype, b.dtype} - set(DTYPES) or base.shape != (shape[::-1] if is_turned else shape):
        raise _unmergeable(a.key)


def _unmergeable(name: str) -> Unopenable:
    return Unopenable(Paragraph("pretrained/adapter-other", name=name))
