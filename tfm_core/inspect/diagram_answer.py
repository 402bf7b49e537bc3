"""What stands behind the stacks of a diagram: many vectors become one, and the answer."""

from __future__ import annotations

from tfm_core.config import TextModelConfig
from tfm_core.config.shape import ImageShape, TextShape
from tfm_core.inspect.drawing import Drawing


def pooled(drawing: Drawing, x: str, shape: TextShape, length: int) -> str:
    """Draw how many vectors become one."""
    label = "Take the CLS token" if shape.head == "cls" else "Mean of all words"
    pool = drawing.node("pool", label, "data")
    drawing.edge(x, pool, f"(B, {length}, {drawing.config.d_model})")
    return pool


def answer(drawing: Drawing, x: str, words: str, answers: int) -> None:
    """Draw the last layer and what comes out; words: the shape that goes in."""
    label, out = _last_layer(drawing, answers)
    head = drawing.node("output", label, "output")
    drawing.edge(x, head, words)
    shape = drawing.shape
    is_pooler = isinstance(shape, TextShape) and shape.head == "pooler"
    logits = drawing.node("logits", "Vector of the text" if is_pooler else "Logits", "data")
    drawing.edge(head, logits, out)


def _last_layer(drawing: Drawing, answers: int) -> tuple[str, str]:
    """Return the label of the last layer and the shape of what it says."""
    config, shape, d_model = drawing.config, drawing.shape, drawing.config.d_model
    if isinstance(shape, ImageShape):
        label = f"Linear\\n{d_model} x {shape.n_classes}{drawing.count('head')}"
        return label, f"(B, {shape.n_classes})"
    count = drawing.count("output")
    if isinstance(shape, TextShape) and shape.head == "pooler":
        return f"Pooler: first token, tanh{count}", f"(B, {d_model})"
    if isinstance(shape, TextShape) and shape.is_label:
        label = f"Linear to the labels\\n{d_model} x {shape.n_labels}{count}"
        return f"{label}\\nno other word can be said", f"(B, 1, {shape.tgt_vocabulary})"
    if (
        isinstance(shape, TextShape)
        and isinstance(config, TextModelConfig)
        and config.is_tied(shape)
    ):
        count = "\\nthe embedding's matrix: tied" + count
    label = f"Linear\\n{d_model} x {shape.tgt_vocabulary:,}{count}"
    return label, f"(B, {answers}, {shape.tgt_vocabulary:,})"
