"""What a training step keeps in memory: weights, gradients, the optimiser's numbers, activations.

Torch-free: what autograd saves is a sum over the anatomy of the model; a test holds it to what
autograd keeps and to the peak of PyTorch's own allocator, preset by preset. The peak is where a
forward pass has ended and the gradients of the step before are still there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tfm_core.anatomy import Anatomy, Formula, Part, Saved, anatomy, formula
from tfm_core.anatomy.trained import saved_while_tuned, trained
from tfm_core.choices.config import (
    BlockConfig,
    Experiment,
    ModelConfig,
    TrainingConfig,
    TunedConfig,
)
from tfm_core.choices.config.shape import Shape
from tfm_core.choices.variants.activations import ACTIVATIONS
from tfm_core.choices.variants.training import OPTIMISERS, PRECISIONS
from tfm_core.facts.architectures import of_experiment
from tfm_core.facts.parameter_table import parameter_table

BYTES = 4  # of one number in fp32
MAX_COPIES = 4
"""Of each hidden matrix, while Muon makes all of them orthogonal at once; measured: 3.7 to 3.8."""

PROCESS_BYTES = 350_000_000
"""A worker with torch loaded, before it has a model."""

_PEAK, _PEAK_BYTES = 1.45, 200_000_000
"""What a worker's memory grows by, at most, beside what a step keeps: times as much, and more.

Measured as the growth of the resident set at its peak over short trainings of presets, of larger
batches and of wider models (29 cases). A step keeps what ``memory`` counts; the allocator keeps
holes beside that, kernels are loaded once, and validation reads 500 examples at a time.
"""


def peak_bytes(step_bytes: int) -> int:
    """Return the bytes that a worker uses up to, process and all, by what its steps keep."""
    return PROCESS_BYTES + round(_PEAK * step_bytes) + _PEAK_BYTES


_PLAIN = TrainingConfig()


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of a training step at its peak: weights, gradients, optimiser state, activations.

    activations: or what the optimiser works on when they are gone, where that is more, as it may be
    with Muon and a batch that is small for the model.
    passing: what the gradients of activations take beyond that, in the last block.
    watched: activations when every attention weight is kept, as without a fused kernel.
    """

    weights: int
    gradients: int
    optimizer: int
    activations: int
    passing: int
    watched: int

    @property
    def total(self) -> int:
        """All of a training step."""
        return self.weights + self.gradients + self.optimizer + self.activations + self.passing


def of_run(experiment: Experiment, n_parameters: int) -> Memory:
    """Return the memory of a step of a run, at the longest sequences of its task."""
    known, training = of_experiment(experiment, ""), experiment.trained
    return memory(
        experiment.model,
        known.shape,
        n_parameters,
        training,
        batch=training.batch_size,
        src_len=known.src_len,
        tgt_len=known.tgt_len,
        task=experiment.task,
    )


def memory(
    config: ModelConfig,
    shape: Shape,
    n_parameters: int,
    training: TrainingConfig = _PLAIN,
    *,
    batch: int = 1,
    src_len: int = 0,
    tgt_len: int = 0,
    task: object = None,
) -> Memory:
    """Return the bytes of a training step.

    task: where it trains a part of the model alone, that part has gradients.

    The best weights and averaged ones are kept beside the newest. With checkpointing, of each block
    its input alone is kept; see ``_largest_block``.
    """
    found, chosen = anatomy(config, shape), OPTIMISERS[training.optimizer]
    sizes = found.at(src_len, tgt_len, all_queries=False)
    small, checkpointing = PRECISIONS[training.precision].n_bytes, training.checkpointing

    def n_bytes(saved: Saved) -> int:
        products = saved.products + (saved.copies if small < BYTES else Formula())
        per_example = BYTES * saved.full + small * products + saved.masks
        return batch * per_example.value(sizes)

    saved = found.saved_at_checkpoints if checkpointing else found.saved
    n_trained, n_hidden = n_parameters, found.n_hidden
    if isinstance(task, TunedConfig) and task.trains != "all":
        learned = trained(config, shape, task)
        n_parameters += learned.n_added
        n_trained, n_hidden = learned.n, min(n_hidden, learned.n)
        saved = saved if checkpointing else saved_while_tuned(found, config, task)
    logits = BYTES * batch * found.logits.value(sizes)  # until the loss is there
    activations = n_bytes(saved) + logits + BYTES * saved.once.value(sizes)
    if small < BYTES and not checkpointing:
        activations += small * saved.cast.value(sizes)
    weights, gradients = BYTES * n_parameters, BYTES * n_trained
    watched, later = saved.watched, 0
    if checkpointing and found.blocks:
        inside = _largest_block(found, sizes)
        # the backward pass has freed the gradients of the step before, and what the loss kept
        later = n_bytes(saved) - n_bytes(found.saved_for_loss) + n_bytes(inside) - gradients
        activations = max(activations, later)
        watched = inside.watched
    elif found.blocks:
        passing = BYTES * batch * _passing(found.blocks[-1], config, sizes)
        later = n_bytes(saved) - n_bytes(found.saved_for_loss) + passing - gradients
    if chosen.others is not None:
        activations = max(activations, BYTES * MAX_COPIES * n_hidden)
    return Memory(
        weights=weights * (1 + training.keeps_best + (training.ema_decay > 0)),
        gradients=gradients,
        optimizer=BYTES * chosen.numbers(n_trained, n_hidden),
        activations=activations,
        passing=max(0, later - activations),
        watched=activations + BYTES * batch * watched.value(sizes),
    )


def _passing(block: Part, config: ModelConfig, sizes: Mapping[str, int]) -> int:
    """Count the gradients in the last block while the backward pass has freed nothing before it.

    In feed-forward those of its hidden layers, less the result that has been freed, where the
    activation's derivative needs another tensor; in attention those of query, key and value.
    """
    assert isinstance(config, BlockConfig)
    activation = ACTIVATIONS[config.activation]
    n_hidden = 2 if activation.is_gated or not activation.n_saved else 1
    read, asking = (one[0].shape[1] for one in (block.inputs, block.outputs))
    in_feed_forward = formula(f"{n_hidden * config.d_ff + 2 * config.d_model} {asking}")
    in_attention = formula(f"3 d_model {read} + 2 d_model {asking}")
    return max(one.value(sizes) for one in (in_feed_forward, in_attention))


def _largest_block(found: Anatomy, sizes: Mapping[str, int]) -> Saved:
    """Return what the largest block saves, with the gradients that pass through it on the way back.

    With checkpointing that is there of one block at a time.
    """

    def saved(block: Part) -> Saved:
        length = block.inputs[0].shape[1]
        passing = Saved(full=formula(f"{length} d_model"), products=formula(f"{length} d_ff"))
        return Saved.total([*(part.saved for part in block), passing])

    return max(map(saved, found.blocks), key=lambda one: (one.full + one.products).value(sizes))


@dataclass(frozen=True, slots=True)
class Sizes:
    """Numbers of a model, and bytes of a training step (``facts.memory``), without the process."""

    n_parameters: int
    step_bytes: int

    @property
    def memory_bytes(self) -> int:
        """Bytes that a worker uses up to (``memory.peak_bytes``)."""
        return peak_bytes(self.step_bytes)


def sizes(experiment: Experiment) -> Sizes:
    """Return the sizes of an experiment; its model is laid out without memory, with torch."""
    known = of_experiment(experiment, "")
    n_parameters = parameter_table(known.model, known.shape).total
    return Sizes(n_parameters, of_run(experiment, n_parameters).total)
