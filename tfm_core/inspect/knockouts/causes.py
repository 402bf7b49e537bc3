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
from tfm_core.inspect.attention.trained import checkpoint_mark, inputs_of, model_of
from tfm_core.inspect.knockouts.parts import STACKS, SUBLAYERS, heads_of
from tfm_core.probe.items import is_language
from tfm_core.probe.labels import axes, modules_by_kind
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Sentence, StudentError

if TYPE_CHECKING:
    from torch import Tensor

    from tfm_core.data.text.task import TextTask
    from tfm_core.inspect.knockouts.patching import Answers, DirectEffects, Floats, Inputs, Patches
    from tfm_core.models.build import Model

MAX_TOKENS = 64
"""Each token of a text is patched before each layer."""
_CANDIDATES = 12
_MOST_OF_PICTURES = 6e11
"""Products of weights, tokens and runs for one picture: about a minute."""
_QUICK = 2e10  # tokens times weights, some ten of which take a nanosecond
_WORDS = dict(SUBLAYERS.values())
_SAME = N_("The model answers both inputs alike; change another word.")


@dataclass(frozen=True, slots=True, eq=False)
class Causes:
    """Two inputs, the two answers at the first place where they differ, and what decides.

    written: the answer before that place.
    tokens: by stack, the names of its positions. lens: probabilities of both answers to the first
    input after each layer of the last stack, (L + 1, 2). effects: None where the answer is not
    linear.
    """

    step: int
    written: str
    answers: tuple[str, str]
    tokens: Mapping[str, tuple[str, ...]]
    patches: Patches
    lens: Floats
    effects: DirectEffects | None

    def stream(self, stack: str) -> tuple[Floats, list[Sentence]]:
        """Return the share that each position of a stack restores, (L + 1, T), and rows' names."""
        places = self.patches.streams[stack][:, : len(self.tokens[stack])]
        names = [N_("before {n}", n=n) for n in range(1, len(places))]
        return self.patches.restored(places), [*names, N_("after {n}", n=len(places) - 1)]

    def heads(self) -> tuple[Floats, list[Sentence]]:
        """Return the share that each head restores, (attentions, H), and the attentions' names."""
        heads = self.patches.heads
        restored = np.stack([self.patches.restored(heads[module]) for module in heads])
        return restored, [_attention_name(module) for module in heads]

    def parts(self, most: int) -> list[tuple[Sentence, float]]:
        """Return direct effects by part, the ``most`` strongest and the sum of all others."""
        effects = self.effects
        if effects is None:
            return []
        parts = [(N_("embedding"), effects.embedded), (N_("all biases"), effects.biases)]
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
    return _task(run).join_src(_read(run.probe().items[index]))


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
    n_tokens = len(_tokens(_task(run), text))
    n_places = sum(stack.n_layers + 1 for stack in stacks(run.experiment.model))
    return n_places * n_tokens + len(heads_of(run.experiment))


def is_slow(run: Run, text: str) -> bool:
    """Return whether that takes more than about two seconds. Raises ValueError."""
    n_tokens = len(_tokens(_task(run), text))
    n_weights = sum(weight.numel() for weight in model_of(run)[0].parameters())
    return n_passes(run, text) * n_tokens * n_weights > _QUICK


def is_too_long(run: Run) -> bool:
    """Return whether patching a picture would take minutes: that of hundreds of patches would."""
    module = modules_by_kind(run.experiment)["patches"][0]
    n_tokens = len(axes(run.experiment, {}, module).query)
    n_places = sum(stack.n_layers + 1 for stack in stacks(run.experiment.model))
    n_weights = sum(weight.numel() for weight in model_of(run)[0].parameters())
    n_passes = n_places * n_tokens + len(heads_of(run.experiment))
    return n_passes * n_tokens * n_weights > _MOST_OF_PICTURES


def causes_of_texts(run: Run, text: str, changed: str) -> Causes:
    """Return what decides between the answers to two texts of one length in tokens. Cached.

    Raises ValueError, in a sentence, where they differ in length or the answers do not.
    """
    return _of_two_texts(str(run.folder), checkpoint_mark(run), text, changed)


