"""Which steps the walk through a model has, without walking: for links to them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tfm_core.config import ModelConfig, RecurrentConfig
from tfm_core.config.shape import Shape
from tfm_core.inspect.compute import layers


@dataclass(frozen=True, slots=True)
class Entry:
    """A step's number in the walk, its name and its title."""

    number: int
    name: str
    title: str


def n_blocks(config: ModelConfig) -> int:
    """Return how many blocks there are to open one by one; a recurrent model's walk opens none."""
    if isinstance(config, RecurrentConfig):
        return 1
    return max(layers(config))


@lru_cache(maxsize=64)
def walk_index(config: ModelConfig, shape: Shape) -> tuple[Entry, ...]:
    """Return the steps of a model of this kind, in order; a deep one has those of a flat one.

    Raises ValueError, in a sentence, where no walk fits the model.
    """
    from tfm_core.inspect.walk import walk  # late: torch
    from tfm_core.inspect.walk_subject import by_shape

    depths = ("n_layers", "n_encoder_layers", "n_decoder_layers")
    flat = config.model_copy(update={name: 1 for name in depths if hasattr(config, name)})
    steps = walk(by_shape(flat, shape, batch=1, src_len=3, tgt_len=3))
    return tuple(Entry(step.number, step.name, step.title) for step in steps)
