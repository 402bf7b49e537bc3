"""A user's own sentence or picture, through the last checkpoint; torch is imported late."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfm_core import byte_cache
from tfm_core.choices.config import (
    CorpusTaskConfig,
    ImageTaskConfig,
    PretrainedReaderConfig,
    PretrainedTextConfig,
    TaskConfig,
)
from tfm_core.data.vocabulary import NONE
from tfm_core.inspect.attention.example import Example, captured
from tfm_core.inspect.attention.inputs import inputs_of
from tfm_core.inspect.attention.trained import (
    check_context,
    checkpoint_mark,
    model_of,
)
from tfm_core.probe.labels import modules_by_kind
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Paragraph, StudentError, whole_percent

if TYPE_CHECKING:
    from torch import Tensor

    from tfm_core.decoding import Decoded
    from tfm_core.models.text import DecoderOnly, EncoderOnly

N_LIKELIEST = 5
_WRONG_TASK = N_("This run learned sentences; type one.")


def look_at_text(run: Run, text: str, *, kinds: tuple[str, ...] | None = None) -> Example:
    """Read a sentence with the last checkpoint: the model's own answer, and maps.

    kinds: of attention, whose maps are computed and kept; None for all. The decoder reads the
    model's own answer. Cached. Raises ValueError, in a sentence, for unknown
    words, an empty or too long text, or no checkpoint.
    """
    if not reads_text(run.experiment.task):
        raise StudentError("This run learned pictures; draw one.")
    every = modules_by_kind(run.experiment)
    chosen = tuple(every) if kinds is None else tuple(kind for kind in every if kind in kinds)
    return _looked(str(run.folder), checkpoint_mark(run), text, chosen)


@byte_cache.cached
def _looked(folder: str, mark: int, text: str, kinds: tuple[str, ...]) -> Example:
    run = Run(Path(folder))
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


@byte_cache.cached
def _written(folder: str, mark: int, ids: tuple[int, ...]) -> Decoded:
    """Return what the model of a run writes about a source."""
    import torch

    from tfm_core.decoding import greedy
    from tfm_core.models.pictures import VisionTransformer

    run = Run(Path(folder))
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
    written, src = _written(str(run.folder), checkpoint_mark(run), tuple(ids)), torch.tensor([ids])
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
    said: dict[str, Any] = {
        "answer": tuple(answer),
        "answer_text": task.join_tgt(answer),
        "confidence": confidence[0, : len(answer)].numpy(),
    }
    if isinstance(config, PretrainedTextConfig) and config.labels:
        said = head_answer(run, tokens)
    return Example(step=step, **captured(run.experiment, item, cache), **said)


def read_text(run: Run, text: str, modules: Collection[str]) -> Example:
    """Read a text with an encoder that makes vectors of it; its head may answer.

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
    said = head_answer(run, tokens)
    return Example(step=step, **captured(run.experiment, item, cache), **said)


def head_answer(run: Run, tokens: Sequence[str]) -> dict[str, Any]:
    """Return the parts of an ``Example`` that a head answers; none without a head or a hidden word.

    tokens: the text with those around it. Of a label, or of each hidden word, the likeliest answers
    stand one after the other. Raises StudentError where the head is gone or of another model.
    """
    import torch

    from tfm_core.data.opened.task import tokenizer_of
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


def look_at_picture(run: Run, picture: npt.NDArray[np.uint8]) -> Example:
    """Look at a picture uint8 (C, height, width) with the last checkpoint: classes and maps.

    Cached. Raises StudentError for another shape, or no checkpoint.
    """
    run.experiment.task_as(ImageTaskConfig, _WRONG_TASK)
    mark = checkpoint_mark(run)
    return _looked_at(str(run.folder), mark, picture.tobytes(), picture.shape)


@byte_cache.cached
def _looked_at(folder: str, mark: int, pixels: bytes, shape: tuple[int, ...]) -> Example:
    from tfm_core.models.pictures import VisionTransformer
    from tfm_core.probe.capture import capture

    run, picture = Run(Path(folder)), np.frombuffer(pixels, np.uint8).reshape(shape)
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


def read_picture(
    run: Run, picture: bytes | npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.uint8], list[str]]:
    """Return a drawing or file as the run's pictures are, and notes. Raises StudentError."""
    from tfm_core.data.own_picture import picture_to_input

    facts = run.experiment.task_as(ImageTaskConfig, _WRONG_TASK).facts
    return picture_to_input(picture, facts)
