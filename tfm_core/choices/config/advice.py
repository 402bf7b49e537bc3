"""Advice on valid settings that are rarely meant, or that another setting chose."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tfm_core.choices.config.experiment import Experiment
from tfm_core.choices.config.model import built
from tfm_core.choices.config.training import TrainingConfig, default_weight_decay
from tfm_core.choices.variants.training import OPTIMISERS, PRECISIONS
from tfm_core.sentences import N_, Paragraph, Sentence, joined


@dataclass(frozen=True, slots=True)
class Advice:
    """A sentence on one setting, ``"training.weight_decay"``; a warning or merely a reason.

    better: a value that would be fine, if one is known.
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
_SHORT_GRADIENT = 0.01  # gradient norm
_BATCHES = 16  # to cut a training set into that is smaller than its batch


def advice(
    training: TrainingConfig,
    *,
    usual_rate: float | None = None,
    n_train: int | None = None,
    dropout: float = 0.0,
) -> tuple[Advice, ...]:
    """Return advice on the chosen settings.

    usual_rate: a learning rate with which similar trainings learn. n_train: the number of training
    examples. dropout: the model's.
    """
    warnings = (
        *_on_rate(training, usual_rate),
        *_on_decay(training),
        *_on_batch(training, n_train),
        *_on_schedule(training),
        *_on_noise(training, dropout),
    )
    return tuple(
        Advice(field, sentence, is_warning=better is not None, better=better)
        for field, sentence, better in warnings
    )


AdviceItem = Iterator[tuple[str, Sentence, float | None]]
"""A field, a sentence on it and a better value; without one it is no warning."""


def _on_rate(training: TrainingConfig, usual: float | None) -> AdviceItem:
    rate = training.learning_rate
    if usual is None or usual / _FAR < rate < usual * _FAR:
        return
    times = max(rate / usual, usual / rate)
    high = N_(
        "{times:,.0f} times the usual {usual:g}; it will probably diverge.",
        times=times,
        usual=usual,
    )
    low = N_(
        "{times:,.0f} times below the usual {usual:g}; it will hardly learn.",
        times=times,
        usual=usual,
    )
    yield "training.learning_rate", high if rate > usual else low, usual


def _on_decay(training: TrainingConfig) -> AdviceItem:
    optimiser, value = OPTIMISERS[training.optimizer], training.weight_decay
    if not optimiser.decay_is_coupled:
        return
    words = {"name": optimiser.label, "value": value, "why": optimiser.decay_words}
    if value > optimiser.decay:
        own = default_weight_decay(training.optimizer)
        sentence = N_(
            "Weight decay is {value:g}; {own:g} is safe with {name}. {why}", own=own, **words
        )
        yield "training.weight_decay", sentence, own
    else:
        yield (
            "training.optimizer",
            N_("{name} sets weight decay to {value:g}. {why}", **words),
            None,
        )


def _on_batch(training: TrainingConfig, n_train: int | None) -> AdviceItem:
    size = training.batch_size
    if training.n_halved and size == 1:
        yield "training.batch_warmup", N_("A batch of one cannot be halved."), 0.0
    elif training.n_halved and training.n_halved >= training.steps - 1:
        sentence = Paragraph("settings/many-half-batches", half=size // 2, usual=_MUCH_HALVED)
        yield "training.batch_warmup", sentence, _MUCH_HALVED
    if n_train is not None and size > n_train:
        sentence = Paragraph("settings/batch-too-large", batch=size, n=n_train)
        yield "training.batch_size", sentence, max(1, n_train // _BATCHES)


def _on_schedule(training: TrainingConfig) -> AdviceItem:
    usual, steps = TrainingConfig.model_fields["warmup"].default, training.steps
    if training.warmup > _LONG_WARMUP:
        sentence = Paragraph("settings/long-warm-up", share=training.warmup, usual=usual)
        if round(training.warmup * steps) >= steps:
            sentence = Paragraph("settings/endless-warm-up", usual=usual)
        yield "training.warmup", sentence, usual
    if training.validate_every > steps:
        late = N_("More than all {steps:,} steps, so overfitting shows too late.", steps=steps)
        yield "training.validate_every", late, max(1, steps // 10)
    optimiser, limit = OPTIMISERS[training.optimizer], training.clip_norm
    if 0 < limit < _SHORT_GRADIENT and not optimiser.is_scale_free:
        sentence = Paragraph("settings/short-gradient", name=optimiser.label, limit=limit)
        yield "training.clip_norm", sentence, 1.0


def _on_noise(training: TrainingConfig, dropout: float) -> AdviceItem:
    if dropout >= _MUCH_DROPPED:
        sentence = N_("Dropout of {share:.0%} leaves too little to learn from.", share=dropout)
        yield "model.dropout", sentence, 0.1
    smoothing = training.label_smoothing
    if smoothing >= _MUCH_SMOOTHED:
        sentence = N_("Smoothing of {share:.0%} hides the right answer.", share=smoothing)
        yield "training.label_smoothing", sentence, 0.1


def advice_on_moving(before: str, device: str, experiment: Experiment) -> Sentence:
    """Return what changes for a training that continues on another device than ``before``."""
    sentences: list[Sentence] = [Paragraph("settings/moved", before=before)]
    if built(experiment.model).dropout and before.partition(":")[0] != device.partition(":")[0]:
        sentences.append(N_("Dropout draws different values."))
    precision = PRECISIONS[experiment.trained.precision]
    if device == "cpu" and precision.autocast is not None:
        sentences.append(Paragraph("settings/slow-precision", name=precision.name))
    return joined(*sentences) if len(sentences) > 1 else sentences[0]


def advice_on(device: str, training: TrainingConfig) -> Sentence | None:
    """Return a warning for a training on a device, or None."""
    precision = PRECISIONS[training.precision]
    if device != "cpu" or not precision.is_for_gpus:
        return None
    return Paragraph("settings/slow-on-cpu", name=precision.name)
