"""What a model reads of a task, and so which families can learn it: tokens, or pixels.

The settings of a kind of task inherit from one of these two; a model asks for no more.
"""

from __future__ import annotations

from typing import Self

from tfm_core.config.base import Config


class NamedTaskConfig(Config):
    """A task by its name, among those of its kind."""

    @classmethod
    def named(cls, name: str) -> Self:
        """Return the settings to begin a task with. Raises ConfigError for an unknown one."""
        return cls.parse({"name": name})


class SequenceTaskConfig(NamedTaskConfig):
    """A task of tokens, with a source or without."""

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

    @property
    def image_size(self) -> int:
        """Pixels to a side."""
        raise NotImplementedError

    @property
    def channels(self) -> int:
        """1 for grey pictures, 3 for coloured ones."""
        raise NotImplementedError
