"""The parts of exactly one model to open: what each is here, its numbers, and what it is about.

Equal blocks of a stack are one. A part's words, equations, parameters and code come from the same
anatomy as the picture, whose stages name the part that each belongs to.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

from tfm_core.anatomy import Anatomy, Attention, Part, Sublayer, anatomy, sublayers
from tfm_core.anatomy.names import Scheme
from tfm_core.choices.config import ModelConfig
from tfm_core.choices.config.shape import Shape, TextShape
from tfm_core.choices.variants.activations import ACTIVATIONS
from tfm_core.choices.variants.forms import CAUSALITIES, SCALES
from tfm_core.choices.variants.norms import NORMS
from tfm_core.choices.variants.positions import POSITIONS
from tfm_core.choices.variants.recurrent import ALIGNMENT_SCORES, CELLS
from tfm_core.choices.variants.sinks import SINKS
from tfm_core.choices.variants.stems import POOLINGS, STEMS
from tfm_core.facts.parameter_table import ParameterRow, most_in, parameter_table, shares_of
from tfm_core.inspect.questions import Question, choice_question
from tfm_core.inspect.syntax import statements
from tfm_core.probe.labels import STACKS
from tfm_core.sentences import N_, listed
from tfm_core.trace.source.file import source_code

if TYPE_CHECKING:
    from tfm_core.trace.picture import Stage

Rows = tuple[str, ...]
"""Lines, each a sentence."""


@dataclass(frozen=True, slots=True)
class OpenPart:
    """A part to open, and what it is about.

    title: what it is called; rows: what it is in this model, the last ones on its numbers. parts:
    of the model, the first above all. modules: paths of the modules whose parameters are its own,
    of folded blocks as ``encoder.layers.0–5``. steps: names of the walk's steps, those that the
    model's walk has not too. n_blocks: how many blocks have it; 0 outside of blocks.
    """

    title: str
    rows: Rows
    parts: tuple[Part, ...]
    modules: tuple[str, ...]
    steps: tuple[str, ...]
    n_blocks: int

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


def open_parts(
    config: ModelConfig, shape: Shape, *, src_len: int = 0, tgt_len: int = 0
) -> dict[str, OpenPart]:
    """Return the parts of a model by name, in the order of the forward pass."""
    model = anatomy(config, shape)
    made = _OpenParts(model, model.at(src_len, tgt_len), src_len)
    for part in model.parts:
        made.add_part(part)
    return made.found


def name_of(stage: Stage) -> str:
    """Return the name of the part that a stage of the picture belongs to."""
    part = stage.part
    name = _name(part)
    if part.kind == "residual":
        layer = stage.key.rpartition("_norm.")[0]
        name = f"{layer} +" if len(part.inputs) > 1 else layer
    elif part.layer == "Identity":  # the answer is what it reads
        name = "answer"
    return re.sub(r"\.layers\.\d+", ".layers.0", name)


def _name(part: Part) -> str:
    return part.outputs[0].name if part.kind == "input" else part.path or part.kind


_SUBLAYERS = {
    "self_attention": N_("self-attention"),
    "cross_attention": N_("cross-attention"),
    "feed_forward": N_("feed-forward"),
}
_PLAIN = {
    "segments": N_("Segments and norm"),
    "bridge": N_("tanh of the last states"),
    "readout": N_("tanh of state and context"),
}
"""Kind of a part -> what it is, whatever the model."""
_ANSWERS = {"Pooler": N_("Vector of the text"), "Identity": N_("Vectors of all tokens")}


@dataclass(slots=True)
class _OpenParts:
    """The parts that were found so far.

    sizes: the numbers behind the names in shapes. side: "src" or "tgt" in a column of words.
    below: the parts with parameters, by the path of each module they lie in.
    """

    model: Anatomy
    sizes: Mapping[str, int]
    src_len: int
    side: str = ""
    found: dict[str, OpenPart] = field(default_factory=dict)
    below: dict[str, list[Part]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for part in self.model.modules:
            for path in accumulate(part.path.split("."), "{}.{}".format):
                self.below.setdefault(path, []).append(part)

    def add_part(self, part: Part) -> None:
        """Add one of the model's top parts, and those in it that are opened by themselves."""
        adders = {
            "input": self._input,
            "stem": self._stem,
            "TokenEmbedding": self._embedding,
            "VisionTransformer": self._cls,
            "positions": self._positions,
            "Stack": self._stack,
            "RecurrentEncoder": self._recurrent_encoder,
            "AdditiveDecoder": self._recurrent_decoder,
            "LuongDecoder": self._recurrent_decoder,
            "pooling": self._pooling,
            "head": self._head,
            "answer": self._answer,
        }
        add = adders.get(part.layer) or adders.get(part.kind)
        if add is not None:
            add(part)
        elif part.kind in _PLAIN:
            self.add(_name(part), _PLAIN[part.kind], *part, paths=[part.path])

    def number(self, name: str) -> str:
        """Return a size as it is written."""
        return f"{self.sizes[name]:,}" if name == "tgt_words" else str(self.sizes.get(name, name))

    def count(self, *paths: str, is_repeated: bool = False) -> Rows:
        """Return the parameters below modules as a line, or none.

        is_repeated: each block has such a part.
        """
        parameters = (
            p for path in paths for part in self.below.get(path, ()) for p in part.parameters
        )
        n = sum(p.size for p in parameters if not p.tied_to)
        if not n:
            return ()
        if is_repeated:
            return (N_("{n:,} parameters per block", n=n),)
        return (N_("{n:,} parameters", n=n),)

    def modules(self, paths: Sequence[str], n_blocks: int) -> tuple[str, ...]:
        """Return the paths of all modules with parameters at or below some."""
        modules = [part.path for path in paths for part in self.below.get(path, ())]
        folded = f".layers.0–{n_blocks - 1}"
        if n_blocks <= 1:
            return tuple(modules)
        return tuple(path.replace(".layers.0", folded) for path in modules)

    def add(
        self,
        name: str,
        rows: str | Rows,
        *parts: Part,
        title: str = "",
        paths: Sequence[str] = (),
        count: Rows | None = None,
        steps: tuple[str, ...] = (),
        n_blocks: int = 0,
    ) -> None:
        """Add a part; what is not given follows from rows, parts and paths.

        paths: of the modules whose parameters are its own. count: the lines on its numbers.
        """
        rows = (rows,) if isinstance(rows, str) else rows
        if count is None:
            count = self.count(*paths, is_repeated=n_blocks > 1)
        self.found[name] = OpenPart(
            title or rows[0],
            (*rows, *count),
            parts,
            self.modules(paths, n_blocks),
            steps or next((part.steps for part in parts if part.steps), ()),
            n_blocks,
        )

    def _input(self, part: Part) -> None:
        """Add a picture or ids."""
        name = part.outputs[0].name
        self.side = name.removesuffix(" ids") if name.endswith(" ids") else ""
        steps = ("tokens", "masks") if self.side else part.steps
        rows = self._ids() if self.side else N_("Picture")
        self.add(_name(part), rows, part, steps=steps)

    @property
    def _has_two_columns(self) -> bool:
        return sum(part.kind == "input" for part in self.model.folded) > 1

    @property
    def _writes(self) -> bool:
        """Whether tokens are written in the order of the text."""
        return any(part.path == "decoder" for part in self.model.folded)

    def _ids(self) -> str:
        """Return what the ids of a column are in this model."""
        shape = self.model.shape
        if self._has_two_columns or not isinstance(shape, TextShape):
            return N_("Source ids") if self.side == "src" else N_("Target ids, shifted right")
        if self._writes:
            return N_("Source, then target ids") if shape.has_source else N_("Token ids")
        if shape.has_cls:
            return N_("Token ids, CLS in front")
        if shape.head != "tokens":
            return N_("Token ids")
        if shape.mask_id:
            return N_("Token ids, some hidden")
        if self.sizes["S"] > self.src_len:
            return N_("Source ids, then empty slots")
        return N_("Source ids")

    def _embedding(self, part: Part) -> None:
        """Add the table of a column of ids, or both of source and target in one sequence."""
        tables = [
            other
            for other in self.model.folded
            if (other.layer, other.inputs) == (part.layer, part.inputs)
        ]
        if part is not tables[0]:
            return
        weights = [table.children[0].parameters[0] for table in tables if not table.is_second_name]
        sizes = " + ".join(f"{weight.shape[0]:,}" for weight in weights)
        sizes = f"({sizes})" if len(weights) > 1 else sizes
        is_shared = any(weight.tied_to for weight in weights)
        shape, d_model = self.model.shape, self.number("d_model")
        is_scaled = not isinstance(shape, TextShape) or shape.scale_embedding
        words = N_("Embedding, times √{d_model}", d_model=d_model) if is_scaled else N_("Embedding")
        self.add(
            _name(part),
            (words, f"{sizes} x {d_model}"),
            part,
            title=self._embedded(shape),
            paths=[table.path for table in tables],
            count=(N_("shared with the source"),) if is_shared else None,
        )

    def _embedded(self, shape: Shape) -> str:
        """Return what a table of embeddings is for."""
        if not isinstance(shape, TextShape):
            return N_("Embedding of the words")
        is_of_source = shape.head == "tokens" and not shape.mask_id
        if self._has_two_columns:
            is_of_source = self.side == "src"
            return N_("Embedding of the source") if is_of_source else N_("Embedding of the target")
        if self._writes and shape.has_source:
            return N_("Embedding of the source and the target")
        if self._writes or not is_of_source:
            return N_("Embedding of the tokens")
        return N_("Embedding of the source")

    def _positions(self, part: Part) -> None:
        """Add what is added for positions, if anything."""
        kind = POSITIONS[part.variant]
        if kind.is_added:
            norms = (NORMS[child.variant].label for child in part.children)
            rows = (N_("+ positions"), kind.label, *norms)
            self.add(_name(part), rows, part, title=N_("Positions"), paths=[part.path])

    def _stem(self, part: Part) -> None:
        """Add the patches of a picture."""
        size = self.number("patch_size")
        rows = N_("{cut} of {size} x {size}, projected", cut=STEMS[part.variant].drawn, size=size)
        self.add(_name(part), rows, part, paths=[part.path])

    def _cls(self, part: Part) -> None:
        """Add the token in front of the patches."""
        count = (N_("{n:,} parameters", n=part.parameters[0].size),)
        self.add("cls", N_("CLS token in front"), part, paths=[part.path], count=count)

    def _pooling(self, part: Part) -> None:
        """Add how many vectors become one."""
        tokens = N_("words") if self.side else N_("patches")
        self.add(_name(part), N_(POOLINGS[part.variant].drawn, tokens=tokens), part)

    def _head(self, part: Part) -> None:
        """Add the last layer, if there is one."""
        if part.layer == "Identity":
            return
        d_model = self.number("d_model")
        if part.layer == "Pooler":
            rows: str | Rows = N_("Pooler: first token, tanh")
        elif part.layer == "LabelOutput":
            hidden = f"{self.number('n_hidden')}, ReLU, x " if len(part.children) > 1 else ""
            rows = N_("Linear to the labels"), f"{d_model} x {hidden}{self.number('n_labels')}"
        else:
            tied = (N_("the embedding’s matrix: tied"),) if part.parameters[0].tied_to else ()
            answers = self.number(part.outputs[0].shape[-1])
            rows = N_("Linear"), f"{d_model} x {answers}", *tied
        self.add(_name(part), rows, part, paths=[part.path])

    def _answer(self, part: Part) -> None:
        """Add what the model says."""
        layer = next(other.layer for other in self.model.folded if other.kind == "head")
        self.add(_name(part), _ANSWERS.get(layer, N_("Logits")), part)

    def _stack(self, part: Part) -> None:
        """Add the first block of a stack, which stands for all, and what stands behind them."""
        blocks = [child for child in part.children if child.kind == "block"]
        for sublayer in sublayers(blocks[0]):
            self._sublayer(blocks[0], sublayer, len(blocks))
        for child in part.children[len(blocks) :]:
            if child.kind == "norm":
                label = NORMS[child.variant].label
                title = N_("{norm} behind the decoder", norm=label)
                if part.path == "encoder":
                    title = N_("{norm} behind the encoder", norm=label)
                self.add(_name(child), label, child, part, title=title, paths=[child.path])
            elif child.kind == "attention":
                self.add(_name(child), self._rows(child), child, paths=[child.path])

    def _sublayer(self, block: Part, joint: Sublayer, n: int) -> None:
        """Add a sublayer of so many blocks with its norm and its residual."""
        layer, residual, norm = joint.layer, joint.residual, joint.norm
        stack = STACKS[block.path.partition(".")[0]]
        which = (
            N_("{stack} blocks {first} to {last}", stack=stack, first=1, last=n)
            if n > 1
            else N_("{stack} block {n}", stack=stack, n=1)
        )
        words = _SUBLAYERS[layer.path.rpartition(".")[2]]
        title = N_("{block}: {sublayer}", block=which, sublayer=words)
        paths, count = [layer.path], self.count(layer.path, is_repeated=n > 1)
        for shared in (part for part in layer if part.kind == "relative"):
            paths.append(shared.path)
            for of_all in self.count(shared.path):
                more = N_(
                    "{count} of {variant}, shared by all blocks",
                    count=of_all,
                    variant=shared.variant,
                )
                count = (*count, more)
        self.add(
            _name(layer),
            self._rows(layer),
            layer,
            title=title,
            paths=paths,
            count=count,
            n_blocks=n,
        )
        steps = residual.steps or layer.steps
        if norm is not None:
            label = NORMS[norm.variant].label
            title = (
                N_("{block}: {norm} before {sublayer}", block=which, norm=label, sublayer=words)
                if joint.norm_first
                else N_(
                    "{block}: {norm} behind {sublayer}", block=which, norm=label, sublayer=words
                )
            )
            self.add(
                _name(norm),
                label,
                norm,
                block,
                title=title,
                paths=[norm.path],
                count=(),
                steps=steps,
                n_blocks=n,
            )
        if joint.has_sum:
            title = N_("{block}: sum around {sublayer}", block=which, sublayer=words)
            self.add(
                f"{layer.path} +",
                N_("residual: the sum of both"),
                residual,
                title=title,
                steps=steps,
                n_blocks=n,
            )

    def _rows(self, part: Part) -> Rows:
        """Return what a sublayer is, without its parameters."""
        if not isinstance(part, Attention):
            d_model, d_ff = self.number("d_model"), self.number("d_ff")
            activation = ACTIVATIONS[part.variant].label
            words = N_("Feed-forward, {activation}", activation=activation)
            rows: Rows = (words, f"{d_model} → {d_ff} → {d_model}")
            if part.layer == "MixtureOfExperts":
                n, top_k = self.sizes["n_experts"], self.sizes["top_k"]
                rows = (N_("{top_k} of {n} experts per token", top_k=top_k, n=n), *rows)
            return rows
        notes: list[str] = [CAUSALITIES[part.order].note] if part.order else []
        notes += [part.relative] if part.relative else []
        heads: Rows = (N_("{n} heads x {size}", n=part.n_heads, size=self.number("d_head")),)
        windows = self._windows(part)
        n_windows = sum(map(bool, windows))
        if n_windows == len(windows):
            notes.append(N_("window {n}", n=part.window))
        elif n_windows and not part.is_cross:
            words = N_(
                "window {n} in {some} of {all} blocks",
                n=part.window,
                some=n_windows,
                all=len(windows),
            )
            heads = (*heads, words)
        heads = (*heads, *_unusual(part))
        if part.is_cross:
            return (N_("Cross-attention"), *heads)
        if not notes:
            return (N_("Self-attention"), *heads)
        return (N_("Self-attention ({notes})", notes=listed(notes)), *heads)

    def _windows(self, part: Attention) -> list[int]:
        """Return the window of each self-attention of an attention's stack."""
        stack = part.path.partition(".")[0]
        return [
            one.window
            for one in self.model.all
            if isinstance(one, Attention) and not one.is_cross and one.path.startswith(f"{stack}.")
        ]

    def _recurrent_encoder(self, part: Part) -> None:
        """Add the layers that read, as one."""
        reader, n = part.children[0], len(part.children)
        cell = CELLS[reader.variant].label
        both = len(reader.children) > 1
        rows = (
            N_("{cell}, from both ends", cell=cell)
            if both
            else N_("{cell}, from left to right", cell=cell)
        )
        title = (
            N_("Encoder layers 1 to {n}: {title}", n=n, title=rows)
            if n > 1
            else N_("Encoder layer {n}: {title}", n=1, title=rows)
        )
        self.add(_name(reader), rows, reader, title=title, paths=[reader.path], n_blocks=n)

    def _recurrent_decoder(self, part: Part) -> None:
        """Add a decoder with its attention."""
        asking = next(child for child in part.children if child.kind == "attention")
        score, n = ALIGNMENT_SCORES[asking.variant], self.number("n_layers")
        rows: str = N_("{score} attention", score=score.label)
        self.add(_name(asking), rows, asking, paths=[asking.path])
        rows = CELLS[part.variant].label
        rows = N_("{cell} x {n}", cell=rows, n=n) if n != "1" else rows
        title = N_("Decoder: {title}", title=rows)
        self.add(_name(part), rows, part, title=title, paths=["decoder.steps"])


