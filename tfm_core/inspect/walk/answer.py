"""The steps up to the answer of a text model: pooling, logits, and the whole in one call."""

from __future__ import annotations

import torch
from torch import Tensor

from tfm_core.config import DecoderOnlyConfig
from tfm_core.config.shape import CaptionShape, TextShape
from tfm_core.decoding import greedy
from tfm_core.inspect.walk.block import blocks
from tfm_core.inspect.walk.block_view import MODULES, BlockView, mask_seen
from tfm_core.inspect.walk.forward import Subject
from tfm_core.inspect.walk.steps import Question, WalkStep, choice_question, seen, shape_question
from tfm_core.inspect.walk.tokens import ids_seen
from tfm_core.layers.masks import is_token
from tfm_core.sentences import N_, Sentence, joined


def pooling(view: BlockView) -> WalkStep:
    """One vector for the whole text."""
    subject, axis = view.subject, view.axis
    assert isinstance(subject.shape, TextShape)
    chosen = subject.shape.pooling
    assert chosen is not None
    memory, pooled = subject.cache["encoder.output"], subject.cache["output.answering"]
    batch, length, d_model = memory.shape
    before = [seen("memory", N_("what the encoder understood"), memory, f"B {axis} d_model")]
    *lines, last = (line.format(x="memory", keep="keep") for line in chosen.of_words)
    code = "\n".join([*lines, f"x = {last}"])
    if chosen.reads_padding:
        ids = subject.cache["src_embedding.ids"]
        keep = is_token(ids, subject.shape.pad_id)
        before.append(seen("keep", N_("is it a word, not padding?"), keep, f"B {axis}"))
    return WalkStep(
        "pooling", N_("Pooling"), ("pooling-text", chosen.walk_topic_text), code,
        tuple(before), (seen("x", N_("one vector for each text"), pooled, "B T:tgt d_model"),),
        shape_question(
            N_("what is left of the texts"), (batch, 1, d_model), (batch, length, d_model),
            (batch, length), (1, d_model), (batch, 2 * length, d_model),
        ),
    )  # fmt: skip


def logits(view: BlockView) -> WalkStep:
    """One number for each token of the vocabulary."""
    subject = view.subject
    cache, looked_at = subject.cache, subject.memory_axis
    answering, scores = cache["output.answering"], cache["output.logits"]
    before = [
        seen("x", N_("last vector of each position that answers"), answering, "B T:tgt d_model")
    ]
    code, extra = "logits = output(x)", blocks(subject, *_stack_of(view))
    names: dict[str, object] = {"output": subject.model.get_submodule("output")}
    if looked_at:
        inputs = cache["decoder.input"]
        first = "decoder.layers.0"
        before = [
            seen("placed", N_("the target, with its places"), inputs, "B T:tgt d_model"),
            seen("memory", N_("what the encoder understood"), cache["encoder.output"],
                 f"B {looked_at} d_model"),
            seen("tgt_mask", N_("target mask"), cache[f"{first}.self_attention.mask"],
                 "B 1 Q:tgt K:tgt"),
        ]  # fmt: skip
        memory = "memory=memory"
        if f"{first}.cross_attention.mask" in cache:
            memory += ", memory_mask=mask"
            before.append(mask_seen(cache[f"{first}.cross_attention.mask"], "src"))
        code = f"x = decoder(placed, mask=tgt_mask, {memory})\nlogits = output(x)"
        names["decoder"] = subject.model.get_submodule("decoder")
    batch, length, n_words = scores.shape
    d_model = subject.config.d_model
    title = N_("Decoder stack to logits") if _stack_of(view)[0] == "decoder" else "Logits"
    reader = "encoder-decoder" if looked_at else subject.reader
    return WalkStep(
        "logits", title, ("logits", f"logits-{reader}"), code, tuple(before),
        (seen("logits", N_("a score for each token of the vocabulary"), scores,
              "B T:tgt V:vocabulary"),),
        shape_question(
            N_("the logits"), (batch, length, n_words), (batch, length, d_model), (batch, n_words),
            (batch, n_words, d_model), (batch, length),
        ),
        extra=extra, names=names,
    )  # fmt: skip


def _stack_of(view: BlockView) -> tuple[str, str]:
    if view.subject.memory_axis:
        return "decoder", "T:tgt"
    is_decoder = isinstance(view.subject.config, DecoderOnlyConfig)
    return ("decoder" if is_decoder else "encoder"), view.axis


def whole(subject: Subject, example: int) -> WalkStep:
    """All of it in one call, and what the model says."""
    read, scores, shape = subject.inputs[0], subject.cache["output.logits"], subject.shape
    axes = "B T:tgt V:vocabulary"
    before, name = ids_seen(subject), "src"
    if isinstance(shape, CaptionShape):
        before, name = (
            (seen("images", N_("pictures, normalised"), read, "B C Y X"), *before),
            "images",
        )
    code = (
        f"logits = model({name}, tgt)\nprobabilities = logits.softmax(-1)\n"
        "predicted = logits.argmax(-1)"
    )
    after = [
        seen("logits", N_("a score for each token of the vocabulary"), scores, axes),
        seen("probabilities", N_("a share for each token"), scores.softmax(-1), axes),
        seen("predicted", N_("the best token's id"), scores.argmax(-1), "B T:tgt"),
    ]
    names: dict[str, object] = {**MODULES, "model": subject.model, name: read}
    if isinstance(shape, CaptionShape) and subject.described is not None:
        code += "\nwritten = greedy(model, images, max_len=longest).ids"
        ids = subject.described.written
        after.append(seen("written", N_("ids of the caption that it writes"), ids, "B W:written"))
        names |= {"greedy": greedy, "longest": shape.tgt_len}
    return WalkStep(
        "whole", N_("The whole forward pass"),
        ("whole", f"whole-{subject.reader}"), code, before, tuple(after),
        _likely_word(subject, scores, example), names=names, shown="probabilities",
    )  # fmt: skip


def _likely_word(subject: Subject, scores: Tensor, example: int) -> Question:
    """Ask for the first word, or for the first one of a caption that names what is seen."""
    if scores.is_meta:
        batch, length, n_words = scores.shape
        return shape_question(
            N_("what comes out at the end"), (batch, length, n_words), (batch, n_words),
            (length, n_words), (batch, length, subject.config.d_model),
        )  # fmt: skip
    position, text = 0, N_("Which token does this model put first in its answer to this example?")
    truth = " ".join(subject.truth[example])
    if subject.described is not None:
        boxes = subject.described.boxes[example]
        position = next((t for t, box in enumerate(boxes) if box is not None), 0)
        said = " ".join((subject.tokens("tgt", example) or ())[: position + 1])
        text = N_(
            "After “{said}”, which word does this model find likeliest for this picture?",
            said=said,
        )
        truth = subject.truth[example][position]
    names = subject.tokens("vocabulary", 0) or ()
    return best_of(scores[example, position], names, text, truth)


def best_of(scores: Tensor, names: object, text: str, truth: str) -> Question:
    """Ask which of the four names with the largest scores (V,) is the best."""
    assert isinstance(names, list | tuple)
    possible = int((scores > torch.finfo(scores.dtype).min).sum())
    top = scores.topk(min(4, possible)).indices.tolist()
    share = float(scores.softmax(-1)[top[0]])
    because: Sentence = N_(
        "“{names}” gets {share:.1%} of the probability.", names=names[top[0]], share=share
    )
    if truth:
        because = joined(because, N_("The truth is “{truth}”.", truth=truth))
    return choice_question(text, str(names[top[0]]), [str(names[i]) for i in top[1:]], because)
