"""What a training step keeps in memory: weights, gradients, the optimiser's numbers, activations.

Torch-free algebra, counted tensor by tensor as PyTorch on a CPU keeps them for the backward pass; a
test holds it to what autograd keeps and to the peak of PyTorch's own allocator, preset by preset.
The peak is where a forward pass has ended and the gradients of the step before are still there.

With dropout PyTorch's CPU has no fused attention: every weight is kept, and the noise of each; nor
has it one where what is added to the scores is trained.
Under autocast matrix products keep their inputs in the smaller format, and a copy of the weights.
"""

from __future__ import annotations

from dataclasses import dataclass

from tfm_core.config import (
    CaptionerConfig,
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    Experiment,
    ModelConfig,
    RecurrentConfig,
    TransformerConfig,
    ViTConfig,
)
from tfm_core.config.shape import CaptionShape, ImageShape, Shape, TextShape
from tfm_core.facts import compute_recurrent as recurrent
from tfm_core.facts.architectures import of_experiment
from tfm_core.facts.compute import Lengths, cut_of, layers, lengths
from tfm_core.facts.hidden import hidden_numbers
from tfm_core.variants.activations import ACTIVATIONS
from tfm_core.variants.norms import NORMS
from tfm_core.variants.optimisers import OPTIMISERS
from tfm_core.variants.poolings import POOLINGS
from tfm_core.variants.positions import POSITIONS
from tfm_core.variants.precisions import PRECISIONS
from tfm_core.variants.projections import PROJECTIONS
from tfm_core.variants.residuals import RESIDUALS
from tfm_core.variants.stems import STEMS

