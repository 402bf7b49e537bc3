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
from tfm_core.config import CorpusTaskConfig, RecurrentConfig, SequenceTaskConfig
from tfm_core.data.vocabulary import MASK
from tfm_core.inspect.attention.trained import checkpoint_mark, inputs_of, model_of
from tfm_core.inspect.knockouts.parts import STACKS, SUBLAYERS
from tfm_core.probe.items import is_language
from tfm_core.probe.labels import axes, modules_by_kind
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Sentence, StudentError

if TYPE_CHECKING:
    from tfm_core.data.text.task import TextTask
    from tfm_core.inspect.knockouts.patching import Answers, DirectEffects, Floats, Inputs, Patches
    from tfm_core.models.build import Model

MAX_TOKENS = 64
"""Each token of a text is patched before each layer."""
_CANDIDATES = 12
_WORDS = dict(SUBLAYERS.values())
_SAME = N_("The model answers both inputs alike; change another word.")


@dataclass(frozen=True, slots=True, eq=False)
class Causes:
    """Two inputs, the two answers at the first place where they differ, and what decides.

    changed: the other input's tokens, () for pictures. written: the answer before that place.
    tokens: by stack, the names of its positions. effects: None where the answer isn't linear.
    """

    step: int
    changed: tuple[str, ...]
    written: str
    answers: tuple[str, str]
    tokens: Mapping[str, tuple[str, ...]]
    patches: Patches
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


def suggested(run: Run, index: int) -> str:
    """Return an example's text with one token changed so that the model answers differently.

    "" where no token of the run's other examples does that. Cached.
    """
    return _suggested(str(run.folder), checkpoint_mark(run), index)


def other_picture(run: Run, index: int) -> int:
    """Return the first example after one that the model answers differently. Raises ValueError."""
    return _other_picture(str(run.folder), checkpoint_mark(run), index)


def causes(run: Run, index: int, changed: str | int) -> Causes:
    """Return what decides between the answers to an example and to another input. Cached.

    changed: the other text, as long in tokens; or the number of another picture. Raises ValueError,
    in a sentence, where the inputs differ in length or the answers do not.
    """
    return _causes(str(run.folder), checkpoint_mark(run), index, changed)


@byte_cache.cached
def _suggested(folder: str, mark: int, index: int) -> str:
    import torch

    from tfm_core.decoding import greedy
    from tfm_core.models.pictures import VisionTransformer
    from tfm_core.probe.items import continued

    run = Run(Path(folder))
    task, items = _task(run), run.probe().items
    tokens = _read(items[index])
    model, _step = model_of(run)
    texts = [tokens, *_changed(tokens, [_read(item) for item in items])]
    config = run.experiment.task_as(SequenceTaskConfig)
    if isinstance(config, CorpusTaskConfig):
        prompts = torch.tensor([task.tgt_vocabulary.encode(text) for text in texts])
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
    """Return texts with one token of another text in its place, those of one place far apart."""
    by_place = [
        dict.fromkeys(o[at] for o in others if len(o) > at and MASK not in (o[at], token))
        for at, token in enumerate(tokens)
    ]
    rounds = itertools.zip_longest(
        *([t for t in each if t != tokens[at]] for at, each in enumerate(by_place))
    )
    texts = [
        (*tokens[:at], other, *tokens[at + 1 :])
        for each in rounds
        for at, other in enumerate(each)
        if other is not None
    ]
    return texts[:_CANDIDATES]


@byte_cache.cached
def _other_picture(folder: str, mark: int, index: int) -> int:
    run = Run(Path(folder))
    n = len(run.probe().items)
    for step in range(1, n):
        other = (index + step) % n
        try:
            _two_answers(run, model_of(run)[0], index, other)
        except StudentError:
            continue
        return other
    raise StudentError("The model answers all pictures alike.")


@byte_cache.cached
def _causes(folder: str, mark: int, index: int, changed: str | int) -> Causes:
    from tfm_core.inspect.knockouts.engine import twin
    from tfm_core.inspect.knockouts.patching import direct_effects, patches_of

    run = Run(Path(folder))
    shared, step = model_of(run)
    model = twin(shared)
    two = _two_answers(run, model, index, changed)
    patches = patches_of(model, two.clean, two.changed, two.answers)
    try:
        effects = direct_effects(model, two.clean, two.answers)
    except StudentError:
        effects = None
    return Causes(step, two.tokens, two.written, two.words, _positions(run, two), patches, effects)


@dataclass(frozen=True, slots=True, eq=False)
class _Two:
    """Two inputs and their answers. item: of the first, with what is written before the answer."""

    clean: Inputs
    changed: Inputs
    answers: Answers
    words: tuple[str, str]
    written: str
    item: Mapping[str, Any]
    tokens: tuple[str, ...] = ()


def _two_answers(run: Run, model: Model, index: int, changed: str | int) -> _Two:
    """Return two inputs, and the first place where the model answers them differently."""
    probe = run.probe()
    item = probe.items[index]
    if probe.images is None:
        return _of_texts(run, model, item, str(changed))
    pictures = probe.images[index], probe.images[int(changed)]
    return _of_pictures(run, model, item, pictures)


def _of_texts(run: Run, model: Model, item: Mapping[str, Any], changed: str) -> _Two:
    import torch

    from tfm_core.models.text import EncoderOnly

    task, tokens = _task(run), _read(item)
    others = tuple(task.tokenize(changed))
    if len(others) != len(tokens):
        raise StudentError(
            "The other input has {n} tokens; it needs {expected}, as this example.",
            n=len(others),
            expected=len(tokens),
        )
    if len(tokens) > MAX_TOKENS:
        raise StudentError("Choose an example of at most {n} tokens.", n=MAX_TOKENS)
    is_text = is_language(item)
    words = task.tgt_vocabulary
    begin = words.specials.bos

    def inputs(read: Sequence[str], written: Sequence[int]) -> Inputs:
        if is_text:
            return torch.empty(1, 0, dtype=torch.int64), torch.tensor(
                [[begin, *words.encode(read), *written]]
            )
        return torch.tensor([task.src_vocabulary.encode(read)]), torch.tensor([[begin, *written]])

    if isinstance(model, EncoderOnly):
        slots = [begin] * (len(item["tgt"]) if model.pool is None else 0)
        pair = inputs(tokens, slots), inputs(others, slots)
        position, ids = _first_place(model, *pair)
        written = () if model.pool is not None else tuple(item["tgt"])
        shown = {"src": tokens, "tgt": written}
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
    from tfm_core.inspect.knockouts.patching import Answers

    return _Two(*pair, Answers(position, *ids), answers, before, shown, others)


def _of_pictures(run: Run, model: Model, item: Mapping[str, Any], pictures: Sequence[Any]) -> _Two:
    import torch

    from tfm_core.config import CaptionTaskConfig, ImageTaskConfig
    from tfm_core.data.caption_words import join, vocabulary
    from tfm_core.inspect.knockouts.patching import Answers
    from tfm_core.models.pictures import VisionTransformer

    experiment = run.experiment
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


def _read(item: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the tokens that a model reads before it answers."""
    return tuple(item["tgt"][: item["prompt"]] if is_language(item) else item["src"])


def _decoder_only(model: Model) -> Any:
    from tfm_core.models.text import DecoderOnly

    assert isinstance(model, DecoderOnly)
    return model