def causes_of_pictures(run: Run, index: int, other: int) -> Causes:
    """Return what decides between the answers to two of the run's pictures. Cached.

    Raises ValueError, in a sentence, where the answers do not differ.
    """
    return _of_two_pictures(str(run.folder), checkpoint_mark(run), index, other)


@byte_cache.cached
def _suggested(folder: str, mark: int, text: str) -> str:
    import torch

    from tfm_core.decoding import greedy
    from tfm_core.models.pictures import VisionTransformer
    from tfm_core.probe.items import continued

    run = Run(Path(folder))
    task = _task(run)
    tokens = _tokens(task, text)
    model, _step = model_of(run)
    texts = [tokens, *_changed(tokens, [_read(item) for item in run.probe().items])]
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
            _of_pictures(run, model_of(run)[0], index, other)
        except StudentError:
            continue
        return other
    raise StudentError("The model answers all pictures alike.")


@byte_cache.cached
def _of_two_texts(folder: str, mark: int, text: str, changed: str) -> Causes:
    return _decided(Run(Path(folder)), lambda run, model: _of_texts(run, model, text, changed))


@byte_cache.cached
def _of_two_pictures(folder: str, mark: int, index: int, other: int) -> Causes:
    return _decided(Run(Path(folder)), lambda run, model: _of_pictures(run, model, index, other))


def _decided(run: Run, answer: Callable[[Run, Model], _Two]) -> Causes:
    from tfm_core.inspect.knockouts.engine import twin
    from tfm_core.inspect.knockouts.patching import direct_effects, lens_of, patches_of

    shared, step = model_of(run)
    model = twin(shared)
    two = answer(run, model)
    patches = patches_of(model, two.clean, two.changed, two.answers)
    try:
        effects = direct_effects(model, two.clean, two.answers)
    except StudentError:
        effects = None
    lens = lens_of(model, two.clean, two.answers)
    return Causes(step, two.written, two.words, _positions(run, two), patches, lens, effects)


@dataclass(frozen=True, slots=True, eq=False)
class _Two:
    """Two inputs and their answers. item: of the first, with what is written before the answer."""

    clean: Inputs
    changed: Inputs
    answers: Answers
    words: tuple[str, str]
    written: str
    item: Mapping[str, Any]


def _of_texts(run: Run, model: Model, text: str, changed: str) -> _Two:
    import torch

    from tfm_core.inspect.knockouts.patching import Answers
    from tfm_core.models.text import EncoderOnly

    task = _task(run)
    tokens, others = _tokens(task, text), _tokens(task, changed)
    if len(others) != len(tokens):
        raise StudentError(
            "The changed input has {n} tokens; it needs {expected}, as the first.",
            n=len(others),
            expected=len(tokens),
        )
    is_text = run.experiment.task.facts.answer == "text"
    words = task.tgt_vocabulary
    begin = words.specials.bos

    def inputs(read: Sequence[str], written: Sequence[int]) -> Inputs:
        if is_text:
            return torch.empty(1, 0, dtype=torch.int64), torch.tensor(
                [[begin, *words.encode(read), *written]]
            )
        return torch.tensor([task.src_vocabulary.encode(read)]), torch.tensor([[begin, *written]])

    if isinstance(model, EncoderOnly):
        n_answers = run.experiment.task_as(SequenceTaskConfig).n_answers
        slots = [begin] * (n_answers - 1 if model.pool is None else 0)
        pair = inputs(tokens, slots), inputs(others, slots)
        position, ids = _first_place(model, *pair)
        is_sequence = run.experiment.task.facts.answer == "sequence"
        shown = {"src": tokens, "tgt": ("",) * (n_answers - 1) if is_sequence else ()}
        before = ""
    else:
        never = list(words.specials.unwritten)
        found = _first_token(model, lambda ids: (inputs(tokens, ids), inputs(others, ids)), never)
        pair, ids, said = found
        position = -1
        written = tuple(words.decode(list(said)))
        shown = {"src": () if is_text else tokens, "tgt": (*(tokens if is_text else ()), *written)}
        before = task.join_tgt(written)
    answers = words.token(ids[0]), words.token(ids[1])
    return _Two(*pair, Answers(position, *ids), answers, before, shown)


