"""A language model reads a text: surprisal of each token, the logit lens, a sum digit by digit.

Surprisal is -ln p, in nats. The lens applies the last norm and the output matrix to the residual
stream after every block (nostalgebraist 2020, "interpreting GPT: the logit lens"). torch is
imported late.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tfm_core.choices.config import CorpusTaskConfig, DecoderOnlyConfig
from tfm_core.choices.variants.tasks import UNITS
from tfm_core.data.tasks import corpus_task
from tfm_core.inspect.attention.trained import cached_by_weights, check_context, model_of
from tfm_core.inspect.questions import Question, choice_question
from tfm_core.probe.types import Array
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, StudentError

if TYPE_CHECKING:
    from torch import Tensor

    from tfm_core.models.text import DecoderOnly


NO_LANGUAGE_MODEL = N_("This run is not a language model.")
_LENGTH = {"words": 60, "characters": 300, "bpe": 120}


def example_text(run: Run, n: int | None = None) -> str:
    """Return about ``n`` tokens of the end of a run's text, a sentence, or its first example."""
    config = run.experiment.task_as(CorpusTaskConfig)
    task = corpus_task(config)
    if task.is_drawn:
        tokens = task.sample(random.Random(f"{run.experiment.seed} unseen")).tgt
        return task.join_tgt(tokens if n is None else tokens[:n])
    if task.missing is not None:
        item = run.probe().items[0]
        return task.join_tgt([*item["tgt"][: n or _LENGTH[config.unit]]])
    tokens = tuple(task.tokens)
    first = len(tokens) - max(2, len(tokens) // 10)
    for position in range(first, min(first + 80, len(tokens) - 1)):  # not in the middle of a word
        if config.unit == "words" or _begins_word(tokens, position):
            first = position
            break
    piece = tokens[first : first + (n or _LENGTH[config.unit])]
    if config.unit != "words":  # nor ending in one
        ends = [n for n in range(1, len(piece)) if _begins_word(piece, n)]
        piece = piece[: ends[-1]] if ends else piece
    return task.join_tgt(piece).strip()


def _begins_word(tokens: Sequence[str], position: int) -> bool:
    """Return whether a token follows or begins with white space."""
    return tokens[position - 1].isspace() or tokens[position][:1] == " " != tokens[position]


BITS = float(1 / np.log(2))
"""Bits in a nat."""
N_BEST = 10
MAX_TOKENS = 1000


@cached_by_weights
def surprisals(run: Run, text: str) -> pd.DataFrame:
    """Read a text with the last checkpoint of a language model, a row a token.

    token; nats: -ln p, whose mean is the loss on this text; rank: from 1; entropy: of the
    prediction, in nats; best: the likeliest (token, probability). Raises ValueError.
    """
    import torch

    from tfm_core.models.text import DecoderOnly

    config = run.experiment.task_as(CorpusTaskConfig, NO_LANGUAGE_MODEL)
    task = corpus_task(config)
    tokens = task.tokenize(text)
    if len(tokens) > MAX_TOKENS:
        raise StudentError(
            "The text has {n_tokens:,} {unit}; the limit is {most_tokens:,}.",
            n_tokens=len(tokens),
            unit=UNITS[config.unit].plural,
            most_tokens=MAX_TOKENS,
        )
    model, _step = model_of(run)
    assert isinstance(model, DecoderOnly)
    vocabulary = task.tgt_vocabulary
    if task.is_grammar:
        tokens = (*tokens, "<eos>")
    ids = torch.tensor(vocabulary.encode(tokens))
    with torch.inference_mode():
        logs = predictions(model, ids, config.max_tgt_len + 1).double().log_softmax(-1)  # (T, V)
    own = logs.gather(1, ids[:, None])
    best = logs.exp().topk(min(N_BEST, logs.size(1)), -1)
    likeliest = [
        [(vocabulary.token(i), p) for i, p in zip(row_ids, row, strict=True)]
        for row_ids, row in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]
    return pd.DataFrame(
        {
            "token": pd.Series(tokens, dtype=object),
            "nats": -own[:, 0].numpy(),
            "rank": ((logs > own).sum(1) + 1).numpy(),
            "entropy": -(logs.exp() * logs).sum(-1).numpy(),
            "best": likeliest,
        }
    )


def predictions(model: DecoderOnly, ids: Tensor, context: int) -> Tensor:
    """Return (T, V): logits for each of ids (T,), from <bos> and the tokens before it.

    A text longer than the context is read in windows that overlap by half.
    """
    import torch

    length, half = len(ids), max(1, context // 2)
    parts, known = [], 0
    for start in range(0, max(1, length - context + half), half):
        window = ids[start : start + context]
        tgt_in = torch.cat([window.new_full((1,), model.bos_id), window[:-1]])[None]
        logits = model(tgt_in[:, :0], tgt_in)[0]
        parts.append(logits[known - start :])
        known = start + len(window)
    return torch.cat(parts)


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
def read_with_lens(run: Run, text: str) -> tuple[Texts, tuple[Texts, ...], Array, Array]:
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
        _source, answer, _truth, _chances = answer_sum(run, text)
        written = vocabulary.encode(answer[:-1])
    ids, probability, final = logit_lens(model, src, torch.tensor([[model.bos_id, *written]]))
    says = tuple(tuple(vocabulary.token(i) for i in row) for row in ids.tolist())
    return (config.begin, *vocabulary.row(written)), says, probability, final


@cached_by_weights
def answer_sum(run: Run, text: str) -> tuple[str, Texts, Texts | None, pd.DataFrame]:
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


ALIKE = 1.1
"""Perplexities whose ratio is below this count as alike."""


def about_order(read: pd.DataFrame, backwards: pd.DataFrame) -> Question:
    """Ask how well the model predicts the same text read backwards; both of ``surprisals``."""
    one, other = (float(np.exp(table["nats"].mean())) for table in (read, backwards))
    better, same, worse = (
        N_("Better, with a lower perplexity"),
        N_("About as well"),
        N_("Worse, with a higher perplexity"),
    )
    answer = worse if other > ALIKE * one else better if one > ALIKE * other else same
    figures = N_("Perplexity {one:.2f} forwards, {other:.2f} backwards.", one=one, other=other)
    return choice_question(
        N_("How well does the model predict the same tokens in reverse order?"),
        answer,
        {
            better: N_("It never saw texts backwards, so no token gets easier."),
            same: N_("The tokens are the same, but what comes before each is not."),
            worse: N_("Here the order helps less than you think."),
        },
        figures,
    )
