"""Links from an attention map to the step of the walk that makes it."""

from __future__ import annotations

from tfm_core.runs.run import Run

WALK_STEPS = {  # family and kind of attention; elsewhere the scores are step 8
    ("recurrent", "cross"): "5",
    ("encoder-decoder", "decoder"): "16",
    ("encoder-decoder", "cross"): "17",
    ("captioner", "patches"): "7",
    ("captioner", "decoder"): "18",
    ("captioner", "picture"): "19",
}


def to_map(run: Run, kind: str, layer: int) -> dict[str, str]:
    """Return the link's settings: the run, the step, and the block, which ``layer`` counts from 0.

    kind: of the attention, a key of ``labels.KINDS``.
    """
    step = WALK_STEPS.get((run.experiment.model.family, kind), "8")
    return {"run": run.id, "show": "run", "step": step, "block": str(layer + 1)}
