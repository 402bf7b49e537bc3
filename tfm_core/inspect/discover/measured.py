"""What runs of repeated letters show: heads over a training, and the last weights elsewhere."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tfm_core.choices.config import CorpusTaskConfig, DecoderOnlyConfig
from tfm_core.data.corpus.in_context import GENERATORS
from tfm_core.data.tasks import corpus_task
from tfm_core.inspect.attention.head_roles import behind_earlier
from tfm_core.inspect.attention.trained import cached_by_folder, cached_by_weights
from tfm_core.inspect.discover.carry import model_of_run
from tfm_core.inspect.discover.heads import one_back, share_on
from tfm_core.inspect.knockouts.measure import Score, measured, n_validation
from tfm_core.inspect.knockouts.parts import Part
from tfm_core.probe.labels import modules_by_kind
from tfm_core.probe.types import Floats
from tfm_core.runs.run import Run

N_ELSEWHERE = 100
N_KNOCKED = 500


def attentions_of(run: Run) -> list[str]:
    """Return the names of a decoder-only model's attentions, layer by layer."""
    return next(iter(modules_by_kind(run.experiment).values()))


def head_scores(run: Run) -> tuple[npt.NDArray[np.int64], Floats, Floats]:
    """Return the snapshots' steps (S,), and the mean attention of each head (S, layers, H).

    First on tokens behind an earlier occurrence, of queries that have one; then on the token
    before. From the attention on the run's examples.
    """
    steps = run.snapshot_steps()
    found = [_at(run, step) for step in steps]
    return (
        np.array(steps, dtype=np.int64),
        np.array([matching for matching, _previous in found]),
        np.array([previous for _matching, previous in found]),
    )


@cached_by_folder
def _at(run: Run, step: int) -> tuple[Floats, Floats]:
    texts = [("<bos>", *item["tgt"]) for item in run.probe().attended]
    attention = run.snapshot(step).attention
    maps = [attention[name] for name in attentions_of(run)]
    matching, previous = ([cells(text) for text in texts] for cells in (behind_earlier, one_back))
    return (
        np.array([share_on(one, matching) for one in maps]),
        np.array([share_on(one, previous) for one in maps]),
    )


@cached_by_weights
def elsewhere(run: Run, task: str) -> tuple[float, Floats]:
    """Return accuracy on the repeat, and matching (layers, H), on new sequences of a task.

    They are repeats, read by the last weights. Raises ValueError.
    """
    import torch

    from tfm_core.probe.capture import capture

    model = model_of_run(run)
    config = run.experiment.task_as(CorpusTaskConfig)
    words, generator = corpus_task(config).tgt_vocabulary, GENERATORS[task]
    rng = random.Random(f"elsewhere {run.experiment.seed}")
    drawn = [generator.draw(rng, config.context) for _ in range(N_ELSEWHERE)]
    rows = torch.tensor([[model.bos_id, *words.encode(tokens)] for tokens in drawn])
    with torch.inference_mode(), capture(model, only={"weights"}) as cache:
        logits = model(rows[:, :0], rows[:, :-1])
    counted = torch.tensor([generator.counts(tokens) for tokens in drawn])
    right = (logits.argmax(-1) == rows[:, 1:]) & counted
    cells = [behind_earlier(("<bos>", *tokens[:-1])) for tokens in drawn]
    maps = cache.of("weights")
    return (
        float(right.sum() / counted.sum()),
        np.array([share_on(maps[name].numpy(), cells) for name in attentions_of(run)]),
    )


@cached_by_weights
def copying(run: Run) -> Floats:
    """Return (layers, H): how much each head writes what it reads, from -1 to 1.

    The sum of the eigenvalues of the way from a token through the head's values to the logits, over
    the sum of their sizes (Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits",
    "Summarizing OV/QK matrices"). Of norms only their scale counts. Raises ValueError.
    """
    import torch

    from tfm_core.data.vocabulary import SPECIALS

    model = model_of_run(run)
    config = run.experiment.model_as(DecoderOnlyConfig)
    rows = []
    with torch.inference_mode():
        read = model.tgt_embedding.table.weight[len(SPECIALS) :].double()
        written = model.output.weight[len(SPECIALS) :].double()
        for layer in model.decoder.layers:
            block: Any = layer
            attention, scale = block.self_attention, block.self_attention_norm.weight.double()
            values = attention.in_projection.weight[-config.d_kv :].double()
            out, d = attention.out_projection.weight.double(), config.d_head
            heads = []
            for head in range(config.n_heads):
                columns = slice(head * d, (head + 1) * d)
                way = (read * scale) @ values[columns].T @ out[:, columns].T @ written.T
                found = torch.linalg.eigvals(way)
                heads.append(float(found.real.sum() / found.abs().sum()))
            rows.append(heads)
    return np.array(rows)


def without(run: Run, heads: Sequence[tuple[int, int]]) -> Score:
    """Return the score where heads (layer, head) give their mean. Raises ValueError."""
    parts = [Part("head", "decoder", layer, "self", head) for layer, head in heads]
    return measured(run, parts, "mean", N_KNOCKED)


def with_uniform(run: Run, layers: Sequence[int]) -> Score:
    """Return the score where some layers attend to all tokens so far alike. Raises ValueError."""
    parts = [Part("sublayer", "decoder", layer, "self") for layer in layers]
    return measured(run, parts, "even", n_validation(run))
