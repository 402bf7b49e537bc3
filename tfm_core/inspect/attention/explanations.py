"""Explanations of one picture side by side, and the deletion curve that tells them apart.

Attention is not explanation: a model may look at what it then ignores, and different maps can give
the same answer (Jain & Wallace 2019; but see Wiegreffe & Pinter 2019). So each is held against what
the model does when the patches it names are gone. torch is imported where needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfm_core.config import Choice, ImageTaskConfig, ViTConfig
from tfm_core.inspect.attention.budget import in_all
from tfm_core.inspect.attention.deletion import MAX_STAGES, RANDOM_ORDERS, Deletion, deletion
from tfm_core.inspect.attention.rollout import rollout, to_patches
from tfm_core.inspect.attention.trained import data_of, inputs_of, model_of
from tfm_core.probe.labels import modules_by_kind
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Paragraph, StudentError

if TYPE_CHECKING:
    from tfm_core.data.image_data import ImageData

Floats = npt.NDArray[np.floating[Any]]

EXPLANATIONS: dict[str, Choice] = {
    "attention": Choice(
        N_("Attention of the last layer"),
        N_("Where the last layer looks, averaged over heads, ignoring earlier layers."),
    ),
    "rollout": Choice(
        N_("Attention rollout"),
        Paragraph("attention/rollout-help"),
    ),
    "relevance": Choice(
        N_("Gradient-weighted relevance"),
        Paragraph("attention/relevance-help"),
    ),
}
_MIN_STAGES = 24  # points of a deletion curve, where every pass is long
_BATCH = 256  # pictures at once: small patches make thousands of them
_TEXT = N_("This run reads text; only pictures are explained by patches.")
FILLS: dict[str, Choice] = {
    "mean": Choice(
        N_("Mean colour"), N_("A removed patch becomes the mean of the training pixels.")
    ),
    "black": Choice(N_("Black"), N_("A removed patch becomes black: on digits, blank paper.")),
}


@dataclass(frozen=True, slots=True, eq=False)
class Explained:
    """What several explanations say about one picture, at the step of the last checkpoint.

    maps: name in EXPLANATIONS -> (side, side), not negative. target: the class that is explained.
    probabilities: (classes,). deletion: the curves for ``target``.
    """

    step: int
    target: int
    probabilities: Floats
    maps: Mapping[str, Floats]
    deletion: Deletion


def explained(
    run: Run, picture: npt.NDArray[np.uint8], target: int | None = None, *, fill: str = "mean"
) -> Explained:
    """Explain what the last checkpoint of a run says about a picture.

    picture: uint8 (C, height, width). target: the class to explain, None for the predicted one.
    fill: a name in FILLS. Raises ValueError, in a sentence, where there is no checkpoint, for a
    picture of another shape and for a class or a fill that does not exist.
    """
    import torch

    from tfm_core.inspect.attention.relevance import relevance
    from tfm_core.probe.capture import capture

    if fill not in FILLS:
        raise StudentError(
            "A removed patch can be {fills}, not {fill!r}.",
            fills=" or ".join(FILLS),
            fill=fill,
        )
    run.experiment.task_as(ImageTaskConfig, _TEXT)
    (images,) = inputs_of(run, {}, picture)
    model, step = model_of(run)
    with capture(model, only={"weights"}) as cache:
        probabilities = model(images).softmax(-1)[0].numpy()
    target = int(probabilities.argmax()) if target is None else target
    if not 0 <= target < len(probabilities):
        raise StudentError(
            "There is no class {target}: classes are 0 to {last}.",
            target=target,
            last=len(probabilities) - 1,
        )
    modules = modules_by_kind(run.experiment)["patches"]
    has_residual = run.experiment.model_as(ViTConfig).has_residuals
    attention = [cache[f"{name}.weights"][0].numpy() for name in modules]
    cache.clear()
    tokens = {
        "attention": attention[-1].mean(0),
        "rollout": rollout(attention, has_residual=has_residual),
        "relevance": relevance(model, images, target, has_residual=has_residual).numpy(),
    }
    is_cls = run.experiment.has_cls
    maps = {name: to_patches(values, has_cls=is_cls) for name, values in tokens.items()}

    def predict(pictures: Floats) -> Floats:
        with torch.inference_mode():
            parts = torch.split(torch.from_numpy(pictures), _BATCH)
            shares = torch.cat([model(part).softmax(-1)[:, target] for part in parts])
        result: Floats = shares.numpy()
        return result

    n_orders = len(maps) + RANDOM_ORDERS
    passes = in_all(run.experiment, n_orders * MAX_STAGES, n_orders * _MIN_STAGES)
    curves = deletion(
        predict,
        images[0].numpy(),
        maps,
        fill=_fill(run, fill),
        most_stages=passes // n_orders,
    )
    return Explained(step, target, probabilities, maps, curves)


def _fill(run: Run, name: str) -> Floats:
    """Return the colour (C,) of a removed patch, in normalised pixels."""
    data = _images(run)
    black: Floats = (-data.mean / data.std).numpy()
    return np.zeros_like(black) if name == "mean" else black


def _images(run: Run) -> ImageData:
    from tfm_core.data.image_data import ImageData
    from tfm_core.data.load import data_as

    return data_as(data_of(run.experiment), ImageData)
