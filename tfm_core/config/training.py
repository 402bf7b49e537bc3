"""How a model learns: optimiser, schedule, regularisation, precision, and how often to look."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import model_validator

from tfm_core.config.base import MISTAKES_HELP, Config, OneOf, check_mistakes, setting, some_of
from tfm_core.sentences import N_, Paragraph
from tfm_core.variants.optimisers import OPTIMISERS
from tfm_core.variants.precisions import PRECISIONS
from tfm_core.variants.schedules import SCHEDULES

LOW = 0.1
"""Share of the peak learning rate, with which a training can continue after its schedule."""


class TrainingConfig(Config):
    """The settings of the training loop."""

    steps: int = setting(
        1000,
        N_("Steps"),
        N_("Batches, one update each."),
        ge=1,
        le=1_000_000,
        step=100,
    )
    batch_size: int = setting(
        64,
        N_("Batch size"),
        N_("Examples per step; more are smoother and slower."),
        ge=1,
        le=8192,
        step=16,
    )
    learning_rate: float = setting(
        OPTIMISERS["adamw"].usual_rate,
        N_("Learning rate"),
        N_("Peak: too high diverges, too low learns slowly."),
        gt=0,
        le=10,
        step=0.0005,
    )
    schedule: Annotated[str, OneOf(SCHEDULES)] = setting(
        "cosine", N_("Schedule"), N_("Learning rate over the steps.")
    )
    warmup: float = setting(
        0.1,
        N_("Warm-up"),
        N_("Share of the steps in which the rate rises."),
        ge=0,
        le=1,
        step=0.05,
        advanced=True,
    )
    batch_warmup: float = setting(
        0.0,
        N_("Half batches"),
        Paragraph("settings/batch-warmup"),
        ge=0,
        le=1,
        step=0.05,
        advanced=True,
    )
    optimizer: Annotated[str, OneOf(OPTIMISERS)] = setting(
        "adamw", N_("Optimiser"), N_("How gradients become updates.")
    )
    weight_decay: float = setting(
        OPTIMISERS["adamw"].decay,
        N_("Weight decay"),
        Paragraph("settings/weight-decay"),
        ge=0,
        le=1,
        step=0.01,
        advanced=True,
    )
    beta1: float = setting(
        0.9,
        N_("Beta 1"),
        N_("Decay rate of the mean gradient: momentum in SGD and Muon."),
        ge=0,
        lt=1,
        step=0.01,
        advanced=True,
    )
    beta2: float = setting(
        0.99,
        N_("Beta 2"),
        N_("Decay rate of the mean squared gradient (Adam, AdamW, Muon's AdamW)."),
        ge=0,
        lt=1,
        step=0.001,
        advanced=True,
    )
    label_smoothing: float = setting(
        0.0,
        N_("Label smoothing"),
        N_("Share of the target spread over all classes (paper: 0.1)."),
        ge=0,
        lt=1,
        step=0.05,
        advanced=True,
    )
    mistakes: Annotated[tuple[str, ...], some_of("training")] = setting(
        (), N_("Mistakes in training"), MISTAKES_HELP, advanced=True
    )
    clip_norm: float = setting(
        1.0,
        N_("Gradient clipping"),
        N_("Largest gradient norm; 0 for no clipping."),
        ge=0,
        le=1000,
        step=0.5,
        advanced=True,
    )
    precision: Annotated[str, OneOf(PRECISIONS)] = setting(
        "fp32", N_("Precision"), N_("Number format of the arithmetic."), advanced=True
    )
    checkpointing: bool = setting(
        False, N_("Checkpointing"), Paragraph("settings/checkpointing"), advanced=True
    )
    compile: bool = setting(
        False, N_("torch.compile"), Paragraph("settings/compile"), advanced=True
    )
    validate_every: int = setting(
        100,
        N_("Validate every"),
        N_("Steps between validations; more while the loss falls."),
        ge=1,
        le=100_000,
        step=50,
        advanced=True,
    )
    patience: int = setting(
        0,
        N_("Patience"),
        Paragraph("settings/patience"),
        ge=0,
        le=10_000,
        step=1,
        advanced=True,
    )
    ema_decay: float = setting(
        0.0,
        N_("Averaged weights"),
        Paragraph("settings/ema-decay"),
        ge=0,
        lt=1,
        step=0.001,
        advanced=True,
    )
    final_test: bool = setting(
        True, N_("Test at the end"), N_("Measure the test set once, after training."), advanced=True
    )
    snapshots: int = setting(
        32,
        N_("Snapshots"),
        N_("Most snapshots to keep; denser where the loss falls."),
        ge=2,
        le=256,
        advanced=True,
    )

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
