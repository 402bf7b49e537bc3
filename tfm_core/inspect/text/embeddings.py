"""Word embeddings of a run: rows, similar words, paths, classes; and words beside patches.

Words and patches both become a sequence of vectors for the same blocks (Vaswani et al. 2017,
section 3.4; Dosovitskiy et al. 2021, section 3.1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tfm_core.anatomy import Tokens, attentions
from tfm_core.choices.config import Experiment, ModelConfig, ViTConfig, built
from tfm_core.choices.config.shape import ImageShape, TextShape, patches_per_side
from tfm_core.choices.variants.positions import POSITIONS
from tfm_core.choices.variants.stems import POOLINGS, STEMS
from tfm_core.data.tasks import data_shape, text_task
from tfm_core.data.text.english_korean import word_classes
from tfm_core.data.vocabulary import SPECIALS, Vocabulary
from tfm_core.facts.parameter_table import ParameterTable, parameter_table
from tfm_core.inspect.attention.trained import cached_by_weights, model_of, no_checkpoint
from tfm_core.inspect.position_tables import cosines
from tfm_core.probe.types import Floats
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Sentence, StudentError

if TYPE_CHECKING:
    from tfm_core.models.build import Model


CLASSES = (
    N_("people"),
    N_("animals"),
    N_("food"),
    N_("things"),
    N_("place"),
    N_("verb, present"),
    N_("verb, past"),
    N_("adjective"),
    N_("time"),
    N_("function word"),
    N_("particle or ending"),
    N_("digit"),
    N_("letter"),
    N_("sign"),
    N_("word"),
    N_("special"),
)
"""In the order in which figures and legends show them."""


_CALLED = {
    **dict.fromkeys(("preposition", "article", "and"), "function word"),
    "ending": "particle or ending",
}


def word_class(task: str, token: str) -> str:
    """Return the class of a token of a task's vocabulary, one of ``CLASSES``."""
    if token in SPECIALS:
        name = "special"
    elif task == "english-korean":
        name = word_classes().get(token, "word")
    elif token.isdigit():
        name = "digit"
    elif len(token) == 1:
        name = "letter" if token.isalpha() else "sign"
    else:
        name = "word"
    return CLASSES[CLASSES.index(_CALLED.get(name, name))]  # marked for translation


def by_class(classes: tuple[str, ...]) -> list[int]:
    """Return the indices of tokens ordered by class."""
    return sorted(range(len(classes)), key=lambda index: CLASSES.index(classes[index]))


FIRST_COMPONENTS = 3


@dataclass(frozen=True, slots=True, eq=False)
class EmbeddingTable:
    """An embedding table over the training.

    tokens and classes: of V words; steps: (F,) ascending; values: (F, V, D) float32. is_whole:
    whether snapshots hold it; else only the first and the last state are known.
    """

    name: str
    tokens: tuple[str, ...]
    classes: tuple[str, ...]
    steps: tuple[int, ...]
    values: Floats
    is_whole: bool


def why_no_embeddings(run: Run) -> str | None:
    """Return why a run has no embeddings of words to show, in a sentence, or None."""
    if run.problem is not None:
        return run.problem
    if not run.experiment.task.has_source:
        return N_("This run was trained on pictures, so it has no word embeddings.")
    if not run.has_checkpoint:
        return no_checkpoint(run)
    return None


def table_names(run: Run) -> list[str]:
    """Return the names of the tables of words in a run's model. Raises ValueError without one."""
    model, _step = model_of(run)
    return [name for name in _modules(model) if _vocabulary(run.experiment, name) is not None]


