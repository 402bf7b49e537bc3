"""The steps from words to vectors: ids in a rectangle, and the rows of a table that they pick."""

from __future__ import annotations

import math

from torch import Tensor

from tfm_core.config import DecoderOnlyConfig
from tfm_core.config.shape import CaptionShape, TextShape
from tfm_core.inspect.walk.block_view import MODULES
from tfm_core.inspect.walk.forward import Subject
from tfm_core.inspect.walk.steps import (
    Question,
    Seen,
    WalkStep,
    number_question,
    seen,
    shape_question,
)
from tfm_core.sentences import N_
from tfm_core.variants.positions import POSITIONS


def positions(subject: Subject, axis: str, module: str, *, setting: str = "position") -> WalkStep:
    """What is added to say where a token stands, or that nothing is.

    setting: the one of the model that names the kind.
    """
    cache = subject.cache
    kind = POSITIONS[getattr(subject.config, setting)]
    embedded, placed = cache[f"{module}.unplaced"], cache[f"{module}.placed"]
    before = [seen("embedded", N_("vectors without place"), embedded, f"B {axis} d_model")]
    code = "placed = embedded  # nothing is added here"
    rows = cache.get(f"{module}.rows")
    if rows is not None:
        before.append(seen("rows", N_("a row for each position"), rows, f"{axis} d_model"))
        code = "placed = embedded + rows"
    batch, length, d_model = placed.shape
    if kind.has_table:
        n = subject.model.get_parameter(f"{module}.table").numel()
        question = number_question(
            N_("How many parameters does the table of positions have?"),
            n,
            N_("{n} rows of {d_model} = {n_2:,}.", n=n // d_model, d_model=d_model, n_2=n),
        )
    else:
        question = shape_question(
            N_("the result, tokens with their places"),
            (batch, length, d_model),
            (batch, length, 2 * d_model),
            (batch, 2 * length, d_model),
            (length, d_model),
            (batch, length, d_model, length),
        )
    return WalkStep(
        "positions", N_("Positions"), ("positions", kind.topic), code,
        tuple(before), (seen("placed", N_("vectors with their place"), placed,
        f"B {axis} d_model"),),
        question, shown="" if rows is None else "rows",
    )  # fmt: skip


def tokens(subject: Subject, example: int) -> WalkStep:
    """Sentences of different length become one rectangle of numbers."""
    src, tgt = subject.source, subject.inputs[-1]
    names: dict[str, object] = {**MODULES, "T": tgt.size(1), "targets": _rows(tgt)}
    code = "tgt = torch.tensor([row + [0] * (T - len(row)) for row in targets])"
    topic = "tokens"
    if isinstance(subject.shape, TextShape) and subject.shape.pad_id is None:
        code, topic = "tgt = torch.tensor(targets)", "tokens-no-padding"
        names["targets"] = [] if tgt.is_meta else tgt.tolist()
    if src is not None:
        names |= {"S": src.size(1), "sources": _rows(src)}
        code = f"src = torch.tensor([row + [0] * (S - len(row)) for row in sources])\n{code}"
    return WalkStep(
        "tokens", N_("Token tensors"), (topic, f"tokens-{subject.reader}"), code,
        (), ids_seen(subject), _tokens_question(subject, example), names=names,
    )  # fmt: skip


def _rows(ids: Tensor) -> list[list[int]]:
    """Return the ids of each example without its padding; none of a tensor without values."""
    return [] if ids.is_meta else [[i for i in row if i] for row in ids.tolist()]


def _tokens_question(subject: Subject, example: int) -> Question:
    ids, what = subject.inputs[-1], "caption" if subject.memory_axis else "text"
    if subject.source is not None:
        ids, what = subject.source, "source"
    no_padding = isinstance(subject.shape, TextShape) and subject.shape.pad_id is None
    if ids.is_meta or no_padding:
        return shape_question(
            N_("the {what}, as a tensor of ids", what=what), tuple(ids.shape),
            tuple(ids.shape)[::-1],
            (*ids.shape, subject.config.d_model), (ids.numel(),),
        )  # fmt: skip
    n = int((ids[example] == 0).sum())
    return number_question(
        N_(
            "Of the {size} places of this example's {what}, how many are padding?",
            size=ids.size(1),
            what=what,
        ),
        n,
        N_(
            "{n}: it has {size} tokens, the longest of the batch {size_2}.",
            n=n,
            size=ids.size(1) - n,
            size_2=ids.size(1),
        ),
    )


def ids_seen(subject: Subject) -> tuple[Seen, ...]:
    """Return what goes in; a language model and a captioner have no source."""
    src = subject.source
    what = N_("target ids") if src is not None else N_("ids of the text")
    what = N_("ids of the caption") if isinstance(subject.shape, CaptionShape) else what
    target = seen("tgt", N_("{what}, from <bos> on", what=what), subject.inputs[-1], "B T:tgt")
    return (target,) if src is None else (seen("src", N_("source ids"), src, "B S:src"), target)


def embedding(subject: Subject, axis: str, *, module: str = "src_embedding") -> WalkStep:
    """A row of a table for each id. axis: of its tokens; module: the embedding."""
    cache = subject.cache
    table = subject.model.get_submodule(f"{module}.table")
    ids, embedded = cache[f"{module}.ids"], cache[f"{module}.embedded"]
    batch, length, d_model = embedded.shape
    extra, has_source = [], subject.source is not None
    is_decoder_only = isinstance(subject.config, DecoderOnlyConfig)
    if has_source and "tgt_embedding.embedded" in cache and not is_decoder_only:
        target = cache["tgt_embedding.embedded"]
        extra = [seen("tgt_embedded", N_("the target's vectors"), target, "B T:tgt d_model")]
    if has_source and is_decoder_only:
        joined = cache["positions.unplaced"]
        extra = [seen("joined", N_("source and target, one sequence"), joined, f"B {axis} d_model")]
    n_words = table.get_parameter("weight").size(0)
    is_scaled = not isinstance(subject.shape, TextShape) or subject.shape.scale_embedding
    return WalkStep(
        "embedding", N_("Embedding"),
        ("embedding" if is_scaled else "embedding-unscaled",)
        + ((f"embedding-{subject.reader}",) if has_source or subject.memory_axis else ()),
        f"embedded = table(ids){' * math.sqrt(d_model)' if is_scaled else ''}",
        (seen("ids", N_("ids"), ids, f"B {axis}"),),
        (seen("embedded", N_("a vector for each token"), embedded, f"B {axis} d_model"),),
        shape_question(
            N_("the embedded source") if has_source else N_("the embedded text"),
            (batch, length, d_model), (batch, length), (batch, d_model, length),
            (batch, length, n_words), (n_words, d_model),
        ),
        extra=tuple(extra), names={"math": math, "table": table, "d_model": d_model},
    )  # fmt: skip
