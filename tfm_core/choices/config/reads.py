"""What a model reads of a task, and so which families can learn it: tokens, or pixels.

The settings of a kind of task inherit from one of these two; a model asks for no more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar

from tfm_core.choices.config.base import Config, setting
from tfm_core.sentences import StudentError

if TYPE_CHECKING:
    from tfm_core.choices.config.model import ModelConfig

T = TypeVar("T")


def task_setting(default: str) -> Any:
    """Return the field with the name of a task."""
    return setting("task", default)


class NamedTaskConfig(Config):
    """A task by its name, among those of its kind.

    data_kind: pairs of texts, a stream of text, pictures with classes, pictures with captions, or
    none, where there are maps alone and no model. is_trained_here: False for a model that was
    opened, looked at, or trained by another program.
    """

    is_trained_here: ClassVar[bool] = True
    data_kind: ClassVar[Literal["pairs", "stream", "pictures", "captions", "none"]] = "pairs"

    if TYPE_CHECKING:  # a field of each kind

        @property
        def kind(self) -> str:
            """The name of the kind."""

        @property
        def facts(self) -> Any:
            """Label and help of the task, who learns it, what is answered."""

    @classmethod
    def named(cls, name: str) -> Self:
        """Return the settings to begin a task with. Raises ConfigError for an unknown one."""
        return cls.parse({"name": name})

    @property
    def picture_shape(self) -> tuple[int, int, int] | None:
        """Channels, height and width of a picture; None where words are read."""
        return None

    @property
    def class_names(self) -> tuple[str, ...]:
        """The classes of pictures by name; empty where no pictures are classified."""
        return ()

    def by_data(self, *, pairs: T, stream: T, pictures: T, captions: T) -> T:
        """Return what belongs to the kind of its data. Raises StudentError where it has none."""
        if self.data_kind == "none":
            raise StudentError(self.without_data)
        by_kind = {"pairs": pairs, "stream": stream, "pictures": pictures, "captions": captions}
        return by_kind[self.data_kind]

    @property
    def objective(self) -> str | None:
        """The name of what is minimised; None where nothing is."""
        return None if self.data_kind == "none" else self.data_kind

    def check_model(self, model: ModelConfig) -> None:
        """Raise CrossError where a model cannot be trained as the task says."""

    @property
    def has_model(self) -> bool:
        """Whether the model can be built here; else there are maps alone."""
        return self.data_kind != "none"

    @property
    def without_data(self) -> str:
        """Why no data can be loaded, or ""."""
        return ""

    @property
    def begin(self) -> str:
        """The token that what is written begins with."""
        return "<bos>"

    @property
    def end(self) -> str:
        """The token that what is written ends with."""
        return "<eos>"

    @property
    def describes_pictures(self) -> bool:
        """Whether words are written about a picture."""
        return self.picture_shape is not None and not self.class_names

    @property
    def has_source(self) -> bool:
        """Whether a source of words is read; a language model has none."""
        return self.max_src_len > 0

    @property
    def max_src_len(self) -> int:
        """Longest source in tokens, without special tokens; 0 where there is none."""
        return 0

    @property
    def max_tgt_len(self) -> int:
        """Longest target in tokens, without special tokens; 0 where none is written."""
        return 0

    @property
    def n_answers(self) -> int:
        """Most positions that a model answers: those of the target, and what ends or follows it."""
        return max(1, self.max_tgt_len + (self.facts.answer in ("sequence", "text")))

    @property
    def n_training(self) -> int | None:
        """Examples of the training split, at most; None where only the data says it."""
        return None


class PictureTaskConfig(NamedTaskConfig):
    """A task of square pictures."""

    @property
    def picture_shape(self) -> tuple[int, int, int]:
        """Channels, height and width of a picture."""
        return self.channels, self.image_size, self.image_size

    @property
    def image_size(self) -> int:
        """Pixels to a side."""
        return int(self.facts.image_size)

    @property
    def channels(self) -> int:
        """1 for grey pictures, 3 for coloured ones."""
        return int(self.facts.channels)
