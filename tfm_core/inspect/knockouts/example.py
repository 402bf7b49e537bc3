"""One example as a model reads and answers it without some parts; torch is imported late."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfm_core.choices.config import CaptionTaskConfig, CorpusTaskConfig
from tfm_core.inspect.attention.example import Example, captured
from tfm_core.inspect.attention.inputs import inputs_of
from tfm_core.inspect.attention.trained import (
    cached_by_weights,
    data_of,
    model_of,
)
from tfm_core.inspect.knockouts.measure import Replacement, means_over
from tfm_core.inspect.knockouts.parts import Part
from tfm_core.runs.run import Run

if TYPE_CHECKING:
    from torch import Tensor

MIN_MOVED = 0.0005
"""Share of the attention below which a map counts as unchanged: it rounds to 0.0%."""


def example_without(run: Run, index: int, off: Sequence[Part], how: Replacement, n: int) -> Example:
    """Return an example of a run's probe without some parts: maps with the true answer, own answer.

    n: validation examples for the means. Cached. Raises StudentError without checkpoint or probe.
    """
    ordered = tuple(sorted(set(off), key=lambda part: part.code))
    return _read(run, index, ordered, how, n)


def moved(before: Example, after: Example, module: str, head: int | None = None) -> float:
    """Return the share of attention that moved to other keys; head: None for the mean of all."""
    first, second = (
        maps.mean(0) if head is None else maps[head]
        for maps in (before.attention[module], after.attention[module])
    )
    return float(np.abs(second.astype(np.float64) - first).sum(-1).mean() / 2)


def most_moved(before: Example, after: Example) -> str | None:
    """Return the module whose attention moved most, by the mean of its heads; None where none."""
    shares = {module: moved(before, after, module) for module in before.attention}
    module = max(shares, key=lambda name: shares[name], default=None)
    return module if module is not None and shares[module] >= MIN_MOVED else None


@cached_by_weights
def _read(run: Run, index: int, off: tuple[Part, ...], how: Replacement, n: int) -> Example:
    import torch

    from tfm_core.inspect.knockouts.engine import knocked_out
    from tfm_core.probe.capture import capture

    model, step = model_of(run)
    probe = run.probe()
    item = probe.items[index]
    picture = None if probe.images is None else probe.images[index]
    inputs = inputs_of(run, item, picture)
    means = means_over(run, n) if how == "mean" and off else None
    with torch.inference_mode(), knocked_out(model, off, means, is_even=how == "even"):
        with capture(model, only={"weights", "mask"}) as cache:
            logits = model(*inputs)
        answer = _answer(run, model, item, inputs, logits)
    return Example(step, **captured(run.experiment, item, cache), picture=picture, **answer)


def _answer(
    run: Run, model: Any, item: Mapping[str, Any], inputs: Sequence[Tensor], logits: Tensor
) -> dict[str, Any]:
    """Return the prediction: probabilities of classes, or generated words."""
    from tfm_core.data.caption_words import join, vocabulary
    from tfm_core.data.captions import CaptionData
    from tfm_core.data.moving import data_as
    from tfm_core.data.tasks import text_task
    from tfm_core.decoding import Decoded, greedy
    from tfm_core.probe.items import continued

    task = run.experiment.task
    if "label" in item:
        return {"probabilities": logits[0].float().softmax(-1).numpy()}
    if isinstance(task, CaptionTaskConfig):
        longest = data_as(data_of(run.experiment), CaptionData).validation.tgt.size(1) - 1
        written = greedy(model, inputs[0], max_len=longest)
        answer = tuple(vocabulary(task).decode(written.ids[0].tolist()))
        text = join(answer, task)
    else:
        config = run.experiment.task
        words = text_task(config)
        if isinstance(task, CorpusTaskConfig):
            prompt = inputs[1][:, 1 : 1 + item["prompt"]]
            written = Decoded(*continued(model, task, prompt))
        else:
            written = greedy(model, inputs[0], max_len=config.n_answers)
        answer = tuple(words.tgt_vocabulary.decode(written.ids[0].tolist()))
        text = words.join_tgt(answer)
    confidence = np.asarray(written.confidence[0, : len(answer)].numpy())
    return {"answer": answer, "answer_text": text, "confidence": confidence}
