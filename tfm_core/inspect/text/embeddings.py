"""Word embeddings of a run: rows, words that became similar, and their paths; word classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfm_core.choices.config import Experiment
from tfm_core.data.tasks import text_task
from tfm_core.data.text.english_korean import word_classes
from tfm_core.data.vocabulary import SPECIALS, Vocabulary
from tfm_core.inspect.attention.trained import cached_by_weights, model_of, no_checkpoint
from tfm_core.inspect.positions.tables import cosines
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, StudentError

if TYPE_CHECKING:
    from tfm_core.models.build import Model


CLASSES = (
    "people",
    "animals",
    "food",
    "things",
    "place",
    N_("verb, present"),
    N_("verb, past"),
    "adjective",
    "time",
    N_("function word"),
    N_("particle or ending"),
    "digit",
    "letter",
    "sign",
    "word",
    "special",
)
"""In the order in which figures and legends show them."""


_CALLED = {
    **dict.fromkeys(("preposition", "article", "and"), "function word"),
    "ending": "particle or ending",
}


def class_of(task: str, token: str) -> str:
    """Return the class of a token of a task's vocabulary, one of ``CLASSES``."""
    if token in SPECIALS:
        return "special"
    if task == "english-korean":
        name = word_classes().get(token, "word")
        return _CALLED.get(name, name)
    if token.isdigit():
        return "digit"
    if len(token) == 1:
        return "letter" if token.isalpha() else "sign"
    return "word"


def by_class(classes: tuple[str, ...]) -> list[int]:
    """Return the indices of tokens ordered by class."""
    return sorted(range(len(classes)), key=lambda index: CLASSES.index(classes[index]))


Array = npt.NDArray[np.floating[Any]]
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
    values: Array
    is_whole: bool


def can_show(run: Run) -> str | None:
    """Return why a run has no embeddings of words to show, in a sentence, or None."""
    if run.problem is not None:
        return run.problem
    if not run.experiment.task.has_source:
        return N_("This run was trained on pictures, so it has no word embeddings.")
    if not run.has_checkpoint:
        return no_checkpoint(run)
    return None


def names_of(run: Run) -> list[str]:
    """Return the names of the tables of words in a run's model. Raises ValueError without one."""
    model, _step = model_of(run)
    return [name for name in _modules(model) if _vocabulary(run.experiment, name) is not None]


@cached_by_weights
def table_of(run: Run, name: str) -> EmbeddingTable:
    """Return a table from snapshots and checkpoint. Raises StudentError without either."""
    model, last = model_of(run)
    modules = _modules(model)
    known = _vocabulary(run.experiment, name)
    if name not in modules or known is None:
        raise StudentError("This run has no word table {name!r}.", name=name)
    end = modules[name].detach().float().numpy().copy()
    frames: dict[int, Array] = {}
    for step in run.snapshot_steps():
        kept = run.snapshot(step).embeddings.get(name)
        if kept is not None and step < last and kept.shape == end.shape:
            frames[step] = kept.astype(np.float32)
    is_whole = bool(frames)
    if not frames:
        from tfm_core.training.setup import new_model

        weight = _modules(new_model(run.experiment))[name]
        values: Array = weight.detach().float().numpy().copy()
        frames[0] = values
    frames[last] = end
    steps = tuple(sorted(frames))
    tokens = tuple(known.token(id) for id in range(len(known)))
    task = run.experiment.task.name
    return EmbeddingTable(
        name,
        tokens,
        tuple(class_of(task, token) for token in tokens),
        steps,
        np.stack([frames[step] for step in steps]),
        is_whole,
    )


def look_up(table: Array, id: int) -> tuple[Array, float]:
    """Return row ``id`` of a table (V, D), and its largest difference to one-hot times table."""
    import torch
    import torch.nn.functional as F

    weights = torch.from_numpy(np.asarray(table, np.float32))
    one_hot = F.one_hot(torch.tensor(id), len(weights)).float()  # (V,)
    row = F.embedding(torch.tensor(id), weights)
    return row.numpy(), float((one_hot @ weights - row).abs().max())


def neighbours(
    table: Array, index: int, *, most: int = 5, skip: int = 0
) -> list[tuple[int, float]]:
    """Return the rows of a table (V, D) most similar to one by cosine, without ``skip`` first."""
    like = cosines(table)[index]
    order = [int(i) for i in np.argsort(-like, kind="stable") if i != index and i >= skip]
    return [(i, float(like[i])) for i in order[:most]]


def principal(table: Array) -> tuple[Array, Array, Array]:
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


def class_likeness(table: Array, classes: Sequence[str], skip: int = 0) -> tuple[float, float]:
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
