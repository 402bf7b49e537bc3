"""The experiments that teach, theme by theme, and races of positions and of attention.

Each experiment changes one thing, says what to expect, and then what it showed.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any, Literal

from tfm_core.choices.config import Experiment, TextModelConfig
from tfm_core.choices.config.codec import default_sections
from tfm_core.choices.config.experiment import sequence_len
from tfm_core.choices.mistakes import MISTAKES
from tfm_core.choices.presets import BLOCK_STYLES, PRESETS
from tfm_core.choices.variants.positions import POSITIONS, POSITIONS_OF_WORDS
from tfm_core.inspect.attention.alignment import RNN_HEADS, rnn_models
from tfm_core.inspect.conclusions import (
    ACCURACY,
    LOSS,
    Paired,
    holm_corrected,
    paired_sentence,
    paired_test,
)
from tfm_core.inspect.questions import Question
from tfm_core.sentences import N_, Paragraph, Sentence, StudentError
from tfm_core.studies.comparing import (
    ArmFinding,
    Compare,
    FindingKind,
    Result,
    fooled,
    lower_loss,
    roughened,
    sharpened,
    smoothed,
    twice_squashed,
    unordered,
    usual,
)
from tfm_core.studies.study import Arm, Study

ExperimentTheme = Literal["order", "attention", "residuals", "training", "styles"]
THEMES: Mapping[ExperimentTheme, str] = {
    "order": N_("Order and masks"),
    "attention": N_("Attention"),
    "residuals": N_("Residuals and norms"),
    "training": N_("Training"),
    "styles": N_("Block styles"),
}
OUTCOMES: dict[FindingKind, str] = {
    "better": N_("It gets more right."),
    "faster": N_("It becomes as good, but sooner."),
    "same": N_("No visible difference."),
    "slower": N_("It becomes as good, but later."),
    "worse": N_("It gets fewer right."),
    "diverged": N_("Its loss becomes infinite or NaN."),
    "saved": N_("It trains, but the first diverges."),
    "fooled": N_("Its curves look perfect, but it fails when it generates."),
    "unordered": N_("It writes the right tokens in the wrong order."),
    "unsure": N_("It is as good, but less confident."),
    "rougher": N_("It is as good, but has much larger gradients."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Demonstration(Study):
    """Runs that differ in one thing, be it the style of their blocks.

    expected: the findings that confirm the expectation. compare: makes the finding. step: of the
    walk.
    """

    expected: Set[FindingKind]
    compare: Compare = usual
    step: str = ""

    @property
    def expects(self) -> str:
        """What to expect, and why."""
        return Paragraph(f"experiments/{self.name}")

    @property
    def question(self) -> Question:
        """What to ask before the result; every expected outcome is a right answer."""
        first, second = self.arms[0], self.arms[-1]
        right = [words for kind, words in OUTCOMES.items() if kind in self.expected]
        return Question(
            Paragraph("experiments/question", first=first.label, second=second.label),
            right[0],
            self.expects,
            tuple(OUTCOMES.values()),
            also=tuple(right[1:]),
        )

    @property
    def is_of_model(self) -> bool:
        """Whether the models differ, not only their training."""
        return any(path.startswith("model.") for arm in self.arms for path in arm.changes)

    @property
    def writes_freely(self) -> bool:
        """Whether the comparison needs ``Result.written``."""
        return self.compare in (fooled, unordered)

    @property
    def looks_sharply(self) -> bool:
        """Whether the comparison needs ``Result.sharpness``."""
        return self.compare is sharpened


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What the runs showed.

    findings: of each other arm beside the first, with one seed. seeds: the same with several.
    """

    findings: tuple[ArmFinding, ...]
    seeds: tuple[Sentence, ...]
    is_expected: bool

    @property
    def verdict(self) -> Sentence:
        """Whether this was expected, in a sentence."""
        if self.is_expected:
            return N_("This was expected.")
        if self.seeds:
            return N_("This was not expected.")
        return Paragraph("findings/unexpected-one-seed")


