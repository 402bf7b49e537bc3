"""What takes the attention that no token gets: an extra logit in the softmax of each query."""

from __future__ import annotations

from dataclasses import dataclass

from tfm_core.sentences import N_
from tfm_core.variants.record import Registry, Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink(Variant):
    """is_there: whether there is an extra logit. is_learned: whether each head trains its own.

    Otherwise it is 0. latex: its exponential in the softmax's denominator, None without one.
    phrase: in the diagram.
    """

    is_there: bool
    is_learned: bool
    latex: str | None
    phrase: str


NO_SINK = Sink(
    name="none",
    label=N_("None"),
    help=N_("Every query's weights sum to 1."),
    source="Vaswani et al. 2017, Eq. 1",
    is_there=False,
    is_learned=False,
    latex=None,
    phrase=N_("no sink"),
)
ZERO_SINK = Sink(
    name="zero",
    label=N_("A zero logit"),
    help=N_("Adds 1 to the softmax's denominator: low scores give low weights."),
    source="Miller 2023, softmax1",
    is_there=True,
    is_learned=False,
    latex="1",
    phrase=N_("zero sink"),
)
LEARNED_SINK = Sink(
    name="learned",
    label=N_("A learned logit"),
    help=N_("Each head learns how much attention goes to no token (gpt-oss)."),
    source="OpenAI 2025, gpt-oss",
    is_there=True,
    is_learned=True,
    latex=r"e^{s_h}",
    phrase=N_("learned sink"),
)

SINKS = Registry("attention sink", NO_SINK, ZERO_SINK, LEARNED_SINK)
