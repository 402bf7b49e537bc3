"""What a model must know of its data before it can be built: torch-free, so that pages may ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class TextShape:
    """Sizes of the vocabularies and the padding id, then what published models do at their ends.

    one_vocabulary: source and target words share one embedding table (both sizes are then equal).
    output_bias: the output layer has a bias where the model has biases (GPT-2's has none).
    head: ``tokens`` answers every position with a word; ``pooler`` is BERT's, a tanh layer on the
    first token. n_segments: BERT's segment embeddings, and the norm behind all embeddings.
    has_source: False for a language model, which only continues what it wrote.
    Raises ValueError where one vocabulary has two sizes.
    """

    src_vocabulary: int
    tgt_vocabulary: int
    pad_id: int = 0
    one_vocabulary: bool = False
    output_bias: bool = True
    head: Literal["tokens", "pooler"] = "tokens"
    n_segments: int = 0
    has_source: bool = True

    def __post_init__(self) -> None:
        """Refuse sizes that contradict each other."""
        if self.one_vocabulary and self.src_vocabulary != self.tgt_vocabulary:
            raise ValueError(
                f"One vocabulary cannot have {self.src_vocabulary} source "
                f"and {self.tgt_vocabulary} target words."
            )


@dataclass(frozen=True, slots=True)
class ImageShape:
    """Pixels to a side, channels, classes."""

    image_size: int
    channels: int
    n_classes: int


Shape = TextShape | ImageShape
