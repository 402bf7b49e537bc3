"""What a model must know of its data before it can be built: torch-free, so that pages may ask."""

from __future__ import annotations

from dataclasses import dataclass

from tfm_core.choices.variants.stems import POOLINGS, Pooling
from tfm_core.sentences import Paragraph, StudentError

CLS_ID = 1
"""The token put in front of a text to gather its label: <bos>."""


@dataclass(frozen=True, slots=True)
class TextShape:
    """Sizes of the vocabularies and the padding id, then what published models do at their ends.

    pad_id: the token that fills rows up and is never attended to; None where no token does, as in
    GPT-2, whose token 0 is "!".
    one_vocabulary: source and target words share one embedding table (both sizes are then equal).
    output_bias: the output layer has a bias where the model has biases (GPT-2's has none).
    head: ``tokens`` answers every position with a word; ``pooler`` is BERT's, a tanh layer on the
    first token; ``states`` returns the stack's vectors; the name of a pooling gives
    one label for the text, read from the mean of its words or from a <bos> put in front of it.
    n_labels: the last words of the target vocabulary, which alone are labels. mask_id: the source
    token that hides a word, 0 where none does. n_segments: BERT's segment embeddings, and the norm
    behind all embeddings. embedding_norm: BART's norms behind the positions of both sides.
    scale_embedding: embeddings are multiplied by sqrt(d_model), as the first
    Transformer's are; GPT-2's and BERT's are not. has_source: False for a language model, which
    only continues what it wrote. n_hidden: width of a hidden layer before the labels, 0 for none.
    bos_id, eos_id: the tokens that begin and end what is written; -1 where none does.
    Raises ValueError where one vocabulary has two sizes, and for an unknown head.
    """

    src_vocabulary: int
    tgt_vocabulary: int
    pad_id: int | None = 0
    one_vocabulary: bool = False
    output_bias: bool = True
    head: str = "tokens"
    n_segments: int = 0
    embedding_norm: bool = False
    scale_embedding: bool = True
    n_labels: int = 0
    mask_id: int = 0
    has_source: bool = True
    n_hidden: int = 0
    bos_id: int = 1
    eos_id: int = 2

    @property
    def pooling(self) -> Pooling | None:
        """How one vector is made of the text; None where every position answers."""
        return POOLINGS.get(self.head)

    @property
    def has_cls(self) -> bool:
        """Whether an extra token is put in front."""
        return self.pooling is not None and self.pooling.has_cls

    @property
    def is_label(self) -> bool:
        """Whether one label is answered for the whole text."""
        return self.head in POOLINGS

    def __post_init__(self) -> None:
        """Refuse contradictory sizes and unknown heads."""
        if self.head not in (known := ("tokens", "pooler", *POOLINGS, "states")):
            raise StudentError(
                "head is {head!r}; choose from {known}.",
                head=self.head,
                known=", ".join(known),
            )
        if self.one_vocabulary and self.src_vocabulary != self.tgt_vocabulary:
            raise StudentError(
                Paragraph(
                    "settings/shared-vocabulary",
                    src_vocabulary=self.src_vocabulary,
                    tgt_vocabulary=self.tgt_vocabulary,
                )
            )


@dataclass(frozen=True, slots=True)
class ImageShape:
    """Pixels to a side, channels, classes."""

    image_size: int
    channels: int
    n_classes: int


@dataclass(frozen=True, slots=True)
class CaptionShape:
    """Pixels to a side, channels; size of the vocabulary; longest caption with <bos>; padding.

    has_regions: a pixel is a region with as many features as there are channels. No block encodes
    them, and words attend to them once, behind the last block of the decoder.
    """

    image_size: int
    channels: int
    tgt_vocabulary: int
    tgt_len: int
    pad_id: int = 0
    has_regions: bool = False


Shape = TextShape | ImageShape | CaptionShape


def patches_per_side(image_size: int, patch_size: int) -> int:
    """Return the number of patches in a row of a square picture, both sizes in pixels.

    Raises ValueError where the patches do not divide the picture.
    """
    if image_size % patch_size:
        raise StudentError(
            "patch_size {patch_size} does not divide image_size {image_size}",
            patch_size=patch_size,
            image_size=image_size,
        )
    return image_size // patch_size
