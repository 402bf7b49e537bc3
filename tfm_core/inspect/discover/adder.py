"""Every weight of a small adder, and what its parts do with the bits of a sum.

Of the second bit of a column: where its heads look, what its stream holds, which neurons are on,
and what it answers, each as a mean over new sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tfm_core.choices.config import CorpusTaskConfig, DecoderOnlyConfig, Experiment
from tfm_core.data.corpus.column_sums import BASE, WIDTH
from tfm_core.data.tasks import corpus_task, data_shape
from tfm_core.facts.parameter_table import parameter_table
from tfm_core.inspect.attention.trained import cached_by_weights
from tfm_core.inspect.discover.carry import BLOCK, model_of_run, read_sums
from tfm_core.probe.types import Floats
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Paragraph

PLACES = (
    "b",
    "a",
    N_("sum before"),
    N_("b before"),
    N_("a before"),
    N_("older"),
)
"""Where the second bit of a column may look, from itself back."""
TOTALS = tuple(range(2 * BASE))
"""What a column can come to with its carry: 0 to 3."""


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Some weights of one kind: values (rows, columns), their names, and what they do."""

    name: str
    values: Floats
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    words: str


def n_parameters(experiment: Experiment) -> int:
    """Return how many parameters an experiment's model has."""
    return parameter_table(experiment.model, data_shape(experiment)).total


@cached_by_weights
def steps_of(run: Run) -> tuple[Floats, Floats, float, Floats, Floats]:
    """Return what the last weights do at the second bit of a column, on average.

    In turn: the attention of each head (H, places); what a 1 in a place adds to the stream behind
    attention (places - 1, d_model); the share of its variance that these five bits explain; the
    output of the neurons by what the column comes to (d_ff, totals); and the logit of 1 minus that
    of 0 (totals,). Raises ValueError.
    """
    import torch

    from tfm_core.probe.capture import capture

    model = model_of_run(run)
    rows, (a, b, digit, carry) = read_sums(run)
    n = a.shape[1]
    attention, neurons = f"{BLOCK}.self_attention", f"{BLOCK}.feed_forward"
    names = [attention, f"{attention}_norm", neurons]
    wanted = {"weights", "joined", "hidden"}
    with torch.inference_mode(), capture(model, only=wanted, modules=names) as cache:
        logits = model(rows[:, :0], rows[:, :-1])

    def at(tensor: torch.Tensor) -> Floats:
        """Return (N, n - 1, ...) of all columns but the first, at their second bits."""
        found: Floats = tensor[:, WIDTH - 1 :: WIDTH][:, 1:n].double().numpy()
        return found

    weights = at(cache[f"{attention}.weights"].transpose(1, 2))  # (N, n - 1, H, K)
    looks = np.zeros((weights.shape[2], len(PLACES)))
    for column in range(1, n):
        query = WIDTH * column + WIDTH - 1
        back = weights[:, column - 1, :, query::-1].mean(0)  # (H, query + 1)
        looks[:, :-1] += back[:, : len(PLACES) - 1]
        looks[:, -1] += back[:, len(PLACES) - 1 :].sum(1)
    stream = at(cache[f"{attention}_norm.joined"])
    flat = stream.reshape(-1, stream.shape[-1])
    here, before = np.s_[:, 1:], np.s_[:, :-1]
    bits = [b[here], a[here], digit[before], b[before], a[before]]
    known = np.stack([*(part.ravel() for part in bits), np.ones(len(flat))], 1)
    fitted = np.asarray(np.linalg.lstsq(known, flat, rcond=None)[0], np.float64)
    left = flat - known @ fitted
    spread = flat - flat.mean(0)
    total = (a + b + carry)[here].ravel()
    hidden = at(cache[f"{neurons}.hidden"])
    hidden = hidden.reshape(-1, hidden.shape[-1])
    margin = at(logits)[..., -1].ravel() - at(logits)[..., -BASE].ravel()
    return (
        looks / (n - 1),
        fitted[:-1],
        float(1 - (left**2).sum() / (spread**2).sum()),
        np.stack([hidden[total == one].mean(0) for one in TOTALS], 1),
        np.array([margin[total == one].mean() for one in TOTALS]),
    )


