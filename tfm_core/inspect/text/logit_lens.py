"""The logit lens: what a decoder-only model would answer if it stopped after each layer.

The last norm and the output matrix, which are made for the last layer, are applied to the residual
stream behind every block (nostalgebraist 2020, "interpreting GPT: the logit lens"). torch is
imported where it is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from torch import Tensor

    from tfm_core.models.text import DecoderOnly

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Lens:
    """What the stream of one text says at each depth, the embedding first.

    ids: (L + 1, T) the likeliest next token; probability: (L + 1, T) of it; final: (L + 1, T) the
    probability, at each depth, of the token that the whole model finds likeliest; entropy:
    (L + 1, T) of the distribution, in nats.
    """

    ids: Array
    probability: Array
    final: Array
    entropy: Array


def lens_logits(model: DecoderOnly, src: Tensor, tgt_in: Tensor) -> Tensor:
    """Return (L + 1, T, V): the logits at each depth for src (1, S), tgt_in (1, T).

    The last depth is what the model itself says.
    """
    import torch

    from tfm_core.layers.masks import is_token
    from tfm_core.probe.capture import capture

    with capture(model, only={"input", "residual"}) as cache:
        model(src, tgt_in)
        depths = [cache["decoder.input"]]
        depths += [cache[f"decoder.layers.{i}.residual"] for i in range(len(model.decoder.layers))]
        first = int(is_token(src, model.pad_id).sum())
        norm = model.decoder.final_norm
        logits = []
        for stream in depths:  # one by one, as the model does it: so the last is equal to the bit
            rows = stream if norm is None else norm(stream)
            logits.append(model.output(rows[:, first : first + tgt_in.size(1)]))
    return torch.cat(logits)


def logit_lens(model: DecoderOnly, src: Tensor, tgt_in: Tensor) -> Lens:
    """Return what the model says at each depth and position of one text."""
    chances = lens_logits(model, src, tgt_in).float().softmax(-1)
    best = chances.max(-1)
    answer = best.indices[-1]  # (T,)
    final = chances.gather(-1, answer[None, :, None].expand(len(chances), -1, 1))[..., 0]
    entropy = -(chances * chances.clamp_min(1e-30).log()).sum(-1)
    return Lens(
        best.indices.numpy().astype(np.int32),
        best.values.numpy(),
        final.numpy(),
        entropy.numpy(),
    )
