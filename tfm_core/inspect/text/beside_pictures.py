"""How words and how patches become vectors, with the sizes of two models.

Both become a sequence of vectors for the same blocks (Vaswani et al. 2017, section 3.4; Dosovitskiy
et al. 2021, section 3.1).
"""

from __future__ import annotations

from tfm_core.anatomy import Tokens, attentions
from tfm_core.choices.config import Experiment, ModelConfig, ViTConfig, built
from tfm_core.choices.config.shape import ImageShape, TextShape, patches_per_side
from tfm_core.choices.variants.poolings import POOLINGS
from tfm_core.choices.variants.positions import POSITIONS
from tfm_core.choices.variants.stems import STEMS
from tfm_core.data.tasks import data_shape
from tfm_core.facts.parameter_table import ParameterTable, parameter_table
from tfm_core.sentences import N_, Sentence

_ATTENDS: dict[Tokens, str] = {  # by what asks in a model's first attention
    "source": N_("Encoder: both directions. Decoder: earlier tokens and the source."),
    "answering": N_("Every token to every other except padding."),
    "sequence": N_("Every token to itself and earlier ones."),
    "target": N_("The decoder to every source word."),
}


def reads_words(experiment: Experiment) -> bool:
    """Return whether an experiment reads only words."""
    return experiment.task.picture_shape is None


def reads_pixels(experiment: Experiment) -> bool:
    """Return whether an experiment is a Vision Transformer that classifies pictures."""
    return bool(experiment.task.class_names)


def aspects(language: Experiment, vision: Experiment) -> list[tuple[str, str, str]]:
    """Compare a model of words with a Vision Transformer, from their own sizes.

    Return what is compared, and how it is with words and with patches.
    """
    task, shape = language.task, data_shape(language)
    vit, picture = vision.model_as(ViTConfig), data_shape(vision)
    assert isinstance(shape, TextShape)
    assert isinstance(picture, ImageShape)
    words, pixels = (parameter_table(one.model, data_shape(one)) for one in (language, vision))
    n_patches = patches_per_side(picture.image_size, vit.patch_size) ** 2
    n_values = vit.patch_size**2 * picture.channels
    return [
        (
            N_("input"),
            N_("a text of up to {n} tokens", n=task.max_src_len or task.max_tgt_len),
            N_(
                "a picture of {size} × {size} pixels, channels: {channels}",
                size=picture.image_size,
                channels=picture.channels,
            ),
        ),
        (
            N_("pieces"),
            N_("tokens, each one of {n:,} ids", n=shape.src_vocabulary),
            N_(
                "{n} patches of {size} × {size} pixels, {values} values each",
                n=n_patches,
                size=vit.patch_size,
                values=n_values,
            ),
        ),
        (
            N_("from piece to vector"),
            _embedding(built(language.model).d_model, shape, words),
            _stem(vit, n_values),
        ),
        (N_("parameters for that"), _counted(words, "embedding"), _counted(pixels, "stem")),
        (
            N_("similar pieces"),
            N_("The table must learn which words are similar."),
            N_("Similar pixels give similar vectors from the first step."),
        ),
        (N_("positions"), _positions(language.model, words), _positions(vit, pixels)),
        (
            N_("neighbours"),
            N_("One before, one after."),
            N_("Four, but the sequence of patches has one axis."),
        ),
        (
            N_("length"),
            N_("Lengths vary: <pad> fills the batch, and a mask hides it."),
            N_(
                "Always {n} tokens, without padding or mask.",
                n=n_patches + POOLINGS[vit.pooling].has_cls,
            ),
        ),
        (
            N_("attention"),
            N_(_ATTENDS[attentions(language.model)[0].queries]),
            N_("Every token to every other one."),
        ),
        (
            N_("output"),
            _answers(shape),
            N_(
                "one of {n} classes, from one vector: {pooling}",
                n=picture.n_classes,
                pooling=POOLINGS[vit.pooling].label,
            ),
        ),
    ]


def _counted(parameters: ParameterTable, part: str) -> Sentence:
    """Say how many parameters the modules of a part have."""
    n = sum(row.n_parameters for row in parameters.rows if part in row.module)
    return N_("{n:,}, {share:.0%} of all", n=n, share=n / parameters.total)


def _positions(model: ModelConfig, parameters: ParameterTable) -> Sentence:
    """Say which kind of positions there is, and what it costs."""
    if not model.has_blocks:
        return N_("None, because it reads in order.")
    kind = POSITIONS[built(model).position]
    n = sum(row.n_parameters for row in parameters.rows if "positions" in row.module)
    if n:
        return N_("{kind}: {n:,} parameters", kind=kind.label, n=n)
    return N_("{kind}: no parameters", kind=kind.label)


def _embedding(d_model: int, shape: TextShape, parameters: ParameterTable) -> Sentence:
    """Say how an id becomes a vector."""
    own = N_("look-up: row id of a {rows:,} × {d} table", rows=shape.src_vocabulary, d=d_model)
    tables = [row for row in parameters.rows if "embedding" in row.module and row.n_parameters]
    if len(tables) < 2:
        return own
    other = N_("target: {rows:,} × {d}", rows=shape.tgt_vocabulary, d=d_model)
    return N_("{own}; {other}", own=own, other=other)


def _stem(vit: ViTConfig, n_values: int) -> Sentence:
    """Say how a patch becomes a vector."""
    stem = STEMS[vit.stem]
    if stem.walk_seen:
        return N_("{stem}, {d} values per patch", stem=stem.label, d=vit.d_model)
    return N_("{values} values times a {values} × {d} matrix", values=n_values, d=vit.d_model)


def _answers(shape: TextShape) -> Sentence:
    """Say what comes out of a model of words, and from which vector."""
    if shape.pooling is None:
        return N_("one of {n:,} tokens at each position", n=shape.tgt_vocabulary)
    return N_(
        "one of {n} labels, from one vector: {pooling}",
        n=shape.n_labels,
        pooling=shape.pooling.label,
    )
