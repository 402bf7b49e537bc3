"""Hugging Face's names of our modules: a column for each ``model_type``, and BART's names.

A column maps the path of a module in the engine to its modules in Transformers 4, whose published
weights have these names; ``{i}`` is the number of a block. Several names stand where one tensor of
ours is several of theirs, one below the other. ``FAMILY_COLUMNS`` says whose names a page shows for
a family of ours; those of BART are there for that alone.
"""

from __future__ import annotations

from collections.abc import Mapping

Column = Mapping[str, tuple[str, ...]]


def _bart(stack: str) -> dict[str, tuple[str, ...]]:
    ours, theirs = f"{stack}.layers.{{i}}", f"model.{stack}.layers.{{i}}"
    table = "src" if stack == "encoder" else "tgt"
    names = {
        f"{ours}.self_attention.in_projection": (
            f"{theirs}.self_attn.q_proj",
            f"{theirs}.self_attn.k_proj",
            f"{theirs}.self_attn.v_proj",
        ),
        f"{ours}.self_attention.out_projection": (f"{theirs}.self_attn.out_proj",),
        f"{ours}.self_attention": (f"{theirs}.self_attn",),
        f"{ours}.self_attention_norm": (f"{theirs}.self_attn_layer_norm",),
        f"{ours}.feed_forward.up": (f"{theirs}.fc1",),
        f"{ours}.feed_forward.down": (f"{theirs}.fc2",),
        f"{ours}.feed_forward_norm": (f"{theirs}.final_layer_norm",),
        f"{table}_embedding.table": (f"model.{stack}.embed_tokens",),
        f"{table}_positions": (f"model.{stack}.embed_positions",),
        f"{table}_positions.norm": (f"model.{stack}.layernorm_embedding",),
    }
    if stack == "decoder":
        names |= {
            path.replace("self_attention", "cross_attention"): tuple(
                name.replace("self_attn", "encoder_attn") for name in theirs
            )
            for path, theirs in names.items()
            if "self_attention" in path
        }
    return names


def _self_named(theirs: str, wide: str, *norms: str) -> dict[str, tuple[str, ...]]:
    """Return the names in BERT's and ViT's blocks, which differ in ``wide`` and in their norms."""
    ours, inner = "encoder.layers.{i}", f"{theirs}.attention.{wide}"
    return {
        f"{ours}.self_attention.in_projection": (
            f"{inner}.query",
            f"{inner}.key",
            f"{inner}.value",
        ),
        f"{ours}.self_attention.out_projection": (f"{theirs}.attention.output.dense",),
        f"{ours}.self_attention": (f"{theirs}.attention",),
        f"{ours}.feed_forward.up": (f"{theirs}.intermediate.dense",),
        f"{ours}.feed_forward.down": (f"{theirs}.output.dense",),
        f"{ours}.self_attention_norm": (f"{theirs}.{norms[0]}",),
        f"{ours}.feed_forward_norm": (f"{theirs}.{norms[1]}",),
    }


