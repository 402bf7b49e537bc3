"""The residual connections of a block: what a sublayer's output is added to, if to anything."""

from __future__ import annotations

from dataclasses import dataclass

from tfm_core.sentences import N_
from tfm_core.variants.record import Phrased, Registry

ATTENTION, FEED_FORWARD = "attention", "feed_forward"


@dataclass(frozen=True, slots=True, kw_only=True)
class Residual(Phrased):
    """has_sum: whether a sublayer's output is added to anything at all.

    normed: the kinds of sublayer whose output is added to the normalised value that the sublayer
    read, not to the input.
    """

    has_sum: bool
    normed: frozenset[str]

    def is_normed(self, sublayer: str) -> bool:
        """Return whether a sublayer of a block, by its name there, adds to its normalised input."""
        return (FEED_FORWARD if sublayer == FEED_FORWARD else ATTENTION) in self.normed


NORMAL = Residual(
    name="normal",
    label=N_("Around each sublayer"),
    help=N_("What goes into a sublayer is added to what comes out of it, as in the paper."),
    source="He et al. 2016; Vaswani et al. 2017, section 3.1",
    has_sum=True,
    normed=frozenset(),
    phrase=N_("residuals"),
)
NONE = Residual(
    name="none",
    label=N_("No residuals"),
    help=N_(
        "A sublayer's output replaces its input, so a token keeps nothing of itself that attention "
        "or the feed-forward layer does not pass on: a mistake worth seeing."
    ),
    source="Vaswani et al. 2017, section 3.1, without the sum",
    has_sum=False,
    normed=frozenset(),
    phrase=N_("no residuals"),
)
FROM_NORMED = Residual(
    name="from-normed",
    label=N_("From the normalised value"),
    help=N_(
        "x = norm(x) and then x + sublayer(x): the sum begins anew at each sublayer, and no path "
        "runs through the stack untouched: a mistake worth seeing, of pre-norm blocks."
    ),
    source="Xiong et al. 2020, with x overwritten by norm(x)",
    has_sum=True,
    normed=frozenset((ATTENTION, FEED_FORWARD)),
    phrase=N_("residuals from the normalised value"),
)
FEED_FORWARD_FROM_NORMED = Residual(
    name="feed-forward-from-normed",
    label=N_("Feed-forward from the normalised value"),
    help=N_(
        "The attention's output is added to x, as it should be; the feed-forward layer's is added "
        "to norm(x), so the sum begins anew once a block: a common mistake of pre-norm blocks."
    ),
    source="Xiong et al. 2020, with x overwritten by norm(x) before the feed-forward layer",
    has_sum=True,
    normed=frozenset((FEED_FORWARD,)),
    phrase=N_("second residual from the normalised value"),
)

RESIDUALS = Registry("residuals", NORMAL, NONE, FROM_NORMED, FEED_FORWARD_FROM_NORMED)
