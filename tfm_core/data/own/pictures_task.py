"""The task of a set of pictures: its settings and its tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfm_core.choices.config.own_pictures import BETWEEN, OwnPicturesTaskConfig
from tfm_core.data.own import sets
from tfm_core.data.own.pictures_set import VALIDATION, is_sound, tensors_of
from tfm_core.data.own.sets import SPLITS, OwnSet
from tfm_core.sentences import StudentError

if TYPE_CHECKING:
    from tfm_core.data.image_data import ImageData

_SIDE = 7  # patches in a row that are few enough to be quick, and enough to say where something is


def task_of(own: OwnSet) -> OwnPicturesTaskConfig:
    """Return the settings that learn a set. Raises ValueError."""
    details, counts = own.details, own.counts
    if not is_sound(details) or not all(part in counts for part in SPLITS):
        raise sets.damaged(own.name)
    n_learned, n_held_out = counts["train"] + counts["validation"], counts["validation"]
    return OwnPicturesTaskConfig.parse(
        {
            "data": own.id,
            "called": str(own.name),
            "side": details["size"],
            "is_coloured": details["channels"] == 3,
            "ground": details["ground"],
            "classes": BETWEEN.join(details["classes"]),
            "n_learned": n_learned,
            "n_tested": counts["test"],
            "n_validation": n_held_out or min(500, max(8, round(0.15 * n_learned))),
        }
    )


def patch(side: int) -> int:
    """Return the size of patch that leaves about seven of them in a row."""
    fitting = [size for size in range(2, side) if side % size == 0]
    return min(fitting, key=lambda size: (abs(side // size - _SIDE), -size))


def load_own_pictures(config: OwnPicturesTaskConfig, *, seed: int) -> ImageData:
    """Return the pictures of a set on the CPU; the same seed makes the same splits.

    The test is the set's own, the same for every seed; so is the validation where the set names
    one, else the seed draws it. Raises SetMissing and SetDamaged.
    """
    import torch

    from tfm_core.data.image_data import ImageSplit, divided

    own = sets.find(config.data)
    _check_is_of(config, own)
    images, labels, parts = (torch.from_numpy(values.copy()) for values in tensors_of(own))
    train, validation, test = (
        ImageSplit(images[parts == number], labels[parts == number])
        for number in range(len(SPLITS))
    )
    held_out = validation if (parts == VALIDATION).any() else None
    return divided(config, train, test, seed=seed, validation=held_out)


def _check_is_of(config: OwnPicturesTaskConfig, own: OwnSet) -> None:
    """Raise StudentError where a configuration does not match its set."""
    expected = task_of(own)
    for name in ("side", "is_coloured", "ground", "classes", "n_learned", "n_tested"):
        if getattr(expected, name) != getattr(config, name):
            raise StudentError(
                "The set {data} has {name} {there}, not {here}. Choose it again.",
                data=config.data,
                name=name,
                there=str(getattr(expected, name))[:60],
                here=str(getattr(config, name))[:60],
            )
