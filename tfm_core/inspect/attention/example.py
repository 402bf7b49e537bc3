"""One example as a model saw it at one step: tokens or picture, maps cut to size, answer.

It is one of a run's probe, or a user's own, read with the last checkpoint. torch is imported late.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tfm_core.choices.config import (
    CorpusTaskConfig,
    Experiment,
    ImageTaskConfig,
    PretrainedReaderConfig,
    PretrainedTextConfig,
    TaskConfig,
)
from tfm_core.data.vocabulary import NONE
from tfm_core.inspect.attention.trained import (
    Picture,
    cached_by_weights,
    check_context,
    inputs_of,
    model_of,
)
from tfm_core.probe import masks as probe_masks
from tfm_core.probe.labels import axes, modules_by_kind
from tfm_core.probe.types import Array, Bools, Probe, Snapshot
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Paragraph, StudentError, whole_percent

if TYPE_CHECKING:
    from torch import Tensor

    from tfm_core.decoding import Decoded
    from tfm_core.models.text import DecoderOnly, EncoderOnly
    from tfm_core.probe.capture import ActivationCache


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """One example at one step.

    item: an entry of the probe, or of the user's own example (``tgt``: the model's own answer;
    ``truth``: the solution, if any). attention: module name -> (H, Q, K). masks: module name ->
    bool (Q, K), True = may attend. picture: uint8 (C, height, width). probabilities: (classes,).
    answer: the predicted target tokens; confidence: (T,), of each.
    """

    step: int
    item: Mapping[str, Any]
    attention: Mapping[str, Array]
    masks: Mapping[str, Bools]
    picture: Array | None = None
    probabilities: Array | None = None
    answer: tuple[str, ...] | None = None
    answer_text: str | None = None
    confidence: Array | None = None

    def maps(self, modules: Sequence[str]) -> Array:
        """Return the maps of several layers as (L, H, Q, K). Raises ValueError where one lacks."""
        lacking = [name for name in modules if name not in self.attention]
        if lacking:
            raise StudentError(
                "This snapshot has no attention maps of {lacking}.", lacking=lacking[0]
            )
        return np.stack([self.attention[name] for name in modules])

    def may_attend(self, modules: Sequence[str]) -> Bools:
        """Return the masks of several layers as bool (L, Q, K), True = may attend."""
        return np.stack([self.masks[name] for name in modules])


def example_of(experiment: Experiment, probe: Probe, snapshot: Snapshot, index: int) -> Example:
    """Return an example of the probe at a snapshot, without maps where none are kept.

    Raises StudentError if they do not fit.
    """
    item, is_attended = probe.items[index], index < len(probe.attended)
    misfit = N_(
        "The snapshot of step {step:,} does not match this run's examples.", step=snapshot.step
    )
    if (
        snapshot.probabilities is not None and not experiment.task.class_names
    ):  # of classes, not of words
        raise StudentError(misfit)
    try:
        return Example(
            step=snapshot.step,
            item=item,
            attention=cut(
                experiment,
                item,
                {name: maps[index] for name, maps in snapshot.attention.items() if is_attended},
            ),
            masks={
                name: probe_masks.cut(
                    snapshot.masks[name], index, axes(experiment, item, name).shape
                )
                for name in snapshot.attention
                if is_attended
            },
            picture=None if probe.images is None else probe.images[index],
            probabilities=_row(snapshot.probabilities, index),
            answer=None if snapshot.tokens is None else tuple(snapshot.tokens[index]),
            answer_text=None if snapshot.texts is None else snapshot.texts[index],
            confidence=_row(snapshot.confidence, index),
        )
    except (IndexError, KeyError, TypeError):
        raise StudentError(misfit) from None


def cut(
    experiment: Experiment, item: Mapping[str, Any], attention: Mapping[str, Array]
) -> dict[str, Array]:
    """Return one example's maps (H, Q, K) without padding. Raises ValueError when rows lack."""
    maps: dict[str, Array] = {}
    for names in modules_by_kind(experiment).values():
        for name in names:
            if name not in attention:
                continue
            sizes = axes(experiment, item, name).shape
            map_ = attention[name][:, : sizes[0], : sizes[1]]
            if map_.shape[1:] != sizes:
                raise StudentError(
                    "{name} has a {rows} × {columns} map; this example needs {n_query} × {n_key}.",
                    name=name,
                    rows=map_.shape[1],
                    columns=map_.shape[2],
                    n_query=sizes[0],
                    n_key=sizes[1],
                )
            maps[name] = map_
    return maps


