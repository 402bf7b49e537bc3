"""Models to scale, published or of the notebooks: settings, ends, and what is known of them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tfm_core.choices.config import MODEL_CONFIGS, Experiment, ModelConfig
from tfm_core.choices.config.shape import CaptionShape, ImageShape, Shape, TextShape
from tfm_core.data.tasks import data_shape
from tfm_core.sentences import Paragraph, StudentError, words


@dataclass(frozen=True, slots=True)
class Architecture:
    """A model to scale.

    ``architectures.toml`` holds its sizes, ``choices/architectures.md`` what is translated.
    src_len and tgt_len: tokens of one full example (0 for pictures). n_parameters: the published
    or recomputed count, exact; None where the paper does not fix it. source: where it stands.
    batch: examples that the walk shows. own_class: the path of the module that is the notebook's
    class, where more stands around it here. note: what its text says of it, and what is left open.
    """

    name: str
    label: str
    model: ModelConfig
    shape: Shape
    src_len: int = 0
    tgt_len: int = 0
    n_parameters: int | None = None
    source: str = ""
    batch: int = 1
    own_class: str = ""
    note: str = ""


def of_experiment(experiment: Experiment, label: str) -> Architecture:
    """Return the architecture of an experiment, with the longest sequences of its task."""
    shape = data_shape(experiment)
    src, tgt = 0, 0
    if isinstance(shape, TextShape):
        task = experiment.task
        src, tgt = task.max_src_len, task.n_answers
    elif isinstance(shape, CaptionShape):
        tgt = shape.tgt_len
    return Architecture("", label, experiment.model, shape, src, tgt)


SHAPES: Mapping[str, type[Any]] = {"vit": ImageShape, "captioner": CaptionShape}
"""Family -> what stands at its ends; of all others text."""


def _architecture(name: str, entry: Mapping[str, Any]) -> Architecture:
    style: Mapping[str, Any] = _KNOWN["style"].get(entry.get("style"), {})
    values = {**style, **entry}
    settings, ends = (style.get(part, {}) | entry.get(part, {}) for part in ("model", "shape"))
    if ends.get("pad_id") == "none":
        ends["pad_id"] = None
    family = values["family"]
    facts = {part: values[part] for part in _FACTS if part in values}
    with suppress(KeyError):  # many published models need no words but their name and paper
        facts |= words(f"choices/architectures/{name}")
    return Architecture(
        name,
        model=MODEL_CONFIGS[family].parse(settings),
        shape=SHAPES.get(family, TextShape)(**ends),
        **facts,
    )


_FACTS = ("label", "source", "src_len", "tgt_len", "n_parameters", "batch", "own_class")
_KNOWN = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
ARCHITECTURES = {name: _architecture(name, entry) for name, entry in _KNOWN["model"].items()}


@dataclass(frozen=True, slots=True)
class FreeSizes:
    """Words of each vocabulary and tokens of one example; 0 takes the task's."""

    src_vocabulary: int = 0
    tgt_vocabulary: int = 0
    src_len: int = 0
    tgt_len: int = 0


def offered(shape: Shape) -> tuple[str, ...]:
    """Return which sizes a model of this shape has; none where it reads pictures."""
    if not isinstance(shape, TextShape):
        return ()
    if not shape.has_source:
        return "tgt_vocabulary", "tgt_len"
    if shape.is_label:
        return "src_vocabulary", "src_len"
    return "src_vocabulary", "tgt_vocabulary", "src_len", "tgt_len"


def sizes_of(known: Architecture) -> FreeSizes:
    """Return the sizes that a model has."""
    if not isinstance(known.shape, TextShape):
        return FreeSizes()
    shape = known.shape
    return FreeSizes(shape.src_vocabulary, shape.tgt_vocabulary, known.src_len, known.tgt_len)


def resized(known: Architecture, sizes: FreeSizes) -> Architecture:
    """Return a model with other sizes, as far as it has them; itself where none differs.

    Raises ValueError, in a sentence, where a learned position table is too short for the lengths.
    """
    names = offered(known.shape)
    current = asdict(sizes_of(known))
    changed = {name: size for name, size in asdict(sizes).items() if size and name in names}
    if all(current[name] == size for name, size in changed.items()):
        return known
    assert isinstance(known.shape, TextShape)
    new = FreeSizes(**(current | changed))
    if not known.shape.has_source:
        new = replace(new, src_vocabulary=new.tgt_vocabulary)
    n_rows = known.model.n_positions
    needed = known.model.joined_len(new.src_len, new.tgt_len)
    if n_rows is not None and needed > n_rows:
        raise StudentError(Paragraph("facts/too-long", needed=needed, max_len=n_rows))
    shape = replace(
        known.shape, src_vocabulary=new.src_vocabulary, tgt_vocabulary=new.tgt_vocabulary
    )
    return replace(known, shape=shape, src_len=new.src_len, tgt_len=new.tgt_len)