BYTES = 4  # of one number in fp32
ID = 2  # a token's id is 8 bytes: as many numbers
MOST_COPIES = 4
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


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of a training step at its peak: weights, gradients, optimiser state, activations.

    activations: or what the optimiser works on when they are gone, where that is more, as it may be
    with Muon and a batch that is small for the model.
    watched: activations when every attention weight is kept, as without a fused kernel.
    """

    weights: int
    gradients: int
    optimizer: int
    activations: int
    watched: int

    @property
    def total(self) -> int:
        """All of a training step."""
        return self.weights + self.gradients + self.optimizer + self.activations


@dataclass(frozen=True, slots=True)
class Kept:
    """Numbers that one example keeps for the backward pass.

    full: those in fp32; products: those of matrix products, which autocast makes smaller; copies:
    those which are there only because it makes a small one of a full one that is kept too; weights:
    attention weights that are kept only where somebody watches.
    """

    full: int = 0
    products: int = 0
    copies: int = 0
    weights: int = 0

    def __add__(self, other: Kept) -> Kept:
        """Keep both."""
        return Kept(
            self.full + other.full,
            self.products + other.products,
            self.copies + other.copies,
            self.weights + other.weights,
        )

    def __mul__(self, n: int) -> Kept:
        """Keep it ``n`` times."""
        return Kept(n * self.full, n * self.products, n * self.copies, n * self.weights)


def of_run(experiment: Experiment, n_parameters: int) -> Memory:
    """Return the memory of a step of a run, at the longest sequences of its task."""
    known, training = of_experiment(experiment, ""), experiment.training
    return memory(
        experiment.model,
        known.shape,
        n_parameters,
        batch=training.batch_size,
        src_len=known.src_len,
        tgt_len=known.tgt_len,
        optimizer=training.optimizer,
        precision=training.precision,
        keeps_best=training.keeps_best,
        averages=training.ema_decay > 0,
        checkpointing=training.checkpointing,
    )


def memory(
    config: ModelConfig,
    shape: Shape,
    n_parameters: int,
    *,
    batch: int = 1,
    src_len: int = 0,
    tgt_len: int = 0,
    optimizer: str = "adamw",
    precision: str = "fp32",
    keeps_best: bool = False,
    averages: bool = False,
    checkpointing: bool = False,
) -> Memory:
    """Return the bytes of a training step. optimizer, precision: names in their registries.

    keeps_best: whether the best weights are kept beside the newest. averages: whether an average of
    them is. checkpointing: whether of each block its input alone is kept; see ``_inside``.
    """
    numbers = kept(config, shape, src_len, tgt_len, checkpointing=checkpointing)
    logits = BYTES * batch * _logits(config, shape, src_len, tgt_len)  # until the loss is there
    small = PRECISIONS[precision].n_bytes

    def n_bytes(numbers: Kept) -> int:
        copies = numbers.copies if small < BYTES else 0
        return batch * (BYTES * numbers.full + small * (numbers.products + copies))

    activations = n_bytes(numbers) + logits
    activations += BYTES * _once(config, shape, src_len, tgt_len)
    if small < BYTES and not checkpointing:
        activations += small * _multiplied(config, shape)
    weights = BYTES * n_parameters
    n_hidden, chosen = hidden_numbers(config, shape), OPTIMISERS[optimizer]
    remembered = chosen.numbers(n_parameters, n_hidden)
    watched = BYTES * batch * numbers.weights
    if checkpointing and not isinstance(config, RecurrentConfig):
        seen = lengths(config, shape, src_len, tgt_len)
        inside = _inside(config, shape, seen)
        # the backward pass has freed the gradients of the step before, and what the loss kept
        later = n_bytes(numbers) - n_bytes(_end(config, shape, seen)) + n_bytes(inside) - weights
        activations = max(activations, later)
        watched = BYTES * batch * inside.weights
    if chosen.others is not None:
        activations = max(activations, BYTES * MOST_COPIES * n_hidden)
    return Memory(
        weights=weights * (1 + keeps_best + averages),
        gradients=weights,
        optimizer=BYTES * remembered,
        activations=activations,
        watched=activations + watched,
    )


def _inside(config: TransformerConfig, shape: Shape, seen: Lengths) -> Kept:
    """Return what the largest block keeps, with the gradients that pass through it on the way back.

    With checkpointing that is there of one block at a time.
    """
    n_encoder, n_decoder = layers(config)
    found = []
    if n_encoder:
        found.append((_block(config, seen.encoder, _mask(config, seen.encoder)), seen.encoder))
    if n_decoder:
        block = _block(config, seen.decoder, seen.decoder**2)
        if isinstance(config, EncoderDecoderConfig | CaptionerConfig):
            block += _cross(config, seen)
        found.append((block, seen.decoder))
    block, length = max(found, key=lambda one: one[0].full + one[0].products)
    return block + Kept(products=length * config.d_ff, full=length * config.d_model)


def kept(
    config: ModelConfig, shape: Shape, src_len: int, tgt_len: int, *, checkpointing: bool = False
) -> Kept:
    """Return what one example keeps from the forward pass for the backward pass.

    checkpointing: of each block its input alone.
    """
    if isinstance(config, RecurrentConfig):
        assert isinstance(shape, TextShape)
        return Kept(*recurrent.activations(config, shape, src_len, tgt_len))
    seen = lengths(config, shape, src_len, tgt_len)
    found = _start(config, shape, seen) + _end(config, shape, seen)
    n_encoder, n_decoder = layers(config)
    if n_encoder:
        found += _encoder(config, shape, seen, n_encoder, checkpointing=checkpointing)
    if n_decoder and checkpointing:
        found += Kept(full=n_decoder * seen.decoder * config.d_model)
        found += _last_norm(config, seen.decoder)
    elif n_decoder:
        found += _block(config, seen.decoder, seen.decoder**2) * n_decoder
        found += _last_norm(config, seen.decoder)
    has_cross = isinstance(config, EncoderDecoderConfig | CaptionerConfig)
    if has_cross and not checkpointing:
        found += _cross(config, seen) * n_decoder
        found += Kept(copies=(n_decoder - 1) * seen.encoder * config.d_model)  # of the memory
    if config.dropout:  # the noise on what goes in
        found += Kept(full=(seen.encoder + seen.decoder) * config.d_model)
    return found


def _encoder(
    config: TransformerConfig, shape: Shape, seen: Lengths, n: int, *, checkpointing: bool
) -> Kept:
    """Return what the encoder's ``n`` blocks keep, and the norm behind them."""
    length = seen.encoder
    blocks = last = _block(config, length, _mask(config, length))
    if checkpointing:
        blocks = last = Kept(full=length * config.d_model)
    elif isinstance(config, ViTConfig) and POOLINGS[config.pooling].has_cls:
        last = _last_block(config, length, 1)
    if isinstance(config, ViTConfig):
        if not POOLINGS[config.pooling].has_cls:  # a mean needs no token for its gradient
            return blocks * n + _last_norm(config, length, read=0)
        return blocks * (n - 1) + last + _last_norm(config, 1)
    read = length
    if isinstance(shape, TextShape) and isinstance(config, EncoderOnlyConfig):
        read = seen.answers if shape.head == "tokens" else length
        read = 0 if shape.is_label and not shape.has_cls else read
    return blocks * n + _last_norm(config, length, read=read)


