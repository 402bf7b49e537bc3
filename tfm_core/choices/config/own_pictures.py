"""A user's pictures: the id of the set, and what a model must know of it.

A run whose set is gone still opens, because its configuration holds what a model must know; where
pictures are loaded, that is compared with the set. The default is the set that comes with the app.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import ClassVar, Literal, Self

from pydantic import model_validator

from tfm_core.choices.config.base import CrossError, set_fact, setting
from tfm_core.choices.config.image_tasks import Ground, ImageTaskConfig, ImageTaskFacts
from tfm_core.choices.config.reads import task_setting
from tfm_core.sentences import N_, Paragraph, Sentence, words

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
    """Classification of a user's pictures."""

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
