"""Where a token stands, and what it may see."""

from __future__ import annotations

from tfm_core.inspect.experiments import findings
from tfm_core.inspect.experiments.demonstration import Arm, Demonstration, mistaken, small
from tfm_core.mistakes import MISTAKES
from tfm_core.sentences import N_, Paragraph

WRITER = small(
    "encoder-decoder",
    "english-korean",
    model={"d_model": 32, "d_ff": 64},
    training={"steps": 400, "learning_rate": 0.006},
)
"""A translator with its causal mask; with one mistake in it, and without, it comes with the app."""
_CAUSAL = Arm("causal", N_("with the causal mask"))
NO_MASK = mistaken("none", "no-causal-mask")

ORDER = (
    Demonstration(
        name="no-causal-mask",
        theme="order",
        title=MISTAKES["no-causal-mask"].label,
        expects=Paragraph("experiments/no-causal-mask"),
        expected=frozenset({"fooled"}),
        base=WRITER,
        arms=(_CAUSAL, NO_MASK),
        compare=findings.fooled,
        step="masks",
        writes_freely=True,
    ),
    Demonstration(
        name="mask-on-the-wrong-axis",
        theme="order",
        title=MISTAKES["mask-transposed"].label,
        expects=Paragraph("experiments/mask-on-the-wrong-axis"),
        expected=frozenset({"fooled"}),
        base=WRITER,
        arms=(
            _CAUSAL,
            mistaken("transposed", "mask-transposed"),
        ),
        compare=findings.fooled,
        step="masks",
        writes_freely=True,
    ),
    Demonstration(
        name="no-positions",
        theme="order",
        title=N_("No positions"),
        expects=Paragraph("experiments/no-positions"),
        expected=frozenset({"unordered"}),
        base=small(
            "encoder-decoder",
            "reverse",
            model={"d_model": 48, "d_ff": 96},
            training={"steps": 500},
        ),
        arms=(
            Arm("positions", N_("with positions")),
            Arm("none", N_("no positions"), {"model.position": "none"}),
        ),
        compare=findings.unordered,
        step="positions",
        writes_freely=True,
    ),
)
