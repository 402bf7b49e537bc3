"""Decoding: from a model to the words it writes: greedily, by sampling, by beam search.

All yield step by step, for every family that writes token by token. An encoder-only model answers
all positions at once, so only ``greedy`` takes it.
"""

from tfm_core.decoding.beam import Beam, beam_steps, length_penalty
from tfm_core.decoding.greedy import Decoded, greedy, greedy_steps
from tfm_core.decoding.kv_cache import ReadPrompt
from tfm_core.decoding.reading import Constraints, Writes, next_logits, reading
from tfm_core.decoding.sampling import SamplingConfig, filtered_probs, sampled_steps

__all__ = [
    "Beam",
    "Constraints",
    "Decoded",
    "ReadPrompt",
    "SamplingConfig",
    "Writes",
    "beam_steps",
    "filtered_probs",
    "greedy",
    "greedy_steps",
    "length_penalty",
    "next_logits",
    "reading",
    "sampled_steps",
]
