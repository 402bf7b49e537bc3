"""What others call the parts: the study notebooks, Hugging Face's Transformers, TransformerLens.

Transformers 4: ``GPT2LMHeadModel`` for decoder-only, ``BertModel`` for encoder-only,
``BartForConditionalGeneration`` for encoder-decoder (Marian's are the same),
``ViTForImageClassification``, whose published weights have these names, though in Transformers 5
its blocks are ``vit.layers``. TransformerLens: ``HookedTransformer``, ``HookedEncoder`` and
``HookedEncoderDecoder``. Several names stand where one tensor of ours is several of theirs, or
where notebooks differ.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from tfm_core.anatomy.hugging_face import COLUMNS, FAMILY_COLUMNS, pattern_of
from tfm_core.anatomy.part import Names
from tfm_core.anatomy.stacks import STACKS
from tfm_core.choices.config import ModelConfig, RecurrentConfig, built
from tfm_core.choices.variants.forms import PROJECTIONS, RESIDUALS
from tfm_core.sentences import N_

Scheme = Literal["ours", "notebook", "hugging-face", "transformer-lens"]
SCHEME_LABELS: Mapping[Scheme, str] = {
    "ours": N_("Ours"),
    "notebook": N_("Notebook"),
    "hugging-face": "Hugging Face",
    "transformer-lens": "TransformerLens",
}

NOTEBOOK_NAMES: dict[str, tuple[str, ...]] = {  # by the end of a path
    "in_projection": ("W_Q", "W_K", "W_V"),
    "in_projection of slices": ("q_mappings", "k_mappings", "v_mappings"),
    "out_projection": ("W_O", "fc_out"),
    "query_norm": ("q_norm",),
    "key_norm": ("k_norm",),
    "sink": ("sink",),
    "self_attention": ("attn", "mha", "msa"),
    "cross_attention": ("cross_attn", "encoder_attention"),
    "feed_forward": ("ffn",),
    "feed_forward.up": ("fc1", "linear_1"),
    "feed_forward.down": ("fc2", "linear_2"),
    "self_attention_norm": ("addnorm1", "norm1", "ln1"),
    "feed_forward_norm": ("addnorm2", "norm2", "ln2"),
    "final_norm": ("ln_final",),
    "src_embedding.table": ("enc_embed", "word_embedding", "token_embedding"),
    "tgt_embedding.table": ("dec_embed", "word_embedding"),
    "src_positions": ("position_embedding", "pos_embedding"),
    "tgt_positions": ("position_embedding", "pos_embedding"),
    "positions": ("position_embedding", "pos_embedding"),
    "cls": ("class_token",),
    "stem.projection": ("linear_mapper",),
    "head": ("mlp_head",),
    "output": ("fc_out",),
    "scores": ("energy",),
    "mask of the source": ("make_src_mask",),
    "mask of the target": ("make_tgt_mask", "make_trg_mask"),
}
_WITH_CROSS = {  # in a decoder block the feed-forward layer is the third sublayer
    "cross_attention_norm": ("addnorm2", "norm2", "ln2"),
    "feed_forward_norm": ("addnorm3", "norm3", "ln3"),
}


def _lens(stack: str) -> dict[str, tuple[str, ...]]:
    ours, theirs = f"{stack}.layers.{{i}}", "blocks.{i}"
    return {
        f"{ours}.self_attention.in_projection": (
            f"{theirs}.attn.W_Q",
            f"{theirs}.attn.W_K",
            f"{theirs}.attn.W_V",
        ),
        f"{ours}.self_attention.out_projection": (f"{theirs}.attn.W_O",),
        f"{ours}.self_attention.query_norm": (f"{theirs}.attn.q_norm",),
        f"{ours}.self_attention.key_norm": (f"{theirs}.attn.k_norm",),
        f"{ours}.self_attention": (f"{theirs}.attn",),
        f"{ours}.self_attention_norm": (f"{theirs}.ln1",),
        f"{ours}.feed_forward.up": (f"{theirs}.mlp.W_in",),
        f"{ours}.feed_forward.gate": (f"{theirs}.mlp.W_gate",),
        f"{ours}.feed_forward.down": (f"{theirs}.mlp.W_out",),
        f"{ours}.feed_forward_norm": (f"{theirs}.ln2",),
    }


def _lens_of_both() -> dict[str, tuple[str, ...]]:
    """Return the names in ``HookedEncoderDecoder``, whose stacks are lists of T5's blocks."""
    names: dict[str, tuple[str, ...]] = {}
    for stack in ("encoder", "decoder"):
        for path, theirs in _lens(stack).items():
            names[path] = tuple(name.replace("blocks", stack) for name in theirs)
        names[f"{stack}.final_norm"] = (f"{stack}_final_ln",)
        names[f"{stack}.relative"] = (f"{stack}.0.attn.rel_pos_bias",)
    for path, theirs in _lens("decoder").items():
        if "self_attention" in path and not path.endswith("self_attention_norm"):
            cross = path.replace("self_attention", "cross_attention")
            names[cross] = tuple(
                name.replace("blocks", "decoder").replace("attn", "cross_attn") for name in theirs
            )
    names["decoder.layers.{i}.cross_attention_norm"] = ("decoder.{i}.ln2",)
    names["decoder.layers.{i}.feed_forward_norm"] = ("decoder.{i}.ln3",)
    return names


