"""What ``tfm_core.look`` finds in other people's models, against what they say of themselves.

Small models with random weights. Transformers' models return their attention where it is computed
step by step (``eager``); the same weights are looked into with PyTorch's fused attention, too
(``sdpa``). timm's are compared with their own step-by-step form, torchvision's and PyTorch's with
what ``nn.MultiheadAttention`` returns. Rows of padding are left out: models differ in them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from tfm_core import look

N, LENGTH, WRITTEN, WORDS, WIDTH, HEADS = 2, 7, 4, 100, 32, 4
_SMALL = {
    "vocab_size": WORDS,
    "hidden_size": WIDTH,
    "num_attention_heads": HEADS,
    "num_hidden_layers": 2,
    "intermediate_size": 64,
}
_TEXTS: dict[str, dict[str, Any]] = {
    "GPT2LMHeadModel": {"vocab_size": WORDS, "n_embd": WIDTH, "n_head": HEADS, "n_layer": 2},
    "GPTNeoXForCausalLM": _SMALL,
    "BertModel": _SMALL,
    "RobertaModel": _SMALL,
    "DistilBertModel": {
        "vocab_size": WORDS,
        "dim": WIDTH,
        "n_heads": HEADS,
        "n_layers": 2,
        "hidden_dim": 64,
    },
    "AlbertModel": {**_SMALL, "embedding_size": 16},
    "ElectraModel": {**_SMALL, "embedding_size": WIDTH},
    "DebertaV2Model": {**_SMALL, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    "MPNetModel": _SMALL,
    "XLNetModel": {
        "vocab_size": WORDS,
        "d_model": WIDTH,
        "n_layer": 2,
        "n_head": HEADS,
        "d_inner": 64,
    },
    "BloomModel": {"vocab_size": WORDS, "hidden_size": WIDTH, "n_head": HEADS, "n_layer": 2},
    "FalconModel": {
        "vocab_size": WORDS,
        "hidden_size": WIDTH,
        "num_attention_heads": HEADS,
        "num_hidden_layers": 2,
    },
    "GPTJModel": {
        "vocab_size": WORDS,
        "n_embd": WIDTH,
        "n_head": HEADS,
        "n_layer": 2,
        "rotary_dim": 4,
    },
    "PhiModel": _SMALL,
    "Gemma2ForCausalLM": {**_SMALL, "num_key_value_heads": 2, "head_dim": 8},
    "LlamaForCausalLM": {**_SMALL, "num_key_value_heads": 2},
    "MistralForCausalLM": {**_SMALL, "num_key_value_heads": 2, "sliding_window": 3},
    "Qwen3ForCausalLM": {**_SMALL, "num_key_value_heads": 2, "head_dim": 8},
    "MixtralForCausalLM": {**_SMALL, "num_key_value_heads": 2, "num_local_experts": 4},
    "GptOssForCausalLM": {
        **_SMALL,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "num_local_experts": 4,
        "layer_types": ["full_attention"] * 2,
    },
}
_PAIRS: dict[str, dict[str, Any]] = {
    "T5ForConditionalGeneration": {
        "vocab_size": WORDS,
        "d_model": WIDTH,
        "num_heads": HEADS,
        "d_kv": 8,
        "num_layers": 2,
        "d_ff": 64,
    },
    "BartModel": {
        "vocab_size": WORDS,
        "d_model": WIDTH,
        "encoder_attention_heads": HEADS,
        "decoder_attention_heads": HEADS,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_ffn_dim": 64,
        "decoder_ffn_dim": 64,
    },
}
_TIMM = (
    "vit_tiny_patch16_224",
    "deit3_small_patch16_224",
    "eva02_tiny_patch14_224",
    "swin_tiny_patch4_window7_224",
    "maxvit_tiny_tf_224",
    "coatnet_0_rw_224",
)


class Found(NamedTuple):
    """The maps that a look found in a model, of those it has, and the worst deviation of one."""

    name: str
    how: str
    n_found: int
    n_own: int
    worst: float


def row(
    called: str,
    how: str,
    model: nn.Module,
    inputs: Mapping[str, Any] | Sequence[Any],
    own: Sequence[Tensor],
    *,
    mask: Tensor | None = None,
) -> Found:
    """Look into a model; return how far its maps are from ``own``. mask: (N, T) of the source."""
    args, named = ((), inputs) if isinstance(inputs, Mapping) else (inputs, {})
    seen = look(model, *args, **named)
    found = list(seen.maps.values())
    worst = max((_nearest(one.weights, own, mask) for one in found), default=float("nan"))
    return Found(called, how, len(found), len(own), worst)


def _nearest(weights: Tensor, own: Sequence[Tensor], mask: Tensor | None) -> float:
    """Return the deviation from the map that is nearest, over rows of tokens."""

    def deviation(other: Tensor) -> float:
        far = (weights - other.float()).abs().amax((1, 3))
        if mask is not None and mask.shape == far.shape:
            far = far[mask.bool()]
        return float(far.max())

    return min((deviation(one) for one in own if one.shape == weights.shape), default=9.0)


def _of_modules(model: nn.Module, inputs: Sequence[Any]) -> list[Tensor]:
    """Return what each ``nn.MultiheadAttention`` returns as its weights."""
    own: list[Tensor] = []

    def hook(module: nn.MultiheadAttention, args: Any, named: dict[str, Any], _out: Any) -> None:
        given = {**named, "need_weights": True, "average_attn_weights": False}
        own.append(nn.MultiheadAttention.forward(module, *args, **given)[1])

    hooks = [
        one.register_forward_hook(hook, with_kwargs=True)
        for one in model.modules()
        if isinstance(one, nn.MultiheadAttention)
    ]
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.no_grad():
            model.eval()(*inputs)
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        for one in hooks:
            one.remove()
    return own


def of_pytorch() -> Iterator[Found]:
    model = nn.Transformer(WIDTH, HEADS, 2, 2, 64, batch_first=True)
    given = [torch.randn(N, LENGTH, WIDTH), torch.randn(N, WRITTEN, WIDTH)]
    given += [None, nn.Transformer.generate_square_subsequent_mask(WRITTEN)]
    yield row("nn.Transformer", "fused", model, given, _of_modules(model, given))


def of_transformers() -> Iterator[Found]:
    from tfm_core.data.torchvision_import import torchvision as _first  # noqa: F401, I001
    import transformers

    transformers.logging.set_verbosity_error()
    ids = torch.randint(5, WORDS - 5, (N, LENGTH))
    mask = torch.ones(N, LENGTH, dtype=torch.long)
    mask[1, LENGTH - 2 :] = 0
    text: dict[str, Any] = {"input_ids": ids, "attention_mask": mask}
    pair = {**text, "decoder_input_ids": ids[:, :WRITTEN]}
    three = ("encoder_attentions", "decoder_attentions", "cross_attentions")
    picture = {"pixel_values": torch.randn(N, 3, 32, 32)}
    vit = {**_SMALL, "image_size": 32, "patch_size": 8}
    cases = [
        *((name, sizes, text, ("attentions",)) for name, sizes in _TEXTS.items()),
        *((name, sizes, pair, three) for name, sizes in _PAIRS.items()),
        *((name, vit, picture, ("attentions",)) for name in ("ViTModel", "DeiTModel")),
    ]
    for name, sizes, inputs, outputs in cases:
        config = getattr(transformers, re.sub(r"(For[A-Z].*|LMHeadModel|Model)$", "Config", name))
        kind = getattr(transformers, name)
        made = kind._from_config(config(**sizes), attn_implementation="eager").eval()
        with torch.no_grad():
            out = made(**inputs, output_attentions=True)
        own = [map_ for output in outputs for map_ in out[output]]
        mask_of = inputs.get("attention_mask")
        yield row(kind.__name__, "eager", made, inputs, own, mask=mask_of)
        try:
            fused = kind._from_config(config(**sizes), attn_implementation="sdpa")
        except ValueError:
            continue  # it has no such form
        fused.load_state_dict(made.state_dict())
        yield row(kind.__name__, "sdpa", fused, inputs, own, mask=mask_of)


def of_timm() -> Iterator[Found]:
    from tfm_core.data.torchvision_import import torchvision as _first  # noqa: F401

    timm = import_module("timm")
    for name in _TIMM:
        model = timm.create_model(name).eval()
        given = [torch.randn(1, 3, 224, 224)]
        parts = [one for one in model.modules() if hasattr(one, "fused_attn")]
        before = [one.fused_attn for one in parts]
        own: list[Tensor] = []

        def keep(_module: nn.Module, args: tuple[Tensor, ...], kept: list[Tensor] = own) -> None:
            kept.append(args[0])  # dropout gets the weights

        for one in parts:
            one.fused_attn = False
        hooks = [one.attn_drop.register_forward_pre_hook(keep) for one in parts]
        with torch.no_grad():
            model(*given)
        for hook in hooks:
            hook.remove()
        for one, was_fused in zip(parts, before, strict=True):
            one.fused_attn = was_fused
        yield row(name, "fused" if any(before) else "step by step", model, given, own)


def of_torchvision() -> Iterator[Found]:
    from tfm_core.data.torchvision_import import torchvision

    model = torchvision.models.vit_b_16()
    given = [torch.randn(1, 3, 224, 224)]
    yield row("vit_b_16", "fused", model, given, _of_modules(model, given))
