"""Saving weights and loading them into a fresh model, done: the answers must be the same.

torch is imported where it is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfm_core.inspect.attention.trained import data_of
from tfm_core.inspect.practice.evaluation import counting_model
from tfm_core.runs.run import Run

if TYPE_CHECKING:
    from torch import Tensor

N_PICTURES = 16
_WRONG_PREFIX = "module."  # what wrapping a model for several GPUs puts before each name


@dataclass(frozen=True, slots=True, eq=False)
class RoundTrip:
    """Logits of N pictures, (N, classes) each: by the trained model, and by fresh ones.

    fresh: untrained, from another seed; loaded: after loading the file. misnamed: after a loading
    that ignores names it does not know, when every name is wrong.
    content: the file; n_tensors: tensors in it; n_ignored: how many the misnamed loading ignored.
    """

    step: int
    content: bytes
    n_tensors: int
    trained: npt.NDArray[np.float32]
    fresh: npt.NDArray[np.float32]
    loaded: npt.NDArray[np.float32]
    misnamed: npt.NDArray[np.float32]
    n_ignored: int

    def difference(self, other: str) -> float:
        """Return the largest difference of the logits of ``other`` from the trained model's."""
        return float(np.abs(getattr(self, other) - self.trained).max())


def save_weights(weights: dict[str, Tensor]) -> bytes:
    """Return weights as a safetensors file: names, shapes and numbers, and no code to run."""
    from safetensors.torch import save

    # clones: tied weights share memory, which the format does not allow
    return save({name: value.clone().contiguous() for name, value in weights.items()})


def load_weights(model: Any, content: bytes) -> None:
    """Fill a model of the same configuration with a file's weights; every name must fit.

    Raises RuntimeError, with the names, where one is missing, unknown or of another shape.
    """
    from safetensors.torch import load

    model.load_state_dict(load(content), strict=True)
    model.eval()  # dropout off: a model in training mode answers at random


def round_trip(run: Run) -> RoundTrip:
    """Save the weights of a run, build two fresh models, load, and compare the answers.

    Raises ValueError, in a sentence, where the run has no weights or no pictures.
    """
    import torch

    from tfm_core.training.setup import new_model

    model, step = counting_model(run)
    weights = model.state_dict()
    content = save_weights(weights)
    data: Any = data_of(run.experiment)
    pictures = data.normalise(data.validation.images[:N_PICTURES])
    other = run.experiment.replace(seed=run.experiment.seed + 1)
    loaded, careless = new_model(other).eval(), new_model(other).eval()
    with torch.inference_mode():
        fresh = loaded(pictures).numpy()
        load_weights(loaded, content)
        wrong_names = {f"{_WRONG_PREFIX}{name}": value for name, value in weights.items()}
        ignored = careless.load_state_dict(wrong_names, strict=False).unexpected_keys
        return RoundTrip(
            step,
            content,
            len(weights),
            model(pictures).numpy(),
            fresh,
            loaded(pictures).numpy(),
            careless(pictures).numpy(),
            len(ignored),
        )
