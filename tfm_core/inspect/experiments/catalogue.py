"""The experiments that teach, theme by theme."""

from __future__ import annotations

from collections.abc import Mapping

from tfm_core.choices.mistakes import MISTAKES
from tfm_core.choices.presets import BLOCK_STYLES, PRESETS
from tfm_core.inspect.attention.rnn_attention import HEADS, racers
from tfm_core.inspect.experiments import findings
from tfm_core.inspect.experiments.demonstration import (
    Demonstration,
    ExperimentTheme,
    mistaken,
    small,
)
from tfm_core.inspect.experiments.trial import Arm, changed
from tfm_core.sentences import N_

WRITER = small(
    "encoder-decoder",
    "english-korean",
    model={"d_model": 32, "d_ff": 64},
    training={"steps": 400, "learning_rate": 0.006},
)
"""A translator with its causal mask; with one mistake in it, and without, it comes with the app."""
_KOREAN = small("encoder-decoder", "english-korean", training={"steps": 300})
_CAUSAL = Arm("causal", N_("with the causal mask"))
NO_MASK = mistaken("none", "no-causal-mask")

_ORDER = (
    Demonstration(
        name="no-causal-mask",
        title=MISTAKES["no-causal-mask"].label,
        expected=frozenset({"fooled"}),
        base=WRITER,
        arms=(_CAUSAL, NO_MASK),
        compare=findings.fooled,
        step="masks",
        writes_freely=True,
    ),
    Demonstration(
        name="mask-on-the-wrong-axis",
        title=MISTAKES["mask-transposed"].label,
        expected=frozenset({"fooled"}),
        base=WRITER,
        arms=(_CAUSAL, mistaken("transposed", "mask-transposed")),
        compare=findings.fooled,
        step="masks",
        writes_freely=True,
    ),
    Demonstration(
        name="no-positions",
        title=N_("No positions"),
        expected=frozenset({"unordered"}),
        base=small(
            "encoder-decoder", "reverse", model={"d_model": 48, "d_ff": 96}, training={"steps": 500}
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

_RACER = changed(  # so two of the three runs are those that come with the app
    racers("english-korean", steps=600)["many-heads"], {"training.snapshots": 2}
)
_DATES = small(
    "encoder-decoder",
    "dates",
    model={"d_model": 32, "n_heads": 8, "d_ff": 64},
    training={"steps": 400, "learning_rate": 0.006},
)

_ATTENTION = (
    Demonstration(
        name="no-scale",
        title=MISTAKES["no-scale"].label,
        expected=frozenset({"worse", "slower"}),
        base=small(
            "encoder-decoder", "reverse", model={"n_heads": 1, "d_ff": 64}, training={"steps": 300}
        ),
        arms=(Arm("scaled", N_("divided by √d_head")), mistaken("unscaled", "no-scale")),
        compare=findings.sharpened,
        step="scores",
        looks_sharply=True,
    ),
    Demonstration(
        name="scale-of-d-model",
        title=MISTAKES["scaled-by-d-model"].label,
        expected=frozenset({"worse", "slower", "same"}),
        base=small(
            "encoder-decoder", "reverse", model={"n_heads": 16, "d_ff": 64}, training={"steps": 300}
        ),
        arms=(Arm("d-head", N_("divided by √d_head")), mistaken("d-model", "scaled-by-d-model")),
        compare=findings.sharpened,
        step="scores",
        looks_sharply=True,
    ),
    Demonstration(
        name="heads",
        title=N_("1 head against 8"),
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
        title=MISTAKES["no-output-projection"].label,
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
        title=MISTAKES["sliced-heads"].label,
        expected=frozenset({"worse", "slower"}),
        base=_DATES,
        arms=(
            Arm("full", N_("each head reads the whole vector")),
            mistaken("sliced", "sliced-heads"),
        ),
        compare=findings.usual,
        step="queries-keys-values",
    ),
    Demonstration(
        name="linear-score",
        title=MISTAKES["linear-score"].label,
        expected=frozenset({"worse", "slower"}),
        base=small("recurrent", "reverse", training={"steps": 400}),
        arms=(
            Arm("additive", N_("additive score")),
            Arm("linear", MISTAKES["linear-score"].short, {"model.attention": "linear"}),
        ),
        compare=findings.usual,
        step="scores",
    ),
)

_DEEP = small(
    "encoder-only",
    "reverse",
    model={"d_model": 48, "d_ff": 96, "n_layers": 8},
    task_settings={"size": 8},
    training={"steps": 300, "learning_rate": 0.003},
)

_RESIDUALS = (
    Demonstration(
        name="no-residuals",
        title=MISTAKES["no-residuals"].label,
        expected=frozenset({"worse", "slower"}),
        base=small(
            "encoder-decoder",
            "reverse",
            model={"d_model": 32, "d_ff": 64, "n_encoder_layers": 2, "n_decoder_layers": 2},
            training={"steps": 400},
        ),
        arms=(Arm("residuals", N_("with residuals")), mistaken("none", "no-residuals")),
        compare=findings.usual,
        step="add-norm",
    ),
    Demonstration(
        name="residual-from-normed",
        title=MISTAKES["residual-from-normed"].label,
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
        title=N_("Pre-norm against post-norm, 8 layers"),
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
        title=N_("No LayerNorm"),
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
        title=MISTAKES["shared-norm"].label,
        expected=frozenset({"same", "slower"}),
        base=_KOREAN,
        arms=(Arm("own", N_("a norm for each sublayer")), mistaken("shared", "shared-norm")),
        compare=findings.usual,
        step="add-norm",
    ),
)

_TRAINING = (
    Demonstration(
        name="no-warm-up",
        title=N_("No warm-up"),
        expected=frozenset({"worse", "slower", "diverged"}),
        base=small(
            "encoder-only",
            "reverse",
            model={"d_model": 48, "d_ff": 96, "n_layers": 6, "norm_first": False},
            task_settings={"size": 8},
            training={"steps": 300, "learning_rate": 0.003, "clip_norm": 0.0, "warmup": 0.3},
        ),
        arms=(
            Arm("warm-up", N_("30% warm-up")),
            Arm("none", N_("no warm-up"), {"training.warmup": 0.0}),
        ),
        compare=findings.usual,
    ),
    Demonstration(
        name="rate-times-ten",
        title=N_("10 times the learning rate"),
        expected=frozenset({"worse", "slower", "diverged"}),
        base=_KOREAN,
        arms=(
            Arm("usual", N_("learning rate 0.004")),
            Arm("ten", N_("learning rate 0.04"), {"training.learning_rate": 0.04}),
        ),
        compare=findings.usual,
    ),
    Demonstration(
        name="label-smoothing",
        title=N_("Label smoothing"),
        expected=frozenset({"unsure"}),
        base=_KOREAN,
        arms=(
            Arm("hard", N_("no label smoothing")),
            Arm("smooth", N_("label smoothing 0.1"), {"training.label_smoothing": 0.1}),
        ),
        compare=findings.smoothed,
        metrics=("loss", "validation-loss"),
        step="logits",
    ),
    Demonstration(
        name="softmax-twice",
        title=MISTAKES["softmax-before-loss"].label,
        expected=frozenset({"worse", "slower"}),
        base=WRITER,
        arms=(Arm("logits", N_("loss on logits")), mistaken("twice", "softmax-before-loss")),
        compare=findings.twice_squashed,
        step="logits",
    ),
    Demonstration(
        name="argmax-before-loss",
        title=MISTAKES["argmax-before-loss"].label,
        expected=frozenset({"worse"}),
        base=WRITER,
        arms=(Arm("logits", N_("loss on logits")), mistaken("argmax", "argmax-before-loss")),
        compare=findings.usual,
        step="logits",
    ),
    Demonstration(
        name="target-not-shifted",
        title=MISTAKES["target-not-shifted"].label,
        expected=frozenset({"fooled"}),
        base=WRITER,
        arms=(
            Arm("shifted", N_("target shifted by one")),
            mistaken("unshifted", "target-not-shifted"),
        ),
        compare=findings.fooled,
        step="logits",
        writes_freely=True,
    ),
    Demonstration(
        name="coupled-decay",
        title=N_("Adam with coupled weight decay"),
        expected=frozenset({"worse", "slower"}),
        base=_KOREAN,
        arms=(
            Arm("adamw", N_("AdamW, decay 0.05"), {"training.weight_decay": 0.05}),
            Arm(
                "adam",
                N_("Adam, decay 0.05"),
                {"training.optimizer": "adam", "training.weight_decay": 0.05},
            ),
        ),
        compare=findings.usual,
    ),
)

_GPT_2 = PRESETS["gpt-2"].experiment
_BLOCKS = _GPT_2.model.model_dump()
_STYLES = tuple(
    Arm(
        name,
        PRESETS[name].label,
        {
            f"model.{field}": value
            for field, value in PRESETS[name].experiment.model.model_dump().items()
            if value != _BLOCKS[field]
        },
    )
    for name in BLOCK_STYLES
)
_STYLE_RACES = (
    Demonstration(
        name="styles-translate",
        title=N_("GPT-2, Llama, Qwen, Mixtral: translation"),
        expected=frozenset({"same", "slower", "faster"}),
        base=_GPT_2,  # so the runs of the presets are its arms
        arms=_STYLES,
        compare=findings.usual,
    ),
    Demonstration(
        name="styles-write",
        title=N_("GPT-2, Llama, Qwen, Mixtral: a chapter of Alice"),
        expected=frozenset({"better"}),
        base=small(
            "decoder-only",
            "own-text",
            model=BLOCK_STYLES["gpt-2"],
            task_settings={"unit": "characters"},
            training={"steps": 300, "batch_size": 32, "learning_rate": 0.004},
        ),
        arms=_STYLES,
        compare=findings.lower_loss,
        metrics=("loss", "validation-loss"),
        counts_loss=True,
    ),
)

BY_THEME: Mapping[ExperimentTheme, tuple[Demonstration, ...]] = {
    "order": _ORDER,
    "attention": _ATTENTION,
    "residuals": _RESIDUALS,
    "training": _TRAINING,
    "styles": _STYLE_RACES,
}
