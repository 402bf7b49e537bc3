"""A diagram while it is drawn: nodes, frames and arrows in DOT."""

from __future__ import annotations

from dataclasses import dataclass, field

from tfm_core.config import ModelConfig
from tfm_core.config.shape import Shape
from tfm_core.facts.own_names import own_name, own_names
from tfm_core.facts.parameter_table import parameter_table


@dataclass(frozen=True, slots=True)
class DiagramColours:
    """Colours of a diagram: ink, lines, and the fill of each kind of node."""

    ink: str
    line: str
    fills: dict[str, str]


@dataclass(slots=True)
class Drawing:
    """What has been drawn of a model: nodes, frames, arrows.

    across: arrows from one column to the other, which Graphviz would lead around the second one.
    """

    config: ModelConfig
    shape: Shape
    look: DiagramColours
    opened: range  # the blocks drawn one by one, counted from 0; none: folded
    nodes: dict[str, str] = field(default_factory=dict)  # name -> label
    lines: list[str] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)  # last: an arrow in a frame pulls both ends in
    across: list[tuple[str, str]] = field(default_factory=list)  # tail and head, in two columns

    def count(self, *modules: str, is_repeated: bool = False) -> str:
        """Return the parameters below modules as a line of a label, or nothing.

        is_repeated: each block has such a node.
        """
        rows = parameter_table(self.config, self.shape).rows
        names = own_names(self.config, self.shape)
        starts = tuple(f"{own_name(name, names)}." for name in modules)
        n = sum(row.n_parameters for row in rows if f"{row.module}.".startswith(starts))
        each = " per block" if is_repeated else ""
        return f"\\n{n:,} parameters{each}" if n else ""

    def node(self, name: str, label: str, kind: str) -> str:
        """Draw a box and return its name."""
        fill = self.look.fills[kind]
        self.nodes[name] = label
        self.lines.append(
            f'"{name}" [label="{label}", fillcolor="{fill}", tooltip="{label}", class="{kind}"];'
        )
        return name

    def plus(self, name: str) -> str:
        """Draw the sum of a residual and return its name."""
        self.nodes[name] = "+"
        self.lines.append(
            f'"{name}" [label="+", shape=circle, width=0.28, fixedsize=true, class="sum", '
            f'fillcolor="{self.look.fills["sum"]}", tooltip="residual: the sum of both"];'
        )
        return name

    def fork(self, name: str) -> str:
        """Draw the point at which a residual leaves the way through its block; return its name.

        It is no node to click: it keeps the arrow of the residual inside the block's frame.
        """
        self.lines.append(
            f'"{name}" [shape=point, width=0.04, height=0.04, label="", class="fork"];'
        )
        return name

    def words(self, name: str, text: str) -> str:
        """Draw words that an arrow starts from; return their name. They are no node to click."""
        self.lines.append(f'"{name}" [shape=plaintext, style="", label="{text}", fontsize=10];')
        return name

    def side_by_side(self, left: str, right: str) -> None:
        """Put two nodes at one height, ``left`` on the left: the heads of two columns."""
        self.lines.append(
            f'{{rank=same; "{left}"; "{right}";}} "{left}" -> "{right}" [style=invis, weight=0];'
        )

    def frame(self, name: str, *title: str, below: bool = False) -> None:
        """Open a frame of the encoder or the decoder, which its name begins with.

        title: short rows at the left, above or below, so that the arrows in and out pass by them.
        """
        kind = name.split()[0]
        rows = "".join(f"{row}\\l" for row in title)
        self.lines += [
            f'subgraph "cluster {name}" {{',
            f'label="{rows}"; labeljust=l; labelloc={"b" if below else "t"}; fontsize=13; '
            f'style="rounded,filled"; class="{kind}"; '
            f'color="{self.look.line}"; fillcolor="{self.look.fills[kind]}";',
        ]

    def edge(
        self,
        tail: str,
        head: str,
        label: str = "",
        *,
        dashed: bool = False,
        has_head: bool = True,
    ) -> None:
        """Draw an arrow; without a head it is a line."""
        words = [f'label=" {label}"'] if label else []
        words += ["style=dashed, headport=e"] if dashed else ["weight=4"]
        words += [] if has_head else ["arrowhead=none"]
        self.edges.append(f'"{tail}" -> "{head}" [{", ".join(words)}];')

    def document(self) -> str:
        """Return the DOT source."""
        ink, line = self.look.ink, self.look.line
        font = 'fontname="Helvetica"'
        head = [
            "digraph model {",
            'rankdir=TB; bgcolor="transparent"; nodesep=0.55; ranksep=0.32; '
            f'{font}; fontcolor="{ink}";',
            f'node [shape=box, style="rounded,filled", {font}, fontsize=12, fontcolor="{ink}", '
            f'color="{line}", margin="0.16,0.07"];',
            f'edge [{font}, fontsize=10, fontcolor="{ink}", color="{ink}", arrowsize=0.6];',
        ]
        return "\n".join([*head, *self.lines, *self.edges, "}"])