_TRANSFORMER_LENS: dict[str, dict[str, tuple[str, ...]]] = {
    "encoder-decoder": {
        **_lens_of_both(),
        "src_embedding.table": ("embed.W_E",),
        "tgt_embedding.table": ("embed.W_E",),
        "output": ("unembed.W_U",),
    },
    "decoder-only": {
        **_lens("decoder"),
        "decoder.final_norm": ("ln_final",),
        "src_embedding.table": ("embed.W_E",),
        "tgt_embedding.table": ("embed.W_E",),
        "positions": ("pos_embed.W_pos",),
        "output": ("unembed.W_U",),
    },
    "encoder-only": {
        **_lens("encoder"),
        "src_embedding.table": ("embed.embed.W_E",),
        "src_positions": ("embed.pos_embed.W_pos",),
        "segments.table": ("embed.token_type_embed.W_token_type",),
        "segments.norm": ("embed.ln",),
    },
}


@dataclass(frozen=True, slots=True)
class Activation:
    """What a capture calls an activation. swaps: heads and positions stand the other way round.

    only_if: a key that must be there, as what is called so is another value without it.
    """

    key: str
    swaps: bool = False
    only_if: str = ""


_PRE_NORM = "self_attention_norm.normed"
_HOOKS: dict[str, tuple[str, bool, str]] = {
    "attn.hook_pattern": ("self_attention.weights", False, ""),
    "attn.hook_attn_scores": ("self_attention.masked_scores", False, ""),
    "attn.hook_q": ("self_attention.split_query", True, ""),
    "attn.hook_rot_q": ("self_attention.query", True, ""),
    "attn.hook_rot_k": ("self_attention.key", True, ""),
    "attn.hook_v": ("self_attention.value", True, ""),
    "attn.hook_z": ("self_attention.heads", True, ""),
    "cross_attn.hook_pattern": ("cross_attention.weights", False, ""),
    "cross_attn.hook_attn_scores": ("cross_attention.masked_scores", False, ""),
    "cross_attn.hook_q": ("cross_attention.query", True, ""),
    "cross_attn.hook_k": ("cross_attention.key", True, ""),
    "cross_attn.hook_v": ("cross_attention.value", True, ""),
    "cross_attn.hook_z": ("cross_attention.heads", True, ""),
    "hook_attn_out": ("self_attention.output", False, ""),
    "hook_cross_attn_out": ("cross_attention.output", False, ""),
    "mlp.hook_post": ("feed_forward.hidden", False, ""),
    "hook_mlp_out": ("feed_forward.output", False, ""),
    "hook_resid_pre": ("self_attention_norm.skipped", False, ""),
    "hook_resid_mid": ("self_attention_norm.joined", False, _PRE_NORM),
    "hook_resid_post": ("residual", False, _PRE_NORM),
}
"""TransformerLens' hooks in a block, and the keys of a capture in one of ours."""
_HOOK = re.compile(r"(blocks|encoder|decoder)\.(\d{1,4})\.([a-z_.]+)")


def activations_of(hook: str) -> tuple[Activation, ...]:
    """Return what a hook of TransformerLens, as ``blocks.0.attn.hook_pattern``, may be here.

    ``blocks`` are those of the one stack that a model has.
    """
    found = _HOOK.fullmatch(hook)
    if found is None or found[3] not in _HOOKS:
        return ()
    key, swaps, only_if = _HOOKS[found[3]]
    stacks = ("decoder", "encoder") if found[1] == "blocks" else (found[1],)
    blocks = [f"{stack}.layers.{found[2]}." for stack in stacks]
    return tuple(
        Activation(block + key, swaps, block + only_if if only_if else "") for block in blocks
    )