def conclude(
    chosen: Demonstration, results: Mapping[str, Mapping[int, Result]]
) -> Conclusion | None:
    """Return what the finished runs showed, None as long as there is nothing to compare.

    results: name of the arm -> seed -> result.
    """
    names = [arm.name for arm in chosen.arms if results.get(arm.name)]
    findings: list[ArmFinding] = []
    tests: list[Paired] = []
    labels: list[tuple[str, str]] = []
    counts_loss = chosen.compare is lower_loss
    for name in names[1:]:
        first, other = results[names[0]], results[name]
        shared = sorted(set(first) & set(other))
        if not shared:
            continue
        findings.append(chosen.compare(first[shared[0]], other[shared[0]]))
        if len(shared) > 1:
            one, two = _of_seeds(first, other, counts_loss=counts_loss)
            tests.append(paired_test(one, two))
            labels.append((first[shared[0]].label, other[shared[0]].label))
    if not findings:
        return None
    measure = LOSS if counts_loss else ACCURACY
    sentences = (
        paired_sentence(test, measure, *pair)
        for test, pair in zip(holm_corrected(tests), labels, strict=True)
    )
    is_expected = all(finding.kind in chosen.expected for finding in findings)
    return Conclusion(tuple(findings), tuple(sentences), is_expected)


def _of_seeds(*arms: Mapping[int, Result], counts_loss: bool) -> list[dict[int, float | None]]:
    """Return what counts of each seed of some arms; None where a run diverged."""
    every = [result for arm in arms for result in arm.values()]
    has_sequences = all(one.sequence_accuracy is not None or one.accuracy is None for one in every)

    def value(result: Result) -> float | None:
        if result.diverged:
            return None
        if counts_loss:
            return result.loss
        return result.sequence_accuracy if has_sequences else result.accuracy

    return [{seed: value(result) for seed, result in arm.items()} for arm in arms]


_RACE_STEPS = 600
"""Of the recorded races."""


def race_of_positions(experiment: Experiment, *, steps: int) -> Study:
    """Return a race of the kinds of positions that the family of an experiment offers.

    The learned table gets twice the rows that the task needs, so that it can be asked beyond the
    trained length. Raises ConfigError where a kind does not fit the model, ValueError where the
    model has no positions or is not trained.
    """
    model = experiment.model
    if not model.has_blocks:
        raise StudentError("An RNN has no positions. Choose a Transformer on the Train page.")
    values: dict[str, Any] = experiment.model_dump()
    values["training"] = experiment.trained.replace(steps=steps).model_dump()
    if isinstance(model, TextModelConfig):
        max_len = max(model.max_len, 2 * sequence_len(experiment) + 2)
        values["model"]["max_len"] = min(8192, max_len)
    offered = type(model).offered("position")
    race = Study(
        name="positions",
        title=N_("{task}, positions", task=experiment.task.facts.label),
        base=Experiment.parse(values),
        arms=tuple(
            Arm(kind, POSITIONS[kind].label, {"model.position": kind})
            for kind in POSITIONS_OF_WORDS
            if kind in offered
        ),
    )
    assert race.experiments  # raises where a kind does not fit
    return race


def race_of_attention(task: str, *, steps: int = _RACE_STEPS) -> Study:
    """Return a race of an RNN with additive attention and Transformers on a text task."""
    labels = {
        "additive": N_("RNN, additive attention (2015)"),
        "one-head": N_("Transformer, one head (2017)"),
        "many-heads": N_("Transformer, {n} heads (2017)", n=RNN_HEADS),
    }
    racers = rnn_models()
    values = default_sections("encoder-decoder", task)
    values["model"] = racers["many-heads"].model_dump()
    values["training"]["steps"] = steps
    facts = Experiment.parse(values)
    return Study(
        name="attention",
        title=facts.task.facts.label,
        base=facts,
        arms=tuple(Arm(name, labels[name], {"model": racers[name]}) for name in labels),
    )


COPY_RACE = race_of_positions(PRESETS["copy"].experiment, steps=_RACE_STEPS)
TRANSLATION_RACE = race_of_attention("english-korean")
"""These come with the app."""


def small(
    family: str,
    task: str,
    *,
    model: Mapping[str, Any] | None = None,
    task_settings: Mapping[str, Any] | None = None,
    training: Mapping[str, Any],
) -> Experiment:
    """Return an experiment that is quick, small and validated often."""
    values = default_sections(family, task)
    values["model"] |= dict(model or {})
    values["task"] |= dict(task_settings or {})
    values["training"] = {"validate_every": 25, "snapshots": 4, **training}
    return Experiment.parse(values)


