"""The last steps of a model that says one thing about a whole text: BERT's pooler."""

from __future__ import annotations

import torch

from tfm_core.inspect.walk import block
from tfm_core.inspect.walk.block_view import BlockView
from tfm_core.inspect.walk.forward import Subject
from tfm_core.inspect.walk.steps import WalkStep, seen, shape_question
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
        (*step.after, seen("normed", N_("the sum of all, normalised"), normed, axes)),
        step.question, names={**step.names, "norm": segments.get_submodule("norm")},
        shown=step.shown,
    )  # fmt: skip


def answer(view: BlockView) -> WalkStep:
    """One vector for the whole text."""
    cache, axis = view.subject.cache, "T:tgt"
    answering, pooled = cache["output.answering"], cache["output.logits"]
    batch, length, d_model = answering.shape
    return WalkStep(
        "logits", N_("Pooler"), ("pooler",), "pooled = torch.tanh(dense(x[:, 0]))",
        (seen("x", N_("last vector of each position"), answering, f"B {axis} d_model"),),
        (seen("pooled", N_("one vector for each text"), pooled, "B d_model"),),
        shape_question(
            N_("what the pooler says of the batch"),
            (batch, d_model), (batch, length, d_model), (batch, length), (length, d_model),
            (d_model,),
        ),
        extra=block.blocks(view.subject, "encoder", view.axis),
        names={"torch": torch, "dense": view.subject.model.get_submodule("output.dense")},
    )  # fmt: skip


def whole(subject: Subject) -> WalkStep:
    """All of it in one call."""
    (src, tgt), pooled = subject.inputs, subject.cache["output.logits"]
    batch, d_model = pooled.shape
    return WalkStep(
        "whole", N_("The whole forward pass"), ("whole", "whole-pooler"),
        "pooled = model(src, tgt)",
        (seen("src", N_("source ids"), src, "B S:src"),
         seen("tgt", N_("only as long: its content is not seen"), tgt, "B T:tgt")),
        (seen("pooled", N_("one vector for each text"), pooled, "B d_model"),),
        shape_question(
            N_("what comes out at the end"), (batch, d_model), (batch, src.size(1), d_model),
            (batch, src.size(1)), (d_model, batch),
        ),
        names={"model": subject.model},
    )  # fmt: skip
