"""What others call what a step of the walk is about: its modules, its tensors, its sizes.

Hugging Face's tensors are fields of a model's output with ``output_attentions=True`` and
``output_hidden_states=True``; TransformerLens's are the names of its hooks.
"""

from __future__ import annotations

from collections.abc import Mapping

from tfm_core.anatomy import Part, anatomy
from tfm_core.anatomy.names import Scheme, naming_of
from tfm_core.choices.config import ModelConfig
from tfm_core.choices.config.shape import Shape
from tfm_core.inspect.walk.steps import WalkStep

_LAST: Mapping[str, tuple[str, ...]] = {  # of the many parts of an attention, those of a step
    "queries-keys-values": ("in_projection",),
    "split": (),
    "scores": ("scores",),
    "masking": (),
    "softmax": (),
    "weighted-sum": (),
    "merge": ("out_projection",),
    "heads": (),
    "tokens": (),
    "encoder-stack": ("final_norm",),
    "decoder-attention": ("in_projection", "mask", "out_projection"),
    "cross-attention": ("in_projection", "mask", "out_projection"),
    "logits": ("final_norm", "output", "dense", "labels", "hidden"),
}
_SIZES: Mapping[Scheme, Mapping[str, Mapping[str, str]]] = {  # by family, "" for all
    "notebook": {
        "": {"d_model": "embed_size", "H": "num_heads", "d_head": "head_dim", "d_ff": "hidden_dim"}
    },
    "hugging-face": {
        "decoder-only": {"d_model": "n_embd", "H": "n_head", "d_ff": "n_inner", "V": "vocab_size"},
        "encoder-decoder": {
            "d_model": "d_model", "H": "encoder_attention_heads", "d_ff": "encoder_ffn_dim",
            "V": "vocab_size",
        },
        "": {
            "d_model": "hidden_size", "H": "num_attention_heads", "d_ff": "intermediate_size",
            "d_head": "attention_head_size", "V": "vocab_size",
        },
    },
    "transformer-lens": {
        "": {"d_model": "d_model", "H": "n_heads", "d_head": "d_head", "d_ff": "d_mlp",
             "V": "d_vocab"}
    },
}  # fmt: skip
_HOOKS: Mapping[str, tuple[str, tuple[str, ...]]] = {  # step -> our tensors, their hooks
    "queries-keys-values": ("q, k, v", ("attn.hook_q", "attn.hook_k", "attn.hook_v")),
    "split": ("q, k, v", ("attn.hook_q", "attn.hook_k", "attn.hook_v")),
    "scores": ("scores", ("attn.hook_attn_scores",)),
    "softmax": ("weights", ("attn.hook_pattern",)),
    "weighted-sum": ("heads", ("attn.hook_z",)),
    "merge": ("output", ("hook_attn_out",)),
    "feed-forward": ("hidden", ("mlp.hook_post",)),
}
_OUTPUTS: Mapping[str, str] = {
    "softmax": "attentions",
    "encoder-stack": "last_hidden_state",
    "decoder-attention": "decoder_attentions",
    "cross-attention": "cross_attentions",
    "logits": "logits",
    "head": "logits",
}


def called(
    step: WalkStep, config: ModelConfig, shape: Shape, scheme: Scheme, layer: int = 0
) -> dict[str, tuple[str, ...]]:
    """Return what we call what a step is about, and what others call it, as far as they do.

    layer: the block that is opened, from 0.
    """
    if scheme == "ours":
        return {}
    found = _modules(step, config, shape, scheme) | _tensors(step, config, scheme, layer)
    sizes = _SIZES[scheme].get(config.family, _SIZES[scheme].get("", {}))
    if config.has_blocks and (found or scheme != "transformer-lens"):
        axes = dict.fromkeys(axis for one in (*step.before, *step.after) for axis in one.axes)
        found |= {axis: (sizes[axis],) for axis in axes if sizes.get(axis, axis) != axis}
    return found


def _modules(
    step: WalkStep, config: ModelConfig, shape: Shape, scheme: Scheme
) -> dict[str, tuple[str, ...]]:
    naming, model = naming_of(config, scheme), anatomy(config, shape)
    parts = [part for top in model.parts for part in top if step.name in part.steps]
    if step.block:
        parts = [part for part in parts if part.path.startswith(step.block)]
    last = _LAST.get(step.name)
    found: dict[str, tuple[str, ...]] = {}
    for part in (below for whole in parts for below in whole):
        word, ours = _words(part, model.own_names)
        ours_last = ours.rpartition(".")[2]
        if word and (last is None or ours_last in last):
            names = tuple(_short(one) for one in naming.of(word, ours))
            found[ours_last] = tuple(dict.fromkeys([*found.get(ours_last, ()), *names]))
    return {ours: theirs for ours, theirs in found.items() if theirs}


def _words(part: Part, own: Mapping[str, str | None]) -> tuple[str, str]:
    """Return what ``names_of`` knows a part by, and what we call it; "" for what has no name."""
    if part.kind == "scores":
        return "scores", "scores"
    if part.kind == "mask":
        name = "target" if part.outputs[0].shape[2] != "1" else "source"
        return f"mask of the {name}", "mask"
    if not part.parameters:
        return "", ""
    return part.path or "cls", own.get(part.path) or part.path or "cls"


def _short(name: str) -> str:
    """Return a name without the path of its block."""
    before, dot, after = name.partition(".layers.")
    return after.partition(".")[2] if dot and before in ("encoder", "decoder") else name


_NO_LIBRARY = ("captioner", "recurrent")
_STACKS_IN_LENS = {"decoder-only": "blocks", "encoder-only": "blocks", "encoder-decoder": "encoder"}


def _tensors(
    step: WalkStep, config: ModelConfig, scheme: Scheme, layer: int
) -> dict[str, tuple[str, ...]]:
    if scheme == "transformer-lens":
        stack = _STACKS_IN_LENS.get(config.family)
        if stack is None or step.name not in _HOOKS:
            return {}
        ours, hooks = _HOOKS[step.name]
        return {ours: tuple(f"{stack}.{layer}.{hook}" for hook in hooks)}
    made = step.shown or (step.after[0].name if step.after else "")
    output = _OUTPUTS.get(step.name, "")
    if scheme != "hugging-face" or not output or config.family in _NO_LIBRARY:
        return {}
    if made == "pooled":
        output = "pooler_output"
    elif config.family == "encoder-decoder" and step.name in ("softmax", "encoder-stack"):
        output = f"encoder_{output}"
    return {made: (f"{output}[{layer}]" if output.endswith("attentions") else output,)}
