"""The way around the sublayers, and the norms on it."""

from __future__ import annotations

from tfm_core.inspect.experiments import findings
from tfm_core.inspect.experiments.demonstration import Arm, Demonstration, mistaken, small
from tfm_core.mistakes import MISTAKES
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
        name="no-residuals",
        theme="residuals",
        title=MISTAKES["no-residuals"].label,
        expects=N_(
            "What a sublayer puts out replaces what went in, so a token keeps nothing of itself "
            "that attention does not hand on, and the gradient has no short way back. Two blocks "
            "on each side are enough: expect it to learn next to nothing."
        ),
        expected=frozenset({"worse", "slower"}),
        base=small(
            "encoder-decoder",
            "reverse",
            model={"d_model": 32, "d_ff": 64, "n_encoder_layers": 2, "n_decoder_layers": 2},
            training={"steps": 400},
        ),
        arms=(
            Arm("residuals", N_("with residuals")),
            mistaken("none", "no-residuals"),
        ),
        compare=findings.usual,
        step="add-norm",
    ),
    Demonstration(
        name="residual-from-normed",
        theme="residuals",
        title=MISTAKES["residual-from-normed"].label,
        expects=N_(
            "One line of code, x = norm(x), and the sum begins anew at each sublayer: no path runs "
            "through the stack untouched, and pre-norm has lost what it is good for. With two "
            "blocks nobody notices; with eight expect it to stay far behind."
        ),
        expected=frozenset({"worse", "slower", "diverged"}),
        base=_DEEP,
        arms=(
            Arm("input", N_("residual from the input")),
            mistaken("normed", "residual-from-normed"),
        ),
        compare=findings.usual,
        step="add-norm",
    ),
    Demonstration(
        name="pre-or-post-norm",
        theme="residuals",
        title=N_("Pre-norm against post-norm, 8 layers deep"),
        expects=N_(
            "The paper normalises behind each sum, so no path runs through the stack untouched, "
            "and the gradient that reaches the first layers is what sixteen norms leave of it. "
            "Expect post-norm to stay behind, or not to get going at all in so few steps."
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
        name="no-norm",
        theme="residuals",
        title=N_("No LayerNorm"),
        expects=N_(
            "Large models without norms diverge. Eight narrow blocks, clipped gradients and some "
            "warm-up hold together without: at this size expect as many right answers, and "
            "gradients that are several times as large at their worst."
        ),
        expected=frozenset({"rougher"}),
        base=_DEEP,
        arms=(
            Arm("layernorm", N_("LayerNorm")),
            Arm("none", N_("no norm"), {"model.norm": "none"}),
        ),
        compare=findings.roughened,
        metrics=("validation-accuracy", "gradient"),
        step="add-norm",
    ),
    Demonstration(
        name="shared-norm",
        theme="residuals",
        title=MISTAKES["shared-norm"].label,
        expects=N_(
            "Written once and called everywhere, a norm has one scale and one shift for all. "
            "The matrices behind it can learn what it lacks: at this size expect no difference, "
            "which is why nobody notices this bug by its curve."
        ),
        expected=frozenset({"same", "slower"}),
        base=small("encoder-decoder", "english-korean", training={"steps": 300}),
        arms=(
            Arm("own", N_("a norm for each sublayer")),
            mistaken("shared", "shared-norm"),
        ),
        compare=findings.usual,
        step="add-norm",
    ),
)
