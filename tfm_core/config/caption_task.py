"""The task of describing pictures: what is drawn, in which language, and how many to learn from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from tfm_core.config.base import OneOf, setting
from tfm_core.config.reads import PictureTaskConfig, count_setting, task_setting
from tfm_core.sentences import N_
from tfm_core.variants.languages import LANGUAGES

CaptionTaskName = Literal["captions"]
N_DIGITS = range(1, 4)


@dataclass(frozen=True, slots=True)
class CaptionTaskFacts:
    """Label and help of a caption task and the shape of its pictures.

    unseen: what is new in an unseen example.
    """

    label: str
    help: str
    image_size: int
    channels: int
    unseen: str
    families: tuple[str, ...] = ("captioner",)
    answer: Literal["sequence"] = "sequence"


CAPTION_TASKS: dict[str, CaptionTaskFacts] = {
    "captions": CaptionTaskFacts(
        N_("Captions of digits"),
        N_("Describe handwritten digits in a picture, and where they are."),
        49,
        1,
        N_("Splits share captions, but no handwritten digit."),
    ),
}


class CaptionTaskConfig(PictureTaskConfig):
    """Pictures composed of real handwritten digits, and a caption for each."""

    tasks: ClassVar[dict[str, CaptionTaskFacts]] = CAPTION_TASKS
    data_kind = "captions"
    kind: Literal["caption"] = "caption"
    name: CaptionTaskName = task_setting("captions")
    n_digits: int = setting(
        2,
        N_("Digits in a picture"),
        N_("Two or three: captions also give places; three are much harder."),
        ge=N_DIGITS[0],
        le=N_DIGITS[-1],
    )
    language: Annotated[str, OneOf(LANGUAGES)] = setting(
        "english", N_("Language"), N_("The language of the captions.")
    )
    sizes: bool = setting(
        False, N_("Large and small"), N_("Two sizes of digits, named in captions.")
    )
    rotation: float = setting(
        10.0,
        N_("Rotation"),
        N_("Largest random rotation of a digit, in degrees."),
        ge=0,
        le=45,
        step=1,
        advanced=True,
    )
    scale: float = setting(
        0.1,
        N_("Scale"),
        N_("Largest random change of a digit's size, as a share."),
        ge=0,
        le=0.5,
        step=0.05,
        advanced=True,
    )
    slant: float = setting(
        0.2,
        N_("Slant"),
        N_("Largest random slant of a digit, as a share of its height."),
        ge=0,
        le=1,
        step=0.05,
        advanced=True,
    )
    shift: float = setting(
        1.5,
        N_("Shift"),
        N_("Largest random shift of a digit, in pixels."),
        ge=0,
        le=7,
        step=0.5,
        advanced=True,
    )
    n_train: int = count_setting(
        20000,
        N_("Training pictures"),
        N_("Different training pictures, from 4,000 digits."),
        most=200_000,
        step=1000,
    )
    n_validation: int = count_setting(
        500,
        N_("Validation pictures"),
        N_("From 500 other digits; measured during training."),
        most=10_000,
    )
    n_test: int = count_setting(
        1000,
        N_("Test pictures"),
        N_("From 500 other digits; measured once at the end."),
        most=10_000,
    )

    @property
    def n_training(self) -> int:
        """Examples of the training split, at most."""
        return self.n_train

    @property
    def facts(self) -> CaptionTaskFacts:
        """Label, help and picture shape of this task."""
        return CAPTION_TASKS[self.name]
