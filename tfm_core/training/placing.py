"""Where the training data lies: on the device that learns from it, or beside it where that is full.

On the device a batch is taken from it without a copy from the CPU. Pictures and texts that leave no
room for a training step stay with the CPU, which then sends each batch.
"""

from __future__ import annotations

import torch

from tfm_core.config import Experiment
from tfm_core.data.image_data import ImageData
from tfm_core.data.load import Data
from tfm_core.data.moving import moved, size_of
from tfm_core.data.text_data import TextData
from tfm_core.facts.memory import of_run
from tfm_core.models.unfilled import unfilled
from tfm_core.sentences import Paragraph, in_bytes, joined
from tfm_core.training.devices import memory_free
from tfm_core.training.models import new_model

_LARGE = ("train", "windows")


def placed(data: Data, experiment: Experiment, device: torch.device) -> tuple[Data, str | None]:
    """Return data of the CPU where a training on a device takes it from, and a remark or None.

    The remark is what a person should know of the files, and that each batch is sent.
    """
    remark = data.remark if isinstance(data, ImageData) else None
    if device.type == "cpu" or not isinstance(data, ImageData | TextData):
        return data.to(device), remark
    size = sum(size_of(getattr(data, name, None)) for name in _LARGE)
    free = memory_free(device)
    if free is None or size + _step_bytes(experiment) <= free:
        return data.to(device), remark
    sends = Paragraph(
        "training/data-stays",
        size=in_bytes(size),
        free=in_bytes(free),
        device=str(device),
    )
    return moved(data, device, besides=_LARGE), joined(remark, sends) if remark else sends


def _step_bytes(experiment: Experiment) -> int:
    with unfilled():
        model = new_model(experiment)
    return of_run(experiment, sum(one.numel() for one in model.parameters())).total
