"""The steps behind the last block: pooling, scores of the answers, and the whole in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from tfm_core.choices.config import built
from tfm_core.choices.config.shape import CaptionShape, TextShape
from tfm_core.choices.variants.stems import POOLINGS
from tfm_core.data.vocabulary import text_of_names
from tfm_core.decoding import greedy
from tfm_core.inspect.questions import Question, choice_question
from tfm_core.layers.masks import is_token
from tfm_core.sentences import N_, Sentence, StudentError, joined
from tfm_core.trace.blocks import block_outputs
from tfm_core.trace.steps import Step, StepTensor, View, ask_number, ask_shape, stack_mask
from tfm_core.trace.tokens import ids_seen


def pooling(view: View) -> Step:
    """One vector for the whole text."""
    subject = view.subject
    assert isinstance(subject.shape, TextShape)
    chosen = POOLINGS[view.part.variant]
    batch, length, d_model = view.recorded("memory").shape
    *lines, last = (line.format(x="memory", keep="keep") for line in chosen.of_words)
    label = N_("one vector per text")
    made = view.seen("x", label, "output.answering", "B T:tgt d_model")
    keeps = []
    if chosen.reads_padding:
        keep = is_token(subject.cache["src_embedding.ids"], subject.shape.pad_id)
        keeps = [view.seen("keep", N_("1 = a word, 0 = padding"), keep, "B {tokens}")]
    return view.step(
        N_("Pooling"),
        ("pooling-text", f"pooling-text-{chosen.name}"),
        "\n".join([*lines, f"x = {last}"]),
        ask_shape(
            "pooling_of_words",
            made,
            {
                "tokens": (batch, length, d_model),
                "width": (batch, length),
                "alone": (1, d_model),
                "twice": (batch, 2 * length, d_model),
            },
        ),
        *keeps,
        made,
    )


def picture_pooling(view: View) -> Step:
    """One vector for the picture."""
    batch, n, d_model = view.recorded("memory").shape
    chosen = POOLINGS[view.part.variant]
    return view.step(
        N_("Pooling"),
        ("pooling", f"pooling-{chosen.name}"),
        f"pooled = {chosen.of_patches.format(x='memory')}",
        ask_shape(
            "pooling",
            view.recorded("pooled"),
            {
                "width": (batch, n),
                "tokens": (batch, n, d_model),
                "alone": (n, d_model),
                "vector": (d_model,),
            },
        ),
    )


def head(view: View) -> Step:
    """A score for each class."""
    d_model, n_classes = (view.recorded(name).shape[1] for name in ("pooled", "logits"))
    n = d_model * n_classes + n_classes
    wrong = {"unbiased": d_model * n_classes, "sum": d_model + n_classes}
    question = ask_number("head", n, wrong, d_model=d_model, n_classes=n_classes)
    return view.step(N_("Head"), ("head",), "logits = head(pooled)", question)


def picture_whole(view: View) -> Step:
    """The whole forward pass of a model of pictures, and its prediction."""
    subject, made = view.subject, view.recorded("logits")
    batch, n = made.shape
    wrong: dict[str, Sequence[int]] = {"one": (n,), "best": (batch,), "swapped": (n, batch)}
    question = ask_shape("classes", made, wrong)
    if made.has_values:
        names = subject.tokens("classes", 0) or ()
        truth = " ".join(subject.truth[view.example]) if subject.truth else ""
        text = N_("Which class does the model give this picture?")
        question = _best_of(made.value[view.example], names, text, truth)
    chances, label = made.value.softmax(-1), N_("probability of each class")
    return view.step(
        N_("The whole forward pass"),
        ("whole",),
        "logits = model(images)\nprobabilities = logits.softmax(-1)",
        question,
        view.seen("probabilities", label, chances, "B classes:classes"),
        names={"model": subject.model},
        shown="probabilities",
    )


def logits(view: View) -> Step:
    """One number for each token of the vocabulary."""
    subject = view.subject
    title, topics, code = N_("Logits"), ("logits", f"logits-{subject.reader}"), "logits = output(x)"
    vectors, label = "B T:tgt d_model", N_("last vector of each answering position")
    tensors = [view.seen("x", label, "output.answering", vectors)]
    if subject.memory_axis:
        title, topics = N_("Decoder stack to logits"), ("logits-encoder-decoder", "logits")
        tensors = [
            view.seen("placed", N_("the target, with positions"), "decoder.input", vectors),
            view.seen(
                "tgt_mask", N_("target mask"), stack_mask(subject, "decoder"), "B 1 Q:tgt K:tgt"
            ),
        ]
        memory = "memory=memory"
        mask = subject.cache.get("decoder.layers.0.cross_attention.mask")
        if mask is not None:
            memory += ", memory_mask=mask"
            tensors.append(view.mask(mask, "src"))
        code = f"x = decoder(placed, mask=tgt_mask, {memory})\nlogits = output(x)"
    return view.step(
        title,
        topics,
        code,
        about_logits(view.recorded("logits"), built(subject.config).d_model),
        *tensors,
        *block_outputs(view),
    )


_WRITERS = ("encoder-decoder", "decoder-only", "language")


def whole(view: View) -> Step:
    """The whole forward pass, and its prediction."""
    subject = view.subject
    made, tensors = view.recorded("logits"), list(ids_seen(view))
    name, names = "src", dict[str, object]({"src": subject.inputs[0]})
    if isinstance(subject.shape, CaptionShape):
        name, names = "images", {}
    code = (
        f"logits = model({name}, tgt)\nprobabilities = logits.softmax(-1)\n"
        "predicted = logits.argmax(-1)"
    )
    chances, label = made.value.softmax(-1), N_("probability of each token")
    best, words = made.value.argmax(-1), N_("id of the best token")
    tensors += [
        view.seen("probabilities", label, chances, "B T:tgt V:vocabulary"),
        view.seen("predicted", words, best, "B T:tgt"),
    ]
    question = _likely_word(view, made)
    writes_as = "writing" if subject.reader in _WRITERS else subject.reader
    if isinstance(subject.shape, CaptionShape) and subject.described is not None:
        code += "\nwritten = greedy(model, images, max_len=longest).ids"
        ids, label = subject.described.written, N_("ids of the written caption")
        tensors.append(view.seen("written", label, ids, "B W:written"))
        question = replace(question, values=(*question.values, "written"))
        names |= {"greedy": greedy, "longest": subject.shape.tgt_len}
    return view.step(
        N_("The whole forward pass"),
        ("whole", f"whole-{writes_as}"),
        code,
        question,
        *tensors,
        names={"model": subject.model, **names},
        shown="probabilities",
    )


def about_logits(made: StepTensor, d_model: int) -> Question:
    """Ask for the shape of (B, T, V); d_model: of the vectors that they are made of."""
    batch, length, n_words = made.shape
    wrong: dict[str, Sequence[int]] = {
        "vectors": (batch, length, d_model),
        "one": (batch, n_words),
        "wide": (batch, n_words, d_model),
        "ids": (batch, length),
    }
    return ask_shape("logits", made, wrong, has_given=True, n=n_words)


def _likely_word(view: View, made: StepTensor) -> Question:
    """Ask for the first word, or for the first one of a caption that names what is seen."""
    subject, example, scores = view.subject, view.example, made.value
    if scores.is_meta or not subject.truth:
        return about_logits(made, built(subject.config).d_model)
    position, text = 0, N_("Which token does the model answer first?")
    truth = text_of_names(subject.truth[example])
    if subject.described is not None:
        boxes = subject.described.boxes[example]
        position = next((t for t, box in enumerate(boxes) if box is not None), 0)
        before = " ".join((subject.tokens("tgt", example) or ())[: position + 1])
        text = N_("After “{before}”, which word is likeliest for this picture?", before=before)
        truth = subject.truth[example][position]
    names = subject.tokens("vocabulary", 0) or ()
    return _best_of(scores[example, position], names, text, truth)


def _best_of(scores: Tensor, names: Sequence[str], text: str, truth: str) -> Question:
    """Ask which of the four names with the largest scores (V,) is the best."""
    possible = int((scores > torch.finfo(scores.dtype).min).sum())
    if not possible:
        raise StudentError("This model answers NaN: its training diverged.")
    top = scores.topk(min(4, possible)).indices.tolist()
    shares = scores.detach().softmax(-1)
    share = float(shares[top[0]])
    because: Sentence = N_("“{names}” gets {share:.1%}.", names=names[top[0]], share=share)
    if truth:
        because = joined(because, N_("The truth is “{truth}”.", truth=truth))
    wrong = {
        str(names[i]): N_("“{name}” gets {share:.1%}.", name=names[i], share=float(shares[i]))
        for i in top[1:]
    }
    return choice_question(
        text, str(names[top[0]]), wrong, because, values=("logits", "probabilities", "predicted")
    )


def pooler(view: View) -> Step:
    """One vector for the whole text."""
    label = N_("last vector of each position")
    x = view.seen("x", label, "output.answering", "B T:tgt d_model")
    return view.step(
        N_("Pooler"),
        ("pooler",),
        "pooled = torch.tanh(dense(x[:, 0]))",
        _one_vector(view.recorded("pooled"), x.shape[1]),
        x,
        *block_outputs(view),
        names={"dense": view.subject.model.get_submodule("output.dense")},
    )


def pooler_whole(view: View) -> Step:
    """The whole forward pass of a pooler."""
    return view.step(
        N_("The whole forward pass"),
        ("whole", "whole-pooler"),
        "pooled = model(src, tgt)",
        _one_vector(view.recorded("pooled"), view.recorded("src").shape[1]),
        names={"model": view.subject.model},
    )


def _one_vector(made: StepTensor, length: int) -> Question:
    batch, d_model = made.shape
    wrong: dict[str, Sequence[int]] = {
        "tokens": (batch, length, d_model),
        "width": (batch, length),
        "alone": (length, d_model),
        "vector": (d_model,),
        "swapped": (d_model, batch),
    }
    return ask_shape("pooler", made, wrong)
