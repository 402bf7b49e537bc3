"""Where a token stands, and what it may see."""

from __future__ import annotations

from tfm_core.inspect.experiments import findings
from tfm_core.inspect.experiments.demonstration import Arm, Demonstration, small
from tfm_core.sentences import N_

ORDER = (
    Demonstration(
        name="no-positions",
        theme="order",
        title=N_("No positions"),
        hint=N_("the right letters in no order"),
        expects=N_(
            "Attention by itself sees a bag of tokens. To write a sequence backwards one must know "
            "what stood where: expect it to find the right letters, in no order, and hardly any "
            "sequence wholly right."
        ),
        expected=frozenset({"worse"}),
        base=small(
            "encoder-decoder", "reverse", model={"d_model": 48, "d_ff": 96},
            training={"steps": 500},
        ),
        arms=(
            Arm("positions", N_("with positions")),
            Arm("none", N_("no positions"), {"model.position": "none"}),
        ),
        compare=findings.usual,
        step="positions",
    ),
)  # fmt: skip
