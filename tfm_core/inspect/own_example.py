"""A user's own sentence or picture, through the last checkpoint of a run.

torch is imported where it is needed, so that a page that imports this stays quick to appear.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfm_core.config import ImageTaskConfig, TextTaskConfig, from_json
from tfm_core.inspect.example import Example, cut
from tfm_core.runs.run import Run

if TYPE_CHECKING:
    from torch import Tensor

    from tfm_core.models.build import Model

_CHECKPOINT = "checkpoints/last/checkpoint.safetensors"
_WRONG_TASK = "This run learned sentences; type one instead of drawing a picture."
_loading = threading.Lock()


def has_checkpoint(run: Run) -> bool:
    """Return whether the run has weights that an own example can go through."""
    return (run.folder / _CHECKPOINT).is_file()


def look_at_text(run: Run, text: str) -> Example:
    """Read a sentence with the last checkpoint: the model's own answer, and every map.

    The decoder reads the model's own answer, as it does when nobody knows the truth. Raises
    ValueError, in a sentence, for words the model does not know, for an empty or too long text, and
    where there is no checkpoint.
    """
    import torch

    from tfm_core.data.text import text_task
    from tfm_core.data.vocabulary import BOS
    from tfm_core.decoding import greedy
    from tfm_core.inspect.capture import capture
    from tfm_core.models.vit import VisionTransformer

    config = run.experiment.task
    if not isinstance(config, TextTaskConfig):
        raise ValueError("This run learned pictures; draw one instead of typing a sentence.")
    task = text_task(config)
    tokens = task.tokenize(text)
    model, step = _model(run)
    assert not isinstance(model, VisionTransformer)
    src = torch.tensor([task.src_vocabulary.encode(tokens)])
    written = greedy(model, src, max_len=config.max_tgt_len + 1)
    answer = task.tgt_vocabulary.decode(written.ids[0].tolist())[: config.max_tgt_len]
    tgt_in = torch.tensor([[BOS, *task.tgt_vocabulary.encode(answer)]])
    with capture(model, only={"weights"}) as tape:
        model(src, tgt_in)
    truth = task.solve(tokens)
    item: dict[str, Any] = {"src": list(tokens), "tgt": answer, "src_text": task.join_src(tokens)}
    if truth is not None:
        item |= {"truth": list(truth), "tgt_text": task.join_tgt(truth)}
    maps = {name: weights[0].float().numpy() for name, weights in tape.of("weights").items()}
    return Example(
        step=step,
        item=item,
        attention=cut(run.experiment, item, maps),
        answer=tuple(answer),
        answer_text=task.join_tgt(answer),
        confidence=written.confidence[0, : len(answer)].numpy(),
    )


def look_at_picture(run: Run, picture: npt.NDArray[np.uint8]) -> Example:
    """Look at a picture with the last checkpoint: a probability for each class, and every map.

    picture: uint8 (C, height, width), as the run's pictures are. Raises ValueError, in a sentence,
    where it has another shape or there is no checkpoint.
    """
    import torch

    from tfm_core.inspect.capture import capture
    from tfm_core.models.vit import VisionTransformer

    config = run.experiment.task
    if not isinstance(config, ImageTaskConfig):
        raise ValueError(_WRONG_TASK)
    facts = config.facts
    shape = (facts.channels, facts.image_size, facts.image_size)
    if picture.shape != shape:
        raise ValueError(f"The picture is {picture.shape}, but this run reads {shape}.")
    model, step = _model(run)
    assert isinstance(model, VisionTransformer)
    with _loading:
        mean, std = _statistics(config.model_dump_json(), run.experiment.seed)
    pixels = torch.tensor(picture)[None].to(torch.float32).div_(255)
    images = pixels.sub_(mean[:, None, None]).div_(std[:, None, None])
    with capture(model, only={"weights"}) as tape:
        probabilities = model(images).softmax(-1)[0]
    maps = {name: weights[0].float().numpy() for name, weights in tape.of("weights").items()}
    return Example(
        step=step,
        item={},
        attention=cut(run.experiment, {}, maps),
        picture=picture,
        probabilities=probabilities.numpy(),
    )


def read_picture(
    run: Run, picture: bytes | npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.uint8], list[str]]:
    """Return a drawing or a file's bytes as the run's pictures are, and notes on what was done.

    picture: see ``picture_to_input``. Raises ValueError, in a sentence.
    """
    from tfm_core.data.own_picture import picture_to_input

    config = run.experiment.task
    if not isinstance(config, ImageTaskConfig):
        raise ValueError(_WRONG_TASK)
    return picture_to_input(picture, config.facts)


def _model(run: Run) -> tuple[Model, int]:
    """Return the model in eval mode and the step of its weights; built once for each checkpoint."""
    path = run.folder / _CHECKPOINT
    try:
        changed = path.stat().st_mtime_ns
    except OSError:
        raise ValueError(
            "This run has no checkpoint yet; one is written while it trains and when it ends."
        ) from None
    with _loading:
        return _load(str(run.folder), changed)


@lru_cache(maxsize=4)
def _load(folder: str, changed: int) -> tuple[Model, int]:
    import torch

    from tfm_core.training.checkpoints import load_model

    torch.set_num_threads(1)  # OpenMP's waiting threads would take the processor from the training
    experiment = from_json((Path(folder) / "experiment.json").read_bytes())
    return load_model(experiment, Path(folder) / "checkpoints" / "last")


@lru_cache(maxsize=8)
def _statistics(task: str, seed: int) -> tuple[Tensor, Tensor]:
    """Return mean and deviation (C,) of the pictures that a run of this seed was trained on."""
    from tfm_core.data.image_data import load_images

    data = load_images(ImageTaskConfig.model_validate_json(task), seed=seed)
    return data.mean, data.std
