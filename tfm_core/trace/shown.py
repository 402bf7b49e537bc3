"""What is shown of a step: its numbers, its axes and paragraphs, and what others call it.

Hugging Face's tensors are fields of a model's output with ``output_attentions=True`` and
``output_hidden_states=True``; TransformerLens's are the names of its hooks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfm_core.anatomy import Part, anatomy
from tfm_core.anatomy.names import Scheme, naming_of
from tfm_core.choices.config import ModelConfig
from tfm_core.choices.config.shape import Shape
from tfm_core.choices.mistakes import MISTAKES, SQRT_D_MODEL
from tfm_core.choices.variants.activations import ACTIVATIONS
from tfm_core.choices.variants.forms import SCALES
from tfm_core.choices.variants.norms import NORMS
from tfm_core.choices.variants.positions import POSITIONS
from tfm_core.choices.variants.stems import STEMS
from tfm_core.inspect.tables import Column, Columns
from tfm_core.sentences import N_, Paragraph

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from tfm_core.trace.steps import Step, StepTensor
    from tfm_core.trace.subject import Subject

_MAP_STEPS = {  # family and kind of attention -> name of the step; elsewhere "scores"
    ("encoder-decoder", "decoder"): "decoder-attention",
    ("encoder-decoder", "cross"): "cross-attention",
    ("captioner", "decoder"): "decoder-attention",
    ("captioner", "picture"): "cross-attention",
}


def step_of_map(family: str, kind: str) -> str:
    """Return the name of the step that makes an attention map. kind: a key of ``labels.KINDS``."""
    return _MAP_STEPS.get((family, kind), "scores")


HIDDEN = -1e30  # a score below this was masked


def cut(
    tensor: StepTensor, at: Mapping[str, int], rows: tuple[int, int], columns: tuple[int, int]
) -> npt.NDArray[np.float64]:
    """Return the last two axes at an index of the others, (rows, columns); a masked score is NaN.

    at: axis -> index, clipped to what there is. rows, columns: first and behind the last.
    """
    value: Any = tensor.looked_at.detach()
    for axis in tensor.axes[:-2]:
        value = value[min(at.get(axis, 0), value.shape[0] - 1)]
    if value.dim() == 1:
        value = value[None]
    numbers = value[slice(*rows), slice(*columns)].double().numpy()
    return np.where(numbers < HIDDEN, np.nan, numbers)


AXES: dict[str, str] = {
    "B": N_("examples in the batch"),
    "S": N_("source tokens"),
    "T": N_("target tokens"),
    "L": N_("source and target in one sequence"),
    "N": N_("patches, and CLS if any"),
    "H": N_("heads"),
    "Q": N_("queries"),
    "K": N_("keys"),
    "d_model": N_("width of a token's vector"),
    "d_head": N_("width of one head"),
    "d_q": N_("width of the queries of all heads"),
    "d_kv": N_("width of the keys of all heads"),
    "d_ff": N_("hidden width of feed-forward"),
    "E": N_("experts"),
    "V": N_("tokens of the target vocabulary"),
    "classes": N_("classes"),
    "C": N_("channels"),
    "Y": N_("rows of pixels"),
    "X": N_("columns of pixels"),
    "patches": N_("patches of the picture"),
    "P": N_("values of a patch"),
    "positions": N_("possible positions"),
    "W": N_("tokens the model writes"),
    "layers": N_("decoder layers"),
    "1": N_("the same for all"),
}
_OF_ONE_TEXT = {
    "language": ("L", "T"),  # reader -> the axes of its tokens
    "label": ("S",),
    "blanks": ("S",),
    "pooler": ("S",),
}


def axis_words(reader: str) -> dict[str, str]:
    """Return what each axis counts in a walk, by its name; reader: see ``Subject.reader``."""
    if reader == "captioner":
        caption = {"T": N_("tokens of the caption"), "N": N_("patches of the picture")}
        return {**AXES, **caption, "V": N_("tokens of the vocabulary")}
    if reader not in _OF_ONE_TEXT:
        return AXES
    own = dict.fromkeys(_OF_ONE_TEXT[reader], N_("tokens of the text"))
    return {**AXES, **own, "V": N_("tokens of the vocabulary")}


_MAX_NUMBERS = 4


def first_numbers(tensor: StepTensor, example: int, words: Sequence[str] = ()) -> str:
    """Return the first few numbers of an example, in the order of memory; "" without numbers.

    words: the word of each id, shown in front of it.
    """
    if not tensor.has_values:
        return ""
    value: Any = tensor.looked_at.detach()
    if tensor.axes[:1] == ("B",):
        value = value[min(example, len(value) - 1)]
    line = value.reshape(-1)[:_MAX_NUMBERS]
    form = ".3f" if value.is_floating_point() else "d"
    shown = [
        "masked" if number < HIDDEN else format(number if form == ".3f" else int(number), form)
        for number in line.tolist()
    ]
    if form == "d" and words:
        shown = [f"{word} {number}" for word, number in zip(words, shown, strict=False)]
    return ", ".join(shown) + (", …" if value.numel() > _MAX_NUMBERS else "")


def topic_text(topic: str) -> str:
    """Return a topic's paragraph, with the names of settings and steps still to be filled in."""
    return _of_records().get(topic) or Paragraph(f"walk/{topic}")