def _of_pictures(run: Run, model: Model, index: int, other_index: int) -> _Two:
    import torch

    from tfm_core.config import CaptionTaskConfig, ImageTaskConfig
    from tfm_core.data.caption_words import join, vocabulary
    from tfm_core.inspect.knockouts.patching import Answers
    from tfm_core.models.pictures import VisionTransformer

    experiment = run.experiment
    probe = run.probe()
    assert probe.images is not None
    item = probe.items[index]
    pictures = probe.images[index], probe.images[other_index]
    clean, other = (inputs_of(run, item, picture)[:1] for picture in pictures)
    if isinstance(model, VisionTransformer):
        with torch.inference_mode():
            first, second = (int(model(*images)[0].argmax()) for images in (clean, other))
        if first == second:
            raise StudentError(N_("The model answers both pictures alike; choose another one."))
        names = experiment.task_as(ImageTaskConfig).facts.class_names
        shown: dict[str, tuple[str, ...]] = {"src": (), "tgt": ()}
        words = str(names[first]), str(names[second])
        return _Two(clean, other, Answers(None, first, second), words, "", shown)
    config = experiment.task_as(CaptionTaskConfig)
    known = vocabulary(config)
    begin = known.specials.bos

    def inputs(ids: Sequence[int]) -> tuple[Inputs, Inputs]:
        written = torch.tensor([[begin, *ids]])
        return (*clean, written), (*other, written)

    pair, ids, said = _first_token(model, inputs, [])
    written = tuple(known.decode(list(said)))
    words = known.token(ids[0]), known.token(ids[1])
    shown = {"src": item["src"], "tgt": written}
    return _Two(*pair, Answers(-1, *ids), words, join(written, config), shown)


def _first_place(model: Any, clean: Inputs, changed: Inputs) -> tuple[int, tuple[int, int]]:
    """Return the first position that is answered differently, and both answers."""
    import torch

    with torch.inference_mode():
        first, second = (model(*inputs)[0].argmax(-1) for inputs in (clean, changed))
    places = first != second
    if model.mask_id:  # what is not hidden is no answer
        hidden = clean[0][0] == model.mask_id
        places = places[: len(hidden)] & hidden[: len(places)]
    if not places.any():
        raise StudentError(_SAME)
    at = int(places.nonzero()[0, 0])
    return at, (int(first[at]), int(second[at]))


def _first_token(
    model: Any,
    inputs: Callable[[Sequence[int]], tuple[Inputs, Inputs]],
    never: list[int],
) -> tuple[tuple[Inputs, Inputs], tuple[int, int], Sequence[int]]:
    """Write both answers greedily until they differ: the inputs then, both ids, what is written."""
    import torch

    written: list[int] = []
    for _ in range(MAX_TOKENS):
        pair = inputs(written)
        with torch.no_grad():
            rows = [model(*each)[0, -1] for each in pair]
        for row in rows:
            row[never] = -torch.inf
        first, second = (int(row.argmax()) for row in rows)
        if first != second:
            return pair, (first, second), written
        if first == model.eos_id:
            break
        written.append(first)
    raise StudentError(_SAME)


def _positions(run: Run, two: _Two) -> dict[str, tuple[str, ...]]:
    """Return the names of the positions of each stack."""
    names: dict[str, tuple[str, ...]] = {}
    for modules in modules_by_kind(run.experiment).values():
        stack = modules[0].split(".")[0]
        if modules[0].endswith("self_attention"):
            names[stack] = axes(run.experiment, two.item, modules[0]).query
    return names


def _task(run: Run) -> TextTask:
    from tfm_core.data.text import text_task

    return text_task(run.experiment.task_as(SequenceTaskConfig))


def _tokens(task: TextTask, text: str) -> tuple[str, ...]:
    tokens = task.tokenize(text)
    if len(tokens) > MAX_TOKENS:
        raise StudentError(
            "The text has {n} tokens; at most {most} are patched.", n=len(tokens), most=MAX_TOKENS
        )
    return tokens


def _read(item: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the tokens that a model reads before it answers."""
    return tuple(item["tgt"][: item["prompt"]] if is_language(item) else item["src"])


def _decoder_only(model: Model) -> Any:
    from tfm_core.models.text import DecoderOnly

    assert isinstance(model, DecoderOnly)
    return model