def captured(
    experiment: Experiment, item: Mapping[str, Any], cache: ActivationCache
) -> dict[str, Any]:
    """Return ``item``, ``attention`` and ``masks`` of a single example. Raises as ``cut``."""
    maps = {name: weights[0].float().numpy() for name, weights in cache.of("weights").items()}
    applied = cache.masks()
    attention = cut(experiment, item, maps)
    sizes = {name: axes(experiment, item, name).shape for name in attention}
    masks = {name: probe_masks.cut(applied[name], 0, size) for name, size in sizes.items()}
    return {"item": item, "attention": attention, "masks": masks}


def _row(array: Array | None, index: int) -> Array | None:
    return None if array is None else np.asarray(array[index])


_SHORTLY = 0.9  # of the steps of the shortest run


def same_example(probe: Probe, theirs: Probe, index: int) -> int:
    """Return where another run keeps an example. Raises StudentError where it does not."""
    item = probe.items[index]
    for other, their_item in enumerate(theirs.items):
        if probe.images is not None or theirs.images is not None:
            is_same = (
                probe.images is not None
                and theirs.images is not None
                and np.array_equal(theirs.images[other], probe.images[index])
            )
        else:
            is_same = all(their_item.get(side) == item.get(side) for side in ("src", "tgt"))
        if is_same:
            return other
    raise StudentError(Paragraph("compare/other-lacks-example"))


def common_step(steps: Sequence[Sequence[int]]) -> int | None:
    """Return the last step of the shortest run, or one shortly before it that all have."""
    kept = [one for one in steps if one]
    if not kept:
        return None
    last = min(max(one) for one in kept)
    shared = [step for step in set(kept[0]).intersection(*kept[1:]) if step <= last]
    return max(shared) if shared and max(shared) >= _SHORTLY * last else last


def nearest(step: int, steps: Sequence[int]) -> int:
    """Return the step of a run that is nearest to ``step``."""
    return min(steps, key=lambda one: (abs(one - step), one))


N_LIKELIEST = 5
_WRONG_TASK = N_("This run was trained on sentences. Type one.")


def look_at_text(run: Run, text: str, *, kinds: tuple[str, ...] | None = None) -> Example:
    """Read a sentence with the last checkpoint: the model's own answer, and maps.

    kinds: of attention, whose maps are computed and kept; None for all. The decoder reads the
    model's own answer. Cached. Raises ValueError, in a sentence, for unknown
    words, an empty or too long text, or no checkpoint.
    """
    if not reads_text(run.experiment.task):
        raise StudentError("This run was trained on pictures. Draw one.")
    every = modules_by_kind(run.experiment)
    chosen = tuple(every) if kinds is None else tuple(kind for kind in every if kind in kinds)
    return _read(run, text, chosen)


@cached_by_weights
def _read(run: Run, text: str, kinds: tuple[str, ...]) -> Example:
    by_kind = modules_by_kind(run.experiment)
    modules = {module for kind in kinds for module in by_kind[kind]}
    match run.experiment.task:
        case PretrainedReaderConfig():
            return read_text(run, text, modules)
        case CorpusTaskConfig():
            return continued_text(run, text, modules)
    return answered(run, text, modules)


def reads_text(task: TaskConfig) -> bool:
    """Return whether a model reads a text that somebody types."""
    return task.picture_shape is None and task.has_model


@cached_by_weights
def _written(run: Run, ids: tuple[int, ...]) -> Decoded:
    """Return what the model of a run writes about a source."""
    import torch

    from tfm_core.decoding import greedy
    from tfm_core.models.pictures import VisionTransformer

    model, _step = model_of(run)
    assert not isinstance(model, VisionTransformer)
    most = run.experiment.task.n_answers
    return greedy(model, torch.tensor([ids]), max_len=most)


