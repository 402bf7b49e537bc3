"""The paths from a head to the answer, as a graph in DOT: the wider a line, the more it carries.

Torch-free.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from tfm_core.inspect.knockouts.parts import Part, name_of
from tfm_core.sentences import N_

SENDER, _ANSWER, _OTHERS = "sender", "answer", "others"
_MAX_PARTS = 6
_LEAST = 0.005  # of the clean answer: less is 0.00 on an arrow
_WIDEST = 9.0  # points


@dataclass(frozen=True, slots=True)
class HeadPaths:
    """Shares of the clean answer that a head restores in a changed input: 1 is all of it.

    total: along all paths. direct: to the logits alone. through: through each later part first, the
    strongest first. answer: the token or class.
    """

    answer: str
    total: float
    direct: float
    through: tuple[tuple[Part, float], ...]

    @property
    def others(self) -> float:
        """What the parts restore, in sum, that are not drawn."""
        return sum(share for _part, share in self.through[len(self.drawn) :])

    @property
    def drawn(self) -> tuple[tuple[Part, float], ...]:
        """The parts that are drawn."""
        return tuple(one for one in self.through[:_MAX_PARTS] if abs(one[1]) >= _LEAST)

    @property
    def in_sum(self) -> float:
        """What all later parts restore, each alone."""
        return sum(share for _part, share in self.through)

    @property
    def together(self) -> float:
        """What the paths add only together: the total less all of them."""
        return self.total - self.direct - self.in_sum


def graph(
    found: HeadPaths, sender: Part, *, say: Callable[[str], str] = str
) -> tuple[str, Mapping[str, str]]:
    """Return the graph in DOT, and its nodes with their names. say: translates."""
    nodes = {SENDER: say(name_of(sender)), _ANSWER: found.answer}
    kinds = {SENDER: _kind(sender), _ANSWER: "output"}
    flows = [(SENDER, _ANSWER, found.direct)]
    by_layer: dict[tuple[str, int], list[str]] = {}
    for part, share in found.drawn:
        nodes[part.code], kinds[part.code] = say(name_of(part)), _kind(part)
        flows += [(SENDER, part.code, share), (part.code, _ANSWER, share)]
        by_layer.setdefault((part.stack, part.layer or 0), []).append(part.code)
    if abs(found.others) >= _LEAST:
        n = len(found.through) - len(found.drawn)
        nodes[_OTHERS], kinds[_OTHERS] = say(N_("{n} other parts, in sum", n=n)), "norm"
        flows += [(SENDER, _OTHERS, found.others), (_OTHERS, _ANSWER, found.others)]
    lines = [
        "digraph paths {",
        'rankdir=TB; bgcolor="transparent"; nodesep=0.5; ranksep=0.55; fontname="Helvetica";',
        'node [shape=box, style="rounded,filled", fontname="Helvetica", fontsize=12, '
        'margin="0.14,0.07"];',
        'edge [fontname="Helvetica", fontsize=10, arrowhead=none];',
    ]
    for name, words in nodes.items():
        text = words.replace("\\", "\\\\").replace('"', "'")
        room = ' margin="0.28,0.09",' if name == SENDER else ""  # its words are bold
        lines.append(f'"{name}" [label="{text}",{room} class="{kinds[name]}"];')
    rows = [
        by_layer[key] for key in sorted(by_layer, key=lambda key: (key[0] != "encoder", key[1]))
    ]
    for above, below in pairwise(rows):
        lines.append(f'"{above[0]}" -> "{below[0]}" [style=invis];')
    top = max((abs(share) for *_ends, share in flows), default=0.0) or 1.0
    for tail, head, share in flows:
        if abs(share) < _LEAST:
            continue
        width = max(0.6, _WIDEST * abs(share) / top)
        label = f' label=" {share:+.2f}",' if head != _ANSWER or tail == SENDER else ""
        sign = "gain" if share >= 0 else "loss"
        lines.append(f'"{tail}" -> "{head}" [{label} penwidth={width:.2f}, class="{sign}"];')
    return "\n".join([*lines, "}"]), nodes


def _kind(part: Part) -> str:
    return {"cross": "cross", "ff": "feed-forward"}.get(part.sublayer, "attention")
