"""What attention is made of: its scale, its heads, its matrices."""

from __future__ import annotations

from tfm_core.inspect.attention.rnn_attention import HEADS, racers
from tfm_core.inspect.experiments import findings
from tfm_core.inspect.experiments.demonstration import Arm, Demonstration, changed, mistaken, small
from tfm_core.mistakes import MISTAKES
from tfm_core.sentences import N_

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
        expects=N_(
            "A dot product of two vectors of 64 numbers lies 8 times as far from 0 as one of "
            "single numbers. Undivided, it makes the softmax put nearly all on one key before "
            "anything is learned, and what is so sure hardly has a gradient. Expect it to learn "
            "far more slowly."
        ),
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
        expects=N_(
            "With 16 heads √d_model is 4 times √d_head, so all keys begin nearly alike. But the "
            "matrices of queries and keys can grow and make up for it: at this size expect a "
            "flatter beginning, and in the end little or no difference."
        ),
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
        expects=N_(
            "One head has one map for everything; several look at several places at once. On a "
            "grammar as small as this one map is nearly enough: expect one head to learn a little "
            "later, or to be a point behind, and eight to be no better than four."
        ),
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
        expects=N_(
            "Without it the heads are put side by side and never mixed: each writes into its own "
            "slice of the vector. The feed-forward layer behind it mixes them all the same. "
            "Expect a few points less at most."
        ),
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
        expects=N_(
            "Cutting the vector into eight before the projections, and not behind them, looks like "
            "a shortcut: each head then sees four numbers of each token and no others. Expect it "
            "to learn much more slowly."
        ),
        expected=frozenset({"worse", "slower"}),
        base=_DATES,
        arms=(
            Arm("full", N_("each head sees all")),
            mistaken("sliced", "sliced-heads"),
        ),
        compare=findings.usual,
        step="queries-keys-values",
    ),
)
