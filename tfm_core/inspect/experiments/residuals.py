"""The way around the sublayers, and the norms on it."""

from __future__ import annotations

from tfm_core.inspect.experiments import findings
from tfm_core.inspect.experiments.demonstration import Arm, Demonstration, small
from tfm_core.sentences import N_

_DEEP = small(
    "encoder-only",
    "reverse",
    model={"d_model": 48, "d_ff": 96, "n_layers": 8},
    task_settings={"size": 8},
    training={"steps": 300, "learning_rate": 0.003},
)

RESIDUALS = (
    Demonstration(
        name="pre-or-post-norm",
        theme="residuals",
        title=N_("Pre-norm against post-norm, 8 layers deep"),
        hint=N_("post-norm does not get going"),
        expects=N_(
            "The paper normalises behind each sum, so no path runs through the stack untouched, "
            "and the gradient that reaches the first layers is all that eight norms leave of it. "
            "Expect post-norm to stay behind, or not to learn at all in so few steps."
        ),
        expected=frozenset({"worse", "slower", "diverged"}),
        base=_DEEP,
        arms=(
            Arm("pre", N_("pre-norm")),
            Arm("post", N_("post-norm"), {"model.norm_first": False}),
        ),
        compare=findings.usual,
        step="add-norm",
    ),
    Demonstration(
        name="shared-norm",
        theme="residuals",
        title=N_("One LayerNorm for all sublayers"),
        hint=N_("no difference to be seen"),
        expects=N_(
            "Written once and called everywhere, a norm has one scale and one shift for all. "
            "The matrices behind it can learn what it lacks: at this size expect no difference, "
            "which is why nobody notices this bug by its curve."
        ),
        expected=frozenset({"same", "slower"}),
        base=small("encoder-decoder", "english-korean", training={"steps": 300}),
        arms=(
            Arm("own", N_("a norm for each sublayer")),
            Arm("shared", N_("one shared norm"), {"model.shared_norm": True}),
        ),
        compare=findings.usual,
        step="add-norm",
    ),
)