def answered(run: Run, text: str, modules: Collection[str]) -> Example:
    """Read a source, see ``look_at_text``. modules: attentions whose maps are kept."""
    import torch

    from tfm_core.data.tasks import text_task
    from tfm_core.models.pictures import VisionTransformer
    from tfm_core.probe.capture import capture

    config = run.experiment.task
    task = text_task(config)
    tokens = task.tokenize(text)
    model, step = model_of(run)
    assert not isinstance(model, VisionTransformer)
    ids = task.src_vocabulary.encode(tokens)
    written, src = _written(run, tuple(ids)), torch.tensor([ids])
    whole = task.tgt_vocabulary.decode(written.ids[0].tolist())
    answer = whole[: config.max_tgt_len]
    tgt_in = torch.tensor([[model.bos_id, *task.tgt_vocabulary.encode(answer)]])
    with capture(model, only={"weights", "mask"}, modules=modules) as cache:
        model(src, tgt_in)
    truth = task.solve(tokens)
    item: dict[str, Any] = {
        "src": list(tokens),
        "tgt": answer,
        "src_text": task.join_src(tokens),
        "is_cut": model.eos_id not in written.ids[0].tolist(),
        "goes_on": len(whole) > len(answer),
    }
    if truth is not None:
        item |= {"truth": list(truth), "tgt_text": task.join_tgt(truth)}
    return Example(
        step=step,
        **captured(run.experiment, item, cache),
        answer=tuple(answer),
        answer_text=task.join_tgt(answer),
        confidence=written.confidence[0, : len(answer)].numpy(),
    )


def continued_text(run: Run, text: str, modules: Collection[str]) -> Example:
    """Read a text once with a language model: maps over it, and how it goes on or is labelled.

    modules: attentions whose maps are kept.
    """
    import torch

    from tfm_core.data.tasks import corpus_task
    from tfm_core.decoding import ReadPrompt
    from tfm_core.models.text import DecoderOnly
    from tfm_core.probe.capture import capture
    from tfm_core.probe.items import continued

    config = run.experiment.task_as(CorpusTaskConfig)
    task = corpus_task(config)
    tokens = task.tokenize(text)
    check_context(config, len(tokens))
    model, step = model_of(run)
    assert isinstance(model, DecoderOnly)
    ids = torch.tensor([task.tgt_vocabulary.encode(tokens)])
    tgt_in = torch.cat([ids.new_full((1, 1), model.bos_id), ids], 1)
    with capture(model, only={"weights", "mask", "key", "value"}) as cache:
        model.read(tgt_in[:, :0], tgt_in)  # without the words that would follow each token
    names = [f"decoder.layers.{layer}.self_attention" for layer in range(len(model.decoder.layers))]
    read = ReadPrompt(ids, [(cache[f"{name}.key"], cache[f"{name}.value"]) for name in names])
    written, confidence = continued(model, config, read)
    for name in set(names) - set(modules):
        del cache[f"{name}.weights"]
    answer = task.tgt_vocabulary.decode(written[0].tolist())
    item = {"src": [], "tgt": list(tokens), "prompt": len(tokens), "src_text": text}
    answer_parts: dict[str, Any] = {
        "answer": tuple(answer),
        "answer_text": task.join_tgt(answer),
        "confidence": confidence[0, : len(answer)].numpy(),
    }
    if isinstance(config, PretrainedTextConfig) and config.labels:
        answer_parts = head_answer(run, tokens)
    return Example(step=step, **captured(run.experiment, item, cache), **answer_parts)


def read_text(run: Run, text: str, modules: Collection[str]) -> Example:
    """Read a text with an encoder that returns vectors; its head may answer.

    modules: attentions whose maps are kept.
    """
    from tfm_core.data.tasks import text_task
    from tfm_core.probe.capture import capture

    task = text_task(run.experiment.task)
    tokens = task.tokenize(text)
    item = {"src": list(tokens), "tgt": [], "src_text": text}
    model, step = model_of(run)
    with capture(model, only={"weights", "mask"}, modules=modules) as cache:
        model(*inputs_of(run, item))
    answer_parts = head_answer(run, tokens)
    return Example(step=step, **captured(run.experiment, item, cache), **answer_parts)