@cached_by_weights
def embedding_table(run: Run, name: str) -> EmbeddingTable:
    """Return a table from snapshots and checkpoint. Raises StudentError without either."""
    model, last = model_of(run)
    modules = _modules(model)
    known = _vocabulary(run.experiment, name)
    if name not in modules or known is None:
        raise StudentError("This run has no word table {name!r}.", name=name)
    end = modules[name].detach().float().numpy().copy()
    frames: dict[int, Floats] = {}
    for step in run.snapshot_steps():
        kept = run.snapshot(step).embeddings.get(name)
        if kept is not None and step < last and kept.shape == end.shape:
            frames[step] = kept.astype(np.float32)
    is_whole = bool(frames)
    if not frames:
        from tfm_core.training.setup import new_model

        weight = _modules(new_model(run.experiment))[name]
        values: Floats = weight.detach().float().numpy().copy()
        frames[0] = values
    frames[last] = end
    steps = tuple(sorted(frames))
    tokens = tuple(known.token(id) for id in range(len(known)))
    task = run.experiment.task.name
    return EmbeddingTable(
        name,
        tokens,
        tuple(word_class(task, token) for token in tokens),
        steps,
        np.stack([frames[step] for step in steps]),
        is_whole,
    )


def look_up(table: Floats, id: int) -> tuple[Floats, float]:
    """Return row ``id`` of a table (V, D), and its largest difference to one-hot times table."""
    import torch
    import torch.nn.functional as F

    weights = torch.from_numpy(np.asarray(table, np.float32))
    one_hot = F.one_hot(torch.tensor(id), len(weights)).float()  # (V,)
    row = F.embedding(torch.tensor(id), weights)
    return row.numpy(), float((one_hot @ weights - row).abs().max())


def neighbours(
    table: Floats, index: int, *, most: int = 5, skip: int = 0
) -> list[tuple[int, float]]:
    """Return the rows of a table (V, D) most similar to one by cosine, without ``skip`` first."""
    like = cosines(table)[index]
    order = [int(i) for i in np.argsort(-like, kind="stable") if i != index and i >= skip]
    return [(i, float(like[i])) for i in order[:most]]


def principal(table: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the mean (D,) of the rows of a table (V, D), and the directions of most variance.

    These are three axes (3, D), and their shares of the variance (3,).

    By singular values (Pearson 1901), each with a positive largest coordinate, so that the picture
    does not flip. Missing directions are zero.
    """
    rows = np.asarray(table, np.float64)
    mean = rows.mean(0)
    _left, sizes, right = np.linalg.svd(rows - mean, full_matrices=False)
    n = min(FIRST_COMPONENTS, len(right))
    axes = np.zeros((FIRST_COMPONENTS, rows.shape[1]))
    axes[:n] = right[:n]
    largest = np.abs(axes).argmax(1)
    axes *= np.where(axes[np.arange(FIRST_COMPONENTS), largest] < 0, -1.0, 1.0)[:, None]
    shares = np.zeros(FIRST_COMPONENTS)
    shares[:n] = (sizes**2 / max(float((sizes**2).sum()), 1e-30))[:n]
    return mean, axes, shares


def class_likeness(table: Floats, classes: Sequence[str], skip: int = 0) -> tuple[float, float]:
    """Return the mean cosine of two words of one class, and of two words of different ones.

    NaN for the words of different classes where all are of one.
    """
    like = cosines(table)[skip:, skip:]
    kinds = np.array(classes[skip:])
    same = kinds[:, None] == kinds[None, :]
    pairs = np.triu(np.ones_like(same), 1)
    within, between = like[same & pairs], like[~same & pairs]
    apart = float(between.mean()) if between.size else float("nan")
    return float(within.mean()) if within.size else 0.0, apart


def _modules(model: Model) -> Mapping[str, Any]:
    from tfm_core.models.ends import TokenEmbedding

    return {
        name: module.table.weight
        for name, module in model.named_modules()
        if isinstance(module, TokenEmbedding)
    }


def _vocabulary(experiment: Experiment, name: str) -> Vocabulary | None:
    if not experiment.task.has_source:
        return None
    task = text_task(experiment.task)
    return task.tgt_vocabulary if name.startswith("tgt") else task.src_vocabulary


_ATTENDS: dict[Tokens, str] = {  # by what asks in a model's first attention
    "source": N_("Encoder: both directions. Decoder: earlier tokens and the source."),
    "answering": N_("Every token to every other except padding."),
    "sequence": N_("Every token to itself and earlier ones."),
    "target": N_("The decoder to every source word."),
}


def reads_words(experiment: Experiment) -> bool:
    """Return whether an experiment reads only words."""
    return experiment.task.picture_shape is None


def compare_inputs(language: Experiment, vision: Experiment) -> list[tuple[str, str, str]]:
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
