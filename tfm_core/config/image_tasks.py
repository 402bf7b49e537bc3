"""The image tasks by name: the shape of the pictures and their classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tfm_core.sentences import N_

ImageTaskName = Literal["mnist-5000", "mnist", "fashion-mnist", "cifar-10"]


@dataclass(frozen=True, slots=True)
class ImageTaskFacts:
    """Label and help of an image task, and the shape of its pictures.

    n_train: pictures that are not for the test; validation is taken from them. unseen: what is new
    in an unseen example.
    """

    label: str
    help: str
    image_size: int
    channels: int
    class_names: tuple[str, ...]
    n_train: int
    n_test: int
    unseen: str = N_("No picture is in two splits.")
    families: tuple[str, ...] = ("vit",)
    answer: Literal["label"] = "label"

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)


_DIGITS = tuple("0123456789")
IMAGE_TASKS: dict[str, ImageTaskFacts] = {
    "mnist-5000": ImageTaskFacts(
        N_("MNIST, 5,000 digits"),
        N_(
            "A real subset that comes with the app: no download. The same 500 digits test every "
            "seed.",
        ),
        28,
        1,
        _DIGITS,
        4500,
        500,
    ),
    "mnist": ImageTaskFacts(
        N_("MNIST"),
        N_("All 70,000 handwritten digits; downloaded once (11 MB)."),
        28,
        1,
        _DIGITS,
        60000,
        10000,
    ),
    "fashion-mnist": ImageTaskFacts(
        N_("Fashion-MNIST"),
        N_("70,000 pieces of clothing; downloaded once (30 MB)."),
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
        N_("60,000 small colour photographs; downloaded once (170 MB)."),
        32,
        3,
        ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
        50000,
        10000,
    ),
}
