"""What in a run's model decides between two answers: patches and direct effects on one example.

torch is imported late.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tfm_core import byte_cache
from tfm_core.anatomy import stacks
from tfm_core.config import CorpusTaskConfig, RecurrentConfig, SequenceTaskConfig
from tfm_core.data.vocabulary import MASK
from tfm_core.inspect.attention.trained import checkpoint_mark, model_of
from tfm_core.inspect.knockouts.head_paths import HeadPaths, head_paths, part_of
from tfm_core.inspect.knockouts.parts import STACKS, SUBLAYERS, KnockedPart, heads_of
from tfm_core.inspect.knockouts.two_inputs import (
    AnswersAlike,
    TwoInputs,
    of_pictures,
    of_texts,
    positions_of,
    task_of,
    tokens_of,
    tokens_read,
)
from tfm_core.probe.labels import axes, modules_by_kind
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Sentence, StudentError

if TYPE_CHECKING:
    from torch import Tensor

    from tfm_core.data.text.task import TextTask
    from tfm_core.inspect.knockouts.patching import DirectEffects, Floats, Patches
    from tfm_core.models.build import Model

_CANDIDATES = 12
_MOST_OF_PICTURES = 6e11
"""Products of weights, tokens and runs for one picture: about a minute."""
_QUICK = 2e10  # tokens times weights, some ten of which take a nanosecond
_WORDS = dict(SUBLAYERS.values())


@dataclass(frozen=True, slots=True, eq=False)
class Causes:
    """Two inputs, the two answers at the first place where they differ, and what decides.

    written: the answer before that place.
    tokens: by stack, the names of its positions. lens: probabilities of both answers to the first
    input after each layer of the last stack, (L + 1, 2). patches: None where they would take too
    long. effects: None where the answer is not linear.
    """

    step: int
    written: str
    answers: tuple[str, str]
    tokens: Mapping[str, tuple[str, ...]]
    patches: Patches | None
    lens: Floats
    effects: DirectEffects | None

    def stream(self, stack: str) -> tuple[Floats, list[Sentence]]:
        """Return the share that each position of a stack restores, (L + 1, T), and rows' names."""
        assert self.patches is not None
        places = self.patches.streams[stack][:, : len(self.tokens[stack])]
        names = [N_("before {n}", n=n) for n in range(1, len(places))]
        return self.patches.restored(places), [*names, N_("after {n}", n=len(places) - 1)]

    def heads(self) -> tuple[Floats, list[Sentence]]:
        """Return the share that each head restores, (attentions, H), and the attentions' names."""
        assert self.patches is not None
        heads = self.patches.heads
        restored = np.stack([self.patches.restored(heads[module]) for module in heads])
        return restored, [_attention_name(module) for module in heads]

    def strongest_head(self) -> KnockedPart:
        """Return the head whose patch restores most."""
        assert self.patches is not None
        heads = self.patches.heads
        sizes = {module: np.abs(self.patches.restored(values)) for module, values in heads.items()}
        module = max(sizes, key=lambda name: float(sizes[name].max()))
        return part_of(module, int(sizes[module].argmax()))

    def parts(self, most: int) -> list[tuple[Sentence, float]]:
        """Return direct effects by part, the ``most`` strongest and the sum of all others."""
        effects = self.effects
        if effects is None:
            return []
        parts = [(N_("embedding"), effects.embedded), (N_("other biases"), effects.biases)]
        for module, of_heads in effects.heads.items():
            _, _, layer, sublayer = module.split(".")
            for head, value in enumerate(of_heads, 1):
                name = N_("layer {n}, {sublayer} {head}", n=int(layer) + 1,
                          sublayer=_WORDS[sublayer], head=head)  # fmt: skip
                parts.append((name, float(value)))
        for n, value in effects.feed_forward.items():
            parts.append((N_("layer {n}, feed-forward", n=n + 1), value))
        parts.sort(key=lambda part: -abs(part[1]))
        others = parts[most:]
        if others:
            words = N_("{n} other parts, in sum", n=len(others))
            parts[most:] = [(words, sum(value for _, value in others))]
        return parts


def _attention_name(module: str) -> Sentence:
    stack, _, layer, sublayer = module.split(".")
    return N_("{stack} {n}, {sublayer}", stack=STACKS[stack], n=int(layer) + 1,
              sublayer=_WORDS[sublayer])  # fmt: skip


def can_change(run: Run) -> bool:
    """Return whether a run's model has a residual stream, and an answer."""
    return not isinstance(run.experiment.model, RecurrentConfig) and (
        run.experiment.task.facts.answer != "vectors"
    )


