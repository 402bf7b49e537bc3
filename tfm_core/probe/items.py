"""Probe items with more than tokens: captioned pictures, and prompts to continue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tfm_core.choices.config import CaptionTaskConfig, CorpusTaskConfig, Experiment
from tfm_core.choices.config.shape import patches_per_side
from tfm_core.data.caption_words import CANVAS, Caption, covered, join
from tfm_core.probe.labels import patch_names

if TYPE_CHECKING:
    from torch import Tensor

    from tfm_core.data.captions import CaptionSplit
    from tfm_core.data.text.corpus import CorpusTask
    from tfm_core.data.text.task import Pair
    from tfm_core.decoding import ReadPrompt
    from tfm_core.models.text import DecoderOnly


Box = Sequence[int]


def caption_items(
    config: CaptionTaskConfig, split: CaptionSplit, rows: Sequence[int], patch_size: int
) -> list[dict[str, Any]]:
    """Return some pictures of a split as items of a probe; see ``caption_item``."""
    import torch

    from tfm_core.data.captions import ink_boxes

    chosen = torch.tensor(list(rows), device=split.chosen.device)
    boxes = ink_boxes(split.digits_of(chosen), split.squares[chosen]).tolist()
    return [
        caption_item(config, split.captions[row], of_row, patch_size)
        for row, of_row in zip(rows, boxes, strict=True)
    ]


def caption_item(
    config: CaptionTaskConfig, caption: Caption, boxes: Sequence[Box], patch_size: int
) -> dict[str, Any]:
    """Return a captioned picture as an item of a probe.

    boxes: left, top, right, bottom in pixels, the last two exclusive, of each digit's ink. Item:
    ``src`` names of patches, ``tgt`` words, ``tgt_text``, and for each word ``boxes``, the box of
    its digit or None, and ``alignment``, the patches that it touches.
    """
    named = [None if digit is None else list(boxes[digit]) for digit in caption.names]
    return {
        "src": list(patch_names(patches_per_side(CANVAS, patch_size))),
        "tgt": list(caption.words),
        "tgt_text": join(caption.words, config),
        "boxes": named,
        "alignment": [[] if box is None else covered(box, patch_size) for box in named],
    }


PROMPT = {"words": 3, "characters": 20, "bpe": 6}
"""Tokens of a prompt, where the examples are long enough."""
LENGTH = {"words": 12, "characters": 40, "bpe": 20}
"""The most tokens written after it."""


def is_language(item: Mapping[str, Any]) -> bool:
    """Return whether an example of a probe is a text to continue, rather than a source."""
    return "prompt" in item


def is_right(experiment: Experiment, item: Mapping[str, Any], tokens: Sequence[str]) -> bool | None:
    """Return whether an answer is the truth; None where there is none."""
    if not experiment.task.has_model:  # whose words are its own: the texts are compared
        return " ".join(tokens) == " ".join(item["tgt_text"].split()) if item["tgt_text"] else None
    if is_language(item) or experiment.training is None:
        return None
    return tuple(tokens) == tuple(item["tgt"])


def prompted_items(task: CorpusTask, pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """Return texts as examples of a probe; ``prompt`` is how many of their tokens are given."""
    shortest = min(len(pair.tgt) for pair in pairs)
    n = max(1, min(PROMPT[task.config.unit], shortest - 1))
    return [
        {
            "src": [],
            "tgt": list(pair.tgt),
            "alignment": [[] for _ in pair.tgt],
            "prompt": n,
            "src_text": task.join_src(pair.tgt[:n]),
            "tgt_text": task.join_tgt(pair.tgt[n : n + LENGTH[task.config.unit]]),
        }
        for pair in pairs
    ]


def continued(
    model: DecoderOnly, config: CorpusTaskConfig, prompt: Tensor | ReadPrompt
) -> tuple[Tensor, Tensor]:
    """Write on greedily from prompts (P, n), without <bos>; return ids and confidence, (P, T).

    prompt: their ids, or what the model has read of them.
    """
    import torch

    from tfm_core.data.tasks import text_task
    from tfm_core.decoding import Constraints, ReadPrompt, SamplingConfig, sampled_steps

    prompts = prompt.ids if isinstance(prompt, ReadPrompt) else prompt
    n, confidence = prompts.size(1), []
    ids, specials = prompts, text_task(config).tgt_vocabulary.specials
    for step in sampled_steps(
        model,
        prompts[:1, :0],
        prompt,
        max_len=n + LENGTH[config.unit],
        sampling=SamplingConfig(temperature=0),
        seeds=range(len(prompts)),
        context=config.max_tgt_len + 1,
        constraints=Constraints(never=specials.unwritten),
    ):
        ids = step.ids
        decoded = ids[:, -1:]
        confidence.append(step.before.gather(1, decoded).masked_fill(decoded == specials.pad, 0.0))
    if not confidence:
        return ids[:, n:], torch.zeros(len(ids), 0)
    return ids[:, n:], torch.cat(confidence, 1)
