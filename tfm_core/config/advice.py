"""Advice on settings that can be, but are seldom meant, or that were chosen along with another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tfm_core.config.experiment import Experiment
from tfm_core.config.training import TrainingConfig, own_decay
from tfm_core.sentences import N_, Paragraph, Sentence, joined
from tfm_core.variants.optimisers import OPTIMISERS
from tfm_core.variants.precisions import PRECISIONS


@dataclass(frozen=True, slots=True)
class Advice:
    """A sentence on one setting, ``"training.weight_decay"``; a warning or merely a reason.

    better: what the setting would be well with, where that is known.
    """

    field: str
    sentence: Sentence
    is_warning: bool = False
    better: float | int | None = None


_FAR = 10  # times the usual learning rate, or below it
_LONG_WARMUP = 0.5  # share of the steps
_MUCH_HALVED = 0.5  # share of the steps that learn from half a batch
_MUCH_DROPPED = 0.6  # share of the activations
_MUCH_SMOOTHED = 0.5  # share of the target
_SHORT_GRADIENT = 0.01  # longest gradient that is let through


def advice(
    training: TrainingConfig,
    *,
    usual_rate: float | None = None,
    n_train: int | None = None,
    dropout: float = 0.0,
) -> tuple[Advice, ...]:
    """Return what a person should know of the settings that were chosen.

    usual_rate: the learning rate that a training like this one is known to learn with. n_train: the
    examples that there are to learn from. dropout: the model's.
    """
    return (
        *_of_rate(training, usual_rate),
        *_of_decay(training),
        *_of_batch(training, n_train),
        *_of_schedule(training),
        *_of_noise(training, dropout),
    )


def _of_rate(training: TrainingConfig, usual: float | None) -> tuple[Advice, ...]:
    rate = training.learning_rate
    if usual is None or usual / _FAR < rate < usual * _FAR:
        return ()
    if rate > usual:
        sentence = N_(
            "{times:,.0f} times the usual {usual:g}: probably diverges.",
            times=rate / usual,
            usual=usual,
        )
    else:
        sentence = N_(
            "{times:,.0f} times below the usual {usual:g}: this will hardly learn.",
            usual=usual,
            times=usual / rate,
        )
    return (Advice("training.learning_rate", sentence, is_warning=True, better=usual),)


def _of_decay(training: TrainingConfig) -> tuple[Advice, ...]:
    optimiser = OPTIMISERS[training.optimizer]
    if not optimiser.decay_is_coupled:
        return ()
    words = {"name": optimiser.label, "why": optimiser.decay_words}
    if training.weight_decay > optimiser.decay:
        sentence = N_(
            "Weight decay is {value:g}; {own:g} is safe with {name}. {why}",
            value=training.weight_decay,
            own=own_decay(training.optimizer),
            **words,
        )
        safe = own_decay(training.optimizer)
        return (Advice("training.weight_decay", sentence, is_warning=True, better=safe),)
    sentence = N_(
        "{name} sets weight decay to {value:g}. {why}",
        value=training.weight_decay,
        **words,
    )
    return (Advice("training.optimizer", sentence),)


def _of_batch(training: TrainingConfig, n_train: int | None) -> Iterator[Advice]:
    if training.n_halved and training.batch_size == 1:
        yield Advice(
            "training.batch_warmup",
            N_("A batch of one cannot be halved."),
            is_warning=True,
            better=0.0,
        )
    elif training.n_halved and training.n_halved >= training.steps - 1:
        yield Advice(
            "training.batch_warmup",
            Paragraph(
                "settings/many-half-batches", half=training.batch_size // 2, usual=_MUCH_HALVED
            ),
            is_warning=True,
            better=_MUCH_HALVED,
        )
    if n_train is None or training.batch_size <= n_train:
        return
    yield Advice(
        "training.batch_size",
        Paragraph("settings/batch-too-large", batch=training.batch_size, n=n_train),
        is_warning=True,
        better=max(1, n_train // _BATCHES),
    )


_BATCHES = 16  # a training set that is smaller than its batch is cut into so many


def _of_schedule(training: TrainingConfig) -> Iterator[Advice]:
    """Yield what is wrong with the order of events: the warm-up, and when it is measured."""
    usual = TrainingConfig.model_fields["warmup"].default
    if training.warmup > _LONG_WARMUP:
        sentence = Paragraph("settings/long-warm-up", share=training.warmup, usual=usual)
        if round(training.warmup * training.steps) >= training.steps:
            sentence = Paragraph("settings/endless-warm-up", usual=usual)
        yield Advice("training.warmup", sentence, is_warning=True, better=usual)
    if training.validate_every > training.steps:
        yield Advice(
            "training.validate_every",
            N_(
                "More than all {steps:,} steps: overfitting shows too late.",
                steps=training.steps,
            ),
            is_warning=True,
            better=max(1, training.steps // 10),
        )
    optimiser = OPTIMISERS[training.optimizer]
    if 0 < training.clip_norm < _SHORT_GRADIENT and not optimiser.is_scale_free:
        yield Advice(
            "training.clip_norm",
            Paragraph("settings/short-gradient", name=optimiser.label, limit=training.clip_norm),
            is_warning=True,
            better=1.0,
        )


def _of_noise(training: TrainingConfig, dropout: float) -> Iterator[Advice]:
    if dropout >= _MUCH_DROPPED:
        yield Advice(
            "model.dropout",
            N_(
                "Dropout of {share:.0%} leaves too little to learn from.",
                share=dropout,
            ),
            is_warning=True,
            better=0.1,
        )
    if training.label_smoothing >= _MUCH_SMOOTHED:
        yield Advice(
            "training.label_smoothing",
            N_(
                "Smoothing takes {share:.0%} of each target: the answer is barely visible.",
                share=training.label_smoothing,
            ),
            is_warning=True,
            better=0.1,
        )


def advice_on_moving(before: str, device: str, experiment: Experiment) -> Sentence:
    """Return what changes for a training that goes on on another device than before."""
    draws = experiment.model.dropout and before.partition(":")[0] != device.partition(":")[0]
    kept = Paragraph("settings/moved", before=before)
    if draws:
        kept = joined(kept, N_("Dropout draws different values."))
    precision = PRECISIONS[experiment.training.precision]
    if device == "cpu" and precision.autocast is not None:
        slow = Paragraph("settings/slow-precision", name=precision.name)
        kept = joined(kept, slow)
    return kept


def advice_on(device: str, training: TrainingConfig) -> Sentence | None:
    """Return what a person should know who trains on a device, or None."""
    precision = PRECISIONS[training.precision]
    if device != "cpu" or not precision.is_for_gpus:
        return None
    return N_(
        "{name} is for GPUs: most CPUs are several times slower than in fp32.",
        name=precision.name,
    )
