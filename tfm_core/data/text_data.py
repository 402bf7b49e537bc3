"""Text as tensors: three splits that share no source, padded, on one device.

Where words are hidden they share no whole sentence; what is left of two may look the same.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from tfm_core.choices.config.corpus_tasks import CorpusTaskConfig
from tfm_core.choices.config.task import facts_of
from tfm_core.choices.config.text_tasks import TEXT_TASKS, OwnTextTaskConfig, TextTaskConfig, shares
from tfm_core.data.download import Progress
from tfm_core.data.moving import Data, DeviceRecord, Examples, to_device
from tfm_core.data.text import generated
from tfm_core.data.text.corpus import CorpusTask
from tfm_core.data.text.hidden_words import whole_sentence
from tfm_core.data.text.in_context import Generator
from tfm_core.data.text.task import Pair, TextTask
from tfm_core.data.user_data.sets import SPLITS
from tfm_core.data.user_data.task import user_task
from tfm_core.data.vocabulary import BOS, EOS, MASK, NONE, PAD, Vocabulary


@dataclass(frozen=True)
class Windows(DeviceRecord):
    """Windows of ``length`` tokens that begin at each token of ``ids`` (N,) but the last ones.

    Overlapping windows share their tokens, so that a long text costs no more memory than itself.
    bos: the id that stands before each.
    """

    ids: Tensor
    length: int
    bos: int = BOS

    def __len__(self) -> int:
        """Number of windows."""
        return len(self.ids) - self.length + 1

    def rows(self, starts: Tensor) -> Tensor:
        """Return (B, 1 + length): <bos> and the tokens from each start on. starts: (B,) int64."""
        device = self.ids.device
        indices = to_device(starts, device)[:, None] + torch.arange(self.length, device=device)
        tokens = self.ids[indices]
        return torch.cat([tokens.new_full((len(tokens), 1), self.bos), tokens], 1)


@dataclass(frozen=True)
class TextSplit(Examples):
    """Pairs as ids.

    src: (N, S) int64, padded with PAD; tgt: (N, T + 2) int64, "<bos> ... <eos>", padded; without
    the <eos> where the answer is no sequence. All splits of a task have the same S and T, those of
    its longest pair. counted: bool (N, T + 1), which tokens behind <bos> the loss counts; None for
    all.
    """

    src: Tensor
    tgt: Tensor
    pairs: tuple[Pair, ...]
    counted: Tensor | None = None

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self.pairs)


@dataclass(frozen=True)
class TextData(Data):
    """A text task and its three splits; n_draws: how many were drawn to find different ones.

    windows: of a running text every window of the training part; ``train`` then holds those that
    stand one behind the other.
    """

    large = ("train", "windows")
    task: TextTask
    train: TextSplit
    validation: TextSplit
    test: TextSplit
    n_draws: int = 0
    windows: Windows | None = None

    @property
    def vocabulary(self) -> Vocabulary:
        """See Data."""
        return self.task.tgt_vocabulary

    @property
    def learned(self) -> Tensor:
        """See Data."""
        return super().learned if self.windows is None else self.windows.ids

    def truth(self, rows: slice, length: int) -> tuple[Tensor, Tensor]:
        """See Data; where words are hidden, those alone count."""
        if facts_of(self.task.name).answer != "blanks":
            return super().truth(rows, length)
        targets = self.validation.tgt[rows, 1:length]
        shown = self.validation.src[rows, : targets.size(1)]
        return targets, shown == self.task.src_vocabulary.id_of(MASK)

    def shown(self, indices: Tensor) -> tuple[list[str], list[str]]:
        """See Data."""
        join = self.task.join_tgt
        if self.windows is not None:  # they overlap, and are cut out of the text when needed
            rows = self.windows.rows(indices).tolist()
            return [""] * len(rows), [join(self.task.tgt_vocabulary.decode(row)) for row in rows]
        pairs = [self.train.pairs[n] for n in indices.tolist()]
        return [self.task.join_src(pair.src) for pair in pairs], [join(pair.tgt) for pair in pairs]


def n_shared_sources(data: TextData, pairs: Sequence[Pair]) -> int:
    """Return how many pairs have a source that training holds too, as where words are hidden."""
    sources = {pair.src for pair in data.train.pairs}
    return sum(pair.src in sources for pair in pairs)


def load_text(config: TextTaskConfig, *, seed: int, progress: Progress | None = None) -> TextData:
    """Make the splits of a text task on the CPU; the same seed makes the same ones.

    A task with fewer pairs than requested is split in the requested proportions; its config has
    checked that each split gets at least one.
    """
    task = generated(config)
    rng = random.Random(f"{config.name} {config.size} {seed}")
    wanted = (config.n_test, config.n_validation, config.n_train)
    pairs, n_draws = sample_pairs(task, sum(wanted), rng)
    sizes = shares(wanted, len(pairs))
    stream = iter(pairs)
    test, validation, train = (tuple(islice(stream, size)) for size in sizes)
    src_len = max(len(pair.src) for pair in pairs)
    tgt_len = max(len(pair.tgt) for pair in pairs)
    learned, held_out, last = (
        encoded(task, part, src_len, tgt_len) for part in (train, validation, test)
    )
    return TextData(task, learned, held_out, last, n_draws)


def encoded(task: TextTask, part: tuple[Pair, ...], src_len: int, tgt_len: int) -> TextSplit:
    """Return pairs as ids, padded to the longest source and target of the whole data."""
    src = encode_src(task, [pair.src for pair in part], length=src_len)
    encode = task.tgt_vocabulary.encode
    end = [EOS] if facts_of(task.name).answer == "sequence" else []
    tgt = padded([[BOS, *encode(pair.tgt), *end] for pair in part], tgt_len + 1 + len(end))
    return TextSplit(src, tgt, part)


def sample_pairs(task: TextTask, n: int, rng: random.Random) -> tuple[list[Pair], int]:
    """Return up to ``n`` pairs with different sources in random order, and how many were drawn.

    Where words are hidden, it is the sentences behind the sources that differ.
    """
    every = task.every(2 * n)
    if every is not None:
        rng.shuffle(every)
        return every[:n], len(every)
    by_source: dict[tuple[str, ...], Pair] = {}
    n_draws = 0
    while len(by_source) < n:  # ends: more than 2 n sources exist, and each may be drawn
        pair = task.sample(rng)
        n_draws += 1
        by_source.setdefault(_identity(task, pair), pair)
    pairs = list(by_source.values())
    rng.shuffle(pairs)  # the rare short ones were found first; every split gets its share of them
    return pairs, n_draws


def _identity(task: TextTask, pair: Pair) -> tuple[str, ...]:
    """Return what no two pairs share: the source, or the sentence of which words are hidden."""
    if task.name not in TEXT_TASKS or not TEXT_TASKS[task.name].hides:
        return pair.src
    if TEXT_TASKS[task.name].answer == "blanks":
        return pair.tgt
    return whole_sentence(pair)


def encode_src(
    task: TextTask, sources: Sequence[Sequence[str]], *, length: int | None = None
) -> Tensor:
    """Return source sentences as ids (N, S), padded to ``length`` or to the longest of them."""
    rows = [task.src_vocabulary.encode(source) for source in sources]
    return padded(rows, length or max(map(len, rows)), task.src_vocabulary.specials.pad)


def padded(rows: list[list[int]], length: int, pad: int = PAD) -> Tensor:
    """Return rows of ids as one tensor (N, length)."""
    return torch.tensor([row + [pad] * (length - len(row)) for row in rows], dtype=torch.int64)


def load_user_texts(
    config: OwnTextTaskConfig, *, seed: int = 0, progress: Progress | None = None
) -> TextData:
    """Return the splits of a set on the CPU, whatever the seed.

    Raises ValueError where it is missing or damaged.
    """
    task = user_task(config)
    train, validation, test = (
        encoded(task, task.splits[split], config.src_len, config.tgt_len) for split in SPLITS
    )
    return TextData(task, train, validation, test)


def load_corpus(task: CorpusTask, *, seed: int) -> TextData:
    """Make the splits of a corpus on the CPU; the same seed makes the same ones.

    The grammar's sentences are drawn independently, so a short one may be in two splits: the
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
