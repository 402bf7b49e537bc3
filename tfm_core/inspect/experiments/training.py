"""How it is trained: the rate, the loss, the optimiser."""

from __future__ import annotations

from tfm_core.inspect.experiments import findings
from tfm_core.inspect.experiments.demonstration import Arm, Demonstration, mistaken, small
from tfm_core.inspect.experiments.order import WRITER
from tfm_core.mistakes import MISTAKES
from tfm_core.sentences import N_, Paragraph

_KOREAN = small("encoder-decoder", "english-korean", training={"steps": 300})

TRAINING = (
    Demonstration(
        name="no-warm-up",
        theme="training",
        title=N_("No warm-up"),
        expects=Paragraph("experiments/no-warm-up"),
        expected=frozenset({"worse", "slower", "diverged"}),
        base=small(
            "encoder-only",
            "reverse",
            model={"d_model": 48, "d_ff": 96, "n_layers": 6, "norm_first": False},
            task_settings={"size": 8},
            training={"steps": 300, "learning_rate": 0.003, "clip_norm": 0.0, "warmup": 0.3},
        ),
        arms=(
            Arm("warm-up", N_("30 % warm-up")),
            Arm("none", N_("no warm-up"), {"training.warmup": 0.0}),
        ),
        compare=findings.usual,
    ),
    Demonstration(
        name="rate-times-ten",
        theme="training",
        title=N_("10 times the learning rate"),
        expects=Paragraph("experiments/rate-times-ten"),
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
        theme="training",
        title=N_("Label smoothing"),
        expects=Paragraph("experiments/label-smoothing"),
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
        theme="training",
        title=MISTAKES["softmax-before-loss"].label,
        expects=Paragraph("experiments/softmax-twice"),
        expected=frozenset({"worse", "slower"}),
        base=WRITER,
        arms=(
            Arm("logits", N_("loss on logits")),
            mistaken("twice", "softmax-before-loss"),
        ),
        compare=findings.twice_squashed,
        step="logits",
    ),
    Demonstration(
        name="argmax-before-loss",
        theme="training",
        title=MISTAKES["argmax-before-loss"].label,
        expects=Paragraph("experiments/argmax-before-loss"),
        expected=frozenset({"worse"}),
        base=WRITER,
        arms=(
            Arm("logits", N_("loss on logits")),
            mistaken("argmax", "argmax-before-loss"),
        ),
        compare=findings.usual,
        step="logits",
    ),
    Demonstration(
        name="target-not-shifted",
        theme="training",
        title=MISTAKES["target-not-shifted"].label,
        expects=Paragraph("experiments/target-not-shifted"),
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
        theme="training",
        title=N_("Adam with coupled weight decay"),
        expects=Paragraph("experiments/coupled-decay"),
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
