"""A decoder-only model reads a text through the logit lens, or a sum digit by digit.

The lens applies the last norm and the output matrix to the residual stream after every block
(nostalgebraist 2020, "interpreting GPT: the logit lens"). torch is imported late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tfm_core.choices.config import CorpusTaskConfig, DecoderOnlyConfig
from tfm_core.inspect.attention.trained import cached_by_weights, check_context, model_of
from tfm_core.probe.types import Array
from tfm_core.runs.run import Run
from tfm_core.sentences import N_

if TYPE_CHECKING:
    from torch import Tensor

    from tfm_core.models.text import DecoderOnly


Texts = tuple[str, ...]


def lens_logits(model: DecoderOnly, src: Tensor, tgt_in: Tensor) -> Tensor:
    """Return (L + 1, T, V): the logits at each depth for src (1, S), tgt_in (1, T)."""
    import torch

    from tfm_core.layers.masks import is_token
    from tfm_core.probe.capture import capture

    with capture(model, only={"input", "residual"}) as cache:
        model(src, tgt_in)
        depths = [cache["decoder.input"]]
        depths += [cache[f"decoder.layers.{i}.residual"] for i in range(len(model.decoder.layers))]
        first = int(is_token(src, model.pad_id).sum())
        norm = model.decoder.final_norm
        logits = []
        for stream in depths:  # one by one, as the model does it: so the last is equal to the bit
            rows = stream if norm is None else norm(stream)
            logits.append(model.output(rows[:, first : first + tgt_in.size(1)]))
    return torch.cat(logits)


def logit_lens(model: DecoderOnly, src: Tensor, tgt_in: Tensor) -> tuple[Array, Array, Array]:
    """Return what the stream of one text predicts at each depth, the embedding first.

    Each (L + 1, T): the number of the likeliest next token, its probability, and that of the
    model's final choice.
    """
    chances = lens_logits(model, src, tgt_in).float().softmax(-1)
    best = chances.max(-1)
    answer = best.indices[-1]  # (T,)
    final = chances.gather(-1, answer[None, :, None].expand(len(chances), -1, 1))[..., 0]
    return best.indices.numpy().astype(np.int32), best.values.numpy(), final.numpy()


@cached_by_weights
def look_through(run: Run, text: str) -> tuple[Texts, tuple[Texts, ...], Array, Array]:
    """Read a text with the lens: a language model the text, others a source and their answer.

    Return the T tokens that are read, from <bos> on; the (L + 1) x T likeliest next tokens; their
    probability, and that of the model's final choice, as ``logit_lens``. Raises ValueError, in a
    sentence.
    """
    import torch

    from tfm_core.data.tasks import text_task
    from tfm_core.models.text import DecoderOnly

    experiment = run.experiment
    experiment.model_as(DecoderOnlyConfig, N_("The logit lens needs a decoder-only model."))
    config = experiment.task
    task = text_task(config)
    tokens = task.tokenize(text)
    vocabulary = task.tgt_vocabulary
    model, _step = model_of(run)
    assert isinstance(model, DecoderOnly)
    if not config.has_source:
        check_context(experiment.task_as(CorpusTaskConfig), len(tokens))
        src, written = torch.empty(1, 0, dtype=torch.int64), vocabulary.encode(tokens)
    else:
        src = torch.tensor([task.src_vocabulary.encode(tokens)])
        _source, answer, _truth, _chances = sum_of(run, text)
        written = vocabulary.encode(answer[:-1])
    ids, probability, final = logit_lens(model, src, torch.tensor([[model.bos_id, *written]]))
    says = tuple(tuple(vocabulary.token(i) for i in row) for row in ids.tolist())
    return (config.begin, *vocabulary.row(written)), says, probability, final


@cached_by_weights
def sum_of(run: Run, text: str) -> tuple[str, Texts, Texts | None, pd.DataFrame]:
    """Let a decoder-only model answer a source greedily, token by token.

    Return the source, the answer and the truth, with <eos>, and the probability of each token of
    the vocabulary (columns) at each place of the answer. Raises ValueError, in a sentence.
    """
    import torch

    from tfm_core.data.tasks import text_task
    from tfm_core.decoding import greedy
    from tfm_core.models.text import DecoderOnly

    config = run.experiment.task
    task = text_task(config)
    tokens = task.tokenize(text)
    model, _step = model_of(run)
    assert isinstance(model, DecoderOnly)
    src = torch.tensor([task.src_vocabulary.encode(tokens)])
    ids = greedy(model, src, max_len=config.max_tgt_len + 1).ids
    with torch.inference_mode():
        tgt_in = torch.cat([ids.new_full((1, 1), model.bos_id), ids[:, :-1]], 1)
        chances = model(src, tgt_in)[0].float().softmax(-1)
    truth = task.solve(tokens)
    vocabulary = task.tgt_vocabulary
    names = [vocabulary.token(i) for i in range(len(vocabulary))]
    return (
        task.join_src(tokens),
        vocabulary.row(ids[0].tolist()),
        None if truth is None else (*truth, "<eos>"),
        pd.DataFrame(chances.numpy(), columns=names),
    )