def _block(config: TransformerConfig, length: int, mask: int) -> Kept:
    """Return what the self-attention and the feed-forward layer of a block keep.

    mask: numbers of the attention's mask.
    """
    attention = _attention(config, length, length, mask, self_attention=True)
    products = 3 * length * config.d_model  # queries, keys, values
    projected = _projected(config, products, self_attention=True)
    return projected + attention + _feed_forward(config, length)


def _is_bias_trained(config: TransformerConfig, *, self_attention: bool) -> bool:
    """Return whether training changes what is added to the scores."""
    kind = POSITIONS[config.position]
    return self_attention and kind.acts_on == "scores" and kind.is_learned


def _once(config: ModelConfig, shape: Shape, src_len: int, tgt_len: int) -> int:
    """Return the numbers kept once for a whole batch.

    They say which trained bias each score gets, or are a stem's weights in another order.
    """
    if isinstance(config, RecurrentConfig):
        return 0
    found = 0
    if isinstance(config, ViTConfig | CaptionerConfig):
        found += STEMS[config.stem].n_kept_once(cut_of(config, shape))
    if _is_bias_trained(config, self_attention=True):
        seen = lengths(config, shape, src_len, tgt_len)
        found += ID * (seen.encoder**2 + seen.decoder**2)
    return found


def _projected(config: TransformerConfig, numbers: int, *, self_attention: bool) -> Kept:
    # without a fused kernel the weights are computed in fp32
    if config.dropout or _is_bias_trained(config, self_attention=self_attention):
        return Kept(full=numbers)
    return Kept(products=numbers)


