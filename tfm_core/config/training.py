"""How a model learns: optimiser, schedule, regularisation, precision, and how often to look."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import model_validator

from tfm_core.config.base import Config, OneOf, knob
from tfm_core.config.mistakes import MISTAKES_HELP, check_mistakes, some_of
from tfm_core.sentences import N_
from tfm_core.variants.optimisers import OPTIMISERS
from tfm_core.variants.precisions import PRECISIONS
from tfm_core.variants.schedules import SCHEDULES

LOW = 0.1
"""Of the peak learning rate: a rate that goes on where a schedule has ended, and shakes little."""


class TrainingConfig(Config):
    """The settings of the training loop."""

    steps: int = knob(
        1000,
        N_("Steps"),
        N_("Batches to learn from, one update each."),
        ge=1,
        le=1_000_000,
        step=100,
    )
    batch_size: int = knob(
        64,
        N_("Batch size"),
        N_("Examples per step. Larger is smoother and slower per step."),
        ge=1,
        le=8192,
        step=16,
    )
    learning_rate: float = knob(
        OPTIMISERS["adamw"].usual_rate,
        N_("Learning rate"),
        N_("Peak size of a step. Too high diverges, too low crawls."),
        gt=0,
        le=10,
        step=0.0005,
    )
    schedule: Annotated[str, OneOf(SCHEDULES)] = knob(
        "cosine", N_("Schedule"), N_("How the learning rate moves.")
    )
    warmup: float = knob(
        0.1,
        N_("Warm-up"),
        N_("Share of the steps in which the learning rate rises."),
        ge=0,
        le=1,
        step=0.05,
        advanced=True,
    )
    batch_warmup: float = knob(
        0.0,
        N_("Half batches"),
        N_(
            "Share of the steps, the first ones, that learn from half a batch: as long as the "
            "examples' gradients agree, half of them teach nearly as much in less time "
            "(McCandlish et al. 2018).",
        ),
        ge=0,
        le=1,
        step=0.05,
        advanced=True,
    )
    optimizer: Annotated[str, OneOf(OPTIMISERS)] = knob(
        "adamw", N_("Optimiser"), N_("How gradients become updates.")
    )
    weight_decay: float = knob(
        OPTIMISERS["adamw"].decay,
        N_("Weight decay"),
        N_(
            "Pull of the matrices towards zero; biases, norms, embeddings, position tables and the "
            "CLS token are left alone. It follows the optimiser until you type one.",
        ),
        ge=0,
        le=1,
        step=0.01,
        advanced=True,
    )
    beta1: float = knob(
        0.9,
        N_("Beta 1"),
        N_("Memory of the mean gradient (the momentum of SGD and of Muon)."),
        ge=0,
        lt=1,
        step=0.01,
        advanced=True,
    )
    beta2: float = knob(
        0.99,
        N_("Beta 2"),
        N_("Memory of the squared gradient (Adam, AdamW, and what Muon leaves to AdamW)."),
        ge=0,
        lt=1,
        step=0.001,
        advanced=True,
    )
    label_smoothing: float = knob(
        0.0,
        N_("Label smoothing"),
        N_("Share of the target spread over all classes; 0.1 in the paper."),
        ge=0,
        lt=1,
        step=0.05,
        advanced=True,
    )
    mistakes: Annotated[tuple[str, ...], some_of("training")] = knob(
        (), N_("Mistakes in training"), MISTAKES_HELP, advanced=True
    )
    clip_norm: float = knob(
        1.0,
        N_("Gradient clipping"),
        N_("Longest gradient allowed; 0 switches clipping off."),
        ge=0,
        le=1000,
        step=0.5,
        advanced=True,
    )
    precision: Annotated[str, OneOf(PRECISIONS)] = knob(
        "fp32", N_("Precision"), N_("Number format of the arithmetic."), advanced=True
    )
    checkpointing: bool = knob(
        False,
        N_("Checkpointing"),
        N_(
            "Gradient checkpointing: keep of each Transformer block its input alone and compute "
            "its inside again on the way back (Chen et al. 2016). The same gradients, less memory, "
            "about a third more time; for models that would not fit.",
        ),
        advanced=True,
    )
    compile: bool = knob(
        False,
        N_("torch.compile"),
        N_(
            "Make one program of the model's many operations, which NVIDIA GPUs launch at once, as "
            "a CUDA graph (Ansel et al. 2024). It takes half a minute to some minutes before the "
            "first step, little where it was done before; a CPU gains next to nothing. All texts "
            "are padded to the longest; numbers differ by rounding, and with dropout by what it "
            "drops. The run says how long it took, or why it was not done."
        ),
        advanced=True,
    )
    validate_every: int = knob(
        100,
        N_("Validate every"),
        N_(
            "Steps between two measurements on unseen examples; while the loss falls, a few more "
            "are made in between."
        ),
        ge=1,
        le=100_000,
        step=50,
        advanced=True,
    )
    patience: int = knob(
        0,
        N_("Patience"),
        N_(
            "Stop early after so many validations in a row without a new lowest loss; 0 never "
            "stops. With patience the weights of the lowest are tested at the end, not the last.",
        ),
        ge=0,
        le=10_000,
        step=1,
        advanced=True,
    )
    ema_decay: float = knob(
        0.0,
        N_("Averaged weights"),
        N_(
            "Decay of an exponential moving average of all weights, which is measured beside them, "
            "tested in their place, and what pages look into; 0 keeps none. It remembers about "
            "1 / (1 - decay) steps: 0.99 for hundreds of steps, 0.999 for tens of thousands. With "
            "patience its validation loss is the one that is waited for."
        ),
        ge=0,
        lt=1,
        step=0.001,
        advanced=True,
    )
    final_test: bool = knob(
        True,
        N_("Test at the end"),
        N_(
            "Measure the test set once, when training ends: with patience the weights that were "
            "best by validation, without it the last; where weights are averaged, their average. "
            "Off leaves the test set unopened.",
        ),
        advanced=True,
    )
    snapshots: int = knob(
        32,
        N_("Snapshots"),
        N_(
            "How many snapshots are kept at most: some log-spaced over the steps, most where "
            "the loss falls."
        ),
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
        return {**values, "weight_decay": own_decay(values.get("optimizer"))}

    @model_validator(mode="after")
    def _mistakes_fit(self) -> Self:
        check_mistakes(self)
        return self

    def rate(self, step: int) -> float:
        """Return the learning rate of a step, counted from 1."""
        warm = max(1, round(self.warmup * self.steps))
        return self.learning_rate * SCHEDULES[self.schedule].share(step, warm, self.steps)

    def further(self, steps: int, *, stays_low: bool = False) -> Self:
        """Return the training of a copy that goes on up to ``steps`` steps.

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


def own_decay(optimizer: object) -> float:
    """Return the weight decay that an optimiser begins with; AdamW's for a name that is unknown."""
    name = optimizer if isinstance(optimizer, str) and optimizer in OPTIMISERS else "adamw"
    return OPTIMISERS[name].decay


def with_optimizer(training: Mapping[str, Any], optimizer: object) -> dict[str, Any]:
    """Return plain values of a training with another optimiser.

    The weight decay follows: where it is the old optimiser's own, it becomes the new one's.
    """
    follows = training["weight_decay"] == own_decay(training["optimizer"])
    decay = own_decay(optimizer) if follows else training["weight_decay"]
    return {**training, "optimizer": optimizer, "weight_decay": decay}
