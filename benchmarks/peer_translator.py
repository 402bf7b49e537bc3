"""``nn.Transformer`` as an encoder-decoder for translation.

Embeddings, positions and output layer are our own modules, so that only the two stacks differ.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from tfm_core.models.text import EncoderDecoder

D_MODEL, N_HEADS, D_FF, PAD = 64, 4, 128, 0


class TorchTranslator(nn.Module):
    """Embeddings, ``nn.Transformer`` with padding and causal masks, output layer."""

    def __init__(self, model: EncoderDecoder) -> None:
        """Take copies of the embeddings and output layer of ``model``; torch draws the stacks."""
        super().__init__()
        twin = copy.deepcopy(model)
        self.src_embedding, self.tgt_embedding = twin.src_embedding, twin.tgt_embedding
        self.src_positions, self.tgt_positions = twin.src_positions, twin.tgt_positions
        self.output = twin.output
        shape = (D_MODEL, N_HEADS, D_FF, 0.0, "gelu")
        layer = nn.TransformerEncoderLayer(*shape, batch_first=True, norm_first=True)
        # the encoder that nn.Transformer would make, without its warning about nested tensors
        encoder = nn.TransformerEncoder(layer, 1, nn.LayerNorm(D_MODEL), enable_nested_tensor=False)
        self.transformer = nn.Transformer(
            D_MODEL, N_HEADS, 1, 1, D_FF, 0.0, "gelu", encoder, batch_first=True, norm_first=True
        )

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Return logits (B, T, vocabulary)."""
        length = tgt_in.size(1)
        # torch's bool masks mean the opposite of ours: True = may not attend
        future = torch.ones(length, length, dtype=torch.bool, device=tgt_in.device).triu(1)
        src_padding = src == PAD
        x = self.transformer(
            self.src_positions(self.src_embedding(src)),
            self.tgt_positions(self.tgt_embedding(tgt_in)),
            tgt_mask=future,
            src_key_padding_mask=src_padding,
            tgt_key_padding_mask=tgt_in == PAD,
            memory_key_padding_mask=src_padding,
        )
        return self.output(x)
