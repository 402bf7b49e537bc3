"""Pictures of one's own: the set by its id, and what a model must know of it.

What a model must know stands beside the id, so that a run whose set is gone still opens, and is
compared with the set where pictures are loaded. Without a word it is the set that comes along.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tfm_core.config.base import CrossError, knob
from tfm_core.config.image_tasks import ImageTaskConfig, ImageTaskFacts
from tfm_core.sentences import N_

EXAMPLE = "example-shapes"
MOST_CLASSES = 256
MOST_NAME = 40
"""Letters of a class's name."""
_SHAPES = ("circle", "cross", "square", "triangle")
MARKUP = "\\`*_[]$~<>#:&|{}"
"""What no label may hold: it stands in Markdown, and a folder may be called anything."""

_GENERIC = ImageTaskFacts(
    N_("Pictures of your own"),
    N_("Pictures that you added on the page “Own data”; four shapes come with the app."),
    28,
    1,
    _SHAPES,
    204,
    36,
    N_("No picture file is in two splits; the page “Own data” says of doubles."),
)


class OwnPicturesTaskConfig(ImageTaskConfig):
    """Classification of one's own pictures."""

    tasks: ClassVar[dict[str, ImageTaskFacts]] = {"own-pictures": _GENERIC}
    kind: Literal["own-pictures"] = "own-pictures"  # type: ignore[assignment]
    name: Literal["own-pictures"] = knob(  # type: ignore[assignment]
        "own-pictures", N_("Task"), N_("What the model learns.")
    )
    data: str = Field(EXAMPLE, title=N_("Set"), description=N_("The set, by its id."), max_length=64)
    called: str = Field("Four shapes", title=N_("Name"), max_length=60)
    side: int = Field(28, title=N_("Pixels to a side"), ge=16, le=64)
    is_coloured: bool = Field(False, title=N_("In colour"))
    classes: tuple[str, ...] = Field(_SHAPES, title=N_("Classes"))
    n_learned: int = Field(204, title=N_("Pictures outside of the test"), ge=2, le=100_000)
    n_tested: int = Field(36, title=N_("Pictures of the test"), ge=1, le=100_000)
    n_validation: int = knob(
        31,
        N_("Validation pictures"),
        N_(
            "Held out of the training set and measured during training; a set that has a "
            "validation of its own uses that."
        ),
        ge=8,
        le=10_000,
        step=1,
        advanced=True,
    )

    @property
    def facts(self) -> ImageTaskFacts:
        """Label, help and picture shape of this set."""
        return _facts(
            self.called, self.side, self.is_coloured, self.classes, self.n_learned, self.n_tested
        )

    @model_validator(mode="after")
    def _has_classes(self) -> Self:
        known = [name for name in self.classes if is_class_name(name)]
        if not 2 <= len(known) <= MOST_CLASSES or len(set(known)) < len(self.classes):
            raise CrossError(
                "classes",
                "The set “{called}” has {n} classes, but must have from 2 to {most}, each with "
                "another name of at most {letters} letters.",
                called=self.called,
                n=len(self.classes),
                most=MOST_CLASSES,
                letters=MOST_NAME,
            )
        return self


def is_class_name(name: str) -> bool:
    """Say whether a class may be called that, wherever it is shown."""
    return bool(name) and len(name) <= MOST_NAME and name.isprintable() and not set(name) & {*MARKUP}


@lru_cache(maxsize=64)
def _facts(
    called: str, side: int, is_coloured: bool, classes: tuple[str, ...], n_train: int, n_test: int
) -> ImageTaskFacts:
    plain = "".join(one for one in called if one not in MARKUP).strip()
    return ImageTaskFacts(
        N_("Pictures, {name}", name=plain) if plain else _GENERIC.label,
        _GENERIC.help,
        side,
        3 if is_coloured else 1,
        classes,
        n_train,
        n_test,
        _GENERIC.unseen,
    )


def hidden_fields() -> set[str]:
    """Return the fields that are the set's, and no setting of a person's."""
    own: Any = OwnPicturesTaskConfig.__annotations__
    return set(own) - {"tasks", "kind", "name", "n_validation"}
