"""The first weights of a model that is trained further: a file in a run's folder, by its digest.

Any run that has the file will do, so a training begins alike wherever it is started again. The
file is another name of the checkpoint that it came from, where the disk allows that.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from pathlib import Path

import torch
from torch import nn

from tfm_core.anatomy.trained import NEW
from tfm_core.choices.config import TunedConfig, TunedLabelsConfig
from tfm_core.data.opened_task import tokenizer_path
from tfm_core.data.user_data import sets
from tfm_core.disk import sync_file
from tfm_core.reading import Unreadable, open_tensors
from tfm_core.sentences import Paragraph, StudentError

FOLDER, FILE = "base", "checkpoint.safetensors"
_PREFIX = "model/"
_AT_ONCE = 2**22


def path_in(folder: Path, digest: str) -> Path:
    """Return where weights lie in a run's folder."""
    return folder / FOLDER / digest / FILE


def find_weights(digest: str) -> Path:
    """Return the file of these weights in the folder of any run. Raises StudentError."""
    return _anywhere(f"{FOLDER}/{digest or '-'}/{FILE}", Paragraph("pretrained/no-base"))


def keep(checkpoint: Path, folder: Path) -> str:
    """Keep a checkpoint as first weights in a run's folder; return its digest. Raises OSError."""
    digest = hashlib.sha256()
    with checkpoint.open("rb") as file:
        while part := file.read(_AT_ONCE):
            digest.update(part)
    name = digest.hexdigest()[:20]
    _linked(checkpoint, path_in(folder, name))
    return name


def bring_along(task: TunedConfig, folder: Path) -> None:
    """Put tokenizer and first weights of a task into a new run's folder. Raises ValueError."""
    tokenizer = tokenizer_path(folder, task.tokenizer)
    name = str(tokenizer.relative_to(folder))
    _linked(_anywhere(name, Paragraph("pretrained/no-tokenizer")), tokenizer)
    if task.base:
        _linked(find_weights(task.base), path_in(folder, task.base))


def _anywhere(name: str, otherwise: str) -> Path:
    path = next(iter(sorted(sets.root().parent.glob(f"*/{name}"))), None)
    if path is None:
        raise StudentError(otherwise)
    return path


def _linked(source: Path, target: Path) -> None:
    """Give a file a second name, or copy it where there can be none."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_file():
        return
    with contextlib.suppress(OSError):
        os.link(source, target)
        return
    beside = target.with_suffix(".new")
    shutil.copyfile(source, beside)
    sync_file(beside)
    os.replace(beside, target)


def begin(model: nn.Module, task: TunedConfig) -> None:
    """Give a model its first weights; layers of a classifier that answer stay random.

    Raises StudentError where the file is gone or of another model.
    """
    own = {
        name: parameter
        for name, parameter in model.named_parameters()
        if not (isinstance(task, TunedLabelsConfig) and name.startswith(NEW))
    }
    try:
        with open_tensors(find_weights(task.base), "pt") as file, torch.no_grad():
            stored = set(file.keys())
            for name, parameter in own.items():
                key = _PREFIX + name
                if key not in stored or file.get_slice(key).get_shape() != list(parameter.shape):
                    raise StudentError(
                        Paragraph("pretrained/other-base", name=name, called=task.called)
                    )
                parameter.copy_(file.get_tensor(key))
    except (FileNotFoundError, Unreadable):
        raise StudentError(Paragraph("pretrained/no-base")) from None
