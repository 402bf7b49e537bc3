"""The steps of whole stacks: all blocks of the encoder, and what comes out of each block."""

from __future__ import annotations

from torch import Tensor

from tfm_core.inspect.walk import Seen, Step, seen, shape_question
from tfm_core.inspect.walk_forward import Subject
from tfm_core.inspect.walk_place import Place, mask_seen


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
