"""The steps up to the answer of a text model: pooling, logits, and the whole in one call."""

from __future__ import annotations

import torch
from torch import Tensor

from tfm_core.config import DecoderOnlyConfig, EncoderDecoderConfig
from tfm_core.config.shape import TextShape
from tfm_core.inspect.walk import Question, Step, choice_question, seen, shape_question
from tfm_core.inspect.walk_forward import Subject
from tfm_core.inspect.walk_place import MODULES, Place, mask_seen
from tfm_core.inspect.walk_stack import blocks


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
    family = str(getattr(subject.config, "family", ""))
    assert isinstance(subject.shape, TextShape)
    family = "label" if subject.shape.is_label else family
    return Step(
        18, "logits", title, ("logits", f"logits-{family}"), code, tuple(before),
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
        19, "whole", "The whole forward pass", ("whole", "whole-text"),
        "logits = model(src, tgt)\nprobabilities = logits.softmax(-1)\n"
        "predicted = logits.argmax(-1)",
        ((seen("src", "source ids", src, "B S:src"),) if src.size(1) else ())
        + (seen("tgt", "target ids, from <bos> on", tgt, "B T:tgt"),),
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
