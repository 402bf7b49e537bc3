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


def advice(training: TrainingConfig) -> tuple[Advice, ...]:
    """Return what a person should know of the settings that were chosen."""
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