@cached_by_weights
def weights_of(run: Run) -> tuple[Weights, ...]:
    """Return all of the last weights, by kind. Raises ValueError."""
    model = model_of_run(run)
    config = run.experiment.model_as(DecoderOnlyConfig)
    words = corpus_task(run.experiment.task_as(CorpusTaskConfig)).tgt_vocabulary
    tokens = tuple(words.token(number) for number in range(len(words)))
    of = {name: value.detach().double().numpy() for name, value in model.named_parameters()}
    taken: set[str] = set()

    def part(*names: str) -> Floats:
        """Return the weights of a layer with its bias, if it has one, as a last column."""
        taken.update(name for name in names if name in of)
        matrix, *biases = [of[name] for name in names if name in of]
        found: Floats = np.column_stack([matrix, *biases])
        return found

    def layer(path: str) -> tuple[str, str]:
        return f"{BLOCK}.{path}.weight", f"{BLOCK}.{path}.bias"

    stream = _numbered("x", config.d_model)
    projected = part(*layer("self_attention.in_projection"))
    inputs = _with_bias(stream, projected)
    queries, keys, values = np.split(projected, [config.d_q, config.d_q + config.d_kv])
    merged, up, down = (
        part(*layer(path))
        for path in ("self_attention.out_projection", "feed_forward.up", "feed_forward.down")
    )
    heads = _numbered("h", config.d_q)
    neurons = _numbered("n", config.d_ff)
    gates: list[Weights] = []
    if f"{BLOCK}.feed_forward.gate.weight" in of:
        gate = part(*layer("feed_forward.gate"))
        words_of_gate = Paragraph("discover/adder-gate")
        gates = [Weights(N_("Gates"), gate, neurons, _with_bias(stream, gate), words_of_gate)]
    found = [
        Weights(
            N_("Embedding and output"), part("src_embedding.table.weight"), tokens, stream,
            Paragraph("discover/adder-embedding"),
        ),
        Weights(
            N_("Queries"), queries, _numbered("q", config.d_q), inputs,
            Paragraph("discover/adder-queries"),
        ),
        Weights(
            N_("Keys"), keys, _numbered("k", config.d_kv), inputs,
            Paragraph("discover/adder-keys"),
        ),
        Weights(
            N_("Values"), values, _numbered("v", config.d_kv), inputs,
            Paragraph("discover/adder-values"),
        ),
        Weights(
            N_("Output of the heads"), merged, stream, _with_bias(heads, merged),
            Paragraph("discover/adder-merge"),
        ),
        Weights(
            N_("Neurons, in"), up, neurons, _with_bias(stream, up), Paragraph("discover/adder-up")
        ),
        *gates,
        Weights(
            N_("Neurons, out"), down, stream, _with_bias(neurons, down),
            Paragraph("discover/adder-down"),
        ),
    ]  # fmt: skip
    if "output.bias" in of:
        bias = part("output.bias").T
        found.append(
            Weights(
                N_("Output bias"), bias, (N_("bias"),), tokens, Paragraph("discover/adder-bias")
            )
        )
    norms = {f"{BLOCK}.self_attention_norm.weight": N_("attention"),
             f"{BLOCK}.feed_forward_norm.weight": N_("neurons"),
             "decoder.final_norm.weight": N_("output")}  # fmt: skip
    if there := [name for name in norms if name in of]:
        found.append(
            Weights(
                N_("Norms"), np.stack([part(name)[:, 0] for name in there]),
                tuple(norms[name] for name in there), stream, Paragraph("discover/adder-norms"),
            )
        )  # fmt: skip
    assert taken == set(of), f"unseen: {set(of) - taken}"
    return tuple(found)


def _numbered(letter: str, n: int) -> tuple[str, ...]:
    return tuple(f"{letter}{one}" for one in range(1, n + 1))


def _with_bias(names: Sequence[str], values: Floats) -> tuple[str, ...]:
    return (*names, *((N_("bias"),) if values.shape[1] > len(names) else ()))