def _mistake(mistake: str, right: str, *, name: str = "", **facts: Any) -> Demonstration:
    """Return the study of a mistake, by its name in MISTAKES.

    right: the label of the arm without it. name: if not the mistake's.
    """
    made = MISTAKES[mistake]
    arms = (Arm("right", right), Arm("wrong", made.short, made.settings))
    return Demonstration(name=name or mistake, title=made.label, arms=arms, **facts)


WRITER = small(
    "encoder-decoder",
    "english-korean",
    model={"d_model": 32, "d_ff": 64},
    training={"steps": 400, "learning_rate": 0.006},
)
"""A translator with its causal mask; with one mistake in it, and without, it comes with the app."""
_KOREAN = small("encoder-decoder", "english-korean", training={"steps": 300})
_CAUSAL, _LOGITS = N_("with the causal mask"), N_("loss on logits")

_ORDER = (
    _mistake(
        "no-causal-mask", _CAUSAL, expected={"fooled"}, base=WRITER, compare=fooled, step="masks"
    ),
    _mistake(
        "mask-transposed",
        _CAUSAL,
        name="mask-on-the-wrong-axis",
        expected={"fooled"},
        base=WRITER,
        compare=fooled,
        step="masks",
    ),
    Demonstration(
        name="no-positions",
        title=N_("No positions"),
        expected={"unordered"},
        base=small(
            "encoder-decoder", "reverse", model={"d_model": 48, "d_ff": 96}, training={"steps": 500}
        ),
        arms=(
            Arm("positions", N_("with positions")),
            Arm("none", N_("no positions"), {"model.position": "none"}),
        ),
        compare=unordered,
        step="positions",
    ),
)
NO_MASK = _ORDER[0].arms[1]

_DATES = small(
    "encoder-decoder",
    "dates",
    model={"d_model": 32, "n_heads": 8, "d_ff": 64},
    training={"steps": 400, "learning_rate": 0.006},
)

