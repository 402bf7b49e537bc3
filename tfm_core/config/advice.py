"""Advice on settings that can be, but are seldom meant, or that were chosen along with another."""

from __future__ import annotations

from dataclasses import dataclass

from tfm_core.config.training import TrainingConfig, own_decay
from tfm_core.sentences import N_, Sentence
from tfm_core.variants.optimisers import OPTIMISERS
from tfm_core.variants.precisions import PRECISIONS


@dataclass(frozen=True, slots=True)
class Advice:
    """A sentence on one setting, ``"training.weight_decay"``; a warning or merely a reason."""

    field: str
    sentence: Sentence
    is_warning: bool = False


_FAR = 10  # times the usual learning rate, or below it


def advice(training: TrainingConfig, *, usual_rate: float | None = None) -> tuple[Advice, ...]:
    """Return what a person should know of the settings that were chosen.

    usual_rate: the learning rate that a training like this one is known to learn with.
    """
    return (*_of_rate(training, usual_rate), *_of_decay(training))


def _of_rate(training: TrainingConfig, usual: float | None) -> tuple[Advice, ...]:
    rate = training.learning_rate
    if usual is None or usual / _FAR < rate < usual * _FAR:
        return ()
    if rate > usual:
        sentence = N_(
            "{rate:g} is {times:,.0f} times the usual {usual:g}: training will most likely diverge "
            "or learn nothing.",
            rate=rate,
            times=rate / usual,
            usual=usual,
        )
    else:
        sentence = N_(
            "The usual {usual:g} is {times:,.0f} times as high: this will hardly learn.",
            usual=usual,
            times=usual / rate,
        )
    return (Advice("training.learning_rate", sentence, is_warning=True),)


def _of_decay(training: TrainingConfig) -> tuple[Advice, ...]:
    optimiser = OPTIMISERS[training.optimizer]
    if not optimiser.decay_is_coupled:
        return ()
    words = {"name": optimiser.label, "why": optimiser.decay_words}
    if training.weight_decay > optimiser.decay:
        sentence = N_(
            "Weight decay is {value:g} with {name}; {own:g} is safe. {why}",
            value=training.weight_decay,
            own=own_decay(training.optimizer),
            **words,
        )
        return (Advice("training.weight_decay", sentence, is_warning=True),)
    sentence = N_(
        "With {name}, weight decay is {value:g} unless you type one. {why}",
        value=training.weight_decay,
        **words,
    )
    return (Advice("training.optimizer", sentence),)


def advice_on(device: str, training: TrainingConfig) -> Sentence | None:
    """Return what a person should know who trains on a device, or None."""
    precision = PRECISIONS[training.precision]
    if device != "cpu" or not precision.is_for_gpus:
        return None
    return N_(
        "{name} is made for GPUs: on most CPUs a step takes several times as long as in fp32.",
        name=precision.name,
    )
