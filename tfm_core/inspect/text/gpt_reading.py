"""A decoder-only model reads a text through the logit lens, or a sum digit by digit.

The lens applies the last norm and the output matrix to the residual stream after every block
(nostalgebraist 2020, "interpreting GPT: the logit lens"). torch is imported late.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfm_core.config import CorpusTaskConfig, DecoderOnlyConfig, SequenceTaskConfig
from tfm_core.inspect.attention.trained import check_context, model_of
from tfm_core.runs.run import Run
from tfm_core.sentences import N_

if TYPE_CHECKING:
    from torch import Tensor

    from tfm_core.models.text import DecoderOnly


Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Lens:
    """What the stream of one text predicts at each depth, the embedding first; arrays (L + 1, T).

    ids: the likeliest next token; probability: of it; final: of the model's final choice; entropy:
    in nats.
    """

    ids: Array
    probability: Array
    final: Array
    entropy: Array


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


def logit_lens(model: DecoderOnly, src: Tensor, tgt_in: Tensor) -> Lens:
    """Return the model's predictions at each depth and position of one text."""
    chances = lens_logits(model, src, tgt_in).float().softmax(-1)
    best = chances.max(-1)
    answer = best.indices[-1]  # (T,)
    final = chances.gather(-1, answer[None, :, None].expand(len(chances), -1, 1))[..., 0]
    entropy = -(chances * chances.clamp_min(1e-30).log()).sum(-1)
    return Lens(
        best.indices.numpy().astype(np.int32),
        best.values.numpy(),
        final.numpy(),
        entropy.numpy(),
    )


@dataclass(frozen=True, slots=True, eq=False)
class LensReading:
    """A lens on a text. read: T tokens from <bos> on; says: (L + 1) x T likeliest next tokens."""

    step: int
    read: tuple[str, ...]
    says: tuple[tuple[str, ...], ...]
    lens: Lens


@dataclass(frozen=True, slots=True, eq=False)
class Digits:
    """A source answered token by token. chances: (T, V). answer, truth: with <eos>."""

    step: int
    source: str
    answer: tuple[str, ...]
    truth: tuple[str, ...] | None
    vocabulary: tuple[str, ...]
    chances: Array


def look_through(run: Run, text: str) -> LensReading:
    """Read a text with the lens: a language model the text, others a source and their answer.

    Raises ValueError, in a sentence.
    """
    import torch

    from tfm_core.data.tasks import text_task
    from tfm_core.models.text import DecoderOnly

    experiment = run.experiment
    experiment.model_as(DecoderOnlyConfig, N_("The logit lens needs a decoder-only model."))
    config = experiment.task_as(SequenceTaskConfig)
    task = text_task(config)
    tokens = task.tokenize(text)
    vocabulary = task.tgt_vocabulary
    model, step = model_of(run)
    assert isinstance(model, DecoderOnly)
    if not config.has_source:
        check_context(experiment.task_as(CorpusTaskConfig), len(tokens))
        src, written = torch.empty(1, 0, dtype=torch.int64), vocabulary.encode(tokens)
    else:
        src = torch.tensor([task.src_vocabulary.encode(tokens)])
        written = vocabulary.encode(sum_of(run, text).answer[:-1])
    lens = logit_lens(model, src, torch.tensor([[model.bos_id, *written]]))
    says = tuple(tuple(vocabulary.token(i) for i in row) for row in lens.ids.tolist())
    return LensReading(step, (config.begin, *vocabulary.row(written)), says, lens)


def sum_of(run: Run, text: str) -> Digits:
    """Let a decoder-only model answer a source greedily. Raises ValueError, in a sentence."""
    import torch

    from tfm_core.data.tasks import text_task
    from tfm_core.decoding import greedy
    from tfm_core.models.text import DecoderOnly

    config = run.experiment.task_as(SequenceTaskConfig)
    task = text_task(config)
    tokens = task.tokenize(text)
    model, step = model_of(run)
    assert isinstance(model, DecoderOnly)
    src = torch.tensor([task.src_vocabulary.encode(tokens)])
    ids = greedy(model, src, max_len=config.max_tgt_len + 1).ids
    with torch.inference_mode():
        tgt_in = torch.cat([ids.new_full((1, 1), model.bos_id), ids[:, :-1]], 1)
        chances = model(src, tgt_in)[0].float().softmax(-1)
    truth = task.solve(tokens)
    vocabulary = task.tgt_vocabulary
    return Digits(
        step=step,
        source=task.join_src(tokens),
        answer=vocabulary.row(ids[0].tolist()),
        truth=None if truth is None else (*truth, "<eos>"),
        vocabulary=tuple(vocabulary.token(i) for i in range(len(vocabulary))),
        chances=chances.numpy(),
    )
