"""Masks that hide the wrong thing, or nothing: the causal mask and that of padding."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tfm_core.mistakes.mistake import Mistake, attentions
from tfm_core.sentences import N_, Paragraph
from tfm_core.variants.forms import Causality

if TYPE_CHECKING:
    from torch import nn


def _unmask(model: nn.Module) -> None:
    from tfm_core.mistakes.parts import unmasked

    _check_writes(model).order_mask = unmasked  # type: ignore[assignment]


def _transpose(model: nn.Module) -> None:
    from tfm_core.mistakes.parts import transposed_mask

    _check_writes(model).order_mask = transposed_mask  # type: ignore[assignment]


def _check_writes(model: nn.Module) -> nn.Module:
    """Return the model. Raises ValueError where it has no causal mask to be wrong."""
    if not hasattr(model, "order_mask"):
        raise ValueError(f"A {type(model).__name__} writes no text, so it has no causal mask.")
    return model


NO_CAUSAL_MASK = Mistake(
    name="no-causal-mask",
    label=N_("No causal mask in the decoder"),
    short=N_("no causal mask"),
    help=Paragraph("mistakes/no-causal-mask"),
    source="Vaswani et al. 2017, section 3.2.3, without the mask",
    place="decoder",
    apply=_unmask,
    form=Causality(
        name="none",
        sees_past=True,
        sees_future=True,
        note="no causal mask",
        rule=lambda window: rf"|i - j| \le {window}" if window else None,
        function="unmasked",
        cut=None,
        says="a query sees every key, later ones too",
    ),
    probe="sight",
)
MASK_TRANSPOSED = Mistake(
    name="mask-transposed",
    label=N_("Causal mask on the wrong axis"),
    short=N_("mask on the wrong axis"),
    help=Paragraph("mistakes/mask-transposed"),
    source="Vaswani et al. 2017, section 3.2.3, with keys and queries swapped in the mask",
    place="decoder",
    apply=_transpose,
    form=Causality(
        name="transposed",
        sees_past=False,
        sees_future=True,
        note="causal mask transposed",
        rule=lambda window: rf"i \le j \le i + {window}" if window else r"j \ge i",
        function="transposed",
        cut=".triu()",
        says="a query sees itself and the later keys",
    ),
    probe="sight",
)


def _turn(model: nn.Module) -> None:
    from tfm_core.layers.blocks import Stack
    from tfm_core.mistakes.parts import turned

    encoder = getattr(model, "encoder", None)
    if not isinstance(encoder, Stack) or not hasattr(model, "src_embedding"):
        raise ValueError(f"A {type(model).__name__} encodes no text, so it masks no padding there.")
    kind = type(encoder)
    encoder.forward = partial(turned, kind.forward, encoder)  # type: ignore[method-assign]
    encoder.at = partial(turned, kind.at, encoder)  # type: ignore[method-assign]


def _add(model: nn.Module) -> None:
    from tfm_core.layers.attention import MultiHeadAttention
    from tfm_core.mistakes.parts import AddedMask

    def added(attention: MultiHeadAttention, *args: Any, **settings: Any) -> Any:
        mask, relative = settings.pop("mask", None), settings.pop("relative", None)
        return MultiHeadAttention.forward(
            attention, *args, relative=AddedMask(mask, relative), **settings
        )

    for attention in attentions(model):
        attention.forward = partial(added, attention)  # type: ignore[method-assign]


PADDING_ON_QUERIES = Mistake(
    name="padding-on-queries",
    label=N_("Padding mask on the query axis"),
    short=N_("padding masked as queries"),
    help=Paragraph("mistakes/padding-on-queries"),
    source="Vaswani et al. 2017, section 3.2.1, with keys and queries swapped in the padding mask",
    place=None,
    right="scores.masked_fill(~keep[:, None, None, :], -inf)  # keep: (B, K)",
    wrong="scores.masked_fill(~keep[:, None, :, None], -inf)",
    apply=_turn,
    probe=None,
)
FLOAT_MASK = Mistake(
    name="float-mask",
    label=N_("A mask of 0.0 and 1.0 given to scaled_dot_product_attention"),
    short=N_("mask added as numbers"),
    help=Paragraph("mistakes/float-mask"),
    source="torch.nn.functional.scaled_dot_product_attention, attn_mask of type float",
    place=None,
    right="F.scaled_dot_product_attention(q, k, v, torch.ones(T, T).tril().bool())",
    wrong="F.scaled_dot_product_attention(q, k, v, torch.ones(T, T).tril())  # added to the scores",
    apply=_add,
    probe=None,
)
