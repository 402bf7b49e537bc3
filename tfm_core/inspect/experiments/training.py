"""How it is trained: the rate, the loss, the optimiser."""

from __future__ import annotations

from tfm_core.inspect.experiments import findings
from tfm_core.inspect.experiments.demonstration import Arm, Demonstration, mistaken, small
from tfm_core.inspect.experiments.order import WRITER
from tfm_core.mistakes import MISTAKES
from tfm_core.sentences import N_

_KOREAN = small("encoder-decoder", "english-korean", training={"steps": 300})

TRAINING = (
    Demonstration(
        name="no-warm-up",
        theme="training",
        title=N_("No warm-up"),
        expects=N_(
            "Adam’s first steps are as long as the rate, whatever the gradient, and a post-norm "
            "stack of six layers stands its first ones badly: the paper let the rate rise slowly. "
            "Expect that without it the same model stays far behind."
        ),
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
        title=N_("Learning rate 10 times as high"),
        expects=N_(
            "Steps ten times as long leap over the valleys that they are to descend into. Expect "
            "a loss that jumps about and ends higher; only where the schedule has made the rate "
            "small again does it learn."
        ),
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
        expects=N_(
            "A tenth of each target is spread over all words, as in the paper. Expect as many "
            "right answers, with less confidence, and a training loss that can’t fall to zero."
        ),
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
        expects=N_(
            "The loss takes logits and has a softmax of its own. Given probabilities, which differ "
            "by 1 at most, it calls even a certain answer doubtful, and its gradient is small "
            "everywhere. Expect a loss that hardly falls and far fewer right answers."
        ),
        expected=frozenset({"worse", "slower"}),
        base=WRITER,
        arms=(
            Arm("logits", N_("loss of logits")),
            mistaken("twice", "softmax-before-loss"),
        ),
        compare=findings.twice_squashed,
        step="logits",
    ),
    Demonstration(
        name="argmax-before-loss",
        theme="training",
        title=MISTAKES["argmax-before-loss"].label,
        expects=N_(
            "The loss gets the predicted words in place of the logits, as a tensor that no weight "
            "has a part in. No error is raised, and each step ends where it began: expect a loss "
            "that stays where it is."
        ),
        expected=frozenset({"worse"}),
        base=WRITER,
        arms=(
            Arm("logits", N_("loss of logits")),
            mistaken("argmax", "argmax-before-loss"),
        ),
        compare=findings.usual,
        step="logits",
    ),
    Demonstration(
        name="target-not-shifted",
        theme="training",
        title=MISTAKES["target-not-shifted"].label,
        expects=N_(
            "Each word is to be predicted from itself, and the causal mask lets a word see itself. "
            "Copying is easy: expect perfect curves, and nothing right when it writes by itself."
        ),
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
        expects=N_(
            "Added to the gradient, as Adam’s decay is, the pull towards zero is divided by the "
            "same root as the gradient: where gradients are small it is as strong as they are. "
            "AdamW keeps the two apart. Expect the same decay of 0.05 to hold Adam far back."
        ),
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
