"""Where a token stands, and what it may see."""

from __future__ import annotations

from tfm_core.inspect.experiments import findings
from tfm_core.inspect.experiments.demonstration import Arm, Demonstration, mistaken, small
from tfm_core.mistakes import MISTAKES
from tfm_core.sentences import N_

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
        expects=N_(
            "While it trains, every word that it is to guess stands in what it reads, one place "
            "further on. Without the mask it copies that word. Expect curves as good as ever, and "
            "hardly a sentence right when it must write by itself."
        ),
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
        expects=N_(
            "Transposed, the triangle hides the past in place of the future. The word to guess is "
            "still there to be copied, and all that a writer really has is hidden. Expect perfect "
            "curves again, and nothing right when it writes by itself."
        ),
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
        expects=N_(
            "Attention by itself sees a bag of tokens. To write a sequence backwards one must know "
            "what stood where: expect it to find the right letters, in no order, and hardly any "
            "sequence wholly right."
        ),
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