def _t5(stack: str, *, feed_forward: int) -> dict[str, tuple[str, ...]]:
    """Return the names in a stack of T5's, whose sublayers are a list in each block."""
    ours, theirs = f"{stack}.layers.{{i}}", f"{stack}.block.{{i}}.layer"
    names: dict[str, tuple[str, ...]] = {
        f"{ours}.feed_forward.up": (f"{theirs}.{feed_forward}.DenseReluDense.wi",),
        f"{ours}.feed_forward.gate": (f"{theirs}.{feed_forward}.DenseReluDense.wi_0",),
        f"{ours}.feed_forward.down": (f"{theirs}.{feed_forward}.DenseReluDense.wo",),
        f"{ours}.feed_forward_norm": (f"{theirs}.{feed_forward}.layer_norm",),
        f"{stack}.final_norm": (f"{stack}.final_layer_norm",),
        f"{stack}.relative": (f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias",),
    }
    attentions = [("self", f"{theirs}.0", "SelfAttention")]
    if stack == "decoder":
        attentions.append(("cross", f"{theirs}.1", "EncDecAttention"))
    for kind, layer, name in attentions:
        path = f"{ours}.{kind}_attention"
        names[f"{path}.in_projection"] = tuple(f"{layer}.{name}.{one}" for one in "qkv")
        names[f"{path}.out_projection"] = (f"{layer}.{name}.o",)
        names[f"{path}_norm"] = (f"{layer}.layer_norm",)
    return names


COLUMNS: dict[str, Column] = {
    "gpt2": {
        "decoder.layers.{i}.self_attention.in_projection": ("transformer.h.{i}.attn.c_attn",),
        "decoder.layers.{i}.self_attention.out_projection": ("transformer.h.{i}.attn.c_proj",),
        "decoder.layers.{i}.self_attention": ("transformer.h.{i}.attn",),
        "decoder.layers.{i}.self_attention_norm": ("transformer.h.{i}.ln_1",),
        "decoder.layers.{i}.feed_forward.up": ("transformer.h.{i}.mlp.c_fc",),
        "decoder.layers.{i}.feed_forward.down": ("transformer.h.{i}.mlp.c_proj",),
        "decoder.layers.{i}.feed_forward_norm": ("transformer.h.{i}.ln_2",),
        "decoder.final_norm": ("transformer.ln_f",),
        "src_embedding.table": ("transformer.wte",),
        "tgt_embedding.table": ("transformer.wte",),
        "positions": ("transformer.wpe",),
        "output": ("lm_head",),
    },
    "llama": {
        "decoder.layers.{i}.self_attention.in_projection": tuple(
            f"model.layers.{{i}}.self_attn.{one}_proj" for one in "qkv"
        ),
        "decoder.layers.{i}.self_attention.out_projection": ("model.layers.{i}.self_attn.o_proj",),
        "decoder.layers.{i}.self_attention_norm": ("model.layers.{i}.input_layernorm",),
        "decoder.layers.{i}.feed_forward.gate": ("model.layers.{i}.mlp.gate_proj",),
        "decoder.layers.{i}.feed_forward.up": ("model.layers.{i}.mlp.up_proj",),
        "decoder.layers.{i}.feed_forward.down": ("model.layers.{i}.mlp.down_proj",),
        "decoder.layers.{i}.feed_forward_norm": ("model.layers.{i}.post_attention_layernorm",),
        "decoder.final_norm": ("model.norm",),
        "src_embedding.table": ("model.embed_tokens",),
        "tgt_embedding.table": ("model.embed_tokens",),
        "output": ("lm_head",),
    },
    "bert": {
        **_self_named(
            "encoder.layer.{i}", "self", "attention.output.LayerNorm", "output.LayerNorm"
        ),
        "src_embedding.table": ("embeddings.word_embeddings",),
        "src_positions": ("embeddings.position_embeddings",),
        "segments.table": ("embeddings.token_type_embeddings",),
        "segments.norm": ("embeddings.LayerNorm",),
        "output.dense": ("pooler.dense",),
    },
    "vit": {
        **_self_named("vit.encoder.layer.{i}", "attention", "layernorm_before", "layernorm_after"),
        "encoder.final_norm": ("vit.layernorm",),
        "stem.projection": ("vit.embeddings.patch_embeddings.projection",),
        "cls": ("vit.embeddings.cls_token",),
        "positions": ("vit.embeddings.position_embeddings",),
        "head": ("classifier",),
    },
    "t5": {
        **_t5("encoder", feed_forward=1),
        **_t5("decoder", feed_forward=2),
        "src_embedding.table": ("shared",),
        "tgt_embedding.table": ("shared",),
        "output": ("lm_head",),
    },
    "bart": {**_bart("encoder"), **_bart("decoder"), "output": ("lm_head",)},
}

FAMILY_COLUMNS: Mapping[str, str] = {
    "decoder-only": "gpt2",
    "encoder-only": "bert",
    "vit": "vit",
    "encoder-decoder": "bart",
}


def pattern_of(path: str) -> tuple[str, str]:
    """Return the path of a module as columns have it, and the number of its block, if any."""
    before, _layers, after = path.partition(".layers.")
    layer, _dot, inner = after.partition(".")
    return (f"{before}.layers.{{i}}.{inner}" if inner else path), layer
