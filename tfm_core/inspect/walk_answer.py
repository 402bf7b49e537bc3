"""The steps of whole stacks, up to the answer; and positions, which all families add alike."""

from __future__ import annotations

import torch
from torch import Tensor

from tfm_core.config import DecoderOnlyConfig, EncoderDecoderConfig
from tfm_core.config.shape import TextShape
from tfm_core.inspect.walk import (
    Question,
    Seen,
    Step,
    choice_question,
    number_question,
    seen,
    shape_question,
)
from tfm_core.inspect.walk_attention import MODULES, Place, mask_seen
from tfm_core.inspect.walk_subject import Subject


def positions(subject: Subject, axis: str, module: str, number: int) -> Step:
    """What is added to say where a token stands, or that nothing is."""
    tape = subject.tape
    position = str(getattr(subject.config, "position", "none"))
    embedded, placed = tape[f"{module}.unplaced"], tape[f"{module}.placed"]
    before = [seen("embedded", "vectors without place", embedded, f"B {axis} d_model")]
    code = "placed = embedded  # nothing is added here"
    rows = tape.get(f"{module}.rows")
    if rows is not None:
        before.append(seen("rows", "a row for each position", rows, f"{axis} d_model"))
        code = "placed = embedded + rows"
    batch, length, d_model = placed.shape
    if position == "learned":
        n = subject.model.get_parameter(f"{module}.table").numel()
        question = number_question(
            "How many parameters does the table of positions have?",
            n,
            f"{n // d_model} rows of {d_model} = {n:,}.",
        )
    else:
        question = shape_question(
            "the result, tokens with their places",
            (batch, length, d_model),
            (batch, length, 2 * d_model),
            (batch, 2 * length, d_model),
            (length, d_model),
            (batch, length, d_model, length),
        )
    return Step(
        number, "positions", "Positions", ("positions", f"position-{position}"), code,
        tuple(before), (seen("placed", "vectors with their place", placed, f"B {axis} d_model"),),
        question, shown="" if rows is None else "rows",
    )  # fmt: skip


def blocks(subject: Subject, stack: str, axis: str) -> tuple[Seen, ...]:
    """Return what comes out of each block of a stack."""
    return tuple(
        seen(f"block_{number}", f"after block {number}", value, f"B {axis} d_model")
        for number, value in enumerate(_residuals(subject, stack), 1)
    )


def _residuals(subject: Subject, stack: str) -> list[Tensor]:
    n = len(list(subject.model.get_submodule(f"{stack}.layers").children()))
    return [subject.tape[f"{stack}.layers.{i}.residual"] for i in range(n)]


def encoder_stack(place: Place, number: int = 15) -> Step:
    """All blocks of the encoder, one after the other."""
    subject, axis = place.subject, place.axis
    placed, memory = subject.tape["encoder.input"], subject.tape["encoder.output"]
    batch, length, d_model = memory.shape
    through = blocks(subject, "encoder", axis)
    before = [seen("placed", "vectors with their place", placed, f"B {axis} d_model")]
    code = "memory = encoder(placed)"
    if place.has("self_attention.mask"):
        before.append(mask_seen(place.got("self_attention.mask"), axis.partition(":")[2]))
        code = "memory = encoder(placed, mask=mask)"
    topics = ("encoder-stack", "final-norm") if subject.block.norm_first else ("encoder-stack",)
    return Step(
        number, "encoder-stack", "Encoder stack", topics, code, tuple(before),
        (seen("memory", "what the encoder understood", memory, f"B {axis} d_model"),),
        shape_question(
            f"the memory, after {len(through)} block{'s' if len(through) > 1 else ''}",
            (batch, length, d_model), (batch, len(through), length, d_model),
            (batch, length, len(through) * d_model + d_model), (batch, d_model), (length, d_model),
        ),
        extra=through, names={"encoder": subject.model.get_submodule("encoder")},
    )  # fmt: skip