def head_answer(run: Run, tokens: Sequence[str]) -> dict[str, Any]:
    """Return the parts of an ``Example`` that a head answers; none without a head or a hidden word.

    tokens: the text with those around it. Of a label, or of each hidden word, the likeliest answers
    stand one after the other. Raises StudentError where the head is gone or of another model.
    """
    import torch

    from tfm_core.data.opened_task import tokenizer_of
    from tfm_core.models.text import DecoderOnly, EncoderOnly
    from tfm_core.pretrained.heads import logits_of, read_head

    task = run.experiment.task
    assert isinstance(task, PretrainedReaderConfig | PretrainedTextConfig)
    vocabulary, labels = tokenizer_of(task).vocabulary, task.label_names
    ids = vocabulary.encode(tokens)
    hidden = getattr(task, "mask_id", NONE)
    places = [at for at, number in enumerate(ids) if number == hidden]
    if not labels and not places:
        return {}
    head, (model, _step) = read_head(run.folder), model_of(run)
    assert isinstance(model, EncoderOnly | DecoderOnly)
    read = _read_by_head(model, torch.tensor([ids]), places)
    try:
        with torch.inference_mode():
            logits = logits_of(head, read, model.src_embedding.table.weight, run.experiment.model)
    except (KeyError, RuntimeError):
        raise StudentError(Paragraph("pretrained/no-head")) from None
    names = labels or vocabulary.tokens
    shares, numbers = logits.softmax(-1).topk(min(N_LIKELIEST, len(names)))
    lists = [
        [(names[number].strip() or "␣", share) for number, share in zip(*row, strict=True)]
        for row in zip(numbers.tolist(), shares.tolist(), strict=True)
    ]
    texts = [", ".join(f"{name} {whole_percent(share)}" for name, share in one) for one in lists]
    return {
        "answer": tuple(name for one in lists for name, _share in one),
        "answer_text": " · ".join(texts),
        "confidence": np.array([share for one in lists for _name, share in one], np.float32),
    }


def _read_by_head(model: EncoderOnly | DecoderOnly, src: Tensor, places: Sequence[int]) -> Tensor:
    """Return the vectors that a head reads: of hidden words, of what is pooled, or the last one."""
    from tfm_core.models.text import DecoderOnly
    from tfm_core.probe.capture import capture

    with capture(model, only={"answering"}) as cache:
        if isinstance(model, DecoderOnly):
            return model.read(src[:, :0], src)[0][:, -1]
        pooled: Tensor = model(src, src)
    return cache["output.answering"][0, places] if places else pooled


def look_at_picture(run: Run, picture: Picture) -> Example:
    """Look at a picture uint8 (C, height, width) with the last checkpoint: classes and maps.

    Cached. Raises StudentError for another shape, or no checkpoint.
    """
    run.experiment.task_as(ImageTaskConfig, _WRONG_TASK)
    return _look(run, picture)


@cached_by_weights
def _look(run: Run, picture: Picture) -> Example:
    from tfm_core.models.pictures import VisionTransformer
    from tfm_core.probe.capture import capture

    model, step = model_of(run)
    assert isinstance(model, VisionTransformer)
    (images,) = inputs_of(run, {}, picture)
    with capture(model, only={"weights", "mask"}) as cache:
        probabilities = model(images).softmax(-1)[0]
    return Example(
        step=step,
        **captured(run.experiment, {}, cache),
        picture=picture,
        probabilities=probabilities.numpy(),
    )


def read_picture(run: Run, picture: bytes | Picture) -> tuple[Picture, list[str]]:
    """Return a drawing or file as the run's pictures are, and notes. Raises StudentError."""
    from tfm_core.data.user_picture import picture_to_input

    facts = run.experiment.task_as(ImageTaskConfig, _WRONG_TASK).facts
    return picture_to_input(picture, facts)
