"""The way around the sublayers, and the norms on it."""

from __future__ import annotations

from tfm_core.inspect.experiments import findings
from tfm_core.inspect.experiments.demonstration import Arm, Demonstration, mistaken, small
from tfm_core.mistakes import MISTAKES
from tfm_core.sentences import N_, Paragraph

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
        expects=Paragraph("experiments/no-residuals"),
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
        expects=Paragraph("experiments/residual-from-normed"),
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
        title=N_("Pre-norm against post-norm, 8 layers"),
        expects=Paragraph("experiments/post-norm"),
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
        expects=Paragraph("experiments/no-norm"),
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
        expects=Paragraph("experiments/shared-norm"),
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
