"""A trained decoder-only model reads: through the logit lens, or a sum digit by digit.

torch is imported where it is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from tfm_core.config import CorpusTaskConfig, DecoderOnlyConfig, SequenceTaskConfig
from tfm_core.inspect.attention.trained import model_of
from tfm_core.inspect.text.logit_lens import Lens, logit_lens
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, StudentError
from tfm_core.variants.units import UNITS

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class LensReading:
    """A lens on a text. read: T tokens from <bos> on; says: (L + 1) x T likeliest next tokens."""

    step: int
    read: tuple[str, ...]
    says: tuple[tuple[str, ...], ...]
    lens: Lens


@dataclass(frozen=True, slots=True, eq=False)
class Digits:
    """A source answered token by token. chances: (T, V) of each place, the answer's own so far.

    answer: what was written, with <eos>; truth: the true tokens, with <eos>, or None.
    """

    step: int
    source: str
    answer: tuple[str, ...]
    truth: tuple[str, ...] | None
    vocabulary: tuple[str, ...]
    chances: Array


def look_through(run: Run, text: str) -> LensReading:
    """Read a text with the lens: of a language model the text, else a source and its own answer.

    Raises ValueError, in a sentence: another family, no weights, unknown or too many tokens.
    """
    import torch

    from tfm_core.data.text import text_task
    from tfm_core.data.vocabulary import BOS
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
        if len(tokens) > config.max_tgt_len:
            raise StudentError(
                "{n_tokens} {unit} are too many: the model sees {max_tgt_len} after <bos>. Shorten the text.",
                n_tokens=len(tokens),
                unit=UNITS[experiment.task_as(CorpusTaskConfig).unit].plural,
                max_tgt_len=config.max_tgt_len,
            )
        src, written = torch.empty(1, 0, dtype=torch.int64), vocabulary.encode(tokens)
    else:
        src = torch.tensor([task.src_vocabulary.encode(tokens)])
        written = vocabulary.encode(sum_of(run, text).answer[:-1])
    lens = logit_lens(model, src, torch.tensor([[BOS, *written]]))
    says = tuple(tuple(vocabulary.token(i) for i in row) for row in lens.ids.tolist())
    return LensReading(step, ("<bos>", *(vocabulary.token(i) for i in written)), says, lens)


def sum_of(run: Run, text: str) -> Digits:
    """Let a decoder-only model answer a source, greedily, and keep every distribution.

    Raises ValueError, in a sentence.
    """
    import torch

    from tfm_core.data.text import text_task
    from tfm_core.data.vocabulary import BOS
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
        tgt_in = torch.cat([ids.new_full((1, 1), BOS), ids[:, :-1]], 1)
        chances = model(src, tgt_in)[0].float().softmax(-1)
    truth = task.solve(tokens)
    vocabulary = task.tgt_vocabulary
    return Digits(
        step=step,
        source=task.join_src(tokens),
        answer=tuple(vocabulary.token(i) for i in ids[0].tolist()),
        truth=None if truth is None else (*truth, "<eos>"),
        vocabulary=tuple(vocabulary.token(i) for i in range(len(vocabulary))),
        chances=chances.numpy(),
    )
