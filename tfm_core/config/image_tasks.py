"""The image tasks by name: the shape of the pictures and their classes, and their settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from pydantic import model_validator

from tfm_core.config.base import CrossError, setting
from tfm_core.config.reads import PictureTaskConfig, count_setting, task_setting
from tfm_core.sentences import N_, Paragraph

Ground = Literal["dark", "bright", "any"]
"""What pictures show is light on dark, dark on bright, or neither, as in photographs."""

ImageTaskName = Literal["mnist-5000", "mnist", "fashion-mnist", "cifar-10"]


@dataclass(frozen=True, slots=True)
class ImageTaskFacts:
    """Label and help of an image task, and the shape of its pictures.

    n_train: pictures that are not for the test; validation is taken from them. unseen: what is new
    in an unseen example. ground: what a grey picture of a reader's own is made to have too.
    """

    label: str
    help: str
    image_size: int
    channels: int
    class_names: tuple[str, ...]
    n_train: int
    n_test: int
    unseen: str = N_("Splits share no picture.")
    families: tuple[str, ...] = ("vit",)
    answer: Literal["label"] = "label"
    ground: Ground = "dark"

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)


_DIGITS = tuple("0123456789")
IMAGE_TASKS: dict[str, ImageTaskFacts] = {
    "mnist-5000": ImageTaskFacts(
        N_("MNIST, 5,000 digits"),
        N_("Comes with the app; the 500 test digits never change."),
        28,
        1,
        _DIGITS,
        4500,
        500,
    ),
    "mnist": ImageTaskFacts(
        N_("MNIST"),
        N_("70,000 handwritten digits; downloads 11 MB."),
        28,
        1,
        _DIGITS,
        60000,
        10000,
    ),
    "fashion-mnist": ImageTaskFacts(
        N_("Fashion-MNIST"),
        N_("70,000 pieces of clothing; downloads 30 MB."),
        28,
        1,
        (
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
        60000,
        10000,
    ),
    "cifar-10": ImageTaskFacts(
        N_("CIFAR-10"),
        N_("60,000 small colour photographs; downloads 170 MB."),
        32,
        3,
        ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
        50000,
        10000,
    ),
}


class ImageTaskConfig(PictureTaskConfig):
    """Image classification."""

    tasks: ClassVar[dict[str, ImageTaskFacts]] = IMAGE_TASKS
    data_kind = "pictures"
    kind: Literal["image"] = "image"
    name: ImageTaskName = task_setting("mnist-5000")
    shift: float = setting(
        1.0,
        N_("Shift"),
        N_("Largest random shift, in pixels."),
        ge=0,
        le=8,
        step=0.5,
        advanced=True,
    )
    rotation: float = setting(
        0.0,
        N_("Rotation"),
        N_("Largest random rotation, in degrees."),
        ge=0,
        le=45,
        step=1,
        advanced=True,
    )
    scale: float = setting(
        0.0,
        N_("Scale"),
        N_("Largest random change of size, as a share."),
        ge=0,
        le=0.5,
        step=0.05,
        advanced=True,
    )
    label_noise: float = setting(
        0.0,
        N_("Label noise"),
        N_("Share of training pictures that get a wrong label, at random."),
        ge=0,
        le=0.9,
        step=0.05,
        advanced=True,
    )
    n_validation: int = count_setting(
        500,
        N_("Validation pictures"),
        N_("From the training set; measured during training."),
        most=10_000,
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
