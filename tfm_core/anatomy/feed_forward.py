"""Feed-forward layers and mixtures of experts as parts."""

from __future__ import annotations

from dataclasses import replace

from tfm_core.anatomy.formula import Formula, collected, formula
from tfm_core.anatomy.layers import ID, Maker, tensor
from tfm_core.anatomy.part import NONE_SAVED, Part, Saved
from tfm_core.choices.config import TransformerConfig
from tfm_core.choices.variants.activations import ACTIVATIONS


def feed_forward(maker: Maker, config: TransformerConfig, path: str, length: str) -> Part:
    """Return a feed-forward layer: two matrices, or three where it is gated."""
    activation = ACTIVATIONS[config.activation]
    hidden = activation.n_saved + 1
    if config.dropout:  # the noise on the hidden layer, and what of it is left
        hidden = max(1, activation.n_saved) + 2

    def matrix(name: str, out: str, into: str, saved: Saved) -> Part:
        return replace(
            maker.linear(f"{path}.{name}", out, into, length, bias=config.bias, saved=saved),
            work="feed-forward",
        )

    read = f"{length} d_model"
    up = matrix("up", "d_ff", "d_model", Saved(products=formula(read)))
    bent = Part(
        kind="activation",
        path=path,
        inputs=(tensor("u", length, "d_ff"),),
        outputs=(tensor("hidden", length, "d_ff"),),
        saved=Saved(products=formula(f"{hidden} {length} d_ff")),
    )
    first: tuple[Part, ...] = (up,)
    if activation.is_gated:  # of what it reads, a copy each
        first = (matrix("gate", "d_ff", "d_model", Saved(copies=formula(read))), up)
    noise = Saved(products=formula(read if config.dropout else ""))
    x = tensor("x", length, "d_model")
    return Part(
        kind="feed-forward",
        path=path,
        layer="FeedForward",
        variant=config.activation,
        inputs=(x,),
        outputs=(x,),
        children=(*first, bent, matrix("down", "d_model", "d_ff", noise)),
    )


def mixture(maker: Maker, config: TransformerConfig, path: str, length: str) -> Part:
    """Return a router and its experts.

    Which tokens an expert gets is not known; that each is got by ``top_k`` of them is. So the
    arithmetic of the experts, and what they keep, is counted here, for all of them.
    """
    expert = feed_forward(maker, config, f"{path}.experts.0", f"top_k {length}")
    router = maker.linear(
        f"{path}.router",
        "n_experts",
        "d_model",
        length,
        bias=False,
        saved=Saved(products=formula(f"{length} d_model")),
    )
    kept = [part.saved for part in expert]
    if config.dropout:  # the noise on the whole layer's output is drawn once for a token
        kept.append(Saved(products=formula(f"{length} d_model + -1 top_k {length} d_model")))
    # probabilities; of each choice its expert, its token, its place among all, and its share
    choices = f"{length} n_experts + {3 * ID + 1} top_k {length}"
    if config.top_k > 1:  # shares before they are divided by their sum, and the sum
        choices += f"+ top_k {length} + {length}"
    routed = Saved(
        full=formula(choices),
        products=formula(f"top_k {length} d_model"),  # what the experts make
    )
    x = tensor("x", length, "d_model")
    return Part(
        kind="feed-forward",
        path=path,
        layer="MixtureOfExperts",
        variant=config.activation,
        inputs=(x,),
        outputs=(x,),
        macs=collected(*(part.macs for part in expert)),
        work="feed-forward",
        saved=Saved.total([*kept, routed]),
        children=(
            replace(router, work="feed-forward"),
            *(
                _uncounted(feed_forward(maker, config, f"{path}.experts.{n}", length))
                for n in range(config.n_experts)
            ),
        ),
    )


def _uncounted(part: Part) -> Part:
    """Return a part of an expert, whose tokens are counted in its mixture."""
    return replace(
        part,
        macs=Formula(),
        work="",
        saved=NONE_SAVED,
        children=tuple(_uncounted(child) for child in part.children),
    )