def pooling(place: Place) -> Step:
    """One vector for the whole text."""
    subject, axis = place.subject, place.axis
    assert isinstance(subject.shape, TextShape)
    memory, pooled = subject.tape["encoder.output"], subject.tape["output.answering"]
    batch, length, d_model = memory.shape
    before = [seen("memory", "what the encoder understood", memory, f"B {axis} d_model")]
    code = "x = memory[:, :1]"
    if subject.shape.head == "mean":
        ids = subject.tape["src_embedding.ids"]
        keep = ids != subject.shape.pad_id
        before.append(seen("keep", "is it a word, not padding?", keep, f"B {axis}"))
        code = "share = keep / keep.sum(1, keepdim=True)\nx = share[:, None] @ memory"
    return Step(
        16, "pooling", "Pooling", ("pooling-text", f"pooling-text-{subject.shape.head}"), code,
        tuple(before), (seen("x", "one vector for each text", pooled, "B T:tgt d_model"),),
        shape_question(
            "what is left of the texts", (batch, 1, d_model), (batch, length, d_model),
            (batch, length), (1, d_model), (batch, 2 * length, d_model),
        ),
    )  # fmt: skip


def decoder_attention(place: Place) -> Step:
    """The target looks at itself, and not ahead."""
    subject, got, axes = place.subject, place.got, "B T:tgt d_model"
    x, weights = got("self_attention.asking"), got("self_attention.weights")
    relative = getattr(subject.model.get_submodule("decoder"), "relative", None)
    names: dict[str, object] = {"attention": place.module("self_attention")}
    shared = ""
    if relative is not None:
        shared, names["shared"] = ", **shared", relative(x)
    batch, length, n_heads, _, d_model = place.sizes
    if weights.is_meta:
        question = shape_question(
            "the attention of the target to itself", weights.shape, (batch, length, length),
            (batch, n_heads, length, d_model), (batch, length, n_heads, length),
        )  # fmt: skip
    else:
        mask = got("self_attention.mask").expand_as(weights)[place.example, 0]
        n = int((~mask).sum())
        question = number_question(
            f"One head's map has {length} x {length} weights. How many of this example's must "
            "be exactly 0?",
            n, f"{n}: everything above the diagonal, and every column of padding.",
        )  # fmt: skip
    mask_axes = "B 1 Q:tgt K:tgt"
    return Step(
        16, "decoder-attention", "Decoder: masked self-attention", ("decoder-attention",),
        f"output = attention(x, mask=tgt_mask{shared})",
        (
            seen("x", "the target so far", x, axes),
            seen("tgt_mask", "target mask: 1 = may attend", got("self_attention.mask"), mask_axes),
        ),
        (seen("output", "output of the attention", got("self_attention.output"), axes),),
        question,
        extra=(seen("weights", "attention weights", weights, "B H Q:tgt K:tgt"),),
        names=names, shown="weights",
    )  # fmt: skip


def cross_attention(place: Place) -> Step:
    """The target asks, the source answers."""
    got, axes = place.got, "B T:tgt d_model"
    weights, memory = got("cross_attention.weights"), got("cross_attention.asked")
    batch, n_heads, length, n_src = weights.shape
    return Step(
        17, "cross-attention", "Decoder: cross-attention", ("cross-attention",),
        "output = attention(x, memory, mask=mask)",
        (
            seen("x", "the target so far", got("cross_attention.asking"), axes),
            seen("memory", "what the encoder understood", memory, "B S:src d_model"),
            mask_seen(got("cross_attention.mask"), "src"),
        ),
        (seen("output", "output of the attention", got("cross_attention.output"), axes),),
        shape_question(
            "the map of weights in cross-attention",
            (batch, n_heads, length, n_src), (batch, n_heads, n_src, length),
            (batch, n_heads, length, length), (batch, n_heads, n_src, n_src),
            (batch, length, n_src),
        ),
        extra=(
            seen("weights", "attention weights", weights, "B H Q:tgt K:src"),
            seen("queries", "queries, of the target", got("cross_attention.query"),
                 "B H Q:tgt d_head"),
            seen("keys", "keys, of the source", got("cross_attention.key"), "B H K:src d_head"),
        ),
        names={"attention": place.module("cross_attention")}, shown="weights",
    )  # fmt: skip