@lru_cache(maxsize=4096)
def names_of(family: str, path: str) -> Names:
    """Return what others call a module of a family, by its path.

    What has no module is asked for by a word: "cls", "scores", "mask of the source" or "mask of the
    target".
    """
    pattern, layer = pattern_of(path)
    before, inner = path.partition(".layers.")[0], pattern.partition(".{i}.")[2]
    has_cross = any(plan.name == before and plan.memory for plan in STACKS[family])
    known = {**NOTEBOOK_NAMES, **(_WITH_CROSS if has_cross else {})}
    last = re.sub(r"experts\.\d+\.", "", inner or path)  # each expert is a feed-forward layer
    notebook = known.get(last) or known.get(last.rpartition(".")[2], ())
    return Names(
        notebook,
        _placed(COLUMNS.get(FAMILY_COLUMNS.get(family, ""), {}).get(pattern, ()), layer),
        _placed(_TRANSFORMER_LENS.get(family, {}).get(pattern, ()), layer),
    )


def _placed(names: tuple[str, ...], layer: str) -> tuple[str, ...]:
    return tuple(name.replace("{i}", layer) for name in names)


def parts_in_notebook(path: str) -> str:
    """Return a path with the notebook's name of each sublayer."""
    sublayers = ("self_attention", "cross_attention", "feed_forward")
    parts = path.split(".")
    return ".".join(NOTEBOOK_NAMES[one][0] if one in sublayers else one for one in parts)


@dataclass(frozen=True, slots=True)
class Naming:
    """How a page names the modules of one model.

    norms: what a notebook's block does with its norms: "sum" normalises each sum, in ``addnorm1``,
    "first" what a sublayer reads, in ``norm1``; "" stands for what no notebook has. is_sliced:
    whether each head maps only its slice, which only a notebook's do.
    """

    family: str
    scheme: Scheme = "ours"
    norms: Literal["sum", "first", ""] = ""
    is_sliced: bool = False

    def of(self, path: str, ours: str) -> tuple[str, ...]:
        """Return the names of a module; several where it is several of theirs, or none.

        path: in the engine, or a word that ``names_of`` knows. ours: its name in its family.
        """
        if self.scheme == "ours":
            return (ours,)
        names = names_of(self.family, path)
        if self.is_sliced and path.endswith("in_projection"):
            names = Names(notebook=NOTEBOOK_NAMES["in_projection of slices"])
        if self.scheme == "hugging-face":
            return names.hugging_face
        if self.scheme == "transformer-lens":
            return names.transformer_lens
        return self._in_notebook(path, ours, names.notebook)

    def _in_notebook(self, path: str, ours: str, last: tuple[str, ...]) -> tuple[str, ...]:
        """Return whole paths: notebooks name parts, and what they leave out keeps our name."""
        before, _dot, _last = ours.rpartition(".")
        is_head_norm = path.endswith(("attention.query_norm", "attention.key_norm"))
        is_block_norm = path.endswith("_norm") and ".layers." in path and not is_head_norm
        if not last or (is_block_norm and not self.norms):
            return ()
        if is_block_norm:
            last = (last[1] if self.norms == "first" else f"{last[0]}.norm",)
        elif path.endswith("embedding.table"):  # a notebook's table is the embedding itself
            last = (before if before in last else last[0],)
            before = ""
        elif not path.endswith("in_projection"):
            last = last[:1]
        before = parts_in_notebook(before)
        return tuple(f"{before}.{name}" if before else name for name in last)


def naming_of(config: ModelConfig, scheme: Scheme) -> Naming:
    """Return how the modules of a model are named."""
    config = built(config)
    if isinstance(config, RecurrentConfig):
        return Naming(config.family, scheme)
    is_usual = config.has_residuals and not RESIDUALS[config.residual].normed
    norms: Literal["sum", "first", ""] = "first" if config.norm_first else "sum" if is_usual else ""
    norms = norms if config.has_norms and not config.shared_norm else ""
    return Naming(config.family, scheme, norms, PROJECTIONS[config.projections].is_sliced)
