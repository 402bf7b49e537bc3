"""What takes the attention that no token gets: an extra logit in the softmax of each query."""

from __future__ import annotations

from dataclasses import dataclass, field

from tfm_core.choices.variants.record import Registry, Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink(Variant):
    """is_there: whether there is an extra logit. is_learned: whether each head trains its own.

    Otherwise it is 0. latex: its exponential in the softmax's denominator, None without one.
    phrase: in the picture.
    """

    is_there: bool
    is_learned: bool
    latex: str | None
    phrase: str = field(init=False)


NO_SINK = Sink(
    name="none",
    source="Vaswani et al. 2017, Eq. 1",
    is_there=False,
    is_learned=False,
    latex=None,
)
ZERO_SINK = Sink(
    name="zero",
    source="Miller 2023, softmax1",
    is_there=True,
    is_learned=False,
    latex="1",
)
LEARNED_SINK = Sink(
    name="learned",
    source="OpenAI 2025, gpt-oss",
    is_there=True,
    is_learned=True,
    latex=r"e^{s_h}",
)

SINKS = Registry("attention sink", NO_SINK, ZERO_SINK, LEARNED_SINK)
