"""How words and how patches become vectors, with the sizes of two models.

Both become a sequence of vectors for the same blocks (Vaswani et al. 2017, section 3.4; Dosovitskiy
et al. 2021, section 3.1).
"""

from __future__ import annotations

from dataclasses import dataclass

from tfm_core.anatomy import Tokens, attentions
from tfm_core.config import Experiment, SequenceTaskConfig, ViTConfig, built
from tfm_core.config.shape import ImageShape, TextShape, patches_per_side
from tfm_core.data.shape import data_shape
from tfm_core.facts.parameter_table import ParameterRow, parameter_table
from tfm_core.sentences import N_, Sentence
from tfm_core.variants.poolings import POOLINGS
from tfm_core.variants.positions import POSITIONS
from tfm_core.variants.stems import STEMS

_ATTENDS: dict[Tokens, str] = {  # by what asks in a model's first attention
    "source": N_("Encoder: both directions. Decoder: earlier tokens and the source."),
    "answering": N_("Every token to every other except padding."),
    "sequence": N_("Every token to itself and earlier ones."),
    "target": N_("The decoder to every source word."),
}


@dataclass(frozen=True, slots=True)
class Aspect:
    """What is compared, and how it is with words and with patches."""

    what: str
    language: str
    vision: str


def reads_words(experiment: Experiment) -> bool:
    """Return whether an experiment reads only words."""
    return experiment.task.picture_shape is None


def reads_pixels(experiment: Experiment) -> bool:
    """Return whether an experiment is a Vision Transformer that classifies pictures."""
    return bool(experiment.task.class_names)


def aspects(language: Experiment, vision: Experiment) -> list[Aspect]:
    """Compare a model of words with a Vision Transformer, from their own sizes."""
    words, pixels = _Words(language), _Pixels(vision)
    return [
        Aspect(N_("input"), words.reads, pixels.reads),
        Aspect(N_("pieces"), words.pieces, pixels.pieces),
        Aspect(N_("from piece to vector"), words.embedding, pixels.embedding),
        Aspect(N_("parameters for that"), words.counted("embedding"), pixels.counted("stem")),
        Aspect(
            N_("similar pieces"),
            N_("The table must learn which words are similar."),
            N_("Similar pixels give similar vectors from the first step."),
        ),
        Aspect(N_("positions"), words.positions, pixels.positions),
        Aspect(
            N_("neighbours"),
            N_("One before, one after."),
            N_("Four, but the patch sequence has one axis."),
        ),
        Aspect(
            N_("length"),
            N_("Lengths vary: <pad> fills the batch, and a mask hides it."),
            N_("Always {n} tokens: no padding and no mask.", n=pixels.n_tokens),
        ),
        Aspect(N_("attention"), words.attends, N_("Every token to every other one.")),
        Aspect(N_("output"), words.answers, pixels.answers),
    ]


class _Counted:
    """A model with its table of parameters."""

    def __init__(self, experiment: Experiment) -> None:
        self.model, self.shape = experiment.model, data_shape(experiment)
        table = parameter_table(self.model, self.shape)
        self.total = table.total
        self.rows: tuple[ParameterRow, ...] = table.rows

    def counted(self, part: str) -> Sentence:
        """Say how many parameters the modules of a part have."""
        n = sum(row.n_parameters for row in self.rows if part in row.module)
        return N_("{n:,}, {share:.0%} of all", n=n, share=n / self.total)

    @property
    def positions(self) -> Sentence:
        """Say which kind of positions there is, and what it costs."""
        if not self.model.has_blocks:
            return N_("None: it reads in order.")
        kind = POSITIONS[built(self.model).position]
        n = sum(row.n_parameters for row in self.rows if "positions" in row.module)
        if n:
            return N_("{kind}: {n:,} parameters", kind=kind.label, n=n)
        return N_("{kind}: no parameters", kind=kind.label)


class _Words(_Counted):
    """A model of words."""

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment)
        self.task = experiment.task_as(SequenceTaskConfig)
        assert isinstance(self.shape, TextShape)
        self.text = self.shape

    @property
    def reads(self) -> Sentence:
        """Say how long a text may be."""
        n = self.task.max_src_len or self.task.max_tgt_len
        return N_("a text of up to {n} tokens", n=n)

    @property
    def pieces(self) -> Sentence:
        """Say how many words there are."""
        return N_("tokens, each one of {n:,} ids", n=self.text.src_vocabulary)

    @property
    def embedding(self) -> Sentence:
        """Say how an id becomes a vector."""
        own = N_(
            "look-up: row id of a {rows:,} × {d} table",
            rows=self.text.src_vocabulary,
            d=built(self.model).d_model,
        )
        tables = [row for row in self.rows if "embedding" in row.module and row.n_parameters]
        if len(tables) < 2:
            return own
        d = built(self.model).d_model
        other = N_("target: {rows:,} × {d}", rows=self.text.tgt_vocabulary, d=d)
        return N_("{own}; {other}", own=own, other=other)

    @property
    def attends(self) -> Sentence:
        """Say what the masks allow."""
        return N_(_ATTENDS[attentions(self.model)[0].queries])

    @property
    def answers(self) -> Sentence:
        """Say what comes out, and from which vector."""
        if self.text.pooling is not None:
            return N_(
                "one of {n} labels, from one vector: {pooling}",
                n=self.text.n_labels,
                pooling=self.text.pooling.label,
            )
        return N_("one of {n:,} tokens at each position", n=self.text.tgt_vocabulary)


class _Pixels(_Counted):
    """A Vision Transformer."""

    def __init__(self, experiment: Experiment) -> None:
        super().__init__(experiment)
        assert isinstance(self.shape, ImageShape)
        self.vit, self.image = experiment.model_as(ViTConfig), self.shape
        self.n_patches = patches_per_side(self.image.image_size, self.vit.patch_size) ** 2
        self.n_values = self.vit.patch_size**2 * self.image.channels

    @property
    def n_tokens(self) -> int:
        """Return the number of tokens, with CLS, if any."""
        return self.n_patches + POOLINGS[self.vit.pooling].has_cls

    @property
    def reads(self) -> Sentence:
        """Say how large a picture is."""
        return N_(
            "a picture of {size} × {size} pixels, channels: {channels}",
            size=self.image.image_size,
            channels=self.image.channels,
        )

    @property
    def pieces(self) -> Sentence:
        """Say how many patches there are."""
        return N_(
            "{n} patches of {size} × {size} pixels, {values} values each",
            n=self.n_patches,
            size=self.vit.patch_size,
            values=self.n_values,
        )

    @property
    def embedding(self) -> Sentence:
        """Say how a patch becomes a vector."""
        stem = STEMS[self.vit.stem]
        if stem.classes is not None:
            return N_("{stem}, {d} values per patch", stem=stem.label, d=self.vit.d_model)
        return N_(
            "{values} values times a {values} × {d} matrix",
            values=self.n_values,
            d=self.vit.d_model,
        )

    @property
    def answers(self) -> Sentence:
        """Say what comes out, and from which vector."""
        return N_(
            "one of {n} classes, from one vector: {pooling}",
            n=self.image.n_classes,
            pooling=POOLINGS[self.vit.pooling].label,
        )
