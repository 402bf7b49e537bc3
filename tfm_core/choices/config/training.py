"""How a model learns: optimiser, schedule, regularisation, precision, and how often to look."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import model_validator

from tfm_core.choices.config.base import Config, OneOf, check_mistakes, setting, some_of
from tfm_core.choices.variants.training import OPTIMISERS, PRECISIONS, SCHEDULES

LOW = 0.1
"""Share of the peak learning rate, with which a training can continue after its schedule."""

WEIGHT_SETS = 14
"""Sets of weights that a small run keeps over its training, at most: the first, the last, and those
of steps in which its loss fell."""


class TrainingConfig(Config):
    """The settings of the training loop."""

    steps: int = setting("steps", 1000, ge=1, le=1_000_000, step=100)
    batch_size: int = setting("batch_size", 64, ge=1, le=8192, step=16)
    learning_rate: float = setting(
        "learning_rate", OPTIMISERS["adamw"].usual_rate, gt=0, le=10, step=0.0005
    )
    schedule: Annotated[str, OneOf(SCHEDULES)] = setting("schedule", "cosine")
    warmup: float = setting("warmup", 0.1, ge=0, le=1, step=0.05, advanced=True)
    batch_warmup: float = setting("batch_warmup", 0.0, ge=0, le=1, step=0.05, advanced=True)
    optimizer: Annotated[str, OneOf(OPTIMISERS)] = setting("optimizer", "adamw")
    weight_decay: float = setting(
        "weight_decay", OPTIMISERS["adamw"].decay, ge=0, le=1, step=0.01, advanced=True
    )
    beta1: float = setting("beta1", 0.9, ge=0, lt=1, step=0.01, advanced=True)
    beta2: float = setting("beta2", 0.99, ge=0, lt=1, step=0.001, advanced=True)
    label_smoothing: float = setting("label_smoothing", 0.0, ge=0, lt=1, step=0.05, advanced=True)
    mistakes: Annotated[tuple[str, ...], some_of("training")] = setting(
        "mistakes-training", (), advanced=True
    )
    clip_norm: float = setting("clip_norm", 1.0, ge=0, le=1000, step=0.5, advanced=True)
    precision: Annotated[str, OneOf(PRECISIONS)] = setting("precision", "fp32", advanced=True)
    checkpointing: bool = setting("checkpointing", False, advanced=True)
    compile: bool = setting("compile", False, advanced=True)
    validate_every: int = setting("validate_every", 100, ge=1, le=100_000, step=50, advanced=True)
    patience: int = setting("patience", 0, ge=0, le=10_000, step=1, advanced=True)
    ema_decay: float = setting("ema_decay", 0.0, ge=0, lt=1, step=0.001, advanced=True)
    final_test: bool = setting("final_test", True, advanced=True)
    snapshots: int = setting("snapshots", 32, ge=2, le=256, advanced=True)

    @model_validator(mode="before")
    @classmethod
    def _decay_follows(cls, values: Any) -> Any:
        """Fill in the optimiser's own weight decay where none is given."""
        if not isinstance(values, Mapping) or "weight_decay" in values:
            return values
        return {**values, "weight_decay": default_weight_decay(values.get("optimizer"))}

    @model_validator(mode="after")
    def _mistakes_fit(self) -> Self:
        check_mistakes(self)
        return self

    def rate(self, step: int) -> float:
        """Return the learning rate of a step, counted from 1."""
        warm = max(1, round(self.warmup * self.steps))
        return self.learning_rate * SCHEDULES[self.schedule].share(step, warm, self.steps)

    def further(self, steps: int, *, stays_low: bool = False) -> Self:
        """Return the training of a copy that continues up to ``steps`` steps.

        Its schedule is laid over all of them anew, so the rate jumps where the old one had ended.
        Half batches stay those that were. stays_low: the rate is constant instead, at LOW of the
        peak.
        """
        longer = self.replace(steps=steps, batch_warmup=min(1.0, self.n_halved / steps))
        if not stays_low:
            return longer
        rate = LOW * self.learning_rate
        return longer.replace(schedule="constant", warmup=0.0, learning_rate=rate)

    @property
    def n_halved(self) -> int:
        """The first steps, an even number, that learn from half a batch."""
        return 2 * round(self.batch_warmup * self.steps / 2)

    @property
    def tested(self) -> Literal["best", "last", "average"]:
        """Which weights count, and are tested: with patience the best by validation.

        average: that of the weights up to the last step, or with patience up to the best one.
        """
        if self.ema_decay:
            return "average"
        return "best" if self.patience else "last"

    @property
    def keeps_best(self) -> bool:
        """Whether the best weights are kept while others are trained, for the test at the end."""
        return self.patience > 0

    def replace(self, **changes: Any) -> Self:
        """See Config and ``with_optimizer``."""
        values = self.model_dump()
        if "optimizer" in changes:
            values = with_optimizer(values, changes["optimizer"])
        return self.parse({**values, **changes})


def default_weight_decay(optimizer: object) -> float:
    """Return the default weight decay of an optimiser; AdamW's for an unknown name."""
    name = optimizer if isinstance(optimizer, str) and optimizer in OPTIMISERS else "adamw"
    return OPTIMISERS[name].decay


def with_optimizer(training: Mapping[str, Any], optimizer: object) -> dict[str, Any]:
    """Return plain values of a training with another optimiser.

    The weight decay follows: where it is the old optimiser's own, it becomes the new one's.
    """
    follows = training["weight_decay"] == default_weight_decay(training["optimizer"])
    decay = default_weight_decay(optimizer) if follows else training["weight_decay"]
    return {**training, "optimizer": optimizer, "weight_decay": decay}
