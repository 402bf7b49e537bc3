"""What a look could not see, in sentences that are translated also after a file has kept them.

Pages read them without torch.
"""

from __future__ import annotations

import re

from tfm_core.sentences import N_, Sentence, in_bytes

OPAQUE = N_("{module} computes attention in {operation}, which shows no weights.")
CHANGED = N_("{module} changes its weights before they multiply values; they are not shown.")
CHANNELS = N_("{module} attends to channels, not to positions; its weights are not shown.")
MIXING = N_(
    "Parts that mix positions without a softmax, such as linear attention or a convolution, have "
    "no map: {n}, such as {names}."
)
NONE = N_("No attention was found: no softmax multiplied values.")
NO_ROOM = N_(
    "Queries, keys and values are left out: with the maps they take {size}, more than the {most} "
    "allowed. Keep some layers, such as layers=['{name}'], or the first positions, such as "
    "crop=128."
)
WHOLE = N_("The model")
"""The module that has no name."""
_UNSEEN = (OPAQUE, CHANGED, CHANNELS, MIXING, NONE, NO_ROOM)


def sizes(size: int, most: int) -> dict[str, str]:
    """Return a size and its limit in words that differ, as ``size`` and ``most``."""
    words = in_bytes(size), in_bytes(most)
    if words[0] == words[1]:
        words = f"{size:,} B", f"{most:,} B"
    return {"size": words[0], "most": words[1]}


def sentence_of(text: str) -> Sentence:
    """Return a stored text as the sentence that it is; plain text where it is none of these."""
    for one in _UNSEEN:
        parts = re.split(r"\\{(\w+)\\}", re.escape(one.template))
        pattern = "".join(f"(?P<{part}>.+?)" if n % 2 else part for n, part in enumerate(parts))
        if found := re.fullmatch(pattern, text):
            values = {
                name: WHOLE if value == WHOLE else value
                for name, value in found.groupdict().items()
            }
            return Sentence(one.template, values)
    return Sentence(text)