def text_of(run: Run, index: int) -> str:
    """Return an example's text, as a person types it."""
    return task_of(run).join_src(tokens_read(run.probe().items[index]))


def suggested(run: Run, text: str) -> str:
    """Return a text with one token changed so that the model answers differently; "" if none.

    The token is one of the run's examples at the same place, or another of the text. Cached.
    Raises ValueError, in a sentence, for a text that the model cannot read.
    """
    return _suggested(str(run.folder), checkpoint_mark(run), text)


def other_picture(run: Run, index: int) -> int:
    """Return the first example after one that the model answers differently. Raises ValueError."""
    return _other_picture(str(run.folder), checkpoint_mark(run), index)


def n_passes(run: Run, text: str) -> int:
    """Return how many patched runs ``causes_of_texts`` needs. Raises ValueError."""
    n_tokens = len(tokens_of(task_of(run), text))
    n_places = sum(stack.n_layers + 1 for stack in stacks(run.experiment.model))
    return n_places * n_tokens + len(heads_of(run.experiment))


def is_slow(run: Run, text: str) -> bool:
    """Return whether that takes more than about two seconds. Raises ValueError."""
    n_tokens = len(tokens_of(task_of(run), text))
    n_weights = sum(weight.numel() for weight in model_of(run)[0].parameters())
    return n_passes(run, text) * n_tokens * n_weights > _QUICK


@dataclass(frozen=True, slots=True)
class Size:
    """What patching a picture takes: runs of the model, tokens in each, and weights."""

    n_passes: int
    n_tokens: int
    n_weights: int

    @property
    def is_too_long(self) -> bool:
        """Whether it would take minutes: with hundreds of patches it would."""
        return self.n_passes * self.n_tokens * self.n_weights > _MOST_OF_PICTURES


def size_of_pictures(run: Run) -> Size:
    """Return what patching a picture takes."""
    module = modules_by_kind(run.experiment)["patches"][0]
    n_tokens = len(axes(run.experiment, {}, module).query)
    n_places = sum(stack.n_layers + 1 for stack in stacks(run.experiment.model))
    n_weights = sum(weight.numel() for weight in model_of(run)[0].parameters())
    return Size(n_places * n_tokens + len(heads_of(run.experiment)), n_tokens, n_weights)


def causes_of_texts(run: Run, text: str, changed: str) -> Causes:
    """Return what decides between the answers to two texts of one length in tokens. Cached.

    Raises ValueError, in a sentence, where they differ in length or the answers do not.
    """
    return _of_two_texts(str(run.folder), checkpoint_mark(run), text, changed)


def causes_of_pictures(run: Run, index: int, other: int) -> Causes:
    """Return what decides between the answers to two of the run's pictures. Cached.

    Nothing is patched where that would take minutes. Raises ValueError, in a sentence, where the
    answers do not differ.
    """
    return _of_two_pictures(str(run.folder), checkpoint_mark(run), index, other)


def paths_of_texts(run: Run, text: str, changed: str, head: KnockedPart) -> HeadPaths:
    """Return how the effect of a head reaches the answer to the first of two texts. Cached.

    Raises ValueError as ``causes_of_texts``.
    """
    return _paths_of_texts(str(run.folder), checkpoint_mark(run), text, changed, head)


def paths_of_pictures(run: Run, index: int, other: int, head: KnockedPart) -> HeadPaths:
    """Return the same of two pictures."""
    return _paths_of_pictures(str(run.folder), checkpoint_mark(run), index, other, head)


@byte_cache.cached
def _paths_of_texts(
    folder: str, mark: int, text: str, changed: str, head: KnockedPart
) -> HeadPaths:
    return _followed(Run(Path(folder)), head, lambda run, m: of_texts(run, m, text, changed))


@byte_cache.cached
def _paths_of_pictures(
    folder: str, mark: int, index: int, other: int, head: KnockedPart
) -> HeadPaths:
    return _followed(Run(Path(folder)), head, lambda run, m: of_pictures(run, m, index, other))


def _followed(run: Run, head: KnockedPart, answer: Callable[[Run, Model], TwoInputs]) -> HeadPaths:
    from tfm_core.inspect.knockouts.engine import twin
    from tfm_core.inspect.knockouts.paths import paths_of

    assert head.head is not None
    model = twin(model_of(run)[0])
    two = answer(run, model)
    found = paths_of(model, two.clean, two.changed, two.answers, head.module, head.head)
    return head_paths(found, two.words[0])


