"""The task of describing pictures: what is drawn, in which language, and how many to learn from."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from tfm_core.choices.config.base import OneOf, setting
from tfm_core.choices.config.image_tasks import ImageTaskFacts
from tfm_core.choices.config.reads import PictureTaskConfig, task_setting
from tfm_core.choices.variants.languages import LANGUAGES
from tfm_core.sentences import words

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
