"""The mistakes that a twin may hide, each a change of the settings of a healthy run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tfm_core.config import ConfigError, Experiment
from tfm_core.presets import PRESETS
from tfm_core.sentences import N_

FASTER = 10
"""How many times the right one a rate is that is too high."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """A mistake.

    level: 1 is plain to see, 3 is subtle. changes: ``section.field`` -> its wrong value. probe: by
    name, the one that tells it from a healthy run at once. means: what was done, and what comes of
    it.
    """

    name: str
    label: str
    level: int
    changes: Mapping[str, Any]
    probe: str
    means: str


_BUGS = (
    Bug(
        name="no-causal-mask",
        label=N_("No causal mask in the decoder"),
        level=1,
        changes={"model.causality": "none"},
        probe="sight",
        means=N_(
            "While it trained, a token saw those behind it, its own answer among them. It learned "
            "to copy that, and is lost where nobody writes the answer first."
        ),
    ),
    Bug(
        name="mask-transposed",
        label=N_("The causal mask on the wrong axis"),
        level=1,
        changes={"model.causality": "transposed"},
        probe="sight",
        means=N_(
            "With keys and queries swapped, a token saw what follows it, and nothing of what came "
            "before."
        ),
    ),
    Bug(
        name="no-positions",
        label=N_("No positions"),
        level=1,
        changes={"model.position": "none"},
        probe="order",
        means=N_("Attention alone reads a bag of tokens: their order was nowhere to be found."),
    ),
    Bug(
        name="rate-too-high",
        label=N_("A learning rate ten times too high"),
        level=1,
        changes={"training.learning_rate": FASTER},  # times the right one
        probe="rate",
        means=N_("Each step went ten times as far as the gradient is good for."),
    ),
    Bug(
        name="softmax-before-loss",
        label=N_("A softmax before the cross-entropy"),
        level=1,
        changes={"training.loss_input": "probabilities"},
        probe="gradients",
        means=N_(
            "Cross-entropy has a softmax of its own. Given probabilities it takes them for logits: "
            "gradients shrink, and the loss can't come near 0."
        ),
    ),
    Bug(
        name="no-residuals",
        label=N_("No residual connections"),
        level=2,
        changes={"model.residual": "none"},
        probe="growth",
        means=N_("Each sublayer's output took the place of its input, and nothing runs past it."),
    ),
    Bug(
        name="no-norm",
        label=N_("No LayerNorm"),
        level=2,
        changes={"model.norm": "none"},
        probe="numbers",
        means=N_("Nothing kept vectors in range, from layer to layer."),
    ),
    Bug(
        name="no-scale",
        label=N_("Scores not divided by √d_head"),
        level=2,
        changes={"model.scale": "none"},
        probe="attention",
        means=N_(
            "Scores were √d_head times too large: the softmax put nearly all on one key, and "
            "hardly any gradient came through it."
        ),
    ),
    Bug(
        name="one-head",
        label=N_("One head in place of several"),
        level=2,
        changes={"model.n_heads": 1},
        probe="attention",
        means=N_("With the same number of weights, a token could look at one pattern at a time."),
    ),
    Bug(
        name="no-warm-up",
        label=N_("No warm-up of the learning rate"),
        level=3,
        changes={"training.warmup": 0.0},
        probe="rate",
        means=N_("The first step was as long as any, while Adam knew one gradient of each weight."),
    ),
    Bug(
        name="scaled-by-d-model",
        label=N_("Scores divided by √d_model"),
        level=3,
        changes={"model.scale": "sqrt-d-model"},
        probe="attention",
        means=N_("The width of all heads in the place of one's: attention began √n_heads flatter."),
    ),
    Bug(
        name="shared-norm",
        label=N_("One LayerNorm shared by all sublayers of a block"),
        level=3,
        changes={"model.shared_norm": True},
        probe="numbers",
        means=N_("One scale and shift had to serve all sublayers of a block."),
    ),
    Bug(
        name="no-output-projection",
        label=N_("No output projection after the heads"),
        level=3,
        changes={"model.projections": "no-output"},
        probe="mixing",
        means=N_("Each head wrote to its own slice of the vector, and no matrix mixed the heads."),
    ),
    Bug(
        name="sliced-heads",
        label=N_("Heads that read slices of the embedding"),
        level=3,
        changes={"model.projections": "sliced"},
        probe="mixing",
        means=N_("A head saw its own slice of each vector, not all of it."),
    ),
    Bug(
        name="residual-from-normed",
        label=N_("The residual taken from the normalised value"),
        level=3,
        changes={"model.residual": "from-normed"},
        probe="growth",
        means=N_("x = norm(x) came before the sum, so the sum began anew at each sublayer."),
    ),
)
BUGS: dict[str, Bug] = {bug.name: bug for bug in _BUGS}
LEVELS = (1, 2, 3)


@cache
def basis() -> Experiment:
    """Return what a healthy run learns: to reverse letters, in some seconds, with two layers."""
    experiment = PRESETS["reverse"].experiment
    training = experiment.training.replace(steps=400, snapshots=8, validate_every=50)
    model = experiment.model.model_dump() | {"n_encoder_layers": 2, "n_decoder_layers": 2}
    return experiment.replace(model=model, training=training.model_dump())


def with_bug(healthy: Experiment, bug: Bug) -> Experiment:
    """Return the settings of a twin with a mistake. Raises ConfigError where it has no place."""
    values = healthy.model_dump()
    for path, wrong in bug.changes.items():
        section, field = path.split(".")
        right = values[section][field]
        values[section][field] = right * wrong if field == "learning_rate" else wrong
    return Experiment.parse(values)


def bug_of(healthy: Experiment, twin: Experiment) -> Bug | None:
    """Return the mistake in which a twin differs from a healthy run; None where it is none."""
    for bug in _BUGS:
        try:
            if healthy != twin and with_bug(healthy, bug) == twin:
                return bug
        except (ConfigError, KeyError):  # the family has no such setting
            continue
    return None


def of_level(level: int) -> list[Bug]:
    """Return the mistakes of a level and of those below it."""
    return [bug for bug in _BUGS if bug.level <= level]
