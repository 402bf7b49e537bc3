"""Decoding: from a model to the words it writes: greedily, by sampling, by beam search.

All of them yield step by step, for every family that writes word by word: encoder-decoders,
recurrent translators, decoder-only models and captioners. An encoder-only model answers all
positions at once, so there is nothing to search: ``greedy`` says what it writes.
"""

from tfm_core.decoding.beam import Beam, beam_steps, length_penalty
from tfm_core.decoding.greedy import Decoded, greedy, greedy_steps
from tfm_core.decoding.reading import Writes, next_logits, reading
from tfm_core.decoding.sampling import SampleStep, SamplingConfig, filtered_probs, sampled_steps

__all__ = [
    "Beam",
    "Decoded",
    "SampleStep",
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