def logits(place: Place) -> Step:
    """One number for each token of the vocabulary."""
    subject = place.subject
    tape, is_pair = subject.tape, isinstance(subject.config, EncoderDecoderConfig)
    answering, scores = tape["output.answering"], tape["output.logits"]
    before = [seen("x", "last vector of each position that answers", answering, "B T:tgt d_model")]
    code, extra = "logits = output(x)", blocks(subject, *_stack_of(place))
    names: dict[str, object] = {"output": subject.model.get_submodule("output")}
    if is_pair:
        inputs = tape["decoder.input"]
        first = "decoder.layers.0"
        before = [
            seen("placed", "the target, with its places", inputs, "B T:tgt d_model"),
            seen("memory", "what the encoder understood", tape["encoder.output"],
                 "B S:src d_model"),
            seen("tgt_mask", "target mask", tape[f"{first}.self_attention.mask"],
                 "B 1 Q:tgt K:tgt"),
            mask_seen(tape[f"{first}.cross_attention.mask"], "src"),
        ]  # fmt: skip
        code = (
            "x = decoder(placed, mask=tgt_mask, memory=memory, memory_mask=mask)\n"
            "logits = output(x)"
        )
        names["decoder"] = subject.model.get_submodule("decoder")
    batch, length, n_words = scores.shape
    d_model = subject.config.d_model
    title = "Decoder stack to logits" if _stack_of(place)[0] == "decoder" else "Logits"
    return Step(
        18, "logits", title, ("logits", f"logits-{subject.reader}"), code, tuple(before),
        (seen("logits", "a score for each token of the vocabulary", scores,
              "B T:tgt V:vocabulary"),),
        shape_question(
            "the logits", (batch, length, n_words), (batch, length, d_model), (batch, n_words),
            (batch, n_words, d_model), (batch, length),
        ),
        extra=extra, names=names,
    )  # fmt: skip


def _stack_of(place: Place) -> tuple[str, str]:
    config = place.subject.config
    if isinstance(config, EncoderDecoderConfig):
        return "decoder", "T:tgt"
    return ("decoder" if isinstance(config, DecoderOnlyConfig) else "encoder"), place.axis


def whole(subject: Subject, example: int) -> Step:
    """All of it in one call, and what the model says."""
    src, tgt = subject.inputs
    scores = subject.tape["output.logits"]
    axes = "B T:tgt V:vocabulary"
    return Step(
        19, "whole", "The whole forward pass", ("whole", f"whole-{subject.reader}"),
        "logits = model(src, tgt)\nprobabilities = logits.softmax(-1)\n"
        "predicted = logits.argmax(-1)",
        (
            seen("src", "source ids", src, "B S:src"),
            seen("tgt", "target ids, from <bos> on", tgt, "B T:tgt"),
        )
        if src.size(1)
        else (seen("tgt", "ids of the text, from <bos> on", tgt, "B T:tgt"),),
        (
            seen("logits", "a score for each token of the vocabulary", scores, axes),
            seen("probabilities", "a share for each token", scores.softmax(-1), axes),
            seen("predicted", "the best token's id", scores.argmax(-1), "B T:tgt"),
        ),
        _first_word(subject, scores, example),
        names={**MODULES, "model": subject.model, "src": src}, shown="probabilities",
    )  # fmt: skip


def _first_word(subject: Subject, scores: Tensor, example: int) -> Question:
    if scores.is_meta:
        batch, length, n_words = scores.shape
        return shape_question(
            "what comes out at the end", (batch, length, n_words), (batch, n_words),
            (length, n_words), (batch, length, subject.config.d_model),
        )  # fmt: skip
    return best_of(
        scores[example, 0],
        subject.tokens("vocabulary", 0) or (),
        "Which token does this model put first in its answer to this example?",
        " ".join(subject.truth[example]),
    )


def best_of(scores: Tensor, names: object, text: str, truth: str) -> Question:
    """Ask which of the four names with the largest scores (V,) is the best."""
    assert isinstance(names, list | tuple)
    possible = int((scores > torch.finfo(scores.dtype).min).sum())
    top = scores.topk(min(4, possible)).indices.tolist()
    share = float(scores.softmax(-1)[top[0]])
    because = f"“{names[top[0]]}” gets {share:.1%} of the probability."
    if truth:
        because += f" The truth is “{truth}”."
    return choice_question(text, str(names[top[0]]), [str(names[i]) for i in top[1:]], because)
