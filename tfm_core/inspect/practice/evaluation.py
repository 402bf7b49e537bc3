"""The weights of a run on one split of its pictures, and saved and loaded again.

They are those that ``TrainingConfig.tested`` names: with patience the best by validation, else the
last, averaged if training averages. torch is imported late.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfm_core.inspect.attention.trained import data_of
from tfm_core.inspect.compare.conclusions import shares_right, wilson
from tfm_core.reading import is_plain
from tfm_core.runs.run import Run
from tfm_core.sentences import StudentError

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from tfm_core.models.build import Model


_BATCH = 250


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """Answers on N pictures. labels and predicted: int (N,); probabilities: float32 (N, classes).

    images: uint8 (N, C, height, width). loss: mean cross-entropy in nats.
    """

    step: int
    split: str
    labels: npt.NDArray[np.int64]
    probabilities: npt.NDArray[np.float32]
    images: npt.NDArray[np.uint8]
    loss: float
    class_names: tuple[str, ...]

    @property
    def predicted(self) -> npt.NDArray[np.int64]:
        """The likeliest class of each picture, (N,)."""
        return np.asarray(self.probabilities.argmax(1), np.int64)

    @property
    def n_right(self) -> int:
        """Number of pictures classified correctly."""
        return int((self.predicted == self.labels).sum())

    @property
    def accuracy(self) -> float:
        """Share of pictures classified correctly."""
        return self.n_right / len(self.labels)

    @property
    def interval(self) -> tuple[float, float]:
        """Return the 95% confidence interval of the accuracy."""
        return wilson(self.n_right, len(self.labels))

    def confusion(self) -> npt.NDArray[np.int64]:
        """Return counts (classes, classes): the true class down, the predicted one across."""
        n = len(self.class_names)
        return np.bincount(self.labels * n + self.predicted, minlength=n * n).reshape(n, n)

    def by_class(self) -> pd.DataFrame:
        """Return the accuracy of each class, as ``shares_right``."""
        counts = self.confusion()
        right, n = counts.diagonal().tolist(), counts.sum(1).tolist()
        return shares_right(zip(self.class_names, right, n, strict=True))

    def wrong(self, most: int) -> npt.NDArray[np.intp]:
        """Return the misclassified pictures, the surest first."""
        indices = np.flatnonzero(self.predicted != self.labels)
        sure = self.probabilities[indices].max(1)
        return indices[np.argsort(-sure, kind="stable")][:most]


def has_weights(run: Run) -> bool:
    """Return whether the run has kept the weights that count."""
    return is_plain(_file(run))


def weights_mark(run: Run) -> int:
    """Return a cache key that changes with the weights. Raises StudentError without any."""
    try:
        return _file(run).stat().st_mtime_ns
    except OSError:
        raise StudentError("This run has saved no weights yet.") from None


def counting_model(run: Run) -> tuple[Model, int]:
    """Return the model with the weights that count, and their step. Raises ValueError."""
    import torch

    from tfm_core.training.checkpoints import load_model

    weights_mark(run)
    torch.set_num_threads(1)
    return load_model(run.experiment, _file(run).parent)


def _file(run: Run) -> Path:
    name = "best" if run.experiment.trained.keeps_best else "last"
    return run.folder / "checkpoints" / name / "checkpoint.safetensors"


def evaluate(run: Run, split: str) -> Evaluation:
    """Answer every picture of ``split``, "validation" or "test". Raises ValueError."""
    import torch
    import torch.nn.functional as F

    from tfm_core.data.image_data import ImageData, ImageSplit
    from tfm_core.data.moving import data_as

    model, step = counting_model(run)
    data = data_as(data_of(run.experiment), ImageData)
    part: ImageSplit = getattr(data, split)
    with torch.inference_mode():
        logits = torch.cat(
            [
                model(data.normalise(part.images[first : first + _BATCH])).float()
                for first in range(0, len(part), _BATCH)
            ]
        )
    return Evaluation(
        step,
        split,
        part.labels.numpy(),
        logits.softmax(-1).numpy(),
        part.images.numpy(),
        float(F.cross_entropy(logits, part.labels)),
        data.facts.class_names,
    )


N_PICTURES = 16
_WRONG_PREFIX = "module."  # what wrapping a model for several GPUs puts before each name


@dataclass(frozen=True, slots=True, eq=False)
class RoundTrip:
    """Logits of N pictures, (N, classes) each, of the trained model and of fresh ones.

    fresh: untrained, from another seed; loaded: from the file; misnamed: loaded with strict=False
    and wrong names, n_ignored tensors ignored. content: the file, with n_tensors.
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
    """Load a file's weights; every name must fit. Raises RuntimeError with the names if not."""
    from safetensors.torch import load

    model.load_state_dict(load(content), strict=True)
    model.eval()  # dropout off: a model in training mode answers at random


def round_trip(run: Run) -> RoundTrip:
    """Save the weights of a run, load them into a fresh model, and compare. Raises ValueError."""
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
