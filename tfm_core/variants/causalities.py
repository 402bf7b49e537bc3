"""Which way a decoder may look along what it writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tfm_core.sentences import N_
from tfm_core.variants.record import Phrased, Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Causality(Phrased):
    """mask: called with a length and a device, (length, length), True = may attend.

    sees_past: whether a query sees the tokens before it. sees_future: whether, while training, it
    sees tokens behind it, the answers among them. note: in a diagram, beside the attention. rule:
    from a window, 0 for none: which keys j query i may ask, in LaTeX, None for all. function: what
    makes the mask in a generated file, out of ``torch.ones(length, length)`` with ``cut``, None for
    nothing, behind it; says: what that is.
    """

    mask: str
    sees_past: bool
    sees_future: bool
    note: str
    rule: Callable[[int], str | None]
    function: str
    cut: str | None
    says: str


CAUSAL = Causality(
    name="causal",
    label=N_("Only the past"),
    help=N_("A token sees itself and those before it, as it will when the model writes."),
    source="Vaswani et al. 2017, section 3.2.3",
    mask="tfm_core.layers.masks:causal_mask",
    sees_past=True,
    sees_future=False,
    note="causal",
    rule=lambda window: rf"i - {window} \le j \le i" if window else r"j \le i",
    function="causal",
    cut=".tril()",
    says="a query sees itself and the keys before it",
    phrase=N_("causal mask"),
)
NONE = Causality(
    name="none",
    label=N_("No causal mask"),
    help=N_(
        "While it trains, a token sees those behind it, and so its own answer: the curves look "
        "perfect, and what the model writes by itself is wrong. A mistake worth seeing."
    ),
    source="Vaswani et al. 2017, section 3.2.3, without the mask",
    mask="tfm_core.mistakes.parts:unmasked",
    sees_past=True,
    sees_future=True,
    note="no causal mask",
    rule=lambda window: rf"|i - j| \le {window}" if window else None,
    function="unmasked",
    cut=None,
    says="a query sees every key, those behind it too",
    phrase=N_("no causal mask"),
)
TRANSPOSED = Causality(
    name="transposed",
    label=N_("Mask on the wrong axis"),
    help=N_(
        "The causal mask transposed: a token sees itself and what follows it, its answer first, "
        "and nothing of what came before. A mistake worth seeing."
    ),
    source="Vaswani et al. 2017, section 3.2.3, with keys and queries swapped in the mask",
    mask="tfm_core.mistakes.parts:transposed_mask",
    sees_past=False,
    sees_future=True,
    note="causal mask transposed",
    rule=lambda window: rf"i \le j \le i + {window}" if window else r"j \ge i",
    function="transposed",
    cut=".triu()",
    says="a query sees itself and the keys behind it",
    phrase=N_("mask on the wrong axis"),
)

CAUSALITIES = Registry("causality", CAUSAL, NONE, TRANSPOSED)
