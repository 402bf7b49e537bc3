"""What a model computes, by part, for a batch and lengths, and how long a training takes.

Torch-free algebra. One multiply-accumulate (MAC) is 2 FLOPs. Counted are all matrix products, the
attention scores and weighted sums too; norms, activations and softmax are not, as in
``torch.utils.flop_counter``, which gives the same numbers (a test says so). Counted is the whole
forward pass: where only one token is read, training leaves the others out of the last block
(``unasked``).
"""

from __future__ import annotations

from dataclasses import replace

from tfm_core.anatomy import Lengths, anatomy, stacks
from tfm_core.anatomy.trained import trained
from tfm_core.choices.config import DEPTHS, Experiment, ModelConfig, RecurrentConfig
from tfm_core.choices.config.shape import CaptionShape, ImageShape, Shape
from tfm_core.choices.variants.recurrent import ALIGNMENT_SCORES
from tfm_core.facts.architectures import of_experiment
from tfm_core.facts.batches import Batches
from tfm_core.facts.learning_rate import nearest_preset

__all__ = ["PARTS", "Lengths", "grown", "layers", "lengths", "macs", "unasked"]

PARTS = (
    "embedding",
    "recurrence",
    "projections",
    "scores",
    "cross-attention",
    "feed-forward",
    "output",
)
"""Parts of the arithmetic, in the order of the forward pass; ``scores`` are the products that grow
with the square of the length: queries times keys, and weights times values."""


def lengths(config: ModelConfig, shape: Shape, src_len: int, tgt_len: int) -> Lengths:
    """Return how many tokens each stack sees; a picture has as many as patches."""
    return anatomy(config, shape).lengths(src_len, tgt_len)


def macs(
    config: ModelConfig, shape: Shape, *, batch: int = 1, src_len: int = 0, tgt_len: int = 0
) -> dict[str, int]:
    """Return the multiply-accumulates of one forward pass by part, those of PARTS in order."""
    structure = anatomy(config, shape)
    sizes = structure.at(src_len, tgt_len)
    counts = {work: batch * formula.value(sizes) for work, formula in structure.macs.items()}
    return dict.fromkeys(PARTS, 0) | counts


def unasked(config: ModelConfig, shape: Shape) -> int:
    """Return the multiply-accumulates of one picture that a model with a CLS token leaves out.

    Behind its last block that token alone is read, so it alone asks there; keys and values are made
    of all. Who watches a pass sees all of it computed.
    """
    structure = anatomy(config, shape)
    every, last_only = structure.at(0, 0), structure.at(0, 0, all_queries=False)
    return sum(
        formula.value(every) - formula.value(last_only) for formula in structure.macs.values()
    )


def layers(config: ModelConfig) -> tuple[int, int]:
    """Return how many encoder and decoder blocks a model has."""
    if isinstance(config, RecurrentConfig):
        return config.n_layers, config.n_layers
    n_layers = {stack.name: stack.n_layers for stack in stacks(config)}
    return n_layers.get("encoder", 0), n_layers.get("decoder", 0)


def grown(config: ModelConfig, shape: Shape, axis: str, factor: int) -> tuple[ModelConfig, Shape]:
    """Return the model with ``factor`` times its width or depth, or of its picture's side.

    The length of a text is the caller's to multiply. Nothing is validated: sizes may go beyond what
    can be trained here.
    """
    if axis == "length" and isinstance(shape, ImageShape | CaptionShape):
        return config, replace(shape, image_size=shape.image_size * factor)
    if axis == "width":
        fields = type(config).model_fields
        sizes = [name for name in ("d_model", "n_heads", "d_ff") if name in fields]
        wide: dict[str, object] = {name: factor * getattr(config, name) for name in sizes}
        return config.model_copy(update=wide), shape
    if axis == "depth":
        names = [name for name in DEPTHS if hasattr(config, name)]
        return config.model_copy(update={n: factor * getattr(config, n) for n in names}), shape
    return config, shape


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
    of its time says beside the preset that is most like it. More layers never take less. They are
    seconds of one quiet CPU thread of the presets' machine, so any two configurations compare as
    their work does, whatever else a machine is doing.

    A step calls functions, which costs time however small the tensors are; computes products
    (``macs``, three times for forward and backward); and moves what the backward pass keeps
    (``Anatomy.saved``). The constants were fitted to steps of the presets, and of the presets with
    more layers, width and examples, on one thread; they are off by a quarter, seldom by more.
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
    architecture = of_experiment(experiment, "")
    src, tgt = architecture.src_len, architecture.tgt_len
    products = sum(macs(architecture.model, architecture.shape, src_len=src, tgt_len=tgt).values())
    products -= unasked(architecture.model, architecture.shape)
    structure = anatomy(architecture.model, architecture.shape)
    numbers = (structure.saved.full + structure.saved.products).value(
        structure.at(src, tgt, all_queries=False)
    )
    passes = (
        1
        + trained(
            architecture.model, architecture.shape, experiment.task, src_len=src, tgt_len=tgt
        ).backward
    )
    of_example = passes * _MAC * products + _NUMBER * numbers
    return _CALL + _BLOCK * _blocks(architecture.model, tgt), of_example


def _blocks(config: ModelConfig, tgt_len: int) -> float:
    if isinstance(config, RecurrentConfig):
        is_called = ALIGNMENT_SCORES[
            config.attention
        ].attends_before_step  # else all tokens are one call
        return 2 * config.n_layers + _CELL * tgt_len * config.n_layers * is_called
    n_encoder, n_decoder = layers(config)
    return n_encoder + n_decoder * (_CROSS if n_encoder else 1.0)
