"""A diagram while it is drawn: nodes, frames and arrows in DOT, without colours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from tfm_core.anatomy import Anatomy, Part, Tensor
from tfm_core.choices.variants.positions import POSITIONS
from tfm_core.sentences import N_

BREAK = "\\n"  # as DOT writes it
Rows = tuple[str, ...]
"""The lines of a label, each a sentence."""


@dataclass(frozen=True, slots=True)
class DiagramNode:
    """A box to click, and what it is about.

    parts: of the model, the first above all. title: what it is called where it is not drawn.
    modules: paths of the modules whose parameters are its own, of folded blocks as
    ``encoder.layers.0–5``. steps: names of the walk's steps, those that the model's walk has not
    too. layer: its block, from 0; None outside. n_blocks: how many blocks share this node. count:
    lines on its numbers, below its name.
    """

    parts: tuple[Part, ...]
    title: str
    modules: tuple[str, ...]
    steps: tuple[str, ...]
    layer: int | None
    n_blocks: int
    count: Rows = ()

    @property
    def equations(self) -> tuple[str, ...]:
        """Keys of ``equations``."""
        return tuple(dict.fromkeys(key for part in self.parts for key in part.equations))

    @property
    def code(self) -> tuple[str, ...]:
        """Classes and functions of the generated file."""
        return tuple(dict.fromkeys(name for part in self.parts for name in _code(part)))


def _code(part: Part) -> Iterator[str]:
    positions = part.variant if part.kind == "positions" else getattr(part, "relative", "")
    if positions:
        yield from (function.name for function in POSITIONS[positions].functions)
    yield from part.code


@dataclass(slots=True)
class Drawing:
    """What has been drawn of a model: nodes, frames, arrows.

    sizes: the numbers behind the names in its tensors' shapes. src_len: tokens of the source.
    opened: the blocks drawn one by one, counted from 0; none: folded. last: the node that the next
    one is drawn below. side: "src" or "tgt" in a column of words, else "". memory: what a decoder
    looks back at. modules: those with parameters, by the path of each module they lie in. edges:
    the last lines of the document, as an arrow in a frame pulls both ends in. across: tail and head
    of the arrows from one column to the other, which Graphviz would lead around the second one.
    flows: tail and head of every other arrow, and what is written on it.
    say: translates what is drawn.
    """

    model: Anatomy
    sizes: Mapping[str, int]
    src_len: int
    opened: range
    say: Callable[[str], str] = str
    last: str = ""
    side: str = ""
    memory: str = ""
    modules: dict[str, list[Part]] = field(default_factory=dict)
    nodes: dict[str, DiagramNode] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)
    across: list[tuple[str, str]] = field(default_factory=list)
    flows: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def has_two_columns(self) -> bool:
        """Whether one stack looks back at another."""
        return sum(part.kind == "input" for part in self.model.folded) > 1

    @property
    def writes(self) -> bool:
        """Whether tokens are written in the order of the text."""
        return any(part.path == "decoder" for part in self.model.folded)

    def part(self, path: str) -> Part:
        """Return a part that lies in no other, by its path."""
        return next(part for part in self.model.folded if part.path == path)

    def count(self, *paths: str, is_repeated: bool = False) -> Rows:
        """Return the parameters below modules as a line of a label, or none.

        is_repeated: each block has such a node.
        """
        parameters = (p for part in self._below(paths) for p in part.parameters)
        n = sum(p.size for p in parameters if not p.tied_to)
        if not n:
            return ()
        if is_repeated:
            return (N_("{n:,} parameters per block", n=n),)
        return (N_("{n:,} parameters", n=n),)

    def modules_below(self, paths: Sequence[str], n_folded: int) -> tuple[str, ...]:
        """Return the paths of all modules with parameters at or below some."""
        modules, folded = [part.path for part in self._below(paths)], f".layers.0–{n_folded - 1}"
        if n_folded <= 1:
            return tuple(modules)
        return tuple(path.replace(".layers.0", folded) for path in modules)

    def _below(self, paths: Sequence[str]) -> list[Part]:
        if not self.modules:
            for part in self.model.modules:
                for path in accumulate(part.path.split("."), "{}.{}".format):
                    self.modules.setdefault(path, []).append(part)
        return [part for path in paths for part in self.modules.get(path, ())]

    def number(self, name: str) -> str:
        """Return a size as it is written."""
        return f"{self.sizes[name]:,}" if name == "tgt_words" else str(self.sizes.get(name, name))

    def shape(self, tensor: Tensor) -> str:
        """Return the shape of a tensor with its numbers: ``(B, 28, 512)``."""
        return f"({', '.join(map(self.number, tensor.shape))})"

    def box(
        self,
        name: str,
        kind: str,
        label: str | Rows,
        *parts: Part,
        title: str = "",
        paths: Sequence[str] = (),
        count: Rows | None = None,
        steps: tuple[str, ...] = (),
        blocks: range = range(0),
    ) -> str:
        """Draw a box and return its name; what is not given follows from label, parts and paths.

        paths: of the modules whose parameters are its own. count: the last lines of its label, else
        their number. blocks: those that it stands for, from 0.
        """
        if count is None:
            count = self.count(*paths, is_repeated=len(blocks) > 1)
        rows = (label,) if isinstance(label, str) else label
        self.nodes[name] = DiagramNode(
            parts,
            title or rows[0],
            self.modules_below(paths, len(blocks)),
            steps or next((part.steps for part in parts if part.steps), ()),
            blocks.start if blocks else None,
            max(1, len(blocks)),
            count,
        )
        text = BREAK.join(map(self.said, (*rows, *count)))
        style = f'tooltip="{text}", class="{kind}"'
        if kind == "sum":
            tip = self.said(N_("residual: the sum of both"))
            style = f'shape=circle, width=0.28, fixedsize=true, class="{kind}", tooltip="{tip}"'
        self.lines.append(f'"{name}" [label="{text}", {style}];')
        return name

    def said(self, text: str) -> str:
        """Return a text in the language of the diagram, as DOT can hold it."""
        return self.say(text).replace('"', "'")

    def lead(self, name: str, shape: str = "") -> None:
        """Draw an arrow from the last node to one, and go on from there.

        shape: on the arrow; without one, that of what the node's part reads.
        """
        self.edge(self.last, name, shape or self.shape(self.nodes[name].parts[0].inputs[0]))
        self.last = name

    def fork(self, name: str) -> str:
        """Draw the point at which a residual leaves the way through its block; return its name.

        It is no node to click: it keeps the arrow of the residual inside the block's frame.
        """
        self.lines.append(
            f'"{name}" [shape=point, width=0.04, height=0.04, label="", class="fork"];'
        )
        return name

    def words(self, name: str, *rows: str) -> str:
        """Draw words that an arrow starts from; return their name. They are no node to click."""
        text = BREAK.join(map(self.said, rows))
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
        rows = "".join(f"{self.said(row)}\\l" for row in title)
        self.lines += [
            f'subgraph "cluster {name}" {{',
            f'label="{rows}"; labeljust=l; labelloc={"b" if below else "t"}; fontsize=13; '
            f'style="rounded,filled"; class="{kind}";',
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
        self.flows.append((tail, head, label))
        words = [f'label=" {self.said(label)}"'] if label else []
        words += ["style=dashed, headport=e"] if dashed else ["weight=4"]
        words += [] if has_head else ["arrowhead=none"]
        self.edges.append(f'"{tail}" -> "{head}" [{", ".join(words)}];')

    def reads(self, name: str) -> tuple[tuple[str, str], ...]:
        """Return the nodes whose arrows end at one, each with what is written on its arrow.

        An arrow that comes from a mere point begins at the node before that.
        """
        found: dict[str, str] = {}
        for tail, head, label in (*self.flows, *((tail, head, "") for tail, head in self.across)):
            if head == name:
                known = {tail: ""} if tail in self.nodes else dict(self.reads(tail))
                found |= {node: label or words for node, words in known.items()}
        return tuple(found.items())

    def document(self) -> str:
        """Return the DOT source."""
        font = 'fontname="Helvetica"'
        head = [
            "digraph model {",
            f'rankdir=TB; bgcolor="transparent"; nodesep=0.55; ranksep=0.32; {font};',
            f'node [shape=box, style="rounded,filled", {font}, fontsize=12, margin="0.16,0.07"];',
            f"edge [{font}, fontsize=10, arrowsize=0.6];",
        ]
        return "\n".join([*head, *self.lines, *self.edges, "}"])