@cache
def _of_records() -> dict[str, str]:
    """Return the paragraphs that the records of mistakes and variants bring along."""
    return {
        **{
            f"mistake-{one.name}": N_("**A mistake worth seeing:** {help}", help=one.help)
            for one in MISTAKES.values()
        },
        **{f"norm-{norm.name}": norm.walk for norm in NORMS.values()},
        **{f"activation-{one.name}": one.walk for one in ACTIVATIONS.values()},
        **{f"stem-{stem.name}": stem.walk for stem in STEMS.values()},
        **{f"position-{kind.name}": kind.walk for kind in POSITIONS.values()},
        **{
            f"inside-{kind.name}": kind.inside_walk
            for kind in POSITIONS.values()
            if kind.inside_walk is not None
        },
    }


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
            "d_model": "d_model",
            "H": "encoder_attention_heads",
            "d_ff": "encoder_ffn_dim",
            "V": "vocab_size",
        },
        "": {
            "d_model": "hidden_size",
            "H": "num_attention_heads",
            "d_ff": "intermediate_size",
            "d_head": "attention_head_size",
            "V": "vocab_size",
        },
    },
    "transformer-lens": {
        "": {
            "d_model": "d_model",
            "H": "n_heads",
            "d_head": "d_head",
            "d_ff": "d_mlp",
            "V": "d_vocab",
        }
    },
}
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
    step: Step, config: ModelConfig, shape: Shape, scheme: Scheme, layer: int = 0
) -> dict[str, tuple[str, ...]]:
    """Return what we call what a step is about, and what others call it, as far as they do.

    layer: the block that is opened, from 0.
    """
    if scheme == "ours":
        return {}
    found = _modules(step, config, shape, scheme) | _tensors(step, config, scheme, layer)
    sizes = _SIZES[scheme].get(config.family, _SIZES[scheme].get("", {}))
    if config.has_blocks and (found or scheme != "transformer-lens"):
        axes = dict.fromkeys(axis for one in (*step.inputs, *step.outputs) for axis in one.axes)
        found |= {axis: (sizes[axis],) for axis in axes if sizes.get(axis, axis) != axis}
    return found


