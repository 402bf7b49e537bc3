"""Scores for the mask lab from a run's own model: one head of one layer, before any mask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfm_core.data.vocabulary import NONE
from tfm_core.inspect.attention.trained import model_of_step
from tfm_core.inspect.masks.lab import PAD_TOKEN, SEPARATOR, Projected, read_tokens
from tfm_core.probe.labels import kind_of, modules_by_kind
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, StudentError

if TYPE_CHECKING:
    from torch import Tensor

_CAUSAL = frozenset({"causal", "combined"})  # in a translator, the decoder's own masks
_At = tuple[int, int, int | None]  # layer and head from 0, and the step


def module_of(run: Run, kind: str) -> list[str]:
    """Return the attention modules that a kind of mask is laid on, one a layer.

    Raises ValueError, in a sentence, where the model has none.
    """
    task = run.experiment.task
    if task.describes_pictures:
        raise StudentError("Its words describe a picture, which is missing here.")
    if task.picture_shape:
        raise StudentError("It reads pictures, which have no words to mask.")
    modules = modules_by_kind(run.experiment)
    if kind == "cross":
        if "cross" not in modules:
            raise StudentError("Its model has no cross-attention.")
        return modules["cross"]
    if reads_target(run, kind):
        return modules["decoder"]
    if list(modules) == ["cross"]:
        raise StudentError("Its model has only cross-attention.")
    return next(iter(modules.values()))


def reads_target(run: Run, kind: str) -> bool:
    """Return whether a kind of mask lies on what the run's decoder writes, not on the source."""
    experiment = run.experiment
    is_of_words = experiment.task.picture_shape is None
    return is_of_words and kind in _CAUSAL and "decoder" in modules_by_kind(experiment)


def words_of(run: Run, text: str, kind: str = "none") -> tuple[str, ...]:
    """Return a text as the run's task cuts it, ``|`` between sequences; a target at its spaces.

    Raises ValueError, in a sentence, for what the task does not know.
    """
    from tfm_core.data.tasks import text_task

    config = run.experiment.task
    if config.describes_pictures:
        raise StudentError("Its words describe a picture, which is missing here.")
    if config.picture_shape:
        raise StudentError("It reads pictures, which have no words to mask.")
    task = text_task(config)
    if reads_target(run, kind):
        target = read_tokens(text)
        _check(target, (*task.tgt_vocabulary.tokens, SEPARATOR))
        return target
    parts = [task.tokenize(part) for part in text.split(SEPARATOR) if part.strip()]
    joined = [token for part in parts for token in (*part, SEPARATOR)][:-1]
    return read_tokens(" ".join(joined)) if joined else task.tokenize("")


def of_run(
    run: Run,
    kind: str,
    tokens: tuple[str, ...],
    other: tuple[str, ...],
    layer: int = 0,
    head: int = 0,
    *,
    step: int | None = None,
) -> Projected:
    """Return what the run's model makes of the tokens: its real projections, at a step.

    tokens: the source, the text of a language model, or the target where ``reads_target``, with
    ``<pad>`` where there is padding; other: for cross-attention what the decoder reads behind
    <bos>, for a decoder's self-attention the source that it translates. layer, head: from 0. step:
    None is that of the last checkpoint. Raises ValueError where the model cannot read them.
    """
    import torch

    from tfm_core.data.tasks import text_task

    module, at = module_of(run, kind)[layer], (layer, head, step)
    config = run.experiment.task
    task = text_task(config)
    begin, target = task.tgt_vocabulary.specials.bos, other
    words = [token for token in tokens if token != PAD_TOKEN]
    if reads_target(run, kind):
        _check(words, task.tgt_vocabulary.tokens)
        if len(words) > config.max_tgt_len:
            raise StudentError("Its task goes up to {longest} tokens.", longest=config.max_tgt_len)
        src = torch.tensor([task.src_vocabulary.encode(other)])
        tgt_in = torch.tensor([[begin, *task.tgt_vocabulary.encode(tokens)]])
        read = (config.begin, *tokens)
        return _captured(run, module, at, (src, tgt_in), (read, read), 0)
    pad = task.src_vocabulary.specials.pad
    if len(words) < len(tokens):
        if pad == NONE:
            raise StudentError("Its model has no padding.")
        tokens = tuple(task.src_vocabulary.token(pad) if t == PAD_TOKEN else t for t in tokens)
    has_source = config.has_source
    _check(words, task.src_vocabulary.tokens)
    longest = config.max_src_len or config.max_tgt_len
    if len(words) > longest:
        raise StudentError("Its task goes up to {longest} tokens.", longest=longest)
    is_joined = run.experiment.model.family == "decoder-only" and has_source
    if is_joined and len(words) < len(tokens):
        raise StudentError("Its model has no padding between source and target.")
    if kind == "cross":
        _check(target, task.tgt_vocabulary.tokens)
    src = torch.tensor([task.src_vocabulary.encode(tokens)])
    written = task.tgt_vocabulary.encode(target) if kind == "cross" else ()
    tgt_in = torch.tensor([[begin, *written]])
    if not has_source:  # a language model: the words are what it writes, behind <bos>
        src, tgt_in = src[:, :0], torch.cat([tgt_in[:, :1], src], 1)
    query = (config.begin, *target) if kind == "cross" else tokens
    first = int(run.experiment.has_cls or not has_source)  # the mask lab shows the words alone
    return _captured(run, module, at, (src, tgt_in), (query, tokens), first)


def _captured(
    run: Run,
    module: str,
    at: _At,
    ids: tuple[Tensor, Tensor],
    tokens: tuple[tuple[str, ...], tuple[str, ...]],
    first: int,
) -> Projected:
    """Run the model on source and target ids; return one head's scores and values.

    tokens: of the queries and of the keys, which stand from place ``first`` on.
    """
    from tfm_core.probe.capture import capture

    (query, key), (layer, head, asked) = tokens, at
    model, step = model_of_step(run, asked)
    with capture(model, only={"scores", "value"}, modules={module}) as cache:
        model(*ids)
    scores = cache[f"{module}.scores"][0, head, first:, first:][: len(query), : len(key)]
    value = cache[f"{module}.value"][0, head, first:][: len(key)]
    origin = N_(
        "layer {layer}, head {head} of “{name}” at step {step:,} · {attention}",
        layer=layer + 1,
        head=head + 1,
        name=run.meta.name,
        step=step,
        attention=kind_of(run.experiment, module).label,
    )
    return Projected(query, key, scores.float().numpy(), value.float().numpy(), origin)


def answer(run: Run, tokens: tuple[str, ...]) -> tuple[str, ...]:
    """Return the true target of a source of the run's task, empty where there is none."""
    from tfm_core.data.tasks import text_task

    config = run.experiment.task
    task = text_task(config)
    words = [token for token in tokens if token != PAD_TOKEN]
    return tuple(task.solve(words) or ())


def _check(words: list[str] | tuple[str, ...], known: tuple[str, ...]) -> None:
    unknown = [word for word in words if word not in known]
    if unknown:
        raise StudentError("“{unknown}” is not a word of its task.", unknown=unknown[0])