def _unusual(part: Attention) -> Rows:
    """Return what an attention does otherwise than that of 2017."""
    rows: list[str] = []
    if part.n_kv_heads:
        rows.append(N_("{n} of keys and values", n=part.n_kv_heads))
    if part.has_qk_norm:
        rows.append(N_("queries and keys normed"))
    if SINKS[part.sink].is_there:
        rows.append(SINKS[part.sink].phrase)
    width = SCALES[part.scale].width
    if width != "d_head":
        rows.append(N_("scores / sqrt({width})", width=width) if width else N_("scores not scaled"))
    return tuple(rows)


def parameters_of(
    part: OpenPart, config: ModelConfig, shape: Shape, scheme: Scheme = "ours"
) -> tuple[ParameterRow, ...]:
    """Return the rows of the parameter table, of blocks in one or not, that belong to a part."""
    modules = {path or "cls" for path in part.modules}
    table = parameter_table(config, shape, scheme)
    rows = {(row.path, row.matrix): row for row in (*table.by_block, *table.rows)}
    return tuple(row for (path, _matrix), row in rows.items() if path in modules)


def code_of(part: OpenPart, config: ModelConfig, shape: Shape) -> str:
    """Return the classes and functions of the generated file that make a part."""
    definitions = _definitions(config, shape)
    return "\n\n\n".join(definitions[name] for name in part.code if name in definitions)


@lru_cache(maxsize=64)
def _definitions(config: ModelConfig, shape: Shape) -> dict[str, str]:
    text = source_code(config, shape)
    lines = text.splitlines()
    return {
        node.name: "\n".join(lines[node.lineno - 1 : node.end_lineno])
        for node in statements(text)
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
    }


def about_most(rows: Sequence[ParameterRow]) -> Question:
    """Ask which part of a model holds the most parameters."""
    (most, _share), *others = list(shares_of(rows).items())[:4]
    return choice_question(
        N_("Which part of this model holds the most parameters?"),
        most,
        {part: N_("That part holds {share:.0%}.", share=share) for part, share in others},
        most_in(rows),
    )
