"""The image tasks by name: the shape of the pictures and their classes, and their settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import model_validator

from tfm_core.choices.config.base import CrossError, OneOf, setting
from tfm_core.choices.config.reads import PictureTaskConfig, task_setting
from tfm_core.sentences import N_, Paragraph, words

Ground = Literal["dark", "bright", "any"]
"""What pictures show is light on dark, dark on bright, or neither, as in photographs."""


@dataclass(frozen=True, slots=True)
class ImageTaskFacts:
    """Label and help of a task of pictures, and their shape.

    class_names: none where pictures are described. n_train: pictures that are not for the test;
    validation is taken from them. unseen: what is new in an unseen example. ground: what a grey
    picture of a reader's own is made to have too.
    """

    label: str
    help: str
    image_size: int
    channels: int
    class_names: tuple[str, ...] = ()
    n_train: int = 0
    n_test: int = 0
    unseen: str = N_("No picture is in two splits.")
    families: tuple[str, ...] = ("vit",)
    answer: Literal["label", "sequence"] = "label"
    ground: Ground = "dark"

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)


_DIGITS = tuple("0123456789")
_FACTS: dict[str, dict[str, Any]] = {
    "mnist-5000": {
        "image_size": 28,
        "channels": 1,
        "class_names": _DIGITS,
        "n_train": 4500,
        "n_test": 500,
    },
    "mnist": {
        "image_size": 28,
        "channels": 1,
        "class_names": _DIGITS,
        "n_train": 60000,
        "n_test": 10000,
    },
    "fashion-mnist": {
        "image_size": 28,
        "channels": 1,
        "class_names": (
            "T-shirt/top",
            "Trouser",
            "Pullover",
            "Dress",
            "Coat",
            "Sandal",
            "Shirt",
            "Sneaker",
            "Bag",
            "Ankle boot",
        ),
        "n_train": 60000,
        "n_test": 10000,
    },
    "cifar-10": {
        "image_size": 32,
        "channels": 3,
        "class_names": (
            "airplane",
            "automobile",
            "bird",
            "cat",
            "deer",
            "dog",
            "frog",
            "horse",
            "ship",
            "truck",
        ),
        "n_train": 50000,
        "n_test": 10000,
    },
}
IMAGE_TASKS = {
    name: ImageTaskFacts(**words(f"choices/tasks/{name}"), **facts)
    for name, facts in _FACTS.items()
}


class ImageTaskConfig(PictureTaskConfig):
    """Image classification."""

    tasks: ClassVar[dict[str, ImageTaskFacts]] = IMAGE_TASKS
    data_kind = "pictures"
    kind: Literal["image"] = "image"
    name: Annotated[str, OneOf(IMAGE_TASKS)] = task_setting("mnist-5000")
    shift: float = setting("shift", 1.0, ge=0, le=8, step=0.5, advanced=True)
    rotation: float = setting("rotation", 0.0, ge=0, le=45, step=1, advanced=True)
    scale: float = setting("scale", 0.0, ge=0, le=0.5, step=0.05, advanced=True)
    label_noise: float = setting("label_noise", 0.0, ge=0, le=0.9, step=0.05, advanced=True)
    n_validation: int = setting(
        "n_validation-pictures", 500, ge=8, le=10_000, step=100, advanced=True
    )

    @property
    def facts(self) -> ImageTaskFacts:
        """Label, help and picture shape of this task."""
        return IMAGE_TASKS[self.name]

    @property
    def class_names(self) -> tuple[str, ...]:
        """The classes of pictures by name."""
        return self.facts.class_names

    @property
    def n_training(self) -> int:
        """Pictures of the training split."""
        return self.facts.n_train - self.n_validation

    @model_validator(mode="after")
    def _leaves_pictures(self) -> Self:
        if self.n_validation >= self.facts.n_train:
            raise CrossError(
                "n_validation",
                Paragraph(
                    "settings/no-training-pictures",
                    n_validation=self.n_validation,
                    n_train=self.facts.n_train,
                ),
            )
        return self