def _modules(
    step: Step, config: ModelConfig, shape: Shape, scheme: Scheme
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
    step: Step, config: ModelConfig, scheme: Scheme, layer: int
) -> dict[str, tuple[str, ...]]:
    if scheme == "transformer-lens":
        stack = _STACKS_IN_LENS.get(config.family)
        if stack is None or step.name not in _HOOKS:
            return {}
        ours, hooks = _HOOKS[step.name]
        return {ours: tuple(f"{stack}.{layer}.{hook}" for hook in hooks)}
    made = step.shown or (step.outputs[0].name if step.outputs else "")
    output = _OUTPUTS.get(step.name, "")
    if scheme != "hugging-face" or not output or config.family in _NO_LIBRARY:
        return {}
    if made == "pooled":
        output = "pooler_output"
    elif config.family == "encoder-decoder" and step.name in ("softmax", "encoder-stack"):
        output = f"encoder_{output}"
    return {made: (f"{output}[{layer}]" if output.endswith("attentions") else output,)}


BITS = Columns(
    token=Column(N_("query token"), axis={"tickangle": -45}),
    value=Column(N_("entropy (bits)"), ".4f", {"rangemode": "tozero"}),
)


def scales(
    subject: Subject, module: str, example: int, head: int
) -> tuple[str, bool, pd.DataFrame]:
    """Return what the wrong scale, or none, does to the weights of one head of an attention.

    The mistake, a name of SCALES: the model's own where that is wrong; whether the model makes it;
    token, and the entropy of its weights in bits: the most that there could be with the keys that
    it may attend to, with the wrong and with the right scale.
    """
    scores = subject.cache[f"{module}.scores"]  # (B, H, Q, K), divided as the model does it
    mask = subject.cache.get(f"{module}.mask")
    sizes, scale = subject.anatomy.sizes, SCALES[subject.anatomy.attentions[0].scale]
    rows = scores[example, head]
    bias = subject.cache.get(f"{module}.bias")
    penalty = 0.0 if bias is None else bias[head]
    own = 1.0 if scale.width is None else math.sqrt(sizes[scale.width])
    root, is_right = math.sqrt(sizes["d_head"]), scale.width == "d_head"
    if is_right:
        mistake, right = SQRT_D_MODEL.name, rows
        wrong = (rows - penalty) * (root / math.sqrt(sizes["d_model"])) + penalty
    else:
        mistake, wrong = scale.name, rows
        right = (rows - penalty) * (own / root) + penalty
    allowed = None if mask is None else mask.expand_as(scores)[example, head]
    right_weights, wrong_weights = _softmax(right, allowed), _softmax(wrong, allowed)
    n_keys = rows.new_full((rows.size(0),), rows.size(1)) if allowed is None else allowed.sum(-1)
    most = n_keys.clamp(min=1).float().log2()
    bits = {"most": most, "wrong": entropy(wrong_weights), "right": entropy(right_weights)}
    columns = {name: one.numpy() for name, one in bits.items()}
    return mistake, not is_right, BITS.table({"token": range(len(most)), **columns})


def entropy(weights: Tensor) -> Tensor:
    """Return the entropy in bits of the rows of (Q, K): how many keys they share out among."""
    import torch

    bits: Tensor = torch.special.entr(weights).sum(-1) / math.log(2)
    return bits


def _softmax(scores: Tensor, allowed: Tensor | None) -> Tensor:
    from tfm_core.layers.attention import masked_softmax

    if allowed is not None:
        scores = scores.masked_fill(~allowed, float(scores.new_tensor(-1e30)))
    return masked_softmax(scores, allowed)


def word_maps(
    subject: Subject, step: Step, example: int, head: int
) -> tuple[npt.NDArray[np.float32], Sequence[str], Sequence[Sequence[int] | None]]:
    """Return one head's weights of an example's true caption, from the step of cross-attention.

    Maps (T, side, side) over the patches, of the words that ask, <bos> first, without padding;
    these words; and the boxes of the digits that the words behind them name, or None.
    """
    assert subject.described is not None
    weights = subject.cache[f"{step.block}.cross_attention.weights"]  # (B, H, T, patches)
    n, side = len(subject.truth[example]), round(weights.size(-1) ** 0.5)  # <eos> last
    maps = weights[example, min(head, weights.size(1) - 1), :n].cpu().float().numpy()
    words = (subject.tokens("tgt", example) or ())[:n]
    return maps.reshape(n, side, side), words, [*subject.described.boxes[example], None]
