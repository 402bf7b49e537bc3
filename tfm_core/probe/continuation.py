"""A language model writing on from a prompt, greedily: what its predictions are while it learns.

torch is imported where it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tfm_core.config import CorpusTaskConfig

if TYPE_CHECKING:
    from torch import Tensor

    from tfm_core.data.corpus.task import CorpusTask
    from tfm_core.data.text.task import Pair
    from tfm_core.models.text import DecoderOnly

PROMPT = {"words": 3, "characters": 20, "bpe": 6}
"""Tokens of a prompt, where the examples are long enough."""
LENGTH = {"words": 12, "characters": 40, "bpe": 20}
"""Tokens that are written behind it, at most."""


def is_language(item: Mapping[str, Any]) -> bool:
    """Return whether an example of a probe is a text to continue, rather than a source."""
    return "prompt" in item


def items_of(task: CorpusTask, pairs: Sequence[Pair]) -> list[dict[str, Any]]:
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
    model: DecoderOnly, config: CorpusTaskConfig, prompts: Tensor
) -> tuple[Tensor, Tensor]:
    """Write on greedily from prompts (P, n), without <bos>; return ids and confidence, (P, T)."""
    import torch

    from tfm_core.data.vocabulary import BOS, PAD, UNK
    from tfm_core.decoding import Constraints, SamplingConfig, sampled_steps

    n, confidence = prompts.size(1), []
    ids = prompts
    for step in sampled_steps(
        model,
        prompts[:1, :0],
        prompts,
        max_len=n + LENGTH[config.unit],
        sampling=SamplingConfig(temperature=0),
        seeds=range(len(prompts)),
        context=config.max_tgt_len + 1,
        constraints=Constraints(never=(PAD, BOS, UNK)),
    ):
        ids = step.ids
        decoded = ids[:, -1:]
        confidence.append(step.before.gather(1, decoded).masked_fill(decoded == PAD, 0.0))
    if not confidence:
        return ids[:, n:], torch.zeros(len(ids), 0)
    return ids[:, n:], torch.cat(confidence, 1)