def _attention(
    config: TransformerConfig, queries: int, keys: int, mask: int, *, self_attention: bool
) -> Kept:
    """Return what an attention keeps behind its projections, with its norm and its dropout."""
    d, heads = config.d_model, config.n_heads
    pairs = heads * queries * keys
    is_trained = _is_bias_trained(config, self_attention=self_attention)
    bytes_of_mask = mask if is_trained else 0
    found = _norm(config, queries) + Kept(products=queries * d)  # the heads, side by side
    if config.dropout:  # weights, their noise, and both together; the noise on the sum
        return found + Kept(full=3 * pairs + bytes_of_mask // BYTES, products=queries * d)
    if is_trained:
        return found + Kept(full=pairs + bytes_of_mask // BYTES)
    found += Kept(full=heads * queries, weights=2 * pairs)  # of each row the log of its sum
    acts_on = POSITIONS[config.position].acts_on if self_attention else "nothing"
    if acts_on == "queries and keys":  # as they came, and as they were made
        return found + Kept(products=mask + 2 * queries * d)
    if acts_on == "scores":  # what is added to them, with the mask in it
        return found + Kept(products=pairs + queries * d)
    return found + Kept(products=mask)


def _norm(config: TransformerConfig, length: int, read: int | None = None) -> Kept:
    """Return what a norm keeps for itself, and what comes out of it.

    read: how many tokens of what comes out a product reads; None: all.
    """
    d = config.d_model
    products = (length if read is None else read) * d
    kept = length * NORMS[config.norm].n_kept(d)
    if config.norm == "layernorm" and not RESIDUALS[config.residual].has_sum:
        # what a sublayer makes is no sum in fp32: the norm reads it, and keeps it, as it is
        return Kept(full=kept - length * d, products=products + length * d)
    return Kept(full=kept, products=products)


def _feed_forward(config: TransformerConfig, length: int) -> Kept:
    """Return what a feed-forward layer keeps of its hidden layer, with its norm and its dropout."""
    activation = ACTIVATIONS[config.activation]
    hidden = activation.n_kept + 1
    if config.dropout:  # the noise on the hidden layer, and what of it is left beside its result
        hidden = max(1, activation.n_kept) + 2
    products = hidden * config.d_ff + (config.d_model if config.dropout else 0)
    copies = length * config.d_model * (activation.n_matrices - 2)  # one for each that reads it
    return _norm(config, length) + Kept(products=length * products, copies=copies)


def _cross(config: TransformerConfig, seen: Lengths) -> Kept:
    """Return what the cross-attention of one block keeps."""
    mask = seen.encoder if isinstance(config, EncoderDecoderConfig) else 0
    projected = (seen.decoder + 2 * seen.encoder) * config.d_model
    attention = _attention(config, seen.decoder, seen.encoder, mask, self_attention=False)
    return _projected(config, projected, self_attention=False) + attention


def _last_block(config: TransformerConfig, length: int, asking: int) -> Kept:
    """Return what the last block keeps where only some tokens are read: all are attended to."""
    d = config.d_model
    projected = (asking + 2 * length) * d
    attention = _attention(config, asking, length, 0, self_attention=True)
    # all are read by keys and values, and once more in full where those that ask are taken out
    read = Kept(full=length * d, products=asking * d, copies=length * d)
    if not RESIDUALS[config.residual].has_sum:  # what comes from the block before is no sum in fp32
        read = Kept(products=(length + asking) * d, copies=length * d)
    if config.norm_first:
        read += _norm(config, length, read=0)
    kept = _projected(config, projected, self_attention=True)
    return kept + read + attention + _feed_forward(config, asking)


def _last_norm(config: TransformerConfig, length: int, read: int | None = None) -> Kept:
    """Return what is kept behind a stack; post-norm, its last output is that of its last block."""
    if config.has_final_norm:
        return _norm(config, length, read)
    return Kept(products=(length if read is None else read) * config.d_model)


def _mask(config: TransformerConfig, length: int) -> int:
    """Return the numbers of the mask in an encoder: a row for all queries, or one for each."""
    if isinstance(config, ViTConfig | CaptionerConfig):
        return 0
    return length * length if config.window else length


def _start(config: TransformerConfig, shape: Shape, seen: Lengths) -> Kept:
    """Return what is kept up to the first block: ids, or pixels."""
    ids = ID * (seen.encoder + seen.decoder)
    if isinstance(shape, TextShape):
        return Kept(full=ids)
    assert isinstance(config, ViTConfig | CaptionerConfig)
    pixels = STEMS[config.stem].n_kept(cut_of(config, shape))
    return Kept(full=ID * seen.decoder, products=pixels)


def _end(config: TransformerConfig, shape: Shape, seen: Lengths) -> Kept:
    """Return what is kept behind the last block: the answers, and the loss."""
    d, logits = config.d_model, _logits(config, shape, 0, seen.answers)
    found = Kept(full=logits + ID * seen.answers)
    if isinstance(config, DecoderOnlyConfig):  # those of the sequence that answer are taken out
        whole = seen.decoder * d
        return found + Kept(full=whole, products=seen.answers * d - whole)
    return found


def _logits(config: ModelConfig, shape: Shape, src_len: int, tgt_len: int) -> int:
    """Return the logits of one example."""
    if isinstance(shape, ImageShape):
        return shape.n_classes
    if isinstance(shape, TextShape) and shape.head == "pooler":
        return config.d_model
    if isinstance(shape, TextShape) and shape.head == "states":
        return (tgt_len or src_len) * config.d_model
    if isinstance(shape, TextShape) and shape.is_label:
        return shape.n_labels
    words = tgt_len or (shape.tgt_len if isinstance(shape, CaptionShape) else src_len)
    return words * shape.tgt_vocabulary


def _multiplied(config: ModelConfig, shape: Shape) -> int:
    """Return the weights of which autocast keeps a small copy.

    Those of all blocks and of the output, and of the projection of patches.
    """
    if isinstance(config, RecurrentConfig):
        return 0
    d, (n_encoder, n_decoder) = config.d_model, layers(config)
    n_square = 3 + PROJECTIONS[config.projections].has_output
    block = n_square * d * d + ACTIVATIONS[config.activation].n_matrices * d * config.d_ff
    has_cross = isinstance(config, EncoderDecoderConfig | CaptionerConfig)
    ends = d * _logits(config, shape, 0, 1)
    if isinstance(config, ViTConfig | CaptionerConfig):
        ends += d * STEMS[config.stem].projected(cut_of(config, shape))
    return (n_encoder + n_decoder) * block + n_decoder * has_cross * n_square * d * d + ends
