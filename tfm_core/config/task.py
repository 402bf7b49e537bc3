"""What a model learns: the facts of each task that can be known before any data is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tfm_core.config.base import Config, CrossError, knob


@dataclass(frozen=True, slots=True)
class TextTaskFacts:
    """Label and help of a text task, the meaning of ``size``, and the longest sequences.

    ``max_src_len`` and ``max_tgt_len`` take the size and return tokens, without special tokens.
    """

    label: str
    help: str
    size_label: str
    size_help: str
    sizes: range
    default_size: int
    max_src_len: Callable[[int], int]
    max_tgt_len: Callable[[int], int]


TEXT_TASKS: dict[str, TextTaskFacts] = {
    "english-korean": TextTaskFacts(
        "English to Korean",
        "A toy grammar into real Korean: verb last, particles that agree.",
        "Clauses",
        "1 is a simple sentence, 2 joins two sentences with “and” (much harder).",
        range(1, 3),
        1,
        lambda n: (16, 33)[n - 1],
        lambda n: (17, 34)[n - 1],
    ),
    "dates": TextTaskFacts(
        "Dates to ISO",
        "Dates as people write them, to 2026-11-21, character by character.",
        "Forms",
        "How many ways of writing a date are mixed.",
        range(1, 7),
        6,
        lambda n: (18, 18, 18, 22, 22, 33)[n - 1],
        lambda n: 10,
    ),
    "numbers": TextTaskFacts(
        "Numbers",
        "Number words to digits: “forty two” to 4 2.",
        "Digits",
        "The longest number.",
        range(1, 7),
        4,
        lambda n: (1, 2, 5, 7, 8, 11)[n - 1],
        lambda n: n,
    ),
    "copy": TextTaskFacts(
        "Copy",
        "Write the sequence again.",
        "Longest",
        "The longest sequence, in tokens.",
        range(2, 513),
        10,
        lambda n: n,
        lambda n: n,
    ),
    "reverse": TextTaskFacts(
        "Reverse",
        "Write the sequence from its end.",
        "Longest",
        "The longest sequence, in tokens.",
        range(2, 513),
        10,
        lambda n: n,
        lambda n: n,
    ),
    "sort": TextTaskFacts(
        "Sort",
        "Write the digits in ascending order.",
        "Longest",
        "The longest sequence, in tokens.",
        range(2, 513),
        10,
        lambda n: n,
        lambda n: n,
    ),
    "addition": TextTaskFacts(
        "Addition",
        "Add two numbers, digit by digit.",
        "Digits",
        "Digits of each number.",
        range(1, 6),
        2,
        lambda n: 2 * n + 1,
        lambda n: n + 1,
    ),
}


@dataclass(frozen=True, slots=True)
class ImageTaskFacts:
    """Label and help of an image task and the shape of its pictures."""

    label: str
    help: str
    image_size: int
    channels: int
    class_names: tuple[str, ...]
    n_train: int
    n_test: int

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)


_DIGITS = tuple("0123456789")
IMAGE_TASKS: dict[str, ImageTaskFacts] = {
    "mnist-5000": ImageTaskFacts(
        "MNIST, 5,000 digits",
        "A real subset that comes with the app: no download.",
        28,
        1,
        _DIGITS,
        4000,
        500,
    ),
    "mnist": ImageTaskFacts(
        "MNIST",
        "All 70,000 handwritten digits; downloaded once (11 MB).",
        28,
        1,
        _DIGITS,
        60000,
        10000,
    ),
    "fashion-mnist": ImageTaskFacts(
        "Fashion-MNIST",
        "70,000 pieces of clothing; downloaded once (30 MB).",
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
        "CIFAR-10",
        "60,000 small colour photographs; downloaded once (170 MB).",
        32,
        3,
        ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
        50000,
        10000,
    ),
}

TextTaskName = Literal["english-korean", "dates", "numbers", "copy", "reverse", "sort", "addition"]
ImageTaskName = Literal["mnist-5000", "mnist", "fashion-mnist", "cifar-10"]


class TextTaskConfig(Config):
    """Sequence to sequence on generated pairs."""

    kind: Literal["text"] = "text"
    name: TextTaskName = knob("english-korean", "Task", "What the model learns.")
    size: int = knob(1, "Size", "How hard the task is; what it counts depends on the task.", ge=1)
    n_train: int = knob(
        20000,
        "Training pairs",
        "Different pairs to learn from.",
        ge=8,
        le=500_000,
        step=1000,
        advanced=True,
    )
    n_validation: int = knob(
        500,
        "Validation pairs",
        "Unseen pairs measured during training.",
        ge=8,
        le=50_000,
        step=100,
        advanced=True,
    )
    n_test: int = knob(
        1000,
        "Test pairs",
        "Unseen pairs measured once at the end.",
        ge=8,
        le=50_000,
        step=100,
        advanced=True,
    )

    @property
    def facts(self) -> TextTaskFacts:
        """Label, help and lengths of this task."""
        return TEXT_TASKS[self.name]

    @property
    def max_src_len(self) -> int:
        """Longest source in tokens, without special tokens."""
        return self.facts.max_src_len(self.size)

    @property
    def max_tgt_len(self) -> int:
        """Longest target in tokens, without special tokens."""
        return self.facts.max_tgt_len(self.size)

    @model_validator(mode="after")
    def _size_in_range(self) -> Self:
        sizes = self.facts.sizes
        if self.size not in sizes:
            raise CrossError(
                "size",
                f"size is {self.size}, but for {self.facts.label} it must be "
                f"from {sizes[0]} to {sizes[-1]}.",
            )
        return self


class ImageTaskConfig(Config):
    """Image classification."""

    kind: Literal["image"] = "image"
    name: ImageTaskName = knob("mnist-5000", "Task", "What the model learns.")
    shift: float = knob(
        1.0,
        "Shift",
        "Training pictures move by up to this many pixels.",
        ge=0,
        le=8,
        step=0.5,
        advanced=True,
    )
    rotation: float = knob(
        0.0,
        "Rotation",
        "Training pictures turn by up to this many degrees.",
        ge=0,
        le=45,
        step=1,
        advanced=True,
    )
    scale: float = knob(
        0.0,
        "Scale",
        "Training pictures grow or shrink by up to this share.",
        ge=0,
        le=0.5,
        step=0.05,
        advanced=True,
    )
    n_validation: int = knob(
        500,
        "Validation pictures",
        "Held out of the training set and measured during training.",
        ge=8,
        le=10_000,
        step=100,
        advanced=True,
    )

    @property
    def facts(self) -> ImageTaskFacts:
        """Label, help and picture shape of this task."""
        return IMAGE_TASKS[self.name]


TaskConfig = Annotated[TextTaskConfig | ImageTaskConfig, Field(discriminator="kind")]
