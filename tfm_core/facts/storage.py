"""What a run keeps on the disk: what its attention looks at, again and again, its weights at some
of these steps where they are small, and two checkpoints.

Torch-free algebra. Attention is what can grow beyond all measure: a map has tokens² numbers, and a
snapshot holds one for each head of each layer on each example that it looks at. Where that is more
than may be kept, all heads and layers are kept of fewer examples: one example whole is worth more
than many of which some heads are missing.
"""

from __future__ import annotations

from tfm_core.anatomy import anatomy, attentions, stacks
from tfm_core.anatomy.trained import trained
from tfm_core.choices.config import Experiment, TunedConfig, built
from tfm_core.choices.config.shape import CaptionShape, TextShape
from tfm_core.choices.config.training import WEIGHT_SETS
from tfm_core.choices.variants.training import OPTIMISERS
from tfm_core.facts.architectures import of_experiment
from tfm_core.facts.compute import lengths

N_SENTENCES = 6
"""Texts, or pictures that are described, that every snapshot looks at ..."""
N_PICTURES = 10
"""... and pictures of classes."""
MAX_EMBEDDED = 65_536
"""Numbers of an embedding table that every snapshot keeps; a larger one is left out."""
HALF, FULL = 2, 4  # bytes of a number in a snapshot, in a checkpoint


def n_examples(experiment: Experiment) -> int:
    """Return how many examples a snapshot looks at, at most."""
    return N_PICTURES if experiment.task.class_names else N_SENTENCES


def attention_numbers(experiment: Experiment) -> int:
    """Return the attention weights of all heads and layers on one example, the longest there is."""
    known = of_experiment(experiment, "")
    seen = lengths(known.model, known.shape, known.src_len, known.tgt_len)
    n_tokens = {"target": seen.decoder, "sequence": seen.decoder}
    n_numbers = sum(
        len(plan.blocks)
        * n_tokens.get(plan.queries, seen.encoder)
        * n_tokens.get(plan.keys, seen.encoder)
        for plan in attentions(known.model)
    )
    return known.model.n_heads * n_numbers


def examples_kept(experiment: Experiment, most: int) -> int:
    """Return of how many examples the attention is kept, where ``most`` numbers may be; 0: none."""
    return min(n_examples(experiment), most // max(1, attention_numbers(experiment)))


def snapshots_bytes(experiment: Experiment, most: int) -> int:
    """Return the bytes of all snapshots of a run, where one keeps ``most`` attention weights."""
    numbers = attention_numbers(experiment) + _routing_numbers(experiment)
    numbers *= max(1, examples_kept(experiment, most))
    training = experiment.trained
    n_snapshots = min(training.snapshots, training.steps + 1)
    return n_snapshots * HALF * (numbers + _embedded(experiment))


def weights_bytes(n_parameters: int, most: int) -> int:
    """Return the bytes of the weights that a run keeps over its training: all sets, or none.

    most: bytes that they may take.
    """
    needs = WEIGHT_SETS * HALF * n_parameters
    return needs if needs <= most else 0


def run_bytes(experiment: Experiment, n_parameters: int, most: int, most_weights: int) -> int:
    """Return the bytes of a whole run: snapshots, weights, the last and the best checkpoint.

    most: attention weights of a snapshot; most_weights: bytes of the weights over training.
    """
    training = experiment.trained
    shape = of_experiment(experiment, "").shape
    n_hidden = anatomy(experiment.model, shape).n_hidden
    n_trained = n_parameters
    if isinstance(experiment.task, TunedConfig):
        learned = trained(experiment.model, shape, experiment.task)
        n_parameters, n_trained = n_parameters + learned.n_added, learned.n
        n_hidden = min(n_hidden, n_trained)
    remembered = OPTIMISERS[training.optimizer].numbers(n_trained, n_hidden)
    copies = 1 + training.keeps_best + (training.ema_decay > 0)
    saved = copies * n_parameters + remembered
    n_kept = snapshots_bytes(experiment, most) + weights_bytes(n_parameters, most_weights)
    return n_kept + 2 * FULL * saved


def _routing_numbers(experiment: Experiment) -> int:
    """Return the shares of all experts in the tokens of one example, the longest there is."""
    architecture = of_experiment(experiment, "")
    n_experts: int = getattr(architecture.model, "n_experts", 0)
    if n_experts < 2:
        return 0
    n_seen = lengths(
        architecture.model, architecture.shape, architecture.src_len, architecture.tgt_len
    )
    n_tokens = {"encoder": n_seen.encoder, "decoder": n_seen.decoder}
    n_shares = sum(stack.n_layers * n_tokens[stack.name] for stack in stacks(architecture.model))
    return n_experts * n_shares


def _embedded(experiment: Experiment) -> int:
    """Return the numbers of the tables of embeddings and learned positions that are kept."""
    architecture = of_experiment(experiment, "")
    shape, d_model = architecture.shape, built(experiment.model).d_model
    if isinstance(shape, TextShape):
        both = [shape.src_vocabulary, shape.tgt_vocabulary]
        sizes = both[1:] if shape.one_vocabulary else both
    else:
        sizes = [shape.tgt_vocabulary] if isinstance(shape, CaptionShape) else []
    sizes.append(architecture.model.n_positions or 0)
    return sum(n * d_model for n in sizes if n * d_model <= MAX_EMBEDDED)
