"""The last steps of a model that says one thing about a whole text: BERT's pooler."""

from __future__ import annotations

import torch

from tfm_core.inspect.walk import block
from tfm_core.inspect.walk.block_view import BlockView
from tfm_core.inspect.walk.forward import Subject
from tfm_core.inspect.walk.steps import Question, Seen, WalkStep, seen, shape_question
from tfm_core.sentences import N_


def positions(subject: Subject, step: WalkStep) -> WalkStep:
    """Return the step of positions with the segments and the norm that follow them."""
    segments = subject.model.get_submodule("segments")
    vector = segments.get_parameter("table.weight").detach()[0]
    normed = subject.cache["encoder.input"]
    axes = "B S:slots d_model"
    return WalkStep(
        step.name, N_("Positions and segments"), (*step.topics, "segments"),
        f"{step.code}\nnormed = norm(placed + segment)",
        (*step.before, seen("segment", N_("vector of the first segment"), vector, "d_model")),
        (*step.after, seen("normed", N_("the normalised sum"), normed, axes)),
        step.question, names={**step.names, "norm": segments.get_submodule("norm")},
        shown=step.shown,
    )  # fmt: skip


def answer(view: BlockView) -> WalkStep:
    """One vector for the whole text."""
    cache, axis = view.subject.cache, "T:tgt"
    answering, pooled = cache["output.answering"], cache["output.logits"]
    length = answering.size(1)
    made = seen("pooled", N_("one vector per text"), pooled, "B d_model")
    return WalkStep(
        "logits", N_("Pooler"), ("pooler",), "pooled = torch.tanh(dense(x[:, 0]))",
        (seen("x", N_("last vector of each position"), answering, f"B {axis} d_model"),),
        (made,),
        _one_vector(made, length),
        extra=block.blocks(view),
        names={"torch": torch, "dense": view.subject.model.get_submodule("output.dense")},
    )  # fmt: skip


def whole(view: BlockView) -> WalkStep:
    """All of it in one call."""
    subject = view.subject
    (src, tgt), pooled = subject.inputs, subject.cache["output.logits"]
    made = seen("pooled", N_("one vector per text"), pooled, "B d_model")
    return WalkStep(
        "whole", N_("The whole forward pass"), ("whole", "whole-pooler"),
        "pooled = model(src, tgt)",
        (seen("src", N_("source ids"), src, "B S:src"),
         seen("tgt", N_("only its length is used"), tgt, "B T:tgt")),
        (made,),
        _one_vector(made, src.size(1)),
        names={"model": subject.model},
    )  # fmt: skip


def _one_vector(made: Seen, length: int) -> Question:
    batch, d_model = made.shape
    return shape_question(
        made,
        N_("One vector per text: that of its first token."),
        ((batch, length, d_model), N_("Only the first token's vector is read.")),
        ((batch, length), N_("A text is a vector of d_model numbers.")),
        ((length, d_model), N_("Each text has its own vector.")),
        ((d_model,), N_("Each text has its own vector.")),
        ((d_model, batch), N_("The batch comes first.")),
    )  # fmt: skip
