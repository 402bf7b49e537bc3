"""What a model reads of a task, and so which families can learn it: tokens, or pixels.

The settings of a kind of task inherit from one of these two; a model asks for no more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar

from tfm_core.config.base import Config, setting
from tfm_core.sentences import N_, StudentError

if TYPE_CHECKING:
    from tfm_core.config.model import ModelConfig

T = TypeVar("T")
VALIDATED = N_("Unseen; measured during training.")
TESTED = N_("Unseen; measured once at the end.")


def task_setting(default: str) -> Any:
    """Return the field with the name of a task."""
    return setting(default, N_("Task"), N_("What the model learns."))


def count_setting(default: int, label: str, help: str, *, most: int, step: int = 100) -> Any:
    """Return the field of a number of examples."""
    return setting(default, label, help, ge=8, le=most, step=step, advanced=True)


class NamedTaskConfig(Config):
    """A task by its name, among those of its kind.

    data_kind: pairs of texts, a stream of text, pictures with classes, pictures with captions, or
    none. without_data: why no data can be loaded, or "".
    """

    data_kind: ClassVar[Literal["pairs", "stream", "pictures", "captions", "none"]] = "pairs"
    without_data: ClassVar[str] = ""

    if TYPE_CHECKING:  # a field of each kind

        @property
        def kind(self) -> str:
            """The name of the kind."""

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

    @property
    def is_opened(self) -> bool:
        """Whether the model was trained elsewhere, so that there is no training to look at."""
        return False

    def by_data(self, *, pairs: T, stream: T, pictures: T, captions: T) -> T:
        """Return what belongs to the kind of its data. Raises StudentError where it has none."""
        if self.data_kind == "none":
            raise StudentError(self.without_data)
        by_kind = {"pairs": pairs, "stream": stream, "pictures": pictures, "captions": captions}
        return by_kind[self.data_kind]

    def check_model(self, model: ModelConfig) -> None:
        """Raise CrossError where a model cannot be trained as the task says."""

    @property
    def has_model(self) -> bool:
        """Whether there is a model to the configuration, and not maps alone."""
        return True

    @property
    def is_foreign(self) -> bool:
        """Whether the model is somebody else's code, which cannot be built here."""
        return False

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
        return False

    @property
    def n_training(self) -> int | None:
        """Examples of the training split, at most; None where only the data says it."""
        return None


class SequenceTaskConfig(NamedTaskConfig):
    """A task of tokens, with a source or without."""

    @property
    def has_source(self) -> bool:
        """Whether a source of words is read; a language model has none."""
        return self.max_src_len > 0

    @property
    def max_src_len(self) -> int:
        """Longest source in tokens, without special tokens; 0 where there is none."""
        raise NotImplementedError

    @property
    def max_tgt_len(self) -> int:
        """Longest target in tokens, without special tokens."""
        raise NotImplementedError

    @property
    def n_answers(self) -> int:
        """Most positions that a model answers."""
        raise NotImplementedError


class PictureTaskConfig(NamedTaskConfig):
    """A task of square pictures."""

    if TYPE_CHECKING:  # a property of each kind

        @property
        def facts(self) -> Any:
            """Label, help and picture shape of the task."""

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