@byte_cache.cached
def _suggested(folder: str, mark: int, text: str) -> str:
    import torch

    from tfm_core.decoding import greedy
    from tfm_core.models.pictures import VisionTransformer
    from tfm_core.probe.items import continued

    run = Run(Path(folder))
    task = task_of(run)
    tokens = tokens_of(task, text)
    model, _step = model_of(run)
    others = _changed(tokens, [tokens_read(item) for item in run.probe().items])
    texts = [tokens, *(one for one in others if _can_be_typed(task, one))]
    config = run.experiment.task_as(SequenceTaskConfig)
    if isinstance(config, CorpusTaskConfig):
        prompts = torch.tensor([task.tgt_vocabulary.encode(text) for text in texts])
        ids, confidence = _next(model, prompts)
        if not (ids != ids[:1]).any():
            ids, confidence = continued(_decoder_only(model), config, prompts)
    else:
        assert not isinstance(model, VisionTransformer)
        src = torch.tensor([task.src_vocabulary.encode(text) for text in texts])
        written = greedy(model, src, max_len=config.n_answers)
        ids, confidence = written.ids, written.confidence
    differs = ids != ids[:1]
    if run.experiment.task.facts.answer == "blanks":  # what is not hidden is copied
        hidden = torch.tensor([[token == MASK for token in tokens]])
        differs = differs[:, : hidden.size(1)] & hidden
    first = differs.int().argmax(1, keepdim=True)  # the place of the first difference
    sure = confidence.gather(1, first) * confidence[:1].gather(1, first.T).T
    sure[~differs.any(1)] = -1.0
    best = int(sure.argmax())
    return task.join_src(texts[best]) if sure[best] > 0 else ""


def _can_be_typed(task: TextTask, tokens: tuple[str, ...]) -> bool:
    """Return whether a text is cut into the tokens that it was made of."""
    try:
        return tuple(task.tokenize(task.join_src(tokens))) == tokens
    except StudentError:
        return False


def _changed(tokens: Sequence[str], others: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Return texts with one token of another place or text, those of one place far apart."""
    by_place = []
    for at, token in enumerate(tokens):
        there = dict.fromkeys([*(o[at] for o in others if len(o) > at), *tokens])
        by_place.append([] if token == MASK else [t for t in there if t not in (token, MASK)])
    rounds = itertools.zip_longest(*by_place)
    texts = [
        (*tokens[:at], other, *tokens[at + 1 :])
        for each in rounds
        for at, other in enumerate(each)
        if other is not None
    ]
    return texts[:_CANDIDATES]


def _next(model: Any, prompts: Tensor) -> tuple[Tensor, Tensor]:
    """Return the likeliest next token of each prompt (P, n) and its probability, (P, 1) each."""
    import torch

    with torch.no_grad():
        tgt_in = torch.cat([prompts.new_full((len(prompts), 1), model.bos_id), prompts], 1)
        best = model(tgt_in[:, :0], tgt_in)[:, -1:].float().softmax(-1).max(-1)
    return best.indices, best.values


@byte_cache.cached
def _other_picture(folder: str, mark: int, index: int) -> int:
    run = Run(Path(folder))
    n = len(run.probe().items)
    for step in range(1, n):
        other = (index + step) % n
        try:
            of_pictures(run, model_of(run)[0], index, other)
        except AnswersAlike:
            continue
        return other
    raise StudentError("The model answers all pictures alike.")


@byte_cache.cached
def _of_two_texts(folder: str, mark: int, text: str, changed: str) -> Causes:
    return _decided(Run(Path(folder)), lambda run, model: of_texts(run, model, text, changed))


@byte_cache.cached
def _of_two_pictures(folder: str, mark: int, index: int, other: int) -> Causes:
    one = Run(Path(folder))
    is_patched = not size_of_pictures(one).is_too_long
    return _decided(
        one, lambda run, model: of_pictures(run, model, index, other), is_patched=is_patched
    )


def _decided(
    run: Run, answer: Callable[[Run, Model], TwoInputs], *, is_patched: bool = True
) -> Causes:
    from tfm_core.inspect.knockouts.engine import twin
    from tfm_core.inspect.knockouts.patching import direct_effects, lens_of, patches_of

    shared, step = model_of(run)
    model = twin(shared)
    two = answer(run, model)
    patches = None
    if is_patched:
        patches = patches_of(model, two.clean, two.changed, two.answers)
    try:
        effects = direct_effects(model, two.clean, two.answers)
    except StudentError:
        effects = None
    lens = lens_of(model, two.clean, two.answers)
    return Causes(step, two.written, two.words, positions_of(run, two), patches, lens, effects)


def _decoder_only(model: Model) -> Any:
    from tfm_core.models.text import DecoderOnly

    assert isinstance(model, DecoderOnly)
    return model
