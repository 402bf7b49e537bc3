"""What attention is made of: its scale, its heads, its matrices."""

from __future__ import annotations

from tfm_core.inspect.attention.rnn_attention import HEADS, racers
from tfm_core.inspect.experiments import findings
from tfm_core.inspect.experiments.demonstration import Arm, Demonstration, changed, small
from tfm_core.sentences import N_

_RACERS = changed(
    racers("english-korean", steps=600)["many-heads"],
    {"training.snapshots": 2},  # so the runs that come with the app are two of the three
)
_REVERSE = small(
    "encoder-decoder", "reverse", model={"n_heads": 1, "d_ff": 64}, training={"steps": 300}
)

ATTENTION = (
    Demonstration(
        name="heads",
        theme="attention",
        title=N_("1 head against 8"),
        hint=N_("one map or many: a point at most"),
        expects=N_(
            "One head has one map for everything; several look at several places at once. On a "
            "grammar as small as this one map is nearly enough: expect one head to learn a little "
            "later, or to be a point behind, and eight to be no better than four."
        ),
        expected=frozenset({"worse", "slower", "same"}),
        base=_RACERS,
        arms=(
            Arm("eight", N_("8 heads"), {"model.n_heads": 8}),
            Arm("four", N_("4 heads"), {"model.n_heads": HEADS}),
            Arm("one", N_("1 head"), {"model.n_heads": 1}),
        ),
        compare=findings.usual,
        step="heads",
    ),
)
