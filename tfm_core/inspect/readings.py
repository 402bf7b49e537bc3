"""From which step on a run read a picture: its answers with the weights of that time.

torch is imported where it is needed, so that a page that imports this stays quick to appear.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tfm_core import byte_cache
from tfm_core.config import ImageTaskConfig
from tfm_core.inspect.attention.trained import inputs_of
from tfm_core.runs.run import Run
from tfm_core.runs.weights import weights_path
from tfm_core.sentences import N_, StudentError

if TYPE_CHECKING:
    from tfm_core.models.build import Model

Readings = tuple[tuple[int, ...], npt.NDArray[np.float32]]


def readings(run: Run, picture: npt.NDArray[np.uint8]) -> Readings:
    """Return the steps whose weights were kept, ascending, and (steps, classes): their answers.

    picture: uint8 (C, height, width), as the run's pictures are. Sets of weights that are damaged
    are left out. Raises ValueError, in a sentence, where the run learned no pictures, kept no
    weights that can be read, or the picture has another shape.
    """
    import torch

    run.experiment.task_as(ImageTaskConfig, N_("This run learned sentences; it reads no pictures."))
    (images,) = inputs_of(run, {}, picture)
    models = kept_models(run)
    if not models:
        raise StudentError("This run kept no weights of the time in which it learned.")
    with torch.inference_mode():
        logits = torch.cat([model(images) for _step, model in models])
    answers: npt.NDArray[np.float32] = logits.float().softmax(-1).numpy()
    return tuple(step for step, _model in models), answers


def read_from(found: Readings, answer: int) -> int | None:
    """Return the step from which on a run read a picture as ``answer``, None where it doesn't."""
    steps, answers = found
    since = None
    for step, is_right in zip(steps, answers.argmax(-1) == answer, strict=True):
        since = (step if since is None else since) if is_right else None
    return since


def model_at(run: Run, step: int) -> Model:
    """Return the model with the weights of a step that were kept; built once.

    Raises ValueError, in a sentence, where there are none or they are damaged.
    """
    try:
        changed = weights_path(run.folder, step).stat().st_mtime_ns
    except OSError:
        raise StudentError("No weights of step {step:,} were kept.", step=step) from None
    return _model(str(run.folder), step, changed)


def kept_models(run: Run) -> list[tuple[int, Model]]:
    """Return the models of the kept steps, ascending, each built once; none of damaged weights."""
    found = []
    for step in run.weight_steps():
        try:
            found.append((step, model_at(run, step)))
        except ValueError:  # gone meanwhile, or damaged
            continue
    return found


@byte_cache.kept
def _model(folder: str, step: int, _changed: int) -> Model:
    import torch

    from tfm_core.training.setup import new_model

    torch.set_num_threads(1)  # OpenMP's waiting threads would take the processor from the training
    run = Run(Path(folder))
    weights = {name: torch.from_numpy(value) for name, value in run.weights(step).items()}
    model = new_model(run.experiment).eval()
    try:
        model.load_state_dict(weights)
    except RuntimeError:
        raise StudentError(
            "The weights of step {step:,} belong to a model of another shape.", step=step
        ) from None
    return model.requires_grad_(False)
