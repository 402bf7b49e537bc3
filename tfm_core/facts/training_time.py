"""How long a training takes, modelled: seconds of one quiet CPU thread of the presets' machine.

Torch-free algebra, so that any two configurations compare as their work does, whatever else the
machine is doing. A step calls functions, which costs time however small the tensors are; computes
products (``compute.macs``, three times for forward and backward); and moves what the backward pass
keeps (``Anatomy.saved``). The constants were fitted to steps of the presets, and of the presets
with more layers, width and examples, on one thread; they are off by a quarter, seldom by more.
"""

from __future__ import annotations

from tfm_core.anatomy import anatomy
from tfm_core.anatomy.trained import trained
from tfm_core.choices.config import Experiment, ModelConfig, RecurrentConfig
from tfm_core.choices.variants.alignment_scores import ALIGNMENT_SCORES
from tfm_core.facts.architectures import of_experiment
from tfm_core.facts.batches import Batches
from tfm_core.facts.compute import layers, macs, unasked
from tfm_core.facts.learning_rate import nearest_preset

_CALL = 0.0018  # seconds of a step around its blocks: batch, loss, optimiser
_BLOCK = 0.00025  # seconds of a block's calls, forward and backward
_MAC = 5.2e-12  # seconds of a multiply-accumulate
_NUMBER = 3.2e-9  # seconds of a number that is kept for the backward pass, made and read again
_CROSS = 1.6  # a decoder's block with cross-attention, in blocks
_CELL = 0.5  # a recurrent cell that is called for each token, in blocks
_MEASURED = 0.4  # of a step's time an example takes where it is only measured
_ON_CPU = {"fp32": 1.0, "bf16": 1.4, "fp16": 2.0}
"""How many times as long a step takes on a CPU in each precision; on one without instructions for
the type it is more."""


def seconds(experiment: Experiment, steps: int | None = None) -> float:
    """Return the seconds of a training of so many steps (None: all), with its validations.

    A preset takes what was measured of it; what else is trained, as much more or less as the model
    of its time says beside the preset that is most like it. More layers never take less.
    """
    like = nearest_preset(experiment)
    measured = like.seconds / _modelled(like.experiment, like.experiment.trained.steps)
    return measured * _modelled(experiment, steps or experiment.trained.steps)


def _modelled(experiment: Experiment, steps: int) -> float:
    training = experiment.trained
    calls, of_example = _step(experiment)
    slow = _ON_CPU[training.precision]
    examples = Batches.of_experiment(experiment).examples(steps) * (1 + training.checkpointing / 3)
    n_validation = getattr(experiment.task, "n_validation", 0)
    validations = steps / training.validate_every + 1
    return slow * (steps * calls + (examples + validations * n_validation * _MEASURED) * of_example)


def _step(experiment: Experiment) -> tuple[float, float]:
    """Return the seconds of a step's calls, and those that each example adds."""
    known = of_experiment(experiment, "")
    src, tgt = known.src_len, known.tgt_len
    products = sum(macs(known.model, known.shape, src_len=src, tgt_len=tgt).values())
    products -= unasked(known.model, known.shape)
    found = anatomy(known.model, known.shape)
    numbers = (found.saved.full + found.saved.products).value(found.at(src, tgt, all_queries=False))
    passes = (
        1 + trained(known.model, known.shape, experiment.task, src_len=src, tgt_len=tgt).backward
    )
    of_example = passes * _MAC * products + _NUMBER * numbers
    return _CALL + _BLOCK * _blocks(known.model, tgt), of_example


def _blocks(model: ModelConfig, tgt_len: int) -> float:
    if isinstance(model, RecurrentConfig):
        is_called = ALIGNMENT_SCORES[
            model.attention
        ].attends_before_step  # else all tokens are one call
        return 2 * model.n_layers + _CELL * tgt_len * model.n_layers * is_called
    n_encoder, n_decoder = layers(model)
    return n_encoder + n_decoder * (_CROSS if n_encoder else 1.0)
