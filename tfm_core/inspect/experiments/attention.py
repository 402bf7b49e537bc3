"""What attention is made of: its scale, its heads, its matrices."""

from __future__ import annotations

from tfm_core.inspect.attention.rnn_attention import HEADS, racers
from tfm_core.inspect.experiments import findings
from tfm_core.inspect.experiments.demonstration import Arm, Demonstration, changed, mistaken, small
from tfm_core.mistakes import MISTAKES
from tfm_core.sentences import N_, Paragraph

_RACER = changed(  # so two of the three runs are those that come with the app
    racers("english-korean", steps=600)["many-heads"], {"training.snapshots": 2}
)
_DATES = small(
    "encoder-decoder",
    "dates",
    model={"d_model": 32, "n_heads": 8, "d_ff": 64},
    training={"steps": 400, "learning_rate": 0.006},
)

ATTENTION = (
    Demonstration(
        name="no-scale",
        theme="attention",
        title=MISTAKES["no-scale"].label,
        expects=Paragraph("experiments/no-scale"),
        expected=frozenset({"worse", "slower"}),
        base=small(
            "encoder-decoder",
            "reverse",
            model={"n_heads": 1, "d_ff": 64},
            training={"steps": 300},
        ),
        arms=(
            Arm("scaled", N_("divided by √d_head")),
            mistaken("unscaled", "no-scale"),
        ),
        compare=findings.sharpened,
        step="scores",
        looks_sharply=True,
    ),
    Demonstration(
        name="scale-of-d-model",
        theme="attention",
        title=MISTAKES["scaled-by-d-model"].label,
        expects=Paragraph("experiments/scale-of-d-model"),
        expected=frozenset({"worse", "slower", "same"}),
        base=small(
            "encoder-decoder",
            "reverse",
            model={"n_heads": 16, "d_ff": 64},
            training={"steps": 300},
        ),
        arms=(
            Arm("d-head", N_("divided by √d_head")),
            mistaken("d-model", "scaled-by-d-model"),
        ),
        compare=findings.sharpened,
        step="scores",
        looks_sharply=True,
    ),
    Demonstration(
        name="heads",
        theme="attention",
        title=N_("1 head against 8"),
        expects=Paragraph("experiments/heads"),
        expected=frozenset({"worse", "slower", "same"}),
        base=_RACER,
        arms=(
            Arm("eight", N_("8 heads"), {"model.n_heads": 8}),
            Arm("four", N_("4 heads"), {"model.n_heads": HEADS}),
            Arm("one", N_("1 head"), {"model.n_heads": 1}),
        ),
        compare=findings.usual,
        step="heads",
    ),
    Demonstration(
        name="no-output-matrix",
        theme="attention",
        title=MISTAKES["no-output-projection"].label,
        expects=Paragraph("experiments/no-output-matrix"),
        expected=frozenset({"worse", "slower", "same"}),
        base=_DATES,
        arms=(
            Arm("full", N_("with an output matrix")),
            mistaken("no-output", "no-output-projection"),
        ),
        compare=findings.usual,
        step="merge",
    ),
    Demonstration(
        name="slices",
        theme="attention",
        title=MISTAKES["sliced-heads"].label,
        expects=Paragraph("experiments/slices"),
        expected=frozenset({"worse", "slower"}),
        base=_DATES,
        arms=(
            Arm("full", N_("each head reads the whole vector")),
            mistaken("sliced", "sliced-heads"),
        ),
        compare=findings.usual,
        step="queries-keys-values",
    ),
)
