"""Links from an attention map to the step of the walk that makes it."""

from __future__ import annotations

from tfm_core.runs.run import Run

STEPS = {  # family and kind of attention -> name of the step; elsewhere it is that of the scores
    ("encoder-decoder", "decoder"): "decoder-attention",
    ("encoder-decoder", "cross"): "cross-attention",
    ("captioner", "decoder"): "decoder-attention",
    ("captioner", "picture"): "cross-attention",
}


def to_map(run: Run, kind: str, layer: int) -> dict[str, str]:
    """Return the link's settings: the run, the step, and the block, which ``layer`` counts from 0.

    kind: of the attention, a key of ``labels.KINDS``.
    """
    step = step_of(run.experiment.model.family, kind)
    return {"run": run.id, "show": "run", "step": step, "block": str(layer + 1)}


def step_of(family: str, kind: str) -> str:
    """Return the name of the step that makes the maps of a kind of attention."""
    return STEPS.get((family, kind), "scores")
