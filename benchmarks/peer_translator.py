"""``nn.Transformer`` as an encoder-decoder for translation, the same function as ours.

Embeddings, positions and output layer are our own modules on both sides, so that only the two
stacks differ.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from tfm_core.config import EncoderDecoderConfig
from tfm_core.layers.blocks import Block
from tfm_core.models.build import TextShape, build_text
from tfm_core.models.text import EncoderDecoder

D_MODEL, N_HEADS, D_FF, VOCABULARY, PAD = 64, 4, 128, 60, 0


def ours() -> EncoderDecoder:
    """Return our model with one encoder and one decoder layer, pre-norm, GELU."""
    config = EncoderDecoderConfig(d_model=D_MODEL, n_heads=N_HEADS, d_ff=D_FF)
    model = build_text(config, TextShape(VOCABULARY, VOCABULARY, PAD))
    assert isinstance(model, EncoderDecoder)
    return model


def batch(size: int = 64, src_len: int = 16, tgt_len: int = 18) -> tuple[Tensor, Tensor, Tensor]:
    """Return source (B, S), target in and target out (B, T): random ids, padded on the right."""
    generator = torch.Generator().manual_seed(2)

    def draw(length: int) -> Tensor:
        ids = torch.randint(4, VOCABULARY, (size, length), generator=generator)
        real = torch.randint(length // 2, length + 1, (size, 1), generator=generator)
        real[0] = length
        return ids.masked_fill(torch.arange(length) >= real, PAD)

    src, tgt = draw(src_len), draw(tgt_len + 1)
    return src, tgt[:, :-1], tgt[:, 1:]


class TorchTranslator(nn.Module):
    """Embeddings, ``nn.Transformer`` with padding and causal masks, output layer."""

    def __init__(self, model: EncoderDecoder, *, is_equal: bool = True) -> None:
        """Take copies of the weights of ``model``; its stacks' stay as torch draws them if not."""
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
        if not is_equal:
            return
        with torch.no_grad():
            for theirs, mine in (
                (self.transformer.encoder, twin.encoder),
                (self.transformer.decoder, twin.decoder),
            ):
                theirs.norm.load_state_dict(mine.final_norm.state_dict())
                _fill(theirs.layers[0], mine.layers[0])

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


def _fill(layer: nn.Module, block: Block) -> None:
    """Copy the weights of one of our blocks into torch's encoder or decoder layer."""
    pairs = [
        (layer.linear1, block.feed_forward.up),
        (layer.linear2, block.feed_forward.down),
        (layer.norm1, block.self_attention_norm),
    ]
    attentions = [(layer.self_attn, block.self_attention)]
    if block.cross_attention is not None:
        attentions.append((layer.multihead_attn, block.cross_attention))
        pairs += [(layer.norm2, block.cross_attention_norm), (layer.norm3, block.feed_forward_norm)]
    else:
        pairs.append((layer.norm2, block.feed_forward_norm))
    for theirs, mine in attentions:
        theirs.in_proj_weight.copy_(mine.in_projection.weight)
        theirs.in_proj_bias.copy_(mine.in_projection.bias)
        pairs.append((theirs.out_proj, mine.out_projection))
    for theirs, mine in pairs:
        theirs.load_state_dict(mine.state_dict())
