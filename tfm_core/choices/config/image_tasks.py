"""The tasks of pictures: classification, captions, and a user's own pictures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import model_validator

from tfm_core.choices.config.base import CrossError, OneOf, set_fact, setting
from tfm_core.choices.config.reads import PictureTaskConfig, task_setting
from tfm_core.choices.variants.tasks import LANGUAGES
from tfm_core.sentences import N_, Paragraph, Sentence, words

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


N_DIGITS = range(1, 4)
_CAPTIONS = ImageTaskFacts(
    image_size=49,
    channels=1,
    families=("captioner",),
    answer="sequence",
    **words("choices/tasks/captions"),
)


class CaptionTaskConfig(PictureTaskConfig):
    """Pictures composed of real handwritten digits, and a caption for each."""

    tasks: ClassVar[dict[str, ImageTaskFacts]] = {"captions": _CAPTIONS}
    data_kind = "captions"
    kind: Literal["caption"] = "caption"
    name: Literal["captions"] = task_setting("captions")
    n_digits: int = setting("n_digits", 2, ge=N_DIGITS[0], le=N_DIGITS[-1])
    language: Annotated[str, OneOf(LANGUAGES)] = setting("language", "english")
    sizes: bool = setting("sizes", False)
    rotation: float = setting("rotation", 10.0, ge=0, le=45, step=1, advanced=True)
    scale: float = setting("scale", 0.1, ge=0, le=0.5, step=0.05, advanced=True)
    slant: float = setting("slant", 0.2, ge=0, le=1, step=0.05, advanced=True)
    shift: float = setting("shift", 1.5, ge=0, le=7, step=0.5, advanced=True)
    n_train: int = setting("n_train-captions", 20000, ge=8, le=200_000, step=1000, advanced=True)
    n_validation: int = setting(
        "n_validation-captions", 500, ge=8, le=10_000, step=100, advanced=True
    )
    n_test: int = setting("n_test-captions", 1000, ge=8, le=10_000, step=100, advanced=True)

    @property
    def n_training(self) -> int:
        """Examples of the training split, at most."""
        return self.n_train

    @property
    def facts(self) -> ImageTaskFacts:
        """Label, help and picture shape of this task."""
        return _CAPTIONS


EXAMPLE = "example-shapes"
MAX_CLASSES = 256
MAX_NAME = 40
"""Letters of a class's name."""
_SHAPES = ("circle", "cross", "square", "triangle")
BETWEEN = "|"
"""Separates the classes in a configuration, so that a link can hold them."""
MARKUP = "\\`*_[]$~<>#:&|{}"
"""Characters that no label may hold: it is shown in Markdown."""

_GENERIC = ImageTaskFacts(
    image_size=28,
    channels=1,
    class_names=_SHAPES,
    n_train=204,
    n_test=36,
    **words("choices/tasks/own-pictures"),
)


class OwnPicturesTaskConfig(ImageTaskConfig):
    """Classification of a user's pictures; by default those of the set that comes with the app.

    A run whose set is gone still opens, because its configuration holds what a model must know;
    where pictures are loaded, that is compared with the set.
    """

    tasks: ClassVar[dict[str, ImageTaskFacts]] = {"own-pictures": _GENERIC}
    kind: Literal["own-pictures"] = "own-pictures"  # type: ignore[assignment]
    name: Literal["own-pictures"] = task_setting("own-pictures")
    data: str = set_fact(
        N_("Data"), default=EXAMPLE, pattern=r"^([0-9a-f]{20}|example-[a-z]{3,20})$"
    )
    called: str = set_fact(N_("Name of the set"), default="Four shapes", max_length=60)
    side: int = set_fact(N_("Pixels per side"), default=28, ge=16, le=64)
    is_coloured: bool = set_fact(N_("In colour"), default=False)
    ground: Ground = set_fact(N_("Background"), default="dark")
    classes: str = set_fact(N_("Classes"), default=BETWEEN.join(_SHAPES), max_length=20_000)
    n_learned: int = set_fact(N_("Pictures not in the test"), default=204, ge=2, le=100_000)
    n_tested: int = set_fact(N_("Test pictures"), default=36, ge=1, le=100_000)
    n_validation: int = setting("n_validation-own", 31, ge=8, le=10_000, step=1, advanced=True)

    @property
    def facts(self) -> ImageTaskFacts:
        """Label, help and picture shape of this set."""
        return _facts(self)

    @model_validator(mode="after")
    def _has_classes(self) -> Self:
        names = self.classes.split(BETWEEN)
        valid = {name for name in names if is_class_name(name)}
        if not 2 <= len(valid) == len(names) <= MAX_CLASSES:
            raise CrossError(
                "classes",
                Paragraph(
                    "settings/classes",
                    called=self.called,
                    n=len(names),
                    most=MAX_CLASSES,
                    letters=MAX_NAME,
                ),
            )
        return self


def is_class_name(name: str) -> bool:
    """Return whether a name is valid for a class."""
    return bool(name) and len(name) <= MAX_NAME and name.isprintable() and not set(name) & {*MARKUP}


@lru_cache(maxsize=64)
def _facts(config: OwnPicturesTaskConfig) -> ImageTaskFacts:
    plain = "".join(letter for letter in config.called if letter not in MARKUP).strip()
    name = Sentence(plain) if config.data == EXAMPLE else plain
    return replace(
        _GENERIC,
        label=N_("Pictures, {name}", name=name) if plain else _GENERIC.label,
        image_size=config.side,
        channels=3 if config.is_coloured else 1,
        class_names=tuple(config.classes.split(BETWEEN)),
        n_train=config.n_learned,
        n_test=config.n_tested,
        ground=config.ground,
    )
