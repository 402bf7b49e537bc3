"""The splits of a corpus: sentences drawn one by one, or three stretches of a text."""

from __future__ import annotations

import random

import torch
from torch import Tensor

from tfm_core.choices.config.corpus_tasks import CorpusTaskConfig
from tfm_core.data.corpus.in_context import Generator
from tfm_core.data.corpus.task import CorpusTask
from tfm_core.data.text.task import Pair
from tfm_core.data.text_data import TextData, TextSplit, Windows, padded
from tfm_core.data.vocabulary import BOS, EOS, NONE


def load_corpus(task: CorpusTask, *, seed: int) -> TextData:
    """Make the splits of a corpus on the CPU; the same seed makes the same ones.

    The grammar's sentences are drawn independently, so a short one may stand in two splits: the
    lowest possible loss holds for independent draws. Of a text the first 80% are for training, in
    every window of ``context`` tokens, the next 10% for validation and the last 10% for the test,
    both cut into windows one behind the other. Where a set has a test file, that is the test, and
    the last 10% of its text are for validation.
    """
    if task.generator is not None:
        return _sequences(task, task.generator, seed)
    if task.is_grammar:
        return _sentences(task, seed)
    ids = torch.tensor(task.tgt_vocabulary.encode(task.tokens))
    held_out = max(2, len(ids) // 10)
    tested = torch.tensor(task.tgt_vocabulary.encode(task.test_tokens), dtype=ids.dtype)
    if not len(tested):
        ids, tested = ids[:-held_out], ids[-held_out:]
    parts = ids[:-held_out], ids[-held_out:], tested
    train, validation, test = (_stretch(task, part) for part in parts)
    bos = task.tgt_vocabulary.specials.bos
    windows = Windows(parts[0], min(task.window, len(parts[0])), bos)
    return TextData(task, train, validation, test, windows=windows)


def _sentences(task: CorpusTask, seed: int) -> TextData:
    config = task.config
    rng = random.Random(f"{config.name} {config.unit} {seed}")
    sizes = (config.n_test, config.n_validation, config.n_train)
    pairs = [tuple(task.sample(rng) for _ in range(size)) for size in sizes]
    longest = max(len(pair.tgt) for part in pairs for pair in part)
    encode = task.tgt_vocabulary.encode

    def split(part: tuple[Pair, ...]) -> TextSplit:
        rows = [[BOS, *encode(pair.tgt), EOS] for pair in part]
        return TextSplit(_nothing(len(part)), padded(rows, longest + 2), part)

    test, validation, train = map(split, pairs)
    return TextData(task, train, validation, test)


def _sequences(task: CorpusTask, generator: Generator, seed: int) -> TextData:
    """Draw sequences, all equally long and without an end, and which of their letters count."""
    config, rng = task.config, _draws(task.config, seed)
    encode = task.tgt_vocabulary.encode

    def split(size: int) -> TextSplit:
        drawn = [task.sequence(rng) for _ in range(size)]
        rows = torch.tensor([[BOS, *encode(tokens)] for tokens in drawn])
        counted = torch.tensor([generator.counts(tokens) for tokens in drawn])
        pairs = tuple(Pair((), tokens[:-1], ((),) * (len(tokens) - 1)) for tokens in drawn)
        return TextSplit(_nothing(size), rows, pairs, None if bool(counted.all()) else counted)

    test, validation, train = map(split, (config.n_test, config.n_validation, config.n_train))
    return TextData(task, train, validation, test)


def _draws(config: CorpusTaskConfig, seed: int) -> random.Random:
    return random.Random(f"{config.name} {seed}")


def validation_sequences(
    config: CorpusTaskConfig, seed: int, *, n: int | None = None
) -> list[tuple[str, ...]]:
    """Return the validation sequences of a task that draws them, with their last letters.

    n: the first ones; None for all.
    """
    task, rng = CorpusTask(config), _draws(config, seed)
    for _ in range(config.n_test):
        task.sequence(rng)
    return [task.sequence(rng) for _ in range(config.n_validation if n is None else n)]


def _stretch(task: CorpusTask, ids: Tensor) -> TextSplit:
    """Cut a stretch into windows; the pair of a window is what the model reads of it.

    The last token of a window is only predicted, never read.
    """
    length, specials = task.window, task.tgt_vocabulary.specials
    rows: list[list[int]] = []
    pairs: list[Pair] = []
    for window in torch.split(ids, length):
        tokens = window.tolist()
        if rows and len(tokens) < length and specials.pad == NONE:
            break  # nothing could fill it up
        rows.append([specials.bos, *tokens])
        read = task.tgt_vocabulary.row(tokens[: length - 1])
        pairs.append(Pair((), read, ((),) * len(read)))
    return TextSplit(_nothing(len(rows)), padded(rows, length + 1, specials.pad), tuple(pairs))


def _nothing(n: int) -> Tensor:
    return torch.empty(n, 0, dtype=torch.int64)
