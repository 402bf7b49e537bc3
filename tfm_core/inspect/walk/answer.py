"""The steps up to the answer of a text model: pooling, logits, and the whole in one call."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from tfm_core.choices.config import built
from tfm_core.choices.config.shape import CaptionShape, TextShape
from tfm_core.choices.variants.poolings import POOLINGS
from tfm_core.data.opened.spelling import text_of
from tfm_core.decoding import greedy
from tfm_core.inspect.questions import Question, choice_question
from tfm_core.inspect.walk.block import blocks
from tfm_core.inspect.walk.block_view import BlockView, mask_seen, stack_mask
from tfm_core.inspect.walk.forward import Subject
from tfm_core.inspect.walk.steps import StepTensor, WalkStep, seen, shape_question
from tfm_core.inspect.walk.tokens import ids_seen
from tfm_core.layers.masks import is_token
from tfm_core.sentences import N_, Sentence, StudentError, joined


def pooling(view: BlockView) -> WalkStep:
    """One vector for the whole text."""
    subject, axis = view.subject, view.axis
    assert isinstance(subject.shape, TextShape)
    chosen = POOLINGS[view.part.variant]
    memory, pooled = subject.cache["encoder.output"], subject.cache["output.answering"]
    batch, length, d_model = memory.shape
    *lines, last = (line.format(x="memory", keep="keep") for line in chosen.of_words)
    made = seen("x", N_("one vector per text"), pooled, "B T:tgt d_model")
    keeps = []
    if chosen.reads_padding:
        keep = is_token(subject.cache["src_embedding.ids"], subject.shape.pad_id)
        keeps = [seen("keep", N_("1 = a word, 0 = padding"), keep, f"B {axis}")]
    return view.step(
        "pooling",
        N_("Pooling"),
        ("pooling-text", f"pooling-text-{chosen.name}"),
        "\n".join([*lines, f"x = {last}"]),
        shape_question(
            made,
            N_("One vector per text; the token axis has size 1."),
            ((batch, length, d_model), N_("That is still a vector per token.")),
            ((batch, length), N_("A text is a vector of d_model numbers.")),
            ((1, d_model), N_("Each text has its own vector.")),
            ((batch, 2 * length, d_model), N_("Pooling adds no tokens.")),
        ),
        seen("memory", N_("the encoder's output"), memory, f"B {axis} d_model"),
        *keeps,
        made,
    )


def logits(view: BlockView) -> WalkStep:
    """One number for each token of the vocabulary."""
    subject = view.subject
    cache, looked_at = subject.cache, subject.memory_axis
    made = seen("logits", N_("a score per token"), cache["output.logits"], "B T:tgt V:vocabulary")
    title, topics, code = N_("Logits"), ("logits", f"logits-{subject.reader}"), "logits = output(x)"
    label = N_("last vector of each answering position")
    tensors = [seen("x", label, cache["output.answering"], "B T:tgt d_model")]
    names: dict[str, object] = {"output": subject.model.get_submodule("output")}
    if looked_at:
        title, topics = N_("Decoder stack to logits"), ("logits-encoder-decoder", "logits")
        axes = f"B {looked_at} d_model"
        tensors = [
            seen(
                "placed",
                N_("the target, with positions"),
                cache["decoder.input"],
                "B T:tgt d_model",
            ),
            seen("memory", N_("the encoder's output"), cache["encoder.output"], axes),
            seen("tgt_mask", N_("target mask"), stack_mask(subject, "decoder"), "B 1 Q:tgt K:tgt"),
        ]
        memory = "memory=memory"
        mask = cache.get("decoder.layers.0.cross_attention.mask")
        if mask is not None:
            memory += ", memory_mask=mask"
            tensors.append(mask_seen(mask, "src"))
        code = f"x = decoder(placed, mask=tgt_mask, {memory})\nlogits = output(x)"
        names["decoder"] = subject.model.get_submodule("decoder")
    return view.step(
        "logits",
        title,
        topics,
        code,
        about_logits(made, built(subject.config).d_model),
        *tensors,
        made,
        *blocks(view),
        names=names,
    )


_WRITERS = ("encoder-decoder", "decoder-only", "language")


def whole(view: BlockView) -> WalkStep:
    """The whole forward pass, and its prediction."""
    subject, example = view.subject, view.example
    read, scores, shape = subject.inputs[0], subject.cache["output.logits"], subject.shape
    axes = "B T:tgt V:vocabulary"
    tensors, name = list(ids_seen(subject)), "src"
    if isinstance(shape, CaptionShape):
        tensors.append(seen("images", N_("normalised pictures"), read, "B C Y X"))
        name = "images"
    code = (
        f"logits = model({name}, tgt)\nprobabilities = logits.softmax(-1)\n"
        "predicted = logits.argmax(-1)"
    )
    made = seen("logits", N_("a score per token"), scores, axes)
    tensors += [
        made,
        seen("probabilities", N_("probability of each token"), scores.softmax(-1), axes),
        seen("predicted", N_("id of the best token"), scores.argmax(-1), "B T:tgt"),
    ]
    names: dict[str, object] = {"model": subject.model, name: read}
    question = _likely_word(subject, made, example)
    writes_as = "writing" if subject.reader in _WRITERS else subject.reader
    if isinstance(shape, CaptionShape) and subject.described is not None:
        code += "\nwritten = greedy(model, images, max_len=longest).ids"
        ids = subject.described.written
        tensors.append(seen("written", N_("ids of the written caption"), ids, "B W:written"))
        question = replace(question, values=(*question.values, "written"))
        names |= {"greedy": greedy, "longest": shape.tgt_len}
    return view.step(
        "whole",
        N_("The whole forward pass"),
        ("whole", f"whole-{writes_as}"),
        code,
        question,
        *tensors,
        names=names,
        shown="probabilities",
    )


def about_logits(made: StepTensor, d_model: int) -> Question:
    """Ask for the shape of (B, T, V); d_model: of the vectors that they are made of."""
    batch, length, n_words = made.shape
    return shape_question(
        made,
        N_("Each answering position scores every token."),
        ((batch, length, d_model), N_("The last matrix turns these vectors into scores.")),
        ((batch, n_words), N_("Every position answers, not one per example.")),
        ((batch, n_words, d_model), N_("A token's score is one number.")),
        ((batch, length), N_("Those would be ids, which argmax gives.")),
        given=N_("The vocabulary has {n:,} tokens.", n=n_words),
    )


def _likely_word(subject: Subject, made: StepTensor, example: int) -> Question:
    """Ask for the first word, or for the first one of a caption that names what is seen."""
    scores = made.value
    if scores.is_meta or not subject.truth:
        return about_logits(made, built(subject.config).d_model)
    position, text = 0, N_("Which token does the model answer first?")
    truth = text_of(subject.truth[example])
    if subject.described is not None:
        boxes = subject.described.boxes[example]
        position = next((t for t, box in enumerate(boxes) if box is not None), 0)
        before = " ".join((subject.tokens("tgt", example) or ())[: position + 1])
        text = N_("After “{before}”, which word is likeliest for this picture?", before=before)
        truth = subject.truth[example][position]
    names = subject.tokens("vocabulary", 0) or ()
    return best_of(scores[example, position], names, text, truth)


def best_of(scores: Tensor, names: object, text: str, truth: str) -> Question:
    """Ask which of the four names with the largest scores (V,) is the best."""
    assert isinstance(names, list | tuple)
    possible = int((scores > torch.finfo(scores.dtype).min).sum())
    if not possible:
        raise StudentError("This model answers NaN: its training diverged.")
    top = scores.topk(min(4, possible)).indices.tolist()
    share = float(scores.softmax(-1)[top[0]])
    because: Sentence = N_("“{names}” gets {share:.1%}.", names=names[top[0]], share=share)
    if truth:
        because = joined(because, N_("The truth is “{truth}”.", truth=truth))
    shares = scores.softmax(-1)
    wrong = {
        str(names[i]): N_("“{name}” gets {share:.1%}.", name=names[i], share=float(shares[i]))
        for i in top[1:]
    }
    return choice_question(
        text, str(names[top[0]]), wrong, because, values=("logits", "probabilities", "predicted")
    )


def pooler(view: BlockView) -> WalkStep:
    """One vector for the whole text."""
    cache, axis = view.subject.cache, "T:tgt"
    answering, pooled = cache["output.answering"], cache["output.logits"]
    length = answering.size(1)
    made = seen("pooled", N_("one vector per text"), pooled, "B d_model")
    return view.step(
        "logits",
        N_("Pooler"),
        ("pooler",),
        "pooled = torch.tanh(dense(x[:, 0]))",
        _one_vector(made, length),
        seen("x", N_("last vector of each position"), answering, f"B {axis} d_model"),
        made,
        *blocks(view),
        names={"dense": view.subject.model.get_submodule("output.dense")},
    )


def pooler_whole(view: BlockView) -> WalkStep:
    """The whole forward pass of a pooler."""
    subject = view.subject
    (src, tgt), pooled = subject.inputs, subject.cache["output.logits"]
    made = seen("pooled", N_("one vector per text"), pooled, "B d_model")
    return view.step(
        "whole",
        N_("The whole forward pass"),
        ("whole", "whole-pooler"),
        "pooled = model(src, tgt)",
        _one_vector(made, src.size(1)),
        seen("src", N_("source ids"), src, "B S:src"),
        seen("tgt", N_("only its length is used"), tgt, "B T:tgt"),
        made,
        names={"model": subject.model},
    )


def _one_vector(made: StepTensor, length: int) -> Question:
    batch, d_model = made.shape
    return shape_question(
        made,
        N_("One vector per text: that of its first token."),
        ((batch, length, d_model), N_("Only the first token's vector is read.")),
        ((batch, length), N_("A text is a vector of d_model numbers.")),
        ((length, d_model), N_("Each text has its own vector.")),
        ((d_model,), N_("Each text has its own vector.")),
        ((d_model, batch), N_("The batch comes first.")),
    )