_ATTENTION = (
    _mistake(
        "no-scale",
        N_("divided by √d_head"),
        expected={"worse", "slower"},
        base=small(
            "encoder-decoder", "reverse", model={"n_heads": 1, "d_ff": 64}, training={"steps": 300}
        ),
        compare=sharpened,
        step="scores",
    ),
    _mistake(
        "scaled-by-d-model",
        N_("divided by √d_head"),
        name="scale-of-d-model",
        expected={"worse", "slower", "same"},
        base=small(
            "encoder-decoder", "reverse", model={"n_heads": 16, "d_ff": 64}, training={"steps": 300}
        ),
        compare=sharpened,
        step="scores",
    ),
    Demonstration(
        name="heads",
        title=N_("1 head against 8"),
        expected={"worse", "slower", "same"},
        base=TRANSLATION_RACE.base,  # so two of the three runs are those that come with the app
        arms=(
            Arm("eight", N_("8 heads"), {"model.n_heads": 8}),
            Arm("four", N_("4 heads"), {"model.n_heads": RNN_HEADS}),
            Arm("one", N_("1 head"), {"model.n_heads": 1}),
        ),
        step="heads",
    ),
    _mistake(
        "no-output-projection",
        N_("with an output matrix"),
        name="no-output-matrix",
        expected={"worse", "slower", "same"},
        base=_DATES,
        step="merge",
    ),
    _mistake(
        "sliced-heads",
        N_("each head reads the whole vector"),
        name="slices",
        expected={"worse", "slower"},
        base=_DATES,
        step="queries-keys-values",
    ),
    Demonstration(
        name="linear-score",
        title=MISTAKES["linear-score"].label,
        expected={"worse", "slower"},
        base=small("recurrent", "reverse", training={"steps": 400}),
        arms=(
            Arm("additive", N_("additive score")),
            Arm("linear", MISTAKES["linear-score"].short, {"model.attention": "linear"}),
        ),
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
    _mistake(
        "no-residuals",
        N_("with residuals"),
        expected={"worse", "slower"},
        base=small(
            "encoder-decoder",
            "reverse",
            model={"d_model": 32, "d_ff": 64, "n_encoder_layers": 2, "n_decoder_layers": 2},
            training={"steps": 400},
        ),
        step="add-norm",
    ),
    _mistake(
        "residual-from-normed",
        N_("residual from the input"),
        expected={"worse", "slower", "diverged"},
        base=_DEEP,
        step="add-norm",
    ),
    Demonstration(
        name="pre-or-post-norm",
        title=N_("Pre-norm against post-norm, 8 layers"),
        expected={"worse", "slower", "diverged"},
        base=_DEEP,
        arms=(
            Arm("pre", N_("pre-norm")),
            Arm("post", N_("post-norm"), {"model.norm_first": False}),
        ),
        step="add-norm",
    ),
    Demonstration(
        name="no-norm",
        title=N_("No LayerNorm"),
        expected={"rougher"},
        base=_DEEP,
        arms=(
            Arm("layernorm", N_("LayerNorm")),
            Arm("none", N_("no norm"), {"model.norm": "none"}),
        ),
        compare=roughened,
        metrics=("validation-accuracy", "gradient"),
        step="add-norm",
    ),
    _mistake(
        "shared-norm",
        N_("a norm for each sublayer"),
        expected={"same", "slower"},
        base=_KOREAN,
        step="add-norm",
    ),
)

_TRAINING = (
    Demonstration(
        name="no-warm-up",
        title=N_("No warm-up"),
        expected={"worse", "slower", "diverged"},
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
    ),
    Demonstration(
        name="rate-times-ten",
        title=N_("10 times the learning rate"),
        expected={"worse", "slower", "diverged"},
        base=_KOREAN,
        arms=(
            Arm("usual", N_("learning rate 0.004")),
            Arm("ten", N_("learning rate 0.04"), {"training.learning_rate": 0.04}),
        ),
    ),
    Demonstration(
        name="label-smoothing",
        title=N_("Label smoothing"),
        expected={"unsure"},
        base=_KOREAN,
        arms=(
            Arm("hard", N_("no label smoothing")),
            Arm("smooth", N_("label smoothing 0.1"), {"training.label_smoothing": 0.1}),
        ),
        compare=smoothed,
        metrics=("loss", "validation-loss"),
        step="logits",
    ),
    _mistake(
        "softmax-before-loss",
        _LOGITS,
        name="softmax-twice",
        expected={"worse", "slower"},
        base=WRITER,
        compare=twice_squashed,
        step="logits",
    ),
    _mistake("argmax-before-loss", _LOGITS, expected={"worse"}, base=WRITER, step="logits"),
    _mistake(
        "target-not-shifted",
        N_("target shifted by one"),
        expected={"fooled"},
        base=WRITER,
        compare=fooled,
        step="logits",
    ),
    Demonstration(
        name="coupled-decay",
        title=N_("Adam with coupled weight decay"),
        expected={"worse", "slower"},
        base=_KOREAN,
        arms=(
            Arm("adamw", N_("AdamW, decay 0.05"), {"training.weight_decay": 0.05}),
            Arm(
                "adam",
                N_("Adam, decay 0.05"),
                {"training.optimizer": "adam", "training.weight_decay": 0.05},
            ),
        ),
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
        expected={"same", "slower", "faster"},
        base=_GPT_2,  # so the runs of the presets are its arms
        arms=_STYLES,
    ),
    Demonstration(
        name="styles-write",
        title=N_("GPT-2, Llama, Qwen, Mixtral: a chapter of Alice"),
        expected={"better"},
        base=small(
            "decoder-only",
            "own-text",
            model=BLOCK_STYLES["gpt-2"],
            task_settings={"unit": "characters"},
            training={"steps": 300, "batch_size": 32, "learning_rate": 0.004},
        ),
        arms=_STYLES,
        compare=lower_loss,
        metrics=("loss", "validation-loss"),
    ),
)

BY_THEME: Mapping[ExperimentTheme, tuple[Demonstration, ...]] = {
    "order": _ORDER,
    "attention": _ATTENTION,
    "residuals": _RESIDUALS,
    "training": _TRAINING,
    "styles": _STYLE_RACES,
}
DEMONSTRATIONS: Mapping[str, Demonstration] = {
    one.name: one for theme in BY_THEME.values() for one in theme
}
